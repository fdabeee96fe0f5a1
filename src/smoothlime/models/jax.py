"""JAX: functions and modules, their gradients by reverse mode, compiled once for each of a few numbers of points."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, ref

import numpy as np

from .._core.forks import is_forked
from .._core.optional import require
from .._core.types import Points
from ..errors import InvalidArgument, ModelError
from .protocol import changed_width, wrong_shape

FEWEST, FEWEST_WIDE, WIDE = 16, 4, 1_024
"""Points per call at least, and of points with more features than `WIDE`: fewer are made up to it."""

STEP = 4
"""Each number of points that is compiled for is so many times the one before."""

PROBES = 7, 11, 13, 17, 19, 23
"""Numbers of points with which a function is tried: the first that is no size of a point as well."""

STALLED = 30.0
"""Seconds after which a process that was forked is taken to be unable to compile: it needs a tenth of one."""

WHOLE = (
    "the model's outputs are {}, which have no gradients; explain a score, or use method='clime', which needs only"
    " predictions"
)

FORKED = (
    "JAX does not survive a fork: its threads stay behind in the parent, and this process would wait for them for ever."
    " Start workers afresh: multiprocessing.get_context('spawn'), or joblib's default"
)


@dataclass(frozen=True, slots=True)
class Form:
    """All of a model but its numbers: what is compiled, and hence what can be hashed."""

    call: Callable[[Any, Any], Any]
    """(state, points) -> outputs"""
    is_probability: bool
    """Whether a softmax or a sigmoid is put on top"""
    number_type: str
    """In which the points reach the model"""
    called: str
    """How errors name it"""
    hint: str
    """What may help where it takes neither points nor single rows"""
    is_batched: bool
    """Whether it is known to take points"""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Two compiled functions, each of a form, a state and points (n, d), or (n, ...) in any shape."""

    values: Callable[..., Any]
    """-> outputs (n, k), alone in a tuple"""
    values_and_gradients: Callable[..., Any]
    """with weights (n, k) -> outputs (n, k) and the gradient (n, d) of their weighted sum"""


@dataclass(frozen=True, slots=True)
class JaxModel:
    """A function or a module of JAX, asked for 16, 64, 256, ... points at once: XLA compiles anew for each number.

    What is missing is made up with the last point, so that a model must answer point by point; `Evaluation` checks it.
    """

    model: Any
    split: Callable[[Any], tuple[Callable[[Any, Any], Any], Any]]
    """What is compiled of the model, a function of state and points that can be hashed, and its state as it is now"""
    number_type: str
    """In which the points reach it; NumPy has no bfloat16"""
    epsilon: float
    """Relative spacing of the numbers that it computes with"""
    is_probability: bool = False
    """Whether a softmax or a sigmoid is put on top"""
    known_range: tuple[float, float] | None = None
    """Which no output leaves, where its last layer says so"""
    feature_names: tuple[str, ...] | None = None
    outputs: tuple[str, ...] = ()
    is_kept: bool = False
    """Whether what is compiled belongs to this very object, and goes when it does"""
    is_batched: bool = False
    """Whether it is known to take points"""
    hint: str = ""
    """What may help where it fails"""

    is_pure: ClassVar[bool] = True

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type in which it wants its points."""
        return np.dtype(np.float64 if self.number_type == "float64" else np.float32)

    @property
    def output_range(self) -> tuple[float, float] | None:
        """Range that no output leaves, where it is known."""
        return (0.0, 1.0) if self.is_probability else self.known_range

    def values(self, points: Points) -> Any:
        """Outputs at each point, (n, k)."""
        return self._asked(self._compiled.values, points)[0]

    def values_and_gradients(self, points: Points, weights: Any) -> tuple[Any, Any]:
        """Outputs (n, k) and the gradient of their weighted sum, (n, d)."""
        values, gradients = self._asked(self._compiled.values_and_gradients, points, weights)
        return values, gradients

    @property
    def _compiled(self) -> Compiled:
        return compiled_for(self.model) if self.is_kept else compiled_of_forms()

    def _asked(self, function: Callable[..., Any], *arrays: Any) -> list[Any]:
        ready()  # a model that was made, or asked, before a fork has passed no check since
        call, state = self.split(self.model)
        name = getattr(self.model, "__name__", "")
        called = f"function {name}" if name else type(self.model).__name__
        form = Form(call, self.is_probability, self.number_type, called, self.hint, self.is_batched)
        given = [np.asarray(each, dtype=self.dtype) for each in arrays]
        pieces = _pieces(len(given[0]), FEWEST if given[0][0].size <= WIDE else FEWEST_WIDE)
        # all are under way before the first is waited for
        answers = [function(form, state, *(_filled(each[part], size) for each in given)) for part, size in pieces]
        kept = [part.stop - part.start for part, _ in pieces]
        return [
            np.concatenate([np.asarray(answer[i])[:n] for answer, n in zip(answers, kept, strict=True)])
            for i in range(len(answers[0]))
        ]


def from_function(
    function: Any, *, output: str | None, feature_names: tuple[str, ...] | None, outputs: tuple[str, ...]
) -> JaxModel:
    """Adapter for a function that JAX has compiled or otherwise knows, of points (n, d) or of single rows (d,)."""
    jax = ready()
    number_type = default_type(jax)
    return JaxModel(
        model=function,
        split=weakly,
        number_type=number_type,
        epsilon=spacing(jax, number_type),
        is_probability=wants_probability(output),
        feature_names=feature_names,
        outputs=outputs,
        is_kept=True,
    )


def weakly(function: Any) -> tuple[Weak, tuple[()]]:
    """The function, so that what is compiled of it does not keep it; it has no state."""
    return Weak(ref(function)), ()


def default_type(jax: Any) -> str:
    """Type of JAX's own numbers: float32, unless x64 is enabled."""
    return str(jax.dtypes.canonicalize_dtype(np.float64))


def spacing(jax: Any, number_type: str) -> float:
    """Relative spacing of the numbers of a type."""
    return float(jax.numpy.finfo(number_type).eps)


def ready() -> Any:
    """JAX, if it can compile in this process."""
    jax = require("jax", extra="jax", to="explain a JAX function")
    if is_forked():
        _check_forked(os.getpid())
    return jax


@lru_cache(maxsize=1)
def _check_forked(process: int) -> None:
    """Refuse to wait for ever: a child of a process that used JAX can compile nothing, one of another can."""
    jax = sys.modules["jax"]
    thread = threading.Thread(target=lambda: jax.jit(lambda x: x + 1)(np.ones(2)), daemon=True)
    thread.start()
    thread.join(STALLED)
    if thread.is_alive():
        raise ModelError(FORKED)


def wants_probability(output: str | None) -> bool:
    """Whether a softmax or a sigmoid is wanted on top of the outputs."""
    if output == "margin":
        msg = "output='margin' is for classifiers that know both; the outputs of a network are taken as they come"
        raise InvalidArgument(msg, argument="output")
    return output == "probability"


@dataclass(frozen=True, slots=True)
class Weak:
    """A function without a state, which may go while what was compiled of it is still there."""

    function: ref[Any]

    def __call__(self, state: Any, points: Any) -> Any:
        """Its outputs, batched or not."""
        function = self.function()
        assert function is not None, "the model holds it"
        return function(points)


_OF_OBJECTS: WeakKeyDictionary[Any, Compiled] = WeakKeyDictionary()
"""What was compiled of functions, and of models that are changed in place, as long as they live."""


def compiled_for(owner: Any) -> Compiled:
    """The one pair of compiled functions of an object, over all calls that explain it."""
    found = _OF_OBJECTS.get(owner)
    if found is None:
        found = _OF_OBJECTS.setdefault(owner, _compiled())
    return found


@lru_cache(maxsize=1)
def compiled_of_forms() -> Compiled:
    """The one pair for all models whose form says everything but numbers: JAX keeps what it compiled for each."""
    return _compiled()


def _compiled() -> Compiled:
    jax = ready()

    def values(form: Form, state: Any, points: Any) -> Any:
        return (_outputs(jax, form, state, points),)

    def values_and_gradients(form: Form, state: Any, points: Any, weights: Any) -> Any:
        out, back = jax.vjp(lambda given: _outputs(jax, form, state, given), points)
        if not jax.numpy.issubdtype(out.dtype, jax.numpy.inexact):
            raise ModelError(WHOLE.format(f"whole numbers ({out.dtype})"))
        if out.shape != weights.shape:
            raise ModelError(changed_width(weights.shape[1], out.shape[1]))
        return out, back(weights.astype(out.dtype))[0]

    return Compiled(jax.jit(values, static_argnums=0), jax.jit(values_and_gradients, static_argnums=0))


def _outputs(jax: Any, form: Form, state: Any, points: Any) -> Any:
    """Outputs (n, k) in float32 or float64, of a function of points or, over and over, of single rows."""
    rows = points.astype(form.number_type)
    out = _applied(jax, form, lambda given: form.call(state, given), rows)
    out = out[:, None] if out.ndim == 1 else out
    if jax.numpy.issubdtype(out.dtype, jax.numpy.floating) and out.dtype.itemsize < points.dtype.itemsize:
        out = out.astype(points.dtype)  # NumPy has no bfloat16, and sums want more digits
    if form.is_probability:
        return jax.nn.sigmoid(out) if out.shape[1] == 1 else jax.nn.softmax(out, axis=1)
    return out


def _applied(jax: Any, form: Form, function: Callable[[Any], Any], points: Any) -> Any:
    """Outputs, (n,) or (n, k). Which of the two kinds a function is of is found without computing anything.

    It is tried with a number of points that is not their number of features: a matrix times a row would take them.
    """
    sizes = points.shape[1:]
    n = next(probes for probes in PROBES if probes not in sizes)
    probes = jax.ShapeDtypeStruct((n, *sizes), points.dtype)
    batched, of_points = _tried(jax, function, probes)
    if _is_row_by_row(batched, n):
        return function(points)
    single, of_rows = (None, "") if form.is_batched else _tried(jax, jax.vmap(function), probes)
    if _is_row_by_row(single, n):
        return jax.vmap(function)(points)
    for out in (batched, single):
        if isinstance(out, tuple | list | dict):
            raise ModelError(_several(form, out))
    shaped = next((out for out in (batched, single) if hasattr(out, "shape")), None)
    if shaped is not None:
        raise ModelError(wrong_shape(n, shaped.shape))
    if form.is_batched:
        return function(points)  # which says what is wrong
    points_of, row_of = _shown("n", *sizes), _shown(*sizes)
    msg = (
        f"the {form.called} takes neither points {points_of} nor single rows {row_of}. Points: {of_points} Rows:"
        f" {of_rows}{form.hint}"
    )
    raise ModelError(msg)


def _tried(jax: Any, function: Callable[[Any], Any], probes: Any) -> tuple[Any, str]:
    """What would come back, or the first line of what would be raised."""
    try:
        return jax.eval_shape(function, probes), ""
    except Exception as err:
        first = next(iter(str(err).splitlines()), "")
        return None, f"{type(err).__name__}: {first}"


def _shown(*sizes: Any) -> str:
    return f"({', '.join(map(str, sizes))}{',' * (len(sizes) == 1)})"


def _is_row_by_row(out: Any, n: int) -> bool:
    shape: tuple[int, ...] = getattr(out, "shape", ())
    return len(shape) in (1, 2) and shape[0] == n


def _several(form: Form, out: Any) -> str:
    part = next(iter(out)) if isinstance(out, dict) and out else 0
    return (
        f"the {form.called} returned a {type(out).__name__}, but one array (n,) or (n, k) is wanted. Give a function"
        f" that returns the part to explain: jax.jit(lambda points: model(points)[{part!r}])"
    )


def _pieces(n: int, fewest: int) -> list[tuple[slice, int]]:
    """Parts of n points and the number that each is made up to: one of few, and less than twice what there is."""
    pieces, start = [], 0
    while start < n:
        left, size = n - start, fewest
        while size < left:
            size *= STEP
        if size > fewest and size >= 2 * left:
            size //= STEP
        stop = min(n, start + size)
        pieces.append((slice(start, stop), size))
        start = stop
    return pieces


def _filled(array: Any, n: int) -> Any:
    """At least n lines, by repeating the last: a model may have no answer for others, such as 0."""
    lack = n - len(array)
    return array if lack <= 0 else np.concatenate([array, np.broadcast_to(array[-1:], (lack, *array.shape[1:]))])

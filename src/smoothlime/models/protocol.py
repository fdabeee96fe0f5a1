"""What a model is to smoothlime: points in, outputs out; and, for some, gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._core.types import Points
from .._core.validate import is_masked, what_instead_of_numbers
from ..errors import ModelError
from .hints import OF_ROWS

FEWEST = 32
"""Points per model call, however large they are, of a model that says nothing else."""


@runtime_checkable
class Model(Protocol):
    """Anything that can be asked for its outputs at many points at once.

    More attributes are read where a model has them: `feature_names`; `dtype`, the floating type it wants its points in;
    `epsilon`, the relative spacing of the numbers it computes with, or one per perturbed feature; `output_range`, which
    no output leaves; `is_pure`, if it neither writes into its points nor returns the same array twice; `wants_table`,
    if it takes data frames; `hint`, added to the message where it raises an error; `batch_bytes`, the best size of the
    points of one call, and `made`, the numbers per point that share it.
    """

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the k outputs; empty where only an evaluation can tell how many there are."""
        ...

    def values(self, points: Points) -> Any:
        """Outputs at each point: (n, d) -> (n, k)."""
        ...


@runtime_checkable
class Differentiable(Model, Protocol):
    """A model that also gives the gradient of a weighted sum of its outputs, in one backward pass."""

    def values_and_gradients(self, points: Points, weights: Any) -> tuple[Any, Any]:
        """(n, d), (n, k) -> outputs (n, k) and ∇ Σ_k weights_k · output_k at each point, (n, d)."""
        ...


def is_model(obj: Any) -> bool:
    """The same as isinstance(obj, Model), which takes ten times as long."""
    return hasattr(obj, "outputs") and hasattr(obj, "values")


class GradientBatch(Protocol):
    """Points around some of the rows, to be asked in parts.

    `add` takes all answers together: where memory runs out half-way, parts are asked again, and none must count twice.
    """

    def __len__(self) -> int:
        """Count of points."""
        ...

    def ask(self, part: slice) -> Any:
        """Outputs and gradients at some of the points, as they come."""
        ...

    def add(self, answers: Sequence[Any]) -> None:
        """Add the answers for all points, in order, to the sums."""
        ...


def as_columns(values: Any, n: int) -> Any:
    """Outputs (n,) or (n, k) of n points as an array (n, k)."""
    array = as_array(values)
    if array.ndim == 1 and len(array) != n:  # before it gets another shape than was returned
        raise ModelError(wrong_shape(n, array.shape))
    return array[:, None] if array.ndim == 1 else array


def as_array(values: Any) -> Any:
    """What a model returned, as an array on the host, NaN where it is masked; an error where it holds no numbers."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = (values.double() if values.is_floating_point() else values).numpy()  # NumPy has no bfloat16
    array = np.asarray(values)
    if array.ndim == 0 and array.dtype.kind == "O":
        msg = f"the model must return an array of outputs, (n,) or (n, k); got a {type(values).__name__}"
        raise ModelError(msg)
    what = what_instead_of_numbers(array)
    if what:
        way = ", as predict_proba of a classifier does" if what.startswith("text") else ""
        msg = f"the model must return numbers{way}; got {what}"
        raise ModelError(msg)
    if is_masked(values):  # asarray takes what lies beneath the mask
        return np.asarray(values.astype(np.float64).filled(np.nan))
    return array


def model_dtype(model: Model) -> np.dtype[Any]:
    """Floating type in which the model wants its points; float64 unless it says otherwise."""
    return np.dtype(getattr(model, "dtype", np.float64))


def model_epsilon(model: Model) -> Any:
    """Relative spacing of the numbers it computes with, or (f,) of perturbed columns; its dtype's if it says none."""
    return getattr(model, "epsilon", np.finfo(model_dtype(model)).eps)


def wrong_shape(n: int, shape: tuple[int, ...]) -> str:
    """Message about outputs of a wrong shape for n points, and what may be done about it."""
    way = ""
    if len(shape) == 2 and shape[1] == n:
        way = ". These are outputs by points: return the transpose"
    elif len(shape) > 2 and shape[0] == n:
        way = ". Return the part of each point's outputs that is explained, as a[:, 0] is, or a mean over further axes"
    elif len(shape) < 2 and n > 1:
        way = f" ({OF_ROWS})"
    return f"the model must return one row of outputs per point, (n,) or (n, k); n = {n}, got {shape}{way}"


def changed_width(before: int, now: int) -> str:
    """Message about outputs whose number changes between calls."""
    return f"the model returned {before} outputs at first and {now} now"


def is_out_of_memory(err: BaseException) -> bool:
    """Whether memory ran out: a MemoryError of Python or NumPy, or a RuntimeError of a framework that says so."""
    return isinstance(err, MemoryError) or (isinstance(err, RuntimeError) and "out of memory" in str(err).lower())

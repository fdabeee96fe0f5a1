"""What models are called with where that is more than rows of numbers: inputs of a shape, and others held beside them.

The loop moves numbers (n, d). A model of images is given (n, 3, 224, 224); one of several inputs is given, beside the
first, which is perturbed, the lines of the others that belong to the row of each point. As in `on_tables`, points carry
the position of their row: in a further column, the last, which never moves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np

from .._core.types import Array, Points
from .._core.validate import as_own_array
from ..errors import InvalidArgument, ModelError, WrongType
from .protocol import Model

MOST_ROWS = 2**24
"""Positions of rows that float32 tells apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """How points become what a model is called with."""

    shape: tuple[int, ...] = ()
    """Of one point, where it is no row of numbers"""
    held: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments, arrays or tensors with a line for each row"""
    is_coded: bool = False
    """Whether the last column of points is the position of their row: so in the loop, which `bound_to` prepares"""

    def first(self, points: Any) -> Any:
        """The input that is perturbed, (n, *shape), of points (n, d) or (n, d + 1), an array or a tensor."""
        numbers = points[:, :-1] if self.is_coded else points
        return numbers.reshape(len(points), *self.shape) if self.shape else numbers

    def others(self, points: Any) -> dict[str, Any]:
        """The other arguments at points: lines of the rows that they belong to."""
        if not self.held:
            return {}
        if self.is_coded:
            rows = points[:, -1].long() if hasattr(points, "long") else points[:, -1].astype(np.intp)
            return {name: lines[rows] for name, lines in self.held.items()}
        _check_lines(self.held, len(points), "points")
        return dict(self.held)

    def bound_to(self, shape: tuple[int, ...], rows: int) -> Inputs:
        """The same for points around `rows` rows of a shape; with the position of its row in each where it matters."""
        if self.held:
            _check_lines(self.held, rows, "rows of X")
        return replace(self, shape=shape, is_coded=bool(self.held))


def check_held(held: Any, call: Callable[..., Any] | None) -> None:
    """Arguments by name, each with lines that can be counted, which `call` must take where its signature is known."""
    if not isinstance(held, Mapping) or not all(isinstance(name, str) for name in held):
        msg = f"held must map names of arguments to their rows, as in held={{'mask': M}}; got a {type(held).__name__}"
        raise WrongType(msg, argument="held")
    for name, lines in held.items():
        if not getattr(lines, "shape", ()):
            msg = f"held[{name!r}] must be an array or a tensor with a line for each row of X; got {_described(lines)}"
            raise WrongType(msg, argument="held")
    try:
        known = None if call is None else inspect.signature(call).parameters
    except (TypeError, ValueError):  # functions of other languages have no signature to read
        known = None
    first = next(iter(known.values()), None) if known else None
    if first is not None and first.name in held and first.kind is first.POSITIONAL_OR_KEYWORD:
        msg = f"held names {first.name!r}, the model's first argument, which is perturbed: give its rows as X"
        raise InvalidArgument(msg, argument="held")
    if known is None or any(each.kind is each.VAR_KEYWORD for each in known.values()):
        return
    strange = [name for name in held if name not in known or known[name].kind is known[name].POSITIONAL_ONLY]
    if strange:
        msg = f"held names {strange[0]!r}, which the model does not take; its arguments are {', '.join(known)}"
        raise InvalidArgument(msg, argument="held")


def bind(model: Any, x: Array, shape: tuple[int, ...]) -> tuple[Model, Array]:
    """The model as points (n, d) around rows (r, d) of a shape reach it, and the rows as it takes them."""
    own = getattr(model, "bound_to", None)
    is_holding = bool(getattr(model, "holds", False))
    if not (shape or is_holding):
        return model, x
    bound = ShapedModel(model, shape) if own is None else own(shape, len(x))
    if not is_holding:
        return bound, x
    if len(x) > MOST_ROWS:
        msg = f"held goes with up to {MOST_ROWS:,} rows at a time; X has {len(x):,}. Explain them in parts"
        raise InvalidArgument(msg, argument="held")
    return bound, np.column_stack([x, np.arange(float(len(x)))])


def holds_others(model: Any) -> bool:
    """Whether points carry the position of their row, for inputs that are held beside the first one."""
    return bool(getattr(getattr(model, "inputs", None), "is_coded", False))


def read_shaped(X: Any, name: str = "X") -> tuple[Any, tuple[int, ...]]:
    """X with more than two axes as rows (r, d), and the shape of each; anything else as it came, and ()."""
    if len(getattr(X, "shape", ())) > 2 or _is_deep(X):
        array = as_own_array(X, name)
        if not array.size:
            msg = f"{name} is empty: it has shape {array.shape}; give at least one row and one feature"
            raise InvalidArgument(msg, argument=name)
        return array.reshape(len(array), -1), array.shape[1:]
    return X, ()


def _is_deep(X: Any) -> bool:
    """Whether a list holds lists of lists."""
    for _ in range(2):
        if not isinstance(X, list | tuple) or not len(X):
            return False
        X = X[0]
    return isinstance(X, list | tuple) or bool(getattr(X, "shape", ()))


def spread_over(sigma: Any, shape: tuple[int, ...]) -> Any:
    """A sigma of several axes, such as one number per channel (3, 1, 1), as one number for each feature."""
    if not shape or len(getattr(sigma, "shape", ())) < 2:
        return sigma
    array = as_own_array(sigma, "sigma")
    try:
        return np.broadcast_to(array, shape).reshape(-1).copy()
    except ValueError:
        msg = f"sigma of shape {array.shape} does not go with rows of shape {shape}; give a number, or {shape}"
        raise InvalidArgument(msg, argument="sigma") from None


@lru_cache(maxsize=4)  # a picture has more features than an explanation of it has milliseconds to spare
def names_in_shape(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of features by where they lie: x[0,17,3]."""
    return tuple(f"x[{','.join(place)}]" for place in product(*(map(str, range(size)) for size in shape)))


def _check_lines(held: Mapping[str, Any], n: int, what: str) -> None:
    for name, lines in held.items():
        if len(lines) != n:
            msg = (
                f"held[{name!r}] has {len(lines)} lines for {n} {what}; give one for each, and bind what is the same"
                " for all of them to the model, as functools.partial does"
            )
            raise InvalidArgument(msg, argument="held")


def _described(value: Any) -> str:
    return f"a {type(value).__name__}" if getattr(value, "shape", None) is None else "a single number"


_DECLARED = ("outputs", "dtype", "epsilon", "output_range", "is_pure", "batch_bytes", "made")
"""What a model in a shape says of itself, where the model within does."""


@dataclass(frozen=True, slots=True, eq=False)
class ShapedModel:
    """A model that knows nothing of the loop's points, and is given them in the shape that the rows came in."""

    model: Any
    shape: tuple[int, ...]

    def values(self, points: Points) -> Any:
        """Outputs at each point, (n, k)."""
        return self.model.values(points.reshape(len(points), *self.shape))

    @property
    def hint(self) -> str:
        """What was given, where that raises an error."""
        return str(getattr(self.model, "hint", "")) or said_of_shape(self.shape)

    def __getattr__(self, name: str) -> Any:
        """What the model within declares; gradients, only if it has any."""
        if name == "values_and_gradients":
            return partial(self._with_gradients, self.model.values_and_gradients)
        if name in _DECLARED:
            return getattr(self.model, name)
        raise AttributeError(name)

    def _with_gradients(self, ask: Callable[..., Any], points: Points, weights: Any) -> tuple[Any, Any]:
        values, gradients = ask(points.reshape(len(points), *self.shape), weights)
        found = np.asarray(gradients)
        if found.size != points.size:
            msg = (
                f"the model returned gradients of shape {found.shape} for points of shape {(len(points), *self.shape)}"
            )
            raise ModelError(msg)
        return values, found.reshape(points.shape)


def said_of_shape(shape: tuple[int, ...]) -> str:
    """For messages of a model that cannot do with rows of a shape."""
    if not shape:
        return ""
    sizes = ", ".join(map(str, shape))
    return f" (the first axis of X counts rows, so the model was given points (n, {sizes}); for one row give X[None])"

"""Models made of functions: of one that gives values, or of two, for values and gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Points
from .._core.validate import as_names
from ..errors import ModelError, WrongType
from .inputs import Inputs, said_of_shape
from .parts import part_of, several
from .protocol import Model, as_array, as_columns


@dataclass(frozen=True, slots=True)
class FunctionModel:
    """A function of points (n, d), or of points in the shape of the rows, that returns (n,) or (n, k)."""

    function: Callable[[Any], Any]
    outputs: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None
    takes: str = "array"
    hint: str = ""
    """What may help where the function raises an error"""
    inputs: Inputs | None = None
    """What it is called with, where that is not just points (n, d)"""
    output_key: str | int | None = None
    """Which of several outputs is explained"""

    def for_rows_of_a_table(self) -> FunctionModel:
        """The same function; where it raises an error, the message says how it would get data frames."""
        hint = " (the function was given an array (n, d); as_model(function, takes='table') gives it data frames)"
        return dataclasses.replace(self, hint=hint)

    @property
    def wants_table(self) -> bool:
        """Whether it is given data frames even where all columns are numbers."""
        return self.takes == "table"

    @property
    def holds(self) -> bool:
        """Whether it has inputs beside the first one, and does not know yet of which row."""
        return self.inputs is not None and bool(self.inputs.held) and not self.inputs.is_coded

    def bound_to(self, shape: tuple[int, ...], rows: int) -> FunctionModel:
        """The same for points around `rows` rows of a shape, which carry the position of their row if it `holds`."""
        inputs = (self.inputs or Inputs()).bound_to(shape, rows)
        names = None if inputs.is_coded else self.feature_names
        return dataclasses.replace(self, inputs=inputs, feature_names=names, hint=said_of_shape(shape))

    def values(self, points: Any) -> Any:
        """Outputs at each point, (n, k)."""
        if self.inputs is None:
            out = self.function(points)
        else:
            out = self.function(self.inputs.first(points), **self.inputs.others(points))
        if self.output_key is not None:
            out = part_of(out, self.output_key)
        elif (isinstance(out, Mapping) and out) or _is_of_arrays(out, len(points)):
            msg = f"the function returned {several(out)}"
            raise ModelError(msg)
        return as_columns(out, len(points))


def _is_of_arrays(out: Any, n: int) -> bool:
    """Whether a function returned a tuple of arrays, each for all n points; a tuple of n numbers is an output."""
    return (
        isinstance(out, tuple) and len(out) > 0 and all(tuple(getattr(each, "shape", ()))[:1] == (n,) for each in out)
    )


@dataclass(frozen=True, slots=True)
class FunctionModelWithGradients:
    """A function and its gradient, both of the caller; whether they belong together is not checked here."""

    function: Callable[[Any], Any]
    gradient: Callable[[Any], Any]
    outputs: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None

    def values(self, points: Points) -> Any:
        """Outputs at each point, (n, k)."""
        return as_columns(self.function(points), len(points))

    def values_and_gradients(self, points: Points, weights: Any) -> tuple[Any, Any]:
        """Outputs (n, k) and the weighted gradient (n, d)."""
        values = self.values(points.copy())  # a function may write into its argument
        gradients = as_array(self.gradient(points))
        if gradients.ndim == points.ndim:
            gradients = gradients[:, None]
        wanted = (len(points), values.shape[1], *points.shape[1:])
        if gradients.shape != wanted:
            msg = (
                f"gradients(points) must have shape (n, d) for one output or (n, k, d) for k; wanted {wanted},"
                f" got {gradients.shape}"
            )
            raise ModelError(msg)
        return values, np.einsum("nk,nk...->n...", weights, gradients)


def from_functions(
    *,
    values: Callable[[Any], Any],
    gradients: Callable[[Any], Any] | None = None,
    outputs: Sequence[str] = (),
    feature_names: Sequence[str] | None = None,
) -> Model:
    """Model made of one's own functions.

    Parameters
    ----------
    values
        Points (n, d) to outputs, (n,) or (n, k).
    gradients
        Points (n, d) to gradients, (n, d) for one output or (n, k, d) for k.

    Examples
    --------
    >>> import numpy as np
    >>> model = from_functions(values=lambda a: np.sin(a[:, 0]), gradients=lambda a: np.cos(a))
    >>> model.values(np.array([[0.0], [1.0]])).shape
    (2, 1)
    """
    for name, given in (("values", values), ("gradients", gradients)):
        if not callable(given) and not (name == "gradients" and given is None):
            msg = f"{name} must be a function of points (n, d); got a {type(given).__name__}"
            raise WrongType(msg)
    names = None if feature_names is None else as_names(feature_names, "feature_names")
    called = as_names(outputs, "outputs")
    if gradients is None:
        return FunctionModel(values, called, names)
    return FunctionModelWithGradients(values, gradients, called, names)

"""Functions of points as models, with or without a gradient of one's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Points
from .._core.validate import as_names
from ..errors import ModelError, WrongType
from .protocol import Model, as_array, as_columns


@dataclass(frozen=True, slots=True)
class FunctionModel:
    """A function of points (n, d) that returns (n,) or (n, k)."""

    function: Callable[[Any], Any]
    outputs: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None
    takes: str = "array"
    hint: str = ""
    """What may help where the function raises an error"""

    def for_rows_of_a_table(self) -> FunctionModel:
        """The same, which says where it raises an error that data frames can be had."""
        hint = " (the function was given an array (n, d); as_model(function, takes='table') gives it data frames)"
        return dataclasses.replace(self, hint=hint)

    @property
    def wants_table(self) -> bool:
        """Whether a data frame reaches the function as one, though an array would hold it."""
        return self.takes == "table"

    def values(self, points: Any) -> Any:
        """Outputs at each point, (n, k)."""
        return as_columns(self.function(points), len(points))


@dataclass(frozen=True, slots=True)
class FunctionModelWithGradients:
    """A function and its gradient, both given by the caller: the gradient is data, it is not checked."""

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
        if gradients.ndim == 2:
            gradients = gradients[:, None, :]
        wanted = (len(points), values.shape[1], points.shape[1])
        if gradients.shape != wanted:
            msg = (
                f"gradients(points) must have shape (n, d) for one output or (n, k, d) for k; wanted {wanted},"
                f" got {gradients.shape}"
            )
            raise ModelError(msg)
        return values, np.einsum("nk,nkd->nd", weights, gradients)


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

"""What a model is to smoothlime: points in, outputs out; and, for some, gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._core.types import Points
from .._core.validate import as_names, is_masked, what_instead_of_numbers
from ..errors import InvalidArgument, ModelError, WrongType


@runtime_checkable
class Model(Protocol):
    """Anything that can be asked for its outputs at many points at once."""

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


class GradientBatch(Protocol):
    """Points around some of the rows, about to be asked; `add` takes all answers at once, so none counts twice."""

    def __len__(self) -> int:
        """Count of points."""
        ...

    def ask(self, part: slice) -> Any:
        """Outputs and gradients at some of the points, as they come."""
        ...

    def add(self, answers: Sequence[Any]) -> None:
        """Add the answers for all points, in order, to the sums."""
        ...


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
        gradients = _as_array(self.gradient(points))
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


def as_columns(values: Any, n: int) -> Any:
    """Outputs (n,) or (n, k) of n points as (n, k); tensors are brought to numpy."""
    array = _as_array(values)
    if array.ndim == 1 and len(array) != n:  # said now, while it has the shape that was returned
        raise ModelError(wrong_shape(n, array.shape))
    return array[:, None] if array.ndim == 1 else array


def _as_array(values: Any) -> Any:
    """What a model returned as an array, NaN for what is masked; or an error where that holds no numbers."""
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


def check_output_choice(output: str | None) -> None:
    """Refuse an `output` we do not know."""
    if output not in (None, "probability", "margin"):
        msg = f"output must be 'probability' or 'margin'; got {output!r}"
        raise InvalidArgument(msg, argument="output")


def wrong_shape(n: int, shape: tuple[int, ...]) -> str:
    """What is wrong with outputs of some shape for n points."""
    return f"the model must return one row of outputs per point, (n,) or (n, k); n = {n}, got {shape}"


def changed_width(before: int, now: int) -> str:
    """What is wrong with outputs that are not as many as ever."""
    return f"the model returned {before} outputs at first and {now} now"


def is_out_of_memory(err: BaseException) -> bool:
    """numpy and Python raise MemoryError; frameworks word it in their own RuntimeError."""
    return isinstance(err, MemoryError) or (isinstance(err, RuntimeError) and "out of memory" in str(err).lower())

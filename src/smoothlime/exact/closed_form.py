"""What an exact answer is: the smoothed model, its slopes, and how far rounding may have moved them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from .._core.types import Array
from ..space.neighbourhood import Factor


@dataclass(frozen=True, slots=True, eq=False)
class Smoothed:
    """E f and its slopes around r rows."""

    slopes: Array
    """(r, f) per unit of each perturbed feature"""
    mean: Array
    """(r,) E f(a)"""
    fidelity: Array
    """(r,) share of Var f(a) that the slopes explain, NaN where there is no closed form for it"""
    radius: Array
    """(r,) bound on the numerical error of the standardised slopes, L2"""


class ClosedForm(Protocol):
    """A model whose smoothed slopes are known without sampling."""

    @property
    def takes_gaps(self) -> bool:
        """Whether missing values are part of the model."""
        ...

    def size(self, x: Array) -> float:
        """Least size that outputs at rows (r, d) are compared at: digits that their sum loses are no difference."""
        ...

    @property
    def spread(self) -> Array:
        """(k,) how much outputs can vary at all; infinite where nothing that matters can be lost by rounding."""
        ...

    def values(self, x: Array) -> Array:
        """Outputs (r, k): what the model itself must answer, or it has been misread."""
        ...

    def smooth(self, x: Array, factor: Factor, weights: Array) -> Smoothed:
        """E f and its slopes around rows (r, d), for the outputs weighed by (r, k)."""
        ...


@dataclass(frozen=True, slots=True)
class Exact:
    """No sampling at all: the closed form for linear and generalised linear models, and for tree ensembles."""

    name: ClassVar[str] = "exact"
    needs: ClassVar[Literal["structure"]] = "structure"
    designs: ClassVar[tuple[str, ...]] = ("none",)

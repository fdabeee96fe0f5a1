"""What an estimator is, what it is shown, and the sums that estimators from predictions share.

Sums are plain float64 sums. That is safe because everything summed is on its natural scale: draws are
standard normal by construction, and values are measured from a pivot, the mean of a row's first chunk,
which lies within a fraction of a standard deviation of the final mean. Nothing large is ever subtracted
from something as large.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from .._core.types import Array, Flags, Indices, Points
from .._core.xp import merge_groups
from ..space.neighbourhood import Factor

Rows = Any
"""Which rows of a state a batch belongs to: a slice or an array of positions."""


class GroupedDraws:
    """Standard normal draws (ρ, g, b, d) by group; ρ is 1 where all rows share them. Sums are made once.

    They may be others, with weights (ρ, g, b) of mean 1 that make means over them those over normal ones.
    """

    def __init__(self, z: Array, *, is_shared: bool, weights: Array | None = None) -> None:
        self.z = z
        self.weights = weights
        self.is_shared = is_shared  # not to be guessed from ρ: a batch may hold one row with draws of its own
        self._steps: Points | None = None

    @property
    def flat(self) -> Array:
        """All draws of all groups, (ρ, n, d)."""
        return self.z.reshape(len(self.z), -1, self.z.shape[-1])

    def steps(self, make: Callable[[Array], Points]) -> Points:
        """The steps (ρ, n, f) that draws lead to; made once."""
        if self._steps is None:
            self._steps = make(self.flat)
        return self._steps

    @cached_property
    def total(self) -> Array:
        """Σ z, (ρ, g, d)."""
        return self.z.sum(axis=2)

    @cached_property
    def gram(self) -> Array:
        """Σ z zᵀ, (ρ, g, d, d)."""
        return self.z.swapaxes(2, 3) @ self.z

    @cached_property
    def distances(self) -> Array:
        """‖z‖ of each draw, (ρ, g, b): its Mahalanobis distance from x."""
        return np.sqrt(np.einsum("rgbd,rgbd->rgb", self.z, self.z))

    @cached_property
    def pairs(self) -> tuple[Array, GroupedDraws]:
        """The first draw z of each pair, and d·z/‖z‖²: what a half difference along it says of the slope."""
        z = self.z[:, :, 0::2]
        return z, GroupedDraws(z * self.pair_weights[..., None], is_shared=self.is_shared)

    @cached_property
    def pair_weights(self) -> Array:
        """d/‖z‖² of each pair (ρ, g, b/2): weights that turn means over χ_{d+2} radii into means over χ_d ones."""
        z = self.z[:, :, 0::2]
        return z.shape[-1] / np.einsum("rgbd,rgbd->rgb", z, z)

    def along(self, slopes: Array) -> Array:
        """z·slope for slopes (r, f) of the first f coordinates: (r, g, b)."""
        z = self.z[..., : slopes.shape[1]]
        if self.is_shared:
            return (slopes @ z[0].reshape(-1, slopes.shape[1]).T).reshape(len(slopes), *z.shape[1:3])
        return np.einsum("rd,rgbd->rgb", slopes, z)

    def times(self, values: Array) -> Array:
        """Σ z·value for values (r, g, b): (r, g, d), as one matrix product per group where draws are shared."""
        if self.is_shared:
            return (values.swapaxes(0, 1) @ self.z[0]).swapaxes(0, 1)
        return np.einsum("rgb,rgbd->rgd", values, self.z)


@dataclass(frozen=True, slots=True, eq=False)
class ControlBatch:
    """What is known beside the model's answers: functions of the draws whose smoothed slope is zero."""

    halves: Array
    """(r, c, g, b/2) their half differences over pairs"""
    max_abs_change: Array
    """(r,) the largest half difference that the model itself can show"""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What an estimator is shown: draws, and the model's answers at the points they lead to."""

    draws: GroupedDraws
    values: Array
    """(r, g, b)"""
    gradients: Any = None
    """(r, g, b, d), in the model's own floating type"""
    controls: ControlBatch | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Numbers only: slopes per unit of each perturbed feature, and what is needed for their errors."""

    values: Any
    """(r, d) slopes from all draws; an array, or a tensor where the model is"""
    pseudo: Any
    """(r, g, d) what each group says: see `uncertainty.jackknife`; an array, or Elsewhere"""
    resolution: Array
    """(r, d) the change that one draw can make: no standard error of a net lies below about this"""
    smoothed: Array
    """(r,) mean of the model over the neighbourhood, NaN where the method does not see it"""
    variance: Array
    """(r,) variance of the model over the neighbourhood, NaN likewise"""
    spread: Array
    """(r,) standard deviation of the model nearby: the scale of its slopes"""
    selected: Array | None = None
    """(r, d) share of the fits without one group that kept each feature; None where features are not selected"""
    effective_sample_size: Array | None = None
    """(r,) how many draws carry the model's variance; None where the method does not count them"""
    residual_ess: Array | None = None
    """(r,) how many carry what is left of it besides a line that was known before; None where nobody asks"""
    slopes: Array | None = None
    """(r, g, d) what the values in each group say of the slope, in units of draws before they were turned"""
    is_torn: Flags | None = None
    """(r,) where values and gradients are so far apart that one of them is wrong; None where nobody compares them"""

    @property
    def inconsistent(self) -> Flags:
        """The same, False where nobody compares them."""
        return np.broadcast_to(False, len(self.spread)) if self.is_torn is None else self.is_torn

    def where(self, rows: Flags, other: Estimate, d: int) -> Estimate:
        """The same with the slopes of some rows, the first d, taken from another estimate of the same draws."""
        chosen = rows[:, None]
        return dataclasses.replace(
            self,
            values=np.where(chosen, other.values[:, :d], self.values[:, :d]),
            pseudo=np.where(chosen[:, :, None], other.pseudo[:, :, :d], self.pseudo[:, :, :d]),
            resolution=np.where(chosen, other.resolution[:, :d], self.resolution[:, :d]),
            variance=np.where(rows, other.variance, self.variance),
        )


class Estimator(Protocol):
    """A method and its settings. States are its own: the loop hands them back, and has them forget rows (`keep`).

    With aligned draws it also has them make one group of each two, in the first half of the groups (`merge`). A method
    that needs sums of gradients and nothing else of them has `gather(totals)`: the state that those would have led to.
    """

    @property
    def name(self) -> str:
        """What the method is called."""
        ...

    @property
    def needs(self) -> Literal["values", "gradients"]:
        """What it asks of the model."""
        ...

    @property
    def designs(self) -> tuple[str, ...]:
        """Designs it can use."""
        ...

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """Fewest draws that carry slopes and their errors for d features."""
        ...

    def start(self, rows: int, groups: int, factor: Factor, *, is_shared: bool) -> Any:
        """Empty sums for so many rows and groups."""
        ...

    def update(self, state: Any, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add a batch to the sums of its rows and groups."""
        ...

    def update_shared(self, state: Any, groups: slice, draws: GroupedDraws) -> None:
        """Add draws that all rows share, once, after every row has seen them."""
        ...

    def finish(self, state: Any, sizes: Array, factor: Factor) -> Estimate:
        """Slopes of all draws so far, and what each group says; `sizes` (g,) of the groups drawn by now."""
        ...


class ValueSums:
    """Sums of powers of f − pivot, the first by row and group: mean, variance and tails of the model nearby.

    Powers beyond the second are summed up where somebody asks for `carriers`.
    """

    def __init__(self, rows: int, groups: int, *, has_tails: bool = False) -> None:
        self.pivot = np.full(rows, np.nan)
        self.first = np.zeros((rows, groups))
        self.second = np.zeros(rows)
        self.tails = np.zeros((2, rows)) if has_tails else None
        self.unit = np.zeros(rows)  # that the tails are measured in, as fourth powers leave the range of numbers

    @classmethod
    def of(cls, pivot: Array, first: Array, second: Array) -> ValueSums:
        """Sums that somebody else has made."""
        sums = cls(0, 0)
        sums.pivot, sums.first, sums.second = pivot, first, second
        return sums

    def add(self, rows: Rows, groups: slice, values: Array) -> Array:
        """Add values (r, g, b) and return them measured from the pivot."""
        if np.isnan(self.pivot[rows]).any():
            self.pivot[rows] = middle(values)
        centred = values - self.pivot[rows, None, None]
        self.first[rows, groups] += centred.sum(axis=2)
        self.second[rows] += np.einsum("rgb,rgb->r", centred, centred)
        if self.tails is None:
            return centred
        scaled = in_units(self.unit, rows, centred)
        squares = scaled * scaled
        self.tails[0, rows] += np.einsum("rgb,rgb->r", squares, scaled)
        self.tails[1, rows] += np.einsum("rgb,rgb->r", squares, squares)
        return centred

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.pivot, self.first, self.second = self.pivot[rows], self.first[rows], self.second[rows]
        self.tails = None if self.tails is None else self.tails[:, rows]
        self.unit = self.unit[rows]

    def merge(self) -> None:
        """Make one group of each two."""
        merge_groups(self.first)

    def mean(self, sizes: Array) -> Array:
        """Mean of the model, (r,)."""
        return self.pivot + self.first.sum(axis=1) / sizes.sum()

    def variance(self, sizes: Array) -> Array:
        """Variance of the model, (r,)."""
        n = sizes.sum()
        return np.maximum(self.second - self.first.sum(axis=1) ** 2 / n, 0.0) / (n - 1)

    def effective_sample_size(self, sizes: Array) -> Array:
        """(Σc²)² / Σc⁴ of c = f − mean, (r,): n for values that are all as far from it, 1 where one draw is all.

        A third of n for normal values. Where it is small, few draws decide, and few degrees of freedom are left.
        """
        assert self.tails is not None
        n, unit = sizes.sum(), np.where(self.unit > 0, self.unit, 1.0)
        shift, second = self.first.sum(axis=1) / n / unit, self.second / unit / unit
        third, fourth = self.tails
        central = fourth - 4 * shift * third + 6 * shift**2 * second - 3 * n * shift**4
        return effective_sample_size(second - n * shift**2, central, n)


def middle(values: Array) -> Array:
    """Mean (r,) of values (r, g, b), which of equal ones is just that: a constant must be seen to be one."""
    one = values[:, :1, :1]
    return np.asarray(one[:, 0, 0] + (values - one).mean(axis=(1, 2)))


def in_units(unit: Array, rows: Rows, numbers: Array) -> Array:
    """Numbers (r, g, b) in units of the largest of each row's first that were not all 0; `unit` is filled in."""
    mine = unit[rows]
    if (mine == 0).any():
        mine = np.where(mine > 0, mine, np.abs(numbers).max(axis=(1, 2)))
        unit[rows] = mine
    return numbers / np.where(mine > 0, mine, 1.0)[:, None, None]


def effective_sample_size(second: Array, fourth: Array, n: float) -> Array:
    """(Σc²)² / Σc⁴, within what n numbers allow: n where they are all 0, or cannot be told from it."""
    is_there = (second > 0) & (fourth > 0)
    scaled = np.where(is_there, second, 1.0) / np.sqrt(np.where(is_there, fourth, 1.0))
    return np.where(is_there, np.clip(scaled**2, 1.0, n), n)


def leave_one_out(sums: Array) -> Array:
    """Totals without each group: (r, g, ...) -> (r, g, ...)."""
    return sums.sum(axis=1, keepdims=True) - sums

"""What an estimator is, what it is shown, and the sums that estimators from predictions share.

Sums are plain float64 sums. That is safe because everything summed is on its natural scale: draws are
standard normal by construction, and values are measured from a pivot, the mean of a row's first chunk,
which lies within a fraction of a standard deviation of the final mean. Nothing large is ever subtracted
from something as large.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from .._core.types import Array, Flags, Indices, Points
from .._core.xp import merge_groups
from ..draws.blocks import Chunk
from ..draws.designs import Design
from ..draws.rotation import Rotation
from ..space.neighbourhood import Factor
from ..uncertainty.bounds import JumpBounds
from .pairs import SecondSlopes

Rows = Any
"""Which rows of a state a batch belongs to: a slice or an array of positions."""


class GroupedDraws:
    """Standard normal draws (ρ, g, b, d) by group; ρ is 1 where all rows share them. Sums are made once.

    They may be others, with weights (ρ, g, b) of mean 1 that make means over them those over normal ones.
    """

    def __init__(self, z: Array, *, is_shared: bool, weights: Array | None = None, chunk: Chunk | None = None) -> None:
        self.z = z
        self.chunk = chunk  # where they lie in their sequence
        self.weights = weights
        self.is_shared = is_shared  # not to be guessed from ρ: a batch may hold one row with draws of its own
        self._steps: Points | None = None
        self._extended: GroupedDraws | None = None
        self._neighbours: Indices | None = None

    @property
    def flat(self) -> Array:
        """All draws of all groups, (ρ, n, d)."""
        return self.z.reshape(len(self.z), -1, self.z.shape[-1])

    def steps(self, make: Callable[[Array], Points]) -> Points:
        """The steps (ρ, n, f) that draws lead to; made once."""
        if self._steps is None:
            self._steps = make(self.flat)
        return self._steps

    def extended(self, extend: Callable[[Array], Array]) -> GroupedDraws:
        """The same draws with functions of them beside, as further coordinates; made once."""
        if self._extended is None:
            self._extended = GroupedDraws(extend(self.z), is_shared=self.is_shared, weights=self.weights)
        return self._extended

    def neighbours(self, design: Design) -> Indices | None:
        """Those that are looked at closely, in the order of their coordinates: see `Chunk.neighbours`. Made once."""
        if self._neighbours is None and self.chunk is not None:
            self._neighbours = self.chunk.neighbours(design.across(self.flat))
        return self._neighbours

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
    samples: Any = None
    """Whatever an estimator with a `sample` of its own adds up"""


@dataclass(frozen=True, slots=True, eq=False)
class AxisJumps:
    """Jumps of known trees along every axis through each draw, by their densities: their means are slopes."""

    slopes: Array
    """(r, g, b, d) per unit of each perturbed feature"""
    controls: Array | None
    """(r, g, b, d) those of a margin, less their known mean; None where nobody asks for them, or knows it"""
    bounds: JumpBounds | None = None
    """Of both, where the method vouches for its error"""
    far: Array | None = None
    """(2, r, d) means of jumps, and of their squares, further out, where no control tells what draws have not met"""


class ModelAtDraws(Protocol):
    """The model around some rows, at the points that draws lead to; asked only for what is wanted of it."""

    draws: GroupedDraws
    """Of rows × targets"""

    @property
    def points(self) -> Points:
        """(r, g·b, d)."""
        ...

    def values(self) -> Batch:
        """What is explained, at every point, with its controls where there are any."""
        ...

    def gradients(self) -> Batch:
        """The same with the gradients of what is explained."""
        ...

    def jumps(self) -> Batch:
        """What is explained, with samples that are `AxisJumps`; only of models whose trees are known."""
        ...

    def values_at(self, points: Points) -> Array:
        """What is explained, (r·t, g, b), at other points (r, g·b, d): one for each draw."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """What an estimator is told before the first draw."""

    rows: int
    """Rows × targets"""
    groups: int
    factor: Factor
    design: Design
    looks: tuple[int, ...]
    """Numbers of draws after which estimates will be asked for"""
    is_shared: bool
    controls: int = 0
    """Functions of the draws whose smoothed slope is known, for each row"""
    pilot_slopes: Array | None = None
    """(rows, d) slopes as the pilot of a rotation saw them, per draw and before the rotation"""

    @property
    def d(self) -> int:
        """Features that are perturbed."""
        return len(self.factor.free)


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """What has been drawn when an estimate is asked for."""

    n: int
    sizes: Array
    """(g,) draws of the groups that have had any"""
    factor: Factor
    design: Design
    miss: float
    """Chance with which a bound may fail"""
    targets: int
    rotation: Rotation | None = None
    """Of the draws of each row, where they were rotated"""
    varies_widely: Flags | None = None
    """(rows,) whether the pilot saw the model vary along more than one direction"""

    @property
    def d(self) -> int:
        """Features that are perturbed."""
        return len(self.factor.free)

    def rotation_by_target(self) -> Rotation:
        """The rotation of rows × targets."""
        assert self.rotation is not None
        return self.rotation.rows(np.repeat(np.arange(len(self.rotation.inward)), self.targets))

    def to_features(self, estimate: Estimate) -> Estimate:
        """An estimate in units and axes of draws, as slopes per unit of each feature; without terms beyond d."""
        rotation = self.rotation_by_target()
        return dataclasses.replace(
            estimate,
            values=self.factor.unwhiten(rotation.of(estimate.values[:, None, : self.d])[:, 0]),
            pseudo=self.factor.unwhiten(rotation.of(estimate.pseudo[:, :, : self.d])),
            resolution=estimate.resolution[:, :1] * self.factor.unwhitened_scale,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Numbers only: slopes per unit of each perturbed feature, and what is needed for their errors."""

    values: Any
    """(r, d) slopes from all draws; an array, or a tensor where the model is"""
    pseudo: Any
    """(r, g, d) what each group says: see `uncertainty.jackknife`; an array, or DevicePseudovalues"""
    resolution: Array
    """(r, d) least standard errors of a net: about the change that one draw can make"""
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
    inconsistent: Flags | None = None
    """(r,) where values and gradients are so far apart that one of them is wrong; None where nobody compares them"""
    radius: Array | None = None
    """(r,) bound on the error that the method vouches for; None where groups say how large it is"""
    second: SecondSlopes | None = None
    """None where nobody asked for them"""

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


class Estimator(ABC):
    """A method and its settings: what the loop must know of it, and what it makes of draws and answers.

    Write a frozen dataclass that names this class as its base, and override what differs. States are the estimator's
    own: the loop hands them back, has them forget rows (`keep`) and, of aligned draws, make one group of each two, in
    the first half of the groups (`merge`).
    """

    __slots__ = ()

    needs: ClassVar[Literal["values", "gradients", "trees"]]
    """What the model must be able to give, or be made of"""
    designs: ClassVar[tuple[str, ...]]
    """Designs it can use"""
    evaluations_per_draw: ClassVar[int] = 1
    """Points that `sample` asks the model about for each draw"""
    is_regression: ClassVar[bool] = False
    """Whether slopes come from least squares, which nets of few draws do not help"""
    only_sums: ClassVar[bool] = False
    """Whether sums of gradients by group are all it needs, which a device may keep: then it has `gather`"""
    first_look: ClassVar[int] = 0
    """Draws before it says how far it is, at least; a number that was asked for may be smaller"""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the method is called."""

    @property
    def rotation(self) -> Literal["never", "allowed", "required"]:
        """Whether draws may, or must, be rotated to where a pilot sees the model vary most."""
        return "allowed"

    @property
    def recorded(self) -> Estimator:
        """What results name as the method of their slopes."""
        return self

    @property
    def wants_control(self) -> bool:
        """Whether it compares the model with functions of the draws whose smoothed slope is known."""
        return False

    @property
    def assumes(self) -> str:
        """What must be true of the model for the bounds that it vouches for; "" where it vouches for none."""
        return ""

    @property
    def looks_far(self) -> bool:
        """Whether rows that would stop are looked at further out: not where a bound is vouched for."""
        return not self.assumes

    @property
    def advice(self) -> str:
        """What else helps, in messages, where draws are too few."""
        return ""

    @property
    def needs_products(self) -> bool:
        """Whether sums that a device keeps are to hold products of draws and values, too."""
        return False

    def longer(self, design: Design) -> float:
        """Share of draws that are made longer, where it uses their weights: one of `long_draws.DEGREES`, or 0."""
        return 0.0

    def check_design(self, design: Design) -> None:  # noqa: B027 - most have nothing to refuse
        """Refuse designs that do not go with the settings."""

    def check_values(self, values: Array) -> None:  # noqa: B027
        """Refuse values of what is explained that break what it assumes."""

    @abstractmethod
    def fewest(self, d: int, *, is_paired: bool) -> int:
        """Fewest draws that carry slopes and their errors for d features."""

    def pilot(self, d: int) -> int:
        """Draws that come first and only tune it: see `end_pilot`. None where `only_sums`, or of aligned designs."""
        return 0

    def numbers(self, setup: Setup) -> int:
        """About how many numbers the sums of one row hold."""
        return setup.groups * setup.d * (1 if setup.is_shared else setup.d + 1)

    @abstractmethod
    def start(self, setup: Setup) -> Any:
        """Empty sums."""

    def gather(self, totals: Any) -> Any:
        """The state that sums kept elsewhere would have led to."""
        raise NotImplementedError

    def sample(self, model: ModelAtDraws) -> Batch:
        """Ask the model for what is added up."""
        ways = {"values": model.values, "gradients": model.gradients, "trees": model.jumps}
        return ways[self.needs]()

    @abstractmethod
    def update(self, state: Any, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add a batch to the sums of its rows and groups."""

    def update_shared(self, state: Any, groups: slice, draws: GroupedDraws) -> None:  # noqa: B027
        """Add draws that all rows share, once, after every row has seen them."""

    def end_pilot(self, state: Any, n: int, cap: int) -> None:  # noqa: B027
        """Fix what the first n draws have tuned; at most `cap` will be made."""

    @abstractmethod
    def finish(self, state: Any, drawn: Drawn) -> Estimate:
        """Slopes of all draws so far, and what each group says."""


class ValueSums:
    """Sums of powers of f − pivot, the first by row and group: mean, variance and tails of the model nearby.

    Powers beyond the second are summed up where somebody asks for `effective_sample_size`.
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

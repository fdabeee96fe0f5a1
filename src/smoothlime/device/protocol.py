"""Models that add up gradients by themselves, where their points are: no point and no gradient has to travel.

A mean gradient needs no gradient by itself, only sums over groups of draws. A model that can make them is handed steps,
forms its points around rows it was given once, and keeps the sums until somebody asks for them: on a graphics card that
is a transfer per look instead of two per batch.

Draws of a batch come as (b, g): the b-th draw of each of g groups side by side, so that a sum over b runs over long
stretches of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .._core.types import Array, Indices
from ..draws.blocks import Chunk
from ..draws.normals import Run
from ..draws.rotation import Rotation
from ..models.protocol import GradientBatch
from ..space.neighbourhood import Factor
from ..uncertainty.groups import DevicePseudovalues

SHORT = 256
"""Gradients are added up in their own type over runs of at most this length, where float32 loses no more than it has
lost in the model, and in float64 from run to run: twice as fast as converting each of them."""


class GroupSums(Protocol):
    """Σ∇f (r, g, f) by group, kept where the model is."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows × targets, groups, features."""
        ...

    def means(self, sizes: Array, factor: Factor) -> tuple[Any, DevicePseudovalues]:
        """The mean of all draws, (r, f), as a tensor where it is, and those of the groups of sizes (g,)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """What has been added up, in float64 and on the host unless it says otherwise; rows are rows × targets.

    The arrays may be the sums themselves, or space for the next ones: nobody may write to them, and they do not last.
    """

    pivot: Array
    """(r,) mean of a row's first batch, from which values are measured"""
    value_first: Array
    """(r, g) Σ(f − pivot), or (r, 1) of all groups together"""
    value_second: Array
    """(r,) Σ(f − pivot)²"""
    first: Array | GroupSums
    """(r, g, f) Σ∇f over the features that are perturbed, here or there"""
    some: int
    """Draws of each row that were looked at closely"""
    seen: Array | None
    """(4, r, f) what was seen at them, as `uncertainty.resolution` has it, where that was asked for"""
    cross: Array | None = None
    """(r, g, f) Σ step·(f − pivot), of steps before they were rotated, where slopes were asked for"""
    total: Array | None = None
    """(1 or r, g, f) Σ step, likewise; once where rows share their steps"""


class GradientSums(Protocol):
    """Sums for r rows, t targets and g groups, kept where the model is."""

    @property
    def is_asynchronous(self) -> bool:
        """Whether the model works by itself, so that the next draws can be made meanwhile."""
        ...

    def stage(self, shape: tuple[int, ...]) -> Any:
        """Space on the host for steps on their way to the model; its `array` is to be filled."""
        ...

    @property
    def can_draw(self) -> bool:
        """Whether the model can make long runs of draws by itself."""
        ...

    def draw(self, runs: Sequence[Run], chunk: Chunk, scale: Array, *, is_paired: bool = False) -> Any:
        """Steps, one run of draws for each stream, made where the model can use them; pairs as in `move`."""
        ...

    def move(self, staged: Any, *, is_paired: bool = False) -> Any:
        """Steps that were filled in, where the model can use them; pairs with the second, its negative, behind each."""
        ...

    def positions(self, positions: Indices) -> Any:
        """Positions, where the sums are."""
        ...

    def batch(
        self, rows: slice, groups: slice, steps: Any, rotation: Rotation | None = None, order: Any = None
    ) -> GradientBatch:
        """Points around rows: steps (1 or r, b, g, f) that were moved, perhaps rotated for each row.

        Those to be looked at closely come in an order, as positions among (b, g) that were moved, too.
        """
        ...

    def keep(self, rows: Indices) -> None:
        """Forget all other rows, with all their targets."""
        ...

    def merge(self) -> None:
        """Make one group of each two, in the first half of the groups, and empty the others."""
        ...

    def look_ahead(self, sizes: Array, factor: Factor, miss: float) -> None:
        """Begin with what will be asked of groups of sizes (g,) once `is_finite` has waited for the model.

        A radius, for one, that may miss with so small a probability.
        """
        ...

    def is_finite(self) -> bool:
        """Whether nothing that was added, seen in the totals or not, was infinite or NaN; this waits for the model."""
        ...

    @property
    def keeps_groups(self) -> bool:
        """Whether sums by group stay where they are in `totals`, so that all rows are best looked at together."""
        ...

    def totals(self, rows: slice) -> Totals:
        """What has been added up so far for some rows; this waits for the model."""
        ...

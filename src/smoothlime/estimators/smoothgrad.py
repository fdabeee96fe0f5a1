"""SmoothGrad: the mean gradient over the neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from .._types import Array, Indices
from ..neighbourhood import Factor
from .base import Batch, Estimate, GroupedDraws, Rows, ValueSums, merge_groups

SHORT = 256
"""Gradients are added up in their own type over runs of at most this length, where float32 loses no more than it has
lost in the model, and in float64 from run to run: twice as fast as converting each of them."""

FEW = 32
"""Draws of a group that its spread is measured on, or a quarter of them: it is only a floor for errors."""


class _State:
    def __init__(self, rows: int, groups: int, d: int) -> None:
        self.values = ValueSums(rows, groups)
        self.first = np.zeros((rows, groups, d))
        self.some_first = np.zeros((rows, d))
        self.some_second = np.zeros((rows, d))
        self.some = np.zeros(rows)

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.values.keep(rows)
        self.first, self.some = self.first[rows], self.some[rows]
        self.some_first, self.some_second = self.some_first[rows], self.some_second[rows]

    def merge(self) -> None:
        """Make one group of each two."""
        self.values.merge()
        merge_groups(self.first)

    def spread(self) -> Array:
        """Standard deviation of the gradient over some of the draws, (r, d)."""
        n = self.some[:, None]
        return np.sqrt(np.maximum(self.some_second / n - (self.some_first / n) ** 2, 0.0))


@dataclass(frozen=True, slots=True)
class SmoothGrad:
    r"""Mean gradient over the neighbourhood, $\mathbb{E}[\nabla f(a)]$.

    Right where f is continuous; where it jumps (trees, rounding, argmax), gradients do not see the jumps.

    References: Smilkov et al. (2017), SmoothGrad: removing noise by adding noise.
    """

    name: ClassVar[str] = "smoothgrad"
    needs: ClassVar[Literal["values", "gradients"]] = "gradients"
    designs: ClassVar[tuple[str, ...]] = ("iid", "antithetic", "orthogonal", "sobol", "aligned")

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """Two blocks: a mean and its error."""
        return 4 if is_paired else 2

    def start(self, rows: int, groups: int, factor: Factor, *, is_shared: bool) -> _State:
        """Empty sums."""
        return _State(rows, groups, len(factor.free))

    def update(self, state: _State, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the gradients of a batch."""
        state.values.add(rows, groups, batch.values)
        state.first[rows, groups] += _sum_over_draws(batch.gradients)
        b = batch.gradients.shape[2]
        some = batch.gradients[:, :, : max(FEW, b // 4)].astype(np.float64)  # consecutive: a net by themselves
        state.some[rows] += some.shape[1] * some.shape[2]
        state.some_first[rows] += _sum_over_draws(some).sum(axis=1)
        np.square(some, out=some)
        state.some_second[rows] += _sum_over_draws(some).sum(axis=1)

    def update_shared(self, state: Any, groups: slice, draws: GroupedDraws) -> None:
        """Nothing: a mean gradient does not depend on the draws but through the gradients."""

    def finish(self, state: _State, sizes: Array, factor: Factor) -> Estimate:
        """Mean gradient of all draws and of each group."""
        n = sizes.sum()
        mean = state.first.sum(axis=1) / n
        variance = state.values.variance(sizes)
        return Estimate(
            values=mean,
            pseudo=state.first[:, : len(sizes)] / sizes[:, None],
            resolution=state.spread() / n,
            smoothed=state.values.mean(sizes),
            variance=variance,
            spread=np.sqrt(variance),
        )


def _sum_over_draws(gradients: Any) -> Array:
    """Σ over the last axis but one, as a matrix product: several times faster than a strided sum."""
    b = gradients.shape[-2]
    short = gradients if b <= SHORT else gradients.astype(np.float64)
    return (np.ones((1, b), short.dtype) @ short)[..., 0, :]

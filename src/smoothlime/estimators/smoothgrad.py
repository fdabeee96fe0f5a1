"""SmoothGrad: the mean gradient over the neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from .._types import Array, Indices
from ..neighbourhood import Factor
from .base import Batch, Estimate, GroupedDraws, Rows, ValueSums


class _State:
    def __init__(self, rows: int, groups: int, d: int) -> None:
        self.values = ValueSums(rows, groups)
        self.first = np.zeros((rows, groups, d))
        self.second = np.zeros((rows, d))
        self.scratch = np.empty(0)

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.values.keep(rows)
        self.first, self.second = self.first[rows], self.second[rows]

    def as_float64(self, gradients: Any) -> Array:
        """Gradients in float64, in memory that is kept: fresh pages cost more than the sums themselves."""
        if self.scratch.size < gradients.size:
            self.scratch = np.empty(gradients.size)
        exact = self.scratch[: gradients.size].reshape(gradients.shape)
        np.copyto(exact, gradients)
        return exact


@dataclass(frozen=True, slots=True)
class SmoothGrad:
    r"""Mean gradient over the neighbourhood, $\mathbb{E}[\nabla f(a)]$.

    Right where f is continuous; where it jumps (trees, rounding, argmax), gradients do not see the jumps.

    References: Smilkov et al. (2017), SmoothGrad: removing noise by adding noise.
    """

    name: ClassVar[str] = "smoothgrad"
    needs: ClassVar[Literal["values", "gradients"]] = "gradients"
    designs: ClassVar[tuple[str, ...]] = ("iid", "antithetic", "orthogonal", "sobol")

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """Two blocks: a mean and its error."""
        return 4 if is_paired else 2

    def start(self, rows: int, groups: int, factor: Factor, *, is_shared: bool) -> _State:
        """Empty sums."""
        return _State(rows, groups, len(factor.free))

    def update(self, state: _State, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the gradients of a batch."""
        state.values.add(rows, groups, batch.values)
        exact = state.as_float64(batch.gradients)
        state.first[rows, groups] += _sum_over_draws(exact)
        np.square(exact, out=exact)
        state.second[rows] += _sum_over_draws(exact).sum(axis=1)

    def update_shared(self, state: Any, groups: slice, draws: GroupedDraws) -> None:
        """Nothing: a mean gradient does not depend on the draws but through the gradients."""

    def finish(self, state: _State, sizes: Array, factor: Factor) -> Estimate:
        """Mean gradient of all draws and of each group."""
        n = sizes.sum()
        mean = state.first.sum(axis=1) / n
        variance = state.values.variance(sizes)
        spread = np.sqrt(np.maximum(state.second / n - mean**2, 0.0))
        return Estimate(
            values=mean,
            pseudo=state.first[:, : len(sizes)] / sizes[:, None],
            resolution=spread / n,
            smoothed=state.values.mean(sizes),
            variance=variance,
            spread=np.sqrt(variance),
        )


def _sum_over_draws(gradients: Array) -> Array:
    """Σ over the last axis but one, as a matrix product: several times faster than a strided sum."""
    return (np.ones((1, gradients.shape[-2])) @ gradients)[..., 0, :]

"""Stein: the covariance of draws and values, with Σ taken as known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .._core.types import Indices
from .protocol import Batch, Drawn, Estimate, Estimator, GroupedDraws, Rows, Setup, ValueSums, leave_one_out


class _State:
    def __init__(self, rows: int, groups: int, d: int, *, is_shared: bool) -> None:
        self.values = ValueSums(rows, groups, has_tails=True)
        self.cross = np.zeros((rows, groups, d))
        self.total = np.zeros((1 if is_shared else rows, groups, d))
        self.is_shared = is_shared

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.values.keep(rows)
        self.cross = self.cross[rows]
        if not self.is_shared:
            self.total = self.total[rows]


@dataclass(frozen=True, slots=True)
class Stein(Estimator):
    r"""Covariance of perturbations and values, $\Sigma^{-1}\,\widehat{\mathrm{Cov}}(a, f(a))$, with Σ known.

    Values are centred on the mean of the *other* groups, so that centre and draws are independent and the
    estimate is unbiased for every design. Noisier than `CLime` unless f is far from linear; the estimator
    whose finite-sample theory is simplest.
    """

    name: ClassVar[str] = "stein"
    needs: ClassVar[Literal["values", "gradients"]] = "values"
    designs: ClassVar[tuple[str, ...]] = ("iid", "antithetic", "sobol")

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """Two blocks: a mean and its error."""
        return 4 if is_paired else 2

    def start(self, setup: Setup) -> _State:
        """Empty sums."""
        return _State(setup.rows, setup.groups, setup.d, is_shared=setup.is_shared)

    def update(self, state: _State, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the products of draws and values."""
        centred = state.values.add(rows, groups, batch.values)
        state.cross[rows, groups] += batch.draws.times(centred)
        if not batch.draws.is_shared:
            state.total[rows, groups] += batch.draws.total

    def update_shared(self, state: _State, groups: slice, draws: GroupedDraws) -> None:
        """Add the draws themselves."""
        state.total[:, groups] += draws.total

    def finish(self, state: _State, drawn: Drawn) -> Estimate:
        """Covariances of all draws and of each group."""
        n, sizes, factor = drawn.n, drawn.sizes, drawn.factor
        cross, total, first = (each[:, : len(sizes)] for each in (state.cross, state.total, state.values.first))
        others = leave_one_out(first) / (n - sizes)
        by_group = factor.unwhiten(cross - others[:, :, None] * total)
        variance = state.values.variance(sizes)
        slopes = by_group.sum(axis=1) / n
        return Estimate(
            values=slopes,
            pseudo=by_group / sizes[:, None],
            resolution=np.sqrt(variance)[:, None] * factor.unwhitened_scale / n,
            smoothed=state.values.mean(sizes),
            variance=variance,
            spread=np.sqrt(variance),
            effective_sample_size=state.values.effective_sample_size(sizes),
        )

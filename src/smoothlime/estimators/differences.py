"""Differences: central differences along random orthonormal bases, at random radii."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import ClassVar, Literal

import numpy as np

from .._core.types import Array, Indices
from .._core.validate import check_choice
from ..uncertainty.jackknife import standard_error
from .control_variates import ControlSums
from .protocol import (
    Batch,
    Drawn,
    Estimate,
    Estimator,
    GroupedDraws,
    Rows,
    Setup,
    effective_sample_size,
    in_units,
    middle,
)

CONTROLS = ("none", "margin")

WAITING = 2**20
"""Numbers of shared draws that may wait in any case: with many features, sums over few pairs of each group take far
longer to write down than to work out."""


class _State:
    def __init__(self, setup: Setup) -> None:
        rows, groups, d, is_shared = setup.rows, setup.groups, setup.d, setup.is_shared
        self.pivot = np.full(rows, np.nan)
        self.moments = np.zeros((2, rows))
        self.halves, self.unit = np.zeros((2, rows)), np.zeros(rows)
        self.slopes = np.zeros((rows, groups, d))
        self._shape = 1 if is_shared else rows, groups, d, d
        self._directions: Array | None = None  # made by the first sums: with many features it takes much room
        self._waiting: list[tuple[slice, Array, Array]] = []
        self._waiting_size = 0
        self.controls = ControlSums(rows, setup.controls, groups, d) if setup.controls else None
        self.is_shared = is_shared

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.pivot, self.moments, self.slopes = self.pivot[rows], self.moments[:, rows], self.slopes[rows]
        self.halves, self.unit = self.halves[:, rows], self.unit[rows]
        if not self.is_shared and self._directions is not None:
            self._directions = self._directions[rows]
        if self.controls is not None:
            self.controls.keep(rows)

    def add_directions(self, rows: Rows, groups: slice, draws: GroupedDraws) -> None:
        """Add what pairs have looked along; those that rows share wait, as long as they take less room than sums."""
        z, along = draws.pairs
        if not self.is_shared:
            self._sums[rows, groups] += along.z.swapaxes(2, 3) @ z
            return
        self._waiting.append((groups, z[0].copy(), draws.pair_weights[0]))
        self._waiting_size += z.size
        if self._waiting_size > max(WAITING, prod(self._shape) // 2):
            self._add_waiting()

    @property
    def _sums(self) -> Array:
        if self._directions is None:
            self._directions = np.zeros(self._shape)
        return self._directions

    def _add_waiting(self) -> None:
        for groups, several in groupby(self._waiting, key=lambda each: each[0]):
            parts = list(several)
            for i in range(groups.stop - groups.start):  # products of all groups at once would take as much room again
                z = np.concatenate([each[i] for _, each, _ in parts])
                weights = np.concatenate([each[i] for _, _, each in parts])
                self._sums[0, groups.start + i] += (z * weights[:, None]).T @ z
        self._waiting.clear()
        self._waiting_size = 0

    def unexpected(self, by_group: Array, pairs: Array) -> Array:
        """(r, g, d) what sums of groups say beyond the mean slope, per pair.

        A group that looked along half the directions says half the slope; only the rest is its own error.
        """
        slopes = by_group.sum(axis=1) / pairs.sum()
        if not self.is_shared:
            expected = np.einsum("rgij,rj->rgi", self._sums[:, : len(pairs)], slopes)
            return (by_group - expected) / pairs[:, None]
        if len(slopes) > slopes.shape[1]:
            self._add_waiting()  # one product for all rows
        along_slopes = np.zeros((len(pairs), *slopes.T.shape))
        if self._directions is not None:
            along_slopes += self._directions[0, : len(pairs)] @ slopes.T
        for groups, z, weights in self._waiting:
            along_slopes[groups] += z.swapaxes(1, 2) @ (weights[..., None] * (z @ slopes.T))
        return (by_group - along_slopes.transpose(2, 0, 1)) / pairs[:, None]


@dataclass(frozen=True, slots=True)
class Differences(Estimator):
    r"""Central differences along random orthonormal bases q with radii r_j ~ χ_{d+2}.

    $$ \sum_j q_j\,\frac{f(x + r_j L q_j) - f(x - r_j L q_j)}{2 r_j} $$

    in units of draws. Unbiased for every f, because the density of χ_{d+2} is r²/d times that of χ_d; exact for
    every quadratic f, because a basis is complete; needs predictions only and no regression. Its points are
    not normal, so it sees neither F(x) nor fidelity.

    Errors come from what the slope leaves unexplained of each group of pairs, so that two bases are enough.

    Parameters
    ----------
    control
        `"none"`: as above, and linear in the model. `"margin"`: probabilities of a boosted classifier are compared with
        its margin at the same points, whose smoothed slope is known exactly; what both have in common is no longer a
        source of error. `Jumps` reaches the same error sooner, for all known trees.
    """

    control: str = "none"

    name: ClassVar[str] = "differences"
    needs: ClassVar[Literal["values", "gradients"]] = "values"
    designs: ClassVar[tuple[str, ...]] = ("differences",)

    def __post_init__(self) -> None:
        """Refuse a control we do not know."""
        check_choice(self.control, "control", CONTROLS)

    @property
    def wants_control(self) -> bool:
        """Whether it compares the model with its margin."""
        return self.control == "margin"

    @property
    def note(self) -> str:
        """What a reader of the result should know."""
        return "the exact margin is its control variate; output='margin' is exact" if self.control == "margin" else ""

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """Two bases: with one, slopes leave no residual to judge them by."""
        return 4 * d

    def numbers(self, setup: Setup) -> int:
        """Slopes, directions and what controls have in common with them."""
        return setup.groups * setup.d * ((1 if setup.is_shared else setup.d + 1) + setup.controls)

    def start(self, setup: Setup) -> _State:
        """Empty sums."""
        return _State(setup)

    def update(self, state: _State, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the half differences of pairs, each along its direction."""
        if np.isnan(state.pivot[rows]).any():
            state.pivot[rows] = middle(batch.values)
        away = (batch.values - state.pivot[rows, None, None]).reshape(len(batch.values), -1)
        weights = np.repeat(batch.draws.pair_weights, 2, axis=2).reshape(len(batch.draws.z), -1)
        for power, terms in enumerate((away, away**2)):
            state.moments[power, rows] += terms @ weights[0] if state.is_shared else (terms * weights).sum(axis=1)
        half = (batch.values[..., 0::2] - batch.values[..., 1::2]) / 2
        squares = in_units(state.unit, rows, half) ** 2
        state.halves[0, rows] += squares.sum(axis=(1, 2))
        state.halves[1, rows] += np.einsum("rgb,rgb->r", squares, squares)
        state.slopes[rows, groups] += batch.draws.pairs[1].times(half)
        if state.controls is not None:
            assert batch.controls is not None
            state.controls.add(rows, groups, batch.draws, half, batch.controls.halves, batch.controls.max_abs_change)
        if not batch.draws.is_shared:
            state.add_directions(rows, groups, batch.draws)

    def update_shared(self, state: _State, groups: slice, draws: GroupedDraws) -> None:
        """Add the directions that were looked along."""
        state.add_directions(slice(None), groups, draws)

    def finish(self, state: _State, drawn: Drawn) -> Estimate:
        """Slopes of all pairs, and what each group of pairs adds beyond them."""
        sizes, factor = drawn.sizes, drawn.factor
        pairs = sizes / 2
        m, d, g = pairs.sum(), len(factor.free), len(sizes)
        by_group = state.slopes[:, :g]
        residual = state.unexpected(by_group, pairs)
        if state.controls is not None:
            explained = state.controls.explained(by_group, pairs)
            plain = np.linalg.norm(standard_error(residual, sizes), axis=1)
            share = state.controls.left_in(plain, m)
            by_group = by_group - explained
            residual = residual - (1 - share)[:, None, None] * state.unexpected(explained, pairs)
        slopes = by_group.sum(axis=1) / m
        # a fit of d unknowns leaves residuals too small by 1 − d/m; the jackknife makes up for 1/g of it
        residual *= np.sqrt(max(1.0, m / (m - d) * (g - 1) / g))
        nothing = np.full(len(slopes), np.nan)
        # means over the neighbourhood, by weights of mean 1; not divided by their sum, whose tail is heavy for small d
        first, second = state.moments / sizes.sum()
        variance = np.maximum(second - first**2, 0.0)
        return Estimate(
            values=factor.unwhiten(slopes),
            pseudo=factor.unwhiten(slopes[:, None, :] + residual),
            resolution=np.zeros_like(slopes),
            smoothed=nothing,
            variance=nothing,
            spread=np.sqrt(variance),
            effective_sample_size=None
            if state.controls is not None
            else effective_sample_size(state.halves[0], state.halves[1], m),
        )

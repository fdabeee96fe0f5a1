"""Second slopes from gradients: their regression on the draws, Cov(Σ⁻¹a, ∇f(a))."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from .._core.types import Array, Indices
from ..errors import InvalidArgument
from ..uncertainty.jackknife import mean_of_groups, standard_error
from .gradient_value import are_inconsistent
from .least_squares import check_spans
from .pairs import (
    COPIES,
    DESIGNS,
    FIRST_LOOK,
    Pairs,
    SecondSlopes,
    combined,
    explained_by_line,
    explained_by_pairs,
    second_slopes_of,
)
from .protocol import Batch, Drawn, Estimate, Estimator, GroupedDraws, Rows, Setup, leave_one_out
from .smoothgrad import SmoothGrad

LARGEST = 2**28
"""Numbers of sums, at most, around one row."""


class _GradientState:
    """Sums of SmoothGrad, and of products of draws and gradients."""

    def __init__(self, first: Any, rows: int, groups: int, columns: Indices, *, is_shared: bool) -> None:
        copies, u = 1 if is_shared else rows, len(columns)
        self.first = first
        self.columns = columns  # of the draws and of the gradients
        self.gram = np.zeros((copies, groups, u, u))
        self.cross = np.zeros((rows, groups, u, u))
        self.bent = np.zeros((rows, u, u))  # Σ z zᵀ (f − pivot)
        self.is_shared = is_shared

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.first.keep(rows)
        self.cross, self.bent = self.cross[rows], self.bent[rows]
        self.gram = self.gram if self.is_shared else self.gram[rows]


@dataclass(frozen=True, slots=True, eq=False)
class SmoothGradTwice(Estimator):
    """Mean gradients, and their regression on the draws."""

    name: ClassVar[str] = SmoothGrad.name
    needs: ClassVar[Literal["values", "gradients"]] = "gradients"
    designs: ClassVar[tuple[str, ...]] = DESIGNS
    first_look: ClassVar[int] = FIRST_LOOK

    pairs: Indices
    method: SmoothGrad = dataclasses.field(default_factory=lambda: SmoothGrad())

    @property
    def rotation(self) -> Literal["never", "allowed", "required"]:
        """Pairs are those of features, not of directions."""
        return "never"

    @property
    def recorded(self) -> Estimator:
        """Slopes are just those of SmoothGrad."""
        return self.method

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """Four for each unknown of the regression; the two halves of a pair tell it one thing."""
        u = min(d, 2 * len(self.pairs))
        return (8 if is_paired else 4) * (u + 1)

    def numbers(self, setup: Setup) -> int:
        """Products of draws and gradients, what is made of them, and the sums of SmoothGrad."""
        u = len(self._columns(setup))
        own = COPIES * setup.groups * u * u * (1 if setup.is_shared else 2)
        if own > LARGEST:
            msg = (
                f"second slopes of {u:,} features keep {own:,} numbers for each row, which is too many. Name the pairs"
                " that matter: pairs=[(0, 1), ...]"
            )
            raise InvalidArgument(msg, argument="pairs")
        return own + self._inner(setup).numbers(setup)

    def _inner(self, setup: Setup) -> SmoothGrad:
        """Products of draws and values are kept to see whether they belong to the same model."""
        return SmoothGrad(control="values")

    def _columns(self, setup: Setup) -> Indices:
        """The features of pairs; all that move where Σ is full, as then a draw moves several."""
        pairs = Pairs.of(self.pairs, setup.factor)
        return np.unique([pairs.first, pairs.second]) if setup.factor.is_diagonal else np.arange(setup.d)

    def start(self, setup: Setup) -> _GradientState:
        """Empty sums."""
        first = self._inner(setup).start(setup)
        return _GradientState(first, setup.rows, setup.groups, self._columns(setup), is_shared=setup.is_shared)

    def update(self, state: _GradientState, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the gradients of a batch, and their products with the draws."""
        self.method.update(state.first, rows, groups, batch)
        if not len(state.columns):
            return
        z, gradients = batch.draws.z[..., state.columns], batch.gradients[..., state.columns]
        state.cross[rows, groups] += _products(z, gradients)
        centred = batch.values - state.first.values.pivot[rows, None, None]
        flat = z.reshape(len(z), -1, z.shape[-1])
        weighed = flat * centred.reshape(len(centred), -1, 1)
        state.bent[rows] += weighed.swapaxes(1, 2) @ flat
        if not batch.draws.is_shared:
            state.gram[rows, groups] += z.swapaxes(2, 3) @ z

    def update_shared(self, state: _GradientState, groups: slice, draws: GroupedDraws) -> None:
        """Add the products of draws among themselves."""
        self.method.update_shared(state.first, groups, draws)
        z = draws.z[..., state.columns]
        state.gram[:, groups] += z.swapaxes(2, 3) @ z

    def finish(self, state: _GradientState, drawn: Drawn) -> Estimate:
        """Slopes, second slopes, and whether values speak of the same slopes."""
        found = self.method.plain(state.first, drawn)
        pairs = Pairs.of(self.pairs, drawn.factor)
        slopes = state.first.slopes.means(state.first.values, drawn.sizes)
        inconsistent = are_inconsistent(drawn.factor.whiten(found.pseudo), slopes, found.spread)
        second = self._second(state, drawn, pairs, found)
        return dataclasses.replace(found, inconsistent=inconsistent, second=second)

    def _second(self, state: _GradientState, drawn: Drawn, pairs: Pairs, found: Estimate) -> SecondSlopes:
        sizes, factor, columns = drawn.sizes, drawn.factor, state.columns
        r = len(found.values)
        linear = explained_by_line(factor.whiten(found.values), factor.whiten(found.pseudo), sizes)
        if not len(pairs.moving):
            none = np.zeros((r, 0))
            return second_slopes_of(pairs, none, none, none, linear, np.zeros(r), found.variance)
        g = len(sizes)
        parts = (
            state.gram[:, :g], state.first.slopes.total[:, :g, columns], state.cross[:, :g],
            state.first.first[:, :g, columns], np.broadcast_to(sizes[None], (1, g)),
        )  # fmt: skip
        said = _cross_fitted_regression(*parts, drawn.n)
        place = np.full(pairs.f, -1)
        place[columns] = np.arange(len(columns))
        i, j = place[pairs.first], place[pairs.second]
        if factor.is_diagonal:
            scale = factor.inverse[columns]
            by_feature, floor = said * scale[:, None], found.resolution[:, columns] * scale
        else:
            by_feature = factor.inverse.T @ said
            floor = found.resolution * np.linalg.norm(factor.inverse, axis=0)
        pseudo = _symmetric(by_feature, i, j)
        values, error, skew = combined(pseudo, sizes)
        if drawn.design.is_net:
            error = np.maximum(error, (floor[:, i] + floor[:, j]) / 2)
        quadratic = self._quadratic(pairs, said, values, error, drawn)
        variance = self._variance(state, drawn, found, said, linear, quadratic)
        return second_slopes_of(pairs, values, error, skew, linear, quadratic, variance)

    def _variance(
        self, state: _GradientState, drawn: Drawn, found: Estimate, said: Array, linear: Array, quadratic: Array
    ) -> Array:
        """Var f, as what the polynomial q of degree 2 explains, Q, and what draws say of the rest: Q + mean f(f − q).

        The mean square of f over draws would have the noise of q as well, of which there is mostly more. Where not all
        that q takes is known, it is the mean square.
        """
        factor, columns, n = drawn.factor, state.columns, drawn.n
        together = np.einsum("rguv,g->ruv", said, drawn.sizes / n)
        of_draws = together * factor.std[columns] if factor.is_diagonal else factor.whiten(together)
        h = (of_draws + of_draws.swapaxes(1, 2)) / 2
        values, slopes = state.first.values, factor.whiten(found.values)
        away = (values.mean(drawn.sizes) - values.pivot)[:, None]
        g = len(drawn.sizes)
        total = state.first.slopes.total[:, :g].sum(axis=1)
        with_line = ((state.first.slopes.cross[:, :g].sum(axis=1) - away * total) * slopes).sum(axis=1)
        gram = state.gram[:, :g].sum(axis=1)
        with_bends = ((state.bent - away[..., None] * gram) * h).sum(axis=(1, 2)) / 2
        explained = linear + quadratic
        # of the sample the mean square is n − 1 over n of the variance
        rest = found.variance - (with_line + with_bends) / (n - 1)
        variance = explained + rest
        return np.where(np.isnan(explained), found.variance, np.fmax(variance, np.maximum(explained, 0.0)))

    def _quadratic(self, pairs: Pairs, said: Array, values: Array, error: Array, drawn: Drawn) -> Array:
        """½‖h‖², from regressions of gradients per feature on draws, (r, g, u, u)."""
        factor = drawn.factor
        if factor.is_diagonal:
            return explained_by_pairs(pairs, values, error, factor.std)
        if not pairs.is_complete:
            return np.full(len(values), np.nan)
        every = pairs.all_of_them()
        pseudo = _symmetric(factor.whiten(said), every.first, every.second)
        h = mean_of_groups(pseudo, drawn.sizes)
        return explained_by_pairs(every, h, standard_error(pseudo, drawn.sizes), np.ones(pairs.f))


def _products(z: Array, gradients: Any) -> Array:
    """Σ z gᵀ over draws: z (1 or r, g, b, u) and gradients (r, g, b, u) to (r, g, u, u)."""
    return np.asarray(z.swapaxes(2, 3).astype(gradients.dtype, copy=False) @ gradients, dtype=np.float64)


def _cross_fitted_regression(gram: Array, total: Array, cross: Array, first: Array, weight: Array, n: float) -> Array:
    """What each group says of Cov(z, ∇f), (r, g, u, u), from its sums over draws, `weight` (1, g) in all.

    The regression on all other groups takes off its gradients what it can: B + mean of z·(∇f − c − Bᵀz)ᵀ in the group.
    As Cov z = I is known, that is unbiased whatever B is, and where gradients are lines nothing is left to be noise.
    """
    others = [leave_one_out(each) for each in (gram, total, cross, first, weight)]
    count = others[4][:, :, None]
    mean, mean_gradient = others[1] / count, others[3] / count
    spread = others[0] / count[..., None] - mean[..., :, None] * mean[..., None, :]
    check_spans(spread, n)
    covariance = others[2] / count[..., None] - mean[..., :, None] * mean_gradient[..., None, :]
    slopes = _solve(spread, covariance)
    centre = mean_gradient - (slopes.swapaxes(2, 3) @ mean[..., None])[..., 0]
    left = cross - total[..., :, None] * centre[..., None, :] - gram @ slopes
    return np.asarray(slopes + left / weight[..., None, None])


def _solve(spread: Array, covariance: Array) -> Array:
    """Slopes (r, g, u, u) with spread · slopes = covariance; one factorisation where rows share their draws."""
    if len(spread) > 1:
        return np.asarray(np.linalg.solve(spread, covariance))
    r, g, u, _ = covariance.shape
    flat = covariance.transpose(1, 2, 0, 3).reshape(g, u, r * u)
    return np.asarray(np.linalg.solve(spread[0], flat).reshape(g, u, r, u).transpose(2, 0, 1, 3))


def _symmetric(matrices: Array, i: Indices, j: Indices) -> Array:
    """(..., u, u) at the pairs (..., p), the mean of both sides of the diagonal."""
    return np.asarray((matrices[..., i, j] + matrices[..., j, i]) / 2)

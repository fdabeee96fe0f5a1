"""Second slopes from gradients: their regression on the draws, Cov(Σ⁻¹a, ∇f(a))."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from .._core.types import Array, Indices
from ..errors import InvalidArgument
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
from .protocol import Batch, Drawn, Estimate, Estimator, GroupedDraws, Rows, Setup
from .smoothgrad import SmoothGrad

LARGEST = 2**28
"""Numbers of sums, at most, around one row."""


class _GradientState:
    """Sums of SmoothGrad, and of products of draws and gradients."""

    def __init__(self, first: Any, setup: Setup, columns: Indices, terms: Pairs) -> None:
        copies, u = 1 if setup.is_shared else setup.rows, len(columns)
        self.first = first
        self.columns = columns  # of the draws and of the gradients
        self.terms = terms  # of the polynomial that is compared with values
        self.gram = np.zeros((copies, setup.groups, u, u))
        self.cross = np.zeros((setup.rows, setup.groups, u, u))
        self.bent = np.zeros((setup.rows, len(terms.first)))  # Σ z_i z_j (f − pivot)
        self.is_shared = setup.is_shared

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.first.keep(rows)
        self.cross, self.bent = self.cross[rows], self.bent[rows]
        self.gram = self.gram if self.is_shared else self.gram[rows]

    def extend(self, z: Array) -> Array:
        """Products of draws, one for each term."""
        return np.asarray(z[..., self.terms.first] * z[..., self.terms.second])


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
        terms = Pairs.of(self.pairs, setup.factor)
        if not (setup.factor.is_diagonal or terms.is_complete):
            terms = Pairs(*(terms.moving[:0],) * 3, 0, terms.f)  # a product of draws is of all pairs
        return _GradientState(self._inner(setup).start(setup), setup, self._columns(setup), terms)

    def update(self, state: _GradientState, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the gradients of a batch, and their products with the draws."""
        self.method.update(state.first, rows, groups, batch)
        if not len(state.columns):
            return
        z, gradients = batch.draws.z, batch.gradients
        if len(state.columns) < z.shape[-1]:
            z, gradients = z[..., state.columns], gradients[..., state.columns]
        state.cross[rows, groups] += _products(z, gradients)
        if len(state.terms.first):
            centred = batch.values - state.first.values.pivot[rows, None, None]
            products = batch.draws.extended(state.extend).flat
            flat = centred.reshape(len(centred), -1)
            state.bent[rows] += flat @ products[0] if len(products) == 1 else (flat[:, None] @ products)[:, 0]
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
        if factor.is_diagonal:
            to_draws = factor.std[pairs.first] * factor.std[pairs.second]
            h, off = values * to_draws, error * to_draws
        elif pairs.is_complete:
            h, off, _ = combined(_symmetric(factor.whiten(said), pairs.first, pairs.second), sizes)
        else:
            return second_slopes_of(pairs, values, error, skew, linear, np.full(r, np.nan), found.variance)
        quadratic = explained_by_pairs(pairs, h, off)
        variance = _variance(state, drawn, found, h, linear + quadratic)
        return second_slopes_of(pairs, values, error, skew, linear, quadratic, variance)


def _variance(state: _GradientState, drawn: Drawn, found: Estimate, h: Array, explained: Array) -> Array:
    """Var f, as what the polynomial q of degree 2 explains, Q, and what draws say of the rest: Q + mean f(f − q).

    The mean square of f over draws would have the noise of q as well, of which there is mostly more.
    """
    n, terms, values, lines = drawn.n, state.terms, state.first.values, state.first.slopes
    g = len(drawn.sizes)
    away = (values.mean(drawn.sizes) - values.pivot)[:, None]
    with_line = lines.cross[:, :g].sum(axis=1) - away * lines.total[:, :g].sum(axis=1)
    place = np.searchsorted(state.columns, [terms.first, terms.second])
    gram = state.gram[:, :g].sum(axis=1)[:, place[0], place[1]]
    with_bends = (state.bent - away * gram) * terms.weights
    with_q = (with_line * drawn.factor.whiten(found.values)).sum(axis=1) + (with_bends * h).sum(axis=1)
    # of the sample the mean square is n − 1 over n of the variance
    return np.asarray(np.fmax(explained + found.variance - with_q / (n - 1), np.maximum(explained, 0.0)))


def _products(z: Array, gradients: Any) -> Array:
    """Σ z gᵀ over draws: z (1 or r, g, b, u) and gradients (r, g, b, u) to (r, g, u, u)."""
    return np.asarray(z.swapaxes(2, 3).astype(gradients.dtype, copy=False) @ gradients, dtype=np.float64)


def _cross_fitted_regression(gram: Array, total: Array, cross: Array, first: Array, weight: Array, n: float) -> Array:
    """What each group says of Cov(z, ∇f), (r, g, u, u), from its sums over draws, `weight` (1, g) in all.

    The regression on the other half of all groups takes off its gradients what it can: B + mean of z·(∇f − c − Bᵀz)ᵀ in
    the group. As Cov z = I is known, that is unbiased whatever B is, and of lines nothing is left to be noise.
    """
    found = np.empty(cross.shape)
    for half in (0, 1):
        own, other = slice(half, None, 2), slice(1 - half, None, 2)
        gram_there, total_there, cross_there, first_there, count = (
            each[:, other].sum(axis=1) for each in (gram, total, cross, first, weight)
        )
        slopes, centre = _regression(gram_there, total_there, cross_there, first_there, count, n)
        part = found[:, own]
        np.matmul(gram[:, own], slopes[:, None], out=part)
        part += total[:, own, :, None] * centre[:, None, None, :]
        np.subtract(cross[:, own], part, out=part)
        part /= weight[:, own, None, None]
        part += slopes[:, None]
    return found


def _regression(gram: Array, total: Array, cross: Array, first: Array, weight: Array, n: float) -> tuple[Array, Array]:
    """Coefficients (r, u, u) and intercepts (r, u) of gradients on draws, from sums over `weight` (1,) draws."""
    count = weight[:, None]
    mean, mean_gradient = total / count, first / count
    spread = gram / count[..., None] - mean[..., :, None] * mean[..., None, :]
    check_spans(spread, n)
    covariance = cross / count[..., None] - mean[..., :, None] * mean_gradient[..., None, :]
    if len(spread) > 1:
        slopes = np.linalg.solve(spread, covariance)
    else:  # one factorisation where rows share their draws
        r, u, _ = covariance.shape
        flat = covariance.transpose(1, 0, 2).reshape(u, r * u)
        slopes = np.linalg.solve(spread[0], flat).reshape(u, r, u).transpose(1, 0, 2)
    return np.asarray(slopes), mean_gradient - (slopes.swapaxes(1, 2) @ mean[..., None])[..., 0]


def _symmetric(matrices: Array, i: Indices, j: Indices) -> Array:
    """(r, g, u, u) at the pairs (r, g, p), the mean of both sides of the diagonal."""
    u = matrices.shape[-1]
    flat = matrices.reshape(*matrices.shape[:2], u * u)
    found = flat.take(i * u + j, axis=2)
    found += flat.take(j * u + i, axis=2)
    found /= 2
    return found

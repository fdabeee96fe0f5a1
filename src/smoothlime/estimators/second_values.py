"""Second slopes from values: the part of degree 2 of a fit, on z_i·z_j and (z_i² − 1)/√2."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .._core.types import Array, Indices
from ..draws.designs import Design
from ..draws.long_draws import FAR_SHARE
from ..space.neighbourhood import Factor
from .clime import CLime
from .least_squares import Sums, fit_all, over_neighbourhood, ridge_fit
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


@dataclass(frozen=True, slots=True, eq=False)
class _ValueState:
    sums: Sums
    terms: Pairs

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.sums.keep(rows)

    def seen(self, draws: GroupedDraws) -> GroupedDraws:
        """Draws, and products of them beside."""
        return draws.extended(self._extend)

    def _extend(self, z: Array) -> Array:
        """(..., d) to (..., d + p)."""
        terms, d = self.terms, z.shape[-1]
        found = np.empty((*z.shape[:-1], d + len(terms.first)))
        found[..., :d] = z
        np.multiply(z[..., terms.first], z[..., terms.second], out=found[..., d:])
        found[..., d:][..., terms.is_bend] = (found[..., d:][..., terms.is_bend] - 1) / np.sqrt(2)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class CLimeTwice(Estimator):
    """Least squares on draws, and on products of them beside."""

    name: ClassVar[str] = CLime.name
    needs: ClassVar[Literal["values", "gradients"]] = "values"
    designs: ClassVar[tuple[str, ...]] = DESIGNS
    first_look: ClassVar[int] = FIRST_LOOK

    pairs: Indices
    is_full: bool
    """Whether Σ is full: then all pairs are fitted, as a product of two draws moves several features"""
    method: CLime = dataclasses.field(default_factory=lambda: CLime())

    @property
    def rotation(self) -> Literal["never", "allowed", "required"]:
        """Pairs are those of features, not of directions."""
        return "never"

    @property
    def recorded(self) -> Estimator:
        """Slopes are just those of C-LIME."""
        return self.method

    @property
    def advice(self) -> str:
        """What else helps where draws are too few."""
        return ", or name the pairs that matter: pairs=[(0, 1), ...]"

    def longer(self, design: Design) -> float:
        """Most of them: products of draws are learnt far out."""
        return FAR_SHARE

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """Four for each unknown; the two halves of a pair tell it one thing."""
        products = d * (d + 1) // 2
        return (8 if is_paired else 4) * (d + 1 + (products if self.is_full else min(products, len(self.pairs))))

    def numbers(self, setup: Setup) -> int:
        """Slopes of all terms, and their products where rows do not share them."""
        terms = setup.d + len(self._terms(setup.factor).first)
        return setup.groups * (COPIES * terms if setup.is_shared else terms * (COPIES + 3 * terms))

    def _terms(self, factor: Factor) -> Pairs:
        pairs = Pairs.of(self.pairs, factor)
        return pairs if factor.is_diagonal else pairs.all_of_them()

    def start(self, setup: Setup) -> _ValueState:
        """Empty sums."""
        terms = self._terms(setup.factor)
        sums = Sums(setup.rows, setup.groups, setup.d + len(terms.first), is_shared=setup.is_shared)
        return _ValueState(sums, terms)

    def update(self, state: _ValueState, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the products of terms and values."""
        seen = dataclasses.replace(batch, draws=state.seen(batch.draws))
        state.sums.add_values(rows, groups, seen, seen.draws.weights)
        if not batch.draws.is_shared:
            state.sums.add_draws(rows, groups, seen.draws, seen.draws.weights)

    def update_shared(self, state: _ValueState, groups: slice, draws: GroupedDraws) -> None:
        """Add the products of terms among themselves."""
        state.sums.add_draws(slice(None), groups, state.seen(draws), draws.weights)

    def finish(self, state: _ValueState, drawn: Drawn) -> Estimate:
        """The line by itself, and the second slopes of the fit of all terms."""
        sizes, factor, terms = drawn.sizes, drawn.factor, state.terms
        count = drawn.d + len(terms.first)
        line, every = (Factor(each, np.arange(each), np.ones(each)) for each in (drawn.d, count))
        part = state.sums.leading(drawn.d)
        found = over_neighbourhood(part, sizes, fit_all(part, sizes, line, ridge_fit(line, 0.0, drawn.n)))
        found = dataclasses.replace(
            found,
            values=factor.unwhiten(found.values),
            pseudo=factor.unwhiten(found.pseudo),
            resolution=found.resolution[:, :1] * factor.unwhitened_scale,
        )
        fitted = fit_all(state.sums, sizes, every, ridge_fit(every, 0.0, drawn.n))
        linear = explained_by_line(factor.whiten(found.values), factor.whiten(found.pseudo), sizes)
        stretch = np.where(terms.is_bend, np.sqrt(2), 1.0)
        pseudo = _cross_fitted(state.sums, fitted.slopes_without, sizes)[..., drawn.d :] * stretch
        residual = np.maximum(
            over_neighbourhood(state.sums, sizes, fitted).variance - (fitted.slopes**2).sum(axis=1), 0.0
        )
        one_draw = np.sqrt(residual)[:, None] * stretch / drawn.n * drawn.design.is_net
        second = self._second(pseudo, one_draw, drawn, terms, linear)
        variance = linear + second.quadratic + residual
        return dataclasses.replace(found, second=dataclasses.replace(second, variance=variance))

    def _second(self, pseudo: Array, one_draw: Array, drawn: Drawn, terms: Pairs, linear: Array) -> SecondSlopes:
        """Of what groups say of h, (r, g, p), in units of draws."""
        sizes, factor, unknown = drawn.sizes, drawn.factor, np.full(len(pseudo), np.nan)
        h, error, skew = combined(pseudo, sizes)
        error = np.maximum(error, one_draw)
        quadratic = explained_by_pairs(terms, h, error)
        pairs = Pairs.of(self.pairs, factor)
        if factor.is_diagonal:
            scale = factor.inverse[terms.first] * factor.inverse[terms.second]
            return second_slopes_of(pairs, h * scale, error * scale, skew, linear, quadratic, unknown)
        values, error, skew = combined(_unwhitened(pseudo, terms, factor, pairs), sizes)
        scale = factor.unwhitened_scale[pairs.first] * factor.unwhitened_scale[pairs.second]
        error = np.maximum(error, one_draw.max(axis=1, initial=0.0)[:, None] * scale)
        return second_slopes_of(pairs, values, error, skew, linear, quadratic, unknown)


def _cross_fitted(sums: Sums, slopes: Array, sizes: Array) -> Array:
    """What each group says of E f·φ for all terms φ, (r, g, terms), by fits (r, g, terms) to all other groups.

    φ has mean 0 and covariance I, so that slopes + mean of φ·(f − c − slopes·φ) is unbiased, which a fit is not: a few
    far draws pull it where the model is no polynomial, and its errors look too small.
    """
    g = len(sizes)
    assert sums.weights is not None
    parts = (sums.gram, sums.total, sums.cross, sums.weights.first, sums.weights.total)
    gram, total, cross, first, weight = (each[:, :g] for each in parts)
    count = leave_one_out(weight)[..., None]
    centre = leave_one_out(first)[..., None] / count
    centre = centre - (slopes * (leave_one_out(total) / count)).sum(axis=2, keepdims=True)
    left = cross - total * centre - (gram @ slopes[..., None])[..., 0]
    return np.asarray(slopes + left / sizes[:, None])


def _unwhitened(h: Array, terms: Pairs, factor: Factor, pairs: Pairs) -> Array:
    """L⁻ᵀ h L⁻¹ at the pairs, from all entries h (..., p)."""
    full = np.zeros((*h.shape[:-1], terms.f, terms.f))
    full[..., terms.first, terms.second] = h
    full[..., terms.second, terms.first] = h
    found = factor.inverse.T @ full @ factor.inverse
    return np.asarray(found[..., pairs.first, pairs.second])

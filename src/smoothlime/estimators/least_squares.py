"""Least squares with intercept on draws that may carry weights: the sums and the fits of `CLime` and `Lime`.

Fits are made in units of draws, on v = Lᵀw, from the weighted covariances of draws and values. Weights that are all
one are no weights: the same sums, divided by the same numbers, to the last bit.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._core.types import Array, Flags, Indices
from .._core.xp import merge_groups
from ..errors import SingularFit
from ..space.neighbourhood import Factor
from ..uncertainty.jackknife import pseudo_values
from .protocol import Batch, Estimate, GroupedDraws, Rows, ValueSums, leave_one_out

ROUNDING = 1e-13
"""Share of the variance below which nothing is left of it: a difference of sums is no more precise."""

Fit = Callable[[Array, Array], tuple[Array, Flags | None]]
"""Cov z (ρ, g, d, d) and Cov(z, f) (r, g, d) to slopes v (r, g, d), and the features that were kept or None for all."""


class WeightSums:
    """Sums of the weights π of draws, and of values times them."""

    def __init__(self, rows: int, copies: int, groups: int) -> None:
        self.total = np.zeros((copies, groups))
        self.squares = np.zeros((copies, groups))
        self.largest = np.zeros(copies)
        self.is_one = np.ones(copies, dtype=np.bool_)
        self.first = np.zeros((rows, groups))
        self.second = np.zeros(rows)

    def keep(self, rows: Indices, *, is_shared: bool) -> None:
        """Forget all other rows."""
        self.first, self.second = self.first[rows], self.second[rows]
        if not is_shared:
            self.total, self.squares = self.total[rows], self.squares[rows]
            self.largest, self.is_one = self.largest[rows], self.is_one[rows]

    def merge(self) -> None:
        """Make one group of each two."""
        for sums in (self.total, self.squares, self.first):
            merge_groups(sums)


class PilotResiduals:
    """What values are besides a line, of slopes (r, d) that were known before the first draw: who carries it.

    Least squares does not care for lines, and nor should the count: beside a steep one, tails do not show. Of pairs it
    is the odd part, half a difference for each: what is even, no slope sees.
    """

    def __init__(self, line: Array, groups: int, *, of_pairs: bool) -> None:
        self.line = line
        self.of_pairs = of_pairs
        self.values = ValueSums(len(line), groups, has_tails=True)

    def add(self, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the values of a batch, less the line."""
        left = batch.values - batch.draws.along(self.line[rows])
        self.values.add(rows, groups, (left[..., 0::2] - left[..., 1::2]) / 2 if self.of_pairs else left)

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.line = self.line[rows]
        self.values.keep(rows)

    def effective_sample_size(self, sizes: Array) -> Array:
        """(r,) draws, or pairs, that carry the variance of what is left."""
        return self.values.effective_sample_size(sizes / 2 if self.of_pairs else sizes)


class Sums:
    """Everything that least squares needs to know of the draws so far, by row and group."""

    def __init__(self, rows: int, groups: int, d: int, *, is_shared: bool) -> None:
        copies = 1 if is_shared else rows
        self.values = ValueSums(rows, groups, has_tails=True)
        self.cross = np.zeros((rows, groups, d))
        self.total = np.zeros((copies, groups, d))
        self.gram = np.zeros((copies, groups, d, d))
        self.weights: WeightSums | None = None  # made by the first draws that carry any
        self.pilot_residuals: PilotResiduals | None = None  # where a line was known beforehand
        self.is_shared = is_shared

    @property
    def is_flat(self) -> bool:
        """Whether every draw so far counts alike, once."""
        return self.weights is None or bool(self.weights.is_one.all())

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.values.keep(rows)
        self.cross = self.cross[rows]
        if self.pilot_residuals is not None:
            self.pilot_residuals.keep(rows)
        if not self.is_shared:
            self.total, self.gram = self.total[rows], self.gram[rows]
        if self.weights is not None:
            self.weights.keep(rows, is_shared=self.is_shared)

    def residual_ess(self, sizes: Array) -> Array | None:
        """(r,) draws, or pairs, that carry what the line leaves, where there is one."""
        return None if self.pilot_residuals is None else self.pilot_residuals.effective_sample_size(sizes)

    def leading(self, d: int) -> Sums:
        """The same sums for the first d terms alone."""
        part = copy.copy(self)
        part.cross, part.total, part.gram = self.cross[..., :d], self.total[..., :d], self.gram[..., :d, :d]
        return part

    def merge(self) -> None:
        """Make one group of each two."""
        self.values.merge()
        if self.pilot_residuals is not None:
            self.pilot_residuals.values.merge()
        for sums in (self.cross, self.total, self.gram):
            merge_groups(sums)
        if self.weights is not None:
            self.weights.merge()

    def add_values(self, rows: Rows, groups: slice, batch: Batch, weights: Array | None = None) -> None:
        """Add the products of draws and values, with weights (ρ, g, b)."""
        centred = self.values.add(rows, groups, batch.values)
        weighted = centred
        if weights is not None:
            weighted, sums = weights * centred, self._weight_sums
            sums.first[rows, groups] += weighted.sum(axis=2)
            sums.second[rows] += np.einsum("rgb,rgb->r", weighted, centred)
        self.cross[rows, groups] += batch.draws.times(weighted)
        if self.pilot_residuals is not None:
            self.pilot_residuals.add(rows, groups, batch)

    def add_draws(self, rows: Rows, groups: slice, draws: GroupedDraws, weights: Array | None = None) -> None:
        """Add the products of draws among themselves, once for all rows that share them."""
        if weights is None:
            self.total[rows, groups] += draws.total
            self.gram[rows, groups] += draws.gram
            return
        self.total[rows, groups] += (weights[..., None] * draws.z).sum(axis=2)
        # √π on both sides keeps the product symmetric to the last bit
        self.gram[rows, groups] += GroupedDraws(np.sqrt(weights)[..., None] * draws.z, is_shared=draws.is_shared).gram
        sums = self._weight_sums
        sums.total[rows, groups] += weights.sum(axis=2)
        sums.squares[rows, groups] += (weights**2).sum(axis=2)
        sums.largest[rows] = np.maximum(sums.largest[rows], weights.max(axis=(1, 2)))
        sums.is_one[rows] &= (weights == 1).all(axis=(1, 2))

    @property
    def _weight_sums(self) -> WeightSums:
        if self.weights is None:
            self.weights = WeightSums(len(self.cross), *self.total.shape[:2])
        return self.weights


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The fit to all draws and those without each group."""

    scaled: Array
    """(r, d) v = Lᵀw of the fit to all draws"""
    slopes: Array
    """(r, d) w"""
    slopes_without: Array
    """(r, g, d)"""
    kept_without: Flags | None
    """(r, g, d) features that the fits without each group kept; None where all are"""
    spread: Array
    """(ρ, d, d) weighted covariance of the draws"""
    explained: Array
    """(r,) what the fit takes off the weighted variance of the values"""


def fit_all(sums: Sums, sizes: Array, factor: Factor, fit: Fit) -> Fitted:
    """Fits to all draws and to all but each group; `sizes` (g,) of the groups drawn by now."""
    weight, first = sizes[None], sums.values.first
    if sums.weights is not None and not sums.is_flat:
        weight, first = sums.weights.total, sums.weights.first
    parts = [each[:, : len(sizes)] for each in (sums.gram, sums.total, sums.cross, first, weight)]
    spread, with_values = _covariances(*(each.sum(axis=1, keepdims=True) for each in parts))
    together, kept = fit(spread, with_values)
    without, kept_without = fit(*_covariances(*(leave_one_out(each) for each in parts)))
    scaled = together[:, 0]
    explained = 2 * (scaled * with_values[:, 0]).sum(axis=1) - np.einsum(
        "...i,...ij,...j->...", scaled, spread[:, 0], scaled
    )
    return Fitted(
        scaled=scaled,
        slopes=_unwhitened(factor, scaled, None if kept is None else kept[:, 0]),
        slopes_without=_unwhitened(factor, without, kept_without),
        kept_without=kept_without,
        spread=spread[:, 0],
        explained=explained,
    )


def estimate(sums: Sums, sizes: Array, factor: Factor, fitted: Fitted) -> Estimate:
    """Slopes, and what each group says of them, where every draw counts alike."""
    n = sizes.sum()
    variance = sums.values.variance(sizes)
    residual = variance * (n - 1) / n - fitted.explained
    residual = np.where(residual > ROUNDING * variance, residual, 0.0)
    return Estimate(
        values=fitted.slopes,
        pseudo=pseudo_values(fitted.slopes, fitted.slopes_without, sizes),
        resolution=np.sqrt(residual)[:, None] * factor.unwhitened_scale / n,
        smoothed=sums.values.mean(sizes),
        # what the line explains of the population and what it leaves: exact for linear models at any n
        variance=(fitted.scaled**2).sum(axis=1) + residual * n / (n - 1 - len(factor.free)),
        spread=np.sqrt(variance),
        effective_sample_size=sums.values.effective_sample_size(sizes),
    )


def over_neighbourhood(sums: Sums, sizes: Array, fitted: Fitted) -> Estimate:
    """The same, where weights make means over draws those over the neighbourhood."""
    weights = sums.weights
    assert weights is not None
    n, g, terms = sizes.sum(), len(sizes), fitted.scaled.shape[1]
    total = weights.total[:, :g].sum(axis=1)
    mean = weights.first[:, :g].sum(axis=1) / total
    variance = np.maximum(weights.second / total - mean**2, 0.0)
    residual = variance - fitted.explained
    residual = np.where(residual > ROUNDING * variance, residual, 0.0)
    return Estimate(
        values=fitted.slopes,
        pseudo=pseudo_values(fitted.slopes, fitted.slopes_without, sizes),
        resolution=np.broadcast_to(np.sqrt(residual)[:, None] / n, fitted.slopes.shape),
        smoothed=sums.values.pivot + mean,  # not the intercept, which is off by what many terms follow too closely
        variance=(fitted.scaled**2).sum(axis=1) + residual * n / (n - 1 - terms),
        spread=np.sqrt(variance * n / (n - 1)),
        effective_sample_size=sums.values.effective_sample_size(sizes),
    )


def ridge_fit(factor: Factor, ridge: float, n: float) -> Fit:
    """Least squares with the penalty λ‖w‖²."""
    # λ(LᵀL)⁻¹: in units of draws, where w = L⁻ᵀv, the penalty λ‖w‖² reads vᵀ λ L⁻¹L⁻ᵀ v
    inverse = np.diag(factor.inverse) if factor.is_diagonal else factor.inverse
    penalty = ridge * inverse @ inverse.T
    return lambda spread, with_values: (_solve(spread + penalty, with_values, n), None)


def check_spans(spread: Array, n: float) -> None:
    """Refuse a covariance (..., d, d) of n draws that is singular, or as good as."""
    try:
        pivots = np.diagonal(np.linalg.cholesky(spread), axis1=-2, axis2=-1)
        is_singular = bool((pivots.min(axis=-1) < 1e-5 * pivots.max(axis=-1)).any())
    except np.linalg.LinAlgError:
        is_singular = True
    if is_singular:
        msg = (
            f"the local fit is singular: {int(n)} draws do not span {spread.shape[-1]} features."
            " Raise n_samples, or use method='differences'"
        )
        raise SingularFit(msg)


def _unwhitened(factor: Factor, scaled: Array, kept: Flags | None) -> Array:
    """Slopes w of v; exactly 0 for features that were not kept."""
    slopes = factor.unwhiten(scaled)
    return slopes if kept is None else np.where(kept, slopes, 0.0)


def _covariances(gram: Array, total: Array, cross: Array, first: Array, weight: Array) -> tuple[Array, Array]:
    """Cov z (ρ, g, d, d) and Cov(z, f) (r, g, d) from sums over draws, of weights (1 or ρ, g) in all."""
    count = weight[:, :, None]
    mean = total / count
    spread = gram / count[..., None] - mean[..., :, None] * mean[..., None, :]
    return spread, cross / count - mean * (first[..., None] / count)


def _solve(spread: Array, with_values: Array, n: float) -> Array:
    """Slopes (r, g, d) with spread · slope = with_values; one factorisation where rows share their draws."""
    check_spans(spread, n)
    if len(spread) == 1:
        return np.linalg.solve(spread[0], with_values.transpose(1, 2, 0)).transpose(2, 0, 1)
    return np.asarray(np.linalg.solve(spread, with_values[..., None])[..., 0], dtype=np.float64)

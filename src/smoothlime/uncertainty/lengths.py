"""What errors and slopes come to over all features of a row, made where the numbers are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import beside, library, on_host
from .._types import Array
from .jackknife import clear_skewness, ratio, skewness, standard_error, widening

if TYPE_CHECKING:
    from ..neighbourhood import Factor

FEW_ROWS = 1_024
"""Rows up to which what groups say along the slope is fetched: more are looked at sooner where they are."""


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """Of slopes (r, f) and their errors, as tensors where groups are on a device: nothing waits for it to be made.

    Groups whose means are skewed make errors larger than they look, along the slope and for single features: where other
    features have much steeper slopes, what pulls at one of them does not show along the slope.
    """

    slopes: Any
    factor: Factor
    squares: Any
    """(7, r) sums over features of the squares of: slopes and errors per draw, errors and slopes per feature in its
    standard deviations, and the slope's direction, likewise; and of these errors times skewness, and times its square"""
    said: Any
    """(r, g) what groups say along the slope"""
    direction: Any
    """(r, f) of the slope, of length 1 per draw, as slopes per feature"""
    skew: Any
    """(r, f) squared skewness of what groups say of each feature, where it is clear"""

    @classmethod
    def of(cls, slopes: Any, errors: Any, numbers: Any, sizes: Array, factor: Factor) -> Lengths:
        """From what groups of sizes (g,) or (r, g) say, as numbers (r, g, f); a full Σ is for arrays."""
        xp, std = library(numbers), beside(numbers, factor.std)
        if factor.is_diagonal:
            slope, noise = slopes * std, errors * std
        else:
            slope, noise = factor.whiten(slopes), standard_error(factor.whiten(numbers), sizes)
        along = ratio(slope, xp.sqrt((slope * slope).sum(axis=1))[:, None])
        if factor.is_diagonal:
            steps, direction = along * std, along / std
        else:
            steps, direction = factor.steps(along), factor.unwhiten(along)
        terms = slope, noise, errors * std, slopes * std, direction * std
        squares = [each * each for each in terms]
        skew = clear_skewness(numbers, sizes)
        squares += [squares[2] * skew, squares[2] * skew * skew]
        said = (numbers @ steps[:, :, None])[:, :, 0]  # (Lᵀw)·v = w·(Lv)
        return cls(slopes, factor, xp.stack([each.sum(axis=1) for each in squares]), said, direction, skew)

    def half_width(self, quantile: Array, errors: Array, sizes: Array) -> Array:
        """(r, f) half-widths of intervals of so many errors (r, f), (r,) each."""
        along = np.sqrt(errors**2 + self._extra(quantile, sizes)[:, None] * on_host(self.direction) ** 2)
        by_feature = errors * (1 + widening(quantile)[:, None] * on_host(self.skew))
        return quantile[:, None] * np.maximum(along, by_feature)

    def radius(self, squares: Array, quantile: Array, sizes: Array) -> Array:
        """(r,) the larger L2 norm of the two kinds of half-widths, in standard deviations of features.

        From what `squares` are on the host.
        """
        _, _, plain, _, direction, skewed, more_skewed = squares
        wider = widening(quantile)
        along, by_feature = self._extra(quantile, sizes) * direction, 2 * wider * skewed + wider**2 * more_skewed
        return quantile * np.sqrt(plain + np.maximum(along, by_feature))

    def _extra(self, quantile: Array, sizes: Array) -> Array:
        """Variance (r,) to be added along the slope, so that intervals of so many standard errors hold."""
        said = self.said if len(self.said) > FEW_ROWS else on_host(self.said)
        inflation = 1 + widening(quantile) * on_host(skewness(said, sizes)) ** 2
        return (inflation**2 - 1) * np.asarray(on_host(standard_error(said[:, :, None], sizes))[:, 0] ** 2)

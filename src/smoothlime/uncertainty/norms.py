"""What errors and slopes come to over all features of a row, made where the numbers are."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.types import Array
from .._core.xp import beside, library, on_host
from .jackknife import clear_skewness, covariance_norms, mean_of_groups, ratio, skewness, standard_error, widening

if TYPE_CHECKING:
    from ..space.neighbourhood import Factor

CAP = 2.0
"""Slopes count with at most so many times the standard errors that the middle one has, in the second direction."""


@dataclass(frozen=True, slots=True, eq=False)
class RowNorms:
    """Of slopes (r, f) and their errors, as tensors where groups are on a device: nothing waits for it to be made.

    Groups whose means are skewed make errors larger than they look along the slope, in which rare large terms pull.
    Where some features have much steeper slopes, that does not show, so it is looked for without them, too, and for
    single features.
    """

    slopes: Any
    errors: Any
    """(r, f) standard errors"""
    factor: Factor
    squares: Any
    """(5, r) sums over features of the squares of: slopes and errors per draw, and slopes per feature in its standard
    deviations; and trace and norm of the covariance of the latter, as groups show it"""
    pseudovalues: Any
    """(r, g, 2) what groups say along the slope, and along what is left of it without the steepest features"""
    direction: Any
    """(r, f, 2) of the two, of length 1 per draw, as slopes per feature"""
    skew: Any
    """(r, f) squared skewness of what groups say of each feature, where it is clear"""
    quantile: float | None = None
    """Of the radius that will be asked for, where it is known beforehand"""
    length: Any = None
    """(r,) that radius, in standard errors and squared"""

    @classmethod
    def of(
        cls, slopes: Any, errors: Any, numbers: Any, sizes: Array, factor: Factor, quantile: float | None = None
    ) -> RowNorms:
        """From what groups of sizes (g,) or (r, g) say, as numbers (r, g, f); a full Σ is for arrays.

        Perhaps with the radius of so many standard errors, before anybody asks for it.
        """
        xp, std = library(numbers), beside(numbers, factor.std)[:, None]
        centre = mean_of_groups(numbers, sizes)  # the slopes themselves, less what was known without any draws
        along = xp.stack([centre, _capped(centre, errors)], axis=2)
        if factor.is_diagonal:
            per_draw = along * std
            slope, noise = slopes * std[:, 0], errors * std[:, 0]
        else:
            per_draw = factor.whiten(along.swapaxes(1, 2)).swapaxes(1, 2)
            slope, noise = factor.whiten(slopes), standard_error(factor.whiten(numbers), sizes)
        per_draw = ratio(per_draw, xp.sqrt((per_draw * per_draw).sum(axis=1))[:, None])
        if factor.is_diagonal:
            steps, direction = per_draw * std, per_draw / std
        else:
            across = per_draw.swapaxes(1, 2)
            steps, direction = (each(across).swapaxes(1, 2) for each in (factor.steps, factor.unwhiten))
        sums = [(each * each).sum(axis=1) for each in (slope, noise, slopes * std[:, 0])]
        squares = xp.stack([*sums, *covariance_norms(numbers, centre, std[:, 0], sizes)])
        pseudovalues = numbers @ steps  # (Lᵀw)·v = w·(Lv)
        made = cls(slopes, errors, factor, squares, pseudovalues, direction, clear_skewness(numbers, sizes))
        if quantile is None:
            return made
        return dataclasses.replace(made, quantile=quantile, length=made._length(np.array([quantile]), sizes))

    def half_width(self, quantile: Array, sizes: Array) -> Array:
        """(r, f) half-widths of intervals of so many standard errors, (r,)."""
        return quantile[:, None] * np.sqrt(on_host(self._widened(quantile, sizes)))

    def radius(self, quantile: Array, sizes: Array) -> Array:
        """(r,) L2 norm of half-widths in standard deviations of features."""
        is_known = self.quantile is not None and bool((quantile == self.quantile).all())
        return quantile * np.sqrt(on_host(self.length if is_known else self._length(quantile, sizes)))

    def _length(self, quantile: Array, sizes: Array) -> Any:
        """(r,) the same in standard errors, squared."""
        std = beside(self.errors, self.factor.std)
        return (self._widened(quantile, sizes) * (std * std)).sum(axis=1)

    def _widened(self, quantile: Array, sizes: Array) -> Any:
        """(r, f) squares of errors, so that intervals of so many of them hold."""
        wider = beside(self.errors, widening(quantile))[:, None]
        extra = self._extra(quantile, sizes)[:, None] * self.direction**2
        by_feature = (self.errors * (1 + wider * self.skew)) ** 2
        xp = library(by_feature)
        return xp.maximum(self.errors**2 + xp.maximum(extra[:, :, 0], extra[:, :, 1]), by_feature)

    def _extra(self, quantile: Array, sizes: Array) -> Any:
        """Variance (r, 2) to be added along the two directions."""
        inflation = 1 + beside(self.pseudovalues, widening(quantile))[:, None] * skewness(self.pseudovalues, sizes) ** 2
        return (inflation**2 - 1) * standard_error(self.pseudovalues, sizes) ** 2


def _capped(slopes: Any, errors: Any) -> Any:
    """Slopes (r, f), none of more standard errors than twice the middle one has."""
    xp, middle = library(slopes), (slopes.shape[1] - 1) // 2
    sizes = ratio(xp.abs(slopes), errors)
    if xp is np:
        typical = np.partition(sizes, middle, axis=1)[:, middle, None]
    else:
        typical = sizes.sort(dim=1).values[:, middle, None]  # a graphics card takes seven times as long for a median
    limit = CAP * typical * errors
    return xp.clip(slopes, -limit, limit)

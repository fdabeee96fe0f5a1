"""What errors and slopes come to over all features of a row, made where the numbers are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import beside, library, on_host
from .._types import Array
from .jackknife import ratio, skewness, skewness_inflation, standard_error

if TYPE_CHECKING:
    from ..neighbourhood import Factor

FEW_ROWS = 1_024
"""Rows up to which what groups say along the slope is fetched: more are looked at sooner where they are."""


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """Of slopes (r, f) and their errors, as tensors where groups are on a device: nothing waits for it to be made.

    Groups whose means are skewed make errors along the slope larger than they look.
    """

    slopes: Any
    factor: Factor
    squares: Any
    """(5, r) sums over features of the squares of: slopes and errors per draw, errors and slopes per feature in its
    standard deviations, and the slope's direction, likewise"""
    said: Any
    """(r, g) what groups say along the slope"""
    direction: Any
    """(r, f) of the slope, of length 1 per draw, as slopes per feature"""

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
        squares = xp.stack([(each * each).sum(axis=1) for each in terms])
        said = (numbers @ steps[:, :, None])[:, :, 0]  # (Lᵀw)·v = w·(Lv)
        return cls(slopes, factor, squares, said, direction)

    def extra(self, quantile: Array, sizes: Array) -> Array:
        """Variance (r,) to be added along the slope, so that intervals of so many standard errors hold."""
        said = self.said if len(self.said) > FEW_ROWS else on_host(self.said)
        inflation = skewness_inflation(on_host(skewness(said, sizes)), quantile)
        return (inflation**2 - 1) * np.asarray(on_host(standard_error(said[:, :, None], sizes))[:, 0] ** 2)

"""Groups of draws: what each says, how they combine, and the errors and intervals that follow."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ._types import Array, Indices
from .neighbourhood import Factor
from .uncertainty.jackknife import skewness, skewness_inflation, standard_error, t_quantile


@dataclass(frozen=True, eq=False)
class Groups:
    """What each independent group of draws says of the perturbed features; the source of all standard errors."""

    pseudo: Array
    """(r, g, f) pseudo-values: see `uncertainty.jackknife`"""
    sizes: Array
    """(r, g) draws in each group; 0 where a row stopped before the group had its turn"""
    resolution: Array
    """(r, f) one draw's share of the spread, for designs whose groups can agree by construction; else 0"""
    row_keys: Indices | None
    """(r,) positions that key each row's own draws; None where all rows share them"""

    @property
    def degrees_of_freedom(self) -> Array:
        """(r,) groups drawn, less one."""
        return (self.sizes > 0).sum(axis=1) - 1.0

    @cached_property
    def standard_error(self) -> Array:
        """(r, f) jackknife over the groups, never below what the design can resolve.

        Scrambled nets count the points on each side of a step almost alike, so groups may agree and all be off
        by one draw. An error below one draw's share is raised to it; where groups agree still better than
        that, to two and a half shares: somewhat more than one of eight nets off by one draw would show.
        """
        error = standard_error(self.pseudo, self.sizes)
        return np.where(error < self.resolution / 4, 2.5 * self.resolution, np.maximum(error, self.resolution))

    def half_width(self, values: Array, factor: Factor, miss: float) -> Array:
        """(r, f) half-widths of intervals around slopes (r, f) that each miss with probability `miss`.

        Student's t times the standard error, widened along the slope itself where the groups are skewed: that
        is the direction in which rare large terms pull.
        """
        quantile = t_quantile(self.degrees_of_freedom, 1 - miss / 2)
        slope = factor.whiten(values)
        size = np.linalg.norm(slope, axis=1, keepdims=True)
        along = np.divide(slope, size, out=np.zeros_like(slope), where=size > 0)
        said = (self.pseudo @ factor.steps(along)[:, :, None])[:, :, 0]  # (Lᵀw)·v = w·(Lv)
        inflation = skewness_inflation(skewness(said, self.sizes), quantile)
        extra = (inflation**2 - 1)[:, None] * standard_error(said[:, :, None], self.sizes) ** 2
        return quantile[:, None] * np.sqrt(self.standard_error**2 + extra * factor.unwhiten(along) ** 2)

    def fidelity(self, values: Array, variance: Array, errors: Array, factor: Factor) -> Array:
        """wᵀΣw / Var f in [0, 1]; what noise adds to wᵀΣw is taken off. A constant model is followed perfectly."""
        noise = factor.whiten(errors)
        if not factor.is_diagonal:
            noise = standard_error(factor.whiten(self.pseudo), self.sizes)
        explained = (factor.whiten(values) ** 2).sum(axis=1) - (noise**2).sum(axis=1)
        share = np.divide(explained, variance, out=np.where(np.isnan(variance), np.nan, 1.0), where=variance > 0)
        return np.clip(share, 0.0, 1.0)

    def rows(self, kept: Indices) -> Groups:
        """Groups of some of the rows."""
        keys = None if self.row_keys is None else self.row_keys[kept]
        return Groups(self.pseudo[kept], self.sizes[kept], self.resolution[kept], keys)

    def times(self, scale: float) -> Groups:
        """Groups of a multiple of the model."""
        return dataclasses.replace(self, pseudo=scale * self.pseudo, resolution=abs(scale) * self.resolution)

    def plus(self, other: Groups) -> Groups | None:
        """Groups of a sum of models, or None where the two stand on different draws."""
        keys, others = self.row_keys, other.row_keys
        same_keys = others is None if keys is None else others is not None and np.array_equal(keys, others)
        if not (same_keys and np.array_equal(self.sizes, other.sizes)):
            return None
        return Groups(self.pseudo + other.pseudo, self.sizes, self.resolution + other.resolution, keys)

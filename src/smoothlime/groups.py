"""Groups of draws: what each says, how they combine, and the errors and intervals that follow."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ._arrays import beside, library, on_host
from ._types import Array, Indices
from .models.gradient_sums import Elsewhere
from .neighbourhood import Factor
from .uncertainty.jackknife import once, ratio, skewness, skewness_inflation, standard_error, t_quantile


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What the errors of all slopes of a row come to, standardised, (r,) each."""

    radius: Array
    """L2 norm of the half-widths of intervals"""
    size: Array
    """L2 norm of the slopes"""
    fidelity: Array
    """wᵀΣw / Var f in [0, 1]; what noise adds to wᵀΣw is taken off. A constant model is followed perfectly"""


@dataclass(frozen=True, eq=False)
class Groups:
    """What each independent group of draws says of the perturbed features; the source of all standard errors."""

    said: Array | Elsewhere
    """(r, g, f) pseudo-values (see `uncertainty.jackknife`), here or where the model is"""
    sizes: Array
    """(r, g) draws in each group; 0 where a row stopped before the group had its turn"""
    resolution: Array
    """(r, f) one draw's share of the spread, for designs whose groups can agree by construction; else 0"""
    row_keys: Indices | None
    """(r,) positions that key each row's own draws; None where all rows share them"""
    freedom: Array | None = None
    """(r,) degrees of freedom that are left where few draws carry the model's variance; None for what groups say"""

    @cached_property
    def pseudo(self) -> Array:
        """(r, g, f) pseudo-values."""
        return self.said if isinstance(self.said, np.ndarray) else self.said.fetch()

    @property
    def degrees_of_freedom(self) -> Array:
        """(r,) groups drawn, less one; fewer where fewer draws decide."""
        by_groups = np.broadcast_to((once(self.sizes) > 0).sum(axis=1) - 1.0, len(self.sizes))
        return by_groups if self.freedom is None else np.minimum(by_groups, self.freedom)

    @property
    def standard_error(self) -> Array:
        """(r, f) jackknife over the groups, never below what the design can resolve."""
        return on_host(self._errors)

    @cached_property
    def _errors(self) -> Any:
        """The same, where groups are.

        Scrambled nets count the points on each side of a step almost alike, so groups may agree and all be off
        by one draw. An error below one draw's share is raised to it; where groups agree still better than
        that, to two and a half shares: somewhat more than one of eight nets off by one draw would show.
        """
        numbers = self.said if isinstance(self.said, np.ndarray) else self.said.numbers
        error = standard_error(numbers, self.sizes)
        xp, floor = library(error), beside(error, self.resolution)
        return xp.where(error < floor / 4, 2.5 * floor, xp.maximum(error, floor))

    def half_width(self, values: Array, factor: Factor, miss: float) -> Array:
        """(r, f) half-widths of intervals around slopes (r, f) that each miss with probability `miss`.

        Student's t times the standard error, widened along the slope itself where the groups are skewed: that
        is the direction in which rare large terms pull.
        """
        numbers, placed = self._beside(factor)
        return on_host(self._reach(beside(numbers, values), numbers, placed, miss))

    def measure(self, values: Array, variance: Array, factor: Factor, miss: float) -> Measured:
        """What the errors of slopes (r, f) come to, given the model's variance (r,) over the neighbourhood."""
        numbers, placed = self._beside(factor)
        slopes, errors = beside(numbers, values), self._errors_beside(numbers)
        xp, std = library(numbers), beside(numbers, factor.std) if not factor.is_diagonal else placed.lower

        def length(terms: Any) -> Any:
            return xp.sqrt((terms * terms).sum(axis=1))

        noise = placed.whiten(errors) if factor.is_diagonal else standard_error(factor.whiten(self.pseudo), self.sizes)
        explained = on_host(length(placed.whiten(slopes)) ** 2 - length(noise) ** 2)
        known = np.where(np.isnan(variance), np.nan, 1.0)
        share = np.divide(explained, variance, out=known, where=variance > 0)
        return Measured(
            radius=on_host(length(self._reach(slopes, numbers, placed, miss) * std)),
            size=on_host(length(slopes * std)),
            fidelity=np.clip(share, 0.0, 1.0),
        )

    def _beside(self, factor: Factor) -> tuple[Any, Factor]:
        """What groups say as an array or a tensor, and the factor beside it; on the host where Σ is full."""
        numbers = self.said if isinstance(self.said, np.ndarray) else self.said.numbers
        if not factor.is_diagonal:
            return on_host(numbers), factor
        return numbers, dataclasses.replace(factor, lower=beside(numbers, factor.lower))

    def _errors_beside(self, numbers: Any) -> Any:
        """Errors where the numbers are now: these may have been fetched since."""
        errors = self._errors
        if isinstance(numbers, np.ndarray) or isinstance(errors, np.ndarray):
            return beside(numbers, on_host(errors))
        return errors.to(numbers.device)

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and sent elsewhere: no more than the fields, as other things may lie on a device."""
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}

    def _reach(self, values: Any, numbers: Any, factor: Factor, miss: float) -> Any:
        """Half-widths, made where the numbers are."""
        xp = library(numbers)
        quantile = beside(numbers, t_quantile(self.degrees_of_freedom, 1 - miss / 2))
        slope = factor.whiten(values)
        along = ratio(slope, xp.sqrt((slope * slope).sum(axis=1))[:, None])
        said = (numbers @ factor.steps(along)[:, :, None])[:, :, 0]  # (Lᵀw)·v = w·(Lv)
        inflation = skewness_inflation(skewness(said, self.sizes), quantile)
        extra = (inflation**2 - 1)[:, None] * standard_error(said[:, :, None], self.sizes) ** 2
        errors = self._errors_beside(numbers)
        return quantile[:, None] * xp.sqrt(errors**2 + extra * factor.unwhiten(along) ** 2)

    def rows(self, kept: Indices) -> Groups:
        """Groups of some of the rows."""
        keys = None if self.row_keys is None else self.row_keys[kept]
        freedom = None if self.freedom is None else self.freedom[kept]
        return Groups(self.pseudo[kept], self.sizes[kept], self.resolution[kept], keys, freedom)

    def times(self, scale: float) -> Groups:
        """Groups of a multiple of the model."""
        return dataclasses.replace(self, said=scale * self.pseudo, resolution=abs(scale) * self.resolution)

    def plus(self, other: Groups) -> Groups | None:
        """Groups of a sum of models, or None where the two stand on different draws."""
        keys, others = self.row_keys, other.row_keys
        same_keys = others is None if keys is None else others is not None and np.array_equal(keys, others)
        if not (same_keys and np.array_equal(self.sizes, other.sizes)):
            return None
        freedom = np.minimum(self.degrees_of_freedom, other.degrees_of_freedom)
        return Groups(self.pseudo + other.pseudo, self.sizes, self.resolution + other.resolution, keys, freedom)

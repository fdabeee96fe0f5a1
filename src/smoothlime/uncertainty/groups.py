"""Groups of draws: what each says, how they combine, and the errors and intervals that follow."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from .._core.types import Array, Indices
from .._core.xp import beside, library, on_host
from ..space.neighbourhood import Factor
from .jackknife import f_quantile, standard_error, t_quantile, unbroadcast
from .norms import RowNorms

FEWEST_TOGETHER = 128
"""Draws from which on the errors of all features are bounded together: fewer say too little of how they go together."""

OVER_GRADIENTS = 5.0
"""Standard errors, √(2/n) as of a line, by which the variance must exceed the mean square of gradients to break it."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What the errors of all slopes of a row come to, standardised, (r,) each."""

    radius: Array
    """L2 norm of the error, at most: see `measure`"""
    size: Array
    """L2 norm of the slopes"""
    fidelity: Array
    """wᵀΣw / Var f in [0, 1]; what noise adds to wᵀΣw is taken off. A constant model is followed perfectly"""
    explained: Array
    """wᵀΣw, noise and all"""
    noise: Array
    """Squared standard errors of slopes per draw, added up"""


class DevicePseudovalues(Protocol):
    """What each group of draws says, (r, g, f), kept where the model is until somebody wants to see it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows × targets, groups, features."""
        ...

    @property
    def numbers(self) -> Any:
        """A tensor of it, where it is."""
        ...

    @property
    def spread(self) -> Any:
        """The standard error of their mean, (r, f), as a tensor or an array."""
        ...

    def take_norms(self, slopes: Any, factor: Factor) -> RowNorms | None:
        """Of their mean and its errors, where they have been made ahead of the first time that somebody asks."""
        ...

    def fetch(self) -> Array:
        """All of it, on the host."""
        ...


@dataclass(frozen=True, eq=False)
class Groups:
    """What each independent group of draws says of the perturbed features; the source of all standard errors."""

    pseudovalues: Array | DevicePseudovalues
    """(r, g, f) pseudo-values (see `uncertainty.jackknife`), here or where the model is"""
    sizes: Array
    """(r, g) draws in each group; 0 where a row stopped before the group had its turn"""
    resolution: Array
    """(r, f) least standard errors, for designs whose groups can agree by construction: see `resolution`; else 0"""
    row_keys: Indices | None
    """(r,) positions that key each row's own draws; None where all rows share them"""
    freedom: Array | None = None
    """(r,) degrees of freedom that are left where few draws carry the model's variance; None for what groups say"""

    @cached_property
    def pseudo(self) -> Array:
        """(r, g, f) pseudo-values."""
        return self.pseudovalues if isinstance(self.pseudovalues, np.ndarray) else self.pseudovalues.fetch()

    @property
    def degrees_of_freedom(self) -> Array:
        """(r,) groups drawn, less one; fewer where fewer draws decide."""
        by_groups = np.broadcast_to((unbroadcast(self.sizes) > 0).sum(axis=1) - 1.0, len(self.sizes))
        return by_groups if self.freedom is None else np.minimum(by_groups, self.freedom)

    @property
    def standard_error(self) -> Array:
        """(r, f) jackknife over the groups, never below what the design can resolve."""
        return on_host(self._errors)

    @cached_property
    def _errors(self) -> Any:
        """The same, where groups are."""
        error = (
            standard_error(self.pseudovalues, self.sizes)
            if isinstance(self.pseudovalues, np.ndarray)
            else self.pseudovalues.spread
        )
        if self._is_unraised:
            return error
        return library(error).maximum(error, beside(error, self.resolution))

    def half_width(self, values: Array, factor: Factor, miss: float) -> Array:
        """(r, f) half-widths of intervals around slopes (r, f) that each miss with probability `miss`.

        Student's t times the standard error, widened where the groups are skewed: see `Lengths`.
        """
        quantile = t_quantile(self.degrees_of_freedom, 1 - miss / 2)
        return self._norms(values, factor).half_width(quantile, self.sizes)

    def measure(self, values: Any, variance: Array, factor: Factor, miss: float) -> Measured:
        """What the errors of slopes (r, f) come to, given the model's variance (r,) over the neighbourhood."""
        norms = self._norms(values, factor)
        explained, noise, size, trace, norm = on_host(norms.squares)
        known = np.where(np.isnan(variance), np.nan, 1.0)
        share = np.divide(explained - noise, variance, out=known, where=variance > 0)
        quantile = t_quantile(self.degrees_of_freedom, 1 - miss / 2)
        radius = norms.radius(quantile, self.sizes)
        if np.atleast_2d(self.sizes)[:1].sum() >= FEWEST_TOGETHER:
            radius = self._together(radius / quantile, trace, norm, miss)
        return Measured(radius, np.sqrt(size), np.clip(share, 0.0, 1.0), explained, noise)

    def unseen_by_gradients(self, measured: Measured, variance: Array, factor: Factor) -> Array:
        """(r,) how far mean gradients may be off where values vary more than gradients allow; 0 where they do not.

        Var f ≤ E‖Lᵀ∇f‖² (Poincaré). Draws whose values break that have jumped over a steep place, in which none of them
        lies. Slopes are no longer than the standard deviation of f. Not for draws in pairs, whose gradients cancel.
        """
        n = unbroadcast(np.atleast_2d(self.sizes)).sum(axis=1)
        spread = (n[:, None] * self.resolution) @ factor.std  # no less than the length of all standard deviations
        energy = measured.explained + np.maximum(n * measured.noise, spread**2)
        is_broken = variance > (1 + OVER_GRADIENTS * np.sqrt(2 / n)) * energy
        return np.where(is_broken, np.sqrt(np.where(is_broken, variance, 0.0)) + measured.size, 0.0)

    def _together(self, length: Array, trace: Array, norm: Array, miss: float) -> Array:
        """Radius (r,) that an error of this length, all features together, leaves with probability `miss`.

        The squared error is a sum over directions, which scatters less than each of them: √F for as many directions as
        the errors are spread over, (tr S)² / tr S², takes the place of t; along one it is t. What skewness and the
        resolution of nets add to `length` is taken to lie along one direction.
        """
        added = np.maximum(length**2 - trace, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            directions = np.fmax((length**2 / (norm + added)) ** 2, 1.0)  # not a number where there is no error
        return length * np.sqrt(f_quantile(directions, self.degrees_of_freedom, 1 - miss))

    def _norms(self, values: Any, factor: Factor) -> RowNorms:
        """Of slopes and their errors, where groups are; on the host where Σ is full. Perhaps they are known already."""
        if isinstance(self.pseudovalues, np.ndarray) or not factor.is_diagonal:
            numbers = self.pseudo
        else:
            known, numbers = self.pseudovalues.take_norms(values, factor), self.pseudovalues.numbers
            if known is not None and self._is_unraised:
                return known
        slopes, errors = beside(numbers, values), beside(numbers, self._errors)
        return RowNorms.of(slopes, errors, numbers, self.sizes, factor)

    @property
    def _is_unraised(self) -> bool:
        """Whether errors are as groups say, by construction."""
        return not any(self.resolution.strides) and not self.resolution[:1, :1].any()

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and sent elsewhere: no more than the fields, as other things may lie on a device."""
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}

    def rows(self, kept: Indices) -> Groups:
        """Groups of some of the rows."""
        keys = None if self.row_keys is None else self.row_keys[kept]
        freedom = None if self.freedom is None else self.freedom[kept]
        return Groups(self.pseudo[kept], self.sizes[kept], self.resolution[kept], keys, freedom)

    def of_features(self, kept: Indices) -> Groups:
        """Groups of some of the features."""
        pseudo = np.ascontiguousarray(self.pseudo[..., kept])  # one layout in memory, so that sums round alike
        return dataclasses.replace(self, pseudovalues=pseudo, resolution=self.resolution[:, kept])

    def times(self, scale: float) -> Groups:
        """Groups of a multiple of the model."""
        return dataclasses.replace(self, pseudovalues=scale * self.pseudo, resolution=abs(scale) * self.resolution)

    def plus(self, other: Groups) -> Groups | None:
        """Groups of a sum of models, or None where the two stand on different draws."""
        keys, others = self.row_keys, other.row_keys
        same_keys = others is None if keys is None else others is not None and np.array_equal(keys, others)
        if not (same_keys and np.array_equal(self.sizes, other.sizes)):
            return None
        freedom = np.minimum(self.degrees_of_freedom, other.degrees_of_freedom)
        return Groups(self.pseudo + other.pseudo, self.sizes, self.resolution + other.resolution, keys, freedom)

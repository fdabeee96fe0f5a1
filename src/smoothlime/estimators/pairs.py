"""Pairs of features, and what is known of their second slopes: what estimators of them have in common."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Flags, Indices
from ..space.neighbourhood import Factor
from ..uncertainty.jackknife import clear_skewness, mean_of_groups, standard_error

DESIGNS = ("iid", "antithetic", "orthogonal", "sobol")
"""Draws that are not rotated: pairs are those of features, not of directions."""

FIRST_LOOK = 1_024
"""Draws before the first look: with 256 gradients, intervals held 90% where a model is saturated."""

COPIES = 5
"""Times what sums hold that is needed to make second slopes of them."""


@dataclass(frozen=True, slots=True, eq=False)
class SecondSlopes:
    """Second slopes of p pairs of features, (r, p) each; NaN where one of a pair does not move."""

    values: Array
    """Per unit of each of the two"""
    standard_error: Array
    skewness: Array
    """Squared, of what groups of draws say; 0 where it may be chance"""
    linear: Array
    """(r,) how much of the variance slopes explain, noise taken off"""
    quadratic: Array
    """(r,) and how much second slopes; NaN where Σ is full and not all pairs are there"""
    variance: Array
    """(r,) of the model over the neighbourhood"""

    def empty(self, rows: int) -> SecondSlopes:
        """Room for as many pairs around rows."""
        wide, one = (rows, self.values.shape[1]), rows
        return SecondSlopes(*(np.full(wide, np.nan) for _ in range(3)), *(np.full(one, np.nan) for _ in range(3)))

    def fill(self, where: Any, rows: Any, other: SecondSlopes) -> None:
        """Copy `rows` of others to positions `where`."""
        for each in dataclasses.fields(self):
            getattr(self, each.name)[where] = getattr(other, each.name)[rows]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of features (p, 2), and those of them that move around some rows."""

    moving: Indices
    """Positions of the pairs whose features both move"""
    first: Indices
    """Of these, positions among the features that move"""
    second: Indices
    count: int
    """Of all pairs"""
    f: int
    """Features that move"""

    @classmethod
    def of(cls, pairs: Indices, factor: Factor) -> Pairs:
        """As they are seen from the features of a factor."""
        place = np.full(factor.d, -1)
        place[factor.free] = np.arange(len(factor.free))
        local = place[pairs]
        moving = np.flatnonzero((local >= 0).all(axis=1))
        return cls(moving, local[moving, 0], local[moving, 1], len(pairs), len(factor.free))

    @property
    def is_complete(self) -> bool:
        """Whether they are all there are."""
        return len(self.moving) == self.f * (self.f + 1) // 2

    @property
    def is_bend(self) -> Flags:
        """(p',) whether a pair is one feature twice."""
        return self.first == self.second

    @property
    def weights(self) -> Array:
        """(p',) of squares in ½‖h‖²: ½ of bends, 1 of others, which stand there twice."""
        return np.where(self.is_bend, 0.5, 1.0)

    def all_of_them(self) -> Pairs:
        """Every pair of the features that move."""
        first, second = np.triu_indices(self.f)
        return Pairs(np.arange(len(first)), first, second, len(first), self.f)

    def spread(self, numbers: Array) -> Array:
        """Numbers (r, p') in the places of all pairs, NaN where one of a pair does not move."""
        if len(self.moving) == self.count:
            return numbers
        found = np.full((len(numbers), self.count), np.nan)
        found[:, self.moving] = numbers
        return found


def combined(pseudo: Array, sizes: Array) -> tuple[Array, Array, Array]:
    """Means (r, p) of what groups say, (r, g, p), their standard errors, and squared skewness."""
    if not pseudo.shape[2]:
        none = np.zeros((len(pseudo), 0))
        return none, none, none
    return mean_of_groups(pseudo, sizes), standard_error(pseudo, sizes), clear_skewness(pseudo, sizes)


def explained_by_line(slopes: Array, pseudo: Array, sizes: Array) -> Array:
    """‖v‖² (r,) of slopes per draw; what noise adds to it is taken off."""
    return np.asarray((slopes**2).sum(axis=1) - (standard_error(pseudo, sizes) ** 2).sum(axis=1))


def explained_by_pairs(pairs: Pairs, h: Array, error: Array) -> Array:
    """½‖h‖² (r,) of the pairs there are, in units of draws; what noise adds to squares is taken off."""
    return np.asarray((h**2 - error**2) @ pairs.weights)


def second_slopes_of(
    pairs: Pairs, values: Array, error: Array, skewness: Array, linear: Array, quadratic: Array, variance: Array
) -> SecondSlopes:
    """In the places of all pairs."""
    return SecondSlopes(pairs.spread(values), pairs.spread(error), pairs.spread(skewness), linear, quadratic, variance)

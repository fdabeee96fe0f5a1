"""The mean gradient and the slope that values show, of the same draws, combined into one estimate.

For normal z, E[∂f/∂zᵢ] = E[zᵢ(f − c)] for every c (Stein, 1981): both sides estimate the slope, and their difference
estimates zero. Along the few directions in which a model bends most, values are often the better witness (a saturated
classifier has its gradient in few of the draws); along all others the gradient is. So the difference is added, axis by
axis, with the weight that would have made the *other* groups of draws agree best.
"""

from __future__ import annotations

import numpy as np

from .._types import Array
from ..uncertainty.jackknife import ratio

SKEWED = 1.0, 2.0
"""Skewness of what groups say, from which on values are trusted less, and not at all: where few draws hold most of the
gradient, weights that other groups agree best with are wrong for just these draws."""


def combined(gradients: Array, slopes: Array) -> Array:
    """What each group says, (r, g, d), by its mean gradient and its mean of z·(f − F), in units and axes of draws."""
    away = slopes - gradients
    centred, centred_away = (each - each.mean(axis=1, keepdims=True) for each in (gradients, away))
    products, squares = centred * centred_away, centred_away * centred_away
    weight = -ratio(_without_each(products), _without_each(squares)).clip(-1.0, 0.0)
    return gradients + _trust(centred) * weight * away


def _without_each(terms: Array) -> Array:
    """Sums over all groups but each."""
    return terms.sum(axis=1, keepdims=True) - terms


def _trust(centred: Array) -> Array:
    """From 1 where groups scatter evenly to 0 where they are skewed, (r, 1, d)."""
    scaled = ratio(centred, np.abs(centred).max(axis=1, keepdims=True))  # powers of tiny numbers vanish
    squares = scaled * scaled
    second, third = (each.mean(axis=1, keepdims=True) for each in (squares, squares * scaled))
    skewness = np.abs(ratio(third, second**1.5))
    full, none = SKEWED
    return np.clip((none - skewness) / (none - full), 0.0, 1.0)

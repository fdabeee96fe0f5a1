"""The mean gradient and the slope that values show, of the same draws, combined into one estimate.

For normal z, E[∂f/∂zᵢ] = E[zᵢ(f − c)] for every c (Stein, 1981): both sides estimate the slope, and their difference
estimates zero. Along the few directions in which a model bends most, values are often the better witness (a saturated
classifier has its gradient in few of the draws); along all others the gradient is. So the difference is added, axis by
axis, with the weight that would have made the *other* groups of draws agree best.

The outputs of a row have their weights in common. Combined slopes are then as linear in the output as slopes are by
themselves: those of classes whose probabilities add up to one add up to zero.
"""

from __future__ import annotations

import numpy as np

from .._core.types import Array, Flags
from ..uncertainty.jackknife import ratio
from .protocol import leave_one_out

SKEWED = 1.0, 2.0
"""Skewness of what groups say, from which on values are trusted less, and not at all: where few draws hold most of the
gradient, weights that other groups agree best with are wrong for just these draws."""

APART = 4.0, 6.0
"""The same for how far values and gradients are apart, in standard errors: where a model jumps, or its values lose the
digits that its gradients have, the difference does not estimate zero."""

TORN, LARGE = 6.0, 0.1
"""And from which on that is a reason to look closer: in standard errors, if it is also a share of the model's standard
deviation. Models without jumps hardly ever reach both; those that jump do with enough draws."""

CHANCE = 1e-3
"""Share of calls in which chance alone may be a reason to look closer: rows may be many, and looking has its price."""


def combine_gradients_with_values(gradients: Array, slopes: Array, outputs: int = 1) -> Array:
    """What each group says, (r, g, d), by its mean gradient and its mean of z·(f − F), in units and axes of draws.

    Rows come with their outputs: each `outputs` of them belong together.
    """
    r, g, d = gradients.shape
    means, away = gradients.reshape(-1, outputs, g, d), (slopes - gradients).reshape(-1, outputs, g, d)
    centred, centred_away = (each - _mean(each) for each in (means, away))
    squares = centred_away * centred_away
    size = squares.sum(axis=(2, 3), keepdims=True)  # outputs may be of any size: each has the same say
    products, squares = (ratio(each, size).sum(axis=1) for each in (centred * centred_away, squares))
    others = leave_one_out(squares)
    # gradients whose squares are no numbers leave none here: then they stand by themselves
    weight = np.where(others > 0, -ratio(leave_one_out(products), others).clip(-1.0, 0.0), 0.0)
    trust = np.minimum(_fading(_skewness(centred), SKEWED), _fading(_distance(away, centred_away), APART)).min(axis=1)
    return (means + (trust * weight)[:, None] * away).reshape(r, g, d)


def are_inconsistent(gradients: Array, slopes: Array, spread: Array) -> Flags:
    """(r,) where values and gradients, as in `combined`, are so far apart along an axis that one of them is wrong.

    In units of draws no slope is larger than the model's standard deviation, `spread` (r,).
    """
    mean = (_mean(slopes) - _mean(gradients))[:, 0]
    is_large = (np.abs(mean) > LARGE * spread[:, None]) & (spread > 0)[:, None]
    inconsistent: Flags = np.asarray(is_large.any(axis=1))  # few rows, if any: the others need no closer look
    if inconsistent.any():
        from scipy.special import stdtrit

        away = (slopes[inconsistent] - gradients[inconsistent])[:, None]
        distance = _distance(away, away - _mean(away))[:, 0, 0]
        by_chance = stdtrit(gradients.shape[1] - 1, 1 - CHANCE / (2 * mean.size))  # of the farthest of so many
        inconsistent[inconsistent] = ((distance > max(TORN, by_chance)) & is_large[inconsistent]).any(axis=1)
    return inconsistent


def _mean(said: Array) -> Array:
    """Mean (..., 1, d) of what groups say, (..., g, d): a product takes less time than a sum over short stretches."""
    g = said.shape[-2]
    return (np.ones((1, g)) @ said) / g


def _fading(amount: Array, between: tuple[float, float]) -> Array:
    """From 1 below the first of two numbers to 0 beyond the second."""
    full, none = between
    return np.clip((none - amount) / (none - full), 0.0, 1.0)


def _skewness(centred: Array) -> Array:
    """Of what the groups say, (r, t, 1, d)."""
    scaled = ratio(centred, np.abs(centred).max(axis=2, keepdims=True))  # powers of tiny numbers vanish
    squares = scaled * scaled
    second, third = _mean(squares), _mean(squares * scaled)
    return np.abs(ratio(third, second**1.5))


def _distance(away: Array, centred: Array) -> Array:
    """Of their mean from 0, in its standard errors, (r, t, 1, d)."""
    g = away.shape[2]
    scale = np.abs(away).max(axis=2, keepdims=True)
    error = np.sqrt(_mean(ratio(centred, scale) ** 2) / (g - 1))
    mean = np.abs(_mean(ratio(away, scale)))
    return np.where(error > 0, mean / np.where(error > 0, error, 1.0), np.where(mean > 0, np.inf, 0.0))

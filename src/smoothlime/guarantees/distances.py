"""How far explanations of two rows can be apart, by the distance of the rows; and back again."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt

import numpy as np

from .._core.types import Array
from ..uncertainty.bounds import density

FLAT = 64.0
"""Standard deviations after which bounds grow no more, but for rounding."""

ENDLESS = 1e150
"""A distance for which what is allowed is allowed at any."""

MOST_STEPS, LAST_DIGITS = 1_200, 1e-13
"""Steps that a distance is found in, of which a dozen are the rule, and the share of it that stopping gives away."""


def range_distance(rho: Array) -> Array:
    """D(ρ) = 2(φ(t − h) − φ(t + h)) with h = ρ/2 and t tanh(t h) = h: the largest change for outputs of range 1."""
    h = np.asarray(rho, dtype=np.float64) / 2
    near_zero = np.maximum(h, 1e-6)  # where t is 1
    high = np.hypot(1.0, near_zero)
    for _ in range(8):  # Newton's method for t tanh(t h)/h = 1; two or three more than it takes
        slope = np.tanh(high * near_zero)
        high -= (high * slope - near_zero) / (slope + high * near_zero * (1 - slope**2))
    # t is where the difference is largest, so that an error in t counts to second order only
    apart = density(high - h) - density(high + h)
    near = 2 * density(high) * np.exp(-(h**2) / 2) * np.sinh(np.minimum(high * h, 9.0))  # without cancellation
    return 2 * np.where(h < 1.0, near, apart)


def gradient_distance(rho: Array) -> Array:
    """2(2Φ(ρ/2) − 1): the largest change for gradients of length at most 1."""
    from scipy.special import erf

    return 2 * np.asarray(erf(np.asarray(rho) / (2 * sqrt(2))))


def farthest_within(bound: Callable[[Array], Array], allowed: Array, growth: float) -> Array:
    """(r,) the largest ρ at which a bound that grows is within what is allowed; short of it by 1e-13 of it or less.

    Beyond FLAT the bound grows by no more than `growth` for each unit.
    """
    high = np.full(allowed.shape, FLAT)
    if growth:
        high = np.maximum(high, np.minimum(allowed / growth, ENDLESS))
    is_endless = bound(np.full(allowed.shape, ENDLESS)) <= allowed
    allowed = np.minimum(allowed, np.finfo(float).max)

    def off(rho: Array) -> Array:
        return bound(rho) - allowed

    # a and b lie on either side; c is where one of them was before
    a, b = np.zeros(allowed.shape), high
    off_a, off_b = off(a), off(b)
    is_none = off_a > 0
    share = np.full(allowed.shape, 0.5)
    for _ in range(MOST_STEPS):
        middle = a + share * (b - a)
        off_middle = off(middle)
        is_same = (off_middle <= 0) == (off_a <= 0)
        c, off_c = np.where(is_same, a, b), np.where(is_same, off_a, off_b)
        b, off_b = np.where(is_same, b, a), np.where(is_same, off_b, off_a)
        a, off_a = middle, off_middle
        width = np.abs(b - a)
        least = LAST_DIGITS / 2 * np.maximum(a, b)
        if (width <= 2 * least).all():
            break
        share = _inverse(a, b, c, off_a, off_b, off_c)
        edge = np.divide(least, width, out=np.full(width.shape, 0.5), where=width > 2 * least)
        share = np.clip(share, edge, 1 - edge)
    fits = np.where(off_a <= 0, a, b)
    return np.where(is_endless, inf, np.where(is_none, 0.0, fits))


def _inverse(a: Array, b: Array, c: Array, off_a: Array, off_b: Array, off_c: Array) -> Array:
    """Where a parabola through all three, lying on its side, meets 0 between a and b; half-way where it may not.

    Chandrupatla (1997), A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        place, height = (a - b) / (c - b), (off_a - off_b) / (off_c - off_b)
        is_tame = (height**2 < place) & ((1 - height) ** 2 < 1 - place)
        first = off_a / (off_b - off_a) * (off_c / (off_b - off_c))
        found = first + (c - a) / (b - a) * (off_a / (off_c - off_a)) * (off_b / (off_c - off_b))
    return np.where(is_tame & np.isfinite(found), found, 0.5)

"""Finite-sample error bounds: no limit theorem, only what is assumed of the model.

All errors are L2 norms of slopes per standard normal draw (diagonal Σ: standardised slopes). `delta` is the chance
that a bound fails. Draws must be iid. The statements and their proofs are in docs/theory/bounds.md.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import ceil, log, pi, sqrt
from typing import Any

import numpy as np

from .._core.types import Array, Indices

KAPPA = 1.61
"""t·y is sub-Gaussian with variance proxy KAPPA·b² for t ~ N(0, 1) and any |y| ≤ b; the least such is 1.6087."""

LARGEST_TILT = 0.9
"""Largest λ of the empirical Bernstein bounds; their ψ grows without bound towards 1."""


def ball_radius(bound: float, n: float, delta: float) -> float:
    """Error of a mean of n vectors in a ball of radius `bound`: bound·√(2 ln(2/δ)/n), whatever the dimension."""
    return bound * sqrt(2 * log(2 / delta) / n)


def ball_samples(bound: float, eps: float, delta: float) -> int:
    """Draws for which `ball_radius` is at most eps."""
    return _draws(2 * (bound / eps) ** 2 * log(2 / delta))


def lipschitz_radius(lipschitz: float, d: int, n: float, delta: float) -> float:
    """Error of a mean gradient that is `lipschitz` in the draws: lipschitz·(√d + √(2 ln(1/δ)))/√n."""
    return lipschitz * (sqrt(d) + sqrt(2 * log(1 / delta))) / sqrt(n)


def lipschitz_samples(lipschitz: float, d: int, eps: float, delta: float) -> int:
    """Draws for which `lipschitz_radius` is at most eps."""
    return _draws((lipschitz / eps) ** 2 * (sqrt(d) + sqrt(2 * log(1 / delta))) ** 2)


def stein_radius(output_range: float, d: int, n: float, delta: float) -> float:
    """Error of Stein's estimate, centred on the middle of the range: (B/2)·√(κ/n)·√(d + 2√(dt) + 2t), t = ln(1/δ)."""
    t = log(1 / delta)
    return output_range / 2 * sqrt(KAPPA / n) * sqrt(d + 2 * sqrt(d * t) + 2 * t)


def stein_samples(output_range: float, d: int, eps: float, delta: float) -> int:
    """Draws for which `stein_radius` is at most eps."""
    t = log(1 / delta)
    return _draws(KAPPA * (output_range / (2 * eps)) ** 2 * (d + 2 * sqrt(d * t) + 2 * t))


def least_squares_radius(output_range: float, d: int, n: float, delta: float) -> float:
    """Error of least squares with intercept, before seeing any draw; infinite while n is too small to say.

    Valid but loose: `stein_radius` plans better, and after a run the distance to a certified estimate is known.
    """
    level = log(6 / delta)
    lowest = (sqrt(n - 1) - sqrt(d) - sqrt(2 * level)) / sqrt(n) if n > 1 else 0.0
    if lowest <= 0:
        return float("inf")
    eta = (sqrt(d) + sqrt(2 * level)) / sqrt(n)
    tau = 2 * sqrt(level / n) + 2 * level / n
    across = 0.0 if d == 1 else (1 + tau) * (sqrt(d - 1) + sqrt(2 * level)) ** 2 / n
    omega = sqrt(tau**2 + across)
    mean = sqrt(2 / pi)
    return output_range / 2 * (sqrt(KAPPA) * eta + mean * omega + eta * (1 + mean * eta)) / lowest**2


def least_squares_samples(output_range: float, d: int, eps: float, delta: float) -> int:
    """Fewest draws for which `least_squares_radius` is at most eps; it falls with n, so bisection finds them."""
    high = 2
    while least_squares_radius(output_range, d, high, delta) > eps:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if least_squares_radius(output_range, d, middle, delta) > eps else (low, middle)
    return high


def _draws(needed: float) -> int:
    """A number of draws that is at least `needed`, and not none at all."""
    return max(1, ceil(needed))


def scalar_tilt(tilt: Array) -> Array:
    """ψ_E(λ) = −ln(1 − λ) − λ: exp(λξ − ψ_E(λ)ξ²) ≤ 1 + λξ for ξ ≥ −1 (Fan, Grama and Liu, 2015)."""
    return -np.log1p(-tilt) - tilt


def vector_tilt(tilt: Array) -> Array:
    """ψ_V(λ) = ln(e^λ − 2λ) − ln(1 − λ), the same for vectors of length at most 1."""
    return np.log(np.exp(tilt) - 2 * tilt) - np.log1p(-tilt)


def best_tilt(level: float, reach: Array, n: float, variance: Array) -> Array:
    """The λ that would be best if the pilot's variance were the truth; any λ fixed before the draws is valid."""
    with np.errstate(divide="ignore"):
        return np.minimum(LARGEST_TILT, np.sqrt(2 * level * reach**2 / (n * variance)))


def vector_radius(reach: Array, variance: Array, squares: Array, n: float, delta: float) -> Array:
    """Error of a mean of n vectors, none further than `reach` from a fixed middle: empirical Bernstein.

    `squares` is the sum of their squared distances from it; `variance` what was expected of their mean. Rows where
    nothing can be away from the middle have no error.
    """
    level = log(2 / delta)
    is_flat = reach <= 0
    farthest = np.where(is_flat, 1.0, reach)
    tilt = best_tilt(level, farthest, n, variance)
    found = (farthest * level + vector_tilt(tilt) * squares / farthest) / (tilt * n)
    return np.where(is_flat, 0.0, found)


def clipping_bias(level: float, offset: Array, slope: Array) -> Array:
    """Largest shift of E[t·r] when t·r is clipped at ±level·(offset + slope·level), for t ~ N(0, 1).

    r is the residual of a bounded model from a line with slope of length `slope`, and the line's middle is at most
    `offset` away from either end of the model's range: |r| ≤ offset + slope·|u| for some u ~ N(0, 1).
    """
    from scipy.special import ndtr

    at, tail = density(level), ndtr(-level)
    return 2 * offset * (at - level * tail) + 2 * slope * (level * at + (1 - level**2) * tail)


def density(t: Any) -> Any:
    """φ(t), of the standard normal distribution."""
    return np.exp(-(t**2) / 2) / sqrt(2 * pi)


@dataclass(frozen=True, slots=True, eq=False)
class JumpBounds:
    """What jumps of trees, per unit of each feature, can come to at all, and how well their mean is known."""

    slopes: Array
    """(r, f) largest size of the jumps of what is explained"""
    peaks: Array
    """(r, f) the same for outputs that vary by 1 at all"""
    controls: Array
    """(r, f) and of the control, which has mean 0"""
    off: Array
    """(r,) how far mean jumps may be from the slopes, L2 and standardised: what is cut off, and rounding"""
    off_of_control: Array
    """(r,) how far the mean of the control may be from 0"""

    def of_features(self, kept: Indices) -> JumpBounds:
        """The same for some of the features."""
        of_each = {name: getattr(self, name)[..., kept] for name in ("slopes", "peaks", "controls")}
        return dataclasses.replace(self, **of_each)

"""Links of generalised linear models: g, its mean, slope and curvature over N(m, τ²), and what a line explains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, pi, sqrt

import numpy as np

from .._core.types import Array

QUADRATURE = 1e-15
"""Absolute error allowed to a mean slope by quadrature. What is derived below is under 1e-17, nodes left out included;
rounding of the Gaussian's exponents, a few times 1e-16, comes on top."""

STEP = 3 / 8
"""Of the trapezoidal rule, an exact number. The logistic slope g' has its nearest double poles at ±iπ, the Gaussian has
none, and the rule errs by its Fourier transform at multiples of ω = 2π/STEP. Moving the path of integration across the
pole leaves its residue: for τ ≤ 1 the error is 4π/τ²·|ω − π/τ − im/τ|·φ(0)·exp((π² − m²)/(2τ²) − ωπ/τ), which is
largest at m = 0, τ = 1, where it is 2e-19 (with steps of 1/2 it was 4.7e-14), and smaller yet for τ > 1, where u is
stepped through instead of z. Gauss–Hermite rules converge ever more slowly as τ grows."""

NODES: Array = np.arange(-107.0, 108.0) * STEP
"""Up to ±40.1, beyond which g' is below 4e-18."""

NEAR: Array = NODES[np.abs(NODES) <= 9.5]
"""Beyond which the Gaussian is below 1e-20."""

WIDE = 8.0
"""τ beyond which variances are sums over the nodes of g', as those of g would be too many."""

LEAST_VARIANCE = 1e-10
"""Of wide neighbourhoods: below this, what the nodes leave out would show in the seventh digit of fidelity."""


@dataclass(frozen=True, slots=True)
class Link:
    """g and what is known of it over N(m, τ²), for arrays m and τ."""

    value: Callable[[Array], Array]
    mean: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    curvature: Callable[[Array, Array], Array]
    """E g'', the derivative of the mean slope in m; where g has kinks, with their share"""
    fidelity: Callable[[Array, Array], Array]
    """(τ·E g')²/Var g; NaN where only rounding is left"""
    off: Callable[[Array, Array, Array, Array], Array]
    """Bound on the error of E g' by quadrature, and by m and τ that are off: of (slope, τ, error of m, error of τ)"""


def _phi(z: Array) -> Array:
    return np.exp(-(z**2) / 2) / sqrt(2 * pi)


# ---- logistic


def _sigmoid(u: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(u), dtype=np.float64)


def _logistic_slope(m: Array, tau: Array) -> Array:
    """E g'(m + τz): over z where τ ≤ 1, over u where the Gaussian is the wider of the two."""
    m, tau = np.broadcast_arrays(np.asarray(m, float), np.asarray(tau, float))
    found = np.empty(m.shape)
    small = tau <= 1
    u = m[small][:, None] + tau[small][:, None] * NEAR
    found[small] = (_sigmoid(u) * _sigmoid(-u)) @ (_phi(NEAR) * STEP)
    wide = ~small
    apart = (NODES - m[wide][:, None]) / tau[wide][:, None]
    found[wide] = (_phi(apart) / tau[wide][:, None]) @ (_sigmoid(NODES) * _sigmoid(-NODES) * STEP)
    return found


def _logistic_curvature(m: Array, tau: Array) -> Array:
    """E g''(m + τz), g'' = g'·(1 − 2g): by the nodes of the mean slope, which is the wider of the two."""
    m, tau = np.broadcast_arrays(np.asarray(m, float), np.asarray(tau, float))
    found = np.empty(m.shape)
    small = tau <= 1
    u = m[small][:, None] + tau[small][:, None] * NEAR
    found[small] = (_sigmoid(u) * _sigmoid(-u) * (_sigmoid(-u) - _sigmoid(u))) @ (_phi(NEAR) * STEP)
    wide = ~small
    apart = (NODES - m[wide][:, None]) / tau[wide][:, None]
    bent = _sigmoid(NODES) * _sigmoid(-NODES) * (_sigmoid(-NODES) - _sigmoid(NODES)) * STEP
    found[wide] = (_phi(apart) / tau[wide][:, None]) @ bent
    return found


def _logistic_mean(m: Array, tau: Array) -> Array:
    """E g(m + τz); for wide Gaussians E g(u) = ∫ g'(v) P(u > v) dv, whose integrand falls off on both sides."""
    m, tau = np.broadcast_arrays(np.asarray(m, float), np.asarray(tau, float))
    found = np.empty(m.shape)
    small = tau <= 1
    found[small] = _sigmoid(m[small][:, None] + tau[small][:, None] * NEAR) @ (_phi(NEAR) * STEP)
    wide = ~small
    found[wide] = _above(m[wide], tau[wide]) @ (_sigmoid(NODES) * _sigmoid(-NODES) * STEP)
    return found


def _above(m: Array, tau: Array) -> Array:
    """P(u > v) at the nodes v."""
    from scipy.special import ndtr

    return np.asarray(ndtr((m[:, None] - NODES) / tau[:, None]), dtype=np.float64)


def _logistic_fidelity(m: Array, tau: Array) -> Array:
    """The same for m and −m: the side on which g is small keeps its digits."""
    m, tau = np.broadcast_arrays(-np.abs(np.asarray(m, float)), np.asarray(tau, float))
    found = np.ones(m.shape)
    near = (tau > 0) & (tau <= WIDE)
    if near.any():
        found[near] = _near_fidelity(m[near], tau[near])
    wide = tau > WIDE
    if wide.any():
        found[wide] = _wide_fidelity(m[wide], tau[wide])
    return np.clip(found, 0.0, 1.0)


def _near_fidelity(m: Array, tau: Array) -> Array:
    """From (g(u) − g(m))/g(m) = g(−u)·(e^(u − m) − 1), which neither saturates nor cancels."""
    finer = max(1, ceil(float(tau.max())))
    step = STEP / finer  # poles come nearer in z as τ grows
    z: Array = np.arange(-ceil(9.5 / step), ceil((9.5 + 2 * finer) / step) + 1.0) * step  # g² grows as exp(2τz)
    weights = _phi(z) * step
    moved = tau[:, None] * z
    below = _sigmoid(-(m[:, None] + moved))
    grown = below * np.expm1(moved)
    slope = ((1 + grown) * below) @ weights
    grown /= tau[:, None]
    return slope**2 / (grown**2 @ weights - (grown @ weights) ** 2)


def _wide_fidelity(m: Array, tau: Array) -> Array:
    """From E g² = ∫ 2 g(v) g'(v) P(u > v) dv, NaN where hardly anything of it lies within the nodes."""
    weights = _sigmoid(NODES) * _sigmoid(-NODES) * STEP
    above = _above(m, tau)
    variance = above @ (2 * _sigmoid(NODES) * weights) - (above @ weights) ** 2
    is_seen = variance > LEAST_VARIANCE
    share = (_logistic_slope(m, tau) * tau) ** 2
    return np.divide(share, variance, out=np.full(m.shape, np.nan), where=is_seen)


def _logistic_off(slope: Array, tau: Array, shifted: Array, widened: Array) -> Array:
    """|g⁽²⁾| ≤ g' and ≤ 0.0963; ∂E g'/∂τ = τ E g⁽³⁾, where |g⁽³⁾| ≤ g', is at most φ(0)/τ², too; no slope exceeds ¼."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        by_middle = np.fmin(slope * np.expm1(shifted), 0.0963 * shifted)
        by_width = widened * np.fmin(2 * tau * slope, 0.4 / tau**2)
    return QUADRATURE + np.minimum(by_middle + by_width, 0.25)


# ---- others


def _lognormal_mean(m: Array, tau: Array) -> Array:
    return np.exp(m + tau**2 / 2)


def _lognormal_fidelity(m: Array, tau: Array) -> Array:
    """τ²/(exp(τ²) − 1), wherever the middle is."""
    square = np.broadcast_to(tau**2, m.shape)
    with np.errstate(over="ignore"):
        return np.divide(square, np.expm1(square), out=np.ones(m.shape), where=square > 0)


def _lognormal_off(slope: Array, tau: Array, shifted: Array, widened: Array) -> Array:
    return slope * np.expm1(shifted + 2 * tau * widened)


LINKS = {
    "identity": Link(
        lambda u: u,
        lambda m, t: m,
        lambda m, t: np.ones_like(m),
        lambda m, t: np.zeros_like(m),
        lambda m, t: np.ones_like(m),
        lambda slope, t, shifted, widened: np.zeros_like(slope),
    ),
    "exponential": Link(np.exp, _lognormal_mean, _lognormal_mean, _lognormal_mean, _lognormal_fidelity, _lognormal_off),
    "logistic": Link(_sigmoid, _logistic_mean, _logistic_slope, _logistic_curvature, _logistic_fidelity, _logistic_off),
}

"""Bends of lines: what calibration and the inverse of a target's transformation make of a linear model, as links."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from .._core.types import Array
from .curves import Bend
from .links import LINKS, QUADRATURE, Link

STEEPEST = 0.399, 0.242
"""Bounds on the standard normal density, and on its slope."""


def as_link(bend: Bend) -> Link | None:
    """The link of a bend, without its scale and shift; None where it has no closed form over a Gaussian."""
    if bend.shares:
        return None
    if bend.name == "table":
        return table_link(*bend.tables[0]) if len(bend.tables) == 1 else None
    return SQUARE if bend.name == "square" else LINKS.get(bend.name)


def table_link(knots: Array, heights: Array) -> Link:
    """Straight lines between knots, flat beyond them."""
    knots, heights = np.asarray(knots, dtype=np.float64), np.asarray(heights, dtype=np.float64)
    rises = np.diff(heights) / np.diff(knots)
    bends = np.abs(np.diff(np.concatenate([[0.0], rises, [0.0]]))).sum()
    highest = float(np.abs(rises).max(initial=0.0))
    rounding = QUADRATURE * (1 + np.abs(rises).sum())

    def mean(m: Array, tau: Array) -> Array:
        """y₀ + Σ rise·∫P(u > v) dv over each piece."""
        z, width = _standardised(knots, m, tau)
        above = width * _density(z) + (np.asarray(m)[..., None] - knots) * _cumulative(-z)  # E (u − v)⁺
        return heights[0] + -np.diff(above, axis=-1) @ rises

    def slope(m: Array, tau: Array) -> Array:
        """Σ rise·P(u in the piece)."""
        z, _ = _standardised(knots, m, tau)
        return np.asarray(_between(z) @ rises)

    def curvature(m: Array, tau: Array) -> Array:
        """Σ rise·∂P(u in the piece)/∂m: what the kinks have, each with its density."""
        z, width = _standardised(knots, m, tau)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((-np.diff(_density(z), axis=-1) / width) @ rises)

    def fidelity(m: Array, tau: Array) -> Array:
        """From E (g − E g)², piece by piece."""
        z, width = _standardised(knots, m, tau)
        middle = mean(m, tau)[..., None]
        inside, density = _between(z), _density(z)
        start = heights[:-1] - middle + rises * (np.asarray(m)[..., None] - knots[:-1])  # the line's value at u = m
        step = rises * width
        flat = np.where(np.isfinite(z), z, 0.0) * density
        variance = (start**2 * inside - 2 * start * step * np.diff(density, axis=-1)).sum(axis=-1)
        variance += (step**2 * (inside - np.diff(flat, axis=-1))).sum(axis=-1)
        ends = _cumulative(z[..., 0]), _cumulative(-z[..., -1])
        variance += (heights[0] - middle[..., 0]) ** 2 * ends[0] + (heights[-1] - middle[..., 0]) ** 2 * ends[1]
        share = (slope(m, tau) * tau) ** 2
        is_seen = variance > 1e-10 * np.ptp(heights) ** 2
        found = np.divide(share, variance, out=np.full(np.shape(share), np.nan), where=is_seen)
        return np.minimum(found, 1.0)

    def off(slope: Array, tau: Array, shifted: Array, widened: Array) -> Array:
        """|∂E g'/∂m| and |∂E g'/∂τ| are at most the sum of all bends times 0.399/τ, and 0.242/τ."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            moved = bends * (STEEPEST[0] * shifted + STEEPEST[1] * widened) / tau
        return rounding + np.fmin(np.nan_to_num(moved, nan=0.0, posinf=np.inf), highest)

    return Link(lambda u: np.interp(u, knots, heights), mean, slope, curvature, fidelity, off)


def _standardised(knots: Array, m: Array, tau: Array) -> tuple[Array, Array]:
    """Knots as standard normal numbers, (..., knots), and τ beside them."""
    width = np.maximum(np.asarray(tau), np.finfo(float).tiny)[..., None]
    with np.errstate(over="ignore"):
        return (knots - np.asarray(m)[..., None]) / width, width


def _density(z: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.exp(-(z**2) / 2) / sqrt(2 * pi)


def _cumulative(z: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(ndtr(z), dtype=np.float64)


def _between(z: Array) -> Array:
    """Probabilities of the pieces between neighbours, from the side on which they keep their digits."""
    below, above = _cumulative(z), _cumulative(-z)
    return np.where(z[..., :-1] > 0, -np.diff(above, axis=-1), np.diff(below, axis=-1))


SQUARE = Link(
    np.square,
    lambda m, t: m**2 + t**2,
    lambda m, t: 2 * m + 0 * t,
    lambda m, t: np.full(np.broadcast(m, t).shape, 2.0),
    lambda m, t: np.divide(2 * m**2, 2 * m**2 + t**2, out=np.ones(np.broadcast(m, t).shape), where=(m != 0) | (t != 0)),
    lambda slope, t, shifted, widened: 2 * shifted,
)

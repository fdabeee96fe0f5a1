"""What one draw of a net can change: a floor for errors, as groups of its draws may agree and be wrong together.

A net puts almost the same number of points beyond a step into each of its groups. If all hold k of them, the height J
of the step does not show in what groups say, and their mean may be off by up to J/n. So the floor must know J. Of the
draws sorted along the coordinate that the step goes across, neighbours on either side of it differ by all of J, and
hardly any others differ at all: the largest difference, less a few typical ones, is about J. Of what is smooth, or
varies along other coordinates too, hardly anything is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.types import Array
from .._core.xp import library

TYPICAL = 5.0
"""Typical differences that the largest is less: the largest of a thousand normal ones is about four of them."""

ROUNDING = 1e-13
"""Share of a mean square below which a variance is rounding: a difference of sums is no more precise."""


def look(numbers: Any, order: Any) -> Any:
    """What is seen at some draws: Σ, Σ of squares, Σ of differences between neighbours, and their largest, (4, r, f).

    Of numbers (r, n, f) at all draws; neighbours follow each other in `order`, positions (1 or r, p, P, 1 or f).
    """
    xp = library(numbers)
    if order.shape[0] == order.shape[3] == 1:
        seen = numbers[:, order[0, :, :, 0]]
    else:
        flat = order.reshape(len(order), -1, order.shape[3])
        taken = np.take_along_axis(numbers, flat, 1) if xp is np else xp.take_along_dim(numbers, flat, 1)
        seen = taken.reshape(len(numbers), *order.shape[1:3], -1)
    seen = seen.astype(np.float64, copy=False) if xp is np else seen.double()
    apart = xp.abs(seen[:, :, 1:] - seen[:, :, :-1])
    each = (1, 2)
    return xp.stack([seen.sum(each), (seen * seen).sum(each), apart.sum(each), xp.amax(apart, each)])


def join(sums: Any, rows: Any, found: Any) -> None:
    """Add what was seen at some draws (4, ., f) around some rows to the sums (4, r, f) of all of them."""
    sums[:3, rows] += found[:3]
    sums[3, rows] = library(sums).maximum(sums[3, rows], found[3])


def resolution(sums: Array, count: Array, agreed: float, n: float) -> Array:
    """Least standard errors (r, f) of means over n draws, from sums (4, r, f) over some draws, (r,).

    One draw's share of the standard deviation; if it is more, `agreed` times what one beyond the highest step changes.
    """
    mean, square, apart = sums[:3] / count[:, None]
    variance = square - mean**2
    step = np.maximum(sums[3] - TYPICAL * apart, 0.0)
    floor = np.maximum(np.sqrt(np.maximum(variance, 0.0)), agreed * step)
    return np.where(variance > ROUNDING * square, floor, 0.0) / n

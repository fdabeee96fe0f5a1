"""What jumps around a row can come to at most, whatever is drawn: from the trees themselves, for certificates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._core.types import Array
from ...space.neighbourhood import Factor
from .format import TreeEnsemble
from .jumps import WORD, JumpPlan, precision
from .smoothing import share


@dataclass(frozen=True, slots=True, eq=False)
class AxisBounds:
    """Bounds on sums of trees along every axis, whatever the other features are."""

    ranges: Array
    """(r, k, f) how far two of them on a line can be apart"""
    low: Array
    """(r, t, f) least jump of those that are weighed for a target, by densities"""
    high: Array
    """(r, t, f) and the largest"""
    thresholds: Array
    """(r, f) how many are near x"""
    peaks: Array
    """(r, f) the largest density of a feature at one of them, given the others"""
    rounding: Array
    """(r, f) what no sum of trees along an axis is off by, as the kernel adds it up"""


def bound_axes(
    trees: TreeEnsemble, plan: JumpPlan, x: Array, factor: Factor, controls: Array, *, threads: int | None = None
) -> AxisBounds:
    """Bounds around rows x (r, d), of margins and of those weighed by controls (r, t, k)."""
    from . import bound_kernel, jump_layout  # numba, and only where it is needed

    (r, _), f, t, k = x.shape, len(factor.free), controls.shape[1], trees.k
    std = np.zeros(x.shape[1])
    std[factor.free] = factor.std
    rows = np.array(trees.with_missing(x, std == 0), order="C")
    weights, place = np.array(controls, order="C"), factor.free.copy()
    ranges, low, high = np.zeros((r, k, f)), np.zeros((r, t, f)), np.zeros((r, t, f))
    thresholds, peaks, tests, largest = np.zeros((r, f)), np.zeros((r, f)), np.zeros((r, f)), np.zeros((r, 1))
    arrays = tuple(getattr(plan, name) for name in plan.__slots__)

    def work(i: int) -> None:
        slots, constant, pruned, _ = jump_layout.lay_row(rows[i], std, WORD, *arrays)
        begin, end, slot_first, weight = slots
        thresholds[i] = (end - begin)[place]
        near = np.flatnonzero(end > begin)
        peak = np.zeros(x.shape[1])
        if factor.is_diagonal:
            peak[near] = np.maximum.reduceat(weight, slot_first[near]) if len(near) else 0.0
        else:
            peak[factor.free] = np.sqrt(np.diag(precision(factor, np.isnan(rows[i, factor.free]))) / (2 * np.pi))
        peaks[i] = np.where(thresholds[i] > 0, peak[place], 0.0)
        largest[i] = np.abs(constant).max()
        bound_kernel.bound_jumps(
            place, plan.target, plan.value, weights[i], slots, pruned, ranges[i], low[i], high[i], tests[i], largest[i]
        )

    share(work, range(r), threads)
    # a leaf that is met along an axis is noted where it begins and where it ends, and added up once for each threshold
    terms = 2 * tests + thresholds + trees.n_trees + 1
    size = 2 * largest + 2 * ranges.max(axis=1) * np.maximum(tests, 1.0)
    return AxisBounds(ranges, low, high, thresholds, peaks, np.finfo(np.float64).eps * terms * size)

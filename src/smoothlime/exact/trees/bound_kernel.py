"""The loops that bound jumps, compiled by numba: no draw is made, all that a tree can do around a row is gone through.

Along axis j, whatever the other features are, a tree can only be what the branches of its tests of j leave to choose.
Where a node asks for j, both of its branches are met along the axis, and what they add to a jump is added up; where it
asks for another feature, one of them is met, and the larger is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.optional import require
from .kernel import SETTINGS

numba: Any = require("numba", extra="trees", to="bound the jumps of trees")


@numba.njit(**SETTINGS)
def walk_axis(j, part, asks, index, other, slot_first, begins, ends):
    """Slots (begins, ends) along axis j of every node of a tree; returns how many of them ask for j."""
    begins[part[0]], ends[part[0]], count = slot_first[j], slot_first[j + 1] - 1, 0
    for q in range(part[0], part[1]):
        if asks[q] < 0:
            continue
        left, right = q + 1, other[q]
        begins[left] = begins[right] = begins[q]
        ends[left] = ends[right] = ends[q]
        if asks[q] == j:
            count += 1
            ends[left] = begins[right] = slot_first[j] + 1 + index[q]
    return count


@numba.njit(**SETTINGS)
def bound_axis(j, part, asks, other, leaf, weight, begins, ends, least, most, lowest, highest, apart):
    """Of one number for each leaf, leaf[other[q]]: bounds (least, most) of its jumps along axis j, and of their size.

    Returns both ends and how far apart two leaves on a line along j can be.
    """
    for q in range(part[1] - 1, part[0] - 1, -1):
        if asks[q] < 0:
            height = leaf[other[q]]
            lowest[q] = highest[q] = height
            least[q] = most[q] = height * (weight[begins[q]] - weight[ends[q]])
            apart[q] = 0.0
            continue
        left, right = q + 1, other[q]
        lowest[q], highest[q] = min(lowest[left], lowest[right]), max(highest[left], highest[right])
        if asks[q] == j:
            least[q], most[q] = least[left] + least[right], most[left] + most[right]
            apart[q] = highest[q] - lowest[q]
        else:
            least[q], most[q] = min(least[left], least[right]), max(most[left], most[right])
            apart[q] = max(apart[left], apart[right])
    return least[part[0]], most[part[0]], apart[part[0]]


@numba.njit(**SETTINGS)
def bound_jumps(place, target, value, controls, slots, pruned, ranges, low, high, tests, largest):
    """Around one row, for features place (f,): how far the sums of trees can be apart on a line along each, (k, f).

    low and high (t, f) bound the jumps of sums weighed by controls (t, k); tests (f,) counts the nodes that ask for a
    feature, and largest (1,) is the sum of the largest leaves. All are added to what they hold.
    """
    _, _, slot_first, weight = slots
    first, totals, asks, index, other, _, _ = pruned
    size, width, trees = asks.shape[0], value.shape[1], target.shape[0]
    begins, ends = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    room = np.zeros((5, size))
    least, most, lowest, highest, apart = room[0], room[1], room[2], room[3], room[4]
    mixed, seen = np.zeros(value.shape[0]), np.full(slot_first.shape[0], -1, dtype=np.int64)
    for tree in range(trees):
        part = first[tree], first[tree + 1]
        height = 0.0
        for q in range(part[0], part[1]):
            if asks[q] < 0:
                for o in range(width):
                    height = max(height, abs(value[other[q], o]))
            else:
                seen[asks[q]] = tree
        largest[0] += height
        if totals[tree] < 2:
            continue
        for i in range(place.shape[0]):
            j = place[i]
            if seen[j] != tree:
                continue
            tests[i] += walk_axis(j, part, asks, index, other, slot_first, begins, ends)
            for o in range(width):
                for q in range(part[0], part[1]):
                    if asks[q] < 0:
                        mixed[other[q]] = value[other[q], o]
                down, up, far = bound_axis(j, part, asks, other, mixed, weight, begins, ends, least, most, lowest,
                                           highest, apart)  # fmt: skip
                ranges[o if width > 1 else target[tree], i] += far
                if width == 1:
                    for t in range(controls.shape[0]):
                        share = controls[t, target[tree]]
                        low[t, i] += share * (down if share > 0 else up)
                        high[t, i] += share * (up if share > 0 else down)
            if width == 1:
                continue
            for t in range(controls.shape[0]):
                for q in range(part[0], part[1]):
                    if asks[q] < 0:
                        mixed[other[q]] = 0.0
                        for o in range(width):
                            mixed[other[q]] += controls[t, o] * value[other[q], o]
                down, up, _ = bound_axis(j, part, asks, other, mixed, weight, begins, ends, least, most, lowest,
                                         highest, apart)  # fmt: skip
                low[t, i] += down
                high[t, i] += up

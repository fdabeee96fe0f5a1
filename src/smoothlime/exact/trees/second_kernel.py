"""The loops of second slopes of smoothed trees, compiled by numba.

A leaf is a box, and its share of the mean is a product over the features that its path asks for,

    F = Σ_leaves v ∏_k p_k,      p_k = Φ(hi) − Φ(lo),
    p_k' = −(φ(hi) − φ(lo))/σ,   p_k'' = −(hi·φ(hi) − lo·φ(lo))/σ²,

with ends in standard deviations from x. So ∂²F/∂x_i∂x_j has p_i'p_j' in the place of p_i·p_j, and ∂²F/∂x_i² has p_i''.
One way down each tree carries the boxes; at a leaf all pairs of its features are added, and nothing is divided by a p.
"""

from __future__ import annotations

from math import erfc, exp
from typing import Any

import numpy as np

from ..._core.optional import require
from .kernel import SETTINGS, is_listed

numba: Any = require("numba", extra="trees", to="smooth trees")

ROOT_HALF = 0.7071067811865476
PER_ROOT = 0.3989422804014327

LEAST = 1e-18
"""Boxes that a draw lies in less often are left out: they would add less than the rounding of others."""


@numba.njit(**SETTINGS)
def deepest(feature, left, right, roots):
    """Splits on the longest path."""
    stack, level = np.empty(feature.shape[0] + 2, dtype=np.int64), np.empty(feature.shape[0] + 2, dtype=np.int64)
    most = 0
    for tree in range(roots.shape[0]):
        top, stack[0], level[0] = 1, roots[tree], 0
        while top:
            top -= 1
            node, depth = stack[top], level[top]
            most = max(most, depth)
            if feature[node] >= 0:
                stack[top], stack[top + 1] = left[node], right[node]
                level[top], level[top + 1] = depth + 1, depth + 1
                top += 2
    return most


@numba.njit(**SETTINGS)
def goes_left(node, at, threshold, nan_left, category_first, category):
    """Where a value that is held, or missing, goes."""
    if np.isnan(at):
        return nan_left[node]
    if category_first.shape[0] and category_first[node] < category_first[node + 1]:
        return is_listed(at, category, category_first[node], category_first[node + 1])
    return at <= threshold[node]


@numba.njit(**SETTINGS)
def narrowed(node, side, j, at, inverse, threshold, m, which, ends, shares):
    """The box of a child, written over that of its parent: how many features it bounds, and how often draws are there.

    `which` (m,) are those features, `ends` (m, 6) both ends, and Φ and φ there, `shares` (m, 3) p, p' and p''.
    """
    slot = 0
    while slot < m and which[slot] != j:
        slot += 1
    if slot == m:
        which[m] = j
        ends[m, 0], ends[m, 1], ends[m, 2] = -np.inf, 0.0, 0.0
        ends[m, 3], ends[m, 4], ends[m, 5] = np.inf, 1.0, 0.0
        m += 1
    z = (threshold[node] - at) * inverse
    first = 3 if side == 0 else 0  # to the left it is the upper end that comes nearer
    if (side == 0 and z < ends[slot, 3]) or (side == 1 and z > ends[slot, 0]):
        ends[slot, first] = z
        ends[slot, first + 1] = 0.5 * erfc(-z * ROOT_HALF)
        ends[slot, first + 2] = PER_ROOT * exp(-0.5 * z * z)
    low, high = ends[slot, 0], ends[slot, 3]
    if not low < high:
        return m, 0.0
    p = ends[slot, 4] - ends[slot, 1]
    if low > 0:  # from the nearer end, where differences keep their digits
        p = 0.5 * (erfc(low * ROOT_HALF) - erfc(high * ROOT_HALF))
    bent = 0.0
    if low > -np.inf:
        bent += low * ends[slot, 2]
    if high < np.inf:
        bent -= high * ends[slot, 5]
    shares[slot, 0] = p
    shares[slot, 1] = (ends[slot, 2] - ends[slot, 5]) * inverse
    shares[slot, 2] = bent * inverse * inverse
    reach = 1.0
    for k in range(m):
        reach *= shares[k, 0]
    return m, reach


@numba.njit(**SETTINGS)
def add_leaf(value, m, which, shares, before, after, second):
    """Add a leaf's second slopes to second (d, d), above its diagonal and on it."""
    before[0] = 1.0
    for k in range(m):
        before[k + 1] = before[k] * shares[k, 0]
    after[m] = 1.0
    for k in range(m - 1, -1, -1):
        after[k] = after[k + 1] * shares[k, 0]
    for i in range(m):
        a = which[i]
        second[a, a] += value * before[i] * shares[i, 2] * after[i + 1]
        run = value * before[i] * shares[i, 1]
        if run == 0.0:
            continue
        for j in range(i + 1, m):
            b = which[j]
            second[min(a, b), max(a, b)] += run * shares[j, 1] * after[j + 1]
            run *= shares[j, 0]


@numba.njit(**SETTINGS)
def second_slopes_of_rows(rows, inverse, weights, feature, threshold, left, right, nan_left, value, middle, roots,
                          target, category_first, category, depth, out):  # fmt: skip
    """Adds to out (r, d, d), at and above the diagonal, the second slopes of outputs weighed by (r, k).

    `middle` (trees, w) is taken off the leaves of each tree: a constant bends nothing, and digits are kept.
    """
    width, d = value.shape[1], rows.shape[1]
    slots = min(depth, d) + 1
    which, count = np.empty((depth + 2, slots), dtype=np.int64), np.zeros(depth + 2, dtype=np.int64)
    ends, shares = np.empty((depth + 2, slots, 6)), np.empty((depth + 2, slots, 3))
    before, after = np.empty(slots + 1), np.empty(slots + 1)
    stack, level = np.empty(2 * depth + 4, dtype=np.int64), np.empty(2 * depth + 4, dtype=np.int64)
    parent, side_of = np.empty(2 * depth + 4, dtype=np.int64), np.empty(2 * depth + 4, dtype=np.int64)
    for row in range(rows.shape[0]):
        for tree in range(roots.shape[0]):
            if width == 1 and weights[row, target[tree]] == 0.0:
                continue
            count[0], top = 0, 1
            stack[0], level[0], parent[0], side_of[0] = roots[tree], 0, -1, 0
            while top:
                top -= 1
                node, at_level, above, side = stack[top], level[top], parent[top], side_of[top]
                if above >= 0:  # its box is its parent's, narrowed
                    m = count[at_level - 1]
                    for k in range(m):
                        which[at_level, k] = which[at_level - 1, k]
                        for e in range(6):
                            ends[at_level, k, e] = ends[at_level - 1, k, e]
                        for e in range(3):
                            shares[at_level, k, e] = shares[at_level - 1, k, e]
                    j = feature[above]
                    m, reach = narrowed(above, side, j, rows[row, j], inverse[j], threshold, m,
                                        which[at_level], ends[at_level], shares[at_level])  # fmt: skip
                    count[at_level] = m
                    if reach < LEAST:
                        continue
                while feature[node] >= 0:
                    j = feature[node]
                    if inverse[j] > 0 and not np.isnan(rows[row, j]):
                        break
                    is_left = goes_left(node, rows[row, j], threshold, nan_left, category_first, category)
                    node = left[node] if is_left else right[node]
                if feature[node] >= 0:
                    for side in range(2):
                        stack[top] = left[node] if side == 0 else right[node]
                        level[top], parent[top], side_of[top] = at_level + 1, node, side
                        top += 1
                    continue
                total = 0.0
                if width == 1:
                    total = weights[row, target[tree]] * (value[node, 0] - middle[tree, 0])
                else:
                    for o in range(width):
                        total += weights[row, o] * (value[node, o] - middle[tree, o])
                add_leaf(total, count[at_level], which[at_level], shares[at_level], before, after, out[row])

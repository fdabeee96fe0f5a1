"""The loops of smoothing, compiled by numba.

Every node n is a coin: a row that gets there goes left with probability α(x_j), the share of its interval (lo, hi)
below the threshold t. With P the chance to get to n and s the mean of the leaves below a node,

    α  = (Φ_t − Φ_lo) / (Φ_hi − Φ_lo),          s_n = α·s_left + (1 − α)·s_right,
    E f = Σ_trees s_root,                       ∂E f/∂x_j = Σ_{n splits j} P_n·α'·(s_left − s_right),

one pass down for P, one pass up for s, and leaves cost nothing. Rows are independent; memory is a few times the
largest table and does not grow with their number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._optional import require

numba: Any = require("numba", extra="trees", to="smooth trees")

CUT = 8.5
"""Standard deviations beyond which Φ is 0 or 1: 1e-17 of the mass is there."""

STEPS = 32
"""Cells of the table of Φ in one standard deviation."""

DEGREE = 7

NEGLIGIBLE = 5e-16
"""Branches that are reached less often are left out, and counted in `lost`. Not less than 2.2e-16: where all goes left,
rounding may leave so much of it for the right, whose interval is empty."""

FLAGS = {"contract", "nsz"}  # fused multiply and add; NaN and infinity keep their meaning

# columns of Plan.nodes. Unsigned, as all positions in the inner loops: numba looks whether a signed one is negative,
# which took half of the time.
FEATURE, LO, AT, HI, LEFT, RIGHT, AFTER, NAN_LEFT = (np.uint64(each) for each in range(8))
ZERO, ONE = np.uint64(0), np.uint64(1)
C0, C1, C2, C3, C4, C5, C6, C7 = (np.uint64(each) for each in range(8))

SETTINGS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": FLAGS}


def bell_table() -> Any:
    """Taylor coefficients of Φ about the middle of each cell, (cells + 2, DEGREE + 1); beyond ±CUT 0 and 1."""
    from scipy.special import ndtr

    cells = int(2 * CUT * STEPS)
    z = -CUT + (np.arange(cells) + 0.5) / STEPS
    table = np.zeros((cells + 2, DEGREE + 1))
    table[1:-1, 0], table[-1, 0] = ndtr(z), 1.0
    hermite, before, factor = np.ones_like(z), np.zeros_like(z), np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    for n in range(1, DEGREE + 1):  # Φ⁽ⁿ⁾ = (−1)ⁿ⁻¹ He_{n−1} φ
        factor = factor / n
        table[1:-1, n] = (-1) ** (n - 1) * hermite * factor
        hermite, before = z * hermite - (n - 1) * before, hermite
    return table


@numba.njit(**SETTINGS)
def fill_normal(below, density, threshold, x, inverse, bell):
    """Φ((t − x)/σ) and φ((t − x)/σ)/σ for each threshold, to 1e-15 before the division by σ."""
    most = bell.shape[0] - 1
    begin = np.searchsorted(threshold, x - CUT / inverse)
    end = np.searchsorted(threshold, x + CUT / inverse)
    below[:begin], density[:begin] = 0.0, 0.0
    below[end:], density[end:] = 1.0, 0.0
    below, density, threshold = below[begin:end], density[begin:end], threshold[begin:end]
    for e in range(threshold.shape[0]):
        z = min(max((threshold[e] - x) * inverse, -CUT - 0.25), CUT + 0.25)
        whole = min(max(int((z + CUT) * STEPS + 1.0), 0), most)
        u = z + CUT - (whole - 0.5) / STEPS
        cell = np.uint64(whole)
        slope = bell[cell, C7]
        value = slope * u + bell[cell, C6]
        slope = slope * u + value
        value = value * u + bell[cell, C5]
        slope = slope * u + value
        value = value * u + bell[cell, C4]
        slope = slope * u + value
        value = value * u + bell[cell, C3]
        slope = slope * u + value
        value = value * u + bell[cell, C2]
        slope = slope * u + value
        value = value * u + bell[cell, C1]
        slope = slope * u + value
        below[e] = value * u + bell[cell, C0]
        density[e] = slope * inverse


@numba.njit(**SETTINGS)
def fill_table(below, density, row, inverse, c, table_first, feature_first, threshold,
               choice_first, choice_feature, choice_start, choice_stop, category, bell):  # fmt: skip
    """Table c for one row: what is below each threshold, and how dense it is there."""
    first = 1 - table_first[c]
    size = table_first[c + 1] - table_first[c]
    below[0], density[0] = 0.0, 0.0
    below[size + 1], density[size + 1] = 1.0, 0.0
    for j in range(row.shape[0]):
        begin, end = feature_first[c, j], feature_first[c, j + 1]
        if begin == end or np.isnan(row[j]):
            continue  # nodes that ask for a missing feature do not look here
        if inverse[j] > 0:
            to = slice(first + begin, first + end)
            fill_normal(below[to], density[to], threshold[begin:end], row[j], inverse[j], bell)
        else:
            for e in range(begin, end):
                below[first + e] = 1.0 if row[j] <= threshold[e] else 0.0
                density[first + e] = 0.0
    for e in range(choice_first[c], choice_first[c + 1]):
        at, x, found = size + 2 + e - choice_first[c], row[choice_feature[e]], 0.0
        if np.isfinite(x):
            for i in range(choice_start[e], choice_stop[e]):
                if category[i] == int(x):
                    found = 1.0
        below[at], density[at] = found, 0.0


@numba.njit(**SETTINGS)
def go_down(nodes, below, density, missing, some_missing, reach, chance, push, order, mean, width):
    """α and P·α' of the nodes that matter, in `order`; how many they are, and the mass that was left out."""
    count, lost, i, inner = ZERO, 0.0, ZERO, np.uint64(nodes.shape[0])
    reach[ZERO] = 1.0
    while i < inner:
        p = reach[i]
        if p <= NEGLIGIBLE:
            lost += abs(p)
            for o in range(i * width, (i + ONE) * width):
                mean[o] = 0.0  # as if the leaves below were 0
            i = np.uint64(nodes[i, AFTER])
            continue
        lo, t, hi = nodes[i, LO], nodes[i, AT], nodes[i, HI]
        f_lo, d_lo = below[lo], density[lo]
        inverse = 1.0 / (below[hi] - f_lo)  # not 0, as p is not
        alpha = (below[t] - f_lo) * inverse
        slope = ((d_lo - density[t]) - alpha * (d_lo - density[hi])) * inverse
        if some_missing and missing[nodes[i, FEATURE]]:
            alpha, slope = float(nodes[i, NAN_LEFT]), 0.0
        goes_left = p * alpha
        chance[i], push[i] = alpha, p * slope
        reach[nodes[i, LEFT]], reach[nodes[i, RIGHT]] = goes_left, p - goes_left
        order[count] = i
        count += ONE
        i += ONE
    return count, lost


@numba.njit(**SETTINGS)
def go_up(nodes, order, count, chance, push, mean, gradient):
    """Means below every node that was visited, and what each adds to the gradient (d,)."""
    e = count
    while e > ZERO:
        e -= ONE
        i = order[e]
        right = mean[nodes[i, RIGHT]]
        apart = mean[nodes[i, LEFT]] - right
        mean[i] = right + chance[i] * apart
        gradient[nodes[i, FEATURE]] += push[i] * apart


@numba.njit(**SETTINGS)
def go_up_wide(nodes, order, count, chance, push, mean, width, gradient):
    """The same for `width` outputs at once; gradient is (d·width,)."""
    e = count
    while e > ZERO:
        e -= ONE
        i = order[e]
        left, right, into = nodes[i, LEFT] * width, nodes[i, RIGHT] * width, nodes[i, FEATURE] * width
        alpha, weight, at = chance[i], push[i], i * width
        for o in range(width):
            apart = mean[left + o] - mean[right + o]
            mean[at + o] = mean[right + o] + alpha * apart
            gradient[into + o] += weight * apart


@numba.njit(**SETTINGS)
def lay_leaves(mean, first, last, node_first, leaf, leaf_first, weights, mixes):
    """Leaf values of trees first..last into their slots, mixed by `weights` (k,) if asked."""
    offset, width = 0, 1 if mixes else leaf.shape[1]
    for tree in range(first, last):
        offset += (node_first[tree + 1] - node_first[tree]) * width
        for e in range(leaf_first[tree], leaf_first[tree + 1]):
            if mixes:
                total = 0.0
                for o in range(leaf.shape[1]):
                    total += weights[o] * leaf[e, o]
                mean[offset] = total
            else:
                for o in range(width):
                    mean[offset + o] = leaf[e, o]
            offset += width


@numba.njit(**SETTINGS)
def smooth_rows(rows, inverse, weights, nodes, node_first, leaf, leaf_first, target, bound, table_tree, table_first,
                feature_first, threshold, choice_first, choice_feature, choice_start, choice_stop, category,
                bell, values, gradients, lost):  # fmt: skip
    """Adds to values (r, k), gradients (r, d·k) and lost (r,) what the trees have; k is 1 where weights (r, k) came.

    Tables are the outer loop and rows the inner one, so that nodes are read from cache by all rows but the first.
    """
    r, d = rows.shape
    asked = weights.shape[0] > 0
    vector = leaf.shape[1] > 1
    mixes = asked and vector
    width = np.uint64(leaf.shape[1] if vector and not asked else 1)
    k = values.shape[1]
    inner_most, slots_most, table_most = 1, 1, 2
    for c in range(table_tree.shape[0] - 1):
        a, b = table_tree[c], table_tree[c + 1]
        slots_most = max(slots_most, node_first[b] - node_first[a] + leaf_first[b] - leaf_first[a])
        table_most = max(table_most, table_first[c + 1] - table_first[c] + choice_first[c + 1] - choice_first[c] + 2)
        for tree in range(a, b):
            inner_most = max(inner_most, node_first[tree + 1] - node_first[tree])
    below, density = np.empty(table_most), np.empty(table_most)
    mean = np.empty(slots_most * int(width))
    reach = np.empty(2 * inner_most + 1)
    chance, push = np.empty(inner_most), np.empty(inner_most)
    order = np.empty(inner_most, dtype=np.uint32)
    missing = np.zeros(d, dtype=np.bool_)
    gradient = np.empty(d * k)
    for c in range(table_tree.shape[0] - 1):
        a, b = table_tree[c], table_tree[c + 1]
        if not mixes:
            lay_leaves(mean, a, b, node_first, leaf, leaf_first, weights[0] if asked else bound, False)
        for row in range(r):
            some_missing = False
            for j in range(d):
                missing[j] = np.isnan(rows[row, j])
                some_missing = some_missing or missing[j]
            if mixes:
                is_new = row == 0
                for o in range(weights.shape[1]):
                    is_new = is_new or weights[row, o] != weights[row - 1, o]
                if is_new:
                    lay_leaves(mean, a, b, node_first, leaf, leaf_first, weights[row], True)
            fill_table(below, density, rows[row], inverse, c, table_first, feature_first, threshold,
                       choice_first, choice_feature, choice_start, choice_stop, category, bell)  # fmt: skip
            offset = 0
            for tree in range(a, b):
                own = nodes[node_first[tree] : node_first[tree + 1]]
                size = (own.shape[0] + leaf_first[tree + 1] - leaf_first[tree]) * int(width)
                here = mean[offset : offset + size]
                offset += size
                scale = weights[row, target[tree]] if asked and not vector else 1.0
                if scale == 0.0:
                    continue
                count, out = go_down(
                    own, below, density, missing, some_missing, reach, chance, push, order, here, width
                )
                lost[row] += out * bound[tree] * abs(scale)
                if width > ONE:
                    go_up_wide(own, order, count, chance, push, here, width, gradients[row])
                    for o in range(k):
                        values[row, o] += here[o]
                elif asked:
                    for j in range(d):
                        gradient[j] = 0.0
                    go_up(own, order, count, chance, push, here, gradient)
                    for j in range(d):
                        gradients[row, j] += scale * gradient[j]
                    values[row, 0] += scale * here[0]
                else:
                    o = target[tree]
                    go_up(own, order, count, chance, push, here, gradients[row, o * d : (o + 1) * d])
                    values[row, o] += here[0]


@numba.njit(**SETTINGS)
def group_trees(feature, left, right, roots, rank, ranks, most):
    """Consecutive trees whose thresholds fit one table: first tree of each group, and the tree of every node."""
    tree_of = np.full(feature.shape[0], roots.shape[0], dtype=np.int64)
    seen = np.full(ranks, -1, dtype=np.int64)
    firsts = [0]
    stack = np.empty(feature.shape[0] + 2, dtype=np.int64)
    size = 0
    for tree in range(roots.shape[0]):
        for attempt in range(2):
            group, found, top = len(firsts), size, 1
            stack[0] = roots[tree]
            while top:
                top -= 1
                node = stack[top]
                tree_of[node] = tree
                if feature[node] < 0:
                    continue
                if rank[node] >= 0 and seen[rank[node]] != group:
                    seen[rank[node]] = group
                    found += 1
                stack[top], stack[top + 1] = left[node], right[node]
                top += 2
            if attempt == 0 and found > most and size > 0:
                firsts.append(tree)  # a new table, and the tree once more
                size = 0
                continue
            size = found
            break
    if roots.shape[0]:
        firsts.append(roots.shape[0])
    return np.array(firsts), tree_of


@numba.njit(**SETTINGS)
def put(todo, at, what, a, b, c):
    """One more thing to do, on the stack of `order_nodes`."""
    todo[at, 0], todo[at, 1], todo[at, 2], todo[at, 3] = what, a, b, c


@numba.njit(**SETTINGS)
def order_nodes(feature, left, right, nan_left, roots, place, last, table_tree, d):
    """Inner nodes in preorder with their intervals, and leaves in the order of their slots.

    The stack holds what is still to do: 0 visit a node, 1 set lo of a feature, 2 set hi, 3 close a subtree.
    """
    nodes = np.zeros((feature.shape[0], 8), dtype=np.int32)
    leaf_node = np.zeros(feature.shape[0], dtype=np.int64)
    node_first = np.zeros(roots.shape[0] + 1, dtype=np.int64)
    leaf_first = np.zeros(roots.shape[0] + 1, dtype=np.int64)
    low, high = np.zeros(d, dtype=np.int32), np.zeros(d, dtype=np.int32)
    todo = np.zeros((6 * feature.shape[0] + 8, 4), dtype=np.int32)
    total, leaves = 0, 0
    for c in range(table_tree.shape[0] - 1):
        high[:] = last[c]
        low[:] = 0
        for tree in range(table_tree[c], table_tree[c + 1]):
            begin, leaf_begin, inner, found = total, leaves, 0, 0
            todo[0, 0], todo[0, 1], todo[0, 2], todo[0, 3] = 0, roots[tree], -1, 0
            top = 1
            while top:
                top -= 1
                what, a, parent, side = todo[top, 0], todo[top, 1], todo[top, 2], todo[top, 3]
                if what == 1:
                    low[a] = parent
                elif what == 2:
                    high[a] = parent
                elif what == 3:
                    nodes[begin + a, 6] = inner
                elif feature[a] < 0:
                    leaf_node[leaf_begin + found] = a
                    if parent >= 0:
                        nodes[begin + parent, side] = -1 - found
                    found += 1
                else:
                    j, at = feature[a], inner
                    inner += 1
                    if parent >= 0:
                        nodes[begin + parent, side] = at
                    lo, t, hi = low[j], place[a], high[j]
                    by_category = t > last[c]  # a coin of its own, which leaves the interval as it is
                    lo, hi = (0, last[c]) if by_category else (lo, hi)
                    t = t if by_category else min(max(t, lo), hi)  # outside of the interval all go one way
                    put(todo, top, 3, at, 0, 0)
                    put(todo, top + 1, 1, j, low[j], 0)
                    put(todo, top + 2, 0, right[a], at, 5)
                    put(todo, top + 3, 1, j, low[j] if by_category else t, 0)
                    put(todo, top + 4, 2, j, high[j], 0)
                    put(todo, top + 5, 0, left[a], at, 4)
                    top += 6
                    high[j] = high[j] if by_category else t
                    node = nodes[begin + at]
                    node[0], node[1], node[2], node[3], node[7] = j, lo, t, hi, nan_left[a]
            for i in range(begin, begin + inner):
                for side in (4, 5):
                    if nodes[i, side] < 0:
                        nodes[i, side] = inner - 1 - nodes[i, side]
            total += inner
            leaves += found
            node_first[tree + 1], leaf_first[tree + 1] = total, leaves
    return nodes[:total].astype(np.uint32), node_first, leaf_node[:leaves].copy(), leaf_first

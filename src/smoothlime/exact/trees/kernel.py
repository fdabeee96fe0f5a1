"""The loops of smoothing, compiled by numba.

Every node n is a coin: a row that gets there goes left with probability α(x_j), the share of its interval (lo, hi)
below the threshold t. With P the chance to get to n and s the mean of the leaves below a node,

    α  = (Φ_t − Φ_lo) / (Φ_hi − Φ_lo),          s_n = α·s_left + (1 − α)·s_right,
    E f = Σ_trees s_root,                       ∂E f/∂x_j = Σ_{n splits j} P_n·α'·(s_left − s_right),

one pass down for P, one pass up for s, and leaves cost nothing. Tables hold Φ + i·φ/σ for each threshold, one complex
number, as Φ and its density are looked up together. Rows are independent; memory is a few times the largest table and
does not grow with their number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.optional import require

numba: Any = require("numba", extra="trees", to="smooth trees")

CUT = 8.5
"""Standard deviations beyond which Φ is 0 or 1: 1e-17 of the mass is there."""

STEPS = 32
"""Cells of the table of Φ in one standard deviation."""

DEGREE = 7

EXACT = 2.0**53
"""Up to which float64 holds every integer."""

NEGLIGIBLE = 5e-16
"""Branches that are reached less often are left out, and counted in `lost`. Not less than 2.2e-16: where all goes left,
rounding may leave so much of it for the right, whose interval is empty."""

FLAGS = {"contract", "nsz"}  # fused multiply and add; NaN and infinity keep their meaning

NODE = np.dtype([(name, np.uint32) for name in ("feature", "lo", "at", "hi", "left", "right", "nan_left", "unused")])
"""Places of lo, t and hi in the table, slots of the children, where missing values go; 32 bytes, a power of two."""

# Unsigned, as all positions in the inner loops: numba looks whether a signed one is negative, which took half of the
# time.
ZERO, ONE = np.uint64(0), np.uint64(1)
C1, C2, C3, C4, C5, C6, C7, COLUMNS = (np.uint64(each) for each in range(1, 9))

SETTINGS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": FLAGS}


def bell_table() -> Any:
    """Taylor coefficients of Φ about the middle of each cell, (cells + 2)·(DEGREE + 1) of them; beyond ±CUT 0 and 1."""
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
    return table.ravel()


@numba.njit(**SETTINGS)
def is_listed(x, category, start, stop):
    """Whether x, without its fraction, is among category[start:stop]; no NaN is, and nothing beyond exact integers."""
    if abs(x) < EXACT:
        for i in range(start, stop):
            if category[i] == int(x):
                return True
    return False


@numba.njit(**SETTINGS)
def find_leaves(rows, feature, threshold, left, right, nan_left, roots, category_first, category, leaves):
    """The leaf that each row reaches in each tree, into leaves (n, trees)."""
    by_category = category.shape[0] > 0
    for tree in range(roots.shape[0]):
        for row in range(rows.shape[0]):
            i = np.uint64(roots[tree])
            while feature[i] >= 0:
                x, if_left, if_right = rows[row, np.uint64(feature[i])], left[i], right[i]
                goes_left = x <= threshold[i]
                if np.isnan(x):
                    goes_left = nan_left[i]
                elif by_category and category_first[i + ONE] > category_first[i]:
                    goes_left = is_listed(x, category, category_first[i], category_first[i + ONE])
                i = np.uint64(if_left if goes_left else if_right)  # no branch, which would be guessed badly
            leaves[row, tree] = i


@numba.njit(**SETTINGS)
def add_leaves(leaves, value, target, out):
    """Adds what the leaves (n, trees) hold to out (n, k), in the library's order of trees, so that sums round alike."""
    width = value.shape[1]
    for row in range(leaves.shape[0]):
        for tree in range(leaves.shape[1]):
            first = target[tree] if width == 1 else 0
            for o in range(width):
                out[row, first + o] += value[leaves[row, tree], o]


@numba.njit(**SETTINGS)
def fill_normal(table, threshold, x, inverse, bell):
    """Φ((t − x)/σ) + i·φ((t − x)/σ)/σ for each threshold, to 1e-15 before the division by σ."""
    begin = np.searchsorted(threshold, x - CUT / inverse)
    end = np.searchsorted(threshold, x + CUT / inverse)
    table[:begin], table[end:] = 0.0, 1.0
    table, threshold = table[begin:end], threshold[begin:end]
    for e in range(threshold.shape[0]):
        z = min(max((threshold[e] - x) * inverse, -CUT), CUT) + CUT
        cell = np.uint64(z * STEPS + 1.0)
        u = z - (cell - 0.5) / STEPS
        cell *= COLUMNS
        slope = bell[cell + C7]
        value = slope * u + bell[cell + C6]
        slope = slope * u + value
        value = value * u + bell[cell + C5]
        slope = slope * u + value
        value = value * u + bell[cell + C4]
        slope = slope * u + value
        value = value * u + bell[cell + C3]
        slope = slope * u + value
        value = value * u + bell[cell + C2]
        slope = slope * u + value
        value = value * u + bell[cell + C1]
        slope = slope * u + value
        table[e] = complex(value * u + bell[cell], slope * inverse)


@numba.njit(**SETTINGS)
def fill_table(table, row, inverse, c, table_first, feature_first, threshold,
               choice_first, choice_feature, choice_start, choice_stop, category, bell):  # fmt: skip
    """Table c for one row: what is below each threshold, and how dense it is there."""
    first = 1 - table_first[c]
    size = table_first[c + 1] - table_first[c]
    table[0], table[size + 1] = 0.0, 1.0
    for j in range(row.shape[0]):
        begin, end = feature_first[c, j], feature_first[c, j + 1]
        if begin == end or np.isnan(row[j]):
            continue  # nodes that ask for a missing feature do not look here
        if inverse[j] > 0:
            fill_normal(table[first + begin : first + end], threshold[begin:end], row[j], inverse[j], bell)
        else:
            for e in range(begin, end):
                table[first + e] = 1.0 if row[j] <= threshold[e] else 0.0
    for e in range(choice_first[c], choice_first[c + 1]):
        listed = is_listed(row[choice_feature[e]], category, choice_start[e], choice_stop[e])
        table[size + 2 + e - choice_first[c]] = 1.0 if listed else 0.0


@numba.njit(**SETTINGS)
def go_down(nodes, roots, table, missing, some_missing, order, reach, chance, push):
    """α and P·α' of the nodes that matter, level by level as in `order`; how many they are, and the mass left out.

    Processors guess at branches, and for "does this child matter?" they guess badly, which costs more than the node. So
    nothing branches on it: a child is written to the end of `order`, and the end moves on or does not. The next nodes
    need not wait for that, as they were written long before: all trees of the bunch take turns.
    """
    e, end, inner, lost = ZERO, roots, np.uint64(nodes.shape[0]), 0.0
    for root in range(roots):
        order[root], reach[root] = root, 1.0
    while e < end:
        i, p = np.uint64(order[e]), reach[e]
        low = table[nodes[i].lo]
        part, whole = table[nodes[i].at] - low, table[nodes[i].hi] - low
        inverse = 1.0 / whole.real  # not 0, as p is not
        alpha = part.real * inverse
        slope = (alpha * whole.imag - part.imag) * inverse
        if some_missing and missing[nodes[i].feature]:
            alpha, slope = float(nodes[i].nan_left), 0.0
        goes_left = p * alpha
        goes_right = p - goes_left
        chance[e], push[e] = alpha, p * slope
        left, right = nodes[i].left, nodes[i].right
        if min(left, right) < inner:  # is guessed well: leaves come last, as a rule
            order[end], reach[end] = left, goes_left
            end += np.uint64((left < inner) & (goes_left > NEGLIGIBLE))
            order[end], reach[end] = right, goes_right
            end += np.uint64((right < inner) & (goes_right > NEGLIGIBLE))
            lost += abs(goes_left) if (left < inner) & (goes_left <= NEGLIGIBLE) else 0.0
            lost += abs(goes_right) if (right < inner) & (goes_right <= NEGLIGIBLE) else 0.0
        e += ONE
    return end, lost


@numba.njit(**SETTINGS)
def go_up(nodes, order, count, chance, push, mean, gradient):
    """Means below every node that was visited, and what each adds to the gradient (d,)."""
    if count < nodes.shape[0]:
        mean[: nodes.shape[0]] = 0.0  # what was left out: as if it were the middle of all leaves
    e = count
    while e > ZERO:
        e -= ONE
        i = np.uint64(order[e])
        right = mean[nodes[i].right]
        apart = mean[nodes[i].left] - right
        mean[i] = right + chance[e] * apart
        gradient[nodes[i].feature] += push[e] * apart


@numba.njit(**SETTINGS)
def go_up_wide(nodes, order, count, chance, push, mean, width, gradient):
    """The same for `width` outputs at once; gradient is (d·width,)."""
    if count < nodes.shape[0]:
        mean[: nodes.shape[0] * int(width)] = 0.0
    e = count
    while e > ZERO:
        e -= ONE
        i = np.uint64(order[e])
        left, right, into = nodes[i].left * width, nodes[i].right * width, nodes[i].feature * width
        alpha, weight, at = chance[e], push[e], i * width
        for o in range(width):
            apart = mean[left + o] - mean[right + o]
            mean[at + o] = mean[right + o] + alpha * apart
            gradient[into + o] += weight * apart


@numba.njit(**SETTINGS)
def lay_leaves(mean, first, last, node_first, leaf, leaf_first, weights, mixes):
    """Leaf values of bunches first..last into their slots, mixed by `weights` (k,) if asked."""
    offset, width = 0, 1 if mixes else leaf.shape[1]
    for bunch in range(first, last):
        offset += (node_first[bunch + 1] - node_first[bunch]) * width
        for e in range(leaf_first[bunch], leaf_first[bunch + 1]):
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
def smooth_rows(rows, inverse, weights, nodes, node_first, leaf, leaf_first, roots, target, bound, table_bunch,
                table_first, feature_first, threshold, choice_first, choice_feature, choice_start, choice_stop,
                category, bell, values, gradients, lost):  # fmt: skip
    """Adds to values (r, k), gradients (r, d·k) and lost (r,) what the trees have; k is 1 where weights (r, k) came.

    Tables are the outer loop and rows the inner one, so that nodes are read from cache by all rows but the first.
    """
    r, d = rows.shape
    asked = weights.shape[0] > 0
    vector = leaf.shape[1] > 1
    mixes = asked and vector
    width = np.uint64(leaf.shape[1] if vector and not asked else 1)
    inner_most, slots_most, table_most = 1, 1, 2
    for c in range(table_bunch.shape[0] - 1):
        a, b = table_bunch[c], table_bunch[c + 1]
        slots_most = max(slots_most, node_first[b] - node_first[a] + leaf_first[b] - leaf_first[a])
        table_most = max(table_most, table_first[c + 1] - table_first[c] + choice_first[c + 1] - choice_first[c] + 2)
        for bunch in range(a, b):
            inner_most = max(inner_most, node_first[bunch + 1] - node_first[bunch])
    table = np.empty(table_most, dtype=np.complex128)
    mean = np.empty(slots_most * int(width))
    order, reach = np.empty(inner_most + 1, dtype=np.uint32), np.empty(inner_most + 1)
    chance, push = np.empty(inner_most), np.empty(inner_most)
    missing = np.zeros(d, dtype=np.bool_)
    gradient = np.empty(d * int(width))
    for c in range(table_bunch.shape[0] - 1):
        a, b = table_bunch[c], table_bunch[c + 1]
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
            fill_table(table, rows[row], inverse, c, table_first, feature_first, threshold,
                       choice_first, choice_feature, choice_start, choice_stop, category, bell)  # fmt: skip
            offset = 0
            for bunch in range(a, b):
                own = nodes[node_first[bunch] : node_first[bunch + 1]]
                size = (own.shape[0] + leaf_first[bunch + 1] - leaf_first[bunch]) * int(width)
                here = mean[offset : offset + size]
                offset += size
                scale = weights[row, target[bunch]] if asked and not vector else 1.0
                if scale == 0.0:
                    continue
                some = np.uint64(roots[bunch])
                count, out = go_down(own, some, table, missing, some_missing, order, reach, chance, push)
                lost[row] += out * bound[bunch] * abs(scale)
                gradient[:] = 0.0  # one for each bunch, as long sums round more
                if width > ONE:
                    go_up_wide(own, order, count, chance, push, here, width, gradient)
                    for j in range(gradient.shape[0]):
                        gradients[row, j] += gradient[j]
                    for i in range(some * width):
                        values[row, i % width] += here[i]
                else:
                    o = 0 if asked else target[bunch]
                    go_up(own, order, count, chance, push, here, gradient)
                    for j in range(d):
                        gradients[row, o * d + j] += scale * gradient[j]
                    for i in range(some):
                        values[row, o] += scale * here[i]


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
def find_interval(nodes, parent, begin, i, j, most):
    """Where in the table feature j can still be at node i: on its side of the nearest split of j above."""
    above = parent[i]
    while above >= 0:
        if nodes[above, 0] == j and nodes[above, 2] <= most:
            went_left = nodes[above, 4] == i - begin
            return (nodes[above, 1], nodes[above, 2]) if went_left else (nodes[above, 2], nodes[above, 3])
        i, above = above, parent[above]
    return np.int32(0), np.int32(most)


@numba.njit(**SETTINGS)
def order_nodes(feature, left, right, nan_left, roots, bunch_first, place, last):
    """Inner nodes of each bunch level by level, with their intervals, and leaves in the order of their slots.

    All roots come first. A tree of one leaf is split at +∞, with the leaf on both sides.
    """
    nodes = np.zeros((feature.shape[0], 8), dtype=np.int32)
    source, parent = np.zeros(feature.shape[0], dtype=np.int64), np.zeros(feature.shape[0], dtype=np.int64)
    leaf_node = np.zeros(2 * feature.shape[0], dtype=np.int64)
    bunches = bunch_first.shape[0] - 1
    node_first, leaf_first = np.zeros(bunches + 1, dtype=np.int64), np.zeros(bunches + 1, dtype=np.int64)
    i, end, leaves = 0, 0, 0
    for bunch in range(bunches):
        begin, leaf_begin, most = end, leaves, last[bunch]
        for tree in range(bunch_first[bunch], bunch_first[bunch + 1]):
            source[end], parent[end] = roots[tree], -1
            end += 1
        while i < end:
            a = source[i]
            is_leaf = feature[a] < 0
            j, t = (0, most) if is_leaf else (feature[a], place[a])
            lo, hi = 0, most
            if t <= most:  # by category it is a coin of its own
                lo, hi = find_interval(nodes, parent, begin, i, j, most)
                t = min(max(t, lo), hi)  # outside of the interval all go one way
            nodes[i, 0], nodes[i, 1], nodes[i, 2], nodes[i, 3], nodes[i, 6] = j, lo, t, hi, nan_left[a]
            for side in (4, 5):
                child = a if is_leaf else (left[a] if side == 4 else right[a])
                if feature[child] < 0:
                    nodes[i, side] = leaf_begin - 1 - leaves
                    leaf_node[leaves] = child
                    leaves += 1
                else:
                    nodes[i, side] = end - begin
                    source[end], parent[end] = child, i
                    end += 1
            i += 1
        for e in range(begin, end):
            for side in (4, 5):
                if nodes[e, side] < 0:
                    nodes[e, side] = end - begin - 1 - nodes[e, side]
        node_first[bunch + 1], leaf_first[bunch + 1] = end, leaves
    return nodes[:end], node_first, leaf_node[:leaves].copy(), leaf_first

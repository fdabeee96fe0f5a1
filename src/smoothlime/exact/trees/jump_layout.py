"""Trees laid out for their jumps, compiled by numba: in preorder once, and for each row what its draws can reach.

What is compiled is kept on disk until its own file changes. So nothing in `jump_kernel` calls anything in here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.optional import require
from .kernel import SETTINGS, is_listed

numba: Any = require("numba", extra="trees", to="find the jumps of trees")

CUT = 7.0
"""Standard deviations beyond which thresholds are taken for infinite: 3e-12 of the mass of each feature is there."""

ONE, HALF_WORD, LOW_HALF = np.uint64(1), np.uint64(32), np.uint64(2**32 - 1)
ROOT_2PI = 2.5066282746310002


@numba.njit(**SETTINGS)
def lay_out(feature, left, right, rank, thresholds, roots, order, own_right, lo, hi, leaf_node, tree_first):
    """Nodes of each tree in preorder, the left child next, with the interval of their feature that they still see.

    Returns how many nodes and leaves there are, and room for the branches that wait while a tree is walked through.
    """
    size, leaves, deepest = 0, 0, 2
    stack = np.empty(feature.shape[0] + 1, dtype=np.int64)
    parent_of = np.empty(feature.shape[0] + 1, dtype=np.int64)
    parent = np.empty(feature.shape[0], dtype=np.int64)
    went_left = np.empty(feature.shape[0], dtype=np.bool_)
    for tree in range(roots.shape[0]):
        tree_first[tree] = size
        stack[0], parent_of[0], top = roots[tree], -1, 1
        while top:
            top -= 1
            node, above = stack[top], parent_of[top]
            at = size
            size += 1
            order[at], parent[at] = node, above
            if above >= 0:
                went_left[at] = at == above + 1
                if at != above + 1:
                    own_right[above] = at
            if feature[node] < 0:
                leaf_node[leaves] = node
                own_right[at] = leaves  # of leaves: which it is
                leaves += 1
                continue
            j = feature[node]
            lo[at], hi[at] = -1, thresholds[j]
            below = at
            while above >= 0:
                if feature[order[above]] == j:
                    if went_left[below]:
                        lo[at], hi[at] = lo[above], min(hi[above], rank[order[above]])
                    else:
                        lo[at], hi[at] = max(lo[above], rank[order[above]]), hi[above]
                    break
                below, above = above, parent[above]
            stack[top], parent_of[top] = right[node], at
            stack[top + 1], parent_of[top + 1] = left[node], at
            top += 2
            deepest = max(deepest, top + 1)
    tree_first[roots.shape[0]] = size
    return size, leaves, deepest


@numba.njit(**SETTINGS)
def find_windows(x, std, threshold, feature_first, begin, end, slot_first):
    """Thresholds begin..end of each feature that are near x, and its first slot; returns the number of slots.

    Slots of a feature: below all of them, one from each threshold on, and one for what ends nowhere.
    """
    slots = 0
    for j in range(x.shape[0]):
        first, last = feature_first[j], feature_first[j + 1]
        begin[j] = end[j] = 0
        slot_first[j] = slots
        if std[j] > 0 and not np.isnan(x[j]) and last > first:
            own = threshold[first:last]
            begin[j] = np.searchsorted(own, x[j] - CUT * std[j], side="right")
            end[j] = np.searchsorted(own, x[j] + CUT * std[j])
        if end[j] > begin[j]:
            slots += end[j] - begin[j] + 2
    slot_first[x.shape[0]] = slots
    return slots


@numba.njit(**SETTINGS)
def prune(x, std, begin, end, slot_first, root, feature, rank, cut, lo, hi, right, nan_left, choice_first, choice_stop,
          category, stack, first, asks, index, other, low, high):  # fmt: skip
    """One tree around x, from `first` on: nodes that some draw may pass on either side, in preorder; and their end.

    Of a node: asks for a feature, whether its rank is above index, other is its right child, and (low, high) its slots;
    of a leaf: asks −1, and other is its value.
    """
    stack[0, 0], stack[0, 1], top, size = root, -1, 1, first
    while top:
        top -= 1
        i, above = stack[top, 0], stack[top, 1]
        if above >= 0:
            other[above] = size
        while feature[i] >= 0:
            j, r = feature[i], rank[i]
            if choice_stop[i] > choice_first[i]:
                goes_left = (
                    nan_left[i] if np.isnan(x[j]) else is_listed(x[j], category, choice_first[i], choice_stop[i])
                )
            elif np.isnan(x[j]):
                goes_left = nan_left[i]
            elif std[j] == 0:
                goes_left = x[j] <= cut[i]
            elif r <= lo[i] or r < begin[j]:
                goes_left = False
            elif r >= hi[i] or r >= end[j]:
                goes_left = True
            else:
                asks[size], index[size] = j, r - begin[j]
                slot = slot_first[j] - begin[j] + 1
                low[size] = slot_first[j] if lo[i] < begin[j] else slot + lo[i]
                high[size] = slot + min(hi[i], end[j])
                stack[top, 0], stack[top, 1] = right[i], size
                top += 1
                size += 1
                goes_left = True
            i = i + 1 if goes_left else right[i]
        asks[size], other[size] = -1, right[i]
        size += 1
    return size


@numba.njit(**SETTINGS)
def count_leaves(start, stop, asks, other, leaves):
    """Leaves below each node of a pruned tree, and how many there are."""
    for q in range(stop - 1, start - 1, -1):
        leaves[q] = 1 if asks[q] < 0 else leaves[q + 1] + leaves[other[q]]
    return leaves[start]


@numba.njit(**SETTINGS)
def make_words(first, totals, word, asks, index, other, leaves, slot_first, d, value):
    """What `add_words` needs of trees of 2 to `word` leaves: where each has its part, and the parts.

    places (trees, 5) holds how many groups of nodes a tree has, one for each feature, and where groups, slots, common
    and leaves begin. nodes holds (feature, index) by group; group_first the first node of each; masks which leaves fail
    if a draw goes left, or right; slots (groups, leaves) where the interval of a leaf begins and ends, in one word;
    common (leaves, leaves) the group where two part; leaf their values.
    """
    trees, width = totals.shape[0], value.shape[1]
    places, at = np.zeros((trees, 5), dtype=np.int64), np.zeros(6, dtype=np.int64)
    group_of = np.full(d, -1, dtype=np.int64)
    for tree in range(trees):
        if not 1 < totals[tree] <= word:
            continue
        places[tree, 1:] = at[:4]
        for q in range(first[tree], first[tree + 1]):
            if asks[q] >= 0 and group_of[asks[q]] != tree:
                group_of[asks[q]] = tree
                places[tree, 0] += 1
        at[0] += places[tree, 0] + 1
        at[1] += places[tree, 0] * totals[tree]
        at[2] += totals[tree] * totals[tree]
        at[3] += totals[tree]
        at[4] += totals[tree] - 1
    group_first, slots, common = np.zeros(at[0], np.int64), np.zeros(at[1], np.uint64), np.zeros(at[2], np.uint8)
    leaf, nodes, masks = np.zeros(at[3] * width), np.zeros((at[4], 2), np.int64), np.zeros((at[4], 2), np.uint64)
    words = places, nodes, group_first, masks, slots, common, leaf
    node, group_of[:] = 0, -1
    for tree in range(trees):
        if 1 < totals[tree] <= word:
            part = first[tree], first[tree + 1]
            sort_nodes(part, places[tree, 1], node, asks, index, group_of, group_first, nodes)
            fill_words(part, places[tree], totals[tree], words, asks, index, other, leaves, slot_first, group_of, value)
            node += totals[tree] - 1
    return words


@numba.njit(**SETTINGS)
def sort_nodes(part, group_at, node, asks, index, group_of, group_first, nodes):
    """Nodes of a tree by feature, from `node` on: group_of (d,) says which group that is."""
    groups = 0
    for q in range(part[0], part[1]):
        if asks[q] >= 0:
            group_of[asks[q]] = -1
    for q in range(part[0], part[1]):
        if asks[q] >= 0:
            if group_of[asks[q]] < 0:
                group_of[asks[q]] = groups
                groups += 1
            group_first[group_at + group_of[asks[q]] + 1] += 1
    group_first[group_at] = node
    for g in range(groups):
        group_first[group_at + g + 1] += group_first[group_at + g]


@numba.njit(**SETTINGS)
def fill_words(part, place, total, words, asks, index, other, leaves, slot_first, group_of, value):
    """Masks, slots and values of one tree, in preorder: what stands deeper narrows intervals further."""
    _, nodes, group_first, masks, slots, common, leaf = words
    groups, group_at, slot_at, common_at, leaf_at = place[0], place[1], place[2], place[3], place[4]
    width, seen, filled = value.shape[1], 0, np.zeros(groups, dtype=np.int64)
    for q in range(part[0], part[1]):
        if asks[q] < 0:
            for o in range(width):
                leaf[(leaf_at + seen) * width + o] = value[other[q], o]
            seen += 1
            continue
        j, g = asks[q], group_of[asks[q]]
        a, b = seen, seen + leaves[q + 1]
        c = b + leaves[other[q]]
        node = group_first[group_at + g] + filled[g]
        nodes[node, 0], nodes[node, 1] = j, index[q]
        masks[node, 0] = ((ONE << np.uint64(c - b - 1)) * np.uint64(2) - ONE) << np.uint64(b)
        masks[node, 1] = ((ONE << np.uint64(b - a - 1)) * np.uint64(2) - ONE) << np.uint64(a)
        own_slots = slot_at + g * total
        if filled[g] == 0:
            for e in range(np.uint64(own_slots), np.uint64(own_slots + total)):
                slots[e] = np.uint64(slot_first[j]) | np.uint64(slot_first[j + 1] - 1) << HALF_WORD
        filled[g] += 1
        at_threshold = np.uint64(slot_first[j] + 1 + index[q])
        for e in range(np.uint64(own_slots + a), np.uint64(own_slots + b)):
            slots[e] = (slots[e] & LOW_HALF) | at_threshold << HALF_WORD
        for e in range(np.uint64(own_slots + b), np.uint64(own_slots + c)):
            slots[e] = (slots[e] & ~LOW_HALF) | at_threshold
        for e in range(a, b):
            own_common = np.uint64(common_at + e * total)
            for f in range(np.uint64(b), np.uint64(c)):
                common[own_common + f] = g
        for e in range(b, c):
            own_common = np.uint64(common_at + e * total)
            for f in range(np.uint64(a), np.uint64(b)):
                common[own_common + f] = g


@numba.njit(**SETTINGS)
def weigh_slots(x, std, threshold, feature_first, begin, end, slot_first, weight):
    """Densities of features at their thresholds near x."""
    for j in range(x.shape[0]):
        for s in range(begin[j], end[j]):
            z = (threshold[feature_first[j] + s] - x[j]) / std[j]
            weight[slot_first[j] + 1 + s - begin[j]] = np.exp(-0.5 * z * z) / (std[j] * ROOT_2PI)


@numba.njit(**SETTINGS)
def lay_row(x, std, word, deepest, base, threshold, feature_first, feature, rank, cut, lo, hi, right, nan_left,
            choice_first, choice_stop, category, tree_first, target, value):  # fmt: skip
    """All that draws around a row x (d,) with standard deviations std (d,) can reach of the trees.

    Thresholds near x, slots and their densities; margins (k,) of trees that are constant there; the others pruned, and
    those of at most `word` leaves as words.
    """
    d, trees, width = x.shape[0], target.shape[0], value.shape[1]
    begin, end = np.zeros(d, dtype=np.int64), np.zeros(d, dtype=np.int64)
    slot_first = np.zeros(d + 1, dtype=np.int64)
    weight = np.zeros(find_windows(x, std, threshold, feature_first, begin, end, slot_first))
    weigh_slots(x, std, threshold, feature_first, begin, end, slot_first, weight)
    size = feature.shape[0]
    asks, index, other = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    low, high, leaves = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    stack = np.empty((deepest, 2), dtype=np.int64)
    first, constant = np.zeros(trees + 1, dtype=np.int64), base.copy()
    for tree in range(trees):
        first[tree + 1] = prune(
            x, std, begin, end, slot_first, tree_first[tree], feature, rank, cut, lo, hi, right, nan_left,
            choice_first, choice_stop, category, stack, first[tree], asks, index, other, low, high,
        )  # fmt: skip
        if count_leaves(first[tree], first[tree + 1], asks, other, leaves) == 1:
            for o in range(width):
                constant[(target[tree] if width == 1 else 0) + o] += value[other[first[tree]], o]
    totals = leaves[first[:-1]]
    words = make_words(first, totals, word, asks, index, other, leaves, slot_first, d, value)
    return (begin, end, slot_first, weight), constant, (first, totals, asks, index, other, low, high), words

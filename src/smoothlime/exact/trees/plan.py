"""The order of work for smoothing: nodes level by level, intervals by number, thresholds in tables.

Which interval of its feature a node still sees, (lo, hi), does not depend on the row. So it is settled here, once, as
positions in a table of thresholds; a split outside of its interval (redundant, or at ±∞) is clipped into it.
Consecutive trees share a table as long as it stays in the processor's cache, and those that add to the same output are
walked through together, in bunches. Leaves are counted from the middle between the lowest and highest of their tree;
middles are added up once. So errors go by how much a tree varies, and not by how large it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..._core.types import Array
from .format import Ints, Longs, TreeEnsemble
from .rounding import rounding_bound

TABLE = 4096
"""Thresholds in one table, unless a single tree has more: 64 KiB of Φ and φ."""

BUNCH = 2048
"""Splits at which a bunch of trees is closed, so that what is noted of each stays in cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Trees as the kernel walks through them; slots are positions within a bunch, inner nodes before leaves.

    Table c holds −∞ at position 0, then its thresholds by feature and size, +∞, and one place for every split on
    categories.
    """

    nodes: Any  # (inner,) of NODE
    node_first: Longs  # (bunches + 1,)
    leaf: Array  # (leaves, w), less the middle of their tree
    leaf_first: Longs  # (bunches + 1,)
    roots: Longs  # (bunches,): how many trees; their roots are the first slots
    target: Ints  # (bunches,)
    bound: Array  # (bunches,): the largest |leaf|
    table_bunch: Longs  # (tables + 1,): the first bunch of each table
    table_first: Longs  # (tables + 1,) into threshold
    feature_first: Longs  # (tables, d + 1) into threshold
    threshold: Array
    choice_first: Longs  # (tables + 1,) into the three below
    choice_feature: Ints
    choice_start: Longs
    choice_stop: Longs
    category: Longs
    middle: Array  # (k,): what the leaves were taken from, summed over trees
    total: float  # Σ of each tree's largest |leaf|
    rounding: Array  # (d,): what rounding may add to a slope, in units of 1/σ

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The fields in order but the last three, for the kernel."""
        return tuple(getattr(self, name) for name in self.__slots__[:-3])


def make_plan(trees: TreeEnsemble) -> Plan:
    """The plan of an ensemble; takes about as long as smoothing a few rows."""
    from .kernel import NODE, group_trees, order_nodes  # numba, and only where it is needed

    is_categorical = trees.is_categorical
    numeric = (trees.feature >= 0) & ~is_categorical
    finite = numeric & np.isfinite(trees.threshold)
    rank = np.full(len(trees.feature), -1, dtype=np.int64)  # by (feature, threshold), equal ones alike
    thresholds, features = np.zeros(0), np.zeros(0, dtype=np.int64)
    if finite.any():
        at = np.flatnonzero(finite)
        at = at[np.lexsort((trees.threshold[at], trees.feature[at]))]
        j, t = trees.feature[at].astype(np.int64), trees.threshold[at]
        is_new = np.concatenate([[True], (j[1:] != j[:-1]) | (t[1:] != t[:-1])])
        rank[at] = np.cumsum(is_new) - 1
        thresholds, features = t[is_new], j[is_new]
    by_target = np.argsort(trees.target, kind="stable")
    roots, target = trees.roots[by_target], trees.target[by_target]
    table_tree, tree_of = group_trees(trees.feature, trees.left, trees.right, roots, rank, len(thresholds), TABLE)
    place = np.zeros(len(trees.feature), dtype=np.int32)
    last = np.zeros(len(table_tree) - 1, dtype=np.int32)  # where +∞ stands
    parts, choices, feature_first, table_first = [], [], [], [0]
    by_tree = np.argsort(tree_of, kind="stable")
    start_of = np.searchsorted(tree_of[by_tree], np.arange(len(trees.roots) + 1))
    for c, (begin, end) in enumerate(pairwise(table_tree)):
        inside = by_tree[start_of[begin] : start_of[end]]
        ids = np.unique(rank[inside][rank[inside] >= 0])
        last[c] = len(ids) + 1
        t = trees.threshold[inside]
        place[inside] = np.where(
            t == -np.inf, 0, np.where(t == np.inf, last[c], np.searchsorted(ids, rank[inside]) + 1)
        )
        choice = inside[is_categorical[inside]]
        place[choice] = last[c] + 1 + np.arange(len(choice))
        parts.append(thresholds[ids])
        choices.append(choice)
        feature_first.append(table_first[-1] + np.searchsorted(features[ids], np.arange(trees.n_features + 1)))
        table_first.append(table_first[-1] + len(ids))
    splits = np.bincount(tree_of[trees.feature >= 0], minlength=len(roots))[: len(roots)]
    bunch_first = _bunches(splits, target, table_tree)
    table_bunch = np.searchsorted(bunch_first, table_tree)
    nodes, node_first, leaf_node, leaf_first = order_nodes(
        trees.feature, trees.left, trees.right, trees.nan_left, roots, bunch_first, place,
        np.repeat(last, np.diff(table_bunch)),
    )  # fmt: skip
    choice = np.concatenate(choices) if choices else np.zeros(0, dtype=np.int64)
    first = trees.category_first if len(trees.category_first) else np.zeros(len(trees.feature) + 1, dtype=np.int64)
    lowest, highest = _ends(trees, by_tree[: start_of[-1]], tree_of)
    middle, half = lowest / 2 + highest / 2, (highest / 2 - lowest / 2).max(axis=1, initial=0.0)
    middles = np.zeros(trees.k)
    if trees.value.shape[1] == trees.k:
        middles += middle.sum(axis=0)
    else:
        np.add.at(middles, target, middle[:, 0])
    return Plan(
        nodes=nodes.astype(np.uint32).view(NODE)[:, 0],
        node_first=node_first,
        leaf=trees.value[leaf_node] - middle[tree_of[leaf_node]],
        leaf_first=leaf_first,
        roots=np.diff(bunch_first),
        target=target[bunch_first[:-1]],
        bound=np.maximum.reduceat(half, bunch_first[:-1]) if len(roots) else np.zeros(0),
        table_bunch=table_bunch,
        table_first=np.array(table_first, dtype=np.int64),
        feature_first=np.array(feature_first, dtype=np.int64).reshape(-1, trees.n_features + 1),
        threshold=np.concatenate(parts) if parts else np.zeros(0),
        choice_first=np.concatenate([[0], np.cumsum([len(each) for each in choices])]).astype(np.int64),
        choice_feature=trees.feature[choice],
        choice_start=first[choice],
        choice_stop=first[choice + 1],
        category=trees.category,
        middle=middles,
        total=float(half.sum()),
        rounding=rounding_bound(trees, roots, tree_of, bunch_first, 2 * half, np.abs(middle).max(axis=1, initial=0.0)),
    )


def _ends(trees: TreeEnsemble, by_tree: Longs, tree_of: Longs) -> tuple[Array, Array]:
    """(trees, w) the lowest and the highest leaf of each tree; nodes come tree by tree in `by_tree`."""
    leaves = by_tree[trees.feature[by_tree] < 0]
    value = trees.value[leaves]
    if not len(leaves):
        return value, value
    starts = np.searchsorted(tree_of[leaves], np.arange(trees.n_trees))
    return np.minimum.reduceat(value, starts), np.maximum.reduceat(value, starts)


def _bunches(splits: Longs, target: Ints, table_tree: Longs) -> Longs:
    """The first tree of each bunch, and the number of trees; all in a bunch have one table and one output."""
    firsts, size, new_table = [], 0, set(table_tree.tolist())
    for tree in range(len(splits)):
        if tree in new_table or target[tree] != target[tree - 1] or size >= BUNCH:
            firsts.append(tree)
            size = 0
        size += int(splits[tree])
    return np.array([*firsts, len(splits)], dtype=np.int64)

r"""How far rounding may move the smoothed slopes of trees.

Write R for the range of a tree's leaves, u for half the distance from 1 to the next number, and take σ_j = 1. What the
kernel computes is the closed form with other numbers for Φ and φ at each threshold, and a few roundings at each node.

- φ at a threshold of feature j is multiplied by the mean jump of the tree there, at most R. So is every rounding of
  φ_t − φ_lo and the like, as a node has its φ multiplied by the chance of the other features alone.
- Φ at a threshold of another feature i is multiplied by the jump, across it, of the slope in j, at most 2φ(0)·R: no
  slope of what lies in a range of R exceeds φ(0)·R.
- A chance α that is off by δ at a node that is reached with probability P moves the slope by
  P·δ·(|∂s_left| + |∂s_right|) + |∂P|·δ·R. Within its box, ∂s = cov(s, z_j) is at most R/2, as no part of a Gaussian is
  wider than the whole. Over all nodes of one level P adds up to at most 1 and |∂P| to E|z_j| < 0.8. The mean of the
  leaves below a node, off by δ, moves it by |∂P|·δ.
- The sum over the nodes of a bunch of trees: after each level its terms make up Σ P·∂s over that level, less than 0.8·R
  for each tree, and within a level another 0.8·R at most.

So the bound grows with the number of splits on j, of other splits (less), and of levels. Products of two such errors,
1e-15 of it times the number of splits, are left out.
"""

from __future__ import annotations

import numpy as np

from ..._core.types import Array
from .format import Ints, Longs, TreeEnsemble

UNIT = 2.0**-53

DENSITY = 1.1e-15 + 2 * UNIT
"""φ from the table: 6.4e-16 for the polynomials (|He₇φ|/7! at half a cell), 2.2e-16 as z is rounded next to ±CUT, and
what is left for its own last digits; then four roundings of numbers up to φ(0)."""

BELOW = 0.8 * 6e-16
"""Φ from the table, where the polynomials lose nothing: 3.6e-16 by z, and two units in the last place."""

LEVEL = 12 * UNIT
"""α and P·α have four roundings together, times 1 + 0.8 and 0.5 for P·α' itself; a mean of leaves has two, of half the
range, times 0.8."""

TERM = 1.6 * UNIT
"""One rounding for each term that is added, of a sum that does not exceed 1.6 of the ranges of its trees."""

LAST = 8 * UNIT
"""What is done once: slopes times scale, weight and 1/σ."""


def rounding_bound(
    trees: TreeEnsemble, roots: Ints, tree_of: Longs, bunch_first: Longs, reach: Array, middle: Array
) -> Array:
    """(d,) what no slope is off by, in units of 1/σ; `reach` and `middle` are those of the leaves of each tree."""
    d, inner = trees.n_features, np.flatnonzero((trees.feature >= 0) & (tree_of < len(roots)))
    if not len(inner):
        return np.zeros(d)
    feature, tree = trees.feature[inner], tree_of[inner]
    bunch = np.repeat(np.arange(len(bunch_first) - 1), np.diff(bunch_first))
    of_bunch = np.bincount(bunch, weights=reach)
    splits = np.bincount(feature, weights=reach[tree], minlength=d)
    terms = np.bincount(feature, weights=of_bunch[bunch[tree]], minlength=d)
    levels = float((reach * _depths(trees, roots)).sum())
    once = LAST + UNIT * (len(of_bunch) + trees.k)
    everywhere = LEVEL * levels + once * reach.sum() + UNIT * middle.sum()  # the leaves less their middle are rounded
    return np.asarray(DENSITY * splits + BELOW * (splits.sum() - splits) + TERM * terms + everywhere)


def _depths(trees: TreeEnsemble, roots: Ints) -> Longs:
    """(trees,) levels of splits."""
    depth = np.zeros(len(roots), dtype=np.int64)
    at, tree = roots, np.arange(len(roots))
    while len(at):
        is_split = trees.feature[at] >= 0
        at, tree = at[is_split], tree[is_split]
        depth[tree] += 1
        at, tree = np.concatenate([trees.left[at], trees.right[at]]), np.concatenate([tree, tree])
    return depth

"""Second slopes of smoothed trees, exactly: ∂²E f(a) for a ~ N(x, diag(σ²)), as sums over leaves."""

from __future__ import annotations

import numpy as np

from ..._core.types import Array
from .format import TreeEnsemble
from .smoothing import BLOCK, checked, share


def second_slopes(trees: TreeEnsemble, X: Array, std: Array, weights: Array) -> Array:
    """(r, d, d) of the outputs weighed by (r, k), around rows X (r, d); std (d,) is 0 for what is held.

    NaN is missing: it follows each node's own direction, and has second slopes of 0.

    Examples
    --------
    >>> from smoothlime.exact.trees.format import join_trees
    >>> step = {"feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0],
    ...         "nan_left": [True, False, False], "value": [0.0, -1.0, 1.0]}
    >>> trees = join_trees([step], base=0.0, n_features=1)
    >>> print(second_slopes(trees, np.zeros((1, 1)), np.array([0.5]), np.ones((1, 1)))[0].round(6))  # 2 φ(1) / σ²
    [[1.935766]]
    """  # fmt: skip
    rows, inverse = checked(trees, X, std)
    r, d = rows.shape
    out = np.zeros((r, d, d))
    if not trees.n_trees:
        return out
    from .second_kernel import deepest, second_slopes_of_rows  # numba, and only where it is needed

    depth = deepest(trees.feature, trees.left, trees.right, trees.roots)
    middle = _middle(trees)
    given = np.require(weights, dtype=np.float64, requirements=("C", "W"))

    def work(start: int) -> None:
        part = slice(start, start + BLOCK)
        second_slopes_of_rows(
            rows[part], inverse, given[part], trees.feature, trees.threshold, trees.left, trees.right, trees.nan_left,
            trees.value, middle, trees.roots, trees.target, trees.category_first, trees.category, depth, out[part],
        )  # fmt: skip

    share(work, range(0, r, BLOCK), None)
    upper = np.triu(out, 1)
    return np.asarray((upper + upper.swapaxes(1, 2) + out * np.eye(d)) * trees.scale)


def _middle(trees: TreeEnsemble) -> Array:
    """(trees, w) halfway between the least and the largest leaf of each tree."""
    order = np.argsort(trees.roots)
    is_leaf, starts = (trees.feature < 0)[:, None], trees.roots[order]
    found = np.empty((trees.n_trees, trees.value.shape[1]))
    highest = np.maximum.reduceat(np.where(is_leaf, trees.value, -np.inf), starts)
    lowest = np.minimum.reduceat(np.where(is_leaf, trees.value, np.inf), starts)
    found[order] = (highest + lowest) / 2
    return found

"""One format for every tree ensemble: flat arrays, and the prediction they stand for.

The readers turn each library's model into a `TreeEnsemble`; `smoothing` knows nothing else. All comparisons
are `x <= threshold` in float64. What a library compares otherwise (float32, `<`) is put into the threshold by
`as_threshold`, so that predictions agree to the last split for every float64 input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._core.types import Array, Flags
from ..._core.validate import check_rows
from ...errors import InvalidArgument

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

CLOSE_TO_ZERO = float(np.float32(1e-35))
"""LightGBM's zero: what is no further from 0 counts as missing where `zero_is_missing`."""

NO_CATEGORY = np.iinfo(np.int64).min
"""Stands in an empty list of categories, and is no row's."""

BLOCK = 1 << 20
"""Pairs of row and tree that `predict` follows at once."""


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """A sum (or mean) of trees, with all nodes of all trees in one set of arrays.

    A row at node i goes left if it is missing x_j (NaN) and `nan_left[i]`; else, at a split on categories, if
    x_j, without its fraction, is one of them; else if x_j <= `threshold[i]`.

    Parameters
    ----------
    feature
        (nodes,) the feature j that a node asks for, −1 at leaves.
    threshold, left, right, nan_left
        (nodes,) the split; children by their position in these arrays.
    value
        (nodes, w) what a leaf adds; w is 1 where each tree serves one output, else k.
    roots, target
        (trees,) where each tree begins, and the output it adds to (0 and unused where w is k > 1).
    base
        (k,) added to the sum or mean.
    averaged
        Whether outputs are means over the trees (forests) and not sums (boosting).
    zero_is_missing
        (d,) features in which exactly 0 counts as missing, as LightGBM's `zero_as_missing` has it.
    category_first, category
        (nodes + 1,) and (c,): node i sends the categories `category[category_first[i]:category_first[i + 1]]`
        left; empty at splits by threshold.
    """

    feature: Ints
    threshold: Array
    left: Ints
    right: Ints
    nan_left: Flags
    value: Array
    roots: Ints
    target: Ints
    base: Array
    n_features: int
    averaged: bool = False
    zero_is_missing: Flags = field(default_factory=lambda: np.zeros(0, dtype=bool))
    category_first: Longs = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    category: Longs = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def k(self) -> int:
        """Number of outputs."""
        return len(self.base)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    @property
    def scale(self) -> float:
        """What a tree counts for: 1 in a sum, 1 / trees in a mean."""
        of_each_output = self.n_trees if self.value.shape[1] == self.k else self.n_trees // self.k
        return 1.0 / max(of_each_output, 1) if self.averaged else 1.0

    @property
    def is_categorical(self) -> Flags:
        """(nodes,) which nodes split on categories."""
        if not len(self.category_first):
            return np.zeros(len(self.feature), dtype=bool)
        return np.diff(self.category_first) > 0

    @property
    def categorical_features(self) -> tuple[int, ...]:
        """Features that some node splits by category; they cannot be perturbed."""
        if not len(self.category):
            return ()
        return tuple(int(each) for each in np.unique(self.feature[self.is_categorical]))

    def predict(self, X: Any) -> Array:
        """Outputs of the ensemble itself at rows (n, d), as (n, k); NaN is missing."""
        rows = self.with_missing(check_rows(X, finite=False))
        if rows.shape[1] != self.n_features:
            msg = f"X has {rows.shape[1]} features but the trees were fitted with {self.n_features}"
            raise InvalidArgument(msg)
        from .kernel import add_leaves

        out = np.zeros((len(rows), self.k))
        size = max(1, BLOCK // max(self.n_trees, 1))
        for start in range(0, len(rows) if self.n_trees else 0, size):
            part = slice(start, start + size)
            add_leaves(self.apply(rows[part]), self.value, self.target, out[part])
        return out * self.scale + self.base

    def apply(self, rows: Array) -> Ints:
        """The leaf that each row reaches in each tree, (n, trees)."""
        from .kernel import find_leaves  # numba, and only where it is needed

        leaves = np.empty((len(rows), self.n_trees), dtype=np.int32)
        find_leaves(
            np.require(rows, requirements=("C", "W")), self.feature, self.threshold, self.left, self.right,
            self.nan_left, self.roots, self.category_first, self.category, leaves,
        )  # fmt: skip
        return leaves

    def with_missing(self, rows: Array, where: Flags | None = None) -> Array:
        """The rows with NaN where 0 counts as missing, in the features of `where` (all, if not given)."""
        if not self.zero_is_missing.any():
            return rows
        asked = self.zero_is_missing if where is None else self.zero_is_missing & where
        return np.where(asked & (np.abs(rows) <= CLOSE_TO_ZERO), np.nan, rows)


def as_threshold(t: Any, *, single: bool, strict: bool) -> Array:
    """The float64 number c with x <= c exactly where the library goes left, for every float64 x.

    Parameters
    ----------
    t
        The library's threshold.
    single
        Whether it rounds x to float32 before it compares.
    strict
        Whether it goes left at x < t and not at x <= t.
    """
    t = np.asarray(t, dtype=np.float64)
    if not single:
        return np.nextafter(t, -np.inf) if strict else t
    with np.errstate(over="ignore"):  # beyond float32 it is infinite there too
        low = t.astype(np.float32)
        beyond = (low >= t) if strict else (low > t)
        low = np.where(beyond, np.nextafter(low, np.float32(-np.inf)), low)  # the largest float32 that goes left
        high = np.nextafter(low, np.float32(np.inf))
    limit = 2.0**128  # what float32 would have next instead of infinity
    # halfway between two float32 numbers, x is rounded to the one whose last bit is 0
    middle = (np.clip(low.astype(np.float64), -limit, limit) + np.clip(high.astype(np.float64), -limit, limit)) / 2
    is_even = low.view(np.uint32) % 2 == 0
    middle = np.where(is_even, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isinf(t), t, middle)


def join_trees(
    trees: Sequence[dict[str, Any]],
    *,
    base: Any,
    n_features: int,
    target: Any = None,
    averaged: bool = False,
    zero_is_missing: Flags | None = None,
) -> TreeEnsemble:
    """One ensemble from trees of their own: dicts of feature, threshold, left, right, nan_left, value, category_left.

    Children count from the tree's own first node, which is its root. `category_left`, where a tree has any split on
    categories, maps such a node to the categories that go left.
    """
    sizes = np.array([len(tree["feature"]) for tree in trees], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(sizes)])
    offset = np.repeat(first[:-1], sizes)

    def joined(name: str, dtype: Any) -> Any:
        parts = [np.asarray(tree[name], dtype=dtype) for tree in trees]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)

    feature = joined("feature", np.int32)
    is_leaf = feature < 0
    values = [np.asarray(tree["value"], dtype=np.float64).reshape(len(tree["feature"]), -1) for tree in trees]
    sets: dict[int, Any] = {
        int(start) + node: kept if len(kept) else [NO_CATEGORY]
        for start, tree in zip(first, trees, strict=False)
        for node, kept in (tree.get("category_left") or {}).items()
    }
    length = np.zeros(len(feature), dtype=np.int64)
    for node, kept in sets.items():
        length[node] = len(kept)
    ordered = [np.asarray(sets[node], dtype=np.int64) for node in sorted(sets)]
    base = np.atleast_1d(np.asarray(base, dtype=np.float64))
    return TreeEnsemble(
        feature=feature,
        threshold=np.where(is_leaf, 0.0, joined("threshold", np.float64)),
        left=np.where(is_leaf, -1, joined("left", np.int64) + offset).astype(np.int32),
        right=np.where(is_leaf, -1, joined("right", np.int64) + offset).astype(np.int32),
        nan_left=joined("nan_left", bool) & ~is_leaf,
        value=np.concatenate(values) if values else np.zeros((0, 1)),
        roots=first[:-1].astype(np.int32),
        target=np.asarray(target if target is not None else np.zeros(len(trees)), dtype=np.int32),
        base=base,
        n_features=int(n_features),
        averaged=averaged,
        zero_is_missing=np.zeros(n_features, dtype=bool) if zero_is_missing is None else zero_is_missing,
        category_first=np.concatenate([[0], np.cumsum(length)]) if sets else np.zeros(0, dtype=np.int64),
        category=np.concatenate(ordered) if ordered else np.zeros(0, dtype=np.int64),
    )

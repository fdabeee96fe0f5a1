"""Tree ensembles as closed forms: E f and its slopes under diagonal Σ, by one pass through each tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core.optional import require
from ..._core.types import Array
from ...space.neighbourhood import Factor
from ..closed_form import Smoothed
from .format import TreeEnsemble
from .read.recognise import read_trees
from .smoothing import smooth

LIBRARIES = ("catboost", "lightgbm", "sklearn", "xgboost")


@dataclass(frozen=True, slots=True, eq=False)
class TreesForm:
    """Trees whose outputs are those of the model."""

    trees: TreeEnsemble
    takes_gaps = True

    def size(self, x: Array) -> float:
        """Sum of the largest leaves: XGBoost adds up in float32, and its errors go by the terms."""
        leaves = np.abs(self.trees.value).max(axis=1)
        largest = np.maximum.reduceat(leaves, np.sort(self.trees.roots)) if self.trees.n_trees else np.zeros(1)
        return float(self.trees.scale * largest.sum() * max(1.0, self.trees.n_trees / 64))  # rounding adds up

    @property
    def spread(self) -> Array:
        """(k,) the range of the leaves of each tree, added up."""
        trees, total = self.trees, np.zeros(self.trees.k)
        if trees.n_trees:
            is_leaf, starts = (trees.feature < 0)[:, None], np.sort(trees.roots)
            highest = np.maximum.reduceat(np.where(is_leaf, trees.value, -np.inf), starts)
            lowest = np.minimum.reduceat(np.where(is_leaf, trees.value, np.inf), starts)
            if trees.value.shape[1] == trees.k:
                total += (highest - lowest).sum(axis=0)
            else:
                np.add.at(total, trees.target[np.argsort(trees.roots)], (highest - lowest)[:, 0])
        return total * trees.scale

    def values(self, x: Array) -> Array:
        """Outputs (r, k)."""
        return np.asarray(self.trees.predict(x), dtype=np.float64)

    def smooth(self, x: Array, factor: Factor, weights: Array) -> Smoothed:
        """E f and its slopes; a missing value is not perturbed, and its slope is 0."""
        std = np.zeros(factor.d)
        std[factor.free] = factor.std
        found = smooth(self.trees, x, std, weights=weights)
        free = factor.free
        return Smoothed(
            slopes=found.gradients[:, free, 0],
            mean=found.values[:, 0],
            fidelity=np.full(len(x), np.nan),
            radius=np.linalg.norm(found.radius[:, free] * factor.std, axis=1),
        )


def read_ensemble(estimator: Any, *, is_margin: bool) -> TreesForm | None:
    """The trees of an estimator, if it is made of trees and its output is a sum of theirs."""
    if type(estimator).__module__.partition(".")[0] not in LIBRARIES:
        return None  # a subclass may predict as it likes: it is asked instead
    trees = read_trees(estimator, "margin" if is_margin else "probability")
    if trees is None:
        return None
    require("numba", extra="trees", to="explain trees exactly")
    return TreesForm(trees)

"""Trees, forests and gradient boosting of scikit-learn, from their public `tree_` arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import NoClosedForm
from .trees import TreeEnsemble, as_threshold, join_trees


def read_forest(model: Any) -> TreeEnsemble:
    """A decision tree, random forest or extra trees: class probabilities, or regression values."""
    members = getattr(model, "estimators_", None) or [model]
    classes = getattr(model, "classes_", None)
    if isinstance(classes, list):
        msg = (
            f"the {type(model).__name__} predicts several targets at once, which has no exact answer here;"
            f" explain one classifier at a time, or use method='clime'"
        )
        raise NoClosedForm(msg)
    trees = [_one_tree(each.tree_) for each in members]
    for tree in trees:
        if classes is not None:  # counts of each class in older versions, their shares in newer ones
            tree["value"] = tree["value"] / np.maximum(tree["value"].sum(axis=1, keepdims=True), 1e-300)
    k = trees[0]["value"].shape[1]
    return join_trees(trees, base=np.zeros(k), n_features=model.n_features_in_, averaged=len(trees) > 1)


def _one_tree(tree: Any) -> dict[str, Any]:
    """One `tree_`: X is rounded to float32, and x <= threshold goes left."""
    is_leaf = tree.children_left < 0
    missing = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))
    value = tree.value[:, :, 0] if tree.value.shape[1] > 1 else tree.value[:, 0, :]
    return {
        "feature": np.where(is_leaf, -1, tree.feature),
        "threshold": as_threshold(tree.threshold, single=True, strict=False),
        "left": tree.children_left,
        "right": tree.children_right,
        "nan_left": np.asarray(missing, dtype=bool),
        "value": value,
    }

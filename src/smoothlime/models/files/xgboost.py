"""What an XGBoost file says of its trees, checked: the library would follow a wrong child past the end of an array."""

from __future__ import annotations

from typing import Any

import numpy as np

PER_NODE = ("left_children", "right_children", "parents", "split_indices", "split_conditions", "default_left")


NOTED = ("loss_changes", "sum_hessian")
"""The same, which older files with leaves of several numbers lack."""

MOST_FEATURES, MOST_OUTPUTS = 2**20, 2**16
"""Counts that a file may claim: the library makes room for them, however few trees use them."""


def check_xgboost(told: Any) -> None:
    """A ValueError, KeyError or TypeError where the contents of a file do not fit together."""
    learner = told["learner"]
    given, booster = learner["learner_model_param"], learner["gradient_booster"]
    d = int(given["num_feature"])
    k = max(int(given["num_class"]), int(given.get("num_target", 1)), 1)
    for count, most, what in ((d, MOST_FEATURES, "features"), (k, MOST_OUTPUTS, "outputs")):
        if count > most:
            msg = f"it claims {count:,} {what}, and {most:,} at most are read"
            raise ValueError(msg)
    for name in ("feature_names", "feature_types"):
        if len(learner.get(name) or ()) not in (0, d):
            msg = f"{len(learner[name])} {name} for {d} features"
            raise ValueError(msg)
    if booster["name"] == "gblinear":
        _check(len(booster["model"]["weights"]) == (d + 1) * k, "weights")
        return
    is_dart = booster["name"] == "dart"
    model = (booster["gbtree"] if is_dart else booster)["model"]
    trees = model["trees"]
    if is_dart:
        _check(len(booster["weight_drop"]) == len(trees), "weight_drop")
    _check(int(model["gbtree_model_param"]["num_trees"]) == len(trees), "num_trees")
    groups = as_whole(model["tree_info"], "tree_info", 0, k)
    _check(len(groups) == len(trees), "tree_info")
    ends = as_whole(model.get("iteration_indptr", ()), "iteration_indptr", 0, len(trees) + 1)
    _check(not len(ends) or (ends[0] == 0 and ends[-1] == len(trees) and bool((np.diff(ends) >= 0).all())), "rounds")
    for tree in trees:
        _check_tree(tree, d)


def _check_tree(tree: dict[str, Any], d: int) -> None:
    n = int(tree["tree_param"]["num_nodes"])
    width = int(tree["tree_param"].get("size_leaf_vector", "1") or 1)
    noted = () if width > 1 and tree.get("leaf_weights") is None else NOTED
    _check(n > 0 and all(len(tree[name]) == n for name in (*PER_NODE, *noted)), "nodes")
    _check(0 <= width <= 2**16 and int(tree["tree_param"]["num_feature"]) == d, "features")
    left = as_whole(tree["left_children"], "children", -1, n)
    is_leaf = left < 0
    right = as_whole(tree["right_children"], "children", -1, n)
    # of vector leaves, the right child is the place of their numbers
    _check(width > 1 or bool(((right < 0) == is_leaf).all()), "children")
    inner = np.flatnonzero(~is_leaf)
    children = np.concatenate([left[inner], right[inner]])
    check_branches(children)
    _check(bool((np.asarray(tree["parents"])[children] == np.tile(inner, 2)).all()), "parents")
    as_whole(np.asarray(tree["split_indices"])[~is_leaf], "split_indices", 0, d)
    if width > 1:
        _check_vector_leaves(tree, right[is_leaf], n, width)
    nodes = as_whole(tree["categories_nodes"], "categories", 0, n)
    first = as_whole(tree["categories_segments"], "categories", 0, 2**31)
    sizes = as_whole(tree["categories_sizes"], "categories", 0, 2**31)
    listed = as_whole(tree["categories"], "categories", 0, 2**24)
    _check(len(nodes) == len(first) == len(sizes), "categories")
    _check(not len(nodes) or int((first + sizes).max()) <= len(listed), "categories")
    kinds = np.asarray(tree.get("split_type", np.zeros(n)))
    _check(len(kinds) == n and set(np.flatnonzero(kinds)) == set(nodes.tolist()), "categories")


def _check_vector_leaves(tree: dict[str, Any], places: Any, n: int, width: int) -> None:
    """Leaves of several numbers stand at the places that their right children name, or by node in older files."""
    given = tree.get("leaf_weights")
    of_leaves, of_nodes = 0 if given is None else len(given), len(tree["base_weights"])
    _check((of_leaves or of_nodes) % width == 0, "leaves")
    by_node = not of_leaves and of_nodes == n * width
    _check(
        by_node or not len(places) or (places.min() >= 0 and places.max() < (of_leaves or of_nodes) // width), "leaves"
    )


def check_branches(children: Any) -> None:
    """Refuse trees in which a node has two parents or the root has one: only then can a way through them be endless."""
    _check(bool((children > 0).all()) and len(np.unique(children)) == len(children), "children")


def as_whole(given: Any, what: str, low: int, high: int) -> Any:
    """Whole numbers from low up to below high."""
    found = np.asarray(given)
    if not len(found):
        return np.zeros(0, dtype=np.int64)
    _check(found.ndim == 1 and found.dtype.kind in "iu" and low <= found.min() and found.max() < high, what)
    return found.astype(np.int64)


def _check(holds: Any, what: str) -> None:
    if not holds:
        msg = f"its {what} do not fit together"
        raise ValueError(msg)

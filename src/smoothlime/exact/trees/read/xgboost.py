"""XGBoost's trees, from the JSON that a Booster saves itself as (its documented schema, steady since 1.0)."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np

from ....errors import NoClosedForm
from ..format import TreeEnsemble, as_threshold, join_trees

LOGISTIC = ("binary:logistic", "reg:logistic")
LOGARITHMIC = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")


def read_xgboost(booster: Any, rounds: int | None = None) -> TreeEnsemble:
    """A Booster's margin, after all rounds or the first so many."""
    content = json.loads(bytes(booster.save_raw(raw_format="json")))
    learner = content["learner"]
    kind = learner["gradient_booster"]["name"]
    if kind not in ("gbtree", "dart"):
        msg = f"a Booster of kind {kind!r} is not made of trees; use method='clime'"
        raise NoClosedForm(msg)
    dart = kind == "dart"
    part = learner["gradient_booster"]["gbtree"] if dart else learner["gradient_booster"]
    model = part["model"]
    weights = learner["gradient_booster"]["weight_drop"] if dart else [1.0] * len(model["trees"])
    first = model.get("iteration_indptr")
    n_trees = len(model["trees"]) if rounds is None or first is None else int(first[min(rounds, len(first) - 1)])
    given = learner["learner_model_param"]
    k = max(int(given["num_class"]), int(given.get("num_target", 1)), 1)
    trees = [_one_tree(tree, weight) for tree, weight in zip(model["trees"][:n_trees], weights, strict=False)]
    return join_trees(
        trees,
        base=_base(given, learner["objective"]["name"], k),
        n_features=int(given["num_feature"]),
        target=np.asarray(model["tree_info"][:n_trees], dtype=np.int32),
    )


def _base(given: dict[str, Any], objective: str, k: int) -> Any:
    """The base score as a margin; the file holds it as a prediction."""
    score = np.array(json.loads(given["base_score"]), dtype=np.float64).reshape(-1)
    score = np.broadcast_to(score, k) if len(score) == 1 else score
    if objective in LOGISTIC:
        return np.log(score / (1 - score))
    return np.log(score) if objective in LOGARITHMIC else score


def _one_tree(tree: dict[str, Any], weight: float) -> dict[str, Any]:
    """One tree: X is rounded to float32, and x < threshold goes left; categories listed go right."""
    left = np.array(tree["left_children"], dtype=np.int64)
    right = np.array(tree["right_children"], dtype=np.int64)
    is_leaf = left < 0
    width = int(tree["tree_param"].get("size_leaf_vector", "1") or 1)
    condition = np.array(tree["split_conditions"], dtype=np.float32)
    value = np.where(is_leaf, condition, 0).astype(np.float64)[:, None]
    if width > 1:
        value = _vector_leaves(tree, is_leaf, right, width)
    default_left = np.array(tree["default_left"], dtype=bool)
    kept: dict[int, list[int]] = {}
    first = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
    for node, start, size in first:
        kept[node] = tree["categories"][start : start + size]
        left[node], right[node] = right[node], left[node]
        default_left[node] = not default_left[node]
    return {
        "feature": np.where(is_leaf, -1, np.array(tree["split_indices"], dtype=np.int64)),
        "threshold": as_threshold(condition, single=True, strict=True),
        "left": left,
        "right": right,
        "nan_left": default_left,
        "value": value * weight,
        "category_left": kept,
    }


def _vector_leaves(tree: dict[str, Any], is_leaf: Any, right: Any, width: int) -> Any:
    """(nodes, width): the weights of each node, or in newer files of each leaf, whose place stands in `right`."""
    held = np.array(tree.get("leaf_weights") or tree["base_weights"], dtype=np.float32).astype(np.float64)
    held = held.reshape(-1, width)
    value = np.zeros((len(is_leaf), width))
    if len(held) == len(is_leaf):
        value[is_leaf] = held[is_leaf]
    else:
        value[is_leaf] = held[right[is_leaf]]
    return value


def used_rounds(model: Any) -> int | None:
    """Rounds that predictions use: an estimator stops at its best one, a Booster takes all unless it is told."""
    if not hasattr(model, "get_booster"):
        return None
    best = model.get_booster().attributes().get("best_iteration")
    return None if best is None else int(best) + 1


def ask_booster(booster: Any, rounds: int | None, *, margin: bool) -> Any:
    """Margins (n, k) of a Booster after so many rounds, or what it predicts in everyday use."""

    def ask(rows: Any) -> Any:
        xgboost: Any = importlib.import_module("xgboost")  # is here: the Booster is
        data = xgboost.DMatrix(rows, feature_names=booster.feature_names, feature_types=booster.feature_types)
        out = booster.predict(data, output_margin=margin, iteration_range=(0, rounds or 0))
        return np.asarray(out, dtype=np.float64).reshape(len(rows), -1)

    return ask

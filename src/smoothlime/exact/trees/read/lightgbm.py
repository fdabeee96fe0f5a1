"""LightGBM's trees, from the text that a Booster saves itself as.

The text says of every node what counts as missing there (nothing, 0, or NaN); the data frames and treelite do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import NoClosedForm
from ..format import CLOSE_TO_ZERO, TreeEnsemble, join_trees

CATEGORICAL, DEFAULT_LEFT = 1, 2
"""Bits of decision_type; the two after them say what is missing."""

NOTHING, ZERO = 0, 1


def read_lightgbm(text: str) -> TreeEnsemble:
    """The raw score of a Booster's text: all rounds, or those up to `best_iteration` where training stopped early."""
    head, *blocks = text.split("\nTree=")
    header = _fields(head)
    if any(_fields(block).get("is_linear", "0") != "0" for block in blocks):
        msg = "LightGBM's linear trees (linear_tree=True) have no closed form here; use method='clime'"
        raise NoClosedForm(msg)
    k = int(header["num_tree_per_iteration"])
    d = int(header["max_feature_idx"]) + 1
    zero_is_missing = np.zeros(d, dtype=bool)
    trees = [_one_tree(_fields(block), zero_is_missing) for block in blocks]
    return join_trees(
        trees,
        base=np.zeros(k),
        n_features=d,
        target=np.arange(len(trees)) % k,
        averaged="average_output" in header,
        zero_is_missing=zero_is_missing,
    )


def _fields(text: str) -> dict[str, str]:
    """Lines `name=value` up to the first that is none; a word of its own has no value."""
    found = {}
    for line in text.split("\nend of trees")[0].splitlines():
        name, _, value = line.partition("=")
        found[name] = value
    return found


def _one_tree(fields: dict[str, str], zero_is_missing: Any) -> dict[str, Any]:
    """One tree: float64, and x <= threshold goes left; inner nodes first, then the leaves."""

    def numbers(name: str, dtype: Any = np.int64) -> Any:
        return np.array(fields.get(name, "").split(), dtype=dtype)

    leaf = numbers("leaf_value", np.float64)
    inner = len(leaf) - 1
    feature = numbers("split_feature")[:inner]
    threshold = numbers("threshold", np.float64)[:inner]
    decision = numbers("decision_type")[:inner]
    children = [numbers(name)[:inner] for name in ("left_child", "right_child")]
    left, right = (np.where(each < 0, inner - 1 - each, each) for each in children)  # leaf i is written −1 − i
    missing, by_category = (decision >> 2) & 3, (decision & CATEGORICAL) > 0
    nan_left = np.where(missing == NOTHING, threshold >= 0.0, (decision & DEFAULT_LEFT) > 0) & ~by_category
    zero_is_missing[feature[(missing == ZERO) & ~by_category]] = True
    below_zero = np.nextafter(-CLOSE_TO_ZERO, -np.inf)  # what is closer than that is taken for 0 before it is compared
    compared = np.where(
        np.abs(threshold) > CLOSE_TO_ZERO, threshold, np.where(threshold < 0, below_zero, CLOSE_TO_ZERO)
    )
    first, words = numbers("cat_boundaries"), numbers("cat_threshold", np.uint32)
    kept = {}
    for node in np.flatnonzero(by_category):
        at = int(threshold[node])
        bits = np.unpackbits(words[first[at] : first[at + 1]].view(np.uint8), bitorder="little")
        kept[int(node)] = np.flatnonzero(bits)
    pad = np.zeros(len(leaf))
    return {
        "feature": np.concatenate([feature, pad - 1]),
        "threshold": np.concatenate([compared, pad]),
        "left": np.concatenate([left, pad]),
        "right": np.concatenate([right, pad]),
        "nan_left": np.concatenate([nan_left, pad]),
        "value": np.concatenate([np.zeros(inner), leaf]),
        "category_left": kept,
    }


def stops_early(model: Any) -> bool:
    """Whether an estimator or Booster was told to stop adding up trees where the class seems clear.

    An estimator hands that to its Booster with each call of predict, so a Booster alone does not show it.
    """
    given = model.get_params() if hasattr(model, "get_params") else getattr(model, "params", None) or {}
    return str(given.get("pred_early_stop", False)).lower() not in ("false", "-", "none")


def ask_booster(booster: Any, *, raw: bool) -> Any:
    """Raw scores (n, k) of a Booster, or what it predicts in everyday use."""

    def ask(rows: Any) -> Any:
        out = np.asarray(booster.predict(rows, raw_score=raw), dtype=np.float64).reshape(len(rows), -1)
        is_mean = "\naverage_output\n" in booster.model_to_string(num_iteration=1)
        rounds = booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration()
        # boosting="rf" means over its trees, but its raw score is their sum
        return out / rounds if raw and is_mean else out

    return ask

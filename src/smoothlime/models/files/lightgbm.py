"""What LightGBM's text says of its trees, checked: the library would end the process, or read past its arrays."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .xgboost import as_whole, check_branches

PARAMETER = re.compile(r"\[\w+: .*\]")

CATEGORICAL = 1
"""Bit of decision_type."""

PER_INNER = ("split_feature", "threshold", "decision_type", "left_child", "right_child")

OPTIONAL = {"split_gain", "internal_value", "internal_weight", "internal_count"}


def check_lightgbm(text: str) -> None:
    """A ValueError or KeyError where the contents of a file do not fit together, or something is cut off."""
    head, separator, rest = text.partition("\n\n")
    header = fields_of(head)
    _check(bool(separator) and header["version"] in ("v2", "v3", "v4"), "version")
    d, k = int(header["max_feature_idx"]) + 1, int(header["num_tree_per_iteration"])
    _check(0 < d <= 2**24 and 0 < k <= 2**16 and int(header["num_class"]) >= 1, "counts")
    for name in ("feature_names", "feature_infos"):
        _check(len(header[name].split(" ")) == d, name)
    sizes = [int(each) for each in header.get("tree_sizes", "").split()]
    _check(len(sizes) % k == 0, "tree_sizes")
    encoded, at = rest.encode(), 0
    for i, size in enumerate(sizes):
        block = encoded[at : at + size].decode()
        _check(size > 0 and block.startswith(f"Tree={i}\n") and len(block.encode()) == size, "tree_sizes")
        _check_tree(fields_of(block), d)
        at += size
    end = encoded[at:].decode()
    _check(end.lstrip("\n").startswith("end of trees"), "tree_sizes")
    given, separator, _ = end.partition("\nparameters:")[2].partition("\nend of parameters")
    _check("\nparameters:" not in end or separator, "parameters")
    _check(all(PARAMETER.fullmatch(line) for line in given.split("\n") if line), "parameters")


def fields_of(text: str) -> dict[str, str]:
    """Lines `name=value`; a word of its own has no value, and no name comes twice."""
    found: dict[str, str] = {}
    for line in filter(None, text.split("\n")):
        name, _, value = line.partition("=")
        _check(name not in found, name)
        found[name] = value
    return found


def _check_tree(tree: dict[str, str], d: int) -> None:
    leaves, by_category = int(tree["num_leaves"]), int(tree["num_cat"])
    _check(0 < leaves <= 2**24 and by_category >= 0, "counts")
    _check(len(_numbers(tree, "leaf_value")) == leaves, "leaves")
    float(tree["shrinkage"])
    if leaves == 1:
        return
    inner = leaves - 1
    values = {name: _numbers(tree, name) for name in PER_INNER}
    _check(all(len(each) == inner for each in values.values()), "nodes")
    for name in OPTIONAL & set(tree):
        _check(len(_numbers(tree, name)) in (0, inner), name)
    for name in {"leaf_weight", "leaf_count"} & set(tree):
        _check(len(_numbers(tree, name)) in (0, leaves), name)
    as_whole(_whole(values["split_feature"]), "split_feature", 0, d)
    children = np.concatenate([_whole(values["left_child"]), _whole(values["right_child"])])
    as_whole(children, "children", -leaves, inner)
    check_branches(children[children >= 0])
    kinds = _whole(values["decision_type"])
    as_whole(kinds, "decision_type", 0, 16)
    _check_categories(tree, by_category, values["threshold"][(kinds & CATEGORICAL) > 0])
    _check_linear(tree, leaves, d)


def _check_categories(tree: dict[str, str], count: int, places: Any) -> None:
    as_whole(_whole(places), "categories", 0, max(count, 1))
    _check(count > 0 or not len(places), "categories")
    if count:
        bounds = as_whole(_whole(_numbers(tree, "cat_boundaries")), "categories", 0, 2**31)
        words = _numbers(tree, "cat_threshold")
        _check(len(bounds) == count + 1 and bounds[0] == 0 and bounds[-1] == len(words), "categories")
        _check(bool((np.diff(bounds) >= 0).all()), "categories")
        as_whole(_whole(words), "categories", 0, 2**32)


def _check_linear(tree: dict[str, str], leaves: int, d: int) -> None:
    if tree.get("is_linear", "0") == "0":
        return
    counts = as_whole(_whole(_numbers(tree, "num_features")), "leaf_features", 0, d + 1)
    _check(len(_numbers(tree, "leaf_const")) == leaves == len(counts), "leaf_const")
    features = as_whole(_whole(_numbers(tree, "leaf_features")), "leaf_features", 0, d)
    _check(int(counts.sum()) == len(features) == len(_numbers(tree, "leaf_coeff")), "leaf_features")


def _numbers(tree: dict[str, str], name: str) -> Any:
    """What a line lists."""
    return np.array(tree.get(name, "").split(), dtype=np.float64)


def _whole(numbers: Any) -> Any:
    """The same as whole numbers, if they are."""
    _check(bool((np.abs(numbers) < 2.0**53).all()) and bool((numbers == np.rint(numbers)).all()), "numbers")
    return numbers.astype(np.int64)


def _check(holds: Any, what: str) -> None:
    if not holds:
        msg = f"its {what} do not fit together, or are cut off"
        raise ValueError(msg)

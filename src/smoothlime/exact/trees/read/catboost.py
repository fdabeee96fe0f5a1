"""CatBoost's trees, from the JSON that `save_model(path, format="json")` writes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import NoClosedForm, UnreadableFile
from ....models.fitted import PROBABILITY_SWITCH, raw_score_switch
from ..format import TreeEnsemble, as_threshold, join_trees


def read_catboost(source: Any, n_features: int = 0) -> TreeEnsemble:
    """The raw score of a model, from the path of its JSON file or the contents of one as a dict.

    It has at least `n_features`, as a file may leave out the last ones. A file cannot be asked what it predicts, so
    nothing is proved about it here; a fitted model can.
    """
    content = _content(source)
    if "scale_and_bias" not in content or not ({"oblivious_trees", "trees"} & set(content)):
        msg = "this is no CatBoost model: it has no trees, or no scale_and_bias. Save one with format='json'"
        raise UnreadableFile(msg)
    floats = content["features_info"].get("float_features") or []
    others = [
        each for name, held in content["features_info"].items() if name != "float_features" for each in held or []
    ]
    flat = [each.get("flat_feature_index", -1) for each in [*floats, *others] if isinstance(each, dict)]
    scale, bias = content["scale_and_bias"]
    bias = np.atleast_1d(np.asarray(bias, dtype=np.float64))
    nested = content.get("trees")
    walked = [_nested(each) for each in nested] if nested else [_oblivious(each) for each in content["oblivious_trees"]]
    by_index = {each.get("feature_index", at): each for at, each in enumerate(floats)}  # features not used may be gone
    trees = [_one_tree(nodes, by_index, scale) for nodes in walked]
    k = max([len(bias), *(tree["value"].shape[1] for tree in trees)])
    base = np.broadcast_to(bias, k) if len(bias) == 1 else bias
    d = max([each + 1 for each in flat] + [int(n_features)])
    return join_trees(trees, base=base, n_features=d)


def save_catboost(model: Any) -> str:
    """The JSON that a fitted model saves itself as, which it does to files only."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        return path.read_text(encoding="utf-8")


def _content(source: Any) -> dict[str, Any]:
    if isinstance(source, dict):
        return source
    try:
        content = json.loads(Path(source).read_text(encoding="utf-8"))
    except ValueError as err:
        msg = f"{source} holds no JSON: {err}. Save the model with format='json'"
        raise UnreadableFile(msg) from err
    if not isinstance(content, dict):
        msg = f"{source} is no CatBoost model: it holds a {type(content).__name__}"
        raise UnreadableFile(msg)
    return content


Node = tuple[dict[str, Any] | None, int, int, Any]
"""A split (None at a leaf), its children, and the leaf's value."""


def _nested(tree: dict[str, Any]) -> list[Node]:
    """Nodes of a tree that was grown by depth or by leaves; parents before children."""
    nodes: list[Node] = [(None, 0, 0, 0.0)]
    todo = [(0, tree)]
    while todo:
        at, held = todo.pop()
        if "split" not in held:
            nodes[at] = (None, 0, 0, held["value"])
            continue
        nodes[at] = (held["split"], len(nodes), len(nodes) + 1, None)
        todo += [(len(nodes), held["left"]), (len(nodes) + 1, held["right"])]
        nodes += [(None, 0, 0, 0.0)] * 2
    return nodes


def _oblivious(tree: dict[str, Any]) -> list[Node]:
    """Nodes of a symmetric tree: level by level, the last split first, as bit i of a leaf's place is split i."""
    splits = tree.get("splits") or []
    values = np.asarray(tree["leaf_values"], dtype=np.float64).reshape(2 ** len(splits), -1)
    nodes: list[Node] = []
    for level, split in enumerate(reversed(splits)):
        start = 2**level - 1
        nodes += [(split, 2 * (start + i) + 1, 2 * (start + i) + 2, None) for i in range(2**level)]
    return nodes + [(None, 0, 0, value) for value in values]


def _one_tree(nodes: list[Node], floats: dict[int, dict[str, Any]], scale: float) -> dict[str, Any]:
    """One tree: X is rounded to float32, and x > border goes right."""
    n = len(nodes)
    width = max(np.size(value) for split, _, _, value in nodes if split is None)
    feature, border, nan_left = np.full(n, -1), np.zeros(n), np.zeros(n, dtype=bool)
    value = np.zeros((n, width))
    for at, (split, _, _, held) in enumerate(nodes):
        if split is None:
            value[at] = np.asarray(held, dtype=np.float64) * scale
            continue
        if split.get("split_type", "FloatFeature") != "FloatFeature":
            msg = (
                f"CatBoost splits on categories ({split['split_type']}), which have no closed form here;"
                f" use method='clime'"
            )
            raise NoClosedForm(msg)
        asked = floats.get(split["float_feature_index"])
        if asked is None:
            msg = (
                f"CatBoost splits on float feature {split['float_feature_index']}, which is not among the"
                f" float_features {sorted(floats)} that the model lists; use method='clime'"
            )
            raise NoClosedForm(msg)
        feature[at] = asked["flat_feature_index"]
        border[at] = split["border"]
        nan_left[at] = asked.get("nan_value_treatment") != "AsTrue"  # missing as +∞; else as −∞, or compared in vain
    return {
        "feature": feature,
        "threshold": as_threshold(border, single=True, strict=False),
        "left": [left for _, left, _, _ in nodes],
        "right": [right for _, _, right, _ in nodes],
        "nan_left": nan_left,
        "value": value,
    }


def _everyday(model: Any) -> dict[str, Any]:
    """What `predict` of the base class is given, which would return raw scores for classifiers too."""
    is_base = type(model).__name__ == "CatBoost"
    return PROBABILITY_SWITCH if is_base and len(getattr(model, "classes_", ())) else {}


def ask_catboost(model: Any, *, raw: bool) -> Any:
    """Raw scores (n, k) of a fitted model, or what it predicts in everyday use."""

    def ask(rows: Any) -> Any:
        if raw:
            out = model.predict(rows, **(raw_score_switch(model) or {}))
        else:
            out = (
                model.predict_proba(rows)
                if hasattr(model, "predict_proba")
                else model.predict(rows, **_everyday(model))
            )
        return np.asarray(out, dtype=np.float64).reshape(len(rows), -1)

    return ask

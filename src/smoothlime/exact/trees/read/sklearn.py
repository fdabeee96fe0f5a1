"""Trees, forests and gradient boosting of scikit-learn: public `tree_` arrays, treelite where there are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...._core.optional import require
from ...._core.types import Array
from ....errors import NoClosedForm
from ....models.estimator import NAMES_UNSAID
from ..format import TreeEnsemble, as_threshold, join_trees

Ask = Callable[[Array], Array]

NUMERICAL, CATEGORICAL, AT_MOST = 1, 2, 3
"""treelite's numbers for kinds of nodes, and for the comparison x <= threshold."""


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
    trees = [_one_tree(_tree(each, model)) for each in members]
    for tree in trees:
        if classes is not None:  # counts of each class in older versions, their shares in newer ones
            tree["value"] = tree["value"] / np.maximum(tree["value"].sum(axis=1, keepdims=True), 1e-300)
    k = trees[0]["value"].shape[1]
    return join_trees(trees, base=np.zeros(k), n_features=model.n_features_in_, averaged=len(trees) > 1)


def forest_contents(model: Any) -> Any:
    """What `read_forest` reads."""
    members = getattr(model, "estimators_", None) or [model]
    return model.n_features_in_, [_hash(_tree(each, model)) for each in members]


def _tree(member: Any, model: Any) -> Any:
    """The `tree_` of a member, which somebody may have exchanged."""
    if not hasattr(member, "tree_"):
        what = f"a {type(member).__name__} where a fitted tree belongs"
        msg = f"the {type(model).__name__} holds {what}; use method='clime'"
        raise NoClosedForm(msg)
    return member.tree_


def _hash(tree: Any) -> tuple[int, int]:
    """64 bits of all nodes and of all values: forests can be large, and no second one is to be kept."""
    state = tree.__getstate__()  # no copies, and all at once
    return hash(state["nodes"].tobytes()), hash(state["values"].tobytes())


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


def gradient_boosting_contents(model: Any, ask: Ask) -> Any:
    """What `read_gradient_boosting` reads; of what it starts from, what comes of it."""
    start = type(model.init_).__name__, ask(np.zeros((1, model.n_features_in_))).tobytes()
    return start, model.learning_rate, [[_hash(_tree(each, model)) for each in stage] for stage in model.estimators_]


def read_gradient_boosting(model: Any, ask: Ask) -> TreeEnsemble:
    """GradientBoostingClassifier or -Regressor: the margin (decision function), or the regression value."""
    if not (isinstance(model.init_, str) or type(model.init_).__name__ in ("DummyClassifier", "DummyRegressor")):
        msg = (
            f"the {type(model).__name__} starts from a {type(model.init_).__name__}, which is not made of trees;"
            f" use method='clime'"
        )
        raise NoClosedForm(msg)
    trees, target = [], []
    for stage in model.estimators_:
        for output, member in enumerate(stage):
            tree = _one_tree(member.tree_)
            tree["value"] = tree["value"] * model.learning_rate
            trees.append(tree)
            target.append(output)
    k = model.estimators_.shape[1]
    without = join_trees(trees, base=np.zeros(k), n_features=model.n_features_in_, target=target)
    origin = np.zeros((1, model.n_features_in_))
    # what it starts from is the same at every row; that it is will be seen when the reader proves itself
    return replace(without, base=(ask(origin) - without.predict(origin))[0])


def hist_gradient_boosting_contents(model: Any) -> Any:
    """What treelite reads, and what the model asks when it predicts."""
    known = [(j, each.tobytes()) for j, each in _known_categories(model).items()]
    coded = [each.tobytes() for each in model._bin_mapper.make_known_categories_bitsets()]
    trees = [
        [(hash(each.nodes.tobytes()), each.raw_left_cat_bitsets.tobytes()) for each in stage]
        for stage in model._predictors
    ]
    return model.n_features_in_, model.loss, model._baseline_prediction.tobytes(), known, coded, trees


def read_hist_gradient_boosting(model: Any) -> TreeEnsemble:
    """HistGradientBoosting, whose trees are not public: treelite knows how to get at them."""
    treelite: Any = require("treelite", extra="trees", to=f"read the trees of a {type(model).__name__}")
    with np.errstate(invalid="ignore"):  # it casts a category that is NaN to a number; no row has that one
        try:
            read = treelite.sklearn.import_model(model)
        except (treelite.TreeliteError, ValueError, NotImplementedError) as err:
            msg = f"treelite cannot read this {type(model).__name__}: {err}. Use method='clime'"
            raise NoClosedForm(msg) from err
    header = read.get_header_accessor()
    base = np.array(header.get_field("base_scores"), dtype=np.float64)  # a copy: the fields end with `read`
    known = _known_categories(model)
    trees = [_from_treelite(read.get_tree_accessor(each), known) for each in range(read.num_tree)]
    target = np.maximum(header.get_field("class_id"), 0) if len(base) > 1 else None
    return join_trees(trees, base=base, n_features=int(header.get_field("num_feature")[0]), target=target)


def _known_categories(model: Any) -> dict[int, Array]:
    """Categories of each categorical feature at the time of the fit, by the feature's position."""
    mask = getattr(model, "is_categorical_", None)
    if mask is None:
        return {}
    held = model._preprocessor.named_transformers_["encoder"].categories_  # no public name has them
    return {int(j): np.asarray(each) for j, each in zip(np.flatnonzero(mask), held, strict=True)}


def _from_treelite(tree: Any, known: dict[int, Array]) -> dict[str, Any]:
    """One tree of HistGradientBoosting as treelite holds it: float64, and x <= threshold goes left.

    A category that was never seen counts as missing, so it is never among those that are listed.
    """
    names = ("node_type", "cleft", "cright", "split_index", "threshold", "default_left", "leaf_value", "cmp")
    node_type, left, right, feature, threshold, nan_left, value, compared = (tree.get_field(name) for name in names)
    if not np.isin(compared[node_type == NUMERICAL], (AT_MOST,)).all():
        msg = "treelite gives this model's splits with a comparison that is not known here; use method='clime'"
        raise NoClosedForm(msg)
    left, right, nan_left = left.copy(), right.copy(), np.asarray(nan_left, dtype=bool)
    kept = {}
    first, last, listed = (tree.get_field(f"category_list{end}") for end in ("_begin", "_end", ""))
    goes_right = tree.get_field("category_list_right_child")
    for node in np.flatnonzero(node_type == CATEGORICAL):
        everything = known[int(feature[node])]
        everything = everything[~np.isnan(everything)].astype(np.int64)
        # treelite has them unsigned, −1 as 2³² − 1
        is_listed = np.isin(everything.astype(np.uint32), listed[first[node] : last[node]])
        parts = bool(goes_right[node]) != bool(nan_left[node])  # list those that part from what is missing
        kept[int(node)] = everything[is_listed != parts]
        if nan_left[node]:
            left[node], right[node], nan_left[node] = right[node], left[node], False
    return {
        "feature": np.where(left < 0, -1, feature),
        "threshold": threshold,
        "left": left,
        "right": right,
        "nan_left": nan_left,
        "value": value,
        "category_left": kept,
    }


def ask_sklearn(model: Any, name: str) -> Ask:
    """A prediction method that takes plain arrays and gives (n, k)."""

    def ask(rows: Array) -> Array:
        with NAMES_UNSAID:
            out = np.asarray(getattr(model, name)(rows), dtype=np.float64)
        return out.reshape(len(rows), -1)

    return ask

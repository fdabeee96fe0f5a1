"""read_trees: the trees of a fitted model, proved against the model's own predictions.

Libraries are recognised by class names along the MRO, never imported to ask.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...._core.types import Array
from ....errors import InvalidArgument, NoClosedForm
from ....models.fitted import categorical_features, is_booster_of_xgboost, parts_of, raw_score_switch
from ....models.xgboost import settings_of
from ..format import NO_CATEGORY, TreeEnsemble

PROBES = 192
"""Rows on which a reader proves itself, and half as many with missing values."""

LARGEST = 3e38
"""No probe is larger, as float32 knows no larger numbers and libraries refuse them."""

FORESTS = {
    f"sklearn.{name}{kind}"
    for name in ("tree.DecisionTree", "tree.ExtraTree", "ensemble.RandomForest", "ensemble.ExtraTrees")
    for kind in ("Classifier", "Regressor")
}
XGBOOST = {"xgboost.XGBModel", "xgboost.Booster"}
LIGHTGBM = {"lightgbm.LGBMModel", "lightgbm.Booster"}
CATBOOST = {"catboost.CatBoost"}
BOOSTING = {f"sklearn.ensemble.GradientBoosting{kind}" for kind in ("Classifier", "Regressor")}
HIST = {f"sklearn.ensemble.HistGradientBoosting{kind}" for kind in ("Classifier", "Regressor")}

Ask = Callable[[Array], Array]


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """How to get at one model: what it holds, its trees, and what it predicts."""

    model: Any
    contents: Callable[[], Any]
    """All that its predictions are made of, or hashes of that where it is large; compared by =="""
    read: Callable[[], TreeEnsemble]
    ask_raw: Ask
    ask_usual: Ask | None
    """Its everyday output; None where that is the raw one"""
    precision: float
    """Relative, to which the library adds up its trees"""

    def prove(self) -> TreeEnsemble:
        """The trees, once they are seen to predict what the model does: see `probe_rows`."""
        trees = self.read()
        rows = probe_rows(trees)
        _compare(trees, rows, self.ask_raw(rows), self)
        rng = np.random.default_rng(1)
        holes = np.where(rng.random((PROBES // 2, rows.shape[1])) < 0.3, np.nan, rows[: PROBES // 2])
        try:
            with_holes = self.ask_raw(holes)
        except ValueError:  # the model takes no missing values, so there is nothing to agree about
            return trees
        _compare(trees, holes, with_holes, self)
        return trees

    def why_no_sum(self, trees: TreeEnsemble) -> str:
        """Why the everyday output is not the sum of the trees; "" where it is."""
        if self.ask_usual is None:
            return ""
        rows = probe_rows(trees)
        raw, usual = self.ask_raw(rows), self.ask_usual(rows)
        if usual.shape == raw.shape and np.allclose(usual, raw, rtol=1e-5, atol=1e-6 * np.abs(raw).max()):
            return ""
        has_margin = hasattr(self.model, "predict_proba") or raw_score_switch(self.model) is not None
        way = "Explain the sum with output='margin', or use" if has_margin else "Use"
        return (
            f"the {type(self.model).__name__} turns the sum of its trees into its output by a curve, and what comes out"
            f" has no closed form. {way} method='clime'"
        )


def read_trees(model: Any, output: str = "probability") -> TreeEnsemble | None:
    """The trees of a fitted model, or None where it is not made of trees.

    Forests and single trees give class probabilities, boosting gives the margin (raw score), regressors their value.
    Every reading is compared with the model's own predictions, at rows on and next to the thresholds and with values
    missing; a difference is an error.

    Parameters
    ----------
    output
        `"margin"`, or `"probability"` for the model's everyday output: which boosted trees have in closed form only
        where that is the raw score itself, as in most regression.
    """
    access = recognise(model)
    if access is None:
        return None
    trees = access.prove()
    if output == "margin":
        if access.ask_usual is None and hasattr(model, "classes_"):
            msg = (
                f"output='margin' needs decision_function, which this {type(model).__name__} has not;"
                f" use output='probability'"
            )
            raise InvalidArgument(msg)
    elif why_not := access.why_no_sum(trees):
        raise NoClosedForm(why_not)
    return trees


def probe_rows(trees: TreeEnsemble) -> Array:
    """Rows whose features lie on a threshold, next to it as float64 or float32, or well off it; (PROBES, d)."""
    rng = np.random.default_rng(0)
    rows = np.zeros((PROBES, trees.n_features))
    numeric = (trees.feature >= 0) & ~trees.is_categorical & np.isfinite(trees.threshold)
    for j in range(trees.n_features):
        known = np.unique(trees.threshold[numeric & (trees.feature == j)])
        if j in trees.categorical_features:
            at = np.flatnonzero(trees.is_categorical & (trees.feature == j))
            listed = [trees.category[trees.category_first[i] : trees.category_first[i + 1]] for i in at]
            known = np.unique(np.concatenate(listed))
            known = known[known != NO_CATEGORY]
            rows[:, j] = rng.choice(np.append(known, known.max(initial=-1) + 1), PROBES)  # one that was never seen
            continue
        if not len(known):
            continue
        spread = max(np.ptp(known), np.abs(known).max(), 1e-3)
        t = rng.choice(known, PROBES)
        near = np.stack([
            t, np.nextafter(t, -np.inf), np.nextafter(t, np.inf), _rounded(t, 0), _rounded(t, -1), _rounded(t, 1),
            t + spread * rng.normal(size=PROBES), t + 0.01 * spread * rng.normal(size=PROBES),
        ])  # fmt: skip
        rows[:, j] = near[rng.integers(len(near), size=PROBES), np.arange(PROBES)]
    return np.clip(rows, -LARGEST, LARGEST)


def _compare(trees: TreeEnsemble, rows: Array, raw: Array, access: Access) -> None:
    got, name = trees.predict(rows), type(access.model).__name__
    is_leaf = trees.feature < 0
    largest = np.zeros(len(trees.feature))
    largest[is_leaf] = np.abs(trees.value[is_leaf]).max(axis=1)
    size = np.abs(trees.base).max(initial=0.0) + trees.scale * sum(
        part.max() for part in np.split(largest, trees.roots[1:]) if len(part)
    )
    if got.shape != raw.shape:
        msg = f"the trees read from the {name} have {got.shape[1]} outputs and the model {raw.shape[1]}"
    elif (apart := np.abs(got - raw).max()) <= access.precision * size * max(1.0, trees.n_trees / 16):
        return  # rounding adds up
    else:
        msg = f"the trees read from the {name} predict otherwise than the model, by up to {apart:.3g}"
    msg += "; it holds something that is not known here. Use method='clime', and please report it"
    raise NoClosedForm(msg)


def _rounded(t: Array, step: int) -> Array:
    """The nearest float32 number, or the one below or above it."""
    single = np.clip(t, -LARGEST, LARGEST).astype(np.float32)
    return np.nextafter(single, np.float32(step * np.inf) if step else single).astype(np.float64)


def recognise(model: Any) -> Access | None:
    """How to get at a fitted model, by the names of its classes; None where it is not made of trees."""
    found = _table_entry(model)
    return None if found is None else found(model)


def has_trees(estimator: Any) -> bool:
    """Whether an estimator, or a part of what it averages or decides by, is made of trees: then it jumps."""
    return any(_table_entry(part) is not None and not _is_linear(part) for part in parts_of(estimator))


def _is_linear(part: Any) -> bool:
    """Whether boosting added up linear functions, as XGBoost can."""
    if is_booster_of_xgboost(part):
        return bool(settings_of(part)["gradient_booster"]["name"] == "gblinear")
    return getattr(part, "booster", None) == "gblinear"


def _table_entry(model: Any) -> Callable[[Any], Access] | None:
    for kind in type(model).__mro__:
        name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        if kind.__module__.startswith("sklearn."):
            name = ".".join(kind.__module__.split(".")[:2]) + f".{kind.__name__}"
        for names, found in TABLE:
            if name in names:
                return found
    return None


def _forest(model: Any) -> Access:
    from .sklearn import ask_sklearn, forest_contents, read_forest

    _check_fitted(model, "n_features_in_")
    ask = ask_sklearn(model, "predict_proba" if hasattr(model, "classes_") else "predict")
    return Access(model, partial(forest_contents, model), partial(read_forest, model), ask, None, 1e-12)


def _boosting(model: Any) -> Access:
    from .sklearn import ask_sklearn, gradient_boosting_contents, read_gradient_boosting

    _check_fitted(model, "estimators_")
    raw = ask_sklearn(model, "decision_function" if hasattr(model, "classes_") else "predict")
    usual = ask_sklearn(model, "predict_proba" if hasattr(model, "classes_") else "predict")
    contents, read = partial(gradient_boosting_contents, model, raw), partial(read_gradient_boosting, model, raw)
    return Access(model, contents, read, raw, usual, 1e-12)


def _hist(model: Any) -> Access:
    from .sklearn import ask_sklearn, hist_gradient_boosting_contents, read_hist_gradient_boosting

    _check_fitted(model, "_predictors")
    is_classifier = hasattr(model, "classes_")
    raw = ask_sklearn(model, "decision_function" if is_classifier else "predict")
    if not is_classifier and model.loss in ("poisson", "gamma"):
        predict = raw
        raw = lambda rows: np.log(predict(rows))  # noqa: E731  the link of both losses
    usual = ask_sklearn(model, "predict_proba" if is_classifier else "predict")
    contents, read = partial(hist_gradient_boosting_contents, model), partial(read_hist_gradient_boosting, model)
    return Access(model, contents, read, raw, usual, 1e-12)


def _xgboost(model: Any) -> Access:
    from .xgboost import ask_booster, read_xgboost, used_rounds

    if hasattr(model, "get_booster"):
        _check_fitted(model, "_Booster")
        if model.missing is not None and not np.isnan(model.missing):
            msg = (
                f"the {type(model).__name__} takes {model.missing:g} for a missing value, which is not known here;"
                f" use NaN for it, or method='clime'"
            )
            raise NoClosedForm(msg)
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    rounds = used_rounds(model)
    raw, usual = (ask_booster(booster, rounds, margin=margin) for margin in (True, False))
    contents = partial(booster.save_raw, raw_format="ubj")  # four times faster than JSON, which Python reads faster
    return Access(model, contents, partial(read_xgboost, booster, rounds), raw, usual, 4 * 2.0**-23)


def _lightgbm(model: Any) -> Access:
    from .lightgbm import ask_booster, read_lightgbm, stops_early

    if hasattr(model, "booster_") or hasattr(model, "fit"):
        _check_fitted(model, "fitted_")
    booster = model.booster_ if hasattr(model, "booster_") else model
    if stops_early(model) or stops_early(booster):
        msg = (
            f"the {type(model).__name__} has pred_early_stop among its parameters: at some rows it leaves out its later"
            f" trees, which has no closed form. Set pred_early_stop=False, or use method='clime'"
        )
        raise NoClosedForm(msg)
    contents, read = lambda: hash(booster.model_to_string()), lambda: read_lightgbm(booster.model_to_string())
    raw, usual = (ask_booster(booster, raw=raw) for raw in (True, False))
    return Access(model, contents, read, raw, usual, 1e-12)


def _catboost(model: Any) -> Access:
    from .catboost import ask_catboost, read_catboost, save_catboost

    if hasattr(model, "is_fitted") and not model.is_fitted():
        msg = f"the {type(model).__name__} is not fitted; call its fit first"
        raise InvalidArgument(msg)
    if categorical_features(model):
        msg = f"the {type(model).__name__} has categories, and CatBoost's splits on those are not read"
        raise NoClosedForm(msg)
    raw, usual = (ask_catboost(model, raw=raw) for raw in (True, False))
    d = getattr(model, "n_features_in_", 0)
    contents, read = lambda: (hash(save_catboost(model)), d), lambda: read_catboost(json.loads(save_catboost(model)), d)
    return Access(model, contents, read, raw, usual, 1e-12)


TABLE: list[tuple[set[str], Callable[[Any], Access]]] = [
    (FORESTS, _forest), (BOOSTING, _boosting), (HIST, _hist),
    (XGBOOST, _xgboost), (LIGHTGBM, _lightgbm), (CATBOOST, _catboost),
]  # fmt: skip


def _check_fitted(model: Any, mark: str) -> None:
    if getattr(model, mark, None) is None:
        msg = f"the {type(model).__name__} is not fitted; call its fit first"
        raise InvalidArgument(msg)

"""read_trees: the trees of a fitted model, proved against the model's own predictions.

Libraries are recognised by class names along the MRO, never imported to ask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...._core.types import Array
from ....errors import InvalidArgument, NoClosedForm
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
    found = _recognised(model)
    if found is None:
        return None
    read, ask_raw, ask_usual, precision = found(model)
    name = type(model).__name__
    trees = read()
    rows = probe_rows(trees)
    raw = prove(trees, ask_raw, rows, name, precision)
    if ask_usual is None:
        if output == "margin" and hasattr(model, "classes_"):
            msg = f"output='margin' needs decision_function, which this {name} has not; use output='probability'"
            raise InvalidArgument(msg)
    elif output != "margin":
        usual = ask_usual(rows)
        if usual.shape != raw.shape or not np.allclose(usual, raw, rtol=1e-5, atol=1e-6 * np.abs(raw).max()):
            # regressors are asked for what they predict, whatever `output` says
            way = "Explain the sum with output='margin', or use" if hasattr(model, "predict_proba") else "Use"
            msg = (
                f"the {name} turns the sum of its trees into its output by a curve, and what comes out has no closed"
                f" form. {way} method='clime'"
            )
            raise NoClosedForm(msg)
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


def prove(trees: TreeEnsemble, ask: Ask, rows: Array, name: str, precision: float) -> Array:
    """The model's own outputs at `rows`, once they and those with NaN are seen to be those of the trees."""
    raw = ask(rows)
    _compare(trees, rows, raw, name, precision)
    rng = np.random.default_rng(1)
    holes = np.where(rng.random((PROBES // 2, rows.shape[1])) < 0.3, np.nan, rows[: PROBES // 2])
    try:
        with_holes = ask(holes)
    except ValueError:  # the model takes no missing values, so there is nothing to agree about
        return raw
    _compare(trees, holes, with_holes, name, precision)
    return raw


def _compare(trees: TreeEnsemble, rows: Array, raw: Array, name: str, precision: float) -> None:
    got = trees.predict(rows)
    is_leaf = trees.feature < 0
    largest = np.zeros(len(trees.feature))
    largest[is_leaf] = np.abs(trees.value[is_leaf]).max(axis=1)
    size = np.abs(trees.base).max(initial=0.0) + trees.scale * sum(
        part.max() for part in np.split(largest, trees.roots[1:]) if len(part)
    )
    if got.shape != raw.shape:
        msg = f"the trees read from the {name} have {got.shape[1]} outputs and the model {raw.shape[1]}"
    elif (apart := np.abs(got - raw).max()) <= precision * size * max(1.0, trees.n_trees / 16):  # rounding adds up
        return
    else:
        msg = f"the trees read from the {name} predict otherwise than the model, by up to {apart:.3g}"
    msg += "; it holds something that is not known here. Use method='clime', and please report it"
    raise NoClosedForm(msg)


def _rounded(t: Array, step: int) -> Array:
    """The nearest float32 number, or the one below or above it."""
    single = np.clip(t, -LARGEST, LARGEST).astype(np.float32)
    return np.nextafter(single, np.float32(step * np.inf) if step else single).astype(np.float64)


ResultBuffer = tuple[Callable[[], TreeEnsemble], Ask, Ask | None, float]
"""How to read a model, to ask for its raw and its usual output (None: the same), and how precisely it adds up."""


def _recognised(model: Any) -> Callable[[Any], ResultBuffer] | None:
    """Which library's model this is, by the names of its classes."""
    for kind in type(model).__mro__:
        name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        if kind.__module__.startswith("sklearn."):
            name = ".".join(kind.__module__.split(".")[:2]) + f".{kind.__name__}"
        for names, found in TABLE:
            if name in names:
                return found
    return None


def _forest(model: Any) -> ResultBuffer:
    from .sklearn import ask_sklearn, read_forest

    _check_fitted(model, "n_features_in_")
    ask = ask_sklearn(model, "predict_proba" if hasattr(model, "classes_") else "predict")
    return lambda: read_forest(model), ask, None, 1e-12


def _boosting(model: Any) -> ResultBuffer:
    from .sklearn import ask_sklearn, read_gradient_boosting

    _check_fitted(model, "estimators_")
    raw = ask_sklearn(model, "decision_function" if hasattr(model, "classes_") else "predict")
    usual = ask_sklearn(model, "predict_proba" if hasattr(model, "classes_") else "predict")
    return lambda: read_gradient_boosting(model), raw, usual, 1e-12


def _hist(model: Any) -> ResultBuffer:
    from .sklearn import ask_sklearn, read_hist_gradient_boosting

    _check_fitted(model, "n_features_in_")
    is_classifier = hasattr(model, "classes_")
    raw = ask_sklearn(model, "decision_function" if is_classifier else "predict")
    if not is_classifier and model.loss in ("poisson", "gamma"):
        predict = raw
        raw = lambda rows: np.log(predict(rows))  # noqa: E731  the link of both losses
    usual = ask_sklearn(model, "predict_proba" if is_classifier else "predict")
    return lambda: read_hist_gradient_boosting(model), raw, usual, 1e-12


def _xgboost(model: Any) -> ResultBuffer:
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
    return lambda: read_xgboost(booster, rounds), raw, usual, 4 * 2.0**-23


def _lightgbm(model: Any) -> ResultBuffer:
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
    return lambda: read_lightgbm(booster), ask_booster(booster, raw=True), ask_booster(booster, raw=False), 1e-12


def _catboost(model: Any) -> ResultBuffer:
    from .catboost import ask_catboost, read_catboost

    return lambda: read_catboost(model), ask_catboost(model, raw=True), ask_catboost(model, raw=False), 1e-12


TABLE: list[tuple[set[str], Callable[[Any], ResultBuffer]]] = [
    (FORESTS, _forest), (BOOSTING, _boosting), (HIST, _hist),
    (XGBOOST, _xgboost), (LIGHTGBM, _lightgbm), (CATBOOST, _catboost),
]  # fmt: skip


def _check_fitted(model: Any, mark: str) -> None:
    if getattr(model, mark, None) is None:
        msg = f"the {type(model).__name__} is not fitted; call its fit first"
        raise InvalidArgument(msg)

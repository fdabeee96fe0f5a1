"""What fitted estimators tell of themselves: columns, categories, raw scores, and whether they give probabilities.

Libraries are recognised by the names of their classes, never imported to ask.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

PROBABILITIES = {
    "binary:logistic", "binary:hinge", "multi:softprob", "multi:softmax",
    "binary", "multiclass", "softmax", "multiclassova", "multiclass_ova", "ova", "ovr", "cross_entropy", "xentropy",
    "Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll", "log_loss",
}  # fmt: skip
"""Objectives of XGBoost, LightGBM and CatBoost whose predictions are probabilities; of others we do not know."""

ALIASES = ("objective", "objective_type", "application", "app", "loss")
"""Names under which LightGBM takes its objective."""

RAW_SCORES: dict[str, dict[str, Any]] = {
    "xgboost.XGBModel": {"output_margin": True},
    "lightgbm.LGBMModel": {"raw_score": True},
    "lightgbm.Booster": {"raw_score": True},
    "xgboost.Booster": {"output_margin": True},
    "catboost.CatBoostRanker": {},  # predicts nothing else
    "catboost.CatBoost": {"prediction_type": "RawFormulaVal"},
}
"""What `predict` of boosting libraries must be given to return raw scores."""

PROBABILITY_SWITCH: dict[str, Any] = {"prediction_type": "Probability"}
"""What `predict` of CatBoost's base class must be given to return probabilities, as it has no `predict_proba`."""

WRAPPED = ("estimators_", "estimator_", "classifier_", "base_estimator_", "calibrated_classifiers_")
"""Attributes of scikit-learn and its kin that hold what is averaged, after fitting."""


def attribute(thing: Any, name: str) -> Any:
    """An attribute, or None: some raise errors of their own where nothing was fitted."""
    try:
        return getattr(thing, name, None)
    except Exception:  # a property of a class we do not know
        return None


def kinds_of(thing: Any) -> tuple[str, ...]:
    """Names of its classes along the MRO, each behind that of its library: "sklearn.KMeans"."""
    return tuple(f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(thing).__mro__)


def offers(thing: Any, method: str) -> bool:
    """Whether it can be asked so."""
    return callable(getattr(thing, method, None))


def names_in(estimator: Any) -> tuple[str, ...] | None:
    """Columns of the data frame it was fitted on, if it was."""
    names = attribute(estimator, "feature_names_in_")
    if names is None:
        names = _names_of_boosted(estimator)
    return None if names is None else tuple(str(each) for each in names)


def _names_of_boosted(estimator: Any) -> list[str] | None:
    """Names of the columns, unless the library made them up."""
    kinds = kinds_of(estimator)
    if "catboost.CatBoost" in kinds:
        names = attribute(estimator, "feature_names_") or []
        return None if names == [str(j) for j in range(len(names))] else names
    if "xgboost.Booster" in kinds:
        return attribute(estimator, "feature_names")
    if "lightgbm.Booster" in kinds:
        names = estimator.feature_name()
        return None if names == [f"Column_{j}" for j in range(len(names))] else names
    return None


def width_of(estimator: Any) -> int | None:
    """Number of features, of a library that would ignore others beyond; None where it refuses them itself."""
    fitted = getattr(estimator, "best_estimator_", estimator)
    if is_booster_of_xgboost(fitted):
        return int(fitted.num_features())
    names = attribute(fitted, "feature_names_") if "catboost.CatBoost" in kinds_of(fitted) else None
    return len(names) if names else None


def looks_up_columns(estimator: Any) -> bool:
    """Whether it must be given a data frame where there is one: some go by names, CatBoost's categories by types."""
    return attribute(estimator, "feature_names_in_") is not None or bool(whole_categories(estimator))


def is_booster_of_xgboost(estimator: Any) -> bool:
    """Whether it is XGBoost's own Booster, and not an estimator around one."""
    return "xgboost.Booster" in kinds_of(estimator)


def raw_score_switch(estimator: Any) -> dict[str, Any] | None:
    """What `predict` must be given to return raw scores, if it can; a pipeline hands it on to its last step."""
    kinds = kinds_of(estimator)
    if "sklearn.Pipeline" in kinds:
        return raw_score_switch(estimator.steps[-1][1])
    return next((RAW_SCORES[kind] for kind in kinds if kind in RAW_SCORES), None)


def with_categories(estimator: Any, points: Any) -> Any:
    """The points as CatBoost takes them: categories that are numbers must be whole, which an array of floats is not."""
    categories = list(whole_categories(estimator))
    if not categories or not isinstance(points, np.ndarray):
        return points
    codes = points[:, categories]
    if not (codes == np.rint(codes)).all():
        return points  # it says itself what is wrong with them
    mixed = points.astype(object)
    mixed[:, categories] = codes.astype(np.int64)
    return mixed


def last_part(estimator: Any) -> Any:
    """What decides in the end: within a search or a wrapper, behind the steps of a pipeline, above what is stacked."""
    part = _deciding(estimator)
    return estimator if part is None or part is estimator else last_part(part)


def _deciding(estimator: Any) -> Any:
    steps = attribute(estimator, "steps")
    if isinstance(steps, list) and steps and isinstance(steps[-1], tuple):
        return steps[-1][1]
    for name in ("best_estimator_", "final_estimator_", "regressor_"):
        found = attribute(estimator, name)
        if found is not None:
            return found
    return attribute(estimator, "estimator") if type(estimator).__name__ == "FrozenEstimator" else None


def categorical_features(estimator: Any) -> tuple[int, ...]:
    """Positions of the features that were declared categories when the estimator was fitted."""
    fitted = getattr(estimator, "best_estimator_", estimator)  # a search hands its rows on as they are
    try:
        return tuple(int(j) for j in _declared(fitted))
    except Exception:  # of a class we do not know, perhaps not fitted: it raises its own error when it is asked
        return ()


def whole_categories(estimator: Any) -> tuple[int, ...]:
    """Those that the model refuses as floats, and so cannot be perturbed: CatBoost's."""
    fitted = getattr(estimator, "best_estimator_", estimator)
    return categorical_features(fitted) if "catboost.CatBoost" in kinds_of(fitted) else ()


def _declared(estimator: Any) -> Any:
    kinds = kinds_of(estimator)
    if "catboost.CatBoost" in kinds:
        return estimator.get_cat_feature_indices()
    if "lightgbm.LGBMModel" in kinds or "lightgbm.Booster" in kinds:
        settings = getattr(estimator, "booster_", estimator).params
        # the second where the trees were read from a file
        return settings.get("categorical_column") or settings.get("categorical_feature") or ()
    if "xgboost.XGBModel" in kinds or "xgboost.Booster" in kinds:
        booster = estimator.get_booster() if "xgboost.XGBModel" in kinds else estimator
        types = booster.feature_types or ()
        return [j for j, each in enumerate(types) if each == "c"]
    mask = getattr(estimator, "is_categorical_", None)  # scikit-learn's boosting on histograms
    return () if mask is None else np.flatnonzero(mask)


def gives_probabilities(estimator: Any) -> bool:
    """Whether no part of an estimator is known to return other numbers than those between 0 and 1."""
    return all(_is_weighed_fairly(each) and _has_objectives(each) for each in parts_of(estimator))


def parts_of(estimator: Any) -> Iterator[Any]:
    """The estimator and all that it asks in turn."""
    return _parts(estimator, set())


def _parts(estimator: Any, seen: set[int]) -> Iterator[Any]:
    if estimator is None or isinstance(estimator, str) or id(estimator) in seen:
        return
    seen.add(id(estimator))
    yield estimator
    for each in _inside(estimator):
        yield from _parts(each, seen)


def _inside(estimator: Any) -> list[Any]:
    """What an estimator asks for probabilities: what decides in the end, or all that are averaged."""
    deciding = _deciding(estimator)
    if deciding is not None:
        return [deciding]
    found = [each for name in WRAPPED for each in _listed(attribute(estimator, name))]
    return found or _listed(attribute(estimator, "estimator"))


def _listed(found: Any) -> list[Any]:
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list | tuple | np.ndarray):
        return [part for each in found for part in (_listed(each) if isinstance(each, np.ndarray) else [each])]
    return [] if found is None else [found]


def _is_weighed_fairly(estimator: Any) -> bool:
    """Whether no vote has a negative weight."""
    weights = attribute(estimator, "weights") if attribute(estimator, "voting") is not None else None
    return weights is None or bool((np.asarray(weights, dtype=float) >= 0).all())


def predicts_probabilities(estimator: Any) -> bool:
    """Whether plain `predict` is known to return probabilities: that of XGBoost's Booster may."""
    return is_booster_of_xgboost(estimator) and objective_of_xgboost(estimator) in PROBABILITIES


def _has_objectives(estimator: Any) -> bool:
    """Whether each objective that was given, or that was fitted, is one that makes probabilities."""
    known = [attribute(estimator, "objective")]
    kinds = {cls.__name__ for cls in type(estimator).__mro__}
    if "LGBMModel" in kinds:
        given = estimator.get_params()
        known += [given.get(alias) for alias in ALIASES] + [attribute(estimator, "_objective"), _of_lightgbm(estimator)]
    elif "XGBModel" in kinds:
        known.append(objective_of_xgboost(estimator))
    elif "CatBoost" in kinds:
        given = estimator.get_params()
        known += [given.get("loss_function"), given.get("objective")]
    return all(
        each is None or (isinstance(each, str) and each.partition(":border")[0] in PROBABILITIES) for each in known
    )


def _of_lightgbm(estimator: Any) -> str | None:
    """The objective that its trees were fitted to; LightGBM writes none for a function of one's own."""
    booster = attribute(estimator, "booster_")
    if booster is None:
        return None
    lines = booster.model_to_string(num_iteration=1).split("\n")
    return next((line.partition("=")[2].split()[0] for line in lines if line.startswith("objective=")), "custom")


def objective_of_xgboost(estimator: Any) -> str | None:
    """The objective that its trees were fitted to."""
    booster = estimator if is_booster_of_xgboost(estimator) else attribute(estimator, "_Booster")
    return None if booster is None else str(json.loads(booster.save_config())["learner"]["objective"]["name"])

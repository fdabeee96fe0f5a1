"""Whether `predict_proba` gives numbers between 0 and 1: boosting hands on whatever its objective makes."""

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
"""Objectives of XGBoost, LightGBM and CatBoost that are known to; of all others nothing is known."""

ALIASES = ("objective", "objective_type", "application", "app", "loss")
"""By which LightGBM takes its objective."""

DECIDING = ("best_estimator_", "final_estimator_")
WRAPPED = ("estimators_", "estimator_", "classifier_", "base_estimator_", "calibrated_classifiers_")
"""Attributes of scikit-learn and its kin that hold what decides in the end, or what is averaged, after fitting."""


def gives_probabilities(estimator: Any) -> bool:
    """Whether all that an estimator is made of is known to give numbers between 0 and 1, or not known not to."""
    return all(_is_weighed_fairly(each) and _has_objectives(each) for each in _parts(estimator, set()))


def _parts(estimator: Any, seen: set[int]) -> Iterator[Any]:
    """The estimator and what it asks, as deep as they are nested."""
    if estimator is None or isinstance(estimator, str) or id(estimator) in seen:
        return
    seen.add(id(estimator))
    yield estimator
    for each in _inside(estimator):
        yield from _parts(each, seen)


def _inside(estimator: Any) -> list[Any]:
    """What an estimator asks for probabilities: the last step, what decides in the end, or all that are averaged."""
    steps = _get(estimator, "steps")
    if isinstance(steps, list) and steps and isinstance(steps[-1], tuple):
        return [steps[-1][1]]
    for name in DECIDING:
        if (found := _get(estimator, name)) is not None:
            return [found]
    found = [each for name in WRAPPED for each in _listed(_get(estimator, name))]
    return found or _listed(_get(estimator, "estimator"))


def _listed(found: Any) -> list[Any]:
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list | tuple | np.ndarray):
        return [part for each in found for part in (_listed(each) if isinstance(each, np.ndarray) else [each])]
    return [] if found is None else [found]


def _get(thing: Any, name: str) -> Any:
    """An attribute, or None: some raise errors of their own where nothing was fitted."""
    try:
        return getattr(thing, name, None)
    except Exception:  # a property of somebody else's class
        return None


def _is_weighed_fairly(estimator: Any) -> bool:
    """Whether no vote counts less than nothing."""
    weights = _get(estimator, "weights") if _get(estimator, "voting") is not None else None
    return weights is None or bool((np.asarray(weights, dtype=float) >= 0).all())


def _has_objectives(estimator: Any) -> bool:
    """Whether each objective that was given, or that was fitted, is one that makes probabilities."""
    known = [_get(estimator, "objective")]
    kinds = {cls.__name__ for cls in type(estimator).__mro__}
    if "LGBMModel" in kinds:
        given = estimator.get_params()
        known += [given.get(alias) for alias in ALIASES] + [_get(estimator, "_objective"), _of_lightgbm(estimator)]
    elif "XGBModel" in kinds:
        known.append(_of_xgboost(estimator))
    elif "CatBoost" in kinds:
        given = estimator.get_params()
        known += [given.get("loss_function"), given.get("objective")]
    return all(
        each is None or (isinstance(each, str) and each.partition(":border")[0] in PROBABILITIES) for each in known
    )


def _of_lightgbm(estimator: Any) -> str | None:
    """The objective that its trees were fitted to; none is written where it is one's own."""
    booster = _get(estimator, "booster_")
    if booster is None:
        return None
    lines = booster.model_to_string(num_iteration=1).split("\n")
    return next((line.partition("=")[2].split()[0] for line in lines if line.startswith("objective=")), "custom")


def _of_xgboost(estimator: Any) -> str | None:
    """The objective that its trees were fitted to."""
    booster = _get(estimator, "_Booster")
    return None if booster is None else str(json.loads(booster.save_config())["learner"]["objective"]["name"])

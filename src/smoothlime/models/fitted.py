"""What fitted estimators tell of themselves: columns, categories, and whether they give probabilities.

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
"""Objectives of XGBoost, LightGBM and CatBoost that are known to; of all others nothing is known."""

ALIASES = ("objective", "objective_type", "application", "app", "loss")
"""By which LightGBM takes its objective."""

WRAPPED = ("estimators_", "estimator_", "classifier_", "base_estimator_", "calibrated_classifiers_")
"""Attributes of scikit-learn and its kin that hold what is averaged, after fitting."""


def attribute(thing: Any, name: str) -> Any:
    """An attribute, or None: some raise errors of their own where nothing was fitted."""
    try:
        return getattr(thing, name, None)
    except Exception:  # a property of somebody else's class
        return None


def names_in(estimator: Any) -> tuple[str, ...] | None:
    """Columns of the data frame it was fitted on, if it was."""
    names = attribute(estimator, "feature_names_in_")
    return None if names is None else tuple(str(each) for each in names)


def last_part(estimator: Any) -> Any:
    """What decides in the end: within a search, behind the steps of a pipeline or above what is stacked."""
    part = _deciding(estimator)
    return estimator if part is None or part is estimator else last_part(part)


def _deciding(estimator: Any) -> Any:
    steps = attribute(estimator, "steps")
    if isinstance(steps, list) and steps and isinstance(steps[-1], tuple):
        return steps[-1][1]
    found = attribute(estimator, "best_estimator_")
    return attribute(estimator, "final_estimator_") if found is None else found


def categorical_features(estimator: Any) -> tuple[int, ...]:
    """Positions of the features that were declared categories when the estimator was fitted."""
    fitted = getattr(estimator, "best_estimator_", estimator)  # a search hands its rows on as they are
    try:
        return tuple(int(j) for j in _declared(fitted))
    except Exception:  # somebody else's class, perhaps not fitted: it will say so itself when it is asked
        return ()


def _declared(estimator: Any) -> Any:
    kinds = {f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(estimator).__mro__}
    if kinds & {"lightgbm.LGBMModel", "lightgbm.Booster"}:
        settings = getattr(estimator, "booster_", estimator).params
        # the second where the trees were read from a file
        return settings.get("categorical_column") or settings.get("categorical_feature") or ()
    if "xgboost.XGBModel" in kinds:
        types = estimator.get_booster().feature_types or ()
        return [j for j, each in enumerate(types) if each == "c"]
    mask = getattr(estimator, "is_categorical_", None)  # scikit-learn's boosting on histograms
    return () if mask is None else np.flatnonzero(mask)


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
    """Whether no vote counts less than nothing."""
    weights = attribute(estimator, "weights") if attribute(estimator, "voting") is not None else None
    return weights is None or bool((np.asarray(weights, dtype=float) >= 0).all())


def _has_objectives(estimator: Any) -> bool:
    """Whether each objective that was given, or that was fitted, is one that makes probabilities."""
    known = [attribute(estimator, "objective")]
    kinds = {cls.__name__ for cls in type(estimator).__mro__}
    if "LGBMModel" in kinds:
        given = estimator.get_params()
        known += [given.get(alias) for alias in ALIASES] + [attribute(estimator, "_objective"), _of_lightgbm(estimator)]
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
    booster = attribute(estimator, "booster_")
    if booster is None:
        return None
    lines = booster.model_to_string(num_iteration=1).split("\n")
    return next((line.partition("=")[2].split()[0] for line in lines if line.startswith("objective=")), "custom")


def _of_xgboost(estimator: Any) -> str | None:
    """The objective that its trees were fitted to."""
    booster = attribute(estimator, "_Booster")
    return None if booster is None else str(json.loads(booster.save_config())["learner"]["objective"]["name"])

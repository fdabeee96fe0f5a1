"""Predictions that are labels: slopes of a class's name, of a cluster's number or of ±1 mean nothing; scores have some.

Kinds are recognised by the names of their classes, never imported to ask.
"""

from __future__ import annotations

from typing import Any

from ..errors import WrongType
from .fitted import (
    attribute,
    is_booster_of_xgboost,
    kinds_of,
    last_part,
    objective_of_xgboost,
    offers,
    raw_score_switch,
)

LABEL_OBJECTIVES = {"multi:softmax": "multi:softprob", "binary:hinge": "binary:logistic"}
"""XGBoost's that predict a class, and those that predict its probability."""


def refuse_labels(estimator: Any, output: str = "probability") -> None:
    """Refuse an estimator that is no classifier but predicts labels, unless it is asked for a score that it has."""
    what, way = _labels_and_way(estimator)
    has_score = offers(estimator, "decision_function") or raw_score_switch(estimator) is not None
    if not what or (output == "margin" and has_score):
        return
    msg = f"model is a {type(estimator).__name__}, which predicts {what}: no quantity that has a slope; {way}"
    raise WrongType(msg)


def refuse_predict(function: Any) -> None:
    """Refuse the `predict` of an estimator, if its labels would be explained as numbers."""
    function = getattr(function, "func", function)  # of a partial
    owner = getattr(function, "__self__", None)
    if getattr(function, "__name__", "") != "predict" or getattr(owner, "_estimator_type", None) == "regressor":
        return
    if hasattr(owner, "predict_proba") or getattr(owner, "classes_", None) is not None:
        kind = type(owner).__name__
        msg = (
            f"model is the predict of a {kind}, which returns labels; give the {kind} itself, or explain how often it"
            " predicts one class: lambda a: model.predict(a) == label"
        )
        raise WrongType(msg)
    if is_booster_of_xgboost(owner):
        msg = (
            "model is the predict of an xgboost Booster, which takes none but its own matrices; give the Booster itself"
        )
        raise WrongType(msg)
    refuse_labels(owner)


def _labels_and_way(estimator: Any) -> tuple[str, str]:
    """What labels an estimator predicts, and what to explain instead; "" where it predicts numbers."""
    part = last_part(estimator)
    names = {kind.partition(".")[2] for kind in kinds_of(part)} | {attribute(part, "_estimator_type")}
    if names & {"ClusterMixin", "clusterer"}:
        way = "how often it predicts one cluster: sl.as_model(lambda a: model.predict(a) == 0)"
        if offers(estimator, "transform"):
            way = f"its distances to the centres, sl.as_model(lambda a: model.transform(a)), or {way}"
        return "the number of a cluster", f"explain {way}"
    is_number = names & {"RegressorMixin", "regressor"}
    has_scores = offers(estimator, "decision_function")
    if names & {"OutlierMixin", "outlier_detector"} or (has_scores and not is_number):
        ways = ["give it with output='margin' for its decision_function"] * has_scores
        ways += ["explain sl.as_model(lambda a: model.score_samples(a))"] * offers(estimator, "score_samples")
        ways = ways or ["explain how often it predicts one: sl.as_model(lambda a: model.predict(a) == 1)"]
        return "labels of inliers and outliers", ", or ".join(ways)
    objective = objective_of_xgboost(part) if "XGBModel" in names or is_booster_of_xgboost(part) else ""
    if objective in LABEL_OBJECTIVES:
        way = f"give it with output='margin', or fit it with objective={LABEL_OBJECTIVES[objective]!r}"
        return "the number of a class", way
    return "", ""

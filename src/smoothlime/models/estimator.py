"""Estimators in the manner of scikit-learn: predict, predict_proba, decision_function. Values only."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from .._core.validate import is_iterable
from ..errors import InvalidArgument
from .fitted import (
    PROBABILITY_SWITCH,
    attribute,
    gives_probabilities,
    is_booster_of_xgboost,
    kinds_of,
    last_part,
    looks_up_columns,
    names_in,
    offers,
    predicts_probabilities,
    raw_score_switch,
    width_of,
    with_categories,
)
from .labels import refuse_labels
from .protocol import as_columns
from .targets import Score
from .xgboost import ask_booster, check_trained


class Unsaid:
    """Hides a warning while a model is asked, in however many threads at once.

    Filters belong to the whole process: the first thread sets one and the last removes it, so that none restores the
    filters that another had set.
    """

    def __init__(self, message: str) -> None:
        self.message = message
        self._asking = 0
        self._filters: Any = None
        self._changing = Lock()

    def __enter__(self) -> None:
        """Set the filter, unless another thread did."""
        with self._changing:
            if not self._asking:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.filterwarnings("ignore", message=self.message)
            self._asking += 1

    def __exit__(self, *_: object) -> None:
        """Remove the filter, unless another thread needs it."""
        with self._changing:
            self._asking -= 1
            if not self._asking:
                self._filters.__exit__()


NAMES_UNSAID = Unsaid("X does not have valid feature names")
"""Estimators fitted on a data frame warn of arrays without names; our columns are in their order."""


@dataclass(frozen=True, slots=True)
class EstimatorModel:
    """A fitted estimator or booster, asked through one of its prediction methods; names are those of its latest fit."""

    estimator: Any
    ask: str
    given_names: tuple[str, ...] | None
    switch: Mapping[str, Any] | None = field(default=None, hash=False)
    """What makes `predict` return raw scores or probabilities, where the library has that instead of a method"""
    given_outputs: tuple[str, ...] = ()
    hint: str = ""
    """What may help where it raises an error"""

    def for_rows_of_a_table(self) -> EstimatorModel:
        """The same; where it may want data frames and is given arrays, an error says how it would get them."""
        if self.wants_table or attribute(self.estimator, "n_features_in_") is not None:
            return self
        how = f"as_model(model.{self.ask}, takes='table') gives it data frames"
        return dataclasses.replace(self, hint=f" (the model was given an array (n, d); {how})")

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the classes, of two the second for their one score; else those that were given."""
        if self.given_outputs:
            return self.given_outputs
        if self.ask == "predict" and self.switch is None:
            return ()
        labels = _labels(self.estimator)
        return Score(*labels) if self.is_margin and len(labels) == 2 else labels

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names that were given, or else the columns of the data frame it was fitted on."""
        return names_in(self.estimator) if self.given_names is None else self.given_names

    @property
    def n_features(self) -> int | None:
        """Number of features, where the library would not refuse another."""
        return width_of(self.estimator)

    @property
    def is_margin(self) -> bool:
        """Whether raw scores are asked for."""
        return self.switch not in (None, PROBABILITY_SWITCH) or self.ask == "decision_function"

    @property
    def output_range(self) -> tuple[float, float] | None:
        """Range that no output leaves, where it is known; not all that `predict_proba` returns are probabilities."""
        if self.ask == "predict_proba" or self.switch == PROBABILITY_SWITCH:
            is_known = gives_probabilities(self.estimator)
        else:
            is_known = self.ask == "predict" and self.switch is None and predicts_probabilities(self.estimator)
        return (0.0, 1.0) if is_known else None

    @property
    def wants_table(self) -> bool:
        """Whether it was fitted on a data frame, and so may look up columns by name or type."""
        return looks_up_columns(self.estimator)

    def values(self, points: Any) -> Any:
        """Outputs at each point, (n, k)."""
        if is_booster_of_xgboost(self.estimator):
            return as_columns(ask_booster(self.estimator, points, margin=self.is_margin), len(points))
        with NAMES_UNSAID:
            asked = with_categories(self.estimator, points)
            return as_columns(getattr(self.estimator, self.ask)(asked, **(self.switch or {})), len(points))


def from_estimator(
    estimator: Any, *, output: str, feature_names: tuple[str, ...] | None, outputs: tuple[str, ...] = ()
) -> EstimatorModel:
    """Adapter for a fitted estimator: classifiers by probability or margin, all else by what it predicts or its score.

    The margin is the `decision_function`, or else the raw score that boosting libraries add up.
    """
    found = _asked(estimator, output, feature_names)
    if outputs and found.outputs:
        msg = f"outputs is for models that do not name theirs; the {type(estimator).__name__} has {found.outputs}"
        raise InvalidArgument(msg, argument="outputs")
    return dataclasses.replace(found, given_outputs=outputs) if outputs else found


def _asked(estimator: Any, output: str, names: tuple[str, ...] | None) -> EstimatorModel:
    if is_booster_of_xgboost(estimator):
        check_trained(estimator)
    classes = _classes(estimator)
    labels: tuple[str, ...] = ()
    is_classifier = getattr(estimator, "_estimator_type", None) == "classifier" or classes is not None
    if not is_classifier and not offers(estimator, "predict_proba"):
        refuse_labels(estimator, output)
        if output == "probability":
            return EstimatorModel(estimator, "predict", names)
    elif classes is None and hasattr(estimator, "fit") and (is_classifier or not hasattr(estimator, "n_features_in_")):
        msg = f"the {type(estimator).__name__} is not fitted; call its fit first"
        raise InvalidArgument(msg)
    else:
        labels = _labels(estimator)
    if (
        output == "probability"
        and not offers(estimator, "predict_proba")
        and "catboost.CatBoost" in kinds_of(estimator)
    ):
        return EstimatorModel(estimator, "predict", names, PROBABILITY_SWITCH)
    if output == "probability":
        _check_offered(estimator, "predict_proba", output)
        return EstimatorModel(estimator, "predict_proba", names)
    switch = None if offers(estimator, "decision_function") else raw_score_switch(estimator)
    if switch is not None:
        return EstimatorModel(estimator, "predict", names, switch)
    _check_offered(estimator, "decision_function", output)
    _refuse_pairs(estimator, labels)
    return EstimatorModel(estimator, "decision_function", names)


def _classes(estimator: Any) -> Any:
    """Its classes, or None where it has none: CatBoost's regressors have a list of none."""
    classes: Any = getattr(estimator, "classes_", None)
    return classes if is_iterable(classes) and not (hasattr(classes, "__len__") and not len(classes)) else None


def _labels(estimator: Any) -> tuple[str, ...]:
    """Names of the classes, which several targets at once have no single list of."""
    classes = _classes(estimator)
    if isinstance(classes, list) and any(np.ndim(each) for each in classes):
        part = "[:, 0]" if hasattr(estimator, "order_") else "[0][:, 1]"  # a chain of classifiers joins its answers
        msg = (
            f"the {type(estimator).__name__} predicts several targets at once; explain one of them at a time as a"
            f" function, for instance lambda a: model.predict_proba(a){part}"
        )
        raise InvalidArgument(msg)
    return () if classes is None else tuple(str(each) for each in classes)


def _check_offered(estimator: Any, method: str, output: str) -> None:
    """Refuse what the estimator has no method for, and name a way that it has."""
    if offers(estimator, method):
        return
    name = type(estimator).__name__
    if output == "margin" and raw_score_switch(attribute(estimator, "best_estimator_")) is not None:
        msg = f"output='margin' needs decision_function, which this {name} has not; give its best_estimator_, which"
        msg += " has a raw score"
        raise InvalidArgument(msg, argument="output")
    other = {"predict_proba": "decision_function", "decision_function": "predict_proba"}[method]
    if offers(estimator, other) or (output == "probability" and raw_score_switch(estimator) is not None):
        way = "margin" if output == "probability" else "probability"
        msg = f"output={output!r} needs {method}, which this {name} has not; use output={way!r}"
        raise InvalidArgument(msg, argument="output")
    if _classes(estimator) is None:
        msg = (
            f"output='margin' needs a score behind what is predicted, and this {name} has none that is known; leave"
            " output out to explain what it predicts"
        )
        raise InvalidArgument(msg, argument="output")
    way = (
        "make it with voting='soft'"
        if getattr(estimator, "voting", None) == "hard"
        else "explain how often it predicts one class: lambda a: model.predict(a) == label"
    )
    msg = f"this {name} has neither predict_proba nor decision_function, only labels; {way}"
    raise InvalidArgument(msg)


def _refuse_pairs(estimator: Any, labels: tuple[str, ...]) -> None:
    """Refuse scores of pairs of classes: for three classes there are three pairs, and none is the score of a class."""
    part = last_part(estimator)
    if getattr(part, "decision_function_shape", None) == "ovo" and len(labels) > 2:
        msg = (
            f"the scores of this {type(part).__name__} belong to pairs of classes, not to classes;"
            " set decision_function_shape='ovr', which needs no new fit"
        )
        raise InvalidArgument(msg)

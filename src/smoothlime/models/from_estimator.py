"""Estimators in the manner of scikit-learn: predict, predict_proba, decision_function. Values only."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidArgument
from .base import as_columns


@dataclass(frozen=True, slots=True)
class EstimatorModel:
    """A fitted estimator, asked through one of its prediction methods."""

    estimator: Any
    ask: str
    outputs: tuple[str, ...]
    feature_names: tuple[str, ...] | None
    keyword: str = ""
    """Switch that makes `ask` return raw scores, where the library has one instead of a method"""

    @property
    def is_margin(self) -> bool:
        """Whether raw scores are asked for."""
        return bool(self.keyword) or self.ask == "decision_function"

    @property
    def output_range(self) -> tuple[float, float] | None:
        """Range that no output leaves, where it is known."""
        return (0.0, 1.0) if self.ask == "predict_proba" else None

    @property
    def wants_table(self) -> bool:
        """Whether it was fitted on a data frame, and so may look for columns by name."""
        return _names_in(self.estimator) is not None

    def values(self, points: Any) -> Any:
        """Outputs at each point, (n, k)."""
        with warnings.catch_warnings():
            # an estimator fitted on a data frame complains that arrays have no names; ours are in its order
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            switch = {self.keyword: True} if self.keyword else {}
            return as_columns(getattr(self.estimator, self.ask)(points, **switch))


def from_estimator(estimator: Any, *, output: str, feature_names: tuple[str, ...] | None) -> EstimatorModel:
    """Adapter for a fitted estimator; classifiers by probability or margin, all else by `predict`.

    Outlier detectors predict ±1; their margin is the score behind it.
    """
    names = feature_names
    if names is None:
        names = _names_in(estimator)
    classes = getattr(estimator, "classes_", None)
    is_classifier = getattr(estimator, "_estimator_type", None) == "classifier" or classes is not None
    if not is_classifier:
        if hasattr(estimator, "predict_proba") and not hasattr(estimator, "n_features_in_"):
            msg = f"the {type(estimator).__name__} is not fitted; call its fit first"
            raise InvalidArgument(msg)
        is_scored = output == "margin" and hasattr(estimator, "decision_function")  # an outlier detector
        return EstimatorModel(estimator, "decision_function" if is_scored else "predict", (), names)
    if classes is None:
        msg = f"the {type(estimator).__name__} is not fitted; call its fit first"
        raise InvalidArgument(msg)
    if isinstance(classes, list):
        msg = f"the {type(estimator).__name__} predicts several targets at once; explain one classifier at a time"
        raise InvalidArgument(msg)
    labels = tuple(str(each) for each in classes)
    ask, other = {
        "probability": ("predict_proba", "margin"),
        "margin": ("decision_function", "probability"),
    }[output]
    keyword = _raw_score_switch(estimator) if output == "margin" and not hasattr(estimator, ask) else ""
    if keyword:
        return EstimatorModel(estimator, "predict", labels[1:] if len(labels) == 2 else labels, names, keyword)
    if not hasattr(estimator, ask):
        msg = f"output={output!r} needs {ask}, which this {type(estimator).__name__} has not; use output={other!r}"
        raise InvalidArgument(msg)
    if ask == "decision_function" and len(labels) == 2:
        labels = labels[1:]  # one score, in favour of the second class
    return EstimatorModel(estimator, ask, labels, names)


def _raw_score_switch(estimator: Any) -> str:
    """The keyword of `predict` by which boosting libraries return raw scores."""
    known = {"XGBModel": "output_margin", "LGBMModel": "raw_score"}
    return next((known[cls.__name__] for cls in type(estimator).__mro__ if cls.__name__ in known), "")


def _names_in(estimator: Any) -> tuple[str, ...] | None:
    """Columns of the data frame it was fitted on, if it was; some raise errors of their own where they were not."""
    try:
        names = getattr(estimator, "feature_names_in_", None)
    except Exception:  # a property of somebody else's class
        return None
    return None if names is None else tuple(str(each) for each in names)

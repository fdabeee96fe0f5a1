"""Features that a fitted estimator takes for categories, where it says so. Libraries are recognised by name."""

from __future__ import annotations

from typing import Any

import numpy as np


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

"""XGBoost's own Booster, which has matrices of its own; the library's estimators are in scikit-learn's manner."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np

from ..errors import InvalidArgument


def check_trained(booster: Any) -> None:
    """Refuse a Booster that knows of no features."""
    try:
        booster.num_features()
    except Exception as err:  # the library's own, which is not imported to name it
        msg = "the xgboost Booster is not trained; take what xgboost.train returns, or call its load_model first"
        raise InvalidArgument(msg) from err


def settings_of(booster: Any) -> dict[str, Any]:
    """What a Booster was made with, as the library writes it down."""
    learner: dict[str, Any] = json.loads(booster.save_config())["learner"]
    return learner


def ask_booster(booster: Any, points: Any, *, margin: bool) -> Any:
    """Outputs at points, or raw scores: of all its rounds, as its own `predict` has it."""
    settings = settings_of(booster)
    is_array = isinstance(points, np.ndarray)
    if is_array and settings["gradient_booster"]["name"] != "gblinear":  # linear ones know matrices alone
        return booster.inplace_predict(points, predict_type="margin" if margin else "value")
    xgboost: Any = importlib.import_module("xgboost")  # is there: the Booster is
    named = {"feature_names": booster.feature_names, "feature_types": booster.feature_types} if is_array else {}
    threads = int(settings["generic_param"]["nthread"]) or None
    data = xgboost.DMatrix(points, enable_categorical=True, nthread=threads, **named)
    return booster.predict(data, output_margin=margin)

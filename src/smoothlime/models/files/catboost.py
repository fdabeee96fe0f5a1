"""CatBoost's files: the classes, the objective and the names of the columns are in them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from ..._core.optional import require
from .trial import survives

RANKING = ("PairLogit", "YetiRank", "Stochastic", "Query", "LambdaMart", "GroupQuantile")
"""What the names of objectives begin with whose models only rank."""


def load_catboost(data: bytes, form: str) -> Any:
    """A classifier where the file has classes, a regressor where it has an objective of one, else the base class."""
    catboost: Any = require("catboost", extra=None, to="read a model of CatBoost")
    survives("CatBoost", data)
    model = _loaded(catboost.CatBoost(), data, form)
    if len(model.classes_):
        return _loaded(catboost.CatBoostClassifier(), data, form)
    objective = _objective(model)
    is_regressor = bool(objective) and not objective.startswith(RANKING)
    return _loaded(catboost.CatBoostRegressor(), data, form) if is_regressor else model


def _objective(model: Any) -> str:
    """What the trees were grown for, which stands among the notes of the file; "" where it does not."""
    notes = model.get_metadata()
    told = json.loads(notes["params"]) if "params" in notes.keys() else {}  # noqa: SIM118  it has no __contains__
    return str(told.get("loss_function", {}).get("type", ""))


def _loaded(model: Any, data: bytes, form: str) -> Any:
    if form == "cbm":
        return model.load_model(blob=data, format="cbm")
    with tempfile.TemporaryDirectory() as folder:  # CatBoost reads JSON from files only
        path = Path(folder) / "model.json"
        path.write_bytes(data)
        return model.load_model(str(path), format="json")

"""Which models have a closed form, recognised by the names of their classes: nothing is imported to ask."""

from __future__ import annotations

from typing import Any

from ..models import Model
from ..models.on_tables import TableModel
from ..neighbourhood import Factor
from .base import ClosedForm
from .linear import read_linear


def find_closed_form(model: Model, factor: Factor) -> tuple[ClosedForm | None, str]:
    """The closed form of a model, or None and the reason why there is none."""
    if isinstance(model, TableModel):
        if model.table.not_numeric:
            return None, "X has columns that hold no numbers"
        model = model.model
    estimator: Any = getattr(model, "estimator", None)
    if estimator is None:
        return None, "only linear models and trees of scikit-learn and its kin are known by their structure"
    linear = read_linear(estimator, model.ask)  # type: ignore[attr-defined]  # an EstimatorModel
    if linear is not None:
        return linear, ""
    return None, f"a {type(estimator).__name__} by {model.ask} has none that we know"  # type: ignore[attr-defined]

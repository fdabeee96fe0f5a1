"""Margins of boosted classifiers: what their probabilities are a curve of, and what has a closed form."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ..errors import InvalidArgument
from ..models import Model
from ..models.estimator import EstimatorModel, from_estimator
from ..models.on_scales import ModelOnScales
from ..models.on_tables import TableModel
from ..space.neighbourhood import Factor
from .closed_form import ClosedForm
from .find import find_closed_form
from .linear import LinearModel
from .on_scales import put_on_scales


@dataclass(frozen=True, slots=True, eq=False)
class Margins:
    """The margins of a classifier: a model to ask for them, and their closed form."""

    model: Model
    form: ClosedForm


def find_margins(model: Model, factor: Factor) -> tuple[Margins | None, str]:
    """The margins behind the probabilities that a model gives, or None and the reason why there are none."""
    if isinstance(model, ModelOnScales):
        found, why_not = find_margins(model.model, factor)
        if found is None:
            return None, why_not
        form, why_not = put_on_scales(found.form, model.curves.scales.scales)
        return None if form is None else Margins(dataclasses.replace(model, model=found.model), form), why_not
    inner = model.model if isinstance(model, TableModel) else model
    if not isinstance(inner, EstimatorModel) or inner.ask != "predict_proba":
        return None, "only classifiers that are asked for probabilities have a margin behind them"
    try:
        raw: Model = from_estimator(inner.estimator, output="margin", feature_names=inner.given_names)
    except InvalidArgument as err:
        return None, str(err)
    if isinstance(model, TableModel):
        raw = dataclasses.replace(model, model=raw)
    form, why_not = find_closed_form(raw, factor)
    if form is None:
        return None, why_not
    if isinstance(form, LinearModel):
        return None, "the margin is linear, and says nothing that differences do not see exactly"
    return Margins(raw, form), ""

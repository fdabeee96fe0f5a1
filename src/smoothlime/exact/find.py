"""Which models have a closed form, recognised by the names of their classes: nothing is imported to ask."""

from __future__ import annotations

from typing import Any

from ..errors import MissingExtra, NoClosedForm
from ..models import Model
from ..models.on_scales import ModelOnScales
from ..models.on_tables import TableModel
from ..models.statsmodels import StatsmodelsModel
from ..space.neighbourhood import Factor
from .closed_form import ClosedForm
from .linear import read_linear


def find_closed_form(model: Model, factor: Factor) -> tuple[ClosedForm | None, str]:
    """The closed form of a model, or None and the reason why there is none."""
    if isinstance(model, ModelOnScales):
        form, why_not = find_closed_form(model.model, factor)
        if form is None:
            return None, why_not
        from .on_scales import put_on_scales

        return put_on_scales(form, model.curves.scales.scales)
    if isinstance(model, TableModel):
        if model.table.not_numeric:
            return None, "X has columns that hold no numbers"
        model = model.model
    if isinstance(model, StatsmodelsModel):
        from .statsmodels import read_results

        form = read_results(model.results, is_margin=model.is_margin)
        return form, "" if form is not None else "of statsmodels, regressions of arrays alone have one that we know"
    estimator: Any = getattr(model, "estimator", None)
    if estimator is None:
        return None, "only linear models and trees of scikit-learn and its kin are known by their structure"
    asked: Any = model
    linear = read_linear(estimator, asked.ask)
    if linear is not None:
        return linear, ""
    from .trees.form import read_ensemble

    try:
        trees = read_ensemble(estimator, is_margin=asked.is_margin)
    except (NoClosedForm, MissingExtra) as err:
        return None, str(err)
    if trees is None:
        return None, f"a {type(estimator).__name__} by {asked.ask} has none that we know"
    moved = sorted(set(trees.categorical_features).intersection(map(int, factor.free)))
    if moved:
        return None, f"the trees split on categories of feature {moved[0]}, which is perturbed; list it in `fixed`"
    if not factor.is_diagonal:
        return None, "trees have one only where features are perturbed independently of each other, and Σ is full"
    return trees, ""

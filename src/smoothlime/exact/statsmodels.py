"""Regressions of statsmodels as closed forms: the sum of columns times parameters, perhaps behind a link.

Those of arrays alone, as a formula may make anything of its columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..models.statsmodels import has_formula
from .linear import LinearModel
from .links import LINKS

SUMS = {"OLS", "WLS", "GLS", "GLSAR", "RLM", "QuantReg"}
"""Models that predict the sum itself."""

CURVES = {"Logit": "logistic", "Poisson": "exponential"}
"""Models that predict a curve of it."""

OF_GLM = {"Identity": "identity", "Log": "exponential", "Logit": "logistic"}
"""Links of generalised linear models, whose inverse is predicted."""


def read_results(results: Any, *, is_margin: bool) -> LinearModel | None:
    """The closed form of results, or None where there is none that we know."""
    model = results.model
    if not type(model).__module__.startswith("statsmodels.") or has_formula(results):
        return None
    kind = type(model).__name__
    link = "identity" if is_margin or kind in SUMS else CURVES.get(kind)
    if link is None and kind == "GLM":
        link = OF_GLM.get(type(model.family.link).__name__)
    params = np.asarray(results.params, dtype=np.float64)
    if link is None or params.shape != (len(model.exog_names),):
        return None  # several classes, or parameters besides those of columns
    one = np.ones((1, 1))
    return LinearModel(params[None], np.zeros(1), np.zeros(1), one, LINKS[link])

"""What a certificate is asked about: rows on their scales, how they are perturbed, and the model if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array
from .._core.validate import check_finite, check_rows, default_names
from ..errors import InvalidArgument
from ..models import Model, as_model
from ..models.on_scales import GRADIENT_BOUND, RAW_UNITS, ModelOnScales, on_scales
from ..models.problem import build_problem, choose_neighbourhood
from ..result.explanation import Explanation
from ..space.arguments import several
from ..space.neighbourhood import Factor
from ..space.tables import as_table


@dataclass(frozen=True, slots=True, eq=False)
class AskedAbout:
    """Rows (r, d) in what steps are taken in, the factor of Σ, and the model as it is asked there, or None."""

    model: Model | None
    rows: Array
    factor: Factor
    is_on_scales: bool
    """Whether steps are taken in logarithms or ranks"""

    def check(self, units: str, gradient_bound: float | None) -> None:
        """Refuse what means nothing on scales."""
        if not self.is_on_scales:
            return
        if units == "raw":
            raise InvalidArgument(RAW_UNITS, argument="units")
        if gradient_bound is not None:
            raise InvalidArgument(GRADIENT_BOUND, argument="gradient_bound")


def of_explanation(model: Any, e: Explanation, n_samples: int, sigma: Any, described: dict[str, Any]) -> AskedAbout:
    """The rows of an explanation, which says by itself how they were perturbed."""
    given = {"sigma": sigma is not None, "background": described["background"] is not None}
    given |= {"scale": described["scale"] != "linear", "fixed": bool(several(described["fixed"]))}
    for name, is_given in given.items():
        if is_given:
            msg = f"{name} is that of the explanation given as X; leave it out"
            raise InvalidArgument(msg)
    if n_samples and (np.isnan(e.x) & ~e.missing).any():
        msg = (
            "this explanation is of rows with cells that are no numbers, which it does not keep; give the rows"
            " themselves as X for n_samples to be drawn around them"
        )
        raise InvalidArgument(msg)
    adapted = None if model is None else as_model(model)
    if e.row_scales is None:
        return AskedAbout(adapted, e.x, e.factor, False)
    if adapted is None:
        return AskedAbout(None, e.scores, e.factor, True)
    return AskedAbout(*on_scales(adapted, e.row_scales, e.x, e.x), e.factor, True)


def of_rows(model: Any, X: Any, sigma: Any, described: dict[str, Any]) -> AskedAbout:
    """Rows, around which a model may be asked."""
    if sigma is None:
        msg = "sigma is needed: how far an explanation can move depends on how much it smooths"
        raise InvalidArgument(msg)
    if model is None:
        return _rows_alone(X, sigma, described)
    problem = build_problem(model, X, sigma=sigma, output=None, **described)
    problem.check_rows()
    return AskedAbout(problem.model, problem.rows, problem.factor, isinstance(problem.model, ModelOnScales))


def _rows_alone(X: Any, sigma: Any, described: dict[str, Any]) -> AskedAbout:
    """The same where no model is asked."""
    table, background = as_table(X), described["background"]
    rows = check_rows(X, finite=False) if table is None else table.numbers()
    names = None if table is None else table.names
    data = as_table(background, "background")
    around = choose_neighbourhood(
        sigma,
        background if data is None else data,
        names,
        rows.shape[1],
        scale=described["scale"],
        fixed=described["fixed"],
    )
    if table is not None:
        around = around.holding(table.not_numeric, table.names)
    factor = around.factor(rows.shape[1], names or ())
    if table is None:
        check_finite(rows, np.arange(rows.shape[1]), (), takes_gaps=True)
    scales = around.row_scales(rows, names or default_names(rows.shape[1]))
    return AskedAbout(None, rows if scales is None else scales.scores(rows), factor, scales is not None)

"""Trees behind a curve: probabilities of boosted classifiers, means of Poisson regression, shares of votes.

They have no closed form, or none where Σ is full, but their structure says how they jump: see `trees/jumps.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._core.types import Array, Indices
from ..errors import MissingExtra, NoClosedForm
from ..models import Model
from ..models.on_scales import ModelOnScales
from ..models.on_tables import TableModel
from ..space.neighbourhood import Factor
from .curves import Curve
from .on_scales import TreesOnScales, put_trees_on_scales
from .trees.form import TreesForm, read_ensemble
from .trees.jumps import Jumps


@dataclass(frozen=True, slots=True, eq=False)
class BentTrees:
    """A model whose outputs are a known curve of sums of trees."""

    form: TreesForm | TreesOnScales
    curve: Curve

    def has_closed_form(self, factor: Factor) -> bool:
        """Whether nothing needs to be drawn."""
        return factor.is_diagonal and self.curve.name == "identity" and self.curve.then is None

    @property
    def is_tabled(self) -> bool:
        """Whether a table bends its outputs, which may jump where the margin hardly moves."""
        return self.curve.then is not None and self.curve.then.name == "table"

    def size(self, x: Array) -> float:
        """Least size that outputs are compared at: digits that a margin loses may move them by as much."""
        margins, curve, then = self.form.size(x), self.curve, self.curve.then
        if curve.name == "identity" and then is None:
            return margins
        steepest = 1.0 if curve.name == "identity" else 0.25
        if curve.name == "exponential" or then is not None:
            highest = float(np.abs(curve.outputs(self.form.values(x))).max())
            steepest = highest if curve.name == "exponential" else steepest
            steepest *= 1.0 if then is None else then.steepest(highest)
        least = 1.0 if then is None or then.name in ("logistic", "table") else 0.0
        return float(max(least, curve.sharpness * margins * steepest))

    @property
    def spread(self) -> Array:
        """(1,) or (k,) how much outputs can vary at all."""
        then = self.curve.then
        if self.curve.name == "identity" and then is None:
            return self.form.spread
        is_bounded = self.curve.name != "exponential" if then is None else then.name in ("logistic", "table")
        return np.ones(1) if is_bounded else np.full(1, np.inf)

    def values(self, x: Array) -> Array:
        """Outputs (r, k)."""
        return self.curve.outputs(self.form.values(x))

    def tangents(self, x: Array, weights: Array) -> Array:
        """Weights (r, t, m) on margins: how outputs weighed by (r, t, k) would change if the curve were its tangent."""
        return self.curve.gradient(self.form.values(x), weights)

    def margin_slopes(self, x: Array, factor: Factor, weights: Array) -> Array:
        """Exact smoothed slopes (r, t, f) of margins weighed by (r, t, m), for diagonal Σ."""
        targets = [np.ascontiguousarray(weights[:, i]) for i in range(weights.shape[1])]
        return np.stack([self.form.smooth(x, factor, each).slopes for each in targets], axis=1)

    def parts(self, x: Array) -> Iterator[tuple[BentTrees, TreesForm, Indices, Array]]:
        """Trees for some of the rows each, which of them, and these rows as they are compared with thresholds."""
        for form, rows, compared in self.form.parts(x):
            yield BentTrees(form, self.curve), form, rows, compared

    def jumps(self, x: Array, steps: Array, factor: Factor, weights: Array, controls: Array) -> Jumps:
        """Jumps of outputs and of margins around rows x (r, d), along every axis through x + steps (1 or r, n, f)."""
        return self.form.jumps(self.curve, x, steps, factor, weights, controls)


def find_margin_trees(model: Model, factor: Factor) -> tuple[TreesForm | TreesOnScales | None, str]:
    """The trees that a model adds up before all else, or None and the reason why there are none."""
    if isinstance(model, ModelOnScales):
        form, why_not = find_margin_trees(model.model, factor)
        if not isinstance(form, TreesForm):
            return None, why_not
        return put_trees_on_scales(form, model.curves.scales.scales)
    if isinstance(model, TableModel):
        if model.table.not_numeric:
            return None, "X has columns that hold no numbers"
        model = model.model
    estimator = getattr(model, "estimator", None)
    if estimator is None:
        return None, "only models of scikit-learn and its kin are known by their structure"
    try:
        trees = read_ensemble(estimator, is_margin=True)
    except (NoClosedForm, MissingExtra) as err:
        return None, str(err)
    if trees is None:
        return None, f"a {type(estimator).__name__} is not made of trees that we know"
    moved = sorted(set(trees.categorical_features).intersection(map(int, factor.free)))
    if moved:
        return None, f"the trees split on categories of feature {moved[0]}, which is perturbed; list it in `fixed`"
    return trees, ""

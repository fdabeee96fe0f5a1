"""Closed forms on scales: f∘T, where steps are taken in logarithms or ranks.

T is monotone, so a split a ≤ c of a tree is a split u ≤ sup{u: T(u) ≤ c}: the same trees with other thresholds. A line
is a sum of functions of one feature each, whose means over a normal u are known; in a full Σ too, as each sees its own
feature alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from .._core.types import Array, Indices
from .._core.validate import default_names
from ..space.neighbourhood import Factor
from ..space.row_scales import RowScales, Scales
from ..space.scales import Moments, RankScale
from .closed_form import ClosedForm, Smoothed
from .curves import Curve
from .linear import LinearModel
from .links import LINKS
from .trees.form import TreesForm
from .trees.jumps import Jumps

MOST_OWN = 256
"""Rows beyond the background whose trees are kept from one batch of draws to the next."""


def put_on_scales(form: ClosedForm, scales: Scales) -> tuple[ClosedForm | None, str]:
    """The closed form of f∘T for that of f, or None and the reason why there is none."""
    if isinstance(form, LinearModel):
        if form.link is not LINKS["identity"]:
            return None, "it is a curve of a sum, and steps are taken in logarithms or ranks"
        return LineOnScales(form, scales), ""
    assert isinstance(form, TreesForm)
    return put_trees_on_scales(form, scales)


def put_trees_on_scales(form: TreesForm, scales: Scales) -> tuple[TreesOnScales | None, str]:
    """The same of trees; those that take 0 for missing would need to know how often T is 0."""
    for j, scale in enumerate(scales):
        counts_zero = form.trees.zero_is_missing[j : j + 1].any()
        if counts_zero and isinstance(scale, RankScale) and (scale.known == 0).any():
            return None, f"the trees take 0 for missing, and steps in ranks meet it at feature {j}"
    return TreesOnScales(form, scales), ""


class TreesOnScales:
    """Trees whose thresholds are those of scores: for all rows, and for each that lies beyond the background."""

    takes_gaps = True

    def __init__(self, form: TreesForm, scales: Scales) -> None:
        self.form, self.scales = form, scales
        self.categorical_features, self.spread = form.categorical_features, form.spread
        self._moved: dict[tuple[tuple[int, float], ...], TreesForm] = {}

    def size(self, x: Array) -> float:
        """What outputs are compared at."""
        return self.form.size(x)

    def values(self, x: Array) -> Array:
        """Outputs (r, k) at rows as they are."""
        return self.form.values(x)

    def smooth(self, x: Array, factor: Factor, weights: Array) -> Smoothed:
        """E f∘T and its slopes per score."""
        r = len(x)
        found = Smoothed(np.empty((r, len(factor.free))), np.empty(r), np.empty(r), np.empty(r))
        for form, rows, u in self.parts(x):
            part = form.smooth(u, factor, weights[rows])
            for name in ("slopes", "mean", "fidelity", "radius"):
                getattr(found, name)[rows] = getattr(part, name)
        return found

    def jumps(self, curve: Curve, x: Array, steps: Array, factor: Factor, weights: Array, controls: Array) -> Jumps:
        """Jumps around rows x (r, d) along every axis through scores + steps (1 or r, n, f)."""
        (r, t, _), (n, f) = weights.shape, steps.shape[1:]
        found = Jumps(np.empty((r, t, n)), np.empty((r, t, n, f)), np.empty((r, t, n, f)))
        for form, rows, u in self.parts(x):
            own = steps if len(steps) == 1 else steps[rows]
            part = form.jumps(curve, u, own, factor, weights[rows], controls[rows])
            for name in ("outputs", "slopes", "of_margin"):
                getattr(found, name)[rows] = getattr(part, name)
        return found

    def parts(self, x: Array) -> Iterator[tuple[TreesForm, Indices, Array]]:
        """Trees, the positions of the rows that they serve, and the scores of these rows."""
        around = RowScales.of(self.scales, x, default_names(x.shape[1]))
        u = around.scores(x)
        groups: dict[tuple[tuple[int, float], ...], list[int]] = {}
        for row in range(len(x)):
            key = tuple((j, float(x[row, j])) for j in around.own.get(row, {}))
            groups.setdefault(key, []).append(row)
        for key, rows in groups.items():
            if key not in self._moved:
                if len(self._moved) > MOST_OWN:
                    self._moved.clear()
                self._moved[key] = self._on(around.of_row(rows[0]))
            yield self._moved[key], np.array(rows), u[rows]

    def _on(self, scales: Scales) -> TreesForm:
        """The trees with thresholds in scores."""
        trees = self.form.trees
        threshold, numeric = trees.threshold.copy(), (trees.feature >= 0) & ~trees.is_categorical
        for j, scale in enumerate(scales):
            here = numeric & (trees.feature == j)
            if scale is not None and here.any():
                threshold[here] = scale.above(threshold[here])
        return TreesForm(dataclasses.replace(trees, threshold=threshold))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class LineOnScales:
    """A line f∘T: a sum of functions of one feature each, with known means over N(u, σ²)."""

    line: LinearModel
    scales: Scales
    takes_gaps = False

    def size(self, x: Array) -> float:
        """What outputs are compared at."""
        return self.line.size(x)

    @property
    def spread(self) -> Array:
        """A line has no ends."""
        return self.line.spread

    def values(self, x: Array) -> Array:
        """Outputs (r, k) at rows as they are."""
        return self.line.values(x)

    def smooth(self, x: Array, factor: Factor, weights: Array) -> Smoothed:
        """E f∘T and its slopes per score; Σ may be full, but then fidelity is not known."""
        line, free, std = self.line, factor.free, factor.std
        parts = weights @ line.turn  # (r, m)
        coef = (parts @ line.coef)[:, free]
        found = self.moments_at(x, None, factor)
        slopes = coef * found.slope
        at_means = x.copy()
        at_means[:, free] = found.mean
        mean = weights @ line.offset + (parts * (at_means @ line.coef.T + line.intercept)).sum(axis=1)
        fidelity = np.full(len(x), np.nan)
        if factor.is_diagonal:
            variance = (coef**2 * found.variance).sum(axis=1)
            explained = ((slopes * std) ** 2).sum(axis=1)
            fidelity = np.divide(explained, variance, out=np.ones(len(x)), where=variance > 0).clip(0, 1)
        far = x.copy()
        far[:, free] = np.sqrt(found.mean**2 + found.variance)  # how large terms are where draws lead
        off = np.linalg.norm(coef * found.error, axis=1)
        return Smoothed(slopes, mean, fidelity, off + line.lost(far, factor, parts))

    def moments_at(self, x: Array, scores: Array | None, factor: Factor) -> Moments:
        """Of the features that move, (r, f) each: around rows x, or other scores (r, f) on the scales of these rows."""
        around = RowScales.of(self.scales, x, default_names(x.shape[1]))
        u, shape = around.scores(x), (len(x), len(factor.free))
        if scores is not None:
            u[:, factor.free] = scores
        none = np.zeros((2, *shape))
        found = Moments(u[:, factor.free].copy(), np.ones(shape), np.tile(factor.std**2, (len(x), 1)), *none)
        common, own = np.setdiff1d(np.arange(len(x)), list(around.own)), list(around.own)
        for rows in (common, *(np.array([row]) for row in own)):
            for i, j in enumerate(map(int, factor.free)):
                scale = self.scales[j] if rows is common else around.of_row(int(rows[0]))[j]
                if scale is None or not len(rows):
                    continue
                of_one = scale.moments(u[rows, j], float(factor.std[i]))
                for name in ("mean", "slope", "variance", "error", "bend"):
                    getattr(found, name)[rows, i] = getattr(of_one, name)
        return found

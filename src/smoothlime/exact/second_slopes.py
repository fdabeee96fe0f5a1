"""Second slopes of closed forms: ∂²F at each row, without drawing, and how much f varies there."""

from __future__ import annotations

from functools import cache

import numpy as np

from .._core.types import Array
from ..draws.designs import DESIGNS
from ..space.neighbourhood import Factor
from .closed_form import ClosedForm
from .linear import LinearModel
from .on_scales import LineOnScales, TreesOnScales
from .sums import FormSum
from .trees.form import TreesForm

POINTS = 1_024
"""Draws whose variance is taken for that of trees, which have none in closed form: right to about 4%."""

AT_ONCE = 2**22
"""Numbers of points around rows that are made together."""


def second_slopes(form: ClosedForm, x: Array, factor: Factor, weights: Array) -> Array:
    """(r, f, f) around rows x (r, D), in coordinates of the form, of outputs weighed by (r, k)."""
    if isinstance(form, LinearModel):
        return _of_line(form, x, factor, weights)
    if isinstance(form, TreesForm):
        from .trees.second_slopes import second_slopes as of_trees

        std = np.zeros(x.shape[1])  # rows may have more than the features: what is made of fixed ones
        std[factor.free] = factor.std
        return of_trees(form.trees, x, std, weights)[:, factor.free[:, None], factor.free]
    found = np.zeros((len(x), len(factor.free), len(factor.free)))
    if isinstance(form, TreesOnScales):
        for trees, rows, u in form.parts(x):
            found[rows] = second_slopes(trees, u, factor, weights[rows])
    elif isinstance(form, LineOnScales):
        coef = ((weights @ form.line.turn) @ form.line.coef)[:, factor.free]
        np.einsum("rii->ri", found)[...] = coef * form.moments_at(x, None, factor).bend
    else:
        assert isinstance(form, FormSum)
        for part, turn in form.parts:
            found += second_slopes(part, x, factor, np.ascontiguousarray(weights @ turn))
    return found


def variance(form: ClosedForm, x: Array, factor: Factor, weights: Array, slopes: Array, fidelity: Array) -> Array:
    """(r,) Var f(a): from what slopes (r, f) explain of it where that is known, else that of POINTS draws."""
    explained = (factor.whiten(np.nan_to_num(slopes)) ** 2).sum(axis=1)
    known = np.divide(explained, fidelity, out=np.full(len(x), np.nan), where=fidelity > 0)
    known[(fidelity == 1) & (explained == 0)] = 0.0
    left = np.flatnonzero(np.isnan(known))
    steps = _steps(factor)
    size = max(1, AT_ONCE // (POINTS * x.shape[1]))
    for start in range(0, len(left), size):
        rows = left[start : start + size]
        known[rows] = _at(form, x[rows], steps, factor, weights[rows]).var(axis=1, ddof=1)
    return known


def _at(form: ClosedForm, x: Array, steps: Array, factor: Factor, weights: Array) -> Array:
    """What is explained, (r, n), at rows and the same steps (n, f) from each: in scores, where these are taken."""
    if isinstance(form, FormSum):
        start = (weights @ form.offset)[:, None]
        return sum((_at(part, x, steps, factor, weights @ turn) for part, turn in form.parts), start + np.zeros(1))
    if isinstance(form, TreesOnScales):
        found = np.empty((len(x), len(steps)))
        for trees, rows, u in form.parts(x):
            found[rows] = _at(trees, u, steps, factor, weights[rows])
        return found
    if isinstance(form, LineOnScales):
        return _line_in_scores(form, x, steps, factor, weights)
    points = np.repeat(x[:, None, :], len(steps), axis=1)
    points[:, :, factor.free] += steps
    values = form.values(points.reshape(-1, x.shape[1])).reshape(len(x), len(steps), -1)
    return np.asarray(np.einsum("rnk,rk->rn", values, weights))


def _line_in_scores(form: LineOnScales, x: Array, steps: Array, factor: Factor, weights: Array) -> Array:
    from .._core.validate import default_names
    from ..space.row_scales import RowScales

    around = RowScales.of(form.scales, x, default_names(x.shape[1]))
    points = np.repeat(around.scores(x)[:, None, :], len(steps), axis=1)
    points[:, :, factor.free] += steps
    place = np.repeat(np.arange(len(x)), len(steps))
    moved = around.values(points.reshape(-1, x.shape[1]), place)
    values = form.values(moved).reshape(len(x), len(steps), -1)
    return np.asarray(np.einsum("rnk,rk->rn", values, weights))


def _of_line(form: LinearModel, x: Array, factor: Factor, weights: Array) -> Array:
    """Σ weight·E g''·c cᵀ; a missing value is not perturbed."""
    parts = weights @ form.turn
    found = np.zeros((len(x), len(factor.free), len(factor.free)))
    gaps = np.isnan(x[:, factor.free]) if form.gap is not None else np.zeros((len(x), 1), dtype=np.bool_)
    patterns, which = np.unique(gaps, axis=0, return_inverse=True)
    for i, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.ravel() == i)
        moved = form.coef[:, factor.free] * ~pattern
        middle = form.middle(x[rows])
        tau = np.broadcast_to(np.linalg.norm(factor.whiten(moved), axis=1), middle.shape)
        bent = parts[rows] * form.link.curvature(middle, tau) * (tau > 0)
        found[rows] = np.einsum("rm,mi,mj->rij", bent, moved, moved, optimize=True)
    return found


def _steps(factor: Factor) -> Array:
    return factor.steps(_draws(len(factor.free)))


@cache
def _draws(d: int) -> Array:
    name = "sobol" if d <= 64 else "antithetic"
    return DESIGNS[name].stream(d, 0, None).take(POINTS)

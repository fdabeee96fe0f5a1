"""Second slopes of rows: in closed form where the model has one, else by the loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.types import Array, Indices
from ..errors import InvalidArgument
from ..estimators import Estimator
from ..estimators.second_slopes import with_second_slopes
from ..exact.second_slopes import AT_ONCE, second_slopes, variance
from ..models import Target
from ..models.problem import Problem
from ..result.interactions import Interactions
from . import plan
from .defaults import choose_method
from .exact_route import ExactRoute, find_exact_route
from .loop import run_with_results
from .options import Options


def exact(
    problem: Problem, pairs: Indices, target: Any, options: Options, progress: Any, *, is_asked_for: bool
) -> Interactions | None:
    """From the closed form of the model, if it has one; where it was asked for by name, an error says why not."""
    route = find_exact_route(problem, is_asked_for=is_asked_for)
    if route is None:
        return None
    resolved = route.resolve(target)
    (explanation,) = route.run(resolved, options.confidence, progress)
    weights = np.ascontiguousarray(resolved.weights[:, 0])
    by_pair = _by_pair(route, pairs, weights)
    free = problem.factor.free
    slopes = np.nan_to_num(explanation.values[:, free])
    linear = (problem.factor.whiten(slopes) ** 2).sum(axis=1)
    quadratic = _quadratic(route, pairs, by_pair)
    known = variance(route.form, route.x, problem.factor, weights, slopes, explanation.fidelity)
    return Interactions(
        explanation=explanation,
        pairs=pairs,
        by_pair=by_pair,
        error_by_pair=np.where(np.isnan(by_pair), np.nan, 0.0),
        skewness=np.where(np.isnan(by_pair), np.nan, 0.0),
        linear=linear,
        quadratic=quadratic,
        variance=np.fmax(known, linear + np.nan_to_num(quadratic)),
    )


def drawn(
    problem: Problem,
    pairs: Indices,
    target: Any,
    options: Options,
    progress: Any,
    *,
    method: str | Estimator,
    design: str,
) -> Interactions:
    """By draws, from gradients where the model has them."""
    if method == "auto":
        method = "smoothgrad" if hasattr(problem.model, "values_and_gradients") else "clime"
    chosen = choose_method(method, has_gradients=hasattr(problem.model, "values_and_gradients"), d=1)
    twice = with_second_slopes(chosen, pairs, problem.factor)
    resolved = plan.resolve(problem, options, method=twice, target=target, design=design, may_rotate=False)
    asked: Target = resolved.resolve(target)
    (explanation,), results = run_with_results(resolved, asked, progress, tells_jumps=True)
    found = results.second
    assert found is not None
    return Interactions(
        explanation=explanation,
        pairs=pairs,
        by_pair=found.values,
        error_by_pair=found.standard_error,
        skewness=found.skewness,
        linear=found.linear,
        quadratic=found.quadratic,
        variance=found.variance,
    )


def _by_pair(route: ExactRoute, pairs: Indices, weights: Array) -> Array:
    """(r, p), block of rows by block; NaN where a feature has no value."""
    problem = route.problem
    place = np.zeros(problem.x.shape[1], dtype=np.intp)
    place[problem.factor.free] = np.arange(len(problem.factor.free))
    i, j = place[pairs].T
    r = len(problem.rows)
    found = np.empty((r, len(pairs)))
    size = max(1, AT_ONCE // max(1, route.x.shape[1] ** 2))
    for start in range(0, r, size):
        part = slice(start, start + size)
        with np.errstate(over="ignore", invalid="ignore"):  # said below, in our own words
            found[part] = second_slopes(route.form, route.x[part], problem.factor, weights[part])[:, i, j]
    if not np.isfinite(found).all():
        msg = "the smoothed model is too large for a number; lower sigma"
        raise InvalidArgument(msg, argument="sigma")
    return np.where(problem.missing[:, pairs].any(axis=2), np.nan, found)


def _quadratic(route: ExactRoute, pairs: Indices, by_pair: Array) -> Array:
    """(r,) ½‖LᵀHL‖²."""
    problem, factor = route.problem, route.problem.factor
    known = np.nan_to_num(by_pair)
    if factor.is_diagonal:
        std = np.zeros(problem.x.shape[1])
        std[factor.free] = factor.std
        half = np.where(pairs[:, 0] == pairs[:, 1], 0.5, 1.0)
        return np.asarray((known * std[pairs].prod(axis=1)) ** 2 @ half)
    f = len(factor.free)
    if len(pairs) != f * (f + 1) // 2:
        return np.full(len(by_pair), np.nan)
    i, j = np.triu_indices(f)
    full = np.zeros((len(by_pair), f, f))
    full[:, i, j] = full[:, j, i] = known
    return np.asarray((factor.whiten(factor.whiten(full).swapaxes(1, 2)) ** 2).sum(axis=(1, 2)) / 2)

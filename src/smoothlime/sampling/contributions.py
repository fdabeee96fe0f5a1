"""From rows and baselines to contributions: in closed form where the model has one, else by draws."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.progress import Progress
from .._core.types import Array, Flags, Indices
from .._core.warn import warn
from ..errors import JumpsUnseen, NoClosedForm, NoGradients
from ..exact.lines import ELLIPSES, along_lines
from ..models import Evaluation, Target, model_dtype, resolve_target
from ..models.baselines import Baselines
from ..models.evaluation import Where, automatic_batch_size
from ..models.problem import Problem, telling_of_gaps
from ..models.targets import implied_range, is_narrow, output_names
from ..uncertainty.groups import Groups
from ..uncertainty.jackknife import t_quantile
from ..uncertainty.stopping import AUTOMATIC_FLOOR, FIRST_LOOK, Stopping, plan_looks
from .exact_lines import MOST_LINES, lines_between
from .exact_route import ExactRoute
from .line_draws import GROUPS, UNIT, LineSampler, OfRow, error_of
from .options import Options

PAIRS = 2**22
"""Numbers on lines that are laid out together."""

BY_CHANCE = 1e-3
"""Chance of a warning that gradients miss something, in a call where they miss nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Contributions of r rows, as the result has them."""

    values: Array
    """(r, d)"""
    total: Array
    total_error: Array
    base: Array
    base_error: Array
    residual: Array
    residual_error: Array
    prediction: Array
    base_prediction: Array
    radius: Array
    converged: Flags
    n_samples: Indices
    target: Target
    groups: Groups | None = None


def exact(route: ExactRoute, baselines: Baselines, target: Any, progress: Any, *, is_asked_for: bool) -> Found | None:
    """By nodes on the lines from each baseline to each row.

    None where it was not asked for, and would take very many lines or is not the model for what baselines hold.
    """
    problem, resolved = route.problem, route.resolve(target)
    weights = np.ascontiguousarray(resolved.weights[:, 0])
    r, d = problem.x.shape
    free, held, m = problem.factor.free, baselines.held.columns, len(baselines.of(0))
    values, numbers = np.zeros((r, d)), {name: np.zeros(r) for name in ("start", "end", "radius")}
    evaluation = Evaluation(problem.model, automatic_batch_size(problem.rows.shape[1], model_dtype(problem.model)))
    at_base = _at_baselines(problem, baselines, resolved, evaluation)
    with Progress(progress, r * m) as watch:
        for rows in _blocks(r, m * max(len(free), len(ELLIPSES)) * (8 if len(held) else 1)):
            try:
                lines = lines_between(route, baselines, rows, most=None if is_asked_for else MOST_LINES)
            except NoClosedForm:
                if is_asked_for:
                    raise
                return None
            if lines is None:
                return None
            ends = problem.rows[np.ix_(lines.rows, free)].astype(np.float64)
            starts = np.concatenate([baselines.starts(problem, int(row), free) for row in rows])[lines.pairs]
            starts[np.isnan(ends)] = np.nan
            own = weights[lines.rows]
            found = along_lines(
                route.form, lines.x, starts, ends, problem.factor, own, lambda _: None, lines.setting
            )  # fmt: skip
            values[np.ix_(rows, free)] = lines.of_rows(found.parts)
            if len(held):
                values[np.ix_(rows, held)] = lines.of_rows(found.held)
            for name, by_row in numbers.items():
                by_row[rows] = lines.of_rows(lines.counted(name, getattr(found, name)))
            watch.advance(len(rows) * m)
    none = np.zeros(r)
    return Found(
        values=values,
        total=numbers["end"],
        total_error=none,
        base=numbers["start"],
        base_error=none,
        residual=numbers["end"] - numbers["start"] - values.sum(axis=1),
        residual_error=none,
        prediction=resolved.of(route.predictions)[:, 0],
        base_prediction=at_base,
        radius=numbers["radius"],
        converged=np.ones(r, dtype=np.bool_),
        n_samples=none.astype(np.intp),
        target=resolved,
    )


def sampled(
    problem: Problem, baselines: Baselines, target: Any, options: Options, progress: Any, *, by_gradients: bool | None
) -> Found:
    """Row by row, until each has its error."""
    problem.check_rows()
    dtype = model_dtype(problem.model)
    has_gradients = hasattr(problem.model, "values_and_gradients")
    if by_gradients and not has_gradients:
        msg = f"method='gradients' needs a model with gradients, which a {problem.kind} has not. Leave method out"
        raise NoGradients(msg, argument="method")
    size = options.batch_size
    if not isinstance(size, int):
        size = automatic_batch_size(problem.rows.shape[1], dtype, problem.model)
    evaluation = Evaluation(problem.model, size)
    rows = problem.rows.astype(dtype)
    with telling_of_gaps(problem):
        seen = evaluation.ask_at_rows(rows, rows[-1:]).values
    names = output_names(problem.model.outputs, seen.shape[1])
    resolved = resolve_target(target, names, len(seen), lambda: seen)
    at_base = _at_baselines(problem, baselines, resolved, evaluation)
    floor = AUTOMATIC_FLOOR * is_narrow(target, implied_range(problem.model, target))
    sampler = LineSampler(
        problem, baselines, resolved, evaluation,
        has_gradients=has_gradients if by_gradients is None else by_gradients,
        stopping=_stopping(options, floor), seed=options.seed, is_shared=options.draws == "shared",
    )  # fmt: skip
    drawn: list[OfRow] = []
    first = sampler.stopping.looks[0]
    with Progress(progress, len(rows) * first) as watch:
        for row in range(len(rows)):
            drawn.append(sampler.run(row))
            watch.advance(drawn[-1].n)
            watch.expect((len(rows) - row - 1) * int(np.mean([each.n for each in drawn])))
    found = _collected(drawn, resolved, resolved.of(seen)[:, 0], at_base)
    if sampler.has_gradients:
        found = dataclasses.replace(found, converged=found.converged & ~_missed_by_gradients(found))
    return found


def _stopping(options: Options, floor: float) -> Stopping:
    """Looks at whole multiples of what groups need."""
    if options.n_samples is not None:
        looks: tuple[int, ...] = (-(-options.n_samples // UNIT) * UNIT,)
    else:
        looks = plan_looks(FIRST_LOOK, max(FIRST_LOOK, options.max_samples // UNIT * UNIT))
    is_fixed = options.n_samples is not None
    floor = floor if options.absolute is None else 0.0
    return Stopping(looks, options.rtol, options.absolute, options.confidence, floor, is_fixed)


def _collected(drawn: list[OfRow], target: Target, prediction: Array, at_base: Array) -> Found:
    pseudo = np.stack([each.pseudovalues for each in drawn])
    n = np.array([each.n for each in drawn])
    r, _, d = pseudo.shape
    residual, residual_error = np.array([each.residual for each in drawn]).T
    sizes = np.repeat((n // GROUPS)[:, None], GROUPS, axis=1)
    return Found(
        values=pseudo.mean(axis=1),
        total=np.array([each.end.mean() for each in drawn]),
        total_error=np.array([error_of(each.end) for each in drawn]),
        base=np.array([each.start.mean() for each in drawn]),
        base_error=np.array([error_of(each.start) for each in drawn]),
        residual=residual,
        residual_error=residual_error,
        prediction=prediction,
        base_prediction=at_base,
        radius=np.zeros(r),
        converged=np.array([each.converged for each in drawn]),
        n_samples=n,
        target=target,
        groups=Groups(pseudo, sizes, np.zeros((r, d)), None),
    )


def _at_baselines(problem: Problem, baselines: Baselines, target: Target, evaluation: Evaluation) -> Array:
    """(r,) f(b), the mean over the baselines of each row; what is held alike has the values of the row."""
    m, free, held = len(baselines.of(0)), problem.factor.free, baselines.held
    found = []
    for rows in _blocks(len(problem.x), m * problem.rows.shape[1]):
        points = np.repeat(problem.rows[rows], m, axis=0)
        starts = np.concatenate([baselines.starts(problem, int(row), free) for row in rows])
        points[:, free] = np.where(np.isnan(points[:, free]), np.nan, starts)
        which = np.concatenate([baselines.of(int(row)) for row in rows])
        differs = np.concatenate([held.differs(int(row), baselines.of(int(row))) for row in rows])
        points[:, held.columns] = np.where(differs, held.codes[which], points[:, held.columns])
        place = _named(rows, m)
        values = evaluation.values(points.astype(model_dtype(problem.model), copy=False), place)
        found.append(np.einsum("rmk,rk->r", values.reshape(len(rows), m, -1), target.weights[rows, 0]) / m)
    return np.concatenate(found)


def _named(rows: Indices, m: int) -> Where:
    """Names a baseline in complaints."""
    return lambda i: f"the baseline of row {rows[i // m]}"


def _blocks(r: int, numbers: int) -> Iterator[Indices]:
    """Rows by turns, so many that what is laid out of them stays small."""
    size = max(1, PAIRS // max(1, numbers))
    for start in range(0, r, size):
        yield np.arange(start, min(r, start + size))


def _missed_by_gradients(found: Found) -> Flags:
    """(r,) where gradients do not add up to what the model changes by, told in a warning: it jumps, unseen by them."""
    r = len(found.residual)
    limit = float(t_quantile(GROUPS - 1, 1 - BY_CHANCE / (2 * r)))
    rounding = 1e-6 * np.maximum(np.abs(found.total), np.abs(found.base))
    is_off = np.asarray(np.abs(found.residual) > limit * found.residual_error + rounding)
    off = np.flatnonzero(is_off)
    if len(off):
        row = int(off[np.argmax(np.abs(found.residual[off]))])
        more = f" (and {len(off) - 1} more)" if len(off) > 1 else ""
        msg = (
            f"the gradients do not add up to what the model changes by: row {row}{more} lacks"
            f" {found.residual[row]:.3g} of {found.total[row] - found.base[row]:.3g}. It jumps (rounding, argmax, trees"
            " inside?), which gradients do not see. Use method='predictions'"
        )
        warn(msg, JumpsUnseen)
    return is_off

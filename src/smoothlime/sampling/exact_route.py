"""Explanations without sampling: what `method="exact"` does, and `"auto"` where it can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.progress import Progress
from .._core.types import Array
from .._core.validate import check_finite
from .._core.version import versions
from ..errors import InvalidArgument, ModelError, NoClosedForm
from ..exact import ClosedForm, Exact, Smoothed, find_closed_form
from ..exact.bent_trees import BentTrees
from ..exact.curves import AGREES
from ..exact.known import KnownSum, find_known, threshold_points, view_of
from ..models import Evaluation, Target, resolve_target
from ..models.evaluation import Where, automatic_batch_size
from ..models.on_scales import ModelOnScales
from ..models.problem import Problem, telling_of_gaps
from ..models.targets import output_names
from ..result.explanation import Explanation, Provenance, columns
from ..result.gaps import without_slopes

BLOCK = 1_024
"""Rows between two steps of the progress bar."""

ROUNDED = 0.01
"""Share of how outputs vary around a row that the model may lose by rounding; what it returns is another model then."""

FLAT = 1e-6
"""Of how much outputs can vary at all: what is lost where they hardly vary, and is less than this, is not looked at."""

HOLES = 0.3
"""Share of values that are missing at some of the points at which parts are proved."""

PROBED_ROWS, PROBES = 8, 32
"""Points around some rows at which what was read is compared with what the model answers."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactRoute:
    """A model whose closed form is known, around some rows; nothing is drawn."""

    problem: Problem
    form: ClosedForm
    x: Array
    """(r, D) the rows in the coordinates of the form: their features first"""
    predictions: Array
    """(r, k) the model's own outputs at the rows"""
    evaluations: int
    """Points that it was asked for, per row"""
    known: KnownSum | None = None
    """The model's parts, where it is made of others"""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return output_names(self.problem.model.outputs, self.predictions.shape[1])

    def resolve(self, target: Any) -> Target:
        """What is asked for of each row."""
        return resolve_target(target, self.outputs, len(self.predictions), lambda: self.predictions)

    def placed(self, points: Array, x: Array) -> Array:
        """Points with other held columns, as the model is asked and as numbers (n, d), as the form takes them."""
        return x if self.known is None else self.known.place(points, x)

    def run(self, target: Target, confidence: float, progress: Any) -> list[Explanation]:
        """One explanation per target."""
        predictions = target.of(self.predictions)
        r, t = target.weights.shape[:2]
        with Progress(progress, r * t) as watch:
            found = [self._smooth(target.weights[:, i], watch) for i in range(t)]
        return [self._explain(found[i], target, i, predictions[:, i], confidence) for i in range(t)]

    def _smooth(self, weights: Array, watch: Progress) -> Smoothed:
        """Block by block, so that there is something to watch."""
        parts = []
        for start in range(0, len(weights), BLOCK):
            part = slice(start, start + BLOCK)
            with np.errstate(over="ignore", invalid="ignore"):  # said below, in our own words
                parts.append(self.form.smooth(self.x[part], self.problem.factor, weights[part]))
            watch.advance(len(parts[-1].mean))
            if not np.isfinite(parts[-1].slopes).all():
                msg = "the smoothed model is too large for a number; lower sigma"
                raise InvalidArgument(msg, argument="sigma")
        names = ("slopes", "mean", "fidelity", "radius")
        return Smoothed(**{name: np.concatenate([getattr(each, name) for each in parts]) for name in names})

    def _explain(self, found: Smoothed, target: Target, i: int, prediction: Array, confidence: float) -> Explanation:
        problem, factor = self.problem, self.problem.factor
        r, d = problem.x.shape
        none, missing = np.zeros(r, dtype=np.intp), problem.missing
        return Explanation(
            x=problem.x,
            values=without_slopes(columns(found.slopes, factor.free, d), missing),
            standard_error=without_slopes(columns(np.zeros_like(found.slopes), factor.free, d), missing),
            missing=missing,
            not_numeric=problem.not_numeric,
            prediction=prediction,
            smoothed=found.mean,
            fidelity=found.fidelity,
            radius=found.radius,
            converged=np.isfinite(found.radius),
            n_samples=none,
            n_evaluations=none + self.evaluations,
            degrees_of_freedom=np.full(r, np.inf),
            feature_names=problem.feature_names,
            output_name=target.names[i],
            row_outputs=tuple(names[i] for names in target.row_names),
            neighbourhood=problem.neighbourhood,
            provenance=Provenance(
                method=Exact(),
                design="none",
                seed=0,
                draws="shared",
                confidence=confidence,
                guarantee="certified",
                assumes="the structure read from the model, which reproduces its outputs but for rounding",
                block=1,
                dtype="float64",
                batch_size=1,
                versions=versions(),
                backend=problem.backend,
            ),
            input_shape=problem.input_shape,
        )


def find_exact_route(problem: Problem, *, is_asked_for: bool) -> ExactRoute | None:
    """The closed form around the rows, if the model has one; where it was asked for by name, an error says why not."""
    form, why_not = find_closed_form(problem.model, problem.factor)
    problem.check_gaps()
    x, known = problem.x, None
    if form is None:
        known, why_unknown = find_known(problem)
        if known is not None:
            form, why_not = known.closed_form(problem.factor)
            x = known.x
        why_not = why_unknown or why_not
        if form is not None and known is not None:
            why_not = prove_known(known, problem)
            form = None if why_not else form
    if form is not None and not form.takes_gaps:
        check_finite(problem.x, problem.factor.free, problem.feature_names, takes_gaps=True)
        if problem.missing.any():
            form, why_not = None, "its closed form is for rows without missing values"
    if form is None:
        if not is_asked_for:
            return None
        msg = f"method='exact' needs a closed form: {why_not}. Methods 'clime' and 'differences' only ask the model"
        raise NoClosedForm(msg, argument="method")
    near, x_near = probes(problem, x)
    r = len(problem.rows)
    evaluation = Evaluation(problem.model, automatic_batch_size(problem.rows.shape[1], np.dtype(np.float64)))
    with telling_of_gaps(problem):
        try:
            answers = evaluation.values(np.concatenate([problem.rows, near]), place(r))
        except ModelError:
            evaluation.values(problem.rows, place(r))  # what is wrong with the rows themselves is said of them alone
            raise
    off, lost = compare(form, np.concatenate([x, x_near]), answers, r)
    if off <= AGREES and lost <= ROUNDED:
        return ExactRoute(problem, form, x, answers[:r], 1 + -(-len(near) // r), known)
    if not is_asked_for:
        return None  # something else than what it seems to be: ask it instead
    why_not = (
        f"the structure read from the {problem.kind} does not reproduce its outputs (off by {off:.2g} of their size)"
        if off > AGREES
        else f"the {problem.kind} rounds its outputs, which are large next to how they vary around the rows, and of"
        f" that {min(lost, 1):.0%} is lost; fit it to a target less its mean"
    )
    msg = f"method='exact': {why_not}. Methods 'clime' and 'differences' only ask the model"
    raise NoClosedForm(msg, argument="method")


def place(r: int) -> Where:
    """Names a point: one of r rows, or one of the `probes` after them."""
    return lambda i: f"row {i}" if i < r else "a point near the rows"


def compare(form: ClosedForm | BentTrees | KnownSum, x: Array, answers: Array, r: int) -> tuple[float, float]:
    """How far what was read is off the model's answers at r rows and at `probes`, and how much of it these do not show.

    The first is the largest difference, relative to the size of outputs. The second is relative to how answers vary
    around a row: XGBoost adds one tree after another in float32, and where outputs are large, it loses small leaves.
    """
    read = form.values(x)
    if read.shape != answers.shape or not np.isfinite(read).all():
        return np.inf, np.inf
    off = 0.0
    for part in (slice(r), slice(r, None)):
        size = max(form.size(x[part]), float(np.abs(answers[part]).max()), np.finfo(float).tiny)
        off = max(off, float(np.abs(read[part] - answers[part]).max() / size))
    lost, seen = (_variation(each[r:]) for each in (read - answers, answers))
    share = np.divide(lost, seen, out=np.full_like(lost, np.inf), where=seen > 0)
    return off, float(share[lost > FLAT * form.spread].max(initial=0.0))


def _variation(outputs: Array) -> Array:
    """Standard deviations (rows, 2, k) around each row, of its far and of its near probes."""
    by_row = outputs.reshape(-1, PROBES // 2, 2, outputs.shape[1])
    return np.std(by_row - by_row[:, :1], axis=1)  # what is constant has 0, without rounding


def prove_known(known: KnownSum, problem: Problem) -> str:
    """Why what was read of a model's parts is not the model, "" if it is.

    It is asked at points on, next to and away from the thresholds of its trees, and at half as many with values
    missing, where it takes such; and not again while it is read as before.
    """
    if known.proofs.is_proved:
        return ""
    view = view_of(problem)
    points, x = threshold_points(known, view)
    if not len(points):
        return ""
    evaluation = Evaluation(view.model, automatic_batch_size(points.shape[1], np.dtype(np.float64)))
    free, some = problem.factor.free, slice(0, len(points), 2)
    holes = np.random.default_rng(1).random((len(points[some]), len(free))) < HOLES
    with_holes = points[some].copy(), x[some].copy()
    for each in with_holes:
        each[:, free] = np.where(holes, np.nan, each[:, free])
    for (asked, numbers), may_refuse in (((points, x), False), (with_holes, known.rest.takes_gaps)):
        try:
            answers = evaluation.values(asked, lambda _: "a point on a threshold")
        except ModelError as err:
            if may_refuse or asked is not points:
                continue
            return f"it cannot be asked at points on its thresholds: {err}"
        read = known.values(numbers)
        if read.shape != answers.shape:
            return f"what was read of it has {read.shape[1]} outputs and the model {answers.shape[1]}"
        size = max(known.size(numbers), float(np.abs(answers).max()), np.finfo(float).tiny)
        off = float(np.abs(read - answers).max() / size)
        if not off <= AGREES:
            return f"what was read of its parts does not reproduce its outputs (off by {off:.2g} of their size)"
    known.proofs.note()
    return ""


def probes(problem: Problem, x: Array | None = None) -> tuple[Array, Array]:
    """Points around some of the rows, as the model is asked and as numbers: near, and three times as far.

    The numbers are in the coordinates of `x` (r, D), which has the features first; of the rows as numbers by default.
    """
    some = np.linspace(0, len(problem.rows) - 1, min(len(problem.rows), PROBED_ROWS)).astype(np.intp)
    z = np.random.default_rng(0).standard_normal((len(some), PROBES, len(problem.factor.free)))
    z[:, ::2] *= 3
    steps = problem.factor.steps(z)
    points = []
    for rows in (problem.rows, problem.x if x is None else x):
        moved = np.repeat(rows[some][:, None, :], PROBES, axis=1)
        moved[:, :, problem.factor.free] += steps
        points.append(moved.reshape(-1, rows.shape[1]))
    near, x_near = points
    if isinstance(problem.model, ModelOnScales):
        moved_on = problem.model.curves.scales.columns
        x_near[:, moved_on] = problem.model.curves.points(near)[0][:, moved_on]
    return near, x_near

"""The one loop: draw, evaluate rows × draws, add to the sums, look, stop. Every sampled method goes through it.

Rows are an axis, never a loop: a model call holds many rows at many draws. Chunks of draws are the outer loop,
so draws that rows share are made once; blocks of rows are the inner one, so memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ._progress import Progress
from ._types import Array, Flags, Indices, Points
from ._version import versions
from .controlled import Controlled, Controls
from .designs import Chunk, Design, Layout, Stream
from .estimators import Batch, Estimate, Estimator, GroupedDraws
from .estimators.certified import Certifying
from .explanation import Explanation, Provenance, around, columns
from .groups import Groups
from .models import Evaluation, Target
from .models.evaluation import Where
from .models.links import probabilities
from .neighbourhood import Factor
from .subject import Subject
from .uncertainty.jackknife import standard_error
from .uncertainty.stopping import Stopping

STATE_BYTES = 2**28
"""Size of the sums held at once; more rows than fit are explained panel by panel."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """All decisions made, f(x) known, nothing drawn yet."""

    subject: Subject
    predictions: Array
    outputs: tuple[str, ...]
    evaluation: Evaluation
    method: Estimator
    design: Design
    stopping: Stopping
    is_shared: bool
    seed: int
    dtype: str
    controlled: Controlled | None = None
    """Set where `evaluation` asks for margins, and what is explained are probabilities"""

    @property
    def asked(self) -> int:
        """Model rows asked for each row besides draws: f(x), the repeatability check, and what a control needed."""
        return 2 + (0 if self.controlled is None else self.controlled.evaluations)

    @property
    def rows(self) -> Array:
        """(r, d) what is perturbed."""
        return self.subject.rows

    @property
    def factor(self) -> Factor:
        """Σ = L Lᵀ over the features that are perturbed."""
        return self.subject.factor

    @property
    def layout(self) -> Layout:
        """How draws are dealt to groups."""
        return self.design.layout(self.stopping.looks[0], len(self.factor.free))

    def stream(self, row: int | None) -> Stream:
        """The draws of one row, or those that all rows share."""
        return self.design.stream(len(self.factor.free), self.seed, row)


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """What is wanted of the model's answers at every draw: weights (r, t, k) on outputs, and perhaps controls."""

    weights: Array
    controls: Controls | None

    @classmethod
    def of(cls, job: Job, target: Target) -> _Question:
        """The scalars to explain, and the controls that go with them."""
        return cls(target.weights, None if job.controlled is None else job.controlled.controls(target))

    @property
    def t(self) -> int:
        """Targets."""
        return self.weights.shape[1]


def run(job: Job, target: Target, progress: Any) -> list[Explanation]:
    """One explanation per target: draw, evaluate, sum up, look, stop; panel by panel where rows are many."""
    r, t = target.weights.shape[:2]
    question = _Question.of(job, target)
    found = _Found(r * t, job.layout.groups, len(job.factor.free))
    with Progress(progress, r * job.stopping.looks[0 if len(job.stopping.looks) == 1 else 1]) as watch:
        for rows in _panels(job, question):
            _sample(job, question, rows, found, watch)
    predictions = target.of(job.predictions)
    return [
        _explanation(job, found, slice(i, None, t), predictions[:, i], target.names[i], target.row_names)
        for i in range(t)
    ]


def trace(job: Job, target: Target, counts: Sequence[int], progress: Any) -> Array:
    """Slopes (len(counts), r, f) after each number of draws, in one run: every draw goes on from those before."""
    r, t = target.weights.shape[:2]
    assert t == 1
    question = _Question.of(job, target)
    found = np.empty((len(counts), r, len(job.factor.free)))
    with Progress(progress, r * counts[-1]) as watch:
        for rows in _panels(job, question):
            state = job.method.start(len(rows), job.layout.groups, job.factor, is_shared=job.is_shared)
            streams = [job.stream(None)] if job.is_shared else [job.stream(int(row)) for row in rows]
            for i, between in enumerate(pairwise((0, *counts))):
                _advance(job, question, rows, state, streams, between, watch)
                found[i, rows] = job.method.finish(state, job.layout.sizes(counts[i]), job.factor).values
    return found


class _Found:
    """What has been found of each row and target, filled in as rows stop."""

    def __init__(self, rows: int, groups: int, d: int) -> None:
        self.n = np.zeros(rows, dtype=np.intp)
        self.values, self.standard_error, self.resolution = np.zeros((3, rows, d))
        self.pseudo = np.zeros((rows, groups, d))
        self.sizes = np.zeros((rows, groups))
        self.selected: Array | None = None
        self.smoothed, self.variance, self.radius = np.full((3, rows), np.nan)
        self.converged = np.zeros(rows, dtype=np.bool_)

    def record(self, where: Indices, rows: Indices, look: _Look) -> None:
        """Keep the numbers of `rows` of a look, at positions `where`."""
        estimate, groups = look.estimate, look.groups
        self.n[where] = look.n
        self.values[where] = look.values[rows]
        self.standard_error[where] = groups.standard_error[rows]
        self.resolution[where] = groups.resolution[rows]
        self.pseudo[where, : groups.pseudo.shape[1]] = groups.pseudo[rows]
        self.sizes[where, : groups.sizes.shape[1]] = groups.sizes[rows]
        if estimate.selected is not None:
            if self.selected is None:
                self.selected = np.full_like(self.values, np.nan)
            self.selected[where] = estimate.selected[rows]
        self.smoothed[where] = estimate.smoothed[rows]
        self.variance[where] = estimate.variance[rows]
        self.radius[where] = look.radius[rows]
        self.converged[where] = look.is_reached[rows]


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """The estimates after n draws, their error bounds, and which of them are good enough."""

    n: int
    estimate: Estimate
    groups: Groups
    values: Array
    radius: Array
    tolerance: Array
    is_reached: Flags


def _panels(job: Job, question: _Question) -> list[Indices]:
    """Rows in runs whose sums fit in STATE_BYTES; independent draws need their own Gram matrices."""
    d, g = len(job.factor.free), job.layout.groups
    r, t = question.weights.shape[:2]
    controls = 0 if question.controls is None else question.controls.count
    per_row = 8 * g * d * t * ((1 if job.is_shared else d + 1) + controls)
    per_row += 8 * (d + 1) ** 2 * t * isinstance(job.method, Certifying)  # the pilot's least squares
    size = max(1, STATE_BYTES // per_row)
    return [np.arange(start, min(r, start + size)) for start in range(0, r, size)]


def _sample(job: Job, question: _Question, rows: Indices, found: _Found, watch: Progress) -> None:
    """Draw from look to look; rows that have reached their tolerance leave, the others go on."""
    t = question.t
    state = job.method.start(len(rows) * t, job.layout.groups, job.factor, is_shared=job.is_shared)
    streams = [job.stream(None)] if job.is_shared else [job.stream(int(row)) for row in rows]
    drawn = 0
    if isinstance(job.method, Certifying):
        drawn = job.method.pilot(len(job.factor.free))
        _advance(job, question, rows, state, streams, (0, drawn), watch)
        job.method.end_pilot(state, drawn, job.stopping.looks[-1])
    for n in job.stopping.looks:
        _advance(job, question, rows, state, streams, (drawn, n), watch)
        drawn = n
        look = _look(job, state, n)
        is_last = n == job.stopping.looks[-1]
        done = look.is_reached.reshape(-1, t).all(axis=1) | is_last  # a row goes on until all its targets are there
        found.record(_with_targets(rows[done], t), _with_targets(np.flatnonzero(done), t), look)
        left = np.flatnonzero(~done)
        if not len(left):
            return
        watch.expect(_still_to_draw(job, look, left, t))
        state.keep(_with_targets(left, t))
        rows = rows[left]
        streams = streams if job.is_shared else [streams[row] for row in left]


def _advance(
    job: Job,
    question: _Question,
    rows: Indices,
    state: Any,
    streams: list[Stream],
    between: tuple[int, int],
    watch: Progress,
) -> None:
    """Add the draws from one count to another: the loop over chunks of draws and, inside, over blocks of rows."""
    t = question.t
    for chunk in job.layout.chunks(*between, job.evaluation.batch_size):
        shared = _draw(job, streams, chunk) if job.is_shared else None
        block = max(1, job.evaluation.batch_size // chunk.n)
        for start in range(0, len(rows), block):
            part = slice(start, min(len(rows), start + block))
            draws, steps = shared or _draw(job, streams[part], chunk)
            batch = _evaluate(job, question, rows[part], draws, steps)
            job.method.update(state, slice(part.start * t, part.stop * t), chunk.groups, batch)
            watch.advance((part.stop - part.start) * chunk.n)
        if shared:
            job.method.update_shared(state, chunk.groups, shared[0])


def _look(job: Job, state: Any, n: int) -> _Look:
    """Estimates after n draws, with the error bound that holds over all planned looks."""
    sizes = job.layout.sizes(n)
    estimate = job.method.finish(state, sizes, job.factor)
    miss, radius = job.stopping.miss, None
    if isinstance(job.method, Certifying):
        estimate, radius = job.method.certify(state, estimate, job.factor, n, miss)
    rows = len(estimate.values)
    groups = Groups(
        estimate.pseudo, np.broadcast_to(sizes, (rows, len(sizes))), estimate.resolution * job.design.is_net, None
    )
    values = estimate.values
    if radius is None:
        radius = np.linalg.norm(groups.half_width(values, job.factor, miss) * job.factor.std, axis=1)
    size = np.linalg.norm(values * job.factor.std, axis=1)
    stopping, spread = job.stopping, estimate.spread
    tolerance = stopping.tolerance(size, radius, spread)
    return _Look(n, estimate, groups, values, radius, tolerance, stopping.is_reached(n, size, radius, spread))


def _still_to_draw(job: Job, look: _Look, rows: Indices, t: int) -> int:
    """Draws that rows will probably still need, for the progress bar."""
    until = job.stopping.forecast(look.n, look.radius, look.tolerance).reshape(-1, t).max(axis=1)
    return int((until[rows] - look.n).sum())


def _with_targets(rows: Indices, t: int) -> Indices:
    """Positions of rows among rows × targets."""
    return (rows[:, None] * t + np.arange(t)).reshape(-1)


def _draw(job: Job, streams: list[Stream], chunk: Chunk) -> tuple[GroupedDraws, Points]:
    """The next draws of each stream, (ρ, g, b, d), and the steps (ρ, n, f) that they lead to."""
    z = np.stack([chunk.by_group(stream.take(chunk.n)) for stream in streams])
    draws = GroupedDraws(z, is_shared=job.is_shared)
    return draws, _steps(job, draws)


def _evaluate(job: Job, question: _Question, rows: Indices, draws: GroupedDraws, steps: Points) -> Batch:
    """The model's answers at rows × draws, for each target: values (r·t, g, b), perhaps controls or gradients."""
    _, g, b, d = draws.z.shape
    weights = question.weights[rows]
    r, t, k = weights.shape
    points, where = _points(job, rows, steps)
    if job.method.needs == "values":
        values = job.evaluation.values(points, where).reshape(r, g * b, -1)
        controls = None
        if question.controls is not None:
            controls = question.controls.beside(rows, values, draws)
            values = probabilities(values)
        scalars = (values @ weights.swapaxes(1, 2)).swapaxes(1, 2)
        return Batch(_repeated(draws, t), scalars.reshape(r * t, g, b), controls=controls)
    scalars = np.empty((r, t, g, b))
    gradients: Any = [None] * t
    for i in range(t):
        values, found = _with_gradients(job, points, weights[:, i], where)
        scalars[:, i] = (values.reshape(r, g * b, k) @ weights[:, i, :, None]).reshape(r, g, b)
        gradients[i] = found.reshape(r, 1, g, b, d)
    stacked = gradients[0] if t == 1 else np.concatenate(gradients, axis=1)
    return Batch(_repeated(draws, t), scalars.reshape(r * t, g, b), stacked.reshape(r * t, g, b, d))


def evaluate_outputs(job: Job, weights: Array, row: int, draws: GroupedDraws) -> tuple[Array, Array]:
    """All outputs (n, k) at the draws around one row, and the gradient (n, f) of their sum by weights (k,)."""
    points, where = _points(job, np.array([row]), _steps(job, draws))
    values, gradients = _with_gradients(job, points, weights[None], where)
    return values, gradients.astype(np.float64)


def _steps(job: Job, draws: GroupedDraws) -> Points:
    """The steps (ρ, n, f) that draws lead to, in the model's floating type."""
    _, g, b, d = draws.z.shape
    return job.factor.steps(draws.z.reshape(-1, g * b, d)).astype(job.dtype, copy=False)


def _points(job: Job, rows: Indices, steps: Points) -> tuple[Points, Where]:
    """The points (r·n, d) that steps lead to around rows, and how to name the row of each."""
    n = steps.shape[1]
    points = around(job.rows[rows], job.factor.free, steps, job.dtype).reshape(len(rows) * n, -1)
    return points, lambda position: f"a draw around row {rows[position // n]}"


def _with_gradients(job: Job, points: Points, weights: Array, where: Where) -> tuple[Array, Points]:
    """Outputs (n, k) and gradients (n, f), for weights (r, k) of the rows that points belong to."""
    repeated = np.repeat(weights.astype(job.dtype), len(points) // len(weights), axis=0)
    values, found = job.evaluation.values_and_gradients(points, repeated, where)
    free = job.factor.free
    return values, found if len(free) == found.shape[1] else found[:, free]


def _repeated(draws: GroupedDraws, t: int) -> GroupedDraws:
    """Draws of rows as draws of rows × targets."""
    return draws if draws.is_shared or t == 1 else GroupedDraws(np.repeat(draws.z, t, axis=0), is_shared=False)


def _explanation(
    job: Job,
    found: _Found,
    which: slice,
    prediction: Array,
    name: str,
    row_names: tuple[tuple[str, ...], ...],
) -> Explanation:
    """Numbers in the columns of the caller's table, with errors, names and provenance."""
    r, d = job.rows.shape
    free = job.factor.free
    n = found.n[which]
    errors = found.standard_error[which]
    groups = Groups(
        found.pseudo[which], found.sizes[which], found.resolution[which], None if job.is_shared else np.arange(r)
    )
    return Explanation(
        x=job.subject.x,
        values=columns(found.values[which], free, d),
        standard_error=columns(errors, free, d),
        prediction=prediction,
        smoothed=found.smoothed[which],
        fidelity=_fidelity(found.values[which], found.variance[which], errors, groups, job.factor),
        radius=found.radius[which],
        converged=found.converged[which],
        n_samples=n,
        n_evaluations=n + job.asked,
        degrees_of_freedom=groups.degrees_of_freedom,
        feature_names=job.subject.feature_names,
        output_name=name,
        row_outputs=tuple(names[which.start] for names in row_names),
        neighbourhood=job.subject.neighbourhood,
        provenance=Provenance(
            method=job.method,
            design=job.design.name,
            seed=job.seed,
            draws="shared" if job.is_shared else "independent",
            confidence=job.stopping.confidence,
            guarantee="certified" if isinstance(job.method, Certifying) else "approximate",
            assumes=job.method.assumes if isinstance(job.method, Certifying) else "",
            block=job.layout.block,
            dtype=job.dtype,
            batch_size=job.evaluation.batch_size,
            versions=versions(),
            backend=job.subject.backend,
        ),
        groups=groups,
        selected=None if found.selected is None else columns(found.selected[which], free, d),
    )


def _fidelity(values: Array, variance: Array, errors: Array, groups: Groups, factor: Factor) -> Array:
    """wᵀΣw / Var f in [0, 1]; what noise adds to wᵀΣw is taken off. A constant model is followed perfectly."""
    noise = factor.whiten(errors)
    if not factor.is_diagonal:
        noise = standard_error(factor.whiten(groups.pseudo), groups.sizes)
    explained = (factor.whiten(values) ** 2).sum(axis=1) - (noise**2).sum(axis=1)
    share = np.divide(explained, variance, out=np.where(np.isnan(variance), np.nan, 1.0), where=variance > 0)
    return np.clip(share, 0.0, 1.0)

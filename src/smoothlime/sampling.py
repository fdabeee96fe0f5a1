"""The one loop: draw, evaluate rows × draws, add to the sums, look, stop. Every sampled method goes through it.

Rows are an axis, never a loop: a model call holds many rows at many draws. Chunks of draws are the outer loop,
so draws that rows share are made once; blocks of rows are the inner one, so memory stays bounded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ._progress import Progress
from ._types import Array, Flags, Indices, Points
from ._version import versions
from .alignment import (
    DIRECTIONS,
    Turns,
    count_with_curves,
    leading_directions,
    pilot_count,
    pilot_size,
    quotients,
    with_curves,
    with_steps,
)
from .designs import Chunk, Design, Layout, Stream, pilot_draws
from .estimators import Batch, Estimate, Estimator, GroupedDraws
from .estimators.certified import Certifying
from .explanation import Explanation, Provenance, around, columns
from .groups import Groups
from .models import Evaluation, Target
from .models.evaluation import Where
from .neighbourhood import Factor
from .subject import Subject
from .uncertainty.jackknife import standard_error
from .uncertainty.stopping import Stopping

STATE_BYTES = 2**28
"""Size of the sums held at once; more rows than fit are explained panel by panel."""


@dataclass(frozen=True, eq=False)
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

    @property
    def rows(self) -> Array:
        """(r, d) what is perturbed."""
        return self.subject.rows

    @property
    def factor(self) -> Factor:
        """Σ = L Lᵀ over the features that are perturbed."""
        return self.subject.factor

    def layout(self, n: int) -> Layout:
        """How the first n draws are dealt to groups: alike at all looks, but where groups are parts of a sequence."""
        return self.design.layout(n if self.design.is_aligned else self.stopping.looks[0], len(self.factor.free))

    @property
    def groups(self) -> int:
        """Groups of draws."""
        return self.layout(self.stopping.looks[0]).groups

    def stream(self, row: int | None) -> Stream:
        """The draws of one row, or those that all rows share."""
        return self.design.stream(len(self.factor.free), self.seed, row)

    @property
    def pilot(self) -> int:
        """Points of each row that are evaluated before the draws."""
        return pilot_size(self.method.needs, len(self.factor.free), self.budget) if self.design.is_aligned else 0

    @property
    def budget(self) -> int | None:
        """Draws, where their number is fixed beforehand."""
        return self.stopping.looks[0] if len(self.stopping.looks) == 1 else None

    @property
    def fits_curves(self) -> bool:
        """Whether least squares fits curves along the first coordinates, besides the line."""
        return bool(getattr(self.method, "curves", False))

    @cached_property
    def seen(self) -> Factor:
        """The neighbourhood as the estimator sees it: where draws are turned, it fits the draws as they were."""
        if not self.design.is_aligned or self.method.needs == "gradients":
            return self.factor
        terms = len(self.factor.free)
        terms = count_with_curves(terms) if self.fits_curves else terms
        return Factor(terms, np.arange(terms), np.ones(terms))

    def steps(self, z: Any) -> Points:
        """The steps (..., f) that draws lead to, in the model's floating type."""
        return self.factor.steps(z).astype(self.dtype, copy=False)


def run(job: Job, target: Target, progress: Any) -> list[Explanation]:
    """One explanation per target: draw, evaluate, sum up, look, stop; panel by panel where rows are many."""
    r, t = target.weights.shape[:2]
    found = _Found(r * t, job.groups, len(job.factor.free))
    with Progress(progress, r * job.stopping.looks[0 if len(job.stopping.looks) == 1 else 1]) as watch:
        for rows in _panels(job, r, t):
            _sample(job, target, rows, found, watch)
    predictions = target.of(job.predictions)
    return [
        _explanation(job, found, slice(i, None, t), predictions[:, i], target.names[i], target.row_names)
        for i in range(t)
    ]


def trace(job: Job, target: Target, counts: Sequence[int], progress: Any) -> Array:
    """Slopes (len(counts), r, f) after each number of draws, in one run: every draw goes on from those before."""
    r, t = target.weights.shape[:2]
    assert t == 1
    assert not job.design.is_aligned  # its groups begin anew at each look
    layout = job.layout(counts[0])
    found = np.empty((len(counts), r, len(job.factor.free)))
    with Progress(progress, r * counts[-1]) as watch:
        for rows in _panels(job, r, t):
            state = job.method.start(len(rows), layout.groups, job.factor, is_shared=job.is_shared)
            source = _Source.of(job, target, rows)
            for i, between in enumerate(pairwise((0, *counts))):
                _advance(job, target, rows, state, source, layout.chunks(*between, job.evaluation.batch_size), watch)
                found[i, rows] = job.method.finish(state, layout.sizes(counts[i]), job.factor).values
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """Where the draws of some rows come from, and the steps that they lead to."""

    job: Job
    streams: list[Stream]
    directions: Array | None
    """(r, k, f) that draws are turned to, where they are"""
    turns: Turns | None
    shifts: Turns | None
    """From draws to what turning them adds to their steps, in the model's floating type"""

    @classmethod
    def of(cls, job: Job, target: Target, rows: Indices) -> _Source:
        """Draws from their beginning; a pilot is drawn first, where the design wants one."""
        streams = [job.stream(None)] if job.is_shared else [job.stream(int(row)) for row in rows]
        if not job.design.is_aligned:
            return cls(job, streams, None, None, None)
        directions = _pilot(job, target, rows)
        turns = Turns.onto(directions)
        return cls(job, streams, directions, turns, Turns(turns.inward.astype(job.dtype), job.steps(turns.outward)))

    def draw(self, chunk: Chunk, part: slice = slice(None)) -> GroupedDraws:
        """The next draws (ρ, g, b, d) of some of the streams."""
        z = np.stack([chunk.by_group(stream.take(chunk.n)) for stream in self.streams[part]])
        return GroupedDraws(z, is_shared=self.job.is_shared)

    def steps(self, draws: GroupedDraws, part: slice) -> Points:
        """The steps (ρ, n, f) that draws lead to around some of the rows."""
        steps = draws.steps(self.job.steps)
        if self.shifts is None:
            return steps
        return steps + self.shifts.rows(part).shift(draws.flat.astype(self.job.dtype, copy=False))

    def seen(self, draws: GroupedDraws) -> GroupedDraws:
        """Draws as the estimator sees them."""
        return GroupedDraws(with_curves(draws.z), is_shared=draws.is_shared) if self.job.fits_curves else draws

    def turned(self, estimate: Estimate, t: int) -> Estimate:
        """Slopes along the features, where an estimator has seen draws as they were before they were turned."""
        if self.turns is None or self.job.method.needs == "gradients":
            return estimate
        factor = self.job.factor
        d = len(factor.free)
        turns = self.turns.rows(np.repeat(np.arange(len(self.turns.inward)), t))
        return dataclasses.replace(
            estimate,
            values=factor.unwhiten(turns.of(estimate.values[:, None, :d])[:, 0]),
            pseudo=factor.unwhiten(turns.of(estimate.pseudo[:, :, :d])),
            resolution=estimate.resolution[:, :1] * factor.unwhitened_scale,
        )

    def rows(self, kept: Indices) -> _Source:
        """Draws of some of the rows, as far as they are."""
        streams = self.streams if self.job.is_shared else [self.streams[row] for row in kept]
        turns, shifts = (None if each is None else each.rows(kept) for each in (self.turns, self.shifts))
        return _Source(self.job, streams, self.directions, turns, shifts)


def _pilot(job: Job, target: Target, rows: Indices) -> Array:
    """Directions (r, k, f), in units of draws, that the model varies along most around each row."""
    d, t = len(job.factor.free), target.weights.shape[1]
    has_gradients = job.method.needs == "gradients"
    count = pilot_count(job.method.needs, d, job.budget)
    found = []
    block = max(1, job.evaluation.batch_size // job.pilot)
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        keys = [None] if job.is_shared else part
        z = np.stack([pilot_draws(count, d, job.seed, None if key is None else int(key)) for key in keys])
        if not has_gradients:
            z = np.stack([with_steps(each) for each in z])
        draws = GroupedDraws(z[:, None], is_shared=job.is_shared)
        batch = _evaluate(job, target.weights[part], part, draws, job.steps(z))
        if has_gradients:
            gradients = job.factor.whiten(batch.gradients.astype(np.float64)).reshape(len(part), t, count, d)
        else:
            gradients = quotients(batch.values.reshape(len(part), t, -1), d)
        # targets share their draws: each has the same say in where these are turned
        size = np.linalg.norm(gradients, axis=(2, 3), keepdims=True)
        gradients = np.divide(gradients, size, out=np.zeros_like(gradients), where=size > 0)
        found.append(leading_directions(gradients.reshape(len(part), t * count, d)))
    return np.concatenate(found)


class _Found:
    """What has been found of each row and target, filled in as rows stop."""

    def __init__(self, rows: int, groups: int, d: int) -> None:
        self.n = np.zeros(rows, dtype=np.intp)
        self.values, self.standard_error, self.resolution = np.zeros((3, rows, d))
        self.pseudo = np.zeros((rows, groups, d))
        self.sizes = np.zeros((rows, groups))
        self.directions: Array | None = None
        self.selected: Array | None = None
        self.smoothed, self.variance, self.radius = np.full((3, rows), np.nan)
        self.converged = np.zeros(rows, dtype=np.bool_)

    def turn(self, where: Indices, directions: Array) -> None:
        """Keep the directions (r, k, f) that draws are turned to."""
        if self.directions is None:
            self.directions = np.zeros((len(self.n), *directions.shape[1:]))
        self.directions[where] = directions

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


def _panels(job: Job, r: int, t: int) -> list[Indices]:
    """Rows in runs whose sums fit in STATE_BYTES; independent draws need their own Gram matrices."""
    d, g = len(job.seen.free), job.groups
    per_row = 8 * g * d * t * (1 if job.is_shared else d + 1)
    per_row += 8 * 5 * DIRECTIONS * d * job.design.is_aligned  # directions, turns and shifts
    per_row += 8 * (d + 1) ** 2 * t * isinstance(job.method, Certifying)  # the pilot's least squares
    size = max(1, STATE_BYTES // per_row)
    return [np.arange(start, min(r, start + size)) for start in range(0, r, size)]


def _sample(job: Job, target: Target, rows: Indices, found: _Found, watch: Progress) -> None:
    """Draw from look to look; rows that have reached their tolerance leave, the others go on."""
    t = target.weights.shape[1]
    state = job.method.start(len(rows) * t, job.groups, job.seen, is_shared=job.is_shared)
    source = _Source.of(job, target, rows)
    if source.directions is not None:
        found.turn(_with_targets(rows, t), np.repeat(source.directions, t, axis=0))
    drawn, size = 0, job.evaluation.batch_size
    if isinstance(job.method, Certifying):
        drawn = job.method.pilot(len(job.factor.free))
        _advance(job, target, rows, state, source, job.layout(drawn).chunks(0, drawn, size), watch)
        job.method.end_pilot(state, drawn, job.stopping.looks[-1])
    for n in job.stopping.looks:
        if drawn and job.design.is_aligned:
            state.merge()
        _advance(job, target, rows, state, source, job.layout(n).chunks(drawn, n, job.evaluation.batch_size), watch)
        drawn = n
        look = _look(job, state, n, source, t)
        is_last = n == job.stopping.looks[-1]
        done = look.is_reached.reshape(-1, t).all(axis=1) | is_last  # a row goes on until all its targets are there
        found.record(_with_targets(rows[done], t), _with_targets(np.flatnonzero(done), t), look)
        left = np.flatnonzero(~done)
        if not len(left):
            return
        watch.expect(_still_to_draw(job, look, left, t))
        state.keep(_with_targets(left, t))
        rows = rows[left]
        source = source.rows(left)


def _advance(
    job: Job,
    target: Target,
    rows: Indices,
    state: Any,
    source: _Source,
    chunks: Iterator[Chunk],
    watch: Progress,
) -> None:
    """Add some draws: the loop over chunks of draws and, inside, over blocks of rows."""
    t = target.weights.shape[1]
    for chunk in chunks:
        shared = source.draw(chunk) if job.is_shared else None
        shared_seen = shared and source.seen(shared)
        block = max(1, job.evaluation.batch_size // chunk.n)
        for start in range(0, len(rows), block):
            part = slice(start, min(len(rows), start + block))
            draws = shared or source.draw(chunk, part)
            seen = shared_seen or source.seen(draws)
            batch = _evaluate(job, target.weights[rows[part]], rows[part], seen, source.steps(draws, part))
            job.method.update(state, slice(part.start * t, part.stop * t), chunk.groups, batch)
            watch.advance((part.stop - part.start) * chunk.n)
        if shared_seen:
            job.method.update_shared(state, chunk.groups, shared_seen)


def _look(job: Job, state: Any, n: int, source: _Source, t: int) -> _Look:
    """Estimates after n draws, with the error bound that holds over all planned looks."""
    sizes = job.layout(n).sizes(n)
    estimate = source.turned(job.method.finish(state, sizes, job.seen), t)
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


def _evaluate(job: Job, weights: Array, rows: Indices, draws: GroupedDraws, steps: Points) -> Batch:
    """The model's answers at rows × draws, for each target: values (r·t, g, b) and perhaps gradients."""
    g, b = draws.z.shape[1:3]
    r, t, k = weights.shape
    points, where = _points(job, rows, steps)
    if job.method.needs == "values":
        values = job.evaluation.values(points, where).reshape(r, g * b, k)
        scalars = (values @ weights.swapaxes(1, 2)).swapaxes(1, 2)
        return Batch(_repeated(draws, t), scalars.reshape(r * t, g, b))
    scalars = np.empty((r, t, g, b))
    gradients: Any = [None] * t
    for i in range(t):
        values, found = _with_gradients(job, points, weights[:, i], where)
        scalars[:, i] = (values.reshape(r, g * b, k) @ weights[:, i, :, None]).reshape(r, g, b)
        gradients[i] = found.reshape(r, 1, g, b, -1)
    stacked = gradients[0] if t == 1 else np.concatenate(gradients, axis=1)
    return Batch(_repeated(draws, t), scalars.reshape(r * t, g, b), stacked.reshape(r * t, g, b, -1))


def evaluate_outputs(job: Job, weights: Array, row: int, draws: GroupedDraws) -> tuple[Array, Array]:
    """All outputs (n, k) at the draws around one row, and the gradient (n, f) of their sum by weights (k,)."""
    points, where = _points(job, np.array([row]), job.steps(draws.flat))
    values, gradients = _with_gradients(job, points, weights[None], where)
    return values, gradients.astype(np.float64)


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
        n_evaluations=n + 2 + job.pilot,
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
            block=1 if job.design.is_aligned else job.layout(job.stopping.looks[0]).block,
            dtype=job.dtype,
            batch_size=job.evaluation.batch_size,
            versions=versions(),
            backend=job.subject.backend,
        ),
        groups=groups,
        selected=None if found.selected is None else columns(found.selected[which], free, d),
        directions=None if found.directions is None else found.directions[which],
    )


def _fidelity(values: Array, variance: Array, errors: Array, groups: Groups, factor: Factor) -> Array:
    """wᵀΣw / Var f in [0, 1]; what noise adds to wᵀΣw is taken off. A constant model is followed perfectly."""
    noise = factor.whiten(errors)
    if not factor.is_diagonal:
        noise = standard_error(factor.whiten(groups.pseudo), groups.sizes)
    explained = (factor.whiten(values) ** 2).sum(axis=1) - (noise**2).sum(axis=1)
    share = np.divide(explained, variance, out=np.where(np.isnan(variance), np.nan, 1.0), where=variance > 0)
    return np.clip(share, 0.0, 1.0)

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

from ._parallel import in_parts, threads
from ._progress import Progress
from ._types import Array, Indices, Points
from ._version import versions
from .designs import Chunk, Design, Layout, Stream
from .estimators import Batch, Estimator, GroupedDraws
from .estimators.certified import Certifying
from .explanation import Explanation, Provenance, around, columns
from .gradient_path import Summed, add_draws
from .groups import Groups
from .looks import Found, Look
from .models import Evaluation, Target
from .models.evaluation import Where
from .neighbourhood import Factor
from .subject import Subject
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

    def streams(self, rows: Indices) -> list[Stream]:
        """One stream for all rows, or one for each."""
        return [self.stream(None)] if self.is_shared else [self.stream(int(row)) for row in rows]


def run(job: Job, target: Target, progress: Any) -> list[Explanation]:
    """One explanation per target: draw, evaluate, sum up, look, stop; panel by panel where rows are many."""
    r, t = target.weights.shape[:2]
    found = Found(r * t, job.layout.groups, len(job.factor.free))
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
    found = np.empty((len(counts), r, len(job.factor.free)))
    with Progress(progress, r * counts[-1]) as watch:
        for rows in _panels(job, r, t):
            state, streams = _begin(job, target, rows), job.streams(rows)
            for i, between in enumerate(pairwise((0, *counts))):
                _advance(job, target, rows, state, streams, between, watch)
                for part in _parts(job, target, rows, state, between):
                    estimate = job.method.finish(_on_host(job, state, part), job.layout.sizes(counts[i]), job.factor)
                    found[i, rows[part]] = estimate.values
    return found


def _panels(job: Job, r: int, t: int) -> list[Indices]:
    """Rows in runs whose sums fit in STATE_BYTES; independent draws need their own Gram matrices."""
    d, g = len(job.factor.free), job.layout.groups
    per_row = 8 * g * d * t * (1 if job.is_shared else d + 1)
    per_row += 8 * (d + 1) ** 2 * t * isinstance(job.method, Certifying)  # the pilot's least squares
    size = max(1, STATE_BYTES // per_row)
    return [np.arange(start, min(r, start + size)) for start in range(0, r, size)]


def _sample(job: Job, target: Target, rows: Indices, found: Found, watch: Progress) -> None:
    """Draw from look to look; rows that have reached their tolerance leave, the others go on."""
    t = target.weights.shape[1]
    state, streams = _begin(job, target, rows), job.streams(rows)
    drawn = 0
    if isinstance(job.method, Certifying):
        drawn = job.method.pilot(len(job.factor.free))
        _advance(job, target, rows, state, streams, (0, drawn), watch)
        job.method.end_pilot(state, drawn, job.stopping.looks[-1])
    for n in job.stopping.looks:
        _advance(job, target, rows, state, streams, (drawn, n), watch)
        left, still_to_draw = _look_at_all(job, target, rows, state, (drawn, n), found)
        if not len(left):
            return
        drawn = n
        watch.expect(still_to_draw)
        state.keep((left[:, None] * t + np.arange(t)).reshape(-1))
        rows = rows[left]
        streams = streams if job.is_shared else [streams[row] for row in left]


def _look_at_all(
    job: Job, target: Target, rows: Indices, state: Any, between: tuple[int, int], found: Found
) -> tuple[Indices, int]:
    """Look at all rows and record those that are done; positions of the others, and draws that they probably need."""
    parts = _parts(job, target, rows, state, between)

    def look_at(some: slice) -> list[tuple[Indices, int]]:
        looks = ((part, _look(job, _on_host(job, state, part), between[1])) for part in parts[some])
        return [_settle(job, rows, look, part, found) for part, look in looks]

    size = len(rows) * target.weights.shape[1] * job.layout.groups * len(job.factor.free)
    by_thread = in_parts(look_at, len(parts), min(len(parts), threads(size)))
    settled = [each for some in by_thread for each in some]
    return np.concatenate([left for left, _ in settled]), sum(more for _, more in settled)


def _settle(job: Job, rows: Indices, look: Look, part: slice, found: Found) -> tuple[Indices, int]:
    """The same for the rows of one part, once looked at."""
    t = len(look.values) // (part.stop - part.start)
    done = look.is_reached.reshape(-1, t).all(axis=1)  # a row goes on until all its targets are there
    done |= look.n == job.stopping.looks[-1]
    left = np.flatnonzero(~done)
    found.record(_with_targets(rows[part][done], t), _with_targets(np.flatnonzero(done), t), look)
    return part.start + left, _still_to_draw(job, look, left, t)


def _begin(job: Job, target: Target, rows: Indices) -> Any:
    """Empty sums, kept by the model where it can and where sums are all the method needs."""
    t, groups = target.weights.shape[1], job.layout.groups
    gradient_sums = getattr(job.evaluation.model, "gradient_sums", None)  # of a model that is SumsGradients
    if gradient_sums is not None and hasattr(job.method, "gather"):
        # second moments are a floor for the errors of nets, and of no other design
        x, is_net = job.rows[rows].astype(job.dtype), job.design.is_net
        sums = gradient_sums(x, job.factor.free, target.weights[rows], groups, moments=is_net)
        return Summed(sums, job.factor, t)
    return job.method.start(len(rows) * t, groups, job.factor, is_shared=job.is_shared)


def _advance(
    job: Job,
    target: Target,
    rows: Indices,
    state: Any,
    streams: list[Stream],
    between: tuple[int, int],
    watch: Progress,
) -> None:
    """Add the draws from one count to another: the loop over chunks of draws and, inside, over blocks of rows."""
    t = target.weights.shape[1]
    chunks = job.layout.chunks(*between, job.evaluation.batch_size)
    if isinstance(state, Summed):
        return add_draws(state, job.evaluation, chunks, streams, len(rows), watch, is_shared=job.is_shared)
    for chunk in chunks:
        shared = _draw(job, streams, chunk) if job.is_shared else None
        block = max(1, job.evaluation.batch_size // chunk.n)
        for start in range(0, len(rows), block):
            part = slice(start, min(len(rows), start + block))
            draws, steps = shared or _draw(job, streams[part], chunk)
            batch = _evaluate(job, target.weights[rows[part]], rows[part], draws, steps)
            job.method.update(state, slice(part.start * t, part.stop * t), chunk.groups, batch)
            watch.advance((part.stop - part.start) * chunk.n)
        if shared:
            job.method.update_shared(state, chunk.groups, shared[0])


def _parts(job: Job, target: Target, rows: Indices, state: Any, between: tuple[int, int]) -> list[slice]:
    """Rows to be looked at together; sums of the model that are not finite become an error that names the row."""
    if not isinstance(state, Summed):
        return [slice(0, len(rows))]
    if not state.sums.is_finite():
        _ask_again(job, target, rows, between)
    return state.parts(len(rows), job.layout.groups)


def _on_host(job: Job, state: Any, part: slice) -> Any:
    """The state of some rows as the method knows it: as it is, or fetched from the model."""
    method: Any = job.method  # one that is FromSums, else sums would not have been asked for
    return method.gather(state.sums.totals(part)) if isinstance(state, Summed) else state


def _ask_again(job: Job, target: Target, rows: Indices, between: tuple[int, int]) -> None:
    """Repeat the draws between two counts in full view: every output and gradient is looked at as it comes."""
    state = job.method.start(target.weights[rows, :, 0].size, job.layout.groups, job.factor, is_shared=job.is_shared)
    streams = job.streams(rows)
    for chunk in job.layout.chunks(0, between[0], job.evaluation.batch_size):
        for stream in streams:
            stream.take(chunk.n)
    _advance(job, target, rows, state, streams, between, Progress(None, 0))


def _look(job: Job, state: Any, n: int) -> Look:
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
    return Look(n, estimate, groups, values, radius, tolerance, stopping.is_reached(n, size, radius, spread))


def _still_to_draw(job: Job, look: Look, rows: Indices, t: int) -> int:
    """Draws that rows will probably still need, for the progress bar."""
    until = job.stopping.forecast(look.n, look.radius, look.tolerance).reshape(-1, t).max(axis=1)
    return int((until[rows] - look.n).sum())


def _with_targets(rows: Indices, t: int) -> Any:
    """Positions of rows among rows × targets; as a slice where they follow each other, which is copied faster."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:  # they are in order
        return slice(int(rows[0]) * t, (int(rows[-1]) + 1) * t)
    return (rows[:, None] * t + np.arange(t)).reshape(-1)


def _draw(job: Job, streams: list[Stream], chunk: Chunk) -> tuple[GroupedDraws, Points]:
    """The next draws of each stream, (ρ, g, b, d), and the steps (ρ, n, f) that they lead to."""
    z = np.stack([chunk.by_group(stream.take(chunk.n)) for stream in streams])
    draws = GroupedDraws(z, is_shared=job.is_shared)
    return draws, _steps(job, draws)


def _evaluate(job: Job, weights: Array, rows: Indices, draws: GroupedDraws, steps: Points) -> Batch:
    """The model's answers at rows × draws, for each target: values (r·t, g, b) and perhaps gradients."""
    _, g, b, d = draws.z.shape
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
    found: Found,
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
    # one layout in memory whatever the number of targets: sums over it round alike, also when it is saved and loaded
    pseudo = np.ascontiguousarray(found.pseudo[which])
    keys = None if job.is_shared else np.arange(r)
    groups = Groups(pseudo, found.sizes[which], found.resolution[which], keys)
    return Explanation(
        x=job.subject.x,
        values=columns(found.values[which], free, d),
        standard_error=columns(errors, free, d),
        prediction=prediction,
        smoothed=found.smoothed[which],
        fidelity=groups.fidelity(found.values[which], found.variance[which], errors, job.factor),
        radius=found.radius[which],
        converged=found.converged[which],
        n_samples=n,
        n_evaluations=n + 2,
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

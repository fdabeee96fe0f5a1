"""The one loop: draw a chunk, evaluate rows × draws, add to the sums, finish. Every sampled method goes through it.

Rows are an axis, never a loop: a model call holds many rows at many draws. Chunks of draws are the outer loop,
so draws that rows share are made once; blocks of rows are the inner one, so memory stays bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._progress import Progress
from ._types import Array, Indices
from ._version import __version__
from .designs import Chunk, Design, Layout, Stream
from .estimators import Batch, Estimate, Estimator, GroupedDraws
from .explanation import Explanation, Groups, Provenance, around
from .models import Evaluation, Target
from .neighbourhood import Factor, Neighbourhood
from .uncertainty.jackknife import standard_error

STATE_BYTES = 2**28
"""Size of the sums held at once; more rows than fit are explained panel by panel."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """All decisions made, f(x) known, nothing drawn yet."""

    rows: Array
    predictions: Array
    outputs: tuple[str, ...]
    feature_names: tuple[str, ...]
    neighbourhood: Neighbourhood
    factor: Factor
    evaluation: Evaluation
    method: Estimator
    design: Design
    n: int
    is_shared: bool
    seed: int
    confidence: float
    dtype: str

    @property
    def layout(self) -> Layout:
        """How draws are dealt to groups."""
        return self.design.layout(self.n, len(self.factor.free))

    def stream(self, row: int | None) -> Stream:
        """The draws of one row, or those that all rows share."""
        return self.design.stream(len(self.factor.free), self.seed, row)


def run(job: Job, target: Target, progress: Any) -> list[Explanation]:
    """One explanation per target: draw, evaluate, sum up, finish; panel by panel where rows are many."""
    r, t = target.weights.shape[:2]
    panels = []
    with Progress(progress, r * job.n) as watch:
        for rows in _panels(job, r, t):
            panels.append(_estimate(job, target, rows, watch))
    joined = [np.concatenate(parts) for parts in zip(*panels, strict=True)]
    values, pseudo, resolution, smoothed, variance = (part.reshape(r, t, *part.shape[1:]) for part in joined)
    predictions = target.of(job.predictions)
    return [
        _explanation(
            job,
            Estimate(values[:, i], pseudo[:, i], resolution[:, i], smoothed[:, i], variance[:, i]),
            predictions[:, i],
            target.names[i],
            tuple(names[i] for names in target.row_names),
        )
        for i in range(t)
    ]


def _panels(job: Job, r: int, t: int) -> list[Indices]:
    """Rows in runs whose sums fit in STATE_BYTES; independent draws need their own Gram matrices."""
    d, g = len(job.factor.free), job.layout.groups
    per_row = 8 * g * d * t * (1 if job.is_shared else d + 1)
    size = max(1, STATE_BYTES // per_row)
    return [np.arange(start, min(r, start + size)) for start in range(0, r, size)]


def _estimate(job: Job, target: Target, rows: Indices, watch: Progress) -> tuple[Array, ...]:
    """Estimates for some rows: the loop over chunks of draws and, inside, over blocks of rows."""
    t = target.weights.shape[1]
    layout = job.layout
    sizes = layout.sizes(job.n)
    state = job.method.start(len(rows) * t, sizes, job.factor, is_shared=job.is_shared)
    streams = [job.stream(None)] if job.is_shared else [job.stream(int(row)) for row in rows]
    for chunk in layout.chunks(0, job.n, job.evaluation.batch_size):
        shared = GroupedDraws(_draw(streams, chunk), is_shared=True) if job.is_shared else None
        block = max(1, job.evaluation.batch_size // chunk.n)
        for start in range(0, len(rows), block):
            part = slice(start, min(len(rows), start + block))
            drawn = shared or GroupedDraws(_draw(streams[part], chunk), is_shared=False)
            batch = _evaluate(job, target.weights[rows[part]], rows[part], drawn)
            job.method.update(state, slice(part.start * t, part.stop * t), chunk.groups, batch)
            watch.advance((part.stop - part.start) * chunk.n)
        if shared:
            job.method.update_shared(state, chunk.groups, shared)
    done = job.method.finish(state, sizes, job.factor)
    return done.values, done.pseudo, done.resolution, done.smoothed, done.variance


def _draw(streams: list[Stream], chunk: Chunk) -> Array:
    """The next draws of each stream, (ρ, g, b, d)."""
    return np.stack([chunk.by_group(stream.take(chunk.n)) for stream in streams])


def _evaluate(job: Job, weights: Array, rows: Indices, draws: GroupedDraws) -> Batch:
    """The model's answers at rows × draws, for each target: values (r·t, g, b) and perhaps gradients."""
    _, g, b, d = draws.z.shape
    r, t, k = weights.shape
    steps = job.factor.steps(draws.z.reshape(-1, g * b, d))
    points = around(job.rows[rows], job.factor.free, steps, job.dtype).reshape(r * g * b, -1)

    def where(position: int) -> str:
        return f"a draw around row {rows[position // (g * b)]}"

    if job.method.needs == "values":
        values = job.evaluation.values(points, where).reshape(r, g * b, k)
        scalars = (values @ weights.swapaxes(1, 2)).swapaxes(1, 2)
        return Batch(_repeated(draws, t), scalars.reshape(r * t, g, b))
    scalars = np.empty((r, t, g, b))
    gradients: Any = [None] * t
    for i in range(t):
        repeated = np.repeat(weights[:, i].astype(job.dtype), g * b, axis=0)
        values, found = job.evaluation.values_and_gradients(points, repeated, where)
        scalars[:, i] = (values.reshape(r, g * b, k) @ weights[:, i, :, None]).reshape(r, g, b)
        gradients[i] = (found if d == found.shape[1] else found[:, job.factor.free]).reshape(r, 1, g, b, d)
    stacked = gradients[0] if t == 1 else np.concatenate(gradients, axis=1)
    return Batch(_repeated(draws, t), scalars.reshape(r * t, g, b), stacked.reshape(r * t, g, b, d))


def _repeated(draws: GroupedDraws, t: int) -> GroupedDraws:
    """Draws of rows as draws of rows × targets."""
    return draws if draws.is_shared or t == 1 else GroupedDraws(np.repeat(draws.z, t, axis=0), is_shared=False)


def _explanation(job: Job, estimate: Estimate, prediction: Array, name: str, row_names: tuple[str, ...]) -> Explanation:
    """Numbers in the columns of the caller's table, with errors, names and provenance."""
    r, d = job.rows.shape
    free = job.factor.free
    sizes = np.broadcast_to(job.layout.sizes(job.n), (r, job.layout.groups))
    groups = Groups(
        pseudo=_columns(estimate.pseudo, free, d),
        sizes=sizes,
        resolution=_columns(estimate.resolution * job.design.is_net, free, d),
        row_keys=None if job.is_shared else np.arange(r),
    )
    errors = groups.standard_error
    return Explanation(
        x=job.rows,
        values=_columns(estimate.values, free, d),
        standard_error=errors,
        prediction=prediction,
        smoothed=estimate.smoothed,
        fidelity=_fidelity(estimate, errors[:, free], sizes, job.factor),
        n_samples=np.full(r, job.n),
        n_evaluations=np.full(r, job.n + 2),
        degrees_of_freedom=np.full(r, job.layout.groups - 1.0),
        feature_names=job.feature_names,
        output_name=name,
        row_outputs=row_names,
        neighbourhood=job.neighbourhood,
        provenance=Provenance(
            method=job.method,
            design=job.design.name,
            seed=job.seed,
            draws="shared" if job.is_shared else "independent",
            confidence=job.confidence,
            dtype=job.dtype,
            batch_size=job.evaluation.batch_size,
            smoothlime=__version__,
        ),
        groups=groups,
    )


def _columns(free_columns: Array, free: Indices, d: int) -> Array:
    """Columns of the perturbed features among all d; NaN for those held fixed."""
    if len(free) == d:
        return free_columns
    columns = np.full((*free_columns.shape[:-1], d), np.nan)
    columns[..., free] = free_columns
    return columns


def _fidelity(estimate: Estimate, errors: Array, sizes: Array, factor: Factor) -> Array:
    """wᵀΣw / Var f in [0, 1]; what noise adds to wᵀΣw is taken off. A constant model is followed perfectly."""
    noise = factor.whiten(errors) if factor.is_diagonal else standard_error(factor.whiten(estimate.pseudo), sizes)
    explained = (factor.whiten(estimate.values) ** 2).sum(axis=1) - (noise**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(estimate.variance == 0, 1.0, explained / estimate.variance)
    return np.clip(share, 0.0, 1.0)

"""The one loop: draw, evaluate rows × draws, add to the sums, look, stop. Every sampled method goes through it.

Rows are an axis, never a loop: a model call holds many rows at many draws. Chunks of draws are the outer loop,
so draws that rows share are made once; blocks of rows are the inner one, so memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .._core.parallel import in_parts, threads
from .._core.progress import Progress
from .._core.types import Array, Indices
from .._core.version import versions
from .._core.xp import on_host
from ..device import sums_for
from ..device.protocol import GradientSums
from ..draws.designs import Chunk
from ..draws.rotation import DIRECTIONS
from ..estimators.certified import CertifiedSmoothGrad, CertifiedValues, Certifying
from ..estimators.least_squares import Beyond
from ..models import Target
from ..models.protocol import is_out_of_memory
from ..result.explanation import Explanation, Provenance, columns
from ..uncertainty.groups import Groups
from .device_loop import Summed, add_draws, empty_sums
from .jumps import refuse_false_gradients, warn_of_jumps
from .plan import Job, Question, evaluate
from .record import Found, Look
from .sampler import Source

STATE_BYTES = 2**28
"""Size of the sums held at once; more rows than fit are explained panel by panel."""


def run(job: Job, target: Target, progress: Any, *, tells_jumps: bool = False) -> list[Explanation]:
    """One explanation per target: draw, evaluate, sum up, look, stop; panel by panel where rows are many."""
    r, t = target.weights.shape[:2]
    question = Question.of(job, target)
    found = Found(r * t, job.groups, len(job.factor.free))
    with Progress(progress, r * job.stopping.looks[:2][-1]) as watch:  # a guess, until the first look knows better
        for rows in _panels(job, question):
            _sample(job, question, rows, found, watch)
    predictions = target.of(job.predictions)
    if isinstance(job.method, CertifiedValues):
        job.method.check(predictions)
    explanations = [
        _explanation(job, found, slice(i, None, t), predictions[:, i], target.names[i], target.row_names)
        for i in range(t)
    ]
    if isinstance(job.method, CertifiedSmoothGrad):
        refuse_false_gradients(job, target, explanations)
    if tells_jumps:
        warn_of_jumps(job, target, explanations, found.torn)
    return explanations


def trace(job: Job, target: Target, counts: Sequence[int], progress: Any) -> Array:
    """Slopes (len(counts), r, f) after each number of draws, in one run: every draw goes on from those before."""
    r, t = target.weights.shape[:2]
    assert t == 1
    assert not job.design.is_aligned  # its groups begin anew at each look
    question = Question.of(job, target)
    found = np.empty((len(counts), r, len(job.factor.free)))
    with Progress(progress, r * counts[-1]) as watch:
        for rows in _panels(job, question):
            state, source = _begin(job, question, rows), Source.of(job, question, rows)
            for i, between in enumerate(pairwise((0, *counts))):
                _advance(job, question, rows, state, source, between, watch)
                for part in _parts(job, question, rows, state, source, between):
                    found[i, rows[part]] = on_host(job.finish(_on_host(job, state, part), counts[i]).values)
    return found


def _panels(job: Job, question: Question) -> list[Indices]:
    """Rows in runs whose sums fit in STATE_BYTES; independent draws need their own Gram matrices."""
    d, g = len(job.seen.free), job.groups
    r, t = question.weights.shape[:2]
    controls = 0 if question.controls is None else question.controls.count
    per_row = 8 * g * d * t * ((1 if job.is_shared else d + 1) + controls)
    per_row += 8 * 5 * DIRECTIONS * d * job.design.is_aligned  # directions and turns
    per_row += 8 * g * d * t * job.combines_values
    per_row += 8 * (d + 1) ** 2 * t * isinstance(job.method, Certifying)  # the pilot's least squares
    held = getattr(job.evaluation.model, "held_bytes", None) if job.needs_only_sums else None
    size = max(1, (held or STATE_BYTES) // per_row)
    return [np.arange(start, min(r, start + size)) for start in range(0, r, size)]


def _sample(job: Job, question: Question, rows: Indices, found: Found, watch: Progress) -> None:
    """Draw from look to look; rows that have reached their tolerance leave, the others go on."""
    t = question.t
    state, source = _begin(job, question, rows), Source.of(job, question, rows)
    if source.line is not None and job.may_follow_tails:
        state.beyond = Beyond(source.line, job.groups, of_pairs=job.design.is_paired)
    if source.directions is not None:
        found.turn(_with_targets(rows, t), np.repeat(source.directions, t, axis=0))
    drawn = 0
    if isinstance(job.method, Certifying):
        drawn = job.method.pilot(len(job.factor.free))
        _advance(job, question, rows, state, source, (0, drawn), watch)
        job.method.end_pilot(state, drawn, job.stopping.looks[-1])
    for n in job.stopping.looks:
        if drawn and job.design.is_aligned:
            state.merge()
        _advance(job, question, rows, state, source, (drawn, n), watch)
        left, still_to_draw = _look_at_all(job, question, rows, state, source, (drawn, n), found)
        if not len(left):
            return
        drawn = n
        watch.expect(still_to_draw)
        state.keep(_each_target(left, t))
        rows, source = rows[left], source.rows(left)


def _look_at_all(
    job: Job, question: Question, rows: Indices, state: Any, source: Source, between: tuple[int, int], found: Found
) -> tuple[Indices, int]:
    """Look at all rows and record those that are done; positions of the others, and draws that they probably need."""
    parts = _parts(job, question, rows, state, source, between)
    t = question.t

    def look_at(some: slice) -> list[tuple[Indices, int]]:
        settled = []
        for part in parts[some]:
            theirs = source if len(parts) == 1 else source.rows(np.arange(part.start, part.stop))
            look = _look(job, _on_host(job, state, part), between[1], theirs, t)
            settled.append(_settle(job, rows, look, part, found))
        return settled

    size = len(rows) * t * job.groups * len(job.factor.free)
    by_thread = in_parts(look_at, len(parts), min(len(parts), threads(size)))
    job.answers.compare()  # the device has answered meanwhile
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


def _begin(job: Job, question: Question, rows: Indices) -> Any:
    """Empty sums, kept by the model where it can and where sums are all the method needs."""
    t = question.t
    if job.needs_only_sums and sums_for(job.evaluation.model) is not None:
        sums, weights = job.answers.opened, question.weights
        if sums is None:
            x = job.rows
            if len(rows) < len(x):
                x, weights = x[rows], weights[rows]
            sums = empty_sums(job, x.astype(job.dtype))
        _aim(sums, weights)
        return Summed(sums, job.factor, t)
    return job.method.start(len(rows) * t, job.groups, job.seen, is_shared=job.is_shared)


def _aim(sums: GradientSums, weights: Array) -> None:
    """Make room for what is wanted; a first batch that leaves none for it can wait."""
    try:
        sums.aim(weights)
    except RuntimeError as err:
        if sums.opened is None or not is_out_of_memory(err):
            raise
        sums.opened = None
    else:
        return
    sums.aim(weights)  # out here what the failed attempt had made is gone


def _advance(
    job: Job,
    question: Question,
    rows: Indices,
    state: Any,
    source: Source,
    between: tuple[int, int],
    watch: Progress,
) -> None:
    """Add the draws from one count to another: the loop over chunks of draws and, inside, over blocks of rows."""
    t = question.t
    chunks: Iterator[Chunk] = job.layout(between[1]).chunks(*between, job.evaluation.batch_size)
    if isinstance(state, Summed):
        add_draws(state, job.evaluation, list(chunks), source, len(rows), watch)
        return
    for chunk in chunks:
        shared = source.draw(chunk) if job.is_shared else None
        shared_seen = shared and source.seen(shared)
        block = max(1, job.evaluation.batch_size // chunk.n)
        for start in range(0, len(rows), block):
            part = slice(start, min(len(rows), start + block))
            draws = shared or source.draw(chunk, part)
            seen = shared_seen or source.seen(draws)
            batch = evaluate(job, question, rows[part], seen, source.steps(draws, part))
            job.method.update(state, slice(part.start * t, part.stop * t), chunk.groups, batch)
            watch.advance((part.stop - part.start) * chunk.n)
        if shared_seen:
            job.method.update_shared(state, chunk.groups, shared_seen)


def _parts(
    job: Job, question: Question, rows: Indices, state: Any, source: Source, between: tuple[int, int]
) -> list[slice]:
    """Rows to be looked at together; sums of the model that are not finite become an error that names the row."""
    if not isinstance(state, Summed):
        return [slice(0, len(rows))]
    n = between[1]
    state.sums.look_ahead(job.layout(n).sizes(n), job.seen, job.stopping.miss)
    job.answers.ask_again()  # while the device is still busy
    if not state.sums.is_finite():
        _ask_again(job, question, rows, source, between)
    return state.parts(len(rows), job.groups)


def _on_host(job: Job, state: Any, part: slice) -> Any:
    """The state of some rows as the method knows it: as it is, or fetched from the model."""
    method: Any = job.method  # one that can `gather`, else sums would not have been asked for
    return method.gather(state.totals(part)) if isinstance(state, Summed) else state


def _ask_again(job: Job, question: Question, rows: Indices, source: Source, between: tuple[int, int]) -> None:
    """Repeat the draws between two counts in full view: every output and gradient is looked at as it comes."""
    state = job.method.start(len(rows) * question.t, job.groups, job.seen, is_shared=job.is_shared)
    again = source.begun_again(rows, between[0], job.evaluation.batch_size)
    _advance(job, question, rows, state, again, between, Progress(None, 0))


def _look(job: Job, state: Any, n: int, source: Source, t: int) -> Look:
    """Estimates after n draws, with the error bound that holds over all planned looks."""
    sizes = job.layout(n).sizes(n)
    estimate = source.turned(job.finish(state, n), t)
    miss, radius = job.stopping.miss, None
    if isinstance(job.method, Certifying):
        estimate, radius = job.method.certify(state, estimate, job.factor, n, miss)
    rows = len(estimate.values)
    resolution = estimate.resolution if job.design.is_net else np.broadcast_to(0.0, estimate.values.shape)
    freedom = None if estimate.carriers is None else np.maximum(estimate.carriers - 1, 1.0)
    groups = Groups(estimate.pseudo, np.broadcast_to(sizes, (rows, len(sizes))), resolution, None, freedom)
    measured = groups.measure(estimate.values, estimate.variance, job.factor, miss)
    radius, size = measured.radius if radius is None else radius, measured.size
    stopping, spread = job.stopping, estimate.spread
    tolerance = stopping.tolerance(size, radius, spread)
    is_reached = stopping.is_reached(n, size, radius, spread, longer=job.longer)
    return Look(n, estimate, groups, on_host(estimate.values), radius, measured.fidelity, tolerance, is_reached)


def _still_to_draw(job: Job, look: Look, rows: Indices, t: int) -> int:
    """Draws that rows will probably still need, for the progress bar."""
    if not len(rows):
        return 0
    until = job.stopping.forecast(look.n, look.radius, look.tolerance).reshape(-1, t).max(axis=1)
    return int((until[rows] - look.n).sum())


def _with_targets(rows: Indices, t: int) -> Any:
    """Positions of rows among rows × targets; as a slice where they follow each other, which is copied faster."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:  # they are in order
        return slice(int(rows[0]) * t, (int(rows[-1]) + 1) * t)
    return _each_target(rows, t)


def _each_target(rows: Indices, t: int) -> Indices:
    """Positions of rows among rows × targets, one by one."""
    return (rows[:, None] * t + np.arange(t)).reshape(-1)


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
    keys = None if job.is_shared else np.arange(r)
    said, sizes = found.said_by(which), found.sizes[which]
    groups = Groups(said, sizes, found.resolution[which], keys, found.freedom[which])
    return Explanation(
        x=job.subject.x,
        values=columns(found.values[which], free, d),
        standard_error=columns(found.standard_error[which], free, d),
        prediction=prediction,
        smoothed=found.smoothed[which],
        fidelity=found.fidelity[which],
        radius=found.radius[which],
        converged=found.converged[which],
        n_samples=n,
        n_evaluations=n + job.asked,
        degrees_of_freedom=groups.degrees_of_freedom,
        feature_names=job.subject.feature_names,
        output_name=name,
        row_outputs=_row_outputs(row_names, which.start),
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
            longer=job.longer,
        ),
        groups=groups,
        selected=None if found.selected is None else columns(found.selected[which], free, d),
        directions=None if found.directions is None else found.directions[which],
    )


def _row_outputs(row_names: tuple[tuple[str, ...], ...], i: int) -> tuple[str, ...]:
    """What the i-th target is called at each row."""
    if row_names == row_names[:1] * len(row_names):  # almost always, and seen at once: they are one object
        return (row_names[0][i],) * len(row_names)
    return tuple(names[i] for names in row_names)

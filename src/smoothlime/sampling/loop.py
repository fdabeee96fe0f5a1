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
from ..draws.blocks import Chunk
from ..draws.rotation import DIRECTIONS
from ..estimators.certified import CertifiedSmoothGrad, CertifiedValues, Certifying
from ..estimators.least_squares import PilotResiduals
from ..models import Target
from ..models.protocol import is_out_of_memory
from ..result.explanation import Explanation, Provenance, columns
from ..uncertainty.groups import Groups
from .device_loop import Summed, add_draws, empty_sums
from .jumps import refuse_false_gradients, warn_of_jumps
from .plan import Objective, Plan, evaluate
from .record import InterimEstimate, ResultBuffer
from .sampler import Sampler

STATE_BYTES = 2**28
"""Size of the sums held at once; more rows than fit are explained panel by panel."""


def run(plan: Plan, target: Target, progress: Any, *, tells_jumps: bool = False) -> list[Explanation]:
    """One explanation per target: draw, evaluate, sum up, look, stop; panel by panel where rows are many."""
    r, t = target.weights.shape[:2]
    objective = Objective.of(plan, target)
    found = ResultBuffer(r * t, plan.groups, len(plan.factor.free))
    with Progress(progress, r * plan.stopping.looks[:2][-1]) as watch:  # a guess, until the first look knows better
        for rows in _panels(plan, objective):
            _sample(plan, objective, rows, found, watch)
    predictions = target.of(plan.predictions)
    if isinstance(plan.method, CertifiedValues):
        plan.method.check(predictions)
    explanations = [
        _explanation(plan, found, slice(i, None, t), predictions[:, i], target.names[i], target.row_names)
        for i in range(t)
    ]
    if isinstance(plan.method, CertifiedSmoothGrad):
        refuse_false_gradients(plan, target, explanations)
    if tells_jumps:
        warn_of_jumps(plan, target, explanations, found.inconsistent)
    return explanations


def trace(plan: Plan, target: Target, counts: Sequence[int], progress: Any) -> Array:
    """Slopes (len(counts), r, f) after each number of draws, in one run: every draw goes on from those before."""
    r, t = target.weights.shape[:2]
    assert t == 1
    assert not plan.design.is_aligned  # its groups begin anew at each look
    objective = Objective.of(plan, target)
    found = np.empty((len(counts), r, len(plan.factor.free)))
    with Progress(progress, r * counts[-1]) as watch:
        for rows in _panels(plan, objective):
            state, sampler = _begin(plan, objective, rows), Sampler.of(plan, objective, rows)
            for i, between in enumerate(pairwise((0, *counts))):
                _advance(plan, objective, rows, state, sampler, between, watch)
                for part in _parts(plan, objective, rows, state, sampler, between):
                    found[i, rows[part]] = on_host(plan.finish(_on_host(plan, state, part), counts[i]).values)
    return found


def _panels(plan: Plan, objective: Objective) -> list[Indices]:
    """Rows in runs whose sums fit in STATE_BYTES; independent draws need their own Gram matrices."""
    d, g = len(plan.seen.free), plan.groups
    r, t = objective.weights.shape[:2]
    controls = 0 if objective.controls is None else objective.controls.count
    per_row = 8 * g * d * t * ((1 if plan.is_shared else d + 1) + controls)
    per_row += 8 * 5 * DIRECTIONS * d * plan.design.is_aligned  # directions and turns
    per_row += 8 * g * d * t * plan.combines_values
    per_row += 8 * (d + 1) ** 2 * t * isinstance(plan.method, Certifying)  # the pilot's least squares
    held = getattr(plan.evaluation.model, "held_bytes", None) if plan.needs_only_sums else None
    size = max(1, (held or STATE_BYTES) // per_row)
    return [np.arange(start, min(r, start + size)) for start in range(0, r, size)]


def _sample(plan: Plan, objective: Objective, rows: Indices, found: ResultBuffer, watch: Progress) -> None:
    """Draw from look to look; rows that have reached their tolerance leave, the others go on."""
    t = objective.t
    state, sampler = _begin(plan, objective, rows), Sampler.of(plan, objective, rows)
    if sampler.line is not None and plan.may_follow_tails:
        state.pilot_residuals = PilotResiduals(sampler.line, plan.groups, of_pairs=plan.design.is_paired)
    if sampler.directions is not None:
        found.turn(_with_targets(rows, t), np.repeat(sampler.directions, t, axis=0))
    drawn = 0
    if isinstance(plan.method, Certifying):
        drawn = plan.method.pilot(len(plan.factor.free))
        _advance(plan, objective, rows, state, sampler, (0, drawn), watch)
        plan.method.end_pilot(state, drawn, plan.stopping.looks[-1])
    for n in plan.stopping.looks:
        if drawn and plan.design.is_aligned:
            state.merge()
        _advance(plan, objective, rows, state, sampler, (drawn, n), watch)
        left, still_to_draw = _look_at_all(plan, objective, rows, state, sampler, (drawn, n), found)
        if not len(left):
            return
        drawn = n
        watch.expect(still_to_draw)
        state.keep(_each_target(left, t))
        rows, sampler = rows[left], sampler.rows(left)


def _look_at_all(
    plan: Plan,
    objective: Objective,
    rows: Indices,
    state: Any,
    sampler: Sampler,
    between: tuple[int, int],
    found: ResultBuffer,
) -> tuple[Indices, int]:
    """Look at all rows and record those that are done; positions of the others, and draws that they probably need."""
    parts = _parts(plan, objective, rows, state, sampler, between)
    t = objective.t

    def look_at(some: slice) -> list[tuple[Indices, int]]:
        settled = []
        for part in parts[some]:
            theirs = sampler if len(parts) == 1 else sampler.rows(np.arange(part.start, part.stop))
            look = _look(plan, _on_host(plan, state, part), between[1], theirs, t)
            settled.append(_settle(plan, rows, look, part, found))
        return settled

    size = len(rows) * t * plan.groups * len(plan.factor.free)
    by_thread = in_parts(look_at, len(parts), min(len(parts), threads(size)))
    plan.answers.compare()  # the device has answered meanwhile
    settled = [each for some in by_thread for each in some]
    return np.concatenate([left for left, _ in settled]), sum(more for _, more in settled)


def _settle(plan: Plan, rows: Indices, look: InterimEstimate, part: slice, found: ResultBuffer) -> tuple[Indices, int]:
    """The same for the rows of one part, once looked at."""
    t = len(look.values) // (part.stop - part.start)
    done = look.is_reached.reshape(-1, t).all(axis=1)  # a row goes on until all its targets are there
    done |= look.n == plan.stopping.looks[-1]
    left = np.flatnonzero(~done)
    found.store(_with_targets(rows[part][done], t), _with_targets(np.flatnonzero(done), t), look)
    return part.start + left, _still_to_draw(plan, look, left, t)


def _begin(plan: Plan, objective: Objective, rows: Indices) -> Any:
    """Empty sums, kept by the model where it can and where sums are all the method needs."""
    t = objective.t
    if plan.needs_only_sums and sums_for(plan.evaluation.model) is not None:
        sums, weights = plan.answers.opened, objective.weights
        if sums is None:
            x = plan.rows
            if len(rows) < len(x):
                x, weights = x[rows], weights[rows]
            sums = empty_sums(plan, x.astype(plan.dtype))
        _aim(sums, weights)
        return Summed(sums, plan.factor, t)
    return plan.method.start(len(rows) * t, plan.groups, plan.seen, is_shared=plan.is_shared)


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
    plan: Plan,
    objective: Objective,
    rows: Indices,
    state: Any,
    sampler: Sampler,
    between: tuple[int, int],
    watch: Progress,
) -> None:
    """Add the draws from one count to another: the loop over chunks of draws and, inside, over blocks of rows."""
    t = objective.t
    chunks: Iterator[Chunk] = plan.layout(between[1]).chunks(*between, plan.evaluation.batch_size)
    if isinstance(state, Summed):
        add_draws(state, plan.evaluation, list(chunks), sampler, len(rows), watch)
        return
    for chunk in chunks:
        shared = sampler.draw(chunk) if plan.is_shared else None
        shared_seen = shared and sampler.seen(shared)
        block = max(1, plan.evaluation.batch_size // chunk.n)
        for start in range(0, len(rows), block):
            part = slice(start, min(len(rows), start + block))
            draws = shared or sampler.draw(chunk, part)
            seen = shared_seen or sampler.seen(draws)
            batch = evaluate(plan, objective, rows[part], seen, sampler.steps(draws, part))
            plan.method.update(state, slice(part.start * t, part.stop * t), chunk.groups, batch)
            watch.advance((part.stop - part.start) * chunk.n)
        if shared_seen:
            plan.method.update_shared(state, chunk.groups, shared_seen)


def _parts(
    plan: Plan, objective: Objective, rows: Indices, state: Any, sampler: Sampler, between: tuple[int, int]
) -> list[slice]:
    """Rows to be looked at together; sums of the model that are not finite become an error that names the row."""
    if not isinstance(state, Summed):
        return [slice(0, len(rows))]
    n = between[1]
    state.sums.look_ahead(plan.layout(n).sizes(n), plan.seen, plan.stopping.miss)
    plan.answers.ask_again()  # while the device is still busy
    if not state.sums.is_finite():
        _ask_again(plan, objective, rows, sampler, between)
    return state.parts(len(rows), plan.groups)


def _on_host(plan: Plan, state: Any, part: slice) -> Any:
    """The state of some rows as the method knows it: as it is, or fetched from the model."""
    method: Any = plan.method  # one that can `gather`, else sums would not have been asked for
    return method.gather(state.totals(part)) if isinstance(state, Summed) else state


def _ask_again(plan: Plan, objective: Objective, rows: Indices, sampler: Sampler, between: tuple[int, int]) -> None:
    """Repeat the draws between two counts in full view: every output and gradient is looked at as it comes."""
    state = plan.method.start(len(rows) * objective.t, plan.groups, plan.seen, is_shared=plan.is_shared)
    again = sampler.begun_again(rows, between[0], plan.evaluation.batch_size)
    _advance(plan, objective, rows, state, again, between, Progress(None, 0))


def _look(plan: Plan, state: Any, n: int, sampler: Sampler, t: int) -> InterimEstimate:
    """Estimates after n draws, with the error bound that holds over all planned looks."""
    sizes = plan.layout(n).sizes(n)
    estimate = sampler.turned(plan.finish(state, n), t)
    miss, radius = plan.stopping.miss, None
    if isinstance(plan.method, Certifying):
        estimate, radius = plan.method.certify(state, estimate, plan.factor, n, miss)
    rows = len(estimate.values)
    resolution = estimate.resolution if plan.design.is_net else np.broadcast_to(0.0, estimate.values.shape)
    freedom = None if estimate.effective_sample_size is None else np.maximum(estimate.effective_sample_size - 1, 1.0)
    groups = Groups(estimate.pseudo, np.broadcast_to(sizes, (rows, len(sizes))), resolution, None, freedom)
    measured = groups.measure(estimate.values, estimate.variance, plan.factor, miss)
    radius, size = measured.radius if radius is None else radius, measured.size
    stopping, spread = plan.stopping, estimate.spread
    tolerance = stopping.tolerance(size, radius, spread)
    is_reached = stopping.is_reached(n, size, radius, spread, longer=plan.longer)
    return InterimEstimate(
        n, estimate, groups, on_host(estimate.values), radius, measured.fidelity, tolerance, is_reached
    )


def _still_to_draw(plan: Plan, look: InterimEstimate, rows: Indices, t: int) -> int:
    """Draws that rows will probably still need, for the progress bar."""
    if not len(rows):
        return 0
    until = plan.stopping.forecast(look.n, look.radius, look.tolerance).reshape(-1, t).max(axis=1)
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
    plan: Plan,
    found: ResultBuffer,
    which: slice,
    prediction: Array,
    name: str,
    row_names: tuple[tuple[str, ...], ...],
) -> Explanation:
    """Numbers in the columns of the caller's table, with errors, names and provenance."""
    r, d = plan.rows.shape
    free = plan.factor.free
    n = found.n[which]
    keys = None if plan.is_shared else np.arange(r)
    pseudovalues, sizes = found.pseudovalues_of(which), found.sizes[which]
    groups = Groups(pseudovalues, sizes, found.resolution[which], keys, found.freedom[which])
    return Explanation(
        x=plan.problem.x,
        values=columns(found.values[which], free, d),
        standard_error=columns(found.standard_error[which], free, d),
        prediction=prediction,
        smoothed=found.smoothed[which],
        fidelity=found.fidelity[which],
        radius=found.radius[which],
        converged=found.converged[which],
        n_samples=n,
        n_evaluations=n + plan.asked,
        degrees_of_freedom=groups.degrees_of_freedom,
        feature_names=plan.problem.feature_names,
        output_name=name,
        row_outputs=_row_outputs(row_names, which.start),
        neighbourhood=plan.problem.neighbourhood,
        provenance=Provenance(
            method=plan.method,
            design=plan.design.name,
            seed=plan.seed,
            draws="shared" if plan.is_shared else "independent",
            confidence=plan.stopping.confidence,
            guarantee="certified" if isinstance(plan.method, Certifying) else "approximate",
            assumes=plan.method.assumes if isinstance(plan.method, Certifying) else "",
            block=1 if plan.design.is_aligned else plan.layout(plan.stopping.looks[0]).block,
            dtype=plan.dtype,
            batch_size=plan.evaluation.batch_size,
            versions=versions(),
            backend=plan.problem.backend,
            longer=plan.longer,
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

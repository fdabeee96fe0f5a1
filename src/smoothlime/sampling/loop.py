"""The one loop: draw, evaluate rows × draws, add to the sums, look, stop. Every sampled method goes through it.

Rows are an axis, never a loop: a model call holds many rows at many draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .._core.progress import Progress
from .._core.types import Array, Indices
from .._core.version import versions
from .._core.xp import on_host
from ..draws.rotation import DIRECTIONS
from ..errors import InvalidArgument
from ..estimators.protocol import Drawn
from ..models import Target
from ..result.explanation import Explanation, Provenance, columns
from ..result.gaps import without_slopes
from ..uncertainty.groups import Groups
from .device_loop import DeviceSums
from .diagnostics import refuse_false_gradients, warn_of_jumps
from .evaluate import Objective
from .far_look import FarLook, warn_of_far_points
from .host_loop import HostSums, Panel
from .plan import Plan
from .record import FeatureResults, InterimEstimate, ResultBuffer, Results
from .sampler import begin

STATE_BYTES = 2**28
"""Size of the sums held at once; more rows than fit are explained panel by panel."""


def run(plan: Plan, target: Target, progress: Any, *, tells_jumps: bool = False) -> list[Explanation]:
    """One explanation per target."""
    return run_with_results(plan, target, progress, tells_jumps=tells_jumps)[0]


def run_with_results(
    plan: Plan, target: Target, progress: Any, *, tells_jumps: bool = False
) -> tuple[list[Explanation], Results]:
    """The same with all that was found: draw, evaluate, sum up, look, stop; panel by panel where rows are many."""
    r, t = target.weights.shape[:2]
    objective = Objective.of(plan, target)
    predictions = target.of(plan.predictions)
    parts = plan.by_gaps()
    found = ResultBuffer(r * t, max(part.plan.groups for part in parts), plan.d)
    asked = plan.asked
    work = [len(part.rows) * part.plan.stopping.looks[:2][-1] for part in parts]
    with Progress(progress, sum(work)) as watch:  # a guess, until the first look knows better
        for i, part in enumerate(parts):
            watch.later = sum(work[i + 1 :])
            asked[part.rows] = part.plan.asked[part.rows]
            theirs = objective.around(part)
            for rows in _panels(part.plan, theirs, part.rows):
                _sample(_begin(part.plan, theirs, rows, watch), found.of_features(part.kept))
    plan.method.check_values(predictions)
    results = found.results()
    warn_of_far_points(np.flatnonzero(results.is_far_unseen.reshape(r, t).any(axis=1)))
    explanations = [
        _explanation(plan, results, slice(i, None, t), predictions[:, i], asked, target.names[i], target.row_names)
        for i in range(t)
    ]
    if plan.method.assumes and plan.method.needs == "gradients":
        refuse_false_gradients(plan, target, explanations)
    if tells_jumps:
        warn_of_jumps(plan, target, explanations, results.inconsistent)
    return explanations, results


def trace(plan: Plan, target: Target, counts: Sequence[int], progress: Any) -> Array:
    """Slopes (len(counts), r, f) after each number of draws, in one run: every draw goes on from those before."""
    r, t = target.weights.shape[:2]
    assert t == 1
    assert not plan.design.is_aligned  # its groups begin anew at each look
    assert not plan.problem.missing.any()
    objective = Objective.of(plan, target)
    found = np.empty((len(counts), r, plan.d))
    with Progress(progress, r * counts[-1]) as watch:
        for rows in _panels(plan, objective, np.arange(r)):
            panel = _begin(plan, objective, rows, watch)
            for i, (start, stop) in enumerate(pairwise((0, *counts))):
                panel.advance(start, stop)
                for part in panel.sums.parts(panel, start, stop):
                    found[i, rows[part]] = on_host(_estimate(panel, part, stop)[1].values)
    return found


def _panels(plan: Plan, objective: Objective, rows: Indices) -> list[Indices]:
    """Rows in runs whose sums fit in STATE_BYTES, or in what a device holds."""
    t = objective.t
    per_row = 8 * t * plan.method.numbers(plan.setup(1, controls=objective.controls_count))
    per_row += 8 * FarLook.numbers(plan, t) * plan.looks_far
    per_row += 8 * 5 * DIRECTIONS * plan.d * plan.design.is_aligned  # directions and rotations
    held = getattr(plan.evaluation.model, "held_bytes", None) if plan.method.only_sums else None
    size = max(1, (held or STATE_BYTES) // per_row)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _begin(plan: Plan, objective: Objective, rows: Indices, watch: Progress) -> Panel:
    """Nothing drawn yet but a pilot of rotations; sums are kept by the model where they are all it takes."""
    t = objective.t
    sampler, slopes = begin(plan, objective, rows)
    far = FarLook(plan, objective, rows) if plan.looks_far else None
    if plan.is_summed_on_device:
        return Panel(plan, objective, rows, sampler, DeviceSums.of(plan, objective, rows), watch, far)
    setup = plan.setup(len(rows) * t, controls=objective.controls_count, pilot_slopes=slopes)
    try:
        sums = HostSums(plan.method.start(setup))
    except MemoryError as err:
        msg = (
            f"the sums of {plan.method.name} over {plan.d:,} features do not fit in memory: {err}. Hold most of the"
            " features fixed, or give a model with gradients, or use method='stein'"
        )
        raise InvalidArgument(msg) from err
    return Panel(plan, objective, rows, sampler, sums, watch, far)


def _sample(panel: Panel, found: FeatureResults) -> None:
    """Draw from look to look; rows that have reached their tolerance leave, the others go on."""
    plan, t = panel.plan, panel.objective.t
    if panel.sampler.aligned is not None:
        found.rotate(_with_targets(panel.rows, t), np.repeat(panel.sampler.aligned.directions, t, axis=0))
    drawn = plan.method.pilot(plan.d)
    if drawn:
        assert not plan.design.is_aligned  # its groups are equal parts of all draws up to a look
        panel.advance(0, drawn)
        plan.method.end_pilot(panel.sums.state(plan, slice(None)), drawn, plan.stopping.looks[-1])
    for n in plan.stopping.looks:
        if drawn and plan.design.is_aligned:
            panel.sums.merge()
        panel.advance(drawn, n)
        settled = [_look(panel, part, n, found) for part in panel.sums.parts(panel, drawn, n)]
        left = np.concatenate([rows for rows, _ in settled])
        if not len(left):
            return
        drawn = n
        panel.watch.expect(sum(more for _, more in settled))
        panel = panel.keep(left, _each_target(left, t))


def _look(panel: Panel, part: slice, n: int, found: FeatureResults) -> tuple[Indices, int]:
    """Store the rows of a part that are done; positions of the others, and draws that they probably need."""
    plan, t = panel.plan, panel.objective.t
    interim = _interim(plan, *_estimate(panel, part, n))
    if panel.far is not None:
        interim = panel.far.check(part, interim)
    panel.watch.look(panel.rows[part], interim, plan.factor)
    # a row goes on until all its targets are there, or cannot get there
    done = (interim.is_reached | interim.is_hopeless).reshape(-1, t).all(axis=1)
    done |= n == plan.stopping.looks[-1]
    found.store(_with_targets(panel.rows[part][done], t), _with_targets(np.flatnonzero(done), t), interim)
    left = np.flatnonzero(~done)
    more = 0
    if len(left):
        until = plan.stopping.forecast(n, interim.radius, interim.tolerance).reshape(-1, t).max(axis=1)
        more = int((until[left] - n).sum())
    return part.start + left, more


def _estimate(panel: Panel, part: slice, n: int) -> tuple[Drawn, Any]:
    """What the estimator makes of the first n draws around the rows of a part."""
    plan, aligned = panel.plan, panel.sampler.aligned
    if aligned is not None and part.stop - part.start < len(panel.rows):
        aligned = aligned.rows(np.arange(part.start, part.stop))
    drawn = Drawn(
        n=n,
        sizes=plan.layout(n).sizes(n),
        factor=plan.factor,
        design=plan.design,
        miss=plan.stopping.miss,
        targets=panel.objective.t,
        rotation=None if aligned is None else aligned.of_draws,
        varies_widely=None if aligned is None else aligned.varies_widely,
    )
    return drawn, plan.method.finish(panel.sums.state(plan, part), drawn)


def _interim(plan: Plan, drawn: Drawn, estimate: Any) -> InterimEstimate:
    """An estimate with the error bound that holds over all planned looks."""
    rows, sizes, n = len(estimate.values), drawn.sizes, drawn.n
    resolution = estimate.resolution if plan.design.is_net else np.broadcast_to(0.0, estimate.values.shape)
    ess = estimate.effective_sample_size
    freedom = None if ess is None else np.maximum(ess - 1, 1.0)
    groups = Groups(estimate.pseudo, np.broadcast_to(sizes, (rows, len(sizes))), resolution, None, freedom)
    measured = groups.measure(estimate.values, estimate.variance, plan.factor, drawn.miss)
    radius, size = measured.radius if estimate.radius is None else estimate.radius, measured.size
    stopping, spread, is_hopeless = plan.stopping, estimate.spread, np.zeros(rows, dtype=np.bool_)
    if plan.method.needs == "gradients" and estimate.radius is None and not plan.design.is_paired:
        unseen = groups.unseen_by_gradients(measured, estimate.variance, plan.factor)
        radius, is_hopeless = np.maximum(radius, unseen), (unseen > 0) & stopping.is_many(n, plan.longer)
    return InterimEstimate(
        n=n,
        estimate=estimate,
        groups=groups,
        values=on_host(estimate.values),
        radius=radius,
        fidelity=measured.fidelity,
        tolerance=stopping.tolerance(size, radius, spread),
        is_reached=stopping.is_reached(n, size, radius, spread, longer=plan.longer),
        is_hopeless=is_hopeless,
    )


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
    found: Results,
    which: slice,
    prediction: Array,
    asked: Indices,
    name: str,
    row_names: tuple[tuple[str, ...], ...],
) -> Explanation:
    """Numbers in the columns of the caller's table, with errors, names and provenance."""
    r, d = plan.problem.x.shape
    free, missing = plan.factor.free, plan.problem.missing
    n = found.n[which]
    keys = None if plan.is_shared else np.arange(r)
    groups = Groups(
        found.pseudovalues_of(which), found.sizes[which], found.resolution[which], keys, found.freedom[which]
    )
    return Explanation(
        x=plan.problem.x,
        values=without_slopes(columns(found.values[which], free, d), missing),
        standard_error=without_slopes(columns(found.standard_error[which], free, d), missing),
        missing=missing,
        not_numeric=plan.problem.not_numeric,
        prediction=prediction,
        smoothed=found.smoothed[which],
        fidelity=found.fidelity[which],
        radius=found.radius[which],
        converged=found.converged[which],
        n_samples=n,
        n_evaluations=n * plan.method.evaluations_per_draw + found.far_evaluations[which] + asked,
        degrees_of_freedom=groups.degrees_of_freedom,
        feature_names=plan.problem.feature_names,
        output_name=name,
        row_outputs=_row_outputs(row_names, which.start),
        neighbourhood=plan.problem.neighbourhood,
        provenance=Provenance(
            method=plan.method.recorded,
            design=plan.design.name,
            seed=plan.seed,
            draws="shared" if plan.is_shared else "independent",
            confidence=plan.stopping.confidence,
            guarantee="certified" if plan.method.assumes else "approximate",
            assumes=plan.method.assumes,
            block=1 if plan.design.is_aligned else plan.layout(plan.stopping.looks[0]).block,
            dtype=plan.dtype,
            batch_size=plan.evaluation.batch_size,
            versions=versions(),
            backend=plan.problem.backend,
            longer=plan.longer,
            rtol=plan.stopping.rtol,
            atol=plan.stopping.told,
        ),
        groups=groups,
        selected=None if found.selected is None else columns(found.selected[which], free, d),
        directions=None if found.directions is None else found.directions[which],
        input_shape=plan.problem.input_shape,
    )


def _row_outputs(row_names: tuple[tuple[str, ...], ...], i: int) -> tuple[str, ...]:
    """What the i-th target is called at each row."""
    if row_names == row_names[:1] * len(row_names):  # almost always, and seen at once: they are one object
        return (row_names[0][i],) * len(row_names)
    return tuple(names[i] for names in row_names)

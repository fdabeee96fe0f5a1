"""Mean gradients of models that add them up by themselves: the inner part of the loop in `loop`, and no more.

Every device explains the same perturbations. Most draws are made on the host: steps are written once, in the model's
own type, and go where the model is; while a device works by itself, those of the next chunk are made. Long runs of
plain draws are made by the device, which knows the same numbers (`normals`). Only sums come back, at a look.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .._core.progress import Progress
from .._core.types import Indices
from ..device import sums_for
from ..device.protocol import GradientSums
from ..draws.blocks import Chunk
from ..draws.designs import Stream
from ..draws.normals import Run
from .evaluate import Objective
from .host_loop import HostSums, Panel
from .plan import Plan

Item = TypeVar("Item")

FETCHED_BYTES = 2**22
"""Size of the sums that are looked at together: they and what is made of them stay in a processor's cache."""

WORTH_DRAWING = 2**16
"""Numbers of a chunk from which on a device makes them sooner than they travel."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceSums:
    """Sums of gradients that the model keeps where it is."""

    sums: GradientSums
    targets: int

    @classmethod
    def of(cls, plan: Plan, objective: Objective, rows: Indices) -> DeviceSums:
        """Empty sums around some of the rows of a plan."""
        make, x, weights = sums_for(plan.evaluation.model), plan.rows, objective.weights
        assert make is not None
        if len(rows) < len(x):
            x, weights = x[rows], weights[rows]
        # what some draws show is a floor for the errors of nets, and of no other design
        sums = make(
            x.astype(plan.dtype), plan.factor.free, plan.groups, weights,
            looks_closely=plan.design.is_net, slopes=plan.method.needs_products, is_shared=plan.is_shared,
        )  # fmt: skip
        return cls(sums, objective.t)

    def keep(self, rows: Indices) -> None:
        """Forget all other rows; they come as positions among rows × targets."""
        self.sums.keep(rows[:: self.targets] // self.targets)

    def merge(self) -> None:
        """Make one group of each two."""
        self.sums.merge()

    def state(self, plan: Plan, part: slice) -> Any:
        """What has been added up so far for some rows, in units of draws, as the estimator knows it."""
        totals = self.sums.totals(part)
        if totals.cross is not None and totals.total is not None:
            cross, total = (plan.factor.draws(each) for each in (totals.cross, totals.total))
            totals = dataclasses.replace(totals, cross=cross, total=total)
        return plan.method.gather(totals)

    def parts(self, panel: Panel, start: int, stop: int) -> list[slice]:
        """Runs of rows to be looked at together; sums that are not finite become an error that names the row."""
        plan, rows = panel.plan, len(panel.rows)
        self.sums.look_ahead(plan.layout(stop).sizes(stop), plan.factor, plan.stopping.miss)
        if not self.sums.is_finite():
            self._ask_again(panel, start, stop)
        if self.sums.keeps_groups:
            return [slice(0, rows)]
        size = max(1, FETCHED_BYTES // (8 * plan.groups * plan.d * self.targets))
        return [slice(first, min(rows, first + size)) for first in range(0, rows, size)]

    def _ask_again(self, panel: Panel, start: int, stop: int) -> None:
        """Repeat the draws between two counts in full view: every output and gradient is looked at as it comes."""
        plan = panel.plan
        setup = plan.setup(len(panel.rows) * self.targets, controls=0)
        sampler = panel.sampler.begun_again(panel.rows, start, plan.evaluation.batch_size)
        again = HostSums(plan.method.start(setup))
        dataclasses.replace(panel, sums=again, sampler=sampler, watch=Progress(None, 0)).advance(start, stop)

    def advance(self, panel: Panel, start: int, stop: int) -> None:
        """Add the draws from one count to another: over chunks of draws and, inside, over blocks of rows."""
        plan, sampler, sums = panel.plan, panel.sampler, self.sums
        rotation = None if sampler.aligned is None else sampler.aligned.of_steps
        chunks = list(plan.layout(stop).chunks(start, stop, plan.evaluation.batch_size))
        is_paired = sampler.streams[0].is_paired
        are_many = len(chunks) > 1 or (bool(chunks) and not plan.is_shared)
        is_made_here = are_many and not _is_drawn_there(sums, plan, chunks[0], sampler.streams[:1])
        made = _make(panel, sums, chunks)
        with closing(ahead(made) if sums.is_asynchronous and is_made_here else made) as works:
            for work in works:
                if work.runs:
                    steps = sums.draw(work.runs, work.chunk, plan.factor.lower, is_paired=is_paired)
                else:
                    steps = sums.move(work.staged, is_paired=is_paired)
                order = None if work.order is None else sums.positions(work.order)
                for part in work.parts:
                    batch = sums.batch(part, work.chunk.groups, steps, rotation and rotation.rows(part), order)
                    plan.evaluation.add_gradients(batch)
                    panel.watch.advance((part.stop - part.start) * work.chunk.n)


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Steps (1 or r, b, g, f) that have been made, or are to be, and the parts of the rows that take them."""

    chunk: Chunk
    parts: Sequence[slice]
    staged: Any = None
    runs: Sequence[Run] = ()
    """Of draws, where the device makes them"""
    order: Indices | None = None
    """Of draws that are looked at closely"""


def ahead(items: Iterator[Item]) -> Generator[Item]:
    """The same items, each made in another thread while the one before is in use."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item


def _make(panel: Panel, sums: GradientSums, chunks: Sequence[Chunk]) -> Generator[Work]:
    """Steps in the order in which they are drawn: once for all rows, or for each block of rows its own."""
    plan, streams, rows = panel.plan, panel.sampler.streams, len(panel.rows)
    for chunk in chunks:
        block = max(1, plan.evaluation.batch_size // chunk.n)
        parts = [slice(start, min(rows, start + block)) for start in range(0, rows, block)]
        for some, theirs in [(parts, streams)] if plan.is_shared else [((part,), streams[part]) for part in parts]:
            if _is_drawn_there(sums, plan, chunk, theirs):
                yield Work(chunk, some, runs=[stream.run(chunk.n) for stream in theirs])
            else:
                staged, order = _staged_steps(sums, plan, chunk, theirs)
                yield Work(chunk, some, staged, order=order)


def _is_drawn_there(sums: GradientSums, plan: Plan, chunk: Chunk, streams: list[Stream]) -> bool:
    """Whether the device makes the draws of a chunk, and multiplies them by one number for each feature."""
    is_possible = sums.can_draw and plan.factor.is_diagonal and streams[0].can_be_made_elsewhere
    return is_possible and len(streams) * chunk.n * plan.d >= WORTH_DRAWING


def _staged_steps(sums: GradientSums, plan: Plan, chunk: Chunk, streams: list[Stream]) -> tuple[Any, Indices | None]:
    """The next steps of each stream, written where the model fetches them from; of pairs only the first.

    And which of them are neighbours, where draws are looked at closely.
    """
    share = 2 if streams[0].is_paired else 1
    staged = sums.stage((len(streams), chunk.n // share // chunk.count, chunk.count, plan.d))
    orders = []
    for stream, array in zip(streams, staged.array, strict=True):
        z = chunk.by_turn(stream.take_firsts(chunk.n) if stream.is_paired else stream.take(chunk.n))
        plan.factor.write_steps(z, array.reshape(z.shape))
        if plan.design.is_net:
            across = plan.design.across(z)
            orders.append(chunk.neighbours(across.reshape(1, chunk.n, -1), by_turn=True))
    found = [each for each in orders if each is not None]
    return staged, np.concatenate(found) if found else None

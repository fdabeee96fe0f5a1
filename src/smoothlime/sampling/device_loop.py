"""Mean gradients of models that add them up by themselves: the inner part of the loop in `sampling`, and no more.

Every device explains the same perturbations. Most draws are made on the host: steps are written once, in the model's
own type, and go where the model is; while a device works by itself, those of the next chunk are made. Long runs of
plain draws are made by the device, which knows the same numbers (`normals`). Only sums come back, at a look.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from .._core.progress import Progress
from .._core.types import Indices, Points
from ..device import sums_for
from ..device.protocol import GradientSums, Totals
from ..draws.blocks import Chunk
from ..draws.designs import Stream
from ..draws.normals import Run
from ..models import Evaluation
from ..space.neighbourhood import Factor

if TYPE_CHECKING:
    from .plan import Plan
    from .sampler import Sampler

Item = TypeVar("Item")

FETCHED_BYTES = 2**22
"""Size of the sums that are looked at together: they and what is made of them stay in a processor's cache."""

WORTH_DRAWING = 2**16
"""Numbers of a chunk from which on a device makes them sooner than they travel."""


@dataclass(frozen=True, slots=True, eq=False)
class Summed:
    """The state of r rows whose sums the model keeps."""

    sums: GradientSums
    factor: Factor
    targets: int

    def keep(self, rows: Indices) -> None:
        """Forget all other rows; they come as positions among rows × targets."""
        self.sums.keep(rows[:: self.targets] // self.targets)

    def merge(self) -> None:
        """Make one group of each two."""
        self.sums.merge()

    def totals(self, rows: slice) -> Totals:
        """What has been added up so far for some rows, in units of draws."""
        totals = self.sums.totals(rows)
        if totals.cross is None or totals.total is None:
            return totals
        cross, total = (self.factor.draws(each) for each in (totals.cross, totals.total))
        return dataclasses.replace(totals, cross=cross, total=total)

    def parts(self, rows: int, groups: int) -> list[slice]:
        """Runs of rows whose sums are looked at together."""
        if self.sums.keeps_groups:
            return [slice(0, rows)]
        size = max(1, FETCHED_BYTES // (8 * groups * len(self.factor.free) * self.targets))
        return [slice(start, min(rows, start + size)) for start in range(0, rows, size)]


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Steps (1 or r, b, g, f) that have been made, or are to be, and the parts of the rows that take them."""

    chunk: Chunk
    parts: Sequence[slice]
    staged: Any = None
    runs: Sequence[Run] = ()
    """Of draws, where the device makes them"""


def empty_sums(plan: Plan, rows: Points) -> GradientSums:
    """Sums of gradients around rows (r, d), kept by the model of a job."""
    make = sums_for(plan.evaluation.model)
    assert make is not None
    # second moments are a floor for the errors of nets, and of no other design
    return make(
        rows, plan.factor.free, plan.groups,
        moments=plan.design.is_net, slopes=plan.combines_values, is_shared=plan.is_shared,
    )  # fmt: skip


def draw_first(sums: GradientSums, factor: Factor, chunk: Chunk, streams: list[Stream]) -> Any:
    """Steps of the first chunk, made by the device; None where it does not make them."""
    if not _is_drawn_there(sums, factor, chunk, streams):
        return None
    runs = [stream.run(chunk.n) for stream in streams]
    return sums.draw(runs, chunk, factor.lower, is_paired=streams[0].is_paired)


def add_draws(
    state: Summed,
    evaluation: Evaluation,
    chunks: Sequence[Chunk],
    sampler: Sampler,
    rows: int,
    watch: Progress,
) -> None:
    """Add chunks of draws to the sums of all rows: the loop over chunks and, inside, over blocks of rows."""
    sums, turns = state.sums, sampler.step_turns
    is_paired, is_shared = sampler.streams[0].is_paired, sampler.plan.is_shared
    made = _make(state, evaluation, chunks, sampler.streams, rows, is_shared=is_shared)
    are_many = len(chunks) > 1 or (bool(chunks) and not is_shared)
    is_made_here = are_many and not _is_drawn_there(sums, state.factor, chunks[0], sampler.streams[:1])
    with closing(ahead(made) if sums.is_asynchronous and is_made_here else made) as works:
        for work in works:
            opened, sums.opened = sums.opened, None
            if opened is not None:  # it is under way, around all rows
                evaluation.add_gradients(opened)
                watch.advance(work.chunk.n)
                continue
            if work.runs:
                steps = sums.draw(work.runs, work.chunk, state.factor.lower, is_paired=is_paired)
            else:
                steps = sums.move(work.staged, is_paired=is_paired)
            for part in work.parts:
                evaluation.add_gradients(sums.batch(part, work.chunk.groups, steps, turns and turns.rows(part)))
                watch.advance((part.stop - part.start) * work.chunk.n)


def ahead(items: Iterator[Item]) -> Generator[Item]:
    """The same items, each made in another thread while the one before is in use."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item


def _make(
    state: Summed,
    evaluation: Evaluation,
    chunks: Sequence[Chunk],
    streams: list[Stream],
    rows: int,
    *,
    is_shared: bool,
) -> Generator[Work]:
    """Steps in the order in which they are drawn: once for all rows, or for each block of rows its own."""
    for chunk in chunks:
        block = max(1, evaluation.batch_size // chunk.n)
        parts = [slice(start, min(rows, start + block)) for start in range(0, rows, block)]
        for some, theirs in [(parts, streams)] if is_shared else [((part,), streams[part]) for part in parts]:
            if _is_drawn_there(state.sums, state.factor, chunk, theirs):
                yield Work(chunk, some, runs=[stream.run(chunk.n) for stream in theirs])
            else:
                yield Work(chunk, some, _staged_steps(state, chunk, theirs))


def _is_drawn_there(sums: GradientSums, factor: Factor, chunk: Chunk, streams: list[Stream]) -> bool:
    """Whether the device makes the draws of a chunk, and multiplies them by one number for each feature."""
    is_possible = sums.can_draw and factor.is_diagonal and streams[0].can_be_made_elsewhere
    return is_possible and len(streams) * chunk.n * len(factor.free) >= WORTH_DRAWING


def _staged_steps(state: Summed, chunk: Chunk, streams: list[Stream]) -> Any:
    """The next steps of each stream, written where the model fetches them from; of pairs only the first."""
    share = 2 if streams[0].is_paired else 1
    staged = state.sums.stage((len(streams), chunk.n // share // chunk.count, chunk.count, len(state.factor.free)))
    for stream, array in zip(streams, staged.array, strict=True):
        z = chunk.by_turn(stream.take_firsts(chunk.n) if stream.is_paired else stream.take(chunk.n))
        state.factor.write_steps(z, array.reshape(z.shape))
    return staged

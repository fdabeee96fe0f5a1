"""Mean gradients of models that add them up by themselves: the inner part of the loop in `sampling`, and no more.

Draws come from NumPy on the host, as everywhere, so that every device explains the same perturbations. Steps are
written once, in the model's own type, and go where the model is; from there only sums come back, at a look. While a
device works by itself, the steps of the next chunk are made.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

from ._progress import Progress
from ._types import Indices
from .designs import Chunk, Stream
from .models import Evaluation
from .models.gradient_sums import GradientSums
from .neighbourhood import Factor
from .sources import Source

Item = TypeVar("Item")

FETCHED_BYTES = 2**22
"""Size of the sums that are looked at together: they and what is made of them stay in a processor's cache."""


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

    def parts(self, rows: int, groups: int) -> list[slice]:
        """Runs of rows whose sums are fetched together."""
        size = max(1, FETCHED_BYTES // (8 * groups * len(self.factor.free) * self.targets))
        return [slice(start, min(rows, start + size)) for start in range(0, rows, size)]


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Steps (1 or r, b, g, f) that have been made, and the parts of the rows that take them."""

    chunk: Chunk
    parts: Sequence[slice]
    staged: Any


def add_draws(
    state: Summed,
    evaluation: Evaluation,
    chunks: Iterator[Chunk],
    source: Source,
    rows: int,
    watch: Progress,
) -> None:
    """Add chunks of draws to the sums of all rows: the loop over chunks and, inside, over blocks of rows."""
    sums = state.sums
    made = _make(state, evaluation, chunks, source.streams, rows, is_shared=source.job.is_shared)
    turns = source.step_turns
    with closing(ahead(made) if sums.is_apart else made) as works:
        for work in works:
            steps = sums.move(work.staged, is_paired=source.streams[0].is_paired)
            for part in work.parts:
                evaluation.add_gradients(sums.batch(part, work.chunk.groups, steps, turns and turns.rows(part)))
                watch.advance((part.stop - part.start) * work.chunk.n)


def ahead(items: Iterator[Item]) -> Generator[Item]:
    """The same items, each made in another thread while the one before is in use."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item


def _make(
    state: Summed,
    evaluation: Evaluation,
    chunks: Iterator[Chunk],
    streams: list[Stream],
    rows: int,
    *,
    is_shared: bool,
) -> Generator[Work]:
    """Steps in the order in which they are drawn: once for all rows, or for each block of rows its own."""
    for chunk in chunks:
        block = max(1, evaluation.batch_size // chunk.n)
        parts = [slice(start, min(rows, start + block)) for start in range(0, rows, block)]
        if is_shared:
            yield Work(chunk, parts, _staged_steps(state, chunk, streams))
        else:
            for part in parts:
                yield Work(chunk, (part,), _staged_steps(state, chunk, streams[part]))


def _staged_steps(state: Summed, chunk: Chunk, streams: list[Stream]) -> Any:
    """The next steps of each stream, written where the model fetches them from; of pairs only the first."""
    share = 2 if streams[0].is_paired else 1
    staged = state.sums.stage((len(streams), chunk.n // share // chunk.count, chunk.count, len(state.factor.free)))
    for stream, array in zip(streams, staged.array, strict=True):
        z = chunk.by_turn(stream.take_firsts(chunk.n) if stream.is_paired else stream.take(chunk.n))
        state.factor.write_steps(z, array.reshape(z.shape))
    return staged

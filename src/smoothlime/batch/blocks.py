"""Blocks: fixed runs of rows by their position in a table, the unit of work of every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Indices

MOST_ROWS, FEWEST_ROWS = 8_192, 64
CELLS = 2**21
"""Cells of a block, unless it has the most or the fewest rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Rows that follow each other in a table."""

    start: int
    count: int
    """Rows of the table, those that could not be read among them"""
    rows: Any
    """An Arrow table of those that could"""
    positions: Indices
    """(n,) where these stand in the whole table"""
    failed: tuple[tuple[int, str], ...] = ()
    """Where the others stand, and why they could not be read"""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The unit of work: run number `index` of so many rows as all blocks have, but the last."""

    index: int
    run: Run


def rows_per_block(columns: int) -> int:
    """A power of two, from the number of columns alone: large enough that full batches stay so, and bounded."""
    fitting = 2 ** int(np.log2(max(CELLS // max(columns, 1), 1)))
    return int(min(MOST_ROWS, max(FEWEST_ROWS, fitting)))


def cut(runs: Iterable[Run], size: int, is_wanted: Callable[[int], bool]) -> Iterator[Block]:
    """Blocks of `size` rows from runs in the order of the table, but those that are not wanted."""
    held: list[Run] = []
    for run in runs:
        for part in _pieces(run, size):
            if not is_wanted(part.start // size):
                continue
            held.append(part)
            if (part.start + part.count) % size == 0:
                yield _block(held, size)
                held = []
    if held:
        yield _block(held, size)


def _block(runs: list[Run], size: int) -> Block:
    return Block(runs[0].start // size, _joined(runs))


def _pieces(run: Run, size: int) -> Iterator[Run]:
    """A run, cut where blocks begin."""
    end = run.start + run.count
    start = run.start
    while start < end:
        stop = min(end, (start // size + 1) * size)
        if start == run.start and stop == end:
            yield run
            return
        first, last = np.searchsorted(run.positions, [start, stop])
        failed = tuple(each for each in run.failed if start <= each[0] < stop)
        yield Run(start, stop - start, run.rows.slice(first, last - first), run.positions[first:last], failed)
        start = stop


def _joined(runs: list[Run]) -> Run:
    import pyarrow as pa

    if len(runs) == 1:
        return runs[0]
    return Run(
        runs[0].start,
        sum(run.count for run in runs),
        pa.concat_tables([run.rows for run in runs], promote_options="permissive"),
        np.concatenate([run.positions for run in runs]),
        tuple(each for run in runs for each in run.failed),
    )

"""One pass over a table before it is explained: moments, levels, and rows chosen by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Flags, Indices
from ..space.background import Spread
from .blocks import MOST_ROWS, Run
from .source import Source

CHOSEN, CELLS = 100_000, 2**24
"""Rows that quantiles and levels are taken from, and the most cells of these."""


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What one pass over a table says of it."""

    count: int
    """Rows, those that cannot be read among them"""
    chosen: Any
    """An Arrow table of rows chosen by key, in their order; all rows, where they are not too many"""
    spread: Spread | None
    """Of columns of numbers, from all rows; None where `chosen` are all"""
    levels: dict[str, Any]
    """Of each column whose levels are listed in the files: all of them, as an Arrow array"""


def survey(
    source: Source, columns: tuple[str, ...], *, wants_rows: bool, report: Callable[[int], None] = lambda _: None
) -> Survey:
    """Read a table once; without `wants_rows` to count its rows and to list levels alone."""
    moments = Moments.none(len(columns))
    choice = Choice(min(CHOSEN, max(2, CELLS // max(len(columns), 1))))
    levels: dict[str, Any] = {}
    listed = set(source.dictionaries).intersection(columns)
    asked = columns if wants_rows else tuple(name for name in columns if name in listed) or columns[:1]
    count = 0
    for run in source.runs(asked, MOST_ROWS, lambda *_: True):
        count = run.start + run.count
        for name in listed:
            levels[name] = _with_levels(levels.get(name), run.rows.column(name))
        if wants_rows and len(run.rows):
            numbers = numbers_of(run.rows, columns)
            moments = moments.merged(Moments.of(numbers))
            choice.offer(run, ~np.isinf(numbers).any(axis=1))
        report(run.count)
    chosen = choice.table() if wants_rows else None
    is_all = chosen is None or len(chosen) == moments.rows
    return Survey(count, chosen, None if is_all else moments.spread(columns), levels)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Of columns (d,), NaN and ±inf left out."""

    rows: int
    count: Array
    mean: Array
    squares: Array
    """Sums of squares around the mean"""
    least: Array
    largest: Array

    @classmethod
    def none(cls, d: int) -> Moments:
        """Of no rows."""
        zero = np.zeros(d)
        return cls(0, zero, zero, zero, np.full(d, np.inf), np.full(d, -np.inf))

    @classmethod
    def of(cls, numbers: Array) -> Moments:
        """Of the columns of an array (n, d)."""
        known = np.isfinite(numbers)
        count = known.sum(axis=0).astype(float)
        mean = np.where(known, numbers, 0.0).sum(axis=0) / np.maximum(count, 1)
        squares = (np.where(known, numbers - mean, 0.0) ** 2).sum(axis=0)
        least = np.where(known, numbers, np.inf).min(axis=0)
        return cls(len(numbers), count, mean, squares, least, np.where(known, numbers, -np.inf).max(axis=0))

    def merged(self, other: Moments) -> Moments:
        """Of the rows of both (Chan, Golub and LeVeque 1983)."""
        count = self.count + other.count
        apart = other.mean - self.mean
        share = other.count / np.maximum(count, 1)
        return Moments(
            self.rows + other.rows,
            count,
            self.mean + apart * share,
            self.squares + other.squares + apart**2 * self.count * share,
            np.minimum(self.least, other.least),
            np.maximum(self.largest, other.largest),
        )

    def spread(self, columns: tuple[str, ...]) -> Spread:
        """Standard deviations and ends by column; NaN where no number is."""
        some = self.count > 0
        std = np.sqrt(self.squares / np.maximum(self.count - 1, 1))
        size = np.maximum(np.abs(self.least), np.abs(self.largest))
        constant = (self.count < 2) | (std <= 1e-12 * np.where(some, size, 0.0))
        return Spread(
            columns,
            np.where(constant, 1.0, std),
            constant,
            np.where(some, self.least, np.nan),
            np.where(some, self.largest, np.nan),
            self.rows,
        )


class Choice:
    """The rows whose keys are smallest: which they are depends on their positions alone."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._held: list[tuple[Any, Any, Any]] = []
        self._limit = np.uint64(2**64 - 1)

    def offer(self, run: Run, may_be_chosen: Any) -> None:
        """Keep rows of a run that may be among the chosen ones, as far as is known yet."""
        keys = keys_of(run.positions)
        kept = np.flatnonzero((keys <= self._limit) & may_be_chosen)
        if len(kept):
            self._held.append((keys[kept], run.positions[kept], run.rows.take(kept)))
        if sum(len(keys) for keys, _, _ in self._held) > 2 * self.most:
            self._prune()

    def table(self) -> Any:
        """The chosen rows in their order."""
        self._prune()
        return self._held[0][2] if self._held else None

    def _prune(self) -> None:
        import pyarrow as pa

        if not self._held:
            return
        keys, positions = (np.concatenate([each[i] for each in self._held]) for i in (0, 1))
        kept = np.sort(np.argsort(keys, kind="stable")[: self.most])
        rows = pa.concat_tables([each[2] for each in self._held], promote_options="permissive")
        rows = rows if len(kept) == len(keys) else rows.take(kept)
        if len(kept) == self.most:
            self._limit = keys[kept].max()
        self._held = [(keys[kept], positions[kept], rows.combine_chunks())]


def keys_of(positions: Indices) -> Any:
    """A number for each position that looks random: the finaliser of MurmurHash3, of 64 bits."""
    key = positions.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        key = (key ^ (key >> np.uint64(33))) * np.uint64(factor)
    return key ^ (key >> np.uint64(33))


def numbers_of(rows: Any, columns: tuple[str, ...]) -> Array:
    """Cells (n, d) as float64; NaN for what is missing or is no number."""
    import pyarrow as pa

    found = np.full((len(rows), len(columns)), np.nan)
    for j, name in enumerate(columns):
        kind = rows.schema.field(name).type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            found[:, j] = rows.column(name).cast(pa.float64(), safe=False).to_numpy()
    return found


def gaps_of(rows: Any, names: Iterable[str]) -> Flags:
    """(n, d) which cells are null, or NaN."""
    import pyarrow.compute as pc

    found = [pc.is_null(rows.column(name), nan_is_null=True).to_numpy() for name in names]
    return np.stack(found, axis=1)


def _with_levels(known: Any, column: Any) -> Any:
    """Levels that are known and, behind them, those that a column adds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for chunk in column.chunks:
        new = chunk.dictionary
        if known is None:
            known = new
        elif not new.equals(known):
            more = pc.filter(new, pc.invert(pc.is_in(new, known)))
            known = pa.concat_arrays([known, more.cast(known.type)])
    return known

"""CSV files, read by pyarrow as text and typed here, so that a cell that does not fit costs its row alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidArgument, UnreadableFile
from .blocks import Run
from .cells import ColumnType, infer, keep_rows, read_types, typed
from .identity import HEAD, check_columns, ends_of_text, identity_of


@dataclass(frozen=True, slots=True, eq=False)
class CsvSource:
    """A CSV file with a header, in UTF-8."""

    path: str
    types: dict[str, ColumnType]

    @classmethod
    def open(cls, path: str, types: Any = None, *, guessed: Sequence[str] = (), key: str | None = None) -> CsvSource:
        """Names from the header, and types from the first MiB, unless they are given; `guessed` says which never were.

        The key has one type, from the first row to the last: parts must fit together.
        """
        import pyarrow as pa

        try:
            names = _reader(path, None, {}).schema.names
        except pa.ArrowInvalid as err:
            msg = f"{path!r} cannot be read as CSV: {err}"
            raise UnreadableFile(msg) from err
        check_columns(names, path)
        other = next((mark for mark in (";", "\t") if len(names) == 1 and mark in names[0]), None)
        if other is not None:
            msg = f"{path!r} has {other!r} between its columns; save it with commas"
            raise InvalidArgument(msg, argument="source")
        found = read_types(types, tuple(names))
        odd: dict[int, str] = {}
        first = next(_batches(path, tuple(names), odd), None)
        if first is None:
            what = f"; row 0 is none, as {odd[0]}" if odd else ""
            msg = f"{path!r} must have a header and at least one row{what}"
            raise InvalidArgument(msg, argument="source")
        found |= {name: ColumnType(found[name].arrow) for name in guessed if name in found}
        found |= {name: infer(first.column(name)) for name in names if name not in found}
        if key in found:
            found[key] = ColumnType(pa.string() if found[key].is_empty else found[key].arrow, is_said=True)
        return cls(path, {name: found[name] for name in names})

    @property
    def names(self) -> tuple[str, ...]:
        """Those in the header."""
        return tuple(self.types)

    @property
    def dictionaries(self) -> tuple[str, ...]:
        """None: text is text."""
        return ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The one file."""
        return (self.path,)

    @property
    def count(self) -> None:
        """Only reading tells."""
        return None

    def identity(self) -> list[dict[str, Any]]:
        """Of the one file."""
        return [identity_of(self.path, ends_of_text)]

    def spec(self) -> dict[str, Any]:
        """Its path, and the types of its columns."""
        types = {name: str(each.arrow) for name, each in self.types.items()}
        guessed = [name for name, each in self.types.items() if not each.is_said]
        return {"source": os.path.abspath(self.path), "types": types, "guessed": guessed}

    def runs(self, columns: tuple[str, ...], size: int, is_wanted: Callable[[int, int], bool]) -> Iterator[Run]:
        """About a MiB of text at a time; rows with too few or too many cells, or cells that do not fit, have failed."""
        odd: dict[int, str] = {}
        start = 0
        for batch in _batches(self.path, columns, odd):
            positions, end = _positions(start, len(batch), odd)
            failed = [(at, odd.pop(at)) for at in sorted(odd) if at < end]
            if is_wanted(start, end):
                yield self._run(start, end, batch, positions, failed)
            start = end
        if odd:  # behind the last row that can be read
            last = max(odd) + 1
            yield Run(start, last - start, self._empty(columns), np.zeros(0, dtype=np.intp), tuple(sorted(odd.items())))

    def _run(self, start: int, end: int, batch: Any, positions: Any, failed: list[tuple[int, str]]) -> Run:
        import pyarrow as pa

        found, misfits = {}, dict[int, str]()
        for name in batch.schema.names:
            found[name], wrong = typed(batch.column(name), name, self.types[name])
            for row, reason in wrong:
                misfits.setdefault(row, reason)
        rows, kept = keep_rows(pa.table(found), list(misfits.items()))
        failed = failed + [(int(positions[row]), reason) for row, reason in misfits.items()]
        return Run(start, end - start, rows, positions[kept], tuple(sorted(failed)))

    def _empty(self, columns: tuple[str, ...]) -> Any:
        import pyarrow as pa

        return pa.table({name: pa.array([], self.types[name].arrow) for name in columns})


def _positions(start: int, n: int, odd: dict[int, str]) -> tuple[Any, int]:
    """Where the next n rows that could be read stand, between those that could not, and where the next begins."""
    between = sorted(at for at in odd if at >= start)
    positions = np.arange(start, start + n)
    for at in between:
        positions[positions >= at] += 1
    return positions, int(positions[-1]) + 1 if n else start


def _batches(path: str, columns: tuple[str, ...], odd: dict[int, str]) -> Iterator[Any]:
    """Cells as text; rows that have too few or too many go to `odd`, by their position."""
    import pyarrow as pa

    try:
        yield from (batch for batch in _reader(path, columns, odd) if len(batch))
    except (pa.ArrowInvalid, OSError) as err:
        msg = f"{path!r} cannot be read as CSV: {err}"
        raise UnreadableFile(msg) from err


def _reader(path: str, columns: tuple[str, ...] | None, odd: dict[int, str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    def skip(row: Any) -> str:
        # Arrow counts rows from 1, the header among them
        odd[row.number - 2] = f"it has {row.actual_columns} cells, but the header has {row.expected_columns}"
        return "skip"

    wanted = {} if columns is None else {"include_columns": columns}
    return csv.open_csv(
        path,
        read_options=csv.ReadOptions(use_threads=False, block_size=HEAD),  # rows are numbered only without threads
        parse_options=csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(columns or (), pa.string()), strings_can_be_null=False, **wanted
        ),
    )

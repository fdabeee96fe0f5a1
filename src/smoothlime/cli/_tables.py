"""Tables that commands read: CSV files with a header, and Parquet files."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._core.optional import require
from ..batch.cells import MISSING, MISSING_NUMBER
from ..batch.frames import as_frame, frame_library
from ..batch.source import OTHERS, PARQUET
from ..errors import InvalidArgument
from ..models.problem import as_written
from ..space.tables import as_table
from ._messages import say

NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)", re.IGNORECASE | re.ASCII)
WHOLE = re.compile(r"[+-]?\d+", re.ASCII)

LONGEST_CELL = 2**31 - 1

MOST_IGNORED = 8
"""Columns that a line lists of those that a model does not take."""


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """The rows to explain, the rows that give the standard deviations, and the column names of both."""

    rows: Any
    scales: Any
    names: tuple[str, ...]


def load_tables(
    path: str, background: str | None, columns: tuple[str, ...] = (), of_model: tuple[str, ...] = ()
) -> Tables:
    """The columns of a file that are named, or else that the model names, or else all; and the same of a background.

    Data frames of the first library that is installed of pandas, polars and pyarrow, so that models find columns by
    name; without any of them arrays, which cannot hold text.
    """
    first = _read(path, columns, of_model)
    names = tuple(first) if isinstance(first, dict) else tuple(first.column_names)
    files = [(path, first)]
    if background is not None:
        files.append((background, _renamed(_read(background, names), names)))
    # one type per column in both files: codes that are all digits in one may hold letters in the other
    typed = iter(_typed([each for each in files if isinstance(each[1], dict)], names))
    frames = [_frame(next(typed) if isinstance(read, dict) else read) for _, read in files]
    if background is not None and not all(isinstance(read, dict) for _, read in files):
        _check_kinds(frames[0], frames[1], path, background)
    return Tables(frames[0], frames[-1], names)


def _read(path: str, columns: tuple[str, ...], of_model: tuple[str, ...] = ()) -> Any:
    """The columns wanted: cells of a CSV file by name, or an Arrow table."""
    try:
        is_there, is_folder = Path(path).exists(), Path(path).is_dir()
    except OSError:  # a name that is too long, say
        is_there = is_folder = False
    if is_folder or not is_there:
        msg = f"{path!r} is a folder; give a file in it" if is_folder else f"there is no file {path!r}"
        raise InvalidArgument(msg)
    head = _head(path)
    if head.startswith(PARQUET) or path.lower().endswith((".parquet", ".pq")):
        return _parquet(path, columns, of_model)
    other = next((what for mark, what in OTHERS.items() if head.startswith(mark)), None)
    if other is not None:
        msg = f"{path!r} is {other}; save it as Parquet, or as CSV in UTF-8, which are read"
        raise InvalidArgument(msg)
    return _csv(path, columns, of_model)


def _renamed(read: Any, names: tuple[str, ...]) -> Any:
    """The background's columns under the names of the rows', from which they may differ by blanks."""
    return dict(zip(names, read.values(), strict=True)) if isinstance(read, dict) else read.rename_columns(list(names))


def _head(path: str) -> bytes:
    """The first bytes of a file; nothing of a pipe, which can be read only once."""
    if not Path(path).is_file():
        return b""
    try:
        with open(path, "rb") as file:
            return file.read(max(map(len, OTHERS)))
    except OSError as err:
        msg = f"{path!r} cannot be read: {err.strerror or err}"
        raise InvalidArgument(msg) from err


def _parquet(path: str, columns: tuple[str, ...], of_model: tuple[str, ...]) -> Any:
    """An Arrow table, without the metadata by which pandas would hide columns in an index."""
    parquet: Any = require("pyarrow.parquet", extra="parquet", to="read Parquet files")
    try:
        with parquet.ParquetFile(path) as file:  # read_table would take folders named x=1 for columns
            table = file.read()
        notes = table.schema.pandas_metadata or {}
    except (OSError, ValueError) as err:
        msg = f"{path!r} cannot be read as Parquet: {err}"
        raise InvalidArgument(msg) from err
    # an index is no feature unless it is asked for
    index = [each for each in notes.get("index_columns", []) if isinstance(each, str)]
    usual = [name for name in table.column_names if name not in index]
    wanted = _wanted(path, columns or _of_model(path, of_model, usual), table.column_names, usual)
    return table.select(wanted).replace_schema_metadata(None)


def _csv(path: str, columns: tuple[str, ...], of_model: tuple[str, ...]) -> dict[str, list[str]]:
    """Cells by column."""
    csv.field_size_limit(LONGEST_CELL)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file, strict=True) if line]
    except (csv.Error, UnicodeDecodeError, OSError) as err:
        msg = f"{path!r} cannot be read as CSV: {getattr(err, 'strerror', None) or err}"
        raise InvalidArgument(msg) from err
    if len(lines) < 2:
        msg = f"{path!r} must have a header and at least one row"
        raise InvalidArgument(msg)
    header, rows = lines[0], lines[1:]
    other = next((mark for mark in (";", "\t") if len(header) == 1 and mark in header[0]), None)
    if other is not None:
        msg = f"{path!r} has {other!r} between its columns; save it with commas"
        raise InvalidArgument(msg)
    wanted = _wanted(path, columns or _of_model(path, of_model, header), header, header)
    short = next((i for i, line in enumerate(rows) if len(line) != len(header)), None)
    if short is not None:
        msg = f"{path!r}: row {short} has {len(rows[short])} cells but the header has {len(header)}"
        raise InvalidArgument(msg)
    places = {name: j for j, name in enumerate(header)}
    return {name: [line[places[name]] for line in rows] for name in wanted}


def _wanted(path: str, columns: tuple[str, ...], there: Sequence[str], usual: Sequence[str]) -> list[str]:
    """The columns named, or the usual ones: each of them there once, and with a name."""
    columns, times = nearest(columns, there), Counter(there)
    missing = [name for name in columns if name not in times]
    if missing:
        msg = f"{path!r} has no column {missing[0]!r}; its columns are {', '.join(map(repr, there))}"
        raise InvalidArgument(msg)
    wanted = list(columns or usual)
    unnamed = next((j for j, name in enumerate(wanted) if not name.strip()), None)
    if unnamed is not None:
        end = ", the last," if unnamed == len(wanted) - 1 else ""
        msg = (
            f"{path!r} has no name for column {unnamed}{end} in its header; is it an index, or a comma too many?"
            " Name it, or choose others with --columns"
        )
        raise InvalidArgument(msg)
    twice = next((name for name in wanted if times[name] > 1), None)
    if twice is not None:
        msg = f"{path!r} has two columns named {twice!r}; rename one, or choose others with --columns"
        raise InvalidArgument(msg)
    return wanted


def _of_model(path: str, of_model: tuple[str, ...], there: Sequence[str]) -> tuple[str, ...]:
    """The columns that a model takes, as they are written here; those that it does not take are named."""
    names = nearest(as_written(of_model, tuple(there)), there)
    missing = next((name for name in names if name not in there), None)
    if missing is not None:
        msg = (
            f"{path!r} has no column {missing!r}, which the model takes; its columns are {', '.join(map(repr, there))}"
        )
        raise InvalidArgument(msg)
    ignored = [name for name in there if name not in names] if names else []
    if ignored:
        more = f" and {len(ignored) - MOST_IGNORED} more" if len(ignored) > MOST_IGNORED else ""
        say(f"columns of {path} that the model does not take: {', '.join(ignored[:MOST_IGNORED])}{more}")
    return names


def nearest(wanted: Iterable[str], there: Iterable[str]) -> tuple[str, ...]:
    """Each name as it stands there, or else the only one that differs by blanks around it; itself if there is none.

    >>> nearest(["debt", "age"], ["age", " debt"])
    (' debt', 'age')
    """
    known, alike = set(there), defaultdict[str, list[str]](list)
    for each in there:
        alike[each.strip()].append(each)
    found = ((name, alike.get(name.strip(), [])) for name in wanted)
    return tuple(name if name in known or len(others) != 1 else others[0] for name, others in found)


def _frame(columns: Any) -> Any:
    """Columns by name, or an Arrow table, as the data frame or array that the model gets."""
    import narwhals as nw

    library = frame_library()
    if not isinstance(columns, dict):
        return as_frame(columns)
    if library is not None:
        return nw.from_dict(columns, backend=library).to_native()
    text = next((name for name, cells in columns.items() if not isinstance(cells, np.ndarray)), None)
    if text is not None:
        msg = f"column {text!r} holds text; install pandas or polars to keep it, or choose others with --columns"
        raise InvalidArgument(msg)
    return np.column_stack(list(columns.values()))


def _check_kinds(rows: Any, scales: Any, path: str, background: str) -> None:
    """Refuse columns that hold numbers in one file and something else in the other."""
    one, two = as_table(rows, path), as_table(scales, background)
    assert one is not None
    assert two is not None
    for j, name in enumerate(one.names):
        if one.is_numeric[j] != two.is_numeric[j] and not (_is_empty(one, j) or _is_empty(two, j)):
            kinds = ["numbers" if each.is_numeric[j] else "no numbers" for each in (one, two)]
            msg = (
                f"column {name!r} holds {kinds[0]} in {path!r} but {kinds[1]} in --background {background!r}; save both"
                " with the same type"
            )
            raise InvalidArgument(msg)


def _is_empty(table: Any, j: int) -> bool:
    """Whether all cells of a column are missing: then its type says nothing."""
    return bool(table.frame[:, j].is_null().all())


def _typed(files: list[tuple[str, dict[str, list[str]]]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The columns of each file, each column of the same type in all of them; warns of nearly numeric ones."""
    found: list[dict[str, Any]] = [{} for _ in files]
    for name in names:
        cells = [cell for _, columns in files for cell in columns[name]]
        typed = _column(cells)
        if isinstance(typed, list):
            _warn_of_odd_cells(files, name)
        start = 0
        for into, (_, columns) in zip(found, files, strict=True):
            into[name] = typed[start : start + len(columns[name])]
            start += len(columns[name])
    return found


def _column(cells: list[str]) -> Any:
    """A column as numbers or booleans where all its cells are such or missing, else as text with None for missing.

    Digits with zeros in front, and more of them than a float holds, are codes: they stay text.
    """
    stripped = [None if cell.strip().lower() in MISSING_NUMBER else cell.strip() for cell in cells]
    known = [cell for cell in stripped if cell is not None]
    if known and all(cell.lower() in ("true", "false") for cell in known):
        return [None if cell is None else cell.lower() == "true" for cell in stripped]
    are_whole = bool(known) and all(WHOLE.fullmatch(cell) for cell in known)
    if not all(NUMBER.fullmatch(cell) for cell in known) or (
        are_whole and any(len(cell) > 20 or abs(int(cell)) > 2**53 for cell in known)
    ):
        return [None if cell.strip() in MISSING else cell for cell in cells]
    if are_whole and len(known) == len(cells):
        return np.array([int(cell) for cell in known], dtype=np.int64)
    return np.array([np.nan if cell is None else float(cell) for cell in stripped])


def _warn_of_odd_cells(files: list[tuple[str, dict[str, list[str]]]], name: str) -> None:
    """Name the cell that makes a column of mostly numbers text; codes of digits do not count."""
    odd, numbers, known = None, 0, 0
    for path, columns in files:
        for row, cell in enumerate(map(str.strip, columns[name])):
            if cell.lower() in MISSING_NUMBER:
                continue
            known += 1
            if NUMBER.fullmatch(cell):
                numbers += 1
            elif odd is None and not WHOLE.fullmatch(cell):
                odd = f"{cell!r} at row {row} of {path!r} is none"
    if odd is not None and 2 * numbers > known:
        said = f"column {name!r} is taken as text and held fixed: {numbers:,} of {known:,} cells are numbers, but {odd}"
        say(f"{said}. Mend or empty that cell for slopes of {name!r}")

"""Cells of text files: what is missing, what is a number, and which type a column has by its first cells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidArgument

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"})
"""Cells of a CSV file that are missing values."""

MISSING_NUMBER = frozenset(cell.lower() for cell in MISSING)
"""The same in a column of numbers, in any case; in a column of text `none` may be a word."""

NUMBER = r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity)"
"""Digits with zeros in front are codes."""

WHOLE = r"[+-]?(0|[1-9][0-9]*)"

LARGEST = 2**53
"""Of whole numbers that stay what they are as floating-point numbers."""

MOSTLY = 0.95
"""Share of cells that are numbers from which on the others are taken for mistakes, and not for text."""

_NUMBER = re.compile(NUMBER, re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column, and whether the user said so."""

    arrow: Any
    is_said: bool = False
    is_empty: bool = False
    """Whether no cell spoke for it"""


def infer(cells: Any) -> ColumnType:
    """The type that some cells, an Arrow array of text, speak for: numbers, true and false, else text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    stripped = pc.utf8_trim_whitespace(cells)
    known = pc.filter(stripped, pc.invert(_is_missing(stripped)))
    if not len(known):
        return ColumnType(pa.float64(), is_empty=True)
    if pc.all(pc.is_in(pc.utf8_lower(known), pa.array(["true", "false"]))).as_py():
        return ColumnType(pa.bool_())
    whole = pc.match_substring_regex(known, f"^({WHOLE})$")
    if pc.all(whole).as_py():
        is_code = any(len(cell) > 20 or abs(int(cell)) > LARGEST for cell in pc.unique(known).to_pylist())
        return ColumnType(pa.string() if is_code else pa.int64())
    numbers = pc.match_substring_regex(known, f"^({NUMBER})$", ignore_case=True)
    if pc.mean(numbers.cast(pa.float64())).as_py() < MOSTLY:
        return ColumnType(pa.string())
    is_whole = pc.all(pc.filter(whole, numbers)).as_py()
    return ColumnType(pa.int64() if is_whole else pa.float64())


def typed(cells: Any, name: str, wanted: ColumnType) -> tuple[Any, list[tuple[int, str]]]:
    """A column of text as its type, and which of its cells do not fit, with the reason; those are null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(wanted.arrow):
        is_missing = pc.is_in(pc.utf8_trim_whitespace(cells), pa.array(sorted(MISSING)))
        return pc.if_else(is_missing, pa.scalar(None, pa.string()), cells), []
    stripped = pc.utf8_trim_whitespace(cells)
    stripped = pc.if_else(_is_missing(stripped), pa.scalar(None, pa.string()), stripped)
    try:
        return stripped.cast(wanted.arrow), []
    except pa.ArrowInvalid:
        return _cell_by_cell(stripped.to_pylist(), name, wanted)


def _is_missing(stripped: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.is_in(pc.utf8_lower(stripped), pa.array(sorted(MISSING_NUMBER)))


def _cell_by_cell(cells: list[str | None], name: str, wanted: ColumnType) -> tuple[Any, list[tuple[int, str]]]:
    """The same where some cell does not fit: whole numbers become floats there, unless the user named their type."""
    import pyarrow as pa

    kind = wanted.arrow
    if pa.types.is_integer(kind) and not wanted.is_said:
        is_mixed = any(cell is not None and _NUMBER.fullmatch(cell) and _read(cell, kind) is None for cell in cells)
        kind = pa.float64() if is_mixed else kind
    found = [None if cell is None else _read(cell, kind) for cell in cells]
    failed = [
        (i, f"column {name!r} holds {_shown(cell)}, which is no {kind}")
        for i, (cell, value) in enumerate(zip(cells, found, strict=True))
        if cell is not None and value is None
    ]
    return pa.array(found, kind), failed


def _read(cell: str, kind: Any) -> Any:
    """A cell as a type, None where it does not fit."""
    import pyarrow as pa

    if pa.types.is_floating(kind):
        return float(cell) if _NUMBER.fullmatch(cell) else None
    try:
        return pa.scalar(cell).cast(kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _shown(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else f"{cell[:37]}...")


def read_types(types: Any, names: tuple[str, ...]) -> dict[str, ColumnType]:
    """Types by column, as the user gave them: names that Arrow knows, such as double, int64, string and bool."""
    import pyarrow as pa

    found = {}
    for name, given in (types or {}).items():
        if name not in names:
            msg = f"types names {name!r}, which is not a column; the columns are {', '.join(map(repr, names))}"
            raise InvalidArgument(msg, argument="types")
        try:
            kind = given if isinstance(given, pa.DataType) else pa.type_for_alias(str(given))
            pa.array(["1"]).cast(kind)
        except (ValueError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as err:
            msg = f"types: {name!r} must be double, int64, string or bool, or another of Arrow's; got {given!r}"
            raise InvalidArgument(msg, argument="types") from err
        found[name] = ColumnType(kind, is_said=True)
    return found


def keep_rows(table: Any, failed: list[tuple[int, str]]) -> tuple[Any, Any]:
    """The rows of a table that did not fail, and where they stood in it."""
    kept = np.ones(len(table), dtype=np.bool_)
    kept[[row for row, _ in failed]] = False
    if kept.all():
        return table, np.arange(len(table))
    return table.filter(kept), np.flatnonzero(kept)

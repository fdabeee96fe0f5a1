"""Text in the two published formats, as numbers and labels. What is not understood is an error, with its line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._core.types import Array, Indices
from ..errors import UnreadableFile

Cells = npt.NDArray[np.str_]
MISSING = "?"
ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|\S+)\s+(.+)""", re.IGNORECASE)
NUMERIC = {"numeric", "real", "integer"}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns of text: names (c,) and cells (n, c)."""

    names: tuple[str, ...]
    cells: Cells

    def columns(self, names: Sequence[str]) -> Cells:
        """The cells (n, len(names)) of some columns, in the order asked for."""
        absent = [name for name in names if name not in self.names]
        if absent:
            msg = f"the file has no column {', '.join(absent)}; it has {', '.join(self.names)}"
            raise UnreadableFile(msg)
        return self.cells[:, [self.names.index(name) for name in names]]

    def numbers(self, names: Sequence[str]) -> Array:
        """Columns as float64 (n, len(names)); NaN where a cell is missing."""
        cells = self.columns(names)
        is_missing = cells == MISSING
        try:
            values = np.where(is_missing, "nan", cells).astype(np.float64)
        except ValueError as err:
            msg = f"a cell that must hold a number does not: {err}"
            raise UnreadableFile(msg) from err
        if not np.all(np.isfinite(values) | is_missing):
            row, column = np.argwhere(~np.isfinite(values) & ~is_missing)[0]
            msg = f"cells must be finite; got {str(cells[row, column])!r} in row {row}, column {names[column]}"
            raise UnreadableFile(msg)
        return values

    def codes(self, name: str, meaning: Mapping[str, int]) -> Indices:
        """One column of words (n,), each as the number it stands for."""
        words = self.columns([name])[:, 0]
        unknown = sorted(set(words.tolist()) - set(meaning))
        if unknown:
            msg = f"column {name} must hold only {', '.join(meaning)}; got {unknown[0]!r}"
            raise UnreadableFile(msg)
        return np.array([meaning[word] for word in words.tolist()], dtype=np.intp)


def read_text(content: bytes) -> str:
    """Both files are plain ASCII; anything else is another file."""
    try:
        return content.decode("ascii")
    except UnicodeDecodeError as err:
        msg = f"the file must be plain ASCII text; {err}"
        raise UnreadableFile(msg) from err


def parse_csv(text: str) -> Table:
    """Comma-separated cells under a line of names."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [(reader.line_num, row) for row in reader if row]
    except csv.Error as err:
        msg = f"line {reader.line_num} is not comma-separated text: {err}"
        raise UnreadableFile(msg) from err
    if not lines:
        msg = "the file is empty"
        raise UnreadableFile(msg)
    return _table(lines[0][1], lines[1:])


def parse_arff(text: str) -> Table:
    """The dense form of ARFF with numeric and {nominal} attributes; cells are not quoted."""
    names: list[str] = []
    lines: list[tuple[int, list[str]]] = []
    is_data = False
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip()  # header lines end in LF, data lines in CRLF
        if not line or line.startswith("%"):
            continue
        if is_data:
            lines.append((number, line.split(",")))
        elif line.lower() == "@data":
            is_data = True
        elif line.lower().startswith("@attribute"):
            names.append(_attribute(line, number))
        elif not line.lower().startswith("@relation"):
            msg = f"line {number} of the header is none of @relation, @attribute, @data: {line[:40]!r}"
            raise UnreadableFile(msg)
    if not is_data:
        msg = "the file ends before @data"
        raise UnreadableFile(msg)
    return _table(names, lines)


def check_rows(table: Table, rows: int) -> Table:
    """The table, if it has as many rows as were published."""
    if len(table.cells) != rows:
        msg = f"the file must have {rows} rows; got {len(table.cells)}"
        raise UnreadableFile(msg)
    return table


def _attribute(line: str, number: int) -> str:
    found = ATTRIBUTE.fullmatch(line)
    kind = found.group(2).strip() if found else ""
    if found is None or not (kind.lower() in NUMERIC or (kind.startswith("{") and kind.endswith("}"))):
        msg = f"line {number} must declare a numeric or {{nominal}} attribute; got {line[:40]!r}"
        raise UnreadableFile(msg)
    return found.group(1).strip("'\"")


def _table(names: Sequence[str], lines: Sequence[tuple[int, list[str]]]) -> Table:
    called = tuple(name.strip() for name in names)
    if len(set(called)) != len(called):
        msg = f"column names must differ; got {', '.join(called)}"
        raise UnreadableFile(msg)
    for number, row in lines:
        if len(row) != len(called):
            msg = f"line {number} has {len(row)} cells for {len(called)} columns; was the file cut off?"
            raise UnreadableFile(msg)
    cells = np.array([[cell.strip() for cell in row] for _, row in lines], dtype=np.str_)
    return Table(called, cells.reshape(len(lines), len(called)))

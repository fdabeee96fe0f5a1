"""What commands read: a model by name, rows from a file. Python code runs only where the user names it."""

from __future__ import annotations

import csv
import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .._optional import require
from .._types import Array
from ..errors import InvalidArgument, WrongType


def load_model(spec: str, path: str | None) -> Any:
    """The object that `module:attribute` names; `path` is a folder to look for the module in, besides the usual."""
    module_name, separator, attribute = spec.partition(":")
    if not (separator and module_name and attribute):
        msg = f"MODEL must be module:attribute, such as mypackage.models:classifier; got {spec!r}"
        raise InvalidArgument(msg)
    if path is not None:
        if not Path(path).is_dir():
            msg = f"--path must be a folder; {path!r} is none"
            raise InvalidArgument(msg)
        sys.path.insert(0, str(Path(path).resolve()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as err:
        if err.name != module_name.partition(".")[0]:
            raise
        msg = f"there is no module {module_name!r}; is it installed? --path names a folder to look in"
        raise InvalidArgument(msg) from err
    thing = module
    for name in attribute.split("."):
        if not hasattr(thing, name):
            msg = f"{module_name!r} has no {attribute!r}"
            raise InvalidArgument(msg)
        thing = getattr(thing, name)
    return thing


def load_rows(path: str, columns: tuple[str, ...]) -> tuple[tuple[str, ...], Array]:
    """Names (d,) and rows (r, d) of a CSV file with a header, or of a Parquet file; all columns, or those named."""
    if not Path(path).is_file():
        msg = f"there is no file {path!r}"
        raise InvalidArgument(msg)
    names, cells = _parquet(path) if path.endswith((".parquet", ".pq")) else _csv(path)
    wanted = columns or tuple(names)
    missing = [name for name in wanted if name not in names]
    if missing:
        msg = f"{path!r} has no column {missing[0]!r}; its columns are {', '.join(names)}"
        raise InvalidArgument(msg)
    rows = np.empty((len(cells), len(wanted)))
    for j, name in enumerate(wanted):
        column = [line[names.index(name)] for line in cells]
        try:
            rows[:, j] = column
        except (TypeError, ValueError):
            bad = next(i for i, cell in enumerate(column) if not _is_number(cell))
            msg = f"{path!r} has {column[bad]!r} in column {name!r}, row {bad}: no number. Choose others with --columns"
            raise WrongType(msg) from None
    return wanted, rows


def _csv(path: str) -> tuple[list[str], list[list[Any]]]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        lines = [line for line in csv.reader(file) if line]
    if len(lines) < 2:
        msg = f"{path!r} must have a header and at least one row"
        raise InvalidArgument(msg)
    header, cells = lines[0], lines[1:]
    short = next((i for i, line in enumerate(cells) if len(line) != len(header)), None)
    if short is not None:
        msg = f"{path!r}: row {short} has {len(cells[short])} cells but the header has {len(header)}"
        raise InvalidArgument(msg)
    return header, list(cells)


def _parquet(path: str) -> tuple[list[str], list[list[Any]]]:
    parquet: Any = require("pyarrow.parquet", extra="parquet", to="read Parquet files")
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as err:
        msg = f"{path!r} cannot be read as Parquet: {err}"
        raise InvalidArgument(msg) from err
    columns = [table[name].to_pylist() for name in table.column_names]
    return list(table.column_names), [list(line) for line in zip(*columns, strict=True)]


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True

"""What commands read: a model by name, rows from a file. Python code runs only where the user names it."""

from __future__ import annotations

import csv
import importlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from .._optional import require
from .._validate import check_count
from ..errors import InvalidArgument
from ..models import Model, as_asked
from ..neighbourhood import Neighbourhood
from ..tables import as_table

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"})
"""Cells of a CSV file that stand for no value."""

NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)", re.IGNORECASE | re.ASCII)
WHOLE = re.compile(r"[+-]?\d+", re.ASCII)

Command = TypeVar("Command", bound=Callable[..., Any])


def subject_options(table: str, *, most: int | None) -> Callable[[Command], Command]:
    """The options of every command that explains a model around the rows of a table, called `table` in their help."""
    how_many: dict[str, Any] = {"help": "Use at most so many rows; all of them by default."}
    if most is not None:
        how_many = {"help": "Use at most so many rows.", "default": most, "show_default": True}
    options = (
        click.option("--path", help="Folder in which to look for the model's module."),
        click.option("--columns", help="Columns to use, separated by commas; all of them by default."),
        click.option("--rows", "most", type=int, **how_many),
        click.option("--target", help="Output to explain: a name, a position, or 'predicted'."),
        click.option(
            "--output",
            type=click.Choice(["probability", "margin"]),
            default="probability",
            show_default=True,
            help="What of a classifier to explain; other models are taken as they are.",
        ),
        click.option(
            "--sigma", type=float, default=0.5, show_default=True, help="In standard deviations of the table's columns."
        ),
        click.option("--background", help=f"File whose columns give the standard deviations instead of {table}'s."),
        click.option("--raw-units", is_flag=True, help="Take --sigma in the units of the features instead."),
        click.option("--fixed", help="Columns to hold fixed, separated by commas, besides those that hold no numbers."),
    )

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What a command explains, read and checked: all that `explain` needs to know about it."""

    model: Any
    adapted: Model
    """The same as smoothlime asks it"""
    rows: Any
    around: Neighbourhood
    target: Any


def ask(
    model: str,
    table: str,
    *,
    path: str | None,
    columns: str | None,
    most: int | None,
    target: str | None,
    output: str,
    sigma: float,
    background: str | None,
    raw_units: bool,
    fixed: str | None,
) -> Asked:
    """The model that is named, the rows of a file, and a neighbourhood in units of its columns or of another's."""
    if raw_units and background is not None:
        msg = "give --background or --raw-units, not both: each says what one unit of --sigma is"
        raise InvalidArgument(msg)
    everything = load_table(table, wanted_columns(columns))
    read = as_table(everything)
    names = wanted_columns(columns) if read is None else read.names
    scales = everything if background is None else load_table(background, names)
    rows = everything if most is None else everything[: check_count(most, "--rows")]
    loaded = load_model(model, path)
    adapted = as_asked(loaded, output)
    held = wanted_columns(fixed, "--fixed")
    if not raw_units and len(scales) < 2:
        what = f"--background {background!r}" if background is not None else f"{table!r}"
        msg = (
            f"{what} has one row, which does not show how features vary. Give --background with more rows, or --sigma"
            " in the units of the features with --raw-units"
        )
        raise InvalidArgument(msg)
    around = Neighbourhood(sigma, fixed=held) if raw_units else Neighbourhood.from_data(scales, sigma, fixed=held)
    return Asked(loaded, adapted, rows, around, target_of(target, adapted.outputs))


def check_file(path: str | None, endings: tuple[str, ...], option: str, *, read: tuple[str | None, ...]) -> None:
    """Refuse a file that could not be written, or that is itself read: asked before the work, not after it."""
    from ..io.files import check_writable

    if path is None:
        return
    if Path(path).suffix.lower() not in endings:
        msg = f"{option} must end in {' or '.join(endings)}; got {path!r}"
        raise InvalidArgument(msg)
    check_writable(path)
    if Path(path).exists() and any(each and Path(each).exists() and Path(each).samefile(path) for each in read):
        msg = f"{option} {path!r} is a file that is read from, and would be lost; choose another name"
        raise InvalidArgument(msg)


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
        if err.name == module_name.partition(".")[0]:
            msg = f"there is no module {module_name!r}; is it installed? --path names a folder to look in"
        else:
            msg = f"MODEL: importing {module_name!r} failed: {err}"
        raise InvalidArgument(msg) from err
    except (Exception, SystemExit) as err:
        msg = f"MODEL: importing {module_name!r} failed: {type(err).__name__}: {err}"
        raise InvalidArgument(msg) from err
    thing = module
    for name in attribute.split("."):
        try:
            thing = getattr(thing, name)  # asked for once: a module may train a model when it is
        except AttributeError as err:
            msg = f"{module_name!r} has no {attribute!r}"
            raise InvalidArgument(msg) from err
        except (Exception, SystemExit) as err:
            msg = f"MODEL: getting {attribute!r} from {module_name!r} failed: {type(err).__name__}: {err}"
            raise InvalidArgument(msg) from err
    return thing


def load_table(path: str, columns: tuple[str, ...] = ()) -> Any:
    """The columns of a CSV file with a header, or of a Parquet file; all of them, or those named, in that order.

    A data frame of the first library that is installed of pandas, polars and pyarrow, so that models find columns by
    name; without any of them an array, which cannot hold text.
    """
    try:
        is_there, is_folder = Path(path).exists(), Path(path).is_dir()
    except OSError:  # a name that is too long, say
        is_there = is_folder = False
    if is_folder or not is_there:
        msg = f"{path!r} is a folder; give a file in it" if is_folder else f"there is no file {path!r}"
        raise InvalidArgument(msg)
    return _parquet(path, columns) if path.lower().endswith((".parquet", ".pq")) else _csv(path, columns)


def _parquet(path: str, columns: tuple[str, ...]) -> Any:
    import narwhals as nw

    parquet: Any = require("pyarrow.parquet", extra="parquet", to="read Parquet files")
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as err:
        msg = f"{path!r} cannot be read as Parquet: {err}"
        raise InvalidArgument(msg) from err
    wanted = _wanted(path, columns, table.column_names)
    return nw.from_arrow(table.select(wanted), backend=_library() or "pyarrow").to_native()


def _csv(path: str, columns: tuple[str, ...]) -> Any:
    found = _read_csv(path)
    kept = {name: found[name] for name in _wanted(path, columns, list(found))}
    library = _library()
    if library is not None:
        import narwhals as nw

        return nw.from_dict(kept, backend=library).to_native()
    text = next((name for name, cells in kept.items() if not isinstance(cells, np.ndarray)), None)
    if text is not None:
        msg = f"{path!r} has text in column {text!r}; install pandas or polars to keep it, or choose with --columns"
        raise InvalidArgument(msg)
    return np.column_stack(list(kept.values()))


def _read_csv(path: str) -> dict[str, Any]:
    """Columns by name: numbers (r,), NaN where missing, or lists of text."""
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
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        msg = f"{path!r} has two columns named {twice!r}"
        raise InvalidArgument(msg)
    short = next((i for i, line in enumerate(rows) if len(line) != len(header)), None)
    if short is not None:
        msg = f"{path!r}: row {short} has {len(rows[short])} cells but the header has {len(header)}"
        raise InvalidArgument(msg)
    return {name: _typed([line[j] for line in rows]) for j, name in enumerate(header)}


def _typed(cells: list[str]) -> Any:
    """A column as what all its cells are, or missing: numbers, yes or no, else text with None for what is missing.

    Digits that stand for a name stay text: those with zeros in front, and those too long for a number to hold.
    """
    stripped = [None if cell.strip() in MISSING else cell.strip() for cell in cells]
    known = [cell for cell in stripped if cell is not None]
    if known and all(cell.lower() in ("true", "false") for cell in known):
        return [None if cell is None else cell.lower() == "true" for cell in stripped]
    if any(not NUMBER.fullmatch(cell) for cell in known):
        return [None if cell is None else cells[i] for i, cell in enumerate(stripped)]
    if known and all(WHOLE.fullmatch(cell) for cell in known):
        if any(len(cell) > 20 or abs(int(cell)) > 2**53 for cell in known):
            return [None if cell is None else cells[i] for i, cell in enumerate(stripped)]
        if len(known) == len(cells):
            return np.array([int(cell) for cell in known], dtype=np.int64)
    return np.array([np.nan if cell is None else float(cell) for cell in stripped])


def _library() -> Any:
    """The data frame library to hand tables over in."""
    return next((each for each in ("pandas", "polars", "pyarrow") if find_spec(each)), None)


def _wanted(path: str, columns: tuple[str, ...], there: list[str]) -> list[str]:
    missing = [name for name in columns if name not in there]
    if missing:
        msg = f"{path!r} has no column {missing[0]!r}; its columns are {', '.join(map(repr, there))}"
        raise InvalidArgument(msg)
    return list(columns) or there


def wanted_columns(text: str | None, option: str = "--columns") -> tuple[str, ...]:
    """Names separated by commas."""
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    if "" in names:
        msg = f"{option} must be names separated by commas; got {text!r}"
        raise InvalidArgument(msg)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        msg = f"{option} names {twice!r} twice"
        raise InvalidArgument(msg)
    return names


def target_of(text: str | None, outputs: tuple[str, ...]) -> Any:
    """An output of that name if there is one, else the position that digits give."""
    is_position = text is not None and text not in outputs and text.isascii() and text.isdigit()
    return int(text) if is_position else text  # type: ignore[arg-type]  # text is not None there

"""What commands read: a model by name, rows from a file. Python code runs only where the user names it."""

from __future__ import annotations

import csv
import dataclasses
import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from .._core.optional import require
from .._core.validate import check_count
from ..errors import InvalidArgument
from ..models import Model, as_asked
from ..space.background import without_data
from ..space.neighbourhood import Neighbourhood
from ..space.tables import as_table
from ._models import ModelOptions
from ._tables import Tables, load_tables, nearest


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What a command explains, read and checked."""

    model: Any
    adapted: Model
    """The same model behind its adapter"""
    rows: Any
    neighbourhood: Neighbourhood
    target: Any
    data: Any
    """The data frame that gives the scales; None where nothing does, or where no library of frames is there"""
    scale: Any
    """What --scale says, of this data"""
    fixed: tuple[str, ...]
    """What --fixed names"""


@dataclass(frozen=True, slots=True)
class ProblemOptions:
    """Arguments and options that say what to explain, as they were typed."""

    model: str
    table: str
    path: str | None
    trust: tuple[str, ...]
    trust_types: tuple[str, ...]
    columns: str | None
    most: int | None
    target: str | None
    output: Any
    sigma: float
    background: str | None
    raw_units: bool
    fixed: str | None
    scale: str

    @property
    def models(self) -> ModelOptions:
        """How models are read."""
        return ModelOptions(self.path, self.trust, self.trust_types)

    def read(self) -> Inputs:
        """The model read, then the rows that it takes, and the neighbourhood in the units asked for."""
        if self.raw_units and self.background is not None:
            msg = "give --background or --raw-units, not both: each says what one unit of --sigma is"
            raise InvalidArgument(msg)
        columns, most = split_names(self.columns), None if self.most is None else check_count(self.most, "rows")
        model = self.models.load(self.model)
        adapted = as_asked(model, self.output)
        tables = load_tables(self.table, self.background, columns, getattr(adapted, "feature_names", None) or ())
        rows = tables.rows[:most]
        neighbourhood = self._neighbourhood(tables)
        data = None if self.raw_units or as_table(tables.scales) is None else tables.scales
        target = target_of(self.target, adapted.outputs)
        fixed = nearest(split_names(self.fixed, "--fixed"), tables.names)
        return Inputs(model, adapted, rows, neighbourhood, target, data, self.scale_of(tables), fixed)

    def _neighbourhood(self, tables: Tables) -> Neighbourhood:
        fixed = nearest(split_names(self.fixed, "--fixed"), tables.names)
        scale = self.scale_of(tables)
        if self.raw_units:
            known = without_data(scale, tables.names, len(tables.names))
            found = Neighbourhood(self.sigma, fixed=fixed, background=known)
        elif (n := len(tables.scales)) < 2:
            what = repr(self.table) if self.background is None else f"--background {self.background!r}"
            msg = (
                f"{what} has {'one row, which does' if n else 'no rows, which do'} not show how features vary."
                " Give --background with more rows, or --sigma in the units of the features with --raw-units"
            )
            raise InvalidArgument(msg)
        else:
            found = Neighbourhood.from_data(tables.scales, self.sigma, fixed=fixed, scale=scale)
        return dataclasses.replace(found, columns=tables.names)  # arrays have no column names of their own

    def scale_of(self, tables: Tables) -> str | dict[Any, str]:
        """One word for all columns, or one for each of some: by name, or by position in arrays, which have none."""
        if "=" not in self.scale:
            return self.scale
        columns, is_array = tables.names, as_table(tables.scales) is None
        pairs = [each.rpartition("=") for each in split_names(self.scale, "--scale")]
        named = nearest(tuple(name for name, _, _ in pairs), columns)
        places = {name: j for j, name in enumerate(columns)}
        unknown = [name for name in named if name not in places]
        if unknown:
            msg = f"--scale names {unknown[0]!r}, which is not a column; the columns are {', '.join(columns)}"
            raise InvalidArgument(msg)
        return {places[name] if is_array else name: word for name, (_, _, word) in zip(named, pairs, strict=True)}


MODEL_OPTIONS = (
    click.option("--path", help="Folder in which to look for the model's module."),
    click.option(
        "--trust",
        multiple=True,
        metavar="FILE",
        help="A model file whose code may run: a pickle, or what joblib or torch wrote. Others are read without running"
        " code, and need no trust.",
    ),
    click.option(
        "--trust-type",
        "trust_types",
        multiple=True,
        metavar="NAME",
        help="A type that a skops file may hold besides those that are known, such as mypackage.Scaler.",
    ),
)
"""How a command is told what models may do."""


def problem_options(table: str, *, most: int | None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds the options of `ProblemOptions` to a command, which gets them as `problem`; help calls its rows `table`."""
    how_many: dict[str, Any] = {"help": "Most rows to use; all of them by default."}
    if most is not None:
        how_many = {"help": "Most rows to use.", "default": most, "show_default": True}
    options = (
        *MODEL_OPTIONS,
        click.option(
            "--columns",
            help="Columns to use, separated by commas; by default those that the model knows by name, or else all.",
        ),
        click.option("--rows", "most", type=int, **how_many),
        click.option("--target", help="Output to explain: a name, a position, or 'predicted'."),
        click.option(
            "--output",
            type=click.Choice(["probability", "margin"]),
            default="probability",
            show_default=True,
            help="What to explain of a classifier; margin is also the score of a boosted model or an outlier detector.",
        ),
        click.option(
            "--sigma",
            type=float,
            default=0.5,
            show_default=True,
            help="Width of the neighbourhood, in standard deviations of the table's columns.",
        ),
        click.option("--background", help=f"File whose columns give the standard deviations instead of {table}'s."),
        click.option("--raw-units", is_flag=True, help="--sigma is in the units of the features instead."),
        click.option(
            "--scale",
            default="linear",
            show_default=True,
            help="Scale of the steps: linear, log, ranks or auto, or by column: age=log,visits=ranks."
            " Ranks are those in --background, else in the table.",
        ),
        click.option("--fixed", help="Columns to hold fixed, separated by commas, besides those that hold no numbers."),
    )

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_problem(**given: Any) -> None:
            problem = ProblemOptions(**{each.name: given.pop(each.name) for each in dataclasses.fields(ProblemOptions)})
            command(problem=problem, **given)

        for option in reversed(options):
            with_problem = option(with_problem)
        return with_problem

    return add


def check_file(path: str | None, endings: tuple[str, ...], option: str, *, read: tuple[str | None, ...]) -> None:
    """Refuse a file that cannot be written, or that is read from, before the work begins."""
    from ..io.files import check_writable

    if path is None:
        return
    if Path(path).suffix.lower() not in endings:
        msg = f"{option} must end in {' or '.join(endings)}; got {path!r}"
        raise InvalidArgument(msg)
    check_writable(path)
    if Path(path).suffix.lower() == ".parquet":
        require("pyarrow.parquet", extra="parquet", to="write Parquet files")
    if Path(path).exists() and any(each and Path(each).exists() and Path(each).samefile(path) for each in read):
        msg = f"{option} {path!r} is a file that is read from, and would be lost; choose another name"
        raise InvalidArgument(msg)


def split_names(text: str | None, option: str = "--columns") -> tuple[str, ...]:
    """Names separated by commas; a name that holds a comma stands in double quotes."""
    try:
        lines = csv.reader([text or ""], skipinitialspace=True, strict=True)
        names = () if text is None else tuple(name.strip() for name in next(lines))
    except csv.Error:
        names = ("",)
    if text is not None and (not names or "" in names):
        msg = f"{option} must be names separated by commas, in double quotes where they hold one; got {text!r}"
        raise InvalidArgument(msg)
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        msg = f"{option} names {twice!r} twice"
        raise InvalidArgument(msg)
    return names


def target_of(text: str | None, outputs: tuple[str, ...]) -> Any:
    """The text if it names an output or a class; else digits are a position."""
    names = (*outputs, getattr(outputs, "against", None))
    is_position = text is not None and text not in names and text.isascii() and text.isdigit()
    return int(text) if is_position else text  # type: ignore[arg-type]  # text is not None there

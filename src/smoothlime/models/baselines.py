"""Baselines: rows that contributions are measured from, one for all rows, one for each, or some of a background."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Flags, Indices
from .._core.validate import as_float_array, check_rows
from ..errors import InvalidArgument, WrongType
from ..space.categories import Cells, cells_of, plain
from ..space.row_scales import RowScales
from ..space.tables import Table, as_table
from .held_baselines import Held, held_of_background, read_held, usable_columns
from .inputs import read_shaped
from .problem import Problem

MOST = 100
"""Rows of a background that are taken, where no baseline is given."""

EITHER = (
    "contributions are measured from somewhere: give baseline= (one row, or one for each row of X), or background="
    " (data, of which 100 rows are taken)"
)


@dataclass(frozen=True, slots=True, eq=False)
class Baselines:
    """m rows to measure from, for all rows alike; or one for each row."""

    x: Array
    """(m, d) as numbers; NaN in columns in which a baseline has the value of the row, and where it holds no number"""
    scores: Array
    """(m, d) the same in scores"""
    is_by_row: bool
    positions: Indices | None
    """(m,) in the background they come from"""
    alike: tuple[str, ...]
    """Columns in which they take the value of the row, though the background has others"""
    held: Held

    def of(self, row: int) -> Indices:
        """Positions of those that a row is measured from."""
        return np.array([row]) if self.is_by_row else np.arange(len(self.x))

    def starts(self, problem: Problem, row: int, free: Indices) -> Array:
        """(m', f) perturbed features of the baselines of a row, in its own scores."""
        which = self.of(row)
        found = self.scores[np.ix_(which, free)]
        scales = problem.scales
        for j, scale in {} if scales is None else scales.own.get(row, {}).items():
            found[:, free == j] = scale.scores(self.x[which, j])[:, None]
        return found


def read_baselines(baseline: Any, background: Any, problem: Problem, X: Any, seed: int) -> Baselines:
    """Baselines as given, or 100 rows of the background."""
    if baseline is None and background is None:
        raise InvalidArgument(EITHER, argument="baseline")
    if baseline is None:
        return _of_background(background, problem, X, seed)
    x, told = _read(baseline, problem)
    if len(x) not in (1, len(problem.x)):
        rows = len(problem.x)
        msg = (
            f"baseline has {len(x)} rows; give one row for all, or one for each of the {rows} rows of X."
            " To measure from the mean of several, give them as background"
        )
        raise InvalidArgument(msg, argument="baseline")
    _check_gaps(x, problem)
    columns = [j for j in _held_columns(problem) if told[j]]
    is_by_row = len(x) > 1
    held = read_held(columns, _cells(baseline, x, problem), len(x), as_table(X), problem, is_by_row=is_by_row)
    return Baselines(x, _scores(x, problem, "baseline"), is_by_row, None, (), held)


def _of_background(background: Any, problem: Problem, X: Any, seed: int) -> Baselines:
    """Rows without gaps in what is perturbed and in what is held, chosen by the seed."""
    rows, _ = read_shaped(background, "background")
    table = as_table(rows, "background")
    is_named = table is not None and set(problem.feature_names) <= set(table.names)
    x = check_rows(rows, "background", finite=False) if table is None else table.numbers(
        problem.feature_names if is_named else None
    )  # fmt: skip
    free = problem.factor.free
    whole = np.flatnonzero(np.isfinite(x[:, free]).all(axis=1))
    if not len(whole):
        msg = (
            "no row of the background has a value in every feature that is perturbed, so none can be a baseline."
            " Give baseline=, or impute the background"
        )
        raise InvalidArgument(msg, argument="background")
    cells = cells_of(x) if table is None else _by_position(table, problem.feature_names if is_named else None)
    given = _held_columns(problem)
    usable = usable_columns(given, cells, as_table(X), problem)
    has_gap = np.array(
        [any(each is None for each in column) for column in zip(*(cells(j) or () for j in usable), strict=True)]
    )
    if has_gap.any():
        full = whole[~has_gap[whole]]
        if not len(full):
            usable = []
        whole = full if len(full) else whole
    chosen = whole
    if len(whole) > MOST:
        chosen = np.sort(np.random.default_rng([seed, MOST]).choice(whole, MOST, replace=False))
    held = held_of_background(usable, cells, chosen, as_table(X), problem)
    kept = np.full((len(chosen), x.shape[1]), np.nan)
    for columns in (free, held.columns):
        kept[:, columns] = x[np.ix_(chosen, columns)]
    varies = [j for j in given if j not in usable and len(set(map(str, cells(j) or ()))) > 1]
    alike = tuple(problem.feature_names[j] for j in varies)
    return Baselines(kept, _scores(kept, problem, "background"), False, chosen, alike, held)


def _held_columns(problem: Problem) -> list[int]:
    return np.delete(np.arange(problem.x.shape[1]), problem.factor.free).tolist()


def _by_position(table: Table, names: Sequence[str] | None) -> Cells:
    """Columns of a table in the order of the features."""
    places = range(len(table.names)) if names is None else [table.names.index(name) for name in names]
    return lambda j: table.cells(places[j])


def _cells(baseline: Any, x: Array, problem: Problem) -> Cells:
    """What a baseline holds, column by column."""
    if isinstance(baseline, Mapping) or _is_series(baseline):
        by_name = {str(name): each for name, each in dict(baseline.items()).items()}
        return lambda j: [plain(by_name[problem.feature_names[j]])]
    table = as_table(baseline, "baseline")
    return cells_of(x) if table is None else lambda j: table.cells(table.names.index(problem.feature_names[j]))


def _read(baseline: Any, problem: Problem) -> tuple[Array, Flags]:
    """(m, d) numbers, and which columns (d,) it says anything of."""
    names, d = problem.feature_names, problem.x.shape[1]
    if isinstance(baseline, Mapping) or _is_series(baseline):
        return _by_name(dict(baseline.items()), problem)
    table = as_table(baseline, "baseline")
    if table is None:
        wanted = problem.input_shape
        is_one = bool(wanted) and tuple(getattr(baseline, "shape", ())) == wanted
        flat, shape = read_shaped(baseline[None] if is_one else baseline, "baseline")
        if shape and shape != wanted:
            msg = f"baseline has rows of shape {shape} and X of shape {wanted or 'one axis'}; give both alike"
            raise InvalidArgument(msg, argument="baseline")
        x = check_rows(flat, "baseline", finite=False)
        if x.shape[1] != d:
            msg = f"baseline has {x.shape[1]} features and X has {d}; give both alike"
            raise InvalidArgument(msg, argument="baseline")
        return x, np.ones(d, dtype=np.bool_)
    missing = [names[j] for j in problem.factor.free if names[j] not in table.names]
    if missing:
        msg = f"baseline has no column {missing[0]!r}, which is perturbed; its columns are {', '.join(table.names)}"
        raise InvalidArgument(msg, argument="baseline")
    told = np.array([name in table.names for name in names])
    x = np.full((len(table), d), np.nan)
    x[:, told] = table.numbers([name for name in names if name in table.names])
    return x, told


def _by_name(given: dict[Any, Any], problem: Problem) -> tuple[Array, Flags]:
    names = problem.feature_names
    by_name = {str(name): each for name, each in given.items()}
    unknown = [name for name in by_name if name not in names]
    if unknown:
        msg = f"baseline names {unknown[0]!r}, which is not a feature; the features are {', '.join(names)}"
        raise InvalidArgument(msg, argument="baseline")
    x, told = np.full((1, len(names)), np.nan), np.array([name in by_name for name in names])
    for j in map(int, problem.factor.free):
        if not told[j]:
            msg = f"baseline has no {names[j]!r}; it must cover every feature that is perturbed"
            raise InvalidArgument(msg, argument="baseline")
    for j in map(int, np.flatnonzero(told)):
        try:
            x[0, j] = as_float_array(by_name[names[j]], "baseline")
        except (TypeError, ValueError):  # ours are among them
            if j in problem.factor.free:
                msg = f"baseline must hold numbers; got {by_name[names[j]]!r} for {names[j]!r}"
                raise WrongType(msg, argument="baseline") from None
    return x, told


def _is_series(given: Any) -> bool:
    """A pandas series labelled with names, such as the mean of a table."""
    is_series = type(given).__name__ == "Series" and callable(getattr(given, "items", None))
    return is_series and all(isinstance(each, str) for each in getattr(given, "index", (0,)))


def _check_gaps(x: Array, problem: Problem) -> None:
    """Refuse ±inf, and values that are missing on one side only."""
    free = problem.factor.free
    if np.isinf(x[:, free]).any():
        row, i = np.argwhere(np.isinf(x[:, free]))[0]
        name = problem.feature_names[free[i]]
        msg = f"baseline must be finite; got {x[row, free[i]]} at row {row}, feature {name!r}"
        raise InvalidArgument(msg, argument="baseline")
    differs = np.isnan(x[:, free]) != np.isnan(problem.x[:, free])
    if not differs.any():
        return
    row, i = np.argwhere(differs)[0]
    name = problem.feature_names[free[i]]
    here, there = ("X", "its baseline") if np.isnan(problem.x[row, free[i]]) else ("its baseline", "X")
    msg = (
        f"row {row} has no value at {name!r} in {here}, but one in {there}: there is no line between them."
        " Impute the gap, best in a pipeline with the model, or leave it a gap in both"
    )
    raise InvalidArgument(msg, argument="baseline")


def _scores(x: Array, problem: Problem, argument: str) -> Array:
    """(m, d) on the scales of the rows."""
    if problem.scales is None:
        return x
    try:
        found = RowScales.of(problem.scales.scales, x, problem.feature_names)
    except InvalidArgument as err:
        msg = f"{argument} does not go with the scales of the rows: {err}"
        raise InvalidArgument(msg, argument=argument) from err
    if found.own:
        row, own = next(iter(found.own.items()))
        j = next(iter(own))
        low, high = problem.scales.ends(j)
        msg = (
            f"baseline has {x[row, j]:g} at {problem.feature_names[j]!r}, and the background goes from {low:g} to"
            f" {high:g}: ranks know nothing beyond. Give a baseline within the background, or another scale"
        )
        raise InvalidArgument(msg, argument="baseline")
    return found.scores(x)

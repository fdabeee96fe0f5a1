"""Where curves go: the values of a feature, the levels of a category, and rows that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._core.types import Array
from .._core.validate import as_float_array, check_count, check_position, check_rows, is_iterable
from ..errors import InvalidArgument, WrongType
from ..models.inputs import read_shaped
from ..models.problem import Problem
from ..models.switchable import Switchable
from ..space.level_rows import with_levels
from ..space.tables import Table, as_table
from .route import prepare

REACH = 2.0
"""Standard deviations on either side of the rows, where no data says how far a feature goes."""

WIDEST = 2.5
"""Normal scores on either side of the middle: beyond are the outermost percent of the data."""


def position_of(feature: Any, problem: Problem) -> int:
    """Where the feature is."""
    names = problem.feature_names
    if isinstance(feature, str):
        if feature not in names:
            msg = f"feature names {feature!r}, which is not a feature; the features are {', '.join(names)}"
            raise InvalidArgument(msg, argument="feature")
        j = names.index(feature)
    else:
        j = check_position(feature, "feature")
        if not 0 <= j < len(names):
            msg = f"feature must be a name, or a position from 0 to {len(names) - 1}; got {feature!r}"
            raise InvalidArgument(msg, argument="feature")
    return j


def check_numbers(problem: Problem, j: int) -> None:
    """Refuse dates, and rows with a gap at the feature."""
    if np.isnan(problem.x[:, j]).any():
        row = int(np.isnan(problem.x[:, j]).argmax())
        msg = (
            f"feature {problem.feature_names[j]!r} holds no number in row {row}; a curve goes along numbers, or from"
            " level to level of a category"
        )
        raise InvalidArgument(msg, argument="feature")


def grid_of(grid: Any, problem: Problem, j: int) -> Array:
    """Values of the feature, increasing."""
    if isinstance(grid, int | np.integer) and not isinstance(grid, bool):
        return _even(check_count(grid, "grid", at_least=2), problem, j)
    values = as_float_array(grid, "grid", allow_bools=False)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        msg = f"grid must be a number of values, or a list of finite numbers; got {grid!r}"
        raise InvalidArgument(msg, argument="grid")
    return np.unique(values)


def _even(count: int, problem: Problem, j: int) -> Array:
    """So many values, evenly spaced in what steps of the feature are taken in."""
    around, x = problem.neighbourhood, problem.x[:, j]
    background = around.background
    scale = None if background is None else background.scales[j]
    ends = np.array([np.nan, np.nan]) if background is None else np.array([background.least[j], background.largest[j]])
    free = np.flatnonzero(problem.factor.free == j)
    if np.isnan(ends).any():
        if not len(free):
            msg = (
                f"feature {problem.feature_names[j]!r} is held fixed, and nothing says how far it goes."
                " Give a background, or the values: grid=[...]"
            )
            raise InvalidArgument(msg, argument="grid")
        step = REACH * float(problem.factor.std[free[0]])
        at = x if scale is None else scale.scores(x)
        ends = np.array([at.min() - step, at.max() + step])
        return (
            np.linspace(ends[0], ends[1], count)
            if scale is None
            else np.unique(scale.values(np.linspace(ends[0], ends[1], count)))
        )
    if scale is None:
        return np.linspace(ends[0], ends[1], count)
    scores = scale.scores(ends)
    if scale.word == "ranks":
        scores = np.clip(scores, -WIDEST, WIDEST)
    return np.unique(scale.values(np.linspace(scores[0], scores[1], count)))


def rows_at(x: Any, j: int, grid: Array) -> Any:
    """Every row once for each value of the grid, in a table of the same kind."""
    table = as_table(x, "x")
    if table is not None:
        return _table_at(table, j, grid)
    flat, shape = read_shaped(x, "x")
    rows = check_rows(flat, "x", finite=False)
    moved = np.repeat(rows, len(grid), axis=0)
    moved[:, j] = np.tile(grid, len(rows))
    return moved.reshape(-1, *shape) if shape else moved


def _table_at(table: Table, j: int, grid: Array) -> Any:
    import narwhals as nw

    if not table.dtypes[j].is_numeric():
        msg = f"a curve goes along numbers, and column {table.names[j]!r} holds none"
        raise WrongType(msg)
    frame = nw.maybe_reset_index(table.frame[np.repeat(np.arange(len(table)), len(grid)).tolist()])
    cells = np.tile(grid, len(table))
    column = nw.new_series(frame.columns[j], cells, nw.Float64(), backend=frame.implementation)
    is_whole = table.dtypes[j].is_integer() and bool((grid == np.rint(grid)).all())
    return frame.with_columns(column.cast(table.dtypes[j]) if is_whole else column).to_native()


def category_of(model: Any, x: Any, asked: Mapping[str, Any], name: str, grid: Any) -> Switchable:
    """A column of text or the like, with the levels asked for or those of the background."""
    is_listed = not isinstance(grid, int | np.integer)
    if not is_listed and asked["background"] is None:
        msg = f"feature {name!r} is a category whose levels are not known. Give background=, or list them: grid=[...]"
        raise InvalidArgument(msg, argument="grid")
    if is_listed and (isinstance(grid, str) or not is_iterable(grid) or not len(grid)):
        msg = f"grid must list levels of {name!r}; got {grid!r}"
        raise InvalidArgument(msg, argument="grid")
    try:
        found = prepare(model, x, **asked, switches={name: list(grid)} if is_listed else [name])
    except InvalidArgument as err:
        if err.argument != "switches":
            raise
        msg = f"grid: {str(err).removeprefix('switches ')}"
        raise InvalidArgument(msg, argument="grid") from err
    return found.switchable[0]


def at_levels(table: Table, j: int, cells: Sequence[Any]) -> Any:
    """Every row once with each level in a column."""
    longer = with_levels(table, {j: cells})
    codes = np.tile(np.repeat(np.arange(float(len(table))), len(cells))[:, None], len(table.names))
    codes[:, j] = np.tile(len(table) + np.arange(len(cells)), len(table))
    return longer.to_frame(codes, np.zeros(0, dtype=np.intp))

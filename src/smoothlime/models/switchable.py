"""Categories of a problem: what its rows must hold to have another level, in every form that models and forms take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .._core.types import Array, Indices
from ..space.categories import Category, Cells, Columns, Kind, cells_of, check_switches, find_categories, kinds_of
from ..space.level_rows import with_levels
from ..space.tables import Table
from .codes import as_columns, check_levels


@dataclass(frozen=True, slots=True, eq=False)
class Switchable:
    """A category of the rows that are explained."""

    category: Category
    own: Indices
    """(r,) the level of each row: a position among its levels and, behind them, `others`"""
    others: tuple[str, ...]
    codes: Array
    """(levels, columns) what rows to perturb hold at each level: numbers, or positions in a table"""
    numbers: Array
    """(levels, columns) the same as numbers; NaN for what is none"""


def categories_among(
    names: tuple[str, ...],
    free: Indices,
    *,
    table: Table | None,
    background: Table | Array | None,
    declared: Sequence[int | str],
    switches: Any,
    one_hot: Any,
) -> tuple[Category, ...]:
    """The categories among the columns that are not free, as far as the background or the caller knows their levels."""
    switches = check_switches(switches)
    if switches is False:
        return ()
    if len(free) == len(names) and switches is True and one_hot in ("auto", None):
        return ()  # nothing is held, and no column was named
    held = frozenset(range(len(names))) - set(map(int, free))

    places = {name: k for k, name in enumerate(background.names)} if isinstance(background, Table) else {}
    of_array = None if background is None or isinstance(background, Table) else cells_of(as_columns(background))

    @cache
    def seen(j: int) -> Sequence[Any] | None:
        if isinstance(background, Table):
            return background.cells(places[names[j]]) if names[j] in places else None
        return None if of_array is None else of_array(j)

    kinds: list[Kind] = ["numbers"] * len(names) if table is None else kinds_of(table)
    known = set(declared)
    called = frozenset(j for j, name in enumerate(names) if j in known or name in known)
    return find_categories(Columns(names, held, called, kinds, seen), switches, one_hot)


def make_switchable(
    categories: Sequence[Category], x: Array, table: Table | None, *, in_table: bool
) -> tuple[tuple[Switchable, ...], Table | None]:
    """The categories of rows x, and the table with levels behind its rows, where the model is asked with it."""
    cells: Cells = cells_of(x) if table is None else table.cells
    places = {j: list(dict.fromkeys(each)) for category in categories for j, each in _by_column(category)}
    found = []
    for category in categories:
        own, others = category.own(cells)
        numbers = np.array([[_number(cell) for cell in held] for held in category.cells]).reshape(
            -1, len(category.columns)
        )
        codes = numbers
        if table is None or not in_table:
            check_levels(category)
        else:
            at = [
                [places[j].index(cell) for j, cell in zip(category.columns, held, strict=True)]
                for held in category.cells
            ]
            codes = len(table) + np.array(at, dtype=np.float64).reshape(numbers.shape)
        found.append(Switchable(category, np.array(own, dtype=np.intp), others, codes, numbers))
    return tuple(found), with_levels(table, places) if table is not None and in_table else table


def _by_column(category: Category) -> list[tuple[int, list[Any]]]:
    return [(j, [held[k] for held in category.cells]) for k, j in enumerate(category.columns)]


def _number(cell: Any) -> float:
    return np.nan if isinstance(cell, str) else float(cell)

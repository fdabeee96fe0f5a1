"""What baselines hold in columns that do not move: text, categories, numbers that the caller holds fixed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Flags, Indices
from ..errors import InvalidArgument
from ..space.categories import Cells, Kind, cells_of, kinds_of
from ..space.tables import Table
from .problem import Problem

KINDS: dict[Kind, str] = {"numbers": "finite numbers", "text": "text", "truths": "true and false"}


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The h held columns in which some of m baselines differ from some of r rows."""

    columns: Indices
    """(h,)"""
    cells: tuple[tuple[Any, ...], ...]
    """(h, m) what baselines hold"""
    rows: Indices
    """(r, h) and what rows hold, as numbers of different cells"""
    baselines: Indices
    """(m, h) the same of baselines"""
    codes: Array
    """(m, h) what points hold that are like a baseline, as the model is asked"""
    numbers: Array
    """(m, h) the same as numbers; NaN for what is none"""

    @classmethod
    def none(cls, r: int, m: int) -> Held:
        """All alike."""
        nothing = np.zeros((m, 0))
        which = np.zeros((r, 0), dtype=np.intp), np.zeros((m, 0), dtype=np.intp)
        return cls(np.zeros(0, dtype=np.intp), (), *which, nothing, nothing)

    def differs(self, row: int, which: Indices) -> Flags:
        """(m', h) in which columns some baselines differ from a row."""
        return np.asarray(self.baselines[which] != self.rows[row])

    def levels(self, names: Sequence[str]) -> dict[str, list[Any]]:
        """What rows must be able to hold to be changed into baselines, by column."""
        pairs = zip(self.columns, self.cells, strict=True)
        return {names[j]: [each for each in dict.fromkeys(cells) if each is not None] for j, cells in pairs}

    def coded(self, problem: Problem) -> Held:
        """The same, for a problem whose rows can hold these levels."""
        known = {each.category.columns[0]: each for each in problem.switchable}
        codes, numbers = np.zeros((2, *self.codes.shape))
        for i, (j, cells) in enumerate(zip(self.columns, self.cells, strict=True)):
            level = known[int(j)]
            there = [k for k, cell in enumerate(cells) if cell is not None]  # the others are missing in the row, too
            at = [level.category.cells.index((cells[k],)) for k in there]
            codes[there, i], numbers[there, i] = level.codes[at, 0], level.numbers[at, 0]
        return dataclasses.replace(self, codes=codes, numbers=numbers)


def read_held(
    columns: Sequence[int], given: Cells, m: int, table: Table | None, problem: Problem, *, is_by_row: bool
) -> Held:
    """Those of some columns in which baselines differ; an error where there is no way from one value to the other."""
    own = cells_of(problem.x) if table is None else table.cells
    kinds: list[Kind] = ["numbers"] * problem.x.shape[1] if table is None else kinds_of(table)
    found = []
    for j in columns:
        here, there = (list(cells(j) or ()) for cells in (own, given))
        pairs = list(zip(here, there, strict=True)) if is_by_row else [(one, there[0]) for one in here]
        apart = [row for row, (one, other) in enumerate(pairs) if one != other]
        if apart:
            row = next((row for row in apart if pairs[row][1] is None), apart[0])
            _check(problem.feature_names[j], kinds[j], row, *pairs[row], there)
            found.append((j, here, there))
    return _held(found, len(problem.x), m)


def usable_columns(columns: Sequence[int], given: Cells, table: Table | None, problem: Problem) -> list[int]:
    """Held columns whose cells in a background, some of them at least, are such as rows can hold."""
    kinds: list[Kind] = ["numbers"] * problem.x.shape[1] if table is None else kinds_of(table)
    known = {j: [each for each in given(j) or () if each is not None] for j in columns}
    return [j for j, cells in known.items() if cells and all(_fits(kinds[j], each) for each in cells)]


def held_of_background(
    columns: Sequence[int], given: Cells, chosen: Indices, table: Table | None, problem: Problem
) -> Held:
    """What chosen rows of a background hold in columns that are usable."""
    own = cells_of(problem.x) if table is None else table.cells
    found = []
    for j in columns:
        cells = given(j) or ()
        here, there = list(own(j) or ()), [cells[row] for row in chosen]
        if len({*here, *there}) > 1:
            found.append((j, here, there))
    return _held(found, len(problem.x), len(chosen))


def _held(found: Sequence[tuple[int, list[Any], list[Any]]], r: int, m: int) -> Held:
    if not found:
        return Held.none(r, m)
    rows, baselines = np.zeros((r, len(found)), dtype=np.intp), np.zeros((m, len(found)), dtype=np.intp)
    for i, (_, here, there) in enumerate(found):
        number = {cell: k for k, cell in enumerate(dict.fromkeys([*here, *there]))}
        rows[:, i], baselines[:, i] = [number[cell] for cell in here], [number[cell] for cell in there]
    nothing = np.zeros((m, len(found)))
    columns = np.array([j for j, _, _ in found])
    return Held(columns, tuple(tuple(there) for _, _, there in found), rows, baselines, nothing, nothing)


def _fits(kind: Kind, cell: Any) -> bool:
    """Whether a column of this kind can hold it."""
    if not isinstance(cell, str | bool | int | float) or cell in (np.inf, -np.inf):
        return False
    if kind == "truths":
        return cell in (True, False)
    return kind == "levels" or (kind in ("numbers", "text") and isinstance(cell, str) == (kind == "text"))


def _check(name: str, kind: Kind, row: int, own: Any, other: Any, cells: Sequence[Any]) -> None:
    """Refuse what a row cannot be changed into."""
    if other is None:
        msg = (
            f"{name!r} is held, and is {own!r} in row {row} and missing in its baseline. Give the baseline a value"
            f" there, or, as a table or mapping, leave {name!r} out: then it has the value of the row"
        )
        raise InvalidArgument(msg, argument="baseline")
    wrong = next((each for each in cells if each is not None and not _fits(kind, each)), None)
    if wrong is not None and kind in KINDS:
        msg = f"baseline has {wrong!r} for {name!r}, a column of {KINDS[kind]} that is held; give {KINDS[kind]} there"
        raise InvalidArgument(msg, argument="baseline")
    if wrong is not None:
        msg = (
            f"{name!r} is held, and is {own!r} in row {row} and {other!r} in its baseline. Only text, categories, true"
            f" and false, and numbers can be changed from one to the other: leave {name!r} out of the baseline"
        )
        raise InvalidArgument(msg, argument="baseline")

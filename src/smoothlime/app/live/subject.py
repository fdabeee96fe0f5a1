"""What a live page explains: a model, its rows, and what a reader may change of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import InvalidArgument
from ...models import resolve_target
from ...result.explanation import Explanation
from ...result.switches import Switches
from ...sampling.options import Options
from ...sampling.route import prepare, resolve

INNER = (0.01, 0.99)
"""Quantiles of a column between which its slider goes, if the row does not lie outside."""

LARGEST = sys.float_info.max
"""Of numbers: whole ones of JSON may be larger, and are no float then."""

MOST_LEVELS = 60
"""Of a category that can be chosen from a list."""

PREDICTED = "predicted"
"""The target that is each row's own largest output."""


@dataclass(frozen=True, slots=True)
class Column:
    """A feature as the page shows it: a number within some range, or one of some levels."""

    name: str
    least: float = 0.0
    largest: float = 0.0
    step: float = 0.0
    levels: tuple[str, ...] = ()
    is_number: bool = True
    """Neither this nor with levels: what nobody can change here"""


@dataclass(frozen=True, eq=False)
class Subject:
    """A model and the rows around which it is explained: an array, or a data frame."""

    model: Any
    rows: Any
    background: Any
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    fixed: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What the codes 0, 1, 2, ... of a column stand for"""
    keys: tuple[str, ...] = ()
    title: str = ""
    target: str | None = None
    """The output that is shown at first, if that was said"""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `explain`, `agreement` and `contributions` that do not change, such as output"""

    def __len__(self) -> int:
        """Count of rows."""
        return len(self.rows)

    @property
    def first_target(self) -> str | None:
        """The output that is shown at first: of two classes the second; None where there is but one."""
        return None if len(self.outputs) < 2 else self.target or self.outputs[1 if len(self.outputs) == 2 else 0]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What the page shows of each feature."""
        return tuple(self._column(j) for j in range(len(self.names)))

    @cached_property
    def _frame(self) -> Any:
        """The rows behind narwhals; None where they are an array."""
        from ...space.tables import as_table

        table = as_table(self.rows, "rows")
        return None if table is None else table.frame

    def _cells(self, j: int) -> list[Any]:
        if self._frame is not None:
            return list(self._frame[self._frame.columns[j]].to_list())
        return list(np.asarray(self.rows)[:, j].tolist())

    def _column(self, j: int) -> Column:
        name, cells = self.names[j], self._cells(j)
        if name in self.labels:
            return Column(name, levels=self.labels[name], is_number=False)
        known = [each for each in cells if each is not None and each == each]
        if all(isinstance(each, int | float) and not isinstance(each, bool) for each in known):
            if not known or name in self.fixed:
                return Column(name, is_number=False)
            low, high = np.quantile(np.array(known, dtype=np.float64), INNER)
            is_whole = all(float(each).is_integer() for each in known)
            spread = float(high - low) or abs(float(high)) or 1.0
            step = 1.0 if is_whole and spread >= 5 else float(f"{spread / 200:.1g}")
            return Column(name, float(low), float(high), step)
        levels = sorted({str(each) for each in known})
        return Column(name, levels=tuple(levels) if len(levels) <= MOST_LEVELS else (), is_number=False)

    def cells_of(self, row: int) -> list[Any]:
        """A row as the page shows it: numbers, names of levels, None for what is missing."""
        return [self._shown(j, self._cell(row, j)) for j in range(len(self.names))]

    def _cell(self, row: int, j: int) -> Any:
        if self._frame is not None:
            return self._frame[self._frame.columns[j]][row]
        return float(np.asarray(self.rows)[row, j])

    def _shown(self, j: int, cell: Any) -> Any:
        if cell is None or cell != cell:
            return None
        labels = self.labels.get(self.names[j])
        if labels is not None:
            return labels[int(cell)]
        is_number = isinstance(cell, int | float | np.number) and not isinstance(cell, bool)
        return float(cell) if is_number else str(cell)

    def changed(self, row: Any, changes: Any) -> Any:
        """One row as `explain` takes it, with some cells changed: names to numbers, or to names of levels."""
        if isinstance(row, bool) or not isinstance(row, int) or not 0 <= row < len(self):
            msg = f"row must be a whole number from 0 to {len(self) - 1}; got {row!r}"
            raise InvalidArgument(msg, argument="row")
        if not isinstance(changes, dict):
            msg = f"changes must be an object of names and values; got {changes!r}"
            raise InvalidArgument(msg, argument="changes")
        unknown = [name for name in changes if name not in self.names]
        if unknown:
            msg = f"changes names {unknown[0]!r}, which is not a column"
            raise InvalidArgument(msg, argument="changes")
        if self._frame is None:
            one = np.array(np.asarray(self.rows)[row : row + 1], dtype=np.float64)
            for name, value in changes.items():
                j = self.names.index(name)
                one[0, j] = self._code(j, value)
            return one
        frame = self._frame[row : row + 1]
        for name, value in changes.items():
            frame = self._with(frame, self.names.index(name), value)
        return frame.to_native()

    def _code(self, j: int, value: Any) -> float:
        labels = self.labels.get(self.names[j])
        if labels is not None:
            return float(labels.index(self._level(j, value)))
        return self._number(j, value)

    def _number(self, j: int, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            msg = f"{self.names[j]!r} must be a finite number; got {value!r}"
            raise InvalidArgument(msg, argument="changes")
        return float(value)

    def _level(self, j: int, value: Any) -> str:
        levels = self.columns[j].levels
        if value not in levels:
            msg = (
                f"{self.names[j]!r} must be one of {', '.join(levels[:6])}{', ...' * (len(levels) > 6)}; got {value!r}"
            )
            raise InvalidArgument(msg, argument="changes")
        return str(value)

    def _with(self, frame: Any, j: int, value: Any) -> Any:
        """A frame of one row with another value in a column, whose type stays what it is."""
        import narwhals as nw

        name = frame.columns[j]
        if self.columns[j].is_number:
            dtype = frame.schema[name]
            number = self._number(j, value)
            kind = dtype if number.is_integer() or dtype.is_float() else nw.Float64()
            return frame.with_columns(nw.lit(number).cast(kind).alias(name))
        level = self._level(j, value)
        where = next(i for i, each in enumerate(self._cells(j)) if str(each) == level)
        other = self._frame[where : where + 1][name]  # a row that has it, in the column's own type
        native = frame.to_native()
        if hasattr(native, "iloc"):
            native = native.copy()
            native[name] = other.to_native().set_axis(native.index)
            return nw.from_native(native, eager_only=True)
        return frame.with_columns(other.alias(name))

    def labelled(self, e: Explanation) -> Explanation:
        """An explanation whose switches have the names of levels, not their codes."""
        if e.switches is None or not self.labels:
            return e
        return replace(e, switches=self._labelled(e.switches))

    def _labelled(self, switches: Switches) -> Switches:
        columns = []
        for column in switches.columns:
            names = self.labels.get(column.feature)
            if names is not None:
                levels, others = (
                    tuple(names[int(float(each))] for each in some) for some in (column.levels, column.others)
                )
                column = replace(column, levels=levels, others=others)
            columns.append(column)
        return replace(switches, columns=tuple(columns))


def outputs_of(model: Any, rows: Any, **settings: Any) -> tuple[str, ...]:
    """Names of the outputs of a model, which it may have to be asked for."""
    problem = prepare(model, rows, **settings)
    return resolve(problem, Options(), is_drawn=False).outputs


def target_named(asked: Any, outputs: tuple[str, ...]) -> str | None:
    """The name of the output that is shown at first, by its name or position; or "predicted"."""
    if asked is None or (asked == PREDICTED and PREDICTED not in outputs):
        return asked
    return resolve_target(asked, outputs, 1, lambda: np.zeros((1, len(outputs)))).names[0]

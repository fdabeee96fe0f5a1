"""Lines from baselines to rows for closed forms: one for each way to set the held columns that differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core.types import Array, Flags, Indices
from ..errors import NoClosedForm
from ..exact.curves import AGREES
from ..exact.known import view_of
from ..exact.lines import Setting
from ..models import Evaluation
from ..models.baselines import Baselines
from ..models.evaluation import automatic_batch_size
from .exact_route import ExactRoute

MOST_LINES = 4_096
"""To one row, where a closed form was not asked for by name: the number doubles with each column that differs."""

MOST_COLUMNS = 16
"""That differ, in any case."""


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """n lines to some rows, from m baselines each."""

    rows: Indices
    """(n,) row at the end of each"""
    pairs: Indices
    """(n,) which pair of a row and a baseline it belongs to"""
    x: Array
    """(n, D) rows in coordinates of the form, their held columns as they are set"""
    setting: Setting
    count: int
    """Of rows"""

    def of_rows(self, numbers: Array) -> Array:
        """What lines (n, ...) add up to for each row, on average over its baselines."""
        total = np.zeros((int(self.pairs[-1]) + 1, *numbers.shape[1:]))
        np.add.at(total, self.pairs, numbers)
        return np.asarray(total.reshape(self.count, -1, *numbers.shape[1:]).mean(axis=1))

    def counted(self, name: str, numbers: Array) -> Array:
        """Of F where lines begin, that with all columns as in the baseline counts; where they end, as in the row."""
        if name == "radius":
            return numbers
        is_end = self.setting.is_end if name == "end" else ~self.setting.is_end
        return np.where((is_end | ~self.setting.differs).all(axis=1), numbers, 0.0)


def lines_between(route: ExactRoute, baselines: Baselines, rows: Indices, *, most: int | None) -> Lines | None:
    """From all baselines to some rows; None where there would be more than `most` to a row.

    Raises NoClosedForm where the form is not the model for what baselines hold.
    """
    held = baselines.held
    which = np.concatenate([baselines.of(int(row)) for row in rows])
    m = len(which) // len(rows)
    ends = np.repeat(rows, m)
    if not len(held.columns):
        nothing = np.zeros((len(ends), 0), dtype=np.bool_)
        return Lines(ends, np.arange(len(ends)), route.x[ends], Setting(nothing, nothing), len(rows))
    differs = np.concatenate([held.differs(int(row), baselines.of(int(row))) for row in rows])
    if route.known is not None and route.known.is_by_column:  # what the form does not see takes no lines
        _check(route, baselines, ends, which, differs)
        differs = _seen(route, baselines, ends, which, differs)
    columns = differs.sum(axis=1)
    widest = int(columns.max(initial=0))
    if widest > MOST_COLUMNS:
        msg = (
            f"method='exact' sets held columns in all ways, and {widest} of them differ between a row and its baseline;"
            f" at most {MOST_COLUMNS} may. Leave method out"
        )
        raise NoClosedForm(msg, argument="method")
    if most is not None and (2**columns).reshape(len(rows), m).sum(axis=1).max() > max(most, m):
        return None
    pairs = np.repeat(np.arange(len(ends)), 2**columns)
    way = np.arange(len(pairs)) - np.repeat(np.cumsum(2**columns) - 2**columns, 2**columns)
    rank = np.cumsum(differs, axis=1) - 1
    is_end = ((way[:, None] >> np.maximum(rank[pairs], 0)) & 1).astype(np.bool_) | ~differs[pairs]
    is_start = differs[pairs] & ~is_end
    _check(route, baselines, ends[pairs], which[pairs], is_start)
    x = _placed(route, baselines, ends[pairs], which[pairs], is_start)
    return Lines(ends[pairs], pairs, x, Setting(differs[pairs], is_end), len(rows))


def _seen(route: ExactRoute, baselines: Baselines, rows: Indices, which: Indices, differs: Flags) -> Flags:
    """(n, h) columns that differ and change what the form is given, each by itself."""
    seen = np.zeros_like(differs)
    for i in range(differs.shape[1]):
        one = np.zeros_like(differs)
        one[:, i] = differs[:, i]
        here, there = route.x[rows], _placed(route, baselines, rows, which, one)
        seen[:, i] = ~((here == there) | (np.isnan(here) & np.isnan(there))).all(axis=1)
    return seen


def _placed(route: ExactRoute, baselines: Baselines, rows: Indices, which: Indices, is_start: Flags) -> Array:
    """Rows (n, D) with some held columns as in the baselines `which`, in coordinates of the form."""
    problem, held = route.problem, baselines.held
    points, x = view_of(problem).rows[rows].copy(), problem.x[rows].copy()
    _set(points, held.columns, held.codes[which], is_start)
    _set(x, held.columns, held.numbers[which], is_start)
    return route.placed(points, x)


def _check(route: ExactRoute, baselines: Baselines, rows: Indices, which: Indices, is_start: Flags) -> None:
    """Refuse where the form is not the model at rows with some held columns as in the baselines `which`."""
    problem, held = route.problem, baselines.held
    found = _placed(route, baselines, rows, which, is_start)
    asked = problem.rows[rows].copy()
    _set(asked, held.columns, held.codes[which], is_start)
    evaluation = Evaluation(problem.model, automatic_batch_size(asked.shape[1], np.dtype(np.float64)))
    answers = evaluation.values(asked, lambda i: f"row {rows[i]} with columns of its baseline")
    size = max(route.form.size(found), float(np.abs(answers).max()))
    if not np.abs(route.form.values(found) - answers).max() <= AGREES * size:
        msg = "the closed form is not the model where held columns have the values of the baseline. Leave method out"
        raise NoClosedForm(msg, argument="method")


def _set(points: Array, columns: Indices, values: Array, is_start: Flags) -> None:
    """Put values (n, h) into columns of points (n, .), where flags (n, h) say so."""
    points[:, columns] = np.where(is_start, values, points[:, columns])

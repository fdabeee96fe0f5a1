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
    for i in range(len(held.columns)):  # what the form does not see takes no lines
        one = np.zeros_like(differs)
        one[:, i] = differs[:, i]
        if np.array_equal(_placed(route, baselines, ends, which, one), route.x[ends], equal_nan=True):
            differs[:, i] = False
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
    x = _placed(route, baselines, ends[pairs], which[pairs], differs[pairs] & ~is_end, is_checked=True)
    return Lines(ends[pairs], pairs, x, Setting(differs[pairs], is_end), len(rows))


def _placed(
    route: ExactRoute, baselines: Baselines, rows: Indices, which: Indices, is_start: Flags, *, is_checked: bool = False
) -> Array:
    """Rows (n, D) with some held columns as in the baselines `which`, in coordinates of the form."""
    problem, held = route.problem, baselines.held
    points, x = view_of(problem).rows[rows].copy(), problem.x[rows].copy()
    asked = problem.rows[rows].copy() if is_checked else None
    for i, j in enumerate(held.columns):
        here = is_start[:, i]
        points[here, j], x[here, j] = held.codes[which[here], i], held.numbers[which[here], i]
        if asked is not None:
            asked[here, j] = held.codes[which[here], i]
    found = route.placed(points, x)
    if asked is not None:
        evaluation = Evaluation(problem.model, automatic_batch_size(asked.shape[1], np.dtype(np.float64)))
        answers = evaluation.values(asked, lambda i: f"row {rows[i]} with columns of its baseline")
        size = max(route.form.size(found), float(np.abs(answers).max()))
        if not np.abs(route.form.values(found) - answers).max() <= AGREES * size:
            msg = (
                "the closed form is not the model where held columns have the values of the baseline. Leave method out"
            )
            raise NoClosedForm(msg, argument="method")
    return found

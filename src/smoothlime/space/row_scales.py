"""T around rows: columns on their scales, also of rows that lie outside what the data ever was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._core.types import Array, Flags, Indices
from ..errors import InvalidArgument
from .scales import LogScale, Scale

BLOCK = 2**13
"""Points of which a column is looked up at a time: what comes between stays near the processor."""

Scales = tuple[Scale | None, ...]
"""T by feature; None where steps are taken in the feature itself, and where none are."""


@dataclass(frozen=True, slots=True, eq=False)
class RowScales:
    """T of each of r rows: that of the data, but in columns where a row has a value beyond all that was seen."""

    scales: Scales
    """(d,)"""
    own: dict[int, dict[int, Scale]]
    """By row and column: the scale of a row with a value beyond the data, as if the data had this row too"""

    @classmethod
    def of(cls, scales: Sequence[Scale | None], x: Array, feature_names: Sequence[str]) -> RowScales:
        """The scales around rows x (r, d); an error where a scale does not have the value of a row."""
        own: dict[int, dict[int, Scale]] = {}
        for j, scale in enumerate(scales):
            if scale is None:
                continue
            _check_column(scale, x[:, j], feature_names[j])
            for row in np.flatnonzero(_is_beyond(scale, x[:, j])):
                own.setdefault(int(row), {})[j] = scale.holding(float(x[row, j]))
        return cls(tuple(scales), own)

    @property
    def columns(self) -> list[int]:
        """Positions of the columns that have a scale."""
        return [j for j, scale in enumerate(self.scales) if scale is not None]

    @property
    def jumping(self) -> list[int]:
        """Positions of the columns whose T has jumps."""
        return [j for j, scale in enumerate(self.scales) if scale is not None and not scale.is_continuous]

    def ends(self, j: int) -> tuple[float, float]:
        """The smallest and the largest value that a column ever had."""
        scale = self.scales[j]
        return (-np.inf, np.inf) if scale is None else scale.ends

    def of_row(self, row: int) -> Scales:
        """(d,) the scales around one row."""
        own = self.own.get(row, {})
        return tuple(own.get(j, scale) for j, scale in enumerate(self.scales))

    def scores(self, x: Array) -> Array:
        """u (r, d) of the rows; columns without a scale as they are."""
        found = x.copy()
        for j, scale in enumerate(self.scales):
            if scale is not None:
                found[:, j] = scale.scores(np.clip(x[:, j], *scale.ends))
        for row, own in self.own.items():
            for j, scale in own.items():
                found[row, j] = scale.scores(x[row, j : j + 1])[0]
        return found

    def values(self, u: Array, rows: Indices) -> Array:
        """T(u) of points (n, d) around the rows (n,) that they belong to, a new array."""
        return self._column_by_column(u, rows, "values")

    def slopes(self, u: Array, rows: Indices) -> Array:
        """T′(u), 1 in columns without a scale; where all scales are continuous."""
        return self._column_by_column(u, rows, "slopes")

    def unseen(self, x: Array) -> Flags:
        """(r, d) values that T never takes, as the background has none of them: draws take their neighbours."""
        found = np.zeros(x.shape, dtype=np.bool_)
        for j, scale in enumerate(self.scales):
            if scale is not None:
                found[:, j] = ~scale.reached(np.clip(x[:, j], *scale.ends))
        return found

    def _column_by_column(self, u: Array, rows: Indices, what: Literal["values", "slopes"]) -> Array:
        found = np.empty_like(u)
        of_columns = [(j, getattr(self.scales[j], what)) for j in self.columns]
        for start in range(0, len(u), BLOCK):
            here = slice(start, start + BLOCK)
            across = u[here].T.copy()  # columns in one piece are read twice as fast
            into = across if what == "values" else np.ones_like(across)
            for j, of_column in of_columns:
                into[j] = of_column(across[j])
            found[here] = into.T
        if not self.own:
            return found
        has_own = np.flatnonzero(np.isin(rows, list(self.own)))
        for row in np.unique(rows[has_own]):
            own = has_own[rows[has_own] == row]
            for j, scale in self.own[int(row)].items():
                found[own, j] = getattr(scale, what)(u[own, j])
        return found


def _is_beyond(scale: Scale, values: Array) -> Flags:
    """Which values lie beyond all that the scale was made of."""
    least, largest = scale.ends
    with np.errstate(invalid="ignore"):
        return np.asarray((values < least) | (values > largest))


def _check_column(scale: Scale, values: Array, name: str) -> None:
    """Refuse values that a scale cannot have."""
    is_bad = np.isinf(values)
    if isinstance(scale, LogScale):
        is_bad |= ~scale.reached(values)
    bad = np.flatnonzero(is_bad)
    if not len(bad):
        return
    row = int(bad[0])
    if np.isinf(values[row]):
        msg = f"X must be finite; got {values[row]} at row {row}, feature {name!r}"
        raise InvalidArgument(msg, argument="X")
    lowest = f"numbers > {-scale.shift:.3g}" if isinstance(scale, LogScale) and scale.shift else "numbers > 0"
    reason = ", as no background has a 0 there" if values[row] == 0 else ""
    msg = (
        f"scale='log' is for {lowest} at feature {name!r}{reason}; got {values[row]:g} at row {row}."
        f" Use 'ranks' or 'linear' for it, or list it in fixed"
    )
    raise InvalidArgument(msg, argument="scale")

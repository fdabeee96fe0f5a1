"""Codes beyond 2**53: whole numbers that floating-point numbers do not tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.types import Array, Indices
from .._core.validate import is_masked
from .._core.warn import warn
from ..errors import InvalidArgument, LostPrecision
from ..space.categories import LARGEST, Category
from ..space.scales import WHOLE
from ..space.tables import Table

ADVICE = "Number such codes 0, 1, 2, ..., or drop the column"
"""What to do about them."""


def check_levels(category: Category) -> None:
    """Refuse whole numbers as levels that would reach the model as others."""
    lost = next((cell for held in category.cells for cell in held if is_lost(cell)), None)
    if lost is not None:
        msg = (
            f"{category.name!r} has the level {lost}, and the model takes floating-point numbers, which do not hold all"
            f" whole numbers beyond 2**53: it would be given another level. {ADVICE}"
        )
        raise InvalidArgument(msg, argument="background")


def warn_of_codes(X: Any, table: Table | None, x: Array, free: Indices, names: Sequence[str]) -> None:
    """Say which held whole numbers reach the model as others; x (r, d) is what it is given for X."""
    with np.errstate(invalid="ignore"):
        is_large = np.asarray((np.abs(x) >= WHOLE).any(axis=0))
    is_large[free] = False
    for j in map(int, np.flatnonzero(is_large)):
        cells = as_columns(X, dtype=object)[:, j].tolist() if table is None else table.cells(j)
        lost = next((row for row, cell in enumerate(cells) if is_lost(cell)), None)
        if lost is not None:
            msg = (
                f"row {lost} has {cells[lost]} at {names[j]!r}, and the model is given {int(x[lost, j])}:"
                f" floating-point numbers do not hold all whole numbers beyond 2**53. If these are codes, the"
                f" answers are those of other codes. {ADVICE}"
            )
            warn(msg, LostPrecision)


def is_lost(cell: Any) -> bool:
    """Whether a whole number is another one as a floating-point number."""
    return isinstance(cell, int) and abs(cell) > WHOLE and (abs(cell) >= LARGEST or int(float(cell)) != cell)


def as_columns(rows: Any, dtype: Any = None) -> Any:
    """Rows (r, d), or one (d,), as what can be asked for a column: lists cannot; masks stay, and whole numbers too."""
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu()
        rows = (rows.double() if rows.is_floating_point() else rows).numpy()
    return rows if is_masked(rows) else np.atleast_2d(np.array(rows, dtype=dtype))

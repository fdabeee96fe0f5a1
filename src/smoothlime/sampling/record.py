"""What a look at the sums shows, and what is kept of it once a row is done."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from .._core.types import Array, Flags
from ..estimators import Estimate
from ..uncertainty.groups import Groups


@dataclass(frozen=True, slots=True, eq=False)
class InterimEstimate:
    """The estimates after n draws, their error bounds, and which of them are good enough."""

    n: int
    estimate: Estimate
    groups: Groups
    values: Array
    radius: Array
    fidelity: Array
    tolerance: Array
    is_reached: Flags


class ResultBuffer:
    """What has been found of each row and target, filled in as rows stop."""

    def __init__(self, rows: int, groups: int, d: int) -> None:
        self._shape = rows, groups, d
        self.n = np.zeros(rows, dtype=np.intp)
        self.pseudovalues: Any = None  # or an array (rows, groups, d), or Elsewhere
        self.selected: Array | None = None
        self.directions: Array | None = None
        self._making_room = Lock()

    def _make_room(self, *, with_selected: bool) -> None:
        """Arrays to be filled part by part: not needed, and not paid for, where all rows come at once."""
        rows, groups, d = self._shape
        if with_selected and self.selected is None:
            self.selected = np.full((rows, d), np.nan)
        if self.pseudovalues is not None:
            return
        self.values, self.standard_error, self.resolution = np.zeros((3, rows, d))
        self.pseudovalues = np.zeros((rows, groups, d))
        self.sizes = np.zeros((rows, groups))
        self.smoothed, self.radius, self.fidelity, self.freedom = np.full((4, rows), np.nan)
        self.converged, self.inconsistent = np.zeros((2, rows), dtype=np.bool_)

    def turn(self, where: Any, directions: Array) -> None:
        """Keep the directions (r, k, f) that draws are turned to."""
        if self.directions is None:
            self.directions = np.zeros((len(self.n), *directions.shape[1:]))
        self.directions[where] = directions

    def store(self, where: Any, rows: Any, look: InterimEstimate) -> None:
        """Keep the numbers of `rows` of a look, at positions `where`."""
        estimate, groups = look.estimate, look.groups
        by_row = {
            "values": look.values,
            "standard_error": groups.standard_error,
            "resolution": groups.resolution,
            "smoothed": estimate.smoothed,
            "radius": look.radius,
            "fidelity": look.fidelity,
            "freedom": groups.degrees_of_freedom,
            "converged": look.is_reached,
            "inconsistent": estimate.inconsistent,
        }
        self.n[where] = look.n
        is_all = isinstance(rows, slice) and rows.stop - rows.start == len(self.n)
        if is_all and groups.pseudovalues.shape == self._shape:  # nothing has to be copied, or fetched
            vars(self).update(by_row, pseudovalues=groups.pseudovalues, sizes=groups.sizes, selected=estimate.selected)
            return
        with self._making_room:  # parts of the rows come from several threads
            self._make_room(with_selected=estimate.selected is not None)
        if estimate.selected is not None and self.selected is not None:
            self.selected[where] = estimate.selected[rows]
        for name, numbers in by_row.items():
            getattr(self, name)[where] = numbers[rows]
        pseudo = groups.pseudo[rows]
        self.pseudovalues[where, : pseudo.shape[1]] = pseudo
        self.sizes[where, : pseudo.shape[1]] = groups.sizes[rows]

    def pseudovalues_of(self, which: slice) -> Any:
        """What groups say of every t-th of the rows × targets: an array, or Elsewhere."""
        if which.step == 1 and not isinstance(self.pseudovalues, np.ndarray):
            return self.pseudovalues
        # one layout in memory whatever the number of targets: sums over it round alike, also when saved and loaded
        pseudovalues = self.pseudovalues if isinstance(self.pseudovalues, np.ndarray) else self.pseudovalues.fetch()
        return np.ascontiguousarray(pseudovalues[which])

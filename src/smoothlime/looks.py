"""What a look at the sums shows, and what is kept of it once a row is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._types import Array, Flags
from .estimators import Estimate
from .groups import Groups


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """The estimates after n draws, their error bounds, and which of them are good enough."""

    n: int
    estimate: Estimate
    groups: Groups
    values: Array
    radius: Array
    tolerance: Array
    is_reached: Flags


class Found:
    """What has been found of each row and target, filled in as rows stop."""

    def __init__(self, rows: int, groups: int, d: int) -> None:
        self.n = np.zeros(rows, dtype=np.intp)
        self.values, self.standard_error, self.resolution = np.zeros((3, rows, d))
        self.pseudo = np.zeros((rows, groups, d))
        self.sizes = np.zeros((rows, groups))
        self.selected: Array | None = None
        self.directions: Array | None = None
        self.smoothed, self.variance, self.radius = np.full((3, rows), np.nan)
        self.converged = np.zeros(rows, dtype=np.bool_)

    def turn(self, where: Any, directions: Array) -> None:
        """Keep the directions (r, k, f) that draws are turned to."""
        if self.directions is None:
            self.directions = np.zeros((len(self.n), *directions.shape[1:]))
        self.directions[where] = directions

    def record(self, where: Any, rows: Any, look: Look) -> None:
        """Keep the numbers of `rows` of a look, at positions `where`."""
        estimate, groups = look.estimate, look.groups
        self.n[where] = look.n
        self.values[where] = look.values[rows]
        self.standard_error[where] = groups.standard_error[rows]
        self.resolution[where] = groups.resolution[rows]
        pseudo = groups.pseudo[rows]
        if isinstance(where, slice) and pseudo.shape == self.pseudo.shape and pseudo.flags.c_contiguous:
            self.pseudo = pseudo  # all at once: nothing has to be copied
        else:
            self.pseudo[where, : pseudo.shape[1]] = pseudo
        self.sizes[where, : groups.sizes.shape[1]] = groups.sizes[rows]
        if estimate.selected is not None:
            if self.selected is None:
                self.selected = np.full_like(self.values, np.nan)
            self.selected[where] = estimate.selected[rows]
        self.smoothed[where] = estimate.smoothed[rows]
        self.variance[where] = estimate.variance[rows]
        self.radius[where] = look.radius[rows]
        self.converged[where] = look.is_reached[rows]

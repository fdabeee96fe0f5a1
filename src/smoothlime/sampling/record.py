"""What a look at the sums shows, and what is kept of it once a row is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Flags, Indices
from ..draws.rotation import DIRECTIONS
from ..estimators import Estimate, SecondSlopes
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
    is_hopeless: Flags
    """(r,) whether more draws would not help, as values keep saying that gradients are not the slopes"""
    far_evaluations: Indices | None = None
    """(r,) far points that the model was asked about so far; None where it was not"""
    is_far_unseen: Flags | None = None
    """(r,) whether it answered at none of those it was asked about"""


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """What was found of rows × targets, (r, ...) each."""

    n: Indices
    values: Array
    standard_error: Array
    resolution: Array
    smoothed: Array
    radius: Array
    fidelity: Array
    freedom: Array
    converged: Flags
    inconsistent: Flags
    far_evaluations: Indices
    is_far_unseen: Flags
    pseudovalues: Any
    """(r, g, f) an array, or DevicePseudovalues"""
    sizes: Array
    selected: Array | None
    directions: Array | None
    """(r, k, f) that draws were rotated to"""
    second: SecondSlopes | None = None

    @classmethod
    def empty(cls, rows: int, groups: int, d: int, *, like: Results, directions: Array | None) -> Results:
        """Room to be filled part by part."""
        values, standard_error, resolution = np.zeros((3, rows, d))
        smoothed, radius, fidelity, freedom = np.full((4, rows), np.nan)
        converged, inconsistent, is_far_unseen = np.zeros((3, rows), dtype=np.bool_)
        return cls(
            n=np.zeros(rows, dtype=np.intp),
            values=values,
            standard_error=standard_error,
            resolution=resolution,
            smoothed=smoothed,
            radius=radius,
            fidelity=fidelity,
            freedom=freedom,
            converged=converged,
            inconsistent=inconsistent,
            far_evaluations=np.zeros(rows, dtype=np.intp),
            is_far_unseen=is_far_unseen,
            pseudovalues=np.zeros((rows, groups, d)),
            sizes=np.zeros((rows, groups)),
            selected=None if like.selected is None else np.full((rows, d), np.nan),
            directions=directions,
            second=None if like.second is None else like.second.empty(rows),
        )

    @classmethod
    def of(cls, interim: InterimEstimate, directions: Array | None) -> Results:
        """All of it as it is, at no cost, where all rows stop at one look."""
        estimate, groups = interim.estimate, interim.groups
        rows = len(interim.values)
        return cls(
            n=np.full(rows, interim.n),
            values=interim.values,
            standard_error=groups.standard_error,
            resolution=groups.resolution,
            smoothed=estimate.smoothed,
            radius=interim.radius,
            fidelity=interim.fidelity,
            freedom=groups.degrees_of_freedom,
            converged=interim.is_reached,
            inconsistent=_or_zeros(estimate.inconsistent, rows, np.bool_),
            far_evaluations=_or_zeros(interim.far_evaluations, rows, np.intp),
            is_far_unseen=_or_zeros(interim.is_far_unseen, rows, np.bool_),
            pseudovalues=groups.pseudovalues,
            sizes=groups.sizes,
            selected=estimate.selected,
            directions=directions,
            second=estimate.second,
        )

    def fill(self, where: Any, rows: Any, other: Results, pseudovalues: Array, kept: Indices | None = None) -> None:
        """Copy `rows` of other results to positions `where`; pseudovalues may be of fewer groups.

        Other results may be of some of the features only, which are `kept`.
        """
        for name in BY_ROW:
            getattr(self, name)[where] = getattr(other, name)[rows]
        seen = pseudovalues[rows]
        at = where if kept is None else (_positions(where)[:, None], kept)
        for name in BY_FEATURE:
            getattr(self, name)[at] = getattr(other, name)[rows]
        if self.selected is not None and other.selected is not None:
            self.selected[at] = other.selected[rows]
        if self.second is not None and other.second is not None:
            self.second.fill(where, rows, other.second)
        if kept is None:
            self.pseudovalues[where, : seen.shape[1]] = seen
        else:
            self.pseudovalues[_positions(where)[:, None, None], np.arange(seen.shape[1])[:, None], kept] = seen
        self.sizes[where, : seen.shape[1]] = other.sizes[rows]

    def pseudovalues_of(self, which: slice) -> Any:
        """What groups say of every t-th of the rows × targets: an array, or DevicePseudovalues."""
        if which.step == 1 and not isinstance(self.pseudovalues, np.ndarray):
            return self.pseudovalues
        # one layout in memory whatever the number of targets: sums over it round alike, also when saved and loaded
        fetched = self.pseudovalues if isinstance(self.pseudovalues, np.ndarray) else self.pseudovalues.fetch()
        return np.ascontiguousarray(fetched[which])


BY_FEATURE = ("values", "standard_error", "resolution")

BY_ROW = (
    "n",
    "smoothed",
    "radius",
    "fidelity",
    "freedom",
    "converged",
    "inconsistent",
    "far_evaluations",
    "is_far_unseen",
)


def _or_zeros(given: Any, rows: int, kind: type) -> Any:
    """What is known of rows, or zeros where nobody looked."""
    return np.zeros(rows, dtype=kind) if given is None else given


class ResultBuffer:
    """Where rows × targets are stored as they stop."""

    def __init__(self, rows: int, groups: int, d: int) -> None:
        self._shape = rows, groups, d
        self._found: Results | None = None
        self._directions: Array | None = None

    def of_features(self, kept: Indices | None) -> FeatureResults:
        """Room for rows at which only some of the features are perturbed."""
        return FeatureResults(self, kept)

    def rotate(self, where: Any, directions: Array, kept: Indices | None = None) -> None:
        """Keep the directions (r, k, f) that draws are rotated to."""
        if self._directions is None:
            count = min(DIRECTIONS, self._shape[2])
            self._directions = np.zeros((self._shape[0], count, self._shape[2]))
        k = directions.shape[1]
        if kept is None:
            self._directions[where, :k] = directions
        else:
            self._directions[_positions(where)[:, None, None], np.arange(k)[:, None], kept] = directions

    def store(self, where: Any, rows: Any, interim: InterimEstimate, kept: Indices | None = None) -> None:
        """Keep the numbers of `rows` of a look, at positions `where`."""
        made = Results.of(interim, self._directions)
        is_all = isinstance(rows, slice) and rows.stop - rows.start == self._shape[0]
        if is_all and made.pseudovalues.shape == self._shape:  # nothing has to be copied, or fetched
            self._found = made
            return
        if self._found is None:
            self._found = Results.empty(*self._shape, like=made, directions=self._directions)
        self._found.fill(where, rows, made, interim.groups.pseudo, kept)

    def results(self) -> Results:
        """All of them, once every row has stopped."""
        assert self._found is not None
        return self._found


@dataclass(frozen=True, slots=True, eq=False)
class FeatureResults:
    """Where rows × targets are stored at which some of the features move."""

    buffer: ResultBuffer
    kept: Indices | None
    """Which ones; None for all"""

    def rotate(self, where: Any, directions: Array) -> None:
        """Keep the directions (r, k, f) that draws are rotated to."""
        self.buffer.rotate(where, directions, self.kept)

    def store(self, where: Any, rows: Any, interim: InterimEstimate) -> None:
        """Keep the numbers of `rows` of a look, at positions `where`."""
        self.buffer.store(where, rows, interim, self.kept)


def _positions(where: Any) -> Indices:
    """Positions, one by one."""
    return np.arange(where.start, where.stop) if isinstance(where, slice) else where

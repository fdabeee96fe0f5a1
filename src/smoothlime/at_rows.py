"""f(x), what a model says at the rows themselves: asked for twice, as a model that is random cannot be explained.

Mostly that is all the model is asked before the first draw. A device that works by itself would wait for it, idle, for
as long as the host takes to go through a large network once. So where one row is explained on such a device, x goes
along with the draws: the first batch is under way before anything else happens, and x is the last of its points.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ._types import Array, Points
from .gradient_path import draw_first, empty_sums
from .models import Evaluation
from .models.gradient_sums import GradientSums

if TYPE_CHECKING:
    from .job import Job

WORTH_OPENING = 2**22
"""Numbers in the first batch from which on a device is kept busy for longer than the host takes to go on."""

ROUNDED = 1e-3
"""Answers for x by itself and among other points, in batches of another size, may differ by this share of the largest:
layers add up in another order. If they differ by more, x is asked by itself, twice."""


class AtRows(Protocol):
    """The answers at the rows, known already or on their way."""

    @property
    def values(self) -> Array:
        """(r, k); this may wait for the model."""
        ...

    @property
    def width(self) -> int:
        """How many outputs: known without waiting."""
        ...

    @property
    def count(self) -> int:
        """How often each row was asked for."""
        ...

    @property
    def opened(self) -> GradientSums | None:
        """Sums that the rows ride along with, and that nothing was added to yet."""
        ...

    def ask_again(self) -> None:
        """Ask once more, unless that is done: called once a device that works by itself has been given all draws."""
        ...

    def compare(self) -> None:
        """Complain about two answers for the same row; this may wait for the model."""
        ...


@dataclass(slots=True, eq=False)
class Asked:
    """Asked for by itself, before the first draw."""

    evaluation: Evaluation
    points: Points
    values: Array
    is_repeated: bool = False
    count: int = 2
    opened: None = None

    @property
    def width(self) -> int:
        """How many outputs."""
        return self.values.shape[1]

    def ask_again(self) -> None:
        """Ask and compare."""
        if not self.is_repeated:
            self.evaluation.check_repeatable(self.points, self.values, row_name)
            self.is_repeated = True

    def compare(self) -> None:
        """Has been done."""


@dataclass(eq=False)
class Riding:
    """One row that goes along with its own draws, on a device that works by itself."""

    evaluation: Evaluation
    points: Points
    sums: GradientSums
    count: int = field(default=0, init=False)
    _said: Any = field(default=None, init=False)
    """(m, k) answers to be compared with the first, on the device"""
    _may_differ: float = field(default=0.0, init=False)
    _is_compared: bool = field(default=False, init=False)

    @property
    def width(self) -> int:
        """How many outputs."""
        return int(self.sums.ridden[0].shape[1])

    @property
    def opened(self) -> GradientSums | None:
        """The sums, as long as their first batch is under way."""
        return None if self.sums.opened is None else self.sums

    @cached_property
    def values(self) -> Array:
        """(1, k) as the first batch has them."""
        said = self.sums.ridden[0] if self._said is None else self._said
        return self.evaluation.checked(said.cpu().numpy()[:1], 1, row_name)

    def ask_again(self) -> None:
        """Once more by itself, unless it has been in two batches of one size; nobody waits for it here."""
        if self._said is not None:
            return
        sizes = self.sums.ridden_among
        said = [each for each, n in zip(self.sums.ridden, sizes, strict=True) if n == sizes[0]]
        if len(said) == 1:
            self._may_differ = ROUNDED
            with suppress(Exception):  # the careful way will say what is wrong
                said.append(self.sums.answer())
                self.count += 1
        self._said = self.sums.together(said)

    def compare(self) -> None:
        """Between batches of one size every bit must be the same. If anything is off, x is asked in the careful way."""
        if self._is_compared:
            return
        self._is_compared, self.sums.is_riding = True, False
        self.count += len(self.sums.ridden)
        said = self._said.cpu().numpy()
        with np.errstate(invalid="ignore"):  # what is not finite is complained about where it is read
            away = np.abs(said - said[0]).max()
        if len(said) == 1 or not away <= self._may_differ * np.abs(said[0]).max():
            self.count += 2
            self.evaluation.check_repeatable(self.points, self.evaluation.values(self.points, row_name), row_name)


def ask_at_rows(job: Job, *, may_ride: bool, most: int | None = None) -> AtRows:
    """Ask for f(x), along with the first draws where that is possible and worthwhile.

    No call holds more points than `most`, where the caller has said so.
    """
    is_apart = getattr(job.evaluation.model, "is_apart", False) and hasattr(job.method, "gather")
    points = job.rows.astype(job.dtype)
    may_ride &= is_apart and len(points) == 1 and not job.design.is_aligned
    riding = _ride(job, points, most) if may_ride else None
    if riding is not None:
        return riding
    given = points if is_apart else points.copy()  # a model may write into it
    asked = Asked(job.evaluation, points, job.evaluation.values(given, row_name))
    if not is_apart:
        asked.ask_again()
    return asked


def _ride(job: Job, points: Points, most: int | None) -> Riding | None:
    """The first batch under way, or None where it is too small, has no room for x, or anything is wrong with it.

    Then x is asked for by itself, and if the model still complains, it does so about x.
    """
    n = job.stopping.looks[0]
    chunk = next(job.layout(n).chunks(0, n, job.evaluation.batch_size))
    if chunk.n * points.shape[1] < WORTH_OPENING or (most is not None and chunk.n >= most):
        return None
    sums = empty_sums(job, points)
    try:
        steps = draw_first(sums, job.factor, chunk, job.streams(np.arange(1)))
        if steps is None:
            return None
        sums.open(chunk.groups, steps)
    except Exception:
        return None
    return Riding(job.evaluation, points, sums)


def row_name(position: int) -> str:
    """How complaints name a row of the caller's table."""
    return f"row {position}"

"""f(x), what a model says at the rows themselves: asked for twice, as a model that is random cannot be explained.

And once more for the first row in other company, as one whose answers depend on the rest of a batch cannot either.

Mostly that is all the model is asked before the first draw. A device that works by itself would be idle meanwhile, for
as long as the host takes to go through a large network once. So where one row is explained on such a device, the first
batch of draws is under way before anything else is asked, and f(x) comes behind the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._core.types import Array, Points
from .._core.xp import on_host, send
from ..device.protocol import GradientSums
from ..draws.keys import spare_draws
from ..models import Evaluation
from .device_loop import draw_first, empty_sums

if TYPE_CHECKING:
    from .plan import Plan

WORTH_OPENING = 2**22
"""Numbers in the first batch from which on a device is kept busy for longer than the host takes to go on."""


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
    def opened(self) -> GradientSums | None:
        """Sums whose first batch is under way, and that nothing was added to yet."""
        ...

    @property
    def probe_points(self) -> int:
        """Points that were asked to see whether the first row's answer depends on others."""
        ...

    def ask_again(self) -> None:
        """Ask for what has not been asked yet: called once a device that works by itself has been given all draws."""
        ...

    def compare(self) -> None:
        """Complain about two answers for the same row; this may wait for the model."""
        ...


@dataclass(slots=True, eq=False)
class Asked:
    """Asked for before the first draw."""

    evaluation: Evaluation
    points: Points
    values: Array
    is_repeated: bool = False
    opened: None = None
    probe_points: int = 0

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
class Behind:
    """Asked for behind the draws of one row, on a device that works by itself; nobody waits for it to be asked."""

    evaluation: Evaluation
    sums: GradientSums
    width: int
    _answers: list[Any] = field(default_factory=list, init=False)
    """Up to two, (1, k), on the device"""
    _is_compared: bool = field(default=False, init=False)
    probe_points: int = field(default=0, init=False)

    @property
    def opened(self) -> GradientSums | None:
        """The sums, as long as their first batch is under way."""
        return None if self.sums.opened is None else self.sums

    @cached_property
    def values(self) -> Array:
        """(1, k); where the target depends on it, it comes before all but the first batch."""
        if not self._answers:
            self._ask()
        return self.evaluation.check_size(self._fetched(0))

    def ask_again(self) -> None:
        """Ask until there are two answers, and have them come to the host together."""
        if len(self._answers) == 2:
            return
        while len(self._answers) < 2:
            self._ask()
        if all(each.is_cuda for each in self._answers):
            send(self._answers)

    def compare(self) -> None:
        """The two must be the same."""
        if not self._is_compared:
            self.evaluation.check_same(self.values, self._fetched(1), row_name)
            self._is_compared = True

    def _ask(self) -> None:
        try:
            self._answers.append(self.sums.answer())
        except Exception:  # perhaps the first batch leaves no room for it; if not, it is complained about now
            self.sums.opened = None
            self._answers += self.evaluation.answers(lambda _: self.sums.answer(), 1)

    def _fetched(self, which: int) -> Array:
        return self.evaluation.checked(on_host(self._answers[which]), 1, row_name)


def ask_at_rows(plan: Plan, *, may_open: bool) -> AtRows:
    """Ask for f(x): behind the draws, where that is possible and worthwhile, and else at once."""
    is_asynchronous = getattr(plan.evaluation.model, "is_asynchronous", False) and plan.needs_only_sums
    points = plan.rows.astype(plan.dtype)
    may_open &= is_asynchronous and len(points) == 1 and not plan.design.is_aligned
    behind = _open(plan, points) if may_open else None
    if behind is not None:
        return behind
    given = points if is_asynchronous else points.copy()  # a model may write into it
    asked = Asked(plan.evaluation, points, plan.evaluation.check_size(plan.evaluation.values(given, row_name)))
    if not is_asynchronous:
        asked.ask_again()
        asked.probe_points = plan.evaluation.check_independent(
            points, asked.values, _probe_points(plan, points), row_name
        )
    return asked


def _probe_points(plan: Plan, points: Points) -> Points:
    """Two points around the first one: on either side of it, so that ranks change, but no mirror images."""
    one, other = spare_draws(2, len(plan.factor.free), plan.seed, None)
    probe_points = points[:1].repeat(2, axis=0)
    probe_points[:, plan.factor.free] += plan.steps(np.stack([one, -np.copysign(other, one)]))
    return probe_points


def _open(plan: Plan, points: Points) -> Behind | None:
    """The first batch under way, or None where it is too small, or anything is wrong with it.

    Then x is asked for first, and if the model still complains, it does so about x.
    """
    n = plan.stopping.looks[0]
    chunk = next(plan.layout(n).chunks(0, n, plan.evaluation.batch_size))
    if chunk.n > plan.evaluation.batch_size or chunk.n * points.shape[1] < WORTH_OPENING:
        return None
    try:
        sums = empty_sums(plan, points)
        steps = draw_first(sums, plan.factor, chunk, plan.streams(np.arange(1)))
        if steps is None:
            return None
        plan.evaluation.width = sums.open(chunk.groups, steps)
    except Exception:
        return None
    return Behind(plan.evaluation, sums, plan.evaluation.width)


def row_name(position: int) -> str:
    """How complaints name a row of the caller's table."""
    return f"row {position}"

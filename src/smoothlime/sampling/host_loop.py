"""Rows that are drawn for together, and the loop over draws and rows whose sums the estimator keeps."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Protocol

from .._core.progress import Progress
from .._core.types import Indices
from .evaluate import Objective, RowsAtDraws
from .far_look import FarLook
from .plan import Plan
from .sampler import Sampler


class Sums(Protocol):
    """Everything that was added up so far for the rows of a panel."""

    def advance(self, panel: Panel, start: int, stop: int) -> None:
        """Add the draws from one count to another."""
        ...

    def parts(self, panel: Panel, start: int, stop: int) -> list[slice]:
        """Runs of rows to be looked at together, after the draws from one count to another."""
        ...

    def state(self, plan: Plan, part: slice) -> Any:
        """What has been added up for some of the rows, as the estimator knows it."""
        ...

    def keep(self, rows: Indices) -> None:
        """Forget all other rows; they come as positions among rows × targets."""
        ...

    def merge(self) -> None:
        """Make one group of each two."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Rows that are drawn for together, and all that belongs to them."""

    plan: Plan
    objective: Objective
    rows: Indices
    sampler: Sampler
    sums: Sums
    watch: Progress
    far: FarLook | None = None
    """None where the method vouches for its own bound"""

    def advance(self, start: int, stop: int) -> None:
        """Add the draws from one count to another."""
        self.sums.advance(self, start, stop)

    def keep(self, kept: Indices, positions: Indices) -> Panel:
        """The same with some of the rows, which stand at these positions among rows × targets."""
        self.sums.keep(positions)
        far = self.far and self.far.keep(kept)
        return dataclasses.replace(self, rows=self.rows[kept], sampler=self.sampler.rows(kept), far=far)


@dataclass(frozen=True, slots=True, eq=False)
class HostSums:
    """Sums that the estimator keeps by itself."""

    held: Any

    def advance(self, panel: Panel, start: int, stop: int) -> None:
        """Add the draws from one count to another: over chunks of draws and, inside, over blocks of rows.

        So draws that rows share are made once, and memory stays bounded.
        """
        plan, sampler, t = panel.plan, panel.sampler, panel.objective.t
        batch_size, rows = plan.evaluation.batch_size, panel.rows
        for chunk in plan.layout(stop).chunks(start, stop, batch_size):
            shared = sampler.draw(chunk) if plan.is_shared else None
            block = max(1, plan.evaluation.batch_size // chunk.n)
            for first in range(0, len(rows), block):
                part = slice(first, min(len(rows), first + block))
                draws = shared or sampler.draw(chunk, part)
                model = RowsAtDraws(plan, panel.objective, rows[part], draws, sampler.steps(draws, part))
                batch = plan.method.sample(model)
                plan.method.update(self.held, slice(part.start * t, part.stop * t), chunk.groups, batch)
                panel.watch.advance((part.stop - part.start) * chunk.n)
            if shared:
                plan.method.update_shared(self.held, chunk.groups, shared)

    def parts(self, panel: Panel, start: int, stop: int) -> list[slice]:
        """All rows at once."""
        return [slice(0, len(panel.rows))]

    def state(self, plan: Plan, part: slice) -> Any:
        """What the estimator keeps."""
        return self.held

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.held.keep(rows)

    def merge(self) -> None:
        """Make one group of each two."""
        self.held.merge()

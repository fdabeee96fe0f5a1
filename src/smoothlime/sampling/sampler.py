"""Where draws come from, row by row: sequences, and the rotation that a pilot finds for them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from .._core.types import Array, Flags, Indices, Points
from ..draws.blocks import Chunk
from ..draws.designs import Stream
from ..draws.keys import pilot_draws, spare_draws
from ..draws.long_draws import DEGREES, long_draws
from ..draws.rotation import (
    DIRECTIONS,
    Rotation,
    filled_up,
    leading_directions,
    pilot_count,
    quotients,
    with_steps,
)
from ..estimators import GroupedDraws
from .evaluate import Objective, RowsAtDraws
from .plan import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """Rotations of the draws of each row, to where a pilot saw the model vary most."""

    directions: Array
    """(r, k, f)"""
    of_draws: Rotation
    of_steps: Rotation
    """The same of steps, in the model's floating type"""
    varies_widely: Flags
    """(r,) whether the model varies along more than one direction, as far as the pilot saw"""

    def rows(self, kept: Indices) -> Aligned:
        """Those of some of the rows."""
        return Aligned(
            self.directions[kept], self.of_draws.rows(kept), self.of_steps.rows(kept), self.varies_widely[kept]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Sampler:
    """Where the draws of some rows come from, and the steps that they lead to."""

    plan: Plan
    streams: list[Stream]
    aligned: Aligned | None

    def draw(self, chunk: Chunk, part: slice = slice(None)) -> GroupedDraws:
        """The next draws (ρ, g, b, d) of some of the streams."""
        z = np.stack([chunk.by_group(stream.take(chunk.n)) for stream in self.streams[part]])
        weights = None
        if self.plan.longer:
            z, weights = long_draws(z, self.plan.longer, more=DEGREES.get(self.plan.longer, 2))
        return GroupedDraws(z, is_shared=self.plan.is_shared, weights=weights, chunk=chunk)

    def steps(self, draws: GroupedDraws, part: slice) -> Points:
        """The steps (ρ, n, f) that draws lead to around some of the rows."""
        steps = draws.steps(self.plan.steps)
        return steps if self.aligned is None else self.aligned.of_steps.rows(part).of(steps)

    def rows(self, kept: Indices) -> Sampler:
        """Draws of some of the rows, as far as they are."""
        streams = self.streams if self.plan.is_shared else [self.streams[row] for row in kept]
        return Sampler(self.plan, streams, None if self.aligned is None else self.aligned.rows(kept))

    def begun_again(self, rows: Indices, n: int, size: int) -> Sampler:
        """The same draws, from the n-th on; `rows` are those of the table, `size` bounds what is held at once."""
        streams = self.plan.streams(rows)
        for stream in streams:
            for start in range(0, n, size):
                stream.take(min(size, n - start))
        return dataclasses.replace(self, streams=streams)


def begin(plan: Plan, objective: Objective, rows: Indices) -> tuple[Sampler, Array | None]:
    """Draws from their beginning; where the design wants a pilot, also the slopes (r·t, f) that it saw, per draw."""
    streams = plan.streams(rows)
    if not plan.design.is_aligned:
        return Sampler(plan, streams, None), None
    seen, slopes = _pilot(plan, objective, rows)
    spare = [spare_draws(DIRECTIONS, plan.d, plan.seed, key) for key in plan.keys(rows)]
    directions = filled_up(seen, np.stack(spare))
    rotation = Rotation.onto(directions)
    varies_widely: Flags = np.asarray(seen[:, 1:].any(axis=(1, 2)))
    aligned = Aligned(directions, rotation, rotation.of_steps(plan.factor, plan.dtype), varies_widely)
    return Sampler(plan, streams, aligned), rotation.back(slopes).reshape(-1, slopes.shape[2])


def _pilot(plan: Plan, objective: Objective, rows: Indices) -> tuple[Array, Array]:
    """Directions (r, k, f) that the model varies along most around each row, and slopes (r, t, f), both per draw."""
    d, t = plan.d, objective.t
    asks_values = plan.method.needs == "values"
    count = pilot_count(plan.method.needs, d, plan.budget)
    found, slopes = [], []
    block = max(1, plan.evaluation.batch_size // max(count, plan.pilot))
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        z = np.stack([pilot_draws(count, d, plan.seed, key) for key in plan.keys(part)])
        if asks_values:
            z = np.stack([with_steps(each) for each in z])
        draws = GroupedDraws(z[:, None], is_shared=plan.is_shared)
        model = RowsAtDraws(plan, objective, part, draws, plan.steps(z))
        if asks_values:
            gradients = quotients(model.values().values.reshape(len(part), t, -1), d)
        else:
            batch = plan.method.sample(model)
            found_there = batch.gradients if batch.samples is None else batch.samples.slopes
            gradients = plan.factor.whiten(found_there.astype(np.float64)).reshape(len(part), t, count, d)
        slopes.append(gradients.mean(axis=2))
        # targets share their draws: each has the same say in where these are rotated
        size = np.linalg.norm(gradients, axis=(2, 3), keepdims=True)
        gradients = np.divide(gradients, size, out=np.zeros_like(gradients), where=size > 0)
        found.append(leading_directions(gradients.reshape(len(part), t * count, d)))
    return np.concatenate(found), np.concatenate(slopes)

"""Where draws come from, row by row: sequences, and the turns that a pilot finds for them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from .._core.types import Array, Flags, Indices, Points
from ..draws.blocks import Chunk
from ..draws.designs import Stream
from ..draws.keys import pilot_draws, spare_draws
from ..draws.long_draws import long_draws
from ..draws.rotation import DIRECTIONS, Rotation, filled_up, leading_directions, pilot_count, quotients, with_steps
from ..estimators import Estimate, GroupedDraws
from ..estimators.gradient_value import are_inconsistent, combine_gradients_with_values
from .plan import Objective, Plan, evaluate


@dataclass(frozen=True, slots=True, eq=False)
class Sampler:
    """Where the draws of some rows come from, and the steps that they lead to."""

    plan: Plan
    streams: list[Stream]
    directions: Array | None
    """(r, k, f) that draws are turned to, where they are"""
    turns: Rotation | None
    """Of draws"""
    step_turns: Rotation | None
    """The same of steps, in the model's floating type"""
    is_bent: Flags | None = None
    """(r,) whether the model varies along more than one direction, as far as the pilot saw"""
    line: Array | None = None
    """(r·t, f) slopes as the pilot saw them, in units and axes of draws before they are turned"""

    @classmethod
    def of(cls, plan: Plan, objective: Objective, rows: Indices) -> Sampler:
        """Draws from their beginning; a pilot is drawn first, where the design wants one."""
        if not plan.design.is_aligned:
            return cls(plan, plan.streams(rows), None, None, None)
        seen, slopes = _pilot(plan, objective, rows)
        spare = [spare_draws(DIRECTIONS, len(plan.factor.free), plan.seed, key) for key in plan.keys(rows)]
        directions = filled_up(seen, np.stack(spare))
        turns = Rotation.onto(directions)
        is_bent: Flags = np.asarray(seen[:, 1:].any(axis=(1, 2)))
        line = turns.back(slopes).reshape(-1, slopes.shape[2])
        return cls(plan, plan.streams(rows), directions, turns, turns.of_steps(plan.factor, plan.dtype), is_bent, line)

    def draw(self, chunk: Chunk, part: slice = slice(None)) -> GroupedDraws:
        """The next draws (ρ, g, b, d) of some of the streams."""
        z = np.stack([chunk.by_group(stream.take(chunk.n)) for stream in self.streams[part]])
        weights = None
        if self.plan.longer:
            z, weights = long_draws(z, self.plan.longer)
        return GroupedDraws(z, is_shared=self.plan.is_shared, weights=weights)

    def steps(self, draws: GroupedDraws, part: slice) -> Points:
        """The steps (ρ, n, f) that draws lead to around some of the rows."""
        steps = draws.steps(self.plan.steps)
        return steps if self.step_turns is None else self.step_turns.rows(part).of(steps)

    def seen(self, draws: GroupedDraws) -> GroupedDraws:
        """Draws as the estimator sees them."""
        if not self.plan.has_curves:
            return draws
        return GroupedDraws(self.plan.curves.beside(draws.z), is_shared=draws.is_shared, weights=draws.weights)

    def turned(self, estimate: Estimate, t: int) -> Estimate:
        """Slopes along the features, where an estimator has seen draws as they were before they were turned."""
        has_gradients = self.plan.method.needs == "gradients"
        if self.turns is None or (has_gradients and estimate.slopes is None):
            return estimate
        factor = self.plan.factor
        turns = self.turns.rows(np.repeat(np.arange(len(self.turns.inward)), t))
        if estimate.slopes is not None:
            assert self.is_bent is not None
            gradients = turns.back(factor.whiten(estimate.pseudo))
            # along one direction alone a net leaves nothing to gain
            is_bent = np.repeat(self.is_bent, t)[:, None, None]
            pseudovalues = np.where(is_bent, combine_gradients_with_values(gradients, estimate.slopes, t), gradients)
            pseudo = factor.unwhiten(turns.of(pseudovalues))
            is_torn = are_inconsistent(gradients, estimate.slopes, estimate.spread)
            return dataclasses.replace(estimate, values=pseudo.mean(axis=1), pseudo=pseudo, is_torn=is_torn)
        d = len(factor.free)
        return dataclasses.replace(
            estimate,
            values=factor.unwhiten(turns.of(estimate.values[:, None, :d])[:, 0]),
            pseudo=factor.unwhiten(turns.of(estimate.pseudo[:, :, :d])),
            resolution=estimate.resolution[:, :1] * factor.unwhitened_scale,
        )

    def rows(self, kept: Indices) -> Sampler:
        """Draws of some of the rows, as far as they are."""
        streams = self.streams if self.plan.is_shared else [self.streams[row] for row in kept]
        turns, step_turns = (None if each is None else each.rows(kept) for each in (self.turns, self.step_turns))
        directions = None if self.directions is None else self.directions[kept]
        is_bent = None if self.is_bent is None else self.is_bent[kept]
        return Sampler(self.plan, streams, directions, turns, step_turns, is_bent)  # the line has been told

    def begun_again(self, rows: Indices, n: int, size: int) -> Sampler:
        """The same draws, from the n-th on; `rows` are those of the table, `size` bounds what is held at once."""
        streams = self.plan.streams(rows)
        for stream in streams:
            for start in range(0, n, size):
                stream.take(min(size, n - start))
        return dataclasses.replace(self, streams=streams)


def _pilot(plan: Plan, objective: Objective, rows: Indices) -> tuple[Array, Array]:
    """Directions (r, k, f) that the model varies along most around each row, and slopes (r, t, f), both per draw."""
    d, t = len(plan.factor.free), objective.t
    has_gradients = plan.method.needs == "gradients"
    count = pilot_count(plan.method.needs, d, plan.budget)
    found, slopes = [], []
    block = max(1, plan.evaluation.batch_size // plan.pilot)
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        z = np.stack([pilot_draws(count, d, plan.seed, key) for key in plan.keys(part)])
        if not has_gradients:
            z = np.stack([with_steps(each) for each in z])
        draws = GroupedDraws(z[:, None], is_shared=plan.is_shared)
        batch = evaluate(plan, objective, part, draws, plan.steps(z))
        if has_gradients:
            gradients = plan.factor.whiten(batch.gradients.astype(np.float64)).reshape(len(part), t, count, d)
        else:
            gradients = quotients(batch.values.reshape(len(part), t, -1), d)
        slopes.append(gradients.mean(axis=2))
        # targets share their draws: each has the same say in where these are turned
        size = np.linalg.norm(gradients, axis=(2, 3), keepdims=True)
        gradients = np.divide(gradients, size, out=np.zeros_like(gradients), where=size > 0)
        found.append(leading_directions(gradients.reshape(len(part), t * count, d)))
    return np.concatenate(found), np.concatenate(slopes)

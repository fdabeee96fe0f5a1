"""The model's answers at the points that draws lead to, in the form that estimators add up."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._core.types import Array, Indices, Points
from ..estimators import AxisJumps, Batch, GroupedDraws
from ..models import Target
from ..models.evaluation import Where
from ..models.links import probabilities
from ..result.explanation import around
from .known_trees import TreeTarget
from .margin_control import Controls
from .plan import Plan, PlanOfRows


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """What is wanted of the model at every draw: weights (r, t, k) on outputs, and perhaps controls, or its trees."""

    weights: Array
    t: int
    """Targets"""
    controls: Controls | None
    controls_count: int
    """Of each row and target"""
    trees: TreeTarget | None = None

    @classmethod
    def of(cls, plan: Plan, target: Target) -> Objective:
        """The scalars to explain, and the controls that go with them."""
        controls = None if plan.control is None else plan.control.controls(target)
        trees = None if plan.trees is None else plan.trees.toward(target, plan.method)
        count = 0 if controls is None else controls.count
        return cls(target.weights, target.weights.shape[1], controls, count, trees)

    def around(self, part: PlanOfRows) -> Objective:
        """The same, as seen from rows at which some of the features are held."""
        if part.kept is None:
            return self
        controls = self.controls and self.controls.of_features(part.kept)
        trees = self.trees and self.trees.of_features(part.plan.problem, part.kept)
        return dataclasses.replace(self, controls=controls, trees=trees)


class RowsAtDraws:
    """A plan's model around some rows, at the points that draws lead to: a `ModelAtDraws`."""

    def __init__(self, plan: Plan, objective: Objective, rows: Indices, draws: GroupedDraws, steps: Points) -> None:
        self._plan, self._rows, self._drawn = plan, rows, draws
        self._weights, self._controls, self._trees = objective.weights[rows], objective.controls, objective.trees
        self._steps = steps
        self.draws = _repeated(draws, objective.t)

    @cached_property
    def points(self) -> Points:
        """(r, g·b, d); made where somebody asks."""
        return around(self._plan.rows[self._rows], self._plan.factor.free, self._steps, self._plan.dtype)

    def values(self) -> Batch:
        """What is explained, at every point, with its controls where there are any."""
        values = self._ask(self.points)
        controls = None
        if self._controls is not None:
            controls = self._controls.at(self._rows, values, self._drawn)
            values = probabilities(values)
        return Batch(self.draws, self._scalars(values), controls=controls)

    def gradients(self) -> Batch:
        """The same with the gradients of what is explained."""
        (r, t, k), (g, b) = self._weights.shape, self.draws.z.shape[1:3]
        scalars = np.empty((r, t, g, b))
        gradients: Any = [None] * t
        points, where = self._flat(self.points)
        for i in range(t):
            weights = self._weights[:, i]
            values, found = _with_gradients(self._plan, points, weights, where)
            scalars[:, i] = (values.reshape(r, g * b, k) @ weights[..., None]).reshape(r, g, b)
            gradients[i] = found.reshape(r, 1, g, b, -1)
        stacked = gradients[0] if t == 1 else np.concatenate(gradients, axis=1)
        return Batch(self.draws, scalars.reshape(r * t, g, b), stacked.reshape(r * t, g, b, -1))

    def jumps(self) -> Batch:
        """What is explained, and its jumps along every axis, as the trees have it."""
        assert self._trees is not None
        values, found = self._trees.at(self._rows, self._steps)
        shape = -1, *self.draws.z.shape[1:3]
        controls = None if found.controls is None else found.controls.reshape(*shape, self._plan.d)
        jumps = AxisJumps(found.slopes.reshape(*shape, self._plan.d), controls, found.bounds, found.far)
        return Batch(self.draws, values.reshape(shape), samples=jumps)

    def values_at(self, points: Points) -> Array:
        """What is explained, (r·t, g, b), at other points (r, g·b, d): one for each draw."""
        values = self._ask(points)
        return self._scalars(values if self._controls is None else probabilities(values))

    def _ask(self, points: Points) -> Array:
        flat, where = self._flat(points)
        return self._plan.evaluation.values(flat, where).reshape(*points.shape[:2], -1)

    def _scalars(self, values: Array) -> Array:
        """(r, n, k) by the weights of the targets, as (r·t, g, b)."""
        scalars = (values @ self._weights.swapaxes(1, 2)).swapaxes(1, 2)
        return scalars.reshape(-1, *self.draws.z.shape[1:3])

    def _flat(self, points: Points) -> tuple[Points, Where]:
        """Points (r·n, d), and how to name the row of each."""
        n, rows = points.shape[1], self._rows
        return points.reshape(len(rows) * n, -1), lambda position: f"a draw around row {rows[position // n]}"


def evaluate_outputs(plan: Plan, weights: Array, row: int, draws: GroupedDraws) -> tuple[Array, Array]:
    """All outputs (n, k) at the draws around one row, and the gradient (n, f) of their sum by weights (k,)."""
    steps = plan.steps(draws.flat)
    points = around(plan.rows[[row]], plan.factor.free, steps, plan.dtype).reshape(steps.shape[1], -1)
    values, gradients = _with_gradients(plan, points, weights[None], lambda _: f"a draw around row {row}")
    return values, gradients.astype(np.float64)


def _with_gradients(plan: Plan, points: Points, weights: Array, where: Where) -> tuple[Array, Points]:
    """Outputs (n, k) and gradients (n, f), for weights (r, k) of the rows that points belong to."""
    repeated = np.repeat(weights.astype(plan.dtype), len(points) // len(weights), axis=0)
    values, found = plan.evaluation.values_and_gradients(points, repeated, where)
    free = plan.factor.free
    return values, found if len(free) == found.shape[1] else found[:, free]


def _repeated(draws: GroupedDraws, t: int) -> GroupedDraws:
    """Draws of rows as draws of rows × targets."""
    if draws.is_shared or t == 1:
        return draws
    weights = None if draws.weights is None else np.repeat(draws.weights, t, axis=0)
    return GroupedDraws(np.repeat(draws.z, t, axis=0), is_shared=False, weights=weights, chunk=draws.chunk)

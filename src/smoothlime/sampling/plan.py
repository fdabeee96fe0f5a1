"""A job: all decisions made, and the model's answers at the points that draws lead to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._core.types import Array, Flags, Indices, Points
from ..draws.blocks import Layout
from ..draws.designs import Design, Stream
from ..draws.long_draws import SHARE
from ..draws.rotation import pilot_size
from ..draws.sobol import EVEN_TOGETHER
from ..estimators import Batch, Estimate, Estimator, GroupedDraws
from ..estimators.hermite import HermiteBasis
from ..models import Evaluation, Target, resolve_target
from ..models.evaluation import Where
from ..models.links import probabilities
from ..models.problem import Problem
from ..models.targets import output_names
from ..result.explanation import around
from ..space.neighbourhood import Factor
from ..uncertainty.jackknife import standard_error
from ..uncertainty.stopping import Stopping
from .at_rows import AtRows
from .margin_control import Controls, MarginControl


@dataclass(frozen=True, eq=False)
class Plan:
    """All decisions made, f(x) asked for, and nothing drawn yet that anybody has seen."""

    problem: Problem
    evaluation: Evaluation
    method: Estimator
    design: Design
    stopping: Stopping
    is_shared: bool
    seed: int
    dtype: str
    controlled: MarginControl | None = None
    """Set where `evaluation` asks for margins, and what is explained are probabilities"""
    at_rows: AtRows | None = None
    """f(x), once it has been asked for"""

    @property
    def asked(self) -> Indices:
        """(r,) model rows asked for each row besides draws: f(x) twice, a pilot, and what a control needed.

        The first row has been asked in other company too.
        """
        controls = 0 if self.controlled is None else self.controlled.evaluations
        asked = np.full(len(self.rows), 2 + self.pilot + controls)
        asked[0] += self.answers.probe_points
        return asked

    @property
    def answers(self) -> AtRows:
        """f(x), of what `evaluation` asks for."""
        assert self.at_rows is not None
        return self.at_rows

    @property
    def predictions(self) -> Array:
        """(r, k) f(x), of what is explained; this may wait for the model."""
        return self.answers.values if self.controlled is None else self.controlled.predictions

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        k = self.answers.width if self.controlled is None else self.controlled.predictions.shape[1]
        return output_names(self.problem.model.outputs, k)

    def resolve(self, target: Any) -> Target:
        """What is asked for of each row."""
        return resolve_target(target, self.outputs, len(self.rows), lambda: self.predictions)

    @property
    def rows(self) -> Array:
        """(r, d) what is perturbed."""
        return self.problem.rows

    @property
    def factor(self) -> Factor:
        """Σ = L Lᵀ over the features that are perturbed."""
        return self.problem.factor

    def layout(self, n: int) -> Layout:
        """How the first n draws are dealt to groups: alike at all looks, but where groups are parts of a sequence."""
        return self.design.layout(n if self.design.is_aligned else self.stopping.looks[0], len(self.factor.free))

    @property
    def groups(self) -> int:
        """Groups of draws."""
        return self.layout(self.stopping.looks[0]).groups

    def keys(self, rows: Indices) -> list[int | None]:
        """What keys the draws of rows, besides the seed: nothing for all of them, or for each its position."""
        return [None] if self.is_shared else [int(row) for row in rows]

    def streams(self, rows: Indices) -> list[Stream]:
        """One sequence of draws for all rows, or one for each."""
        d = len(self.factor.free)
        return [self.design.stream(d, self.seed, key) for key in self.keys(rows)]

    @property
    def budget(self) -> int | None:
        """Draws, where their number is fixed beforehand."""
        return self.stopping.looks[0] if len(self.stopping.looks) == 1 else None

    @property
    def pilot(self) -> int:
        """Points of each row that are evaluated before the draws."""
        return pilot_size(self.method.needs, len(self.factor.free), self.budget) if self.design.is_aligned else 0

    def terms(self, n: int) -> int:
        """Terms that least squares fits to n draws: the line, and curves along the first coordinates."""
        d = len(self.factor.free)
        return self.curves.fitted(d, n) if getattr(self.method, "curves", False) else d

    @property
    def needs_only_sums(self) -> bool:
        """Whether the method asks for sums of gradients over groups alone, which a model may keep by itself."""
        return hasattr(self.method, "gather")

    @property
    def combines_values(self) -> bool:
        """Whether gradients are combined with what the values at the same draws say."""
        return getattr(self.method, "control", "none") == "values"

    @property
    def longer(self) -> float:
        """Share of draws that are made longer, for which they are weighed: see `radii`."""
        return SHARE if self.design.is_aligned and self.method.needs == "values" else 0.0

    @property
    def curves(self) -> HermiteBasis:
        """What least squares may fit besides the line."""
        return HermiteBasis(of_pairs=self.design.is_paired)

    @cached_property
    def has_curves(self) -> bool:
        """Whether it fits curves at any look."""
        return self.terms(self.stopping.looks[-1]) > len(self.factor.free)

    @property
    def may_follow_tails(self) -> bool:
        """Whether some of them are of higher degree, at any look."""
        return self.has_curves and self.terms(self.stopping.looks[-1]) > self.curves.bent(len(self.factor.free))

    @cached_property
    def seen(self) -> Factor:
        """The neighbourhood as the estimator sees it: where draws are turned, it fits the draws as they were."""
        if not self.design.is_aligned or self.method.needs == "gradients":
            return self.factor
        d = len(self.factor.free)
        return _plain(self.curves.count(d) if self.has_curves else d)

    def finish(self, state: Any, n: int) -> Estimate:
        """What the estimator makes of the sums over n draws: of its first terms, where they are too few for all.

        Rows in which few draws carry what a line leaves are too few for all in any case: curves would follow them.
        And where draws lie evenly in all coordinates, rows that jump or bend sharply are better off without most of the
        curves: what groups say shows it. Each output of a row is fitted as suits it best.
        """
        sizes = self.layout(n).sizes(n)
        if not self.has_curves:
            return self.method.finish(state, sizes, self.seen)
        d, terms = len(self.factor.free), self.terms(n)
        estimate = self._finish_leading(state, sizes, terms)
        few = min(terms, self.curves.bent(d))
        if few == terms:
            return estimate
        assert estimate.residual_ess is not None
        is_too_few = estimate.residual_ess < self.curves.effective_sample_size
        is_even = d <= EVEN_TOGETHER and not self.design.is_paired
        if not (is_even or is_too_few.any()):
            return estimate
        plainer = self._finish_leading(state, sizes, few)
        is_plain = is_too_few | (_is_surer(plainer, estimate, sizes, d) if is_even else False)
        return estimate.where(is_plain, plainer, d)

    def _finish_leading(self, state: Any, sizes: Array, terms: int) -> Estimate:
        if terms == len(self.seen.free):
            return self.method.finish(state, sizes, self.seen)
        return self.method.finish(state.leading(terms), sizes, _plain(terms))

    def steps(self, z: Any) -> Points:
        """The steps (..., f) that draws lead to, in the model's floating type."""
        return self.factor.steps(z).astype(self.dtype, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """What is wanted of the model's answers at every draw: weights (r, t, k) on outputs, and perhaps controls."""

    weights: Array
    controls: Controls | None

    @classmethod
    def of(cls, plan: Plan, target: Target) -> Objective:
        """The scalars to explain, and the controls that go with them."""
        return cls(target.weights, None if plan.controlled is None else plan.controlled.controls(target))

    @property
    def t(self) -> int:
        """Targets."""
        return self.weights.shape[1]


def _is_surer(one: Estimate, other: Estimate, sizes: Array, d: int) -> Flags:
    """(r,) where groups agree better on the first d slopes of one estimate than of another."""
    first, second = (np.square(standard_error(each.pseudo[:, :, :d], sizes)).sum(axis=1) for each in (one, other))
    return np.asarray(first < second)


def _plain(terms: int) -> Factor:
    """Draws as they are."""
    return Factor(terms, np.arange(terms), np.ones(terms))


def evaluate(plan: Plan, objective: Objective, rows: Indices, draws: GroupedDraws, steps: Points) -> Batch:
    """The model's answers at rows × draws, for each target: values (r·t, g, b), perhaps controls or gradients."""
    g, b = draws.z.shape[1:3]
    weights = objective.weights[rows]
    r, t, k = weights.shape
    points, where = _points(plan, rows, steps)
    if plan.method.needs == "values":
        values = plan.evaluation.values(points, where).reshape(r, g * b, -1)
        controls = None
        if objective.controls is not None:
            controls = objective.controls.beside(rows, values, draws)
            values = probabilities(values)
        scalars = (values @ weights.swapaxes(1, 2)).swapaxes(1, 2)
        return Batch(_repeated(draws, t), scalars.reshape(r * t, g, b), controls=controls)
    scalars = np.empty((r, t, g, b))
    gradients: Any = [None] * t
    for i in range(t):
        values, found = _with_gradients(plan, points, weights[:, i], where)
        scalars[:, i] = (values.reshape(r, g * b, k) @ weights[:, i, :, None]).reshape(r, g, b)
        gradients[i] = found.reshape(r, 1, g, b, -1)
    stacked = gradients[0] if t == 1 else np.concatenate(gradients, axis=1)
    return Batch(_repeated(draws, t), scalars.reshape(r * t, g, b), stacked.reshape(r * t, g, b, -1))


def evaluate_outputs(plan: Plan, weights: Array, row: int, draws: GroupedDraws) -> tuple[Array, Array]:
    """All outputs (n, k) at the draws around one row, and the gradient (n, f) of their sum by weights (k,)."""
    points, where = _points(plan, np.array([row]), plan.steps(draws.flat))
    values, gradients = _with_gradients(plan, points, weights[None], where)
    return values, gradients.astype(np.float64)


def _points(plan: Plan, rows: Indices, steps: Points) -> tuple[Points, Where]:
    """The points (r·n, d) that steps lead to around rows, and how to name the row of each."""
    n = steps.shape[1]
    points = around(plan.rows[rows], plan.factor.free, steps, plan.dtype).reshape(len(rows) * n, -1)
    return points, lambda position: f"a draw around row {rows[position // n]}"


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
    return GroupedDraws(np.repeat(draws.z, t, axis=0), is_shared=False, weights=weights)

"""Probabilities drawn beside their exact margins: what the loop hands to `differences` as controls."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from .._core.types import Array, Indices
from ..errors import NoClosedForm
from ..estimators import ControlBatch, Estimator, GroupedDraws
from ..exact.curves import AGREES
from ..exact.margins import Margins, find_margins
from ..models import Evaluation, Target
from ..models.links import cotangent, probabilities
from ..models.problem import Problem
from .exact_route import ROUNDED, compare, place, probes

MOST_MARGINS = 5
"""With no more classes than this every margin is a control, else the one combination that matters most at x."""


@dataclass(frozen=True, slots=True, eq=False)
class Controls:
    """Weights on margins, each a control, and its known slope around each row; a target axis of 1 serves them all."""

    weights: Array
    """(r, 1 or t, c, m)"""
    slopes: Array
    """(r, 1 or t, c, f) per standard normal draw"""
    max_abs_change: Array
    """(r, t) half the range of what is explained: no half difference of it exceeds that"""

    @property
    def count(self) -> int:
        """Controls of each row and target."""
        return self.weights.shape[2]

    def of_features(self, kept: Indices) -> Controls:
        """The same around rows at which only some of the features are perturbed; Σ is diagonal."""
        return dataclasses.replace(self, slopes=self.slopes[..., kept])

    def at(self, rows: Indices, margins: Array, draws: GroupedDraws) -> ControlBatch:
        """Half differences of the margins (r, n, m) at draws around rows, less their known slope, for every target."""
        _, g, b, f = draws.z.shape
        max_abs_change = self.max_abs_change[rows]
        half = (margins[:, 0::2] - margins[:, 1::2]) / 2
        found = np.einsum("rpm,rtcm->rtcp", half, self.weights[rows], optimize=True)
        z = draws.z[:, :, 0::2].reshape(-1, 1, g * b // 2, f)
        found -= self.slopes[rows] @ z.swapaxes(2, 3)
        found = np.repeat(found, max_abs_change.shape[1] // found.shape[1], axis=1)
        return ControlBatch(found.reshape(-1, self.count, g, b // 2), max_abs_change.reshape(-1))


@dataclass(frozen=True, slots=True, eq=False)
class MarginControl:
    """A classifier whose probabilities are a known curve of margins, whose smoothed slopes are known."""

    problem: Problem
    margins: Margins
    at_rows: Array
    """(r, m) margins at the rows"""
    predictions: Array
    """(r, k) the model's own probabilities there"""
    evaluations: int
    """Model rows that it took to find out, per row"""

    def around(self, problem: Problem) -> MarginControl:
        """The same in another neighbourhood."""
        return dataclasses.replace(self, problem=problem)

    def controls(self, target: Target) -> Controls:
        """Controls for a target: all margins, or for many classes their combination that pulls it at x."""
        r, m = self.at_rows.shape
        if m <= MOST_MARGINS:
            weights = np.broadcast_to(np.eye(m), (r, 1, m, m))
        else:
            weights = cotangent(self.at_rows[:, None], target.weights)[:, :, None]
        factor = self.problem.factor
        slopes = np.empty((*weights.shape[:3], len(factor.free)))
        for i in np.ndindex(*weights.shape[1:3]):
            of_each = np.ascontiguousarray(weights[:, *i])
            slopes[:, *i] = factor.whiten(self.margins.form.smooth(self.problem.x, factor, of_each).slopes)
        return Controls(weights, slopes, np.ptp(target.weights, axis=2) / 2)


def find_control(method: Estimator, problem: Problem, batch_size: int) -> MarginControl | None:
    """The margins, where the method compares values with them; an error says why there are none."""
    if not method.wants_control or method.needs != "values":
        return None
    found, why_not = _find(problem, batch_size)
    if found is None:
        msg = f"control='margin' needs a boosted classifier with a closed form: {why_not}. Use control='none'"
        raise NoClosedForm(msg)
    return found


def _find(problem: Problem, batch_size: int) -> tuple[MarginControl | None, str]:
    """The margins, once they are seen to be those that the model's probabilities come from."""
    margins, why_not = find_margins(problem.model, problem.factor)
    if margins is None:
        return None, why_not
    near, x_near = probes(problem)
    r, points = len(problem.rows), np.concatenate([problem.rows, near])
    predictions, answers = (
        Evaluation(model, batch_size).values(points, place(r)) for model in (problem.model, margins.model)
    )
    off, lost = compare(margins.form, np.concatenate([problem.x, x_near]), answers, r)
    if off > AGREES:
        return None, f"the trees that were read do not reproduce its margin (off by {off:.2g} of its size)"
    curve = probabilities(answers)
    if curve.shape != predictions.shape or np.abs(curve - predictions).max() > AGREES:
        return None, "its probabilities are no logistic curve or softmax of its margins"
    if lost > ROUNDED:
        return None, f"it rounds its margin, and loses {min(lost, 1):.0%} of how that varies around the rows"
    evaluations = 2 + 2 * -(-len(near) // r)
    return MarginControl(problem, margins, answers[:r], predictions[:r], evaluations), ""

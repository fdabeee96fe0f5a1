"""Trees behind what a model returns: what the loop hands to estimators that need no more than those."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Indices, Points
from ..errors import ModelError, NoClosedForm
from ..estimators import AxisJumps, Estimator
from ..exact.bent_trees import BentTrees, find_margin_trees
from ..exact.curves import AGREES, find_curve
from ..exact.known import KnownSum, find_known
from ..models import Evaluation, Target
from ..models.problem import Problem
from ..uncertainty.bounds import JumpBounds
from .exact_route import ROUNDED, compare, place, probes, prove_known
from .tree_bounds import bound_jumps, bound_sum, check_bounded, is_certifiable

FAR, STRETCH = 64, 2.5
"""Draws that tell how far trees jump where draws come rarely, and how many times as long as others they are."""

FAR_NUMBERS = 2**21
"""Jumps of them that are held at once, which may be one row's."""

SAME = 1e-9
"""Share of a jump's size that rounding of its known mean may come to: below that there is nothing to compare."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeTarget:
    """What is explained of trees around rows: weights (r, t, k) on outputs, and (r, t, m) on margins for a control."""

    problem: Problem
    x: Array
    """(r, D) the rows in the coordinates of the trees: their features first"""
    trees: BentTrees | KnownSum
    weights: Array
    margins: Array
    slopes: Array | None
    """(r, t, f) known mean of the control; None where there is none"""
    bounds: JumpBounds | None
    """Of rows × targets (r, t, ...); None where nobody vouches for errors"""
    known: Array | None = None
    """(r, t, f) slopes of what stands beside the trees, and has a closed form"""
    far: Array | None = None
    """(2, r, t, f) means of jumps, and of their squares, further out; None where the control tells all of what is not
    met"""

    def of_features(self, problem: Problem, kept: Indices) -> TreeTarget:
        """The same around rows at which only some of the features are perturbed; bounds for all of them hold, too."""
        slopes = None if self.slopes is None else self.slopes[..., kept]
        bounds = self.bounds and self.bounds.of_features(kept)
        far = None if self.far is None else self.far[..., kept]
        known = None if self.known is None else self.known[..., kept]
        return dataclasses.replace(self, problem=problem, slopes=slopes, bounds=bounds, known=known, far=far)

    def at(self, rows: Indices, steps: Points) -> tuple[Array, AxisJumps]:
        """Outputs (r, t, n), and jumps (r, t, n, f), of some rows at steps (1 or r, n, f) from them."""
        x, factor = self.x[rows], self.problem.factor
        found = self.trees.jumps(
            x, steps.astype(np.float64, copy=False), factor, self.weights[rows], self.margins[rows]
        )
        bounds = None if self.bounds is None else _of_rows(self.bounds, rows)
        slopes = found.slopes if self.known is None else found.slopes + self.known[rows][:, :, None]
        far = None if self.far is None else self.far[:, rows].reshape(2, -1, self.far.shape[3])
        if self.slopes is None:
            return found.outputs, AxisJumps(slopes, None, bounds, far)
        known = self.slopes[rows][:, :, None]
        away = found.of_margin - known
        away[np.abs(away) <= SAME * np.abs(known)] = 0.0
        return found.outputs, AxisJumps(slopes, away, bounds, far)

    def far_jumps(self) -> Array:
        """Means of jumps and of their squares (2, r, t, f) at draws STRETCH times as long, the same for all rows."""
        factor, (r, t, _) = self.problem.factor, self.weights.shape
        size = max(1, FAR_NUMBERS // (FAR * t * len(factor.free)))
        z = np.random.default_rng(0).standard_normal((1, FAR, len(factor.free)))
        steps, sums = factor.steps(STRETCH * z), []
        for start in range(0, r, size):
            slopes = self.at(np.arange(start, min(r, start + size)), steps)[1].slopes
            sums.append(np.stack([slopes.mean(axis=2), (slopes**2).mean(axis=2)]))
        return np.concatenate(sums, axis=1)


def _of_rows(bounds: JumpBounds, rows: Indices) -> JumpBounds:
    """Bounds of some rows, as rows × targets."""
    parts = (getattr(bounds, each.name)[rows] for each in dataclasses.fields(bounds))
    return JumpBounds(*(part.reshape(-1, *part.shape[2:]) for part in parts))


@dataclass(frozen=True, slots=True, eq=False)
class KnownTrees:
    """A model that is a known curve of known trees."""

    problem: Problem
    x: Array
    """(r, D) the rows in the coordinates of the trees: their features first"""
    trees: BentTrees | KnownSum
    evaluations: int
    """Model rows that it took to find out, per row"""

    def around(self, problem: Problem) -> KnownTrees:
        """The same in another neighbourhood."""
        return dataclasses.replace(self, problem=problem)

    def toward(self, target: Target, method: Estimator) -> TreeTarget:
        """The trees with a target: its control is how it would change if the curve were its tangent at x."""
        factor, x = self.problem.factor, self.x
        margins = self.trees.tangents(x, target.weights)
        slopes = bounds = known = None
        if method.wants_control and factor.is_diagonal:
            slopes = self.trees.margin_slopes(x, factor, margins)
        bound: Any = bound_jumps
        if isinstance(self.trees, KnownSum):
            known, bound = self.trees.known_slopes(x, factor, target.weights), bound_sum
        if method.assumes:
            bounds = bound(self.trees, x, factor, target.weights, margins, slopes, SAME)
        found = TreeTarget(self.problem, x, self.trees, target.weights, margins, slopes, bounds, known)
        is_told = bool(method.assumes) or (slopes is not None and not self.trees.is_tabled)
        return found if is_told else dataclasses.replace(found, far=found.far_jumps())


def settle_trees(
    method: Estimator, problem: Problem, batch_size: int, *, instead: Estimator | None
) -> tuple[Estimator, KnownTrees | None]:
    """The method, or another `instead` of it that needs trees, where the model has some but no closed form.

    Where trees are needed by name, an error says why there are none.
    """
    is_needed = method.needs == "trees"
    if not is_needed and instead is None:
        return method, None
    found, why_not = _find(problem, batch_size, is_needed=is_needed)
    if found is None and is_needed:
        msg = (
            f"method={method.name!r} needs trees whose outputs we know: {why_not}."
            " Methods 'clime' and 'differences' only ask the model"
        )
        raise NoClosedForm(msg, argument="method")
    if found is not None and is_needed and method.assumes:
        check_bounded(found.trees)
    if is_needed or found is None:
        return method, found
    assert instead is not None
    is_served = found.trees.has_closed_form(problem.factor)
    is_served |= bool(instead.assumes) and not is_certifiable(found.trees, found.x)
    return (method, None) if is_served else (instead, found)


def _find(problem: Problem, batch_size: int, *, is_needed: bool) -> tuple[KnownTrees | None, str]:
    """The trees and the curve, once they are seen to give what the model answers at the rows and around them."""
    known, why_not = find_known(problem, is_drawn=is_needed)
    if why_not:
        return None, why_not
    if known is not None:
        return _find_parts(known, problem, batch_size, is_needed=is_needed)
    form, why_not = find_margin_trees(problem.model, problem.factor)
    if form is None:
        return None, why_not
    r, near, x, answers = _ask(problem, problem.x, batch_size)
    if answers is None:
        return None, "it takes no missing values"
    curve = find_curve(form.values(x), answers, AGREES)
    if curve is None:
        return None, "its outputs are none of the curves of their sum that we know"
    trees = BentTrees(form, curve)
    why_not = _why_not_same(trees, x, answers, r)
    return (None, why_not) if why_not else (KnownTrees(problem, problem.x, trees, 1 + -(-near // r)), "")


def _find_parts(
    known: KnownSum, problem: Problem, batch_size: int, *, is_needed: bool
) -> tuple[KnownTrees | None, str]:
    """The same for a model that is made of others."""
    if not known.bent:
        return None, "it is made of lines, which method='exact' knows" if is_needed else ""
    why_not = prove_known(known, problem)
    if why_not:
        return None, why_not
    r, near, x, answers = _ask(problem, known.x, batch_size)
    if answers is None:
        return None, "it takes no missing values"
    why_not = _why_not_same(known, x, answers, r)
    return (None, why_not) if why_not else (KnownTrees(problem, known.x, known, 1 + -(-near // r)), "")


def _ask(problem: Problem, x: Array, batch_size: int) -> tuple[int, int, Array, Array | None]:
    """How many rows there are, and points near them; all of them as numbers, and the model's answers there.

    None where it refuses missing values.
    """
    near, x_near = probes(problem, x)
    r = len(problem.rows)
    points = np.concatenate([problem.rows, near])
    try:
        answers = Evaluation(problem.model, batch_size).values(points, place(r))
    except ModelError:
        if np.isnan(problem.x[:, problem.factor.free]).any():
            return r, len(near), x, None
        raise
    return r, len(near), np.concatenate([x, x_near]), answers


def _why_not_same(trees: BentTrees | KnownSum, x: Array, answers: Array, r: int) -> str:
    """Why trees are not the model that gave the answers, "" if they are."""
    off, lost = compare(trees, x, answers, r)
    if off > AGREES:
        return f"the trees that were read do not reproduce its outputs (off by {off:.2g} of their size)"
    return f"it rounds its outputs, and loses {min(lost, 1):.0%} of how they vary around the rows" * (lost > ROUNDED)

"""The far look: a line seen near a row need not be a line far out.

n draws that all met one straight line leave a share of the neighbourhood unseen, at most 3/n at 95%. If the slope
changes by Δ there, the smoothed slope is off by at most that share times ‖Δ‖; how much it changes only points out
there can tell. So the model is asked at a few draws made longer, once for each row that would stop. A value and a
gradient there say where the change begins: beyond a plane, c standard deviations away, lies a share Φ(−c) and no more.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._core.types import Array, Flags, Indices, Points
from .._core.warn import warn
from ..draws.far_draws import FAR, far_draws
from ..errors import FarUnseen
from ..estimators.certified import standardising_factor
from ..models.links import probabilities
from ..result.explanation import around
from ..uncertainty.stopping import FIRST_LOOK
from .evaluate import Objective
from .plan import Plan
from .record import InterimEstimate

UNSEEN = 3.0
"""Over n: the share that n draws leave unseen, at most, with a probability of 95% (1 − 3/n to the n-th is e⁻³)."""

DATED = 6
"""Far points at which differences are taken, where the model has no gradients."""

STEP = 0.25
"""Length of those differences, in units of draws."""

SIDES = 2.0
"""Times the share beyond a plane: the model may change on both sides. On one side it covers gradual changes, which
begin earlier than one far point tells: of (s − k)₊² the slope is off by 1.3 times what a sharp one would make of it."""

LINE, ROUNDED = 1e-5, 2.0**-20
"""Draws met nothing but a straight line where the radius is below this share of the slope, or of the model's mean:
rounding makes the rest, of a function in float32, say."""


@dataclass(frozen=True, slots=True, eq=False)
class _Now:
    """What draws say of some rows at a look."""

    share: float
    """Of the neighbourhood, at most, that no draw has seen"""
    slopes: Array
    """(r, t, f) per feature"""
    centre: Array
    """(r, t) mean of the model; of the same shape are the length of the slopes, its bound, and the model's spread"""
    size: Array
    radius: Array
    spread: Array

    def rows(self, kept: Flags) -> _Now:
        """The same of some of the rows."""
        parts = (each[kept] for each in (self.slopes, self.centre, self.size, self.radius, self.spread))
        return _Now(self.share, *parts)


class FarLook:
    """What a model said at far points around the rows of a panel, kept from when it was first asked about them."""

    def __init__(self, plan: Plan, objective: Objective, rows: Indices) -> None:
        r, t = len(rows), objective.t
        self._plan, self._objective, self._rows = plan, objective, rows
        self._evaluations = np.zeros(r, dtype=np.intp)
        self._slopes = np.zeros((r, t, plan.d))
        self._values = np.zeros((r, t, FAR))
        self._is_dated = np.zeros((r, t, FAR), dtype=np.bool_)
        """Whether Δ is known, the gradient less the slopes of the time when it was asked for"""
        self._along = np.zeros((r, t, FAR))
        """Δ·z"""
        self._change = np.zeros((2, r, t, FAR))
        """‖Δ‖ per draw, and standardised"""

    @cached_property
    def _stretch(self) -> float:
        """How much longer a slope may be standardised than it is per draw: 1 for diagonal Σ."""
        return standardising_factor(self._plan.factor)

    @staticmethod
    def numbers(plan: Plan, targets: int) -> int:
        """About how many numbers are kept of a row."""
        return targets * (4 * FAR + plan.d)

    def keep(self, kept: Indices) -> FarLook:
        """Forget all other rows."""
        self._rows, self._evaluations, self._is_dated = self._rows[kept], self._evaluations[kept], self._is_dated[kept]
        self._values, self._slopes, self._along = self._values[kept], self._slopes[kept], self._along[kept]
        self._change = self._change[:, kept]
        return self

    def check(self, part: slice, interim: InterimEstimate) -> InterimEstimate:
        """The estimate for a part of the rows, with radii that allow for what lies far out around rows that would stop.

        A row around which the model answers at no far point is taken for a line only after many draws.
        """
        stopping, longer, n = self._plan.stopping, self._plan.longer, interim.n
        size = np.linalg.norm(interim.values * self._plan.factor.std, axis=1)
        is_line = interim.radius <= np.fmax(LINE * size, ROUNDED * np.abs(interim.estimate.smoothed))
        here = np.flatnonzero(self._would_stop(interim, is_line))
        with np.errstate(all="ignore"):  # a model may leave the range of numbers out there: such points are left out
            bound = self._bounds(part.start, here, interim, size)
        is_unseen, spread = np.isnan(bound), interim.estimate.spread
        radius = np.fmax(interim.radius, bound)
        is_reached = interim.is_reached & stopping.is_reached(n, size, radius, spread, longer=longer)
        return dataclasses.replace(
            interim,
            radius=radius,
            tolerance=stopping.tolerance(size, radius, spread),
            is_reached=is_reached & (~(is_unseen & is_line) | stopping.is_many(n, longer)),
            far_evaluations=np.repeat(self._evaluations[part], self._objective.t),
            is_far_unseen=is_unseen,
        )

    def _bounds(self, first: int, here: Indices, interim: InterimEstimate, size: Array) -> Array:
        """How far slopes may be off (r·t,), of the rows `here` in a part that begins with `first`; 0 for others."""
        t, bound = self._objective.t, np.zeros(len(size))
        block = max(1, self._plan.evaluation.batch_size // FAR)
        for start in range(0, len(here), block):
            some = here[start : start + block]
            each = some[:, None] * t + np.arange(t)
            now = _Now(
                share=UNSEEN / interim.n,
                slopes=interim.values[each],
                centre=self._centre(first + some, interim.estimate.smoothed[each]),
                size=size[each],
                radius=interim.radius[each],
                spread=interim.estimate.spread[each],
            )
            bound[each] = self._bound(first + some, now)
        return bound

    def _would_stop(self, interim: InterimEstimate, is_line: Flags) -> Flags:
        """Which rows would say that they have converged, at all targets or, at the last look, at any.

        Where the number of draws was given nothing is to be spent beyond it, but for rows whose error would be zero.
        """
        stopping, t = self._plan.stopping, self._objective.t
        if stopping.is_fixed:
            return np.asarray((is_line & (interim.n >= FIRST_LOOK)).reshape(-1, t).any(axis=1))
        reached = interim.is_reached.reshape(-1, t)
        return np.asarray(reached.any(axis=1) if interim.n == stopping.looks[-1] else reached.all(axis=1))

    def _centre(self, rows: Indices, smoothed: Array) -> Array:
        """Mean of the model (r, t) over the neighbourhood; f(x) for methods that do not see it."""
        at = self._rows[rows]
        predictions = np.einsum("rtk,rk->rt", self._objective.weights[at], self._plan.predictions[at])
        return np.where(np.isnan(smoothed), predictions, smoothed)

    def _bound(self, rows: Indices, now: _Now) -> Array:
        """How far slopes may be off (r, t) by what the model does far out; NaN where it answers at no far point."""
        plan, factor = self._plan, self._plan.factor
        z = self._draws(rows)
        is_new = self._evaluations[rows] == 0
        if is_new.any():
            self._ask(rows[is_new], z if plan.is_shared else z[is_new], now.slopes[is_new])
        left = np.abs(self._values[rows] - now.centre[..., None] - _products(z, factor.whiten(now.slopes)))
        if plan.method.needs == "gradients":
            return _largest(self._dated(rows, z, now, left))
        # a change that begins somewhere within a far point's reach leaves about as much of its value unexplained
        rough = _largest(now.share * self._stretch * left)
        is_rough_enough = self._is_within(now, rough)
        is_done = (is_rough_enough | np.isnan(rough)).all(axis=1) | self._is_dated[rows].any(axis=(1, 2))
        to_date = np.asarray(~is_done)
        if to_date.any():
            self._date(rows[to_date], z if plan.is_shared else z[to_date], now.rows(to_date), left[to_date])
        dated = _largest(self._dated(rows, z, now, left))
        return np.where(is_rough_enough | np.isnan(dated), rough, dated)

    def _dated(self, rows: Indices, z: Array, now: _Now, left: Array) -> Array:
        """‖Δ‖ times the share of the neighbourhood that it may have, (r, t, FAR); NaN where Δ is not known.

        What slopes have moved since Δ was measured is added to it.
        """
        factor = self._plan.factor
        moved = now.slopes - self._slopes[rows]
        per_draw = factor.whiten(moved)
        change = self._change[:, rows]
        length = change[0] + np.linalg.norm(per_draw, axis=2)[..., None]
        along = np.abs(self._along[rows] - _products(z, per_draw))
        rise = np.maximum(along - left, 0.0)
        begins = np.divide(rise, length, out=np.where(np.isnan(rise), np.nan, 0.0), where=length > 0)
        from scipy.special import ndtr

        standardised = change[1] + np.linalg.norm(moved * factor.std, axis=2)[..., None]
        bound = standardised * np.minimum(now.share, SIDES * ndtr(-begins))
        # more than a change of slope explains is a jump, or a rise so steep that slopes on either side do not show it
        bound = np.maximum(bound, now.share * self._stretch * (left - along))
        return np.where(self._is_dated[rows], bound, np.nan)

    def _is_within(self, now: _Now, bound: Array) -> Flags:
        """Whether rows (r, t) are good enough with such a bound."""
        radius = np.maximum(now.radius, bound).ravel()
        tolerance = self._plan.stopping.tolerance(now.size.ravel(), radius, now.spread.ravel())
        return np.asarray((radius <= tolerance).reshape(bound.shape))

    # ---- asking

    def _draws(self, rows: Indices) -> Array:
        """Far draws (1 or r, FAR, f)."""
        plan = self._plan
        return np.stack([far_draws(plan.d, plan.seed, key) for key in plan.keys(self._rows[rows])])

    def _ask(self, rows: Indices, z: Array, slopes: Array) -> None:
        """Values at the far points of some rows; where the model has gradients, how far these are from the slopes."""
        plan, at = self._plan, self._rows[rows]
        steps, piece = plan.steps(z), min(FAR, plan.evaluation.batch_size)
        for start in range(0, FAR, piece):
            draws = np.arange(start, min(FAR, start + piece))
            points = around(plan.rows[at], plan.factor.free, steps[:, draws], plan.dtype)
            if plan.method.needs == "gradients":
                self._ask_gradients(rows, draws, points, z, slopes)
            else:
                found = self._scalars(points.reshape(-1, points.shape[2]), np.repeat(at, len(draws)))
                self._values[rows[:, None], :, draws] = found.reshape(len(rows), len(draws), -1)
        self._evaluations[rows] = FAR
        self._slopes[rows] = slopes

    def _ask_gradients(self, rows: Indices, draws: Indices, points: Points, z: Array, slopes: Array) -> None:
        """Values and gradients at far points (r, m, d), target by target."""
        plan, (r, m, d) = self._plan, points.shape
        weights, free = self._objective.weights[self._rows[rows]], plan.factor.free
        for i in range(weights.shape[1]):
            repeated = np.repeat(weights[:, i].astype(plan.dtype), m, axis=0)
            values, found = plan.evaluation.attempt(points.reshape(-1, d), repeated)
            self._values[rows[:, None], i, draws] = (values.reshape(r, m, -1) @ weights[:, i, :, None])[..., 0]
            gradients = found.reshape(r, m, d)[:, :, free].astype(np.float64)
            self._note(rows[:, None], i, draws, gradients - slopes[:, i, None], z[:, draws])

    def _note(self, rows: Indices, target: int, draws: Indices, change: Array, z: Array) -> None:
        """Keep what matters of Δ (..., f), per feature, at far draws z (..., f) around some rows."""
        factor = self._plan.factor
        per_draw = factor.whiten(change)
        self._is_dated[rows, target, draws] = True
        self._along[rows, target, draws] = (per_draw * z).sum(axis=-1)
        self._change[0, rows, target, draws] = np.linalg.norm(per_draw, axis=-1)
        self._change[1, rows, target, draws] = np.linalg.norm(change * factor.std, axis=-1)

    def _date(self, rows: Indices, z: Array, now: _Now, left: Array) -> None:
        """Gradients by differences at a few of the far points, evenly by how much of their values is unexplained."""
        factor, stopping = self._plan.factor, self._plan.stopping
        limit = stopping.tolerance(now.size.ravel(), now.radius.ravel(), now.spread.ravel()).reshape(now.size.shape)
        excess = now.share * left / np.maximum(limit, np.finfo(float).tiny)[..., None]
        chosen = [_evenly_by_rank(each) for each in np.where(np.isfinite(excess), excess, 0.0).max(axis=1)]
        counts = np.array([len(each) for each in chosen])
        of, draws = np.repeat(np.arange(len(rows)), counts), np.concatenate(chosen)
        at = z[np.zeros_like(of) if len(z) == 1 else of, draws]
        gradients = self._differences(rows[of], draws, factor.steps(at))
        for i in range(gradients.shape[1]):
            self._note(rows[of], i, draws, factor.unwhiten(gradients[:, i]) - now.slopes[of, i], at)
        self._slopes[rows] = now.slopes
        self._evaluations[rows] += counts * self._plan.d

    def _differences(self, rows: Indices, draws: Indices, steps: Array) -> Array:
        """Gradients (p, t, f) per draw at far points, `steps` (p, f) away from rows, by differences."""
        plan, d = self._plan, self._plan.d
        found = np.empty((len(rows) * d, self._objective.t))
        for start in range(0, len(found), plan.evaluation.batch_size):
            which = np.arange(start, min(len(found), start + plan.evaluation.batch_size))
            of, feature = which // d, which % d
            moved = steps[of]
            if plan.factor.is_diagonal:
                moved[np.arange(len(of)), feature] += STEP * plan.factor.lower[feature]
            else:
                moved += STEP * plan.factor.lower[:, feature].T
            at = self._rows[rows[of]]
            points = around(plan.rows[at], plan.factor.free, moved[:, None], plan.dtype)[:, 0]
            found[which] = self._scalars(points, at) - self._values[rows[of], :, draws[of]]
        return (found / STEP).reshape(len(rows), d, -1).swapaxes(1, 2)

    def _scalars(self, points: Points, rows: Indices) -> Array:
        """What is explained (n, t), at points (n, d) around rows of the table; NaN where the model has no answer."""
        (values,) = self._plan.evaluation.attempt(points)
        if self._objective.controls is not None:
            values = probabilities(values)
        return np.einsum("ntk,nk->nt", self._objective.weights[rows], values)


def warn_of_far_points(rows: Indices) -> None:
    """Say around which rows the model answers at no far point, so that nothing is known of what it does there."""
    if len(rows):
        shown = ", ".join(map(str, rows[:5]))
        more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        msg = (
            f"the model has no finite answer at any of the {FAR} points, further out than its draws, that are looked"
            f" at before a row is said to have converged: row {shown}{more}. Where it is a line near a row, a kink"
            " further out would go unseen. Have it answer there, or lower sigma"
        )
        warn(msg, FarUnseen)


def _products(z: Array, slopes: Array) -> Array:
    """Slope times draw, (r, t, n), of slopes (r, t, f) and draws (1 or r, n, f): row by row, whatever their number."""
    return np.asarray(np.matmul(z[:, None], slopes[..., None])[..., 0])


def _largest(bounds: Array) -> Array:
    """The largest of (r, t, n) that is a number; NaN where none is."""
    finite = np.isfinite(bounds)
    return np.where(finite.any(axis=2), np.where(finite, bounds, 0.0).max(axis=2), np.nan)


def _evenly_by_rank(excess: Array) -> Indices:
    """Positions of a few of the numbers (n,) that exceed 1, the largest and the smallest among them; at least one."""
    order = np.argsort(-excess, kind="stable")[: max(1, int((excess > 1).sum()))]
    return order[np.unique(np.rint(np.linspace(0, len(order) - 1, min(DATED, len(order)))).astype(np.intp))]

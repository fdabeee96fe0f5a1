"""Contributions by draws: a place t on the line and a step z are drawn together, one of each per draw.

From gradients a draw says δ ∘ ∇f(b + tδ + Lz); from predictions δ ∘ L⁻ᵀz·D with D half of f(· + Lz) − f(· − Lz), of
which a regression on z, fitted to the other groups of draws, takes off what is known. Either has the contributions as
its mean, whatever the number of draws. Half of the draws also look at both ends of the line, at ±z.

A held column that differs has x's value with probability t. What it adds is the change of f at a draw when it is set
the other way, one more evaluation for each such column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core.types import Array, Flags, Indices, Points
from ..draws.keys import Key
from ..models import Evaluation, Target, model_dtype
from ..models.baselines import Baselines
from ..models.problem import Problem
from ..space.neighbourhood import Factor
from ..uncertainty.groups import Groups
from ..uncertainty.jackknife import standard_error
from ..uncertainty.stopping import Stopping

GROUPS = 32
"""Independent groups of draws, from whose scatter errors are made."""

UNIT = 2 * GROUPS
"""Draws are whole multiples of this: every second one of a group looks at the ends."""

PER_TERM = 8
"""Draws for each coefficient of the regression, at least."""

WIDEST = 128
"""Features up to which a regression is fitted: its matrices are kept for each group."""

PLACES, STEPS, WHICH, SET = 2_000, 2_001, 2_002, 2_003
"""Purposes of random numbers, away from those that designs number; the last is that of the first held column."""


@dataclass(frozen=True, slots=True, eq=False)
class OfRow:
    """What draws say of one row."""

    pseudovalues: Array
    """(GROUPS, d) what each group says of the contributions"""
    end: Array
    """(GROUPS,) of F(x)"""
    start: Array
    """(GROUPS,) of F(b)"""
    n: int
    converged: bool

    @property
    def parts(self) -> Array:
        """(d,) contributions."""
        return np.asarray(self.pseudovalues.mean(axis=0))

    @property
    def residual(self) -> tuple[float, float]:
        """F(x) − F(b) − Σc, and its standard error."""
        by_group = self.end - self.start - self.pseudovalues.sum(axis=1)
        return float(by_group.mean()), error_of(by_group)


def error_of(by_group: Array) -> float:
    """Standard error of the mean of what groups say, (GROUPS,)."""
    return float(standard_error(by_group[None, :, None], np.ones(GROUPS))[0, 0])


@dataclass(frozen=True, slots=True, eq=False)
class LineSampler:
    """How rows are drawn for: the problem, where lines begin, and what is explained."""

    problem: Problem
    baselines: Baselines
    target: Target
    evaluation: Evaluation
    has_gradients: bool
    stopping: Stopping
    seed: int
    is_shared: bool

    def run(self, row: int) -> OfRow:
        """Draw for one row until its error is small enough."""
        missing = self.problem.missing[row]
        factor = self.problem.without(missing).factor if missing.any() else self.problem.factor
        line = _Line.of(self, row, factor)
        done = 0
        for n in self.stopping.looks:
            line.draw(done, n)
            done = n
            said = line.pseudovalues()
            is_enough = line.is_enough(said, n)
            if is_enough:
                break
        full = np.zeros((GROUPS, self.problem.x.shape[1]))
        full[:, line.columns] = said
        per = done // GROUPS // 2
        return OfRow(full, line.end / per, line.start / per, done, is_enough)


class _Line:
    """The draws of one row so far."""

    def __init__(self, sampler: LineSampler, row: int, factor: Factor, starts: Array, end: Array) -> None:
        self.sampler, self.row, self.factor = sampler, row, factor
        self.starts, self.goal = starts, end
        key = Key(sampler.seed, None if sampler.is_shared else row)
        self.places, self.steps, self.which = map(key.generator, (PLACES, STEPS, WHICH))
        f = len(factor.free)
        held = sampler.baselines.held
        at = sampler.baselines.of(row)
        self.differs, self.codes = held.differs(row, at), held.codes[at]  # (m, h)
        self.held = held.columns
        self.set = [key.generator(SET + int(j)) for j in self.held]  # by column: other rows may differ in others
        self.columns = np.concatenate([factor.free, self.held])
        self.of_held = np.zeros((GROUPS, len(self.held)))
        self.sums = np.zeros((GROUPS, f))
        self.end, self.start = np.zeros(GROUPS), np.zeros(GROUPS)
        self.kept: list[tuple[Array, Array, Array, Array, Indices]] = []
        self.moments = np.zeros(3)  # count, sum and squares of all values on the line, less the first
        self.first: float | None = None
        self.fits = not sampler.has_gradients and f <= WIDEST

    @classmethod
    def of(cls, sampler: LineSampler, row: int, factor: Factor) -> _Line:
        """Nothing drawn yet."""
        starts = sampler.baselines.starts(sampler.problem, row, factor.free)
        return cls(sampler, row, factor, starts, sampler.problem.rows[row, factor.free].astype(np.float64))

    def draw(self, done: int, n: int) -> None:
        """Draws from number `done` to n, the same share for each group."""
        per = (n - done) // GROUPS
        strata = self.places.permuted(np.tile(np.arange(per), (GROUPS, 1)), axis=1)
        t = ((strata + self.places.random((GROUPS, per))) / per).ravel()
        which = self._baselines(per)
        size = max(UNIT, self.sampler.evaluation.batch_size // 4 // 2 * 2)
        for start in range(0, n - done, size):
            part = slice(start, min(start + size, n - done))
            z = self.steps.standard_normal((part.stop - part.start, len(self.factor.free)))
            self._see(t[part], which[part], z, np.arange(part.start, part.stop) // per)

    def _baselines(self, per: int) -> Indices:
        """Which baseline each draw begins at: within a group each comes about equally often."""
        m = len(self.starts)
        if m == 1:
            return np.zeros(GROUPS * per, dtype=np.intp)
        times = -(-per // m)
        found = [self.which.permuted(np.tile(np.arange(m), (GROUPS, 1)), axis=1) for _ in range(times)]
        return np.concatenate(found, axis=1)[:, :per].ravel()

    def _see(self, t: Array, which: Indices, z: Array, groups: Indices) -> None:
        """Ask the model along the line and at its ends, and add up."""
        begins = self.starts[which]
        steps = self.factor.steps(z)
        delta = self.goal - begins
        middle = begins + t[:, None] * delta
        ends = slice(None, None, 2)
        turned = np.concatenate([steps[ends], -steps[ends]])
        is_start = self.differs[which] & (self._chances(len(t)) >= t[:, None])  # as in the baseline
        codes, starts = self.codes[which], np.concatenate([which[ends]] * 2)
        at_start = self._points(self.starts[starts] + turned, self.codes[starts], self.differs[starts])
        asked = [self._points(self.goal + turned), at_start]
        if self.sampler.has_gradients:
            values, gradients = self._gradients(self._points(middle + steps, codes, is_start))
            np.add.at(self.sums, groups, delta * gradients)
            at_ends = self._values(np.concatenate(asked))
            self._switch(middle + steps, codes, is_start, which, values, groups)
        else:
            there = (self._points(middle + side, codes, is_start) for side in (steps, -steps))
            seen = self._values(np.concatenate([*there, *asked]))
            values, at_ends = seen[: 2 * len(t)], seen[2 * len(t) :]
            self._switch(middle + steps, codes, is_start, which, values[: len(t)], groups)
            half = (values[: len(t)] - values[len(t) :]) / 2
            if self.fits:
                self.kept.append((z, t, delta, half, groups))
            else:
                np.add.at(self.sums, groups, delta * self.factor.unwhiten(z) * half[:, None])
        of_end, of_start = at_ends.reshape(2, 2, -1).mean(axis=1)
        np.add.at(self.end, groups[ends], of_end)
        np.add.at(self.start, groups[ends], of_start)
        self.first = float(values[0]) if self.first is None else self.first
        away = values - self.first
        self.moments += [len(away), away.sum(), (away**2).sum()]

    def _chances(self, n: int) -> Array:
        """(n, h) of which columns are set."""
        return np.array([each.random(n) for each in self.set]).reshape(-1, n).T

    def _switch(
        self, free: Array, codes: Array, is_start: Flags, which: Indices, values: Array, groups: Indices
    ) -> None:
        """Set each held column that differs the other way, and add up what that changes."""
        for i in range(len(self.held)):
            (differs,) = np.nonzero(self.differs[which, i])
            if len(differs):
                other = is_start[differs]
                other[:, i] = ~other[:, i]
                there = self._values(self._points(free[differs], codes[differs], other))
                change = np.where(is_start[differs, i], there - values[differs], values[differs] - there)
                np.add.at(self.of_held[:, i], groups[differs], change)

    def _points(self, free: Array, codes: Array | None = None, is_start: Flags | None = None) -> Points:
        """Points with these numbers in the features that move, and some held columns as in a baseline."""
        row = self.sampler.problem.rows[self.row]
        points = np.tile(row, (len(free), 1))
        points[:, self.factor.free] = free
        if codes is not None and is_start is not None:
            points[:, self.held] = np.where(is_start, codes, points[:, self.held])
        return points.astype(model_dtype(self.sampler.problem.model), copy=False)

    def _weights(self, n: int) -> Array:
        return np.broadcast_to(self.sampler.target.weights[self.row, 0], (n, self.sampler.target.weights.shape[2]))

    def _where(self, _: int) -> str:
        return f"a draw between row {self.row} and its baseline"

    def _values(self, points: Points) -> Array:
        values = self.sampler.evaluation.values(points, self._where)
        return values @ self.sampler.target.weights[self.row, 0]

    def _gradients(self, points: Points) -> tuple[Array, Array]:
        weights = self._weights(len(points))
        weights = weights.astype(model_dtype(self.sampler.problem.model))
        values, gradients = self.sampler.evaluation.values_and_gradients(points, weights, self._where)
        return values @ self.sampler.target.weights[self.row, 0], gradients[:, self.factor.free].astype(np.float64)

    def pseudovalues(self) -> Array:
        """(GROUPS, f + h) what each group says of the features that move, and of the held columns."""
        per = self.moments[0] / GROUPS / (1 if self.sampler.has_gradients else 2)
        return np.concatenate([self._of_free(per), self.of_held / per], axis=1)

    def _of_free(self, per: float) -> Array:
        """(GROUPS, f) of the features that move."""
        if not self.fits:
            return self.sums / per
        z, t, delta, half, groups = (np.concatenate(each) for each in zip(*self.kept, strict=True))
        by_group = np.argsort(groups, kind="stable").reshape(GROUPS, -1)
        return cross_fitted(z[by_group], t[by_group], delta[by_group], half[by_group], self.factor)

    def is_enough(self, said: Array, n: int) -> bool:
        """Whether the L2 error of the contributions is within the tolerance."""
        stopping, f = self.sampler.stopping, said.shape[1]
        count, total, squares = self.moments
        variance = max(0.0, squares / count - (total / count) ** 2)
        groups = Groups(said[None], np.full((1, GROUPS), n // GROUPS), np.zeros((1, f)), None)
        measured = groups.measure(said.mean(axis=0)[None], np.array([variance]), plain_factor(f), stopping.miss)
        spread = np.array([np.sqrt(variance)])
        if not (self.differs.any() or np.ptp(self.starts, axis=0).any()) and np.array_equal(self.starts[0], self.goal):
            return True  # nothing lies between
        return bool(stopping.is_reached(n, measured.size, measured.radius, spread)[0])


def plain_factor(f: int) -> Factor:
    """Of features that count in units of the output."""
    return Factor(f, np.arange(f), np.ones(f))


def cross_fitted(z: Array, t: Array, delta: Array, half: Array, factor: Factor) -> Array:
    """(g, f) what groups of draws say: z and delta (g, n, f), places t and half differences (g, n).

    D is close to z·(v₀ + v₁s), s = √3(2t − 1), with coefficients from the other groups. Of that the mean is known:
    δ ∘ L⁻ᵀv₀, as s has mean 0. What is left is averaged. Which is right whatever the coefficients are.
    """
    groups, n, f = z.shape
    scaled = [z, z * (np.sqrt(3) * (2 * t - 1))[:, :, None]]
    terms = next((k for k in (2, 1) if k * f * PER_TERM <= groups * n), 0)
    raw = delta * factor.unwhiten(z)
    if terms == 0:
        return (raw * half[:, :, None]).mean(axis=1)
    basis = np.concatenate(scaled[:terms], axis=2)
    turned = basis.swapaxes(1, 2)
    matrix, right = turned @ basis, turned @ half[:, :, None]
    others = matrix.sum(axis=0) - matrix, right.sum(axis=0) - right
    fitted = np.linalg.solve(others[0], others[1])
    rest = half[:, :, None] - basis @ fitted
    known = delta.mean(axis=1) * factor.unwhiten(fitted[:, :f, 0])
    return np.asarray((raw * rest).mean(axis=1) + known)

"""What whole calls take, and the bare model at as many points: the clock of `benchmark`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._core.progress import Progress
from .._core.types import Array, Points
from ..explain import explain
from ..result.explanation import Explanation, around
from ..sampling.plan import Plan
from .contenders import Pair, needs_of, settings_of

ROUNDS = 3
"""How often each call is timed; the fastest counts, as other programs only slow it down."""

QUICK = 0.5
"""Seconds that a call for the forecast should take at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """The model and the rows, as `explain` takes them and as they are after all checks."""

    model: Any
    X: Any
    question: dict[str, Any]
    plan: Plan
    weights: Array
    """(r, k) of the outputs that are explained"""
    output: str

    def explain(self, **settings: Any) -> Explanation:
        """Explanations of the rows, with settings of their own."""
        return explain(self.model, self.X, **self.question, **{"progress": False, **settings})

    def points(self, n: int) -> tuple[Points, Points]:
        """Points (n, d) around the rows, in the model's own type, and weights (n, k) of its outputs there."""
        rows = np.arange(n) % len(self.plan.rows)
        z = np.random.default_rng(self.plan.seed).standard_normal((n, 1, len(self.plan.factor.free)))
        at = around(self.plan.rows[rows], self.plan.factor.free, self.plan.factor.steps(z), self.plan.dtype)
        return at[:, 0], self.weights[rows].astype(self.plan.dtype)


def speed(case: Case, needs: str) -> float:
    """Seconds per point that the model itself takes, by calls of ever more points while they are quick."""
    each = float("inf")
    for n in (1, 16, 256):
        run = _bare_run(case, needs, n)
        run()  # libraries load and compile outside the clock
        seconds = min(_seconds(run) for _ in range(ROUNDS))
        each = min(each, seconds / n)
        if seconds > QUICK:  # a slow model would keep the forecast waiting
            break
    return each


def _bare_run(case: Case, needs: str, n: int) -> Callable[[], None]:
    """The model alone at n points, batch by batch; one batch is made beforehand and asked about again and again."""
    model: Any = case.plan.evaluation.model
    size = min(n, case.plan.evaluation.batch_size)
    points, weights = case.points(size)

    def run() -> None:
        for start in range(0, n, size):
            part = slice(0, min(size, n - start))
            if needs == "gradients":
                model.values_and_gradients(points[part], weights[part])
            else:
                model.values(points[part].copy())  # a model may write into its points

    return run


def _seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds per evaluation: of whole calls, and of the bare model."""

    whole: float
    bare: float


def costs_of(case: Case, draws: dict[Pair, int], watch: Progress) -> dict[Pair, Cost]:
    """Whole calls and the bare model, timed in turn."""
    calls = {pair: partial(case.explain, **settings_of(pair), n_samples=n) for pair, n in draws.items()}
    made = {pair: int(call().n_evaluations.sum()) for pair, call in calls.items()}
    alone = {pair: _bare_run(case, needs_of(pair), made[pair]) for pair in calls}
    rounds = []
    for _ in range(ROUNDS):
        rounds.append({pair: (_seconds(calls[pair]), _seconds(alone[pair])) for pair in calls})
        watch.advance(2 * sum(made.values()))
    fastest = {pair: [min(times) for times in zip(*(each[pair] for each in rounds), strict=True)] for pair in calls}
    return {pair: Cost(whole / made[pair], bare / made[pair]) for pair, (whole, bare) in fastest.items()}


def bare_seconds(costs: dict[Pair, Cost]) -> dict[str, float]:
    """Of the bare model per point, by what is needed of it."""
    needs = sorted({needs_of(pair) for pair in costs})
    return {each: min(cost.bare for pair, cost in costs.items() if needs_of(pair) == each) for each in needs}

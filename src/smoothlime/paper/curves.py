"""The paper's two measures against the number of draws: how far two methods, or two neighbours, are apart.

Both are L1 distances of raw slopes, as in the paper. Draws are nested: a curve is one run at its largest number of
draws, looked at on the way. The paper's protocol is iid draws, independent for every explanation; ours shares draws
between rows and methods and takes the default designs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._core.types import Array
from ..draws.designs import DESIGNS
from ..estimators import SmoothGrad
from ..models import Model
from ..sampling.defaults import choose_design
from ..sampling.loop import trace
from ..sampling.options import Options
from ..sampling.plan import resolve
from ..sampling.route import prepare
from ..uncertainty.jackknife import t_quantile

Protocol = Literal["paper", "ours"]

GRID = (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
NEIGHBOURS, SPREAD = 10, 0.1
"""Neighbours N(x, 0.01·I): a standard deviation of 0.1."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A measure of each row (s, c, r) at numbers of draws (c,), for s seeds."""

    draws: tuple[int, ...]
    by_row: Array
    size: float
    """Mean L1 length of the explanations at the largest number of draws"""

    @property
    def mean(self) -> Array:
        """(c,) over rows and seeds."""
        return self.by_row.mean(axis=(0, 2))

    @property
    def half_width(self) -> Array:
        """(c,) of a 95% interval for that mean.

        Draws that rows share make their errors alike, so where there are several seeds their scatter counts as well;
        with independent draws the rows alone tell.
        """
        seeds, _, rows = self.by_row.shape
        over_rows = self.by_row.mean(axis=0).std(axis=1, ddof=1) / np.sqrt(rows)
        if seeds == 1:
            return 1.96 * over_rows
        over_seeds = self.by_row.mean(axis=2).std(axis=0, ddof=1) / np.sqrt(seeds)
        return np.hypot(1.96 * over_rows, t_quantile(seeds - 1.0, 0.975) * over_seeds)


def grid(most: int, *, at_least: int = 0) -> tuple[int, ...]:
    """Numbers of draws up to `most`, leaving out those that are too few for a fit."""
    return tuple(n for n in GRID if at_least <= n <= most)


def slopes(
    model: Model,
    rows: Array,
    method: str,
    *,
    sigma: float,
    target: Any,
    draws: tuple[int, ...],
    protocol: Protocol,
    seed: int,
    design: str = "auto",
) -> tuple[tuple[int, ...], Array]:
    """Numbers of draws used, in whole blocks of the design, and slopes (c, r, d) at each."""
    is_theirs = protocol == "paper"
    settings = Options(n_samples=draws[-1], draws="independent" if is_theirs else "shared", seed=seed)
    problem = prepare(model, rows, sigma=sigma)
    plan = resolve(problem, settings, method=method, design="iid" if is_theirs else design, may_rotate=False)
    counts = tuple(sorted({DESIGNS[plan.design.name].whole(n, rows.shape[1]) for n in draws}))
    return counts, trace(plan, plan.resolve(target), counts, False)


def fewest_draws(d: int) -> int:
    """Draws below which least squares with an intercept has no error to speak of."""
    return 2 * (d + 1)


def equivalence(
    model: Model, rows: Array, *, sigma: float, target: Any, most: int, protocol: Protocol, seeds: tuple[int, ...]
) -> Curve:
    """Distance between SmoothGrad and C-LIME of each row.

    Ours compares both on the same points, those of the design that SmoothGrad takes where points must be the same.
    """
    d = rows.shape[1]
    asked = grid(most, at_least=fewest_draws(d) if protocol == "paper" else 2 * fewest_draws(d))
    design = choose_design("auto", SmoothGrad(), d=d, n=asked[-1], may_rotate=False)
    apart, size = [], 0.0
    for seed in seeds:
        (draws, one), (_, other) = (
            slopes(
                model, rows, method, sigma=sigma, target=target, draws=asked, protocol=protocol,
                seed=_own(seed, method, protocol), design=design,
            )
            for method in ("smoothgrad", "clime")
        )  # fmt: skip
        apart.append(np.abs(one - other).sum(axis=2))
        size += float(np.abs(one[-1]).sum(axis=1).mean()) / len(seeds)
    return Curve(draws, np.stack(apart), size)


def robustness(
    model: Model, rows: Array, method: str, *, sigma: float, target: Any, draws: tuple[int, ...], protocol: Protocol,
    seeds: tuple[int, ...],
) -> Curve:  # fmt: skip
    """Largest distance between the explanations of each row and of its ten neighbours, the same for every seed."""
    r, d = rows.shape
    away = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(3,))).standard_normal((r, NEIGHBOURS, d))
    everyone = np.concatenate([rows[:, None], rows[:, None] + SPREAD * away], axis=1).reshape(-1, d)
    largest, size = [], 0.0
    for seed in seeds:
        used, found = slopes(
            model, everyone, method, sigma=sigma, target=target, draws=draws, protocol=protocol,
            seed=_own(seed, method, protocol),
        )  # fmt: skip
        by_row = found.reshape(len(used), r, NEIGHBOURS + 1, d)
        largest.append(np.abs(by_row[:, :, 1:] - by_row[:, :, :1]).sum(axis=3).max(axis=2))
        size += float(np.abs(by_row[-1, :, 0]).sum(axis=1).mean()) / len(seeds)
    return Curve(used, np.stack(largest), size)


def _own(seed: int, method: str, protocol: Protocol) -> int:
    """Under the paper's protocol the two methods see different draws."""
    return 2 * seed + (protocol == "paper" and method == "clime")

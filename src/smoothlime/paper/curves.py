"""The paper's two measures against the number of draws: how far two methods, or two neighbours, are apart.

Both are L1 distances of raw slopes, as in the paper. Draws are nested: a curve is one run at its largest number of
draws, looked at on the way. The paper's protocol is iid draws, independent for every explanation; ours shares draws
between rows and methods and takes the default designs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._types import Array
from ..designs import DESIGNS
from ..explain import prepare
from ..models import Model, resolve_target
from ..sampling import trace

Protocol = Literal["paper", "ours"]

GRID = (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
NEIGHBOURS, SPREAD = 10, 0.1
"""Neighbours N(x, 0.01·I): a standard deviation of 0.1."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A measure of each row (c, r) at numbers of draws (c,)."""

    draws: tuple[int, ...]
    by_row: Array
    size: float
    """Mean L1 length of the explanations at the largest number of draws"""

    @property
    def mean(self) -> Array:
        """(c,) over rows."""
        return self.by_row.mean(axis=1)

    @property
    def standard_error(self) -> Array:
        """(c,) of the mean over rows."""
        return self.by_row.std(axis=1, ddof=1) / np.sqrt(self.by_row.shape[1])


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
    design: str | None = None,
) -> Array:
    """Slopes (c, r, d) of a method at each number of draws; designs in blocks round it up to whole ones."""
    chosen = design or ("iid" if protocol == "paper" else "auto")
    job = prepare(
        model, rows, method=method, sigma=sigma, n_samples=draws[-1], design=chosen,
        draws="independent" if protocol == "paper" else "shared", seed=seed,
    )  # fmt: skip
    whole = [DESIGNS[job.design.name].whole(n, rows.shape[1]) for n in draws]
    counts = sorted(set(whole))
    found = trace(job, resolve_target(target, job.outputs, job.predictions), counts, False)
    return found[[counts.index(n) for n in whole]]


def fewest_draws(d: int) -> int:
    """Draws below which least squares with an intercept has no error to speak of."""
    return 2 * (d + 1)


def equivalence(
    model: Model, rows: Array, *, sigma: float, target: Any, most: int, protocol: Protocol, seed: int
) -> Curve:
    """Distance between SmoothGrad and C-LIME of each row."""
    draws = grid(most, at_least=fewest_draws(rows.shape[1]))
    found = [
        slopes(model, rows, method, sigma=sigma, target=target, draws=draws, protocol=protocol, seed=own)
        for method, own in (("smoothgrad", seed), ("clime", seed + 1 if protocol == "paper" else seed))
    ]
    return Curve(draws, np.abs(found[0] - found[1]).sum(axis=2), float(np.abs(found[0][-1]).sum(axis=1).mean()))


def robustness(
    model: Model, rows: Array, method: str, *, sigma: float, target: Any, most: int, protocol: Protocol, seed: int
) -> Curve:
    """Largest distance between the explanations of each row and of its ten neighbours."""
    r, d = rows.shape
    draws = grid(most, at_least=fewest_draws(d) if method == "clime" else 0)
    away = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,))).standard_normal((r, NEIGHBOURS, d))
    everyone = np.concatenate([rows[:, None], rows[:, None] + SPREAD * away], axis=1).reshape(-1, d)
    found = slopes(model, everyone, method, sigma=sigma, target=target, draws=draws, protocol=protocol, seed=seed)
    by_row = found.reshape(len(draws), r, NEIGHBOURS + 1, d)
    size = float(np.abs(by_row[-1, :, 0]).sum(axis=1).mean())
    return Curve(draws, np.abs(by_row[:, :, 1:] - by_row[:, :, :1]).sum(axis=3).max(axis=2), size)

"""What does the radius of all features together save, and does it still hold? √F in the place of t, at the same looks.

Equal rows with draws of their own: 200 runs in 5 features, 60 in 20, rtol = 0.1, at most 8,192 draws, the methods of
`bench_stopping.py`. Functions of one direction (sin, Φ(8s + 2), exp(1.5 s)), whose gradients have errors along that
direction only, and sums of five of them along axes: sin(s + 0.3 j), Φ(3s + 1), relu(s − 1.5), exp(s). No kink lies so
far out that draws do not meet it: that is another question. Missed: as in `bench_stopping.py`, of the rows converged.

    python benchmarks/bench_radius.py
"""

from __future__ import annotations

from common import machine, write_lines  # before NumPy: it sets one thread

# isort: split
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from bench_stopping import AROUND, CAP, METHODS, RTOL, direction
from tables import radius

import smoothlime as sl
from smoothlime.testing import Exponential, Probit, Relu, RidgeFunction, Sine
from smoothlime.uncertainty import groups

RUNS = {5: 200, 20: 60}
NEVER = 2**62
"""Draws before errors are bounded together: half-widths then, as they were."""


@dataclass(frozen=True)
class Together:
    """A sum of functions of one direction each."""

    parts: Sequence[RidgeFunction]
    outputs = ("output",)

    def values(self, points: np.ndarray) -> np.ndarray:
        """Outputs (n, 1)."""
        return sum(each.values(points) for each in self.parts)

    def values_and_gradients(self, points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Outputs and gradients (n, d)."""
        values, gradients = zip(*(each.values_and_gradients(points, weights) for each in self.parts), strict=True)
        return sum(values), sum(gradients)

    def slopes(self, points: np.ndarray, around: sl.Neighbourhood) -> np.ndarray:
        """Slopes (n, d) in closed form."""
        return sum(each.slopes(points, around) for each in self.parts)


def cases(d: int) -> dict[str, Any]:
    v, axes = direction(d), np.eye(d)[:5]
    return {
        "sin": Sine(v, 0.3),
        "steep": Probit(8 * v, 2.0),
        "exp": Exponential(1.5 * v),
        "five sines": Together([Sine(axis, 0.3 * j) for j, axis in enumerate(axes)]),
        "five probits": Together([Probit(3 * axis, 1.0) for axis in axes]),
        "five relus": Together([Relu(axis, -1.5) for axis in axes]),
        "five exps": Together([Exponential(axis) for axis in axes]),
    }


def measure(name: str, function: Any, d: int, method: Any, design: str) -> dict[str, Any]:
    rows = np.zeros((RUNS[d], d))
    truth = function.slopes(rows[:1], AROUND)[0]
    spread = function.values(np.random.default_rng(0).standard_normal((200_000, d))).std()
    promised = max(RTOL * np.linalg.norm(truth), 0.01 * spread)
    record: dict[str, Any] = {"case": name, "d": d, "runs": len(rows)}
    for kind, fewest in (("t", NEVER), ("F", groups.FEWEST_TOGETHER)):
        with mock.patch.object(groups, "FEWEST_TOGETHER", fewest):
            e = sl.explain(
                function, rows, method=method, design=design, rtol=RTOL, max_samples=CAP, draws="independent",
                progress=False,
            )  # fmt: skip
        errors = np.linalg.norm(e.values - truth, axis=1)[e.converged]
        record[kind] = {
            "converged": len(errors), "missed": int((errors > promised).sum()), "draws": float(e.n_samples.mean()),
        }  # fmt: skip
        record |= {"method": method if isinstance(method, str) else "curves", "design": e.design}
    return record


def main() -> None:
    facts = machine()
    warnings.simplefilter("ignore", sl.errors.NotConverged)
    records = [
        {**measure(name, function, d, method, design), **facts}
        for d in RUNS
        for name, function in cases(d).items()
        for method, design in METHODS
    ]
    write_lines("radius", records)
    print(radius(records))


if __name__ == "__main__":
    main()

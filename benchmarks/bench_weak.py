"""Where do error bars and promises fail? Every case that is known and not mended, with its numbers.

Equal rows around x = 0 with draws of their own, σ = 1: each is an independent run. Without `n_samples`, rows count that
say they have converged and whose true error exceeds rtol·‖w‖: 5% of them may. With it, intervals: how many
of 95% hold the true slope, for the feature where they do worst. Truth is a closed form, or an integral over s = v·z.

    python benchmarks/bench_weak.py [--quick]
"""

from __future__ import annotations

from common import is_quick, machine, publish  # before NumPy: it sets one thread

# isort: split
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm
from tables import weak

import smoothlime as sl

RUNS = 300
FLAT = 12.0

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Case:
    """A function with its gradients (None: it jumps), its true slopes, and how it is asked."""

    name: str
    values: Function
    gradients: Function | None
    slopes: Any
    asked: dict[str, Any] = field(default_factory=dict)


def direction(d: int) -> Any:
    v = np.cos(1.0 + 2.0 * np.arange(d))
    return v / np.linalg.norm(v)


def ridge(name: str, d: int, g: Function, dg: Function | None, **asked: Any) -> Case:
    """g(v·a), whose mean slope is E[s·g(s)] along v."""
    v = direction(d)
    mean = quad(lambda s: s * float(g(np.array(s))) * norm.pdf(s), -FLAT, FLAT, points=[-2, 0, 2, 3, 4], limit=500)[0]
    return Case(
        f"{name}, d = {d}",
        lambda a: g(a @ v),
        None if dg is None else lambda a: dg(a @ v)[:, None] * v,
        mean * v,
        asked,
    )


def far_relu(d: int, k: float, trend: float, **asked: Any) -> Case:
    v = direction(d)
    return Case(
        f"max(0, s − {k:g}) + {trend:g} s, d = {d}",
        lambda a: np.maximum(a @ v - k, 0) + trend * (a @ v),
        lambda a: ((a @ v > k)[:, None] + trend) * v,
        (ndtr(-k) + trend) * v,
        asked,
    )


def many_relus(d: int, k: float, trend: float, **asked: Any) -> Case:
    v = direction(d)
    return Case(
        f"Σⱼ max(0, aⱼ − {k:g}) + {trend:g} s, d = {d}",
        lambda a: np.maximum(a - k, 0).sum(axis=1) + trend * (a @ v),
        lambda a: (a > k) + trend * v,
        ndtr(-k) + trend * v,
        asked,
    )


def product(rate: float, some: int, d: int, **asked: Any) -> Case:
    slopes = np.zeros(d)
    slopes[:some] = rate * np.exp(some * rate**2 / 2)
    return Case(
        f"exp({rate:g} Σ) of {some} of {d} features",
        lambda a: np.exp(rate * a[:, :some].sum(axis=1)),
        None,
        slopes,
        asked,
    )


def slab_on_a_plane(d: int, **asked: Any) -> Case:
    """A thin slab across one feature, beside a line along another."""
    slopes = np.zeros(d)
    slopes[0] = 3 * (norm.pdf(0.995) - norm.pdf(1.005))
    slopes[1] = 0.1

    def values(a: Any) -> Any:
        return 0.1 * a[:, 1] + 3 * (np.abs(a[:, 0] - 1) < 0.005)

    return Case(f"0.1 t, and 3 more where s is within 0.005 of 1, d = {d}", values, None, slopes, asked)


def clipped(d: int, width: float, trend: float, **asked: Any) -> Case:
    """A narrow ramp that draws step over."""
    slopes = np.zeros(d)
    slopes[0] = trend + (ndtr(2.5 + width) - ndtr(2.5)) / width

    def gradients(a: Any) -> Any:
        found = np.zeros_like(a)
        found[:, 0] = trend + ((a[:, 0] > 2.5) & (a[:, 0] < 2.5 + width)) / width
        return found

    def values(a: Any) -> Any:
        return trend * a[:, 0] + np.clip((a[:, 0] - 2.5) / width, 0, 1)

    return Case(f"{trend:g} s + clip((s − 2.5)/{width:g}, 0, 1), d = {d}", values, gradients, slopes, asked)


def step(s: Any) -> Any:
    return (s > 1.5) * 1.0


def cases() -> list[Case]:
    values = {"n_samples": 1_024}
    return [
        far_relu(5, 4.0, 0.0003, max_samples=4_096),
        far_relu(5, 4.5, 0.00003, max_samples=4_096),
        many_relus(10, 3.2, 0.04),
        slab_on_a_plane(5),
        ridge("0.01 s + max(0, s − 3)³", 5, lambda s: 0.01 * s + np.maximum(s - 3, 0) ** 3, None),
        clipped(5, 0.01, 0.1, method="smoothgrad", design="iid", max_samples=4_096),
        clipped(5, 0.01, 0.1, method="smoothgrad", design="orthogonal", max_samples=4_096),
        clipped(5, 0.05, 0.02, method="smoothgrad", design="orthogonal", max_samples=4_096),
        ridge("a step at 1.5", 1, step, None, method="clime", design="sobol", n_samples=4_096),
        ridge("a step at 1.5", 1, step, None, method="stein", design="sobol", n_samples=4_096),
        ridge("exp(s)", 1, np.exp, np.exp, method="smoothgrad", design="sobol", n_samples=1_024),
        ridge("exp(2.5 s)", 2, lambda s: np.exp(2.5 * s), None, method="clime", design="iid", **values),
        ridge(
            "10 s + sinh(2 s)", 8, lambda s: 10 * s + np.sinh(2 * s), None, method="clime", design="iid", n_samples=256
        ),
        product(0.7, 3, 5, method="clime", design="orthogonal", **values),
    ]


def measure(case: Case, runs: int) -> list[dict[str, Any]]:
    """By gradients where the case has some, and by values."""
    x = np.zeros((runs, len(case.slopes)))
    found = []
    for needs in ("gradients", "values"):
        method = case.asked.get("method", "auto")
        if needs == "gradients" and (case.gradients is None or method in ("clime", "stein")):
            continue
        if needs == "values" and method == "smoothgrad":
            continue
        model: Any = case.values
        if needs == "gradients":
            model = sl.from_functions(values=case.values, gradients=case.gradients)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            e = sl.explain(model, x, draws="independent", progress=False, **case.asked)
        error, allowed = np.linalg.norm(e.values - case.slopes, axis=1), 0.05 * np.linalg.norm(case.slopes)
        lower, upper = e.interval()
        found.append(
            {
                "case": case.name, "needs": needs, "method": e.method, "design": e.design, "runs": runs,
                "n_samples": case.asked.get("n_samples"), "draws": float(np.median(e.n_samples)),
                "converged": int(e.converged.sum()), "missed": int((e.converged & (error > allowed)).sum()),
                "held": float(((lower <= case.slopes) & (case.slopes <= upper)).mean(axis=0).min()), "seed": 0,
            }
        )  # fmt: skip
    return found


def main() -> None:
    quick = is_quick(__doc__ or "", "30 runs each")
    records = [record for case in cases() for record in measure(case, 30 if quick else RUNS)]
    publish("weak", records, machine(), weak(records), quick=quick)


if __name__ == "__main__":
    main()

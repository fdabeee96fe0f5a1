"""Does asking for an error get it, and at what cost? Misses and draws of tolerance-driven sampling.

Equal rows with draws of their own are independent runs: 1,000 a case (200 in 64 features), rtol = 0.1, at most 8,192
draws. Cases are functions of s = v·a with s ~ N(c, 1) near the row:

- smooth: sin(s + 0.3); steep: Φ(8s + 2); rare: max(0, s − 2.054), whose gradient lives in 2% of the draws;
- step: 1 where s > −0.4 (predictions only);
- flat: cos(s), where w = 0 although the model varies; ripple: s³ − 3s, where w = 0 and pairs of draws do not cancel
  (default designs in 5 features only).

Missed: share of the rows that say they have converged whose true error exceeds max(atol, rtol·‖w‖). Cost: mean draws
over those of an oracle that knows the true standard error, uses the same t-radius and looks once; for rows that
converged, where the oracle needs more than the first look. The naive rule stops at 16, 32, ... draws as soon as
1.96 standard errors are small enough.

What planning the looks costs is measured beside it: the same draws at the same looks, each of which may miss with all
of δ instead of its share δ/K. Naive looks are fewer draws, and more misses.

The second table is of certified radii: misses and looseness, the radius over the 95% quantile of the true error.

    python benchmarks/bench_stopping.py
"""

from __future__ import annotations

from common import machine, markdown, write_lines  # before NumPy: it sets one thread

# isort: split
import warnings
from typing import Any

import numpy as np
from scipy.stats import t as student

import smoothlime as sl
from smoothlime.sampling.options import Options
from smoothlime.sampling.plan import resolve
from smoothlime.sampling.route import prepare
from smoothlime.testing import Absolute, Probit, Profile, Relu, RidgeFunction, Sine, Step
from smoothlime.uncertainty.jackknife import standard_error
from smoothlime.uncertainty.stopping import plan_looks

RTOL, CAP, CONFIDENCE = 0.1, 8_192, 0.95
DELTA = 0.05
"""Chance of a miss, 1 - CONFIDENCE."""
DEFAULT_CAP = 100_000
REPEATS = {1: 1_000, 5: 1_000, 16: 1_000, 64: 200}
AROUND = sl.Neighbourhood(1.0)
METHODS = (
    ("smoothgrad", "iid"),
    ("smoothgrad", "auto"),
    ("clime", "iid"),
    ("differences", "differences"),
    (sl.CLime(curves=True), "auto"),
)
RIPPLE = Profile(
    lambda s: s**3 - 3 * s,
    lambda s: 3 * s**2 - 3,
    lambda m, t: m**3 - 3 * m * (1 - t**2),
    lambda m, t: 3 * (m**2 + t**2 - 1),
)


def direction(d: int) -> np.ndarray:
    v = np.cos(1.0 + 2.0 * np.arange(d))
    return v / np.linalg.norm(v)


def cases(d: int) -> dict[str, RidgeFunction]:
    v = direction(d)
    return {
        "smooth": Sine(v, 0.3),
        "steep": Probit(8 * v, 2.0),
        "rare": Relu(v, -2.054),
        "step": Step(v, 0.4),
        "flat": Sine(v, np.pi / 2),
    }


def promised(function: RidgeFunction, d: int) -> float:
    """max(rtol·‖w‖, atol) with the true slope, and the true spread to a part in a thousand."""
    spread = function.values(np.random.default_rng(0).standard_normal((500_000, d))).std()
    return max(RTOL * np.linalg.norm(function.slopes(np.zeros((1, d)), AROUND)), 0.01 * spread)


def oracle_draws(function: RidgeFunction, d: int, method: Any, design: str) -> float:
    """Draws at which the t-radius with the true standard error meets the promise, looking once."""
    n = 4_096
    e = sl.explain(function, np.zeros((200, d)), method=method, design=design, n_samples=n, draws="independent")
    error = np.sqrt(e.values.var(axis=0, ddof=1).sum())
    looks = len(plan_looks(256, CAP))
    quantile = student.ppf(1 - (1 - CONFIDENCE) / looks / 2, float(e.degrees_of_freedom[0]))
    return n * (quantile * error / promised(function, d)) ** 2


def measure(
    name: str, function: RidgeFunction, d: int, method: Any, design: str, cap: int = CAP, most: int = 1_000
) -> dict[str, Any]:
    rows = np.zeros((min(REPEATS[d], most), d))
    e = stopped(function, rows, method, design, cap, CONFIDENCE)
    naive = stopped(function, rows, method, design, cap, 1 - looks_of(function, d, method, design, cap) * DELTA)
    design, limit = e.design, promised(function, d)
    missed, naive_missed = (misses(each, function, limit) for each in (e, naive))
    oracle = None if e.design in ("sobol", "aligned") or cap != CAP else oracle_draws(function, d, method, design)
    return {
        "case": name,
        "d": d,
        "method": "clime with curves" if isinstance(method, sl.CLime) else method,
        "design": design,
        "runs": len(rows),
        "converged": int(e.converged.sum()),
        "missed": missed,
        "mean_draws": float(e.n_samples.mean()),
        "naive_converged": int(naive.converged.sum()),
        "naive_missed": naive_missed,
        "naive_draws": float(naive.n_samples.mean()),
        "cap": cap,
        "oracle_draws": oracle,
    }


def stopped(function: RidgeFunction, rows: np.ndarray, method: Any, design: str, cap: int, confidence: float) -> Any:
    """Rows drawn until they are good enough, or to the cap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl.errors.NotConverged)
        return sl.explain(
            function, rows, method=method, design=design, rtol=RTOL, max_samples=cap, confidence=confidence,
            draws="independent",
        )  # fmt: skip


def looks_of(function: RidgeFunction, d: int, method: Any, design: str, cap: int) -> int:
    """K, the number of looks that are planned: with confidence 1 - Kδ each of them may miss with all of δ."""
    job = resolve(
        prepare(function, np.zeros((1, d)), sigma=1.0),
        Options(rtol=RTOL, max_samples=cap),
        method=method,
        design=design,
    )
    return len(job.stopping.looks)


def misses(e: Any, function: RidgeFunction, limit: float) -> int:
    """Rows that say they have converged and are further off than promised."""
    errors = np.linalg.norm(e.values - function.slopes(np.zeros((1, e.values.shape[1])), AROUND), axis=1)
    return int((errors[e.converged] > limit).sum())


def naive(name: str, function: RidgeFunction, d: int) -> dict[str, Any]:
    """The rule that people use, with iid gradients: the same sequences, looked at after 16, 32, ... draws."""
    rows = np.zeros((REPEATS[d], d))
    truth = function.slopes(rows[:1], AROUND)[0]
    error = np.full(len(rows), np.nan)
    draws = np.full(len(rows), CAP)
    for n in 16 * 2 ** np.arange(10):
        e = sl.explain(function, rows, method="smoothgrad", design="iid", n_samples=int(n), draws="independent")
        assert e.groups is not None
        bar = 1.96 * np.linalg.norm(standard_error(e.groups.pseudo, e.groups.sizes), axis=1)
        newly = np.isnan(error) & (bar <= RTOL * np.linalg.norm(e.values, axis=1))
        error[newly] = np.linalg.norm(e.values[newly] - truth, axis=1)
        draws[newly] = n
    stopped = ~np.isnan(error)
    return {
        "case": name,
        "d": d,
        "method": "smoothgrad",
        "design": "naive",
        "runs": len(rows),
        "converged": int(stopped.sum()),
        "missed": int((error[stopped] > promised(function, d)).sum()),
        "mean_draws": float(draws.mean()),
        "oracle_draws": None,
    }


def certified(name: str, function: RidgeFunction, d: int, n: int, **what: Any) -> dict[str, Any]:
    rows = np.zeros((500, d))
    e = sl.explain(function, rows, guarantee="certified", n_samples=n, draws="independent", **what)
    errors = np.linalg.norm(e.values - function.slopes(rows[:1], AROUND), axis=1)
    return {
        "case": name,
        "d": d,
        "method": what["method"],
        "n": n,
        "runs": len(rows),
        "missed": int((errors > e.radius).sum()),
        "radius": float(e.radius.mean()),
        "error_q95": float(np.quantile(errors, 0.95)),
    }


def share(record: dict[str, Any]) -> str:
    """Misses among converged rows; bold where more than 5% cannot be put down to chance."""
    if not record["converged"]:
        return "–"
    found = record["missed"] / record["converged"]
    limit = 0.05 + 3 * np.sqrt(0.05 * 0.95 / record["converged"])
    return f"**{found:.1%}**" if found > limit else f"{found:.1%}"


def main() -> None:
    facts = machine()
    stops, bounds = [], []
    for d in REPEATS:
        for name, function in cases(d).items():
            for method, design in METHODS:
                if name == "step" and method == "smoothgrad":
                    continue  # gradients do not see a step; `agreement` is there to find that out
                stops.append(measure(name, function, d, method, design))
            if name in ("smooth", "rare") and d < 64:
                stops.append(naive(name, function, d))
    ripple = RidgeFunction(RIPPLE, direction(5))
    defaults = ("smoothgrad", "differences", sl.CLime(curves=True))
    stops += [measure("ripple", ripple, 5, method, "auto") for method in defaults]
    for d in REPEATS:  # with the cap that a caller has who gives none
        for method in defaults:
            stops.append(measure("flat, default cap", cases(d)["flat"], d, method, "auto", DEFAULT_CAP, 200))
    for d in (1, 5, 20):
        v = direction(d)
        for n in (1_000, 10_000):
            for method in ("stein", "clime"):
                for name, function in (("probit", Probit(2 * v, 0.3)), ("step", Step(v, 0.2))):
                    bounds.append(certified(name, function, d, n, method=method, output_range=(0, 1)))
            bounds.append(certified("absolute", Absolute(v), d, n, method="smoothgrad", gradient_bound=1.0 + 1e-9))
            smooth = Probit(2 * v, 0.3)
            bounds.append(certified("probit", smooth, d, n, method="smoothgrad", gradient_bound=0.7979))
    path = write_lines("stopping", [{**facts, **record} for record in (*stops, *bounds)])

    print(f"\nrtol {RTOL}, at most {CAP:,} draws, {CONFIDENCE:.0%} confidence; commit {facts['commit']}\n")
    header = ("case", "d", "method", "converged", "missed", "mean draws", "÷ naive looks", "÷ oracle")
    print(
        markdown(
            header,
            [
                (
                    record["case"],
                    record["d"],
                    f"{record['method']}, {record['design']}"
                    if record["design"] != record["method"]
                    else "differences",
                    f"{record['converged'] / record['runs']:.0%}",
                    share(record),
                    f"{record['mean_draws']:,.0f}",
                    f"{record['mean_draws'] / record['naive_draws']:.2f}" if "naive_draws" in record else "",
                    f"{record['mean_draws'] / record['oracle_draws']:.1f}"
                    if record["oracle_draws"] and 256 < record["oracle_draws"] < CAP / 2
                    else "",
                )
                for record in stops
            ],
        )
    )
    print("\nCertified radii, 500 runs each, 95% confidence\n")
    print(
        markdown(
            ("case", "d", "method", "draws", "missed", "radius", "÷ q95 of the error"),
            [
                (
                    record["case"],
                    record["d"],
                    record["method"],
                    f"{record['n']:,}",
                    f"{record['missed'] / record['runs']:.1%}",
                    f"{record['radius']:.3g}",
                    f"{record['radius'] / record['error_q95']:.1f}",
                )
                for record in bounds
            ],
        )
    )
    print(f"\nwritten to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()

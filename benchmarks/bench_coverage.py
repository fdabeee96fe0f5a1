"""How often do 95% intervals hold the truth? Functions with known slopes, explained a thousand times each.

Every method with every design it can use, at growing numbers of draws. A repeat is a row: equal rows with independent
draws. All cases of one line are outputs of one model and share their draws: each coverage is right on its own, but
luck, good or bad, is common to the cases of a line.

- per feature: share of repeats whose interval holds the slope, the smallest and the mean over features;
- simultaneous: share of repeats whose simultaneous intervals hold all slopes;
- L2: share of repeats within `radius` of the truth;
- width: mean over repeats and features of the length of an interval, relative to the L2 norm of the slopes;
- error ratio: root mean square of the standard errors over the actual root mean square error; honest ones are at 1.

With R repeats, a true coverage of 95% shows as 95% ± 1.96·√(0.95·0.05/R): ±1.4% for 1,000, ±2.1% for 400. In the
tables a coverage is bold where honest intervals would come out as low less than once in a thousand times, and in
italics where an interval for one feature holds too often by the same measure: it could be narrower.

    python benchmarks/bench_coverage.py [--quick]
"""

from __future__ import annotations

from common import machine, markdown, write_lines  # before NumPy: it sets one thread

# isort: split
import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

import smoothlime as sl
from smoothlime.testing import Absolute, Cubic, Exponential, Probit, Relu, RidgeFunction, Sine

CONFIDENCE = 0.95
SEED = 0
REPEATS = {256: 1_000, 1_024: 1_000, 4_096: 1_000, 16_384: 400}
FEWER_AT_8 = {256: 1_000, 1_024: 1_000, 4_096: 400}
CHANCE = 1e-3
"""Coverages that honest intervals would show more rarely than this are bold."""

WELL_BEHAVED: dict[str, Callable[[np.ndarray], RidgeFunction]] = {
    "sine": lambda u: Sine(u, 0.5),
    "probit": lambda u: Probit(u, 0.3),
    "exponential": lambda u: Exponential(0.3 * u),
    "absolute": lambda u: Absolute(u, 0.3),
    "relu": lambda u: Relu(u, 0.2),
}
SKEWED: dict[str, Callable[[np.ndarray], RidgeFunction]] = {
    "cubic": lambda u: Cubic(u, 0.5),
    # a saturated classifier: its boundary lies two σ away, and 9% of draws come near it
    "saturated": lambda u: Probit(3 * u, -6.0),
    # almost a step, one σ away: 2% of draws, those within ±2 of its scale, have nearly all of the gradient
    "rare": lambda u: Probit(48 * u, -48.0),
}
CASES = WELL_BEHAVED | SKEWED

COMBINATIONS = [
    (method, design)
    for method, designs in (
        ("smoothgrad", ("iid", "antithetic", "orthogonal", "sobol")),
        ("clime", ("iid", "antithetic", "orthogonal", "sobol")),
        ("stein", ("iid", "antithetic", "sobol")),
        ("differences", ("auto",)),
    )
    for design in designs
]


class AllCases:
    """The cases in d features as outputs of one model, all along one direction that leans on the first features."""

    def __init__(self, d: int) -> None:
        u = 0.7 ** np.arange(d)
        self.functions = [case(u / np.linalg.norm(u)) for case in CASES.values()]
        self.outputs = tuple(CASES)
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def values(self, points: np.ndarray) -> np.ndarray:
        """Every case at every point, (n, k)."""
        return np.concatenate([each.values(points) for each in self.functions], axis=1)

    def values_and_gradients(self, points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every case (n, k), and the gradient of their weighted sum, (n, d)."""
        # outputs are explained one after the other at the same points: values are needed once
        if self._last is None or not np.array_equal(self._last[0], points):
            self._last = points.copy(), self.values(points)
        gradients = sum(
            self.functions[k].values_and_gradients(points, weights[:, k, None])[1]
            for k in np.flatnonzero(weights.any(axis=0))
        )
        return self._last[1], gradients


def judge(e: sl.Explanation, truth: np.ndarray) -> dict[str, float]:
    """Coverages of many independent explanations of the same slopes (d,)."""
    size = float(np.linalg.norm(truth))
    rounding = 1e-12 * size  # both ends of an exact answer may round to one side
    lower, upper = e.interval(CONFIDENCE)
    holds = (lower - rounding <= truth) & (truth <= upper + rounding)
    wide_lower, wide_upper = e.interval(CONFIDENCE, simultaneous=True)
    holds_all = ((wide_lower - rounding <= truth) & (truth <= wide_upper + rounding)).all(axis=1)
    error = e.values - truth
    away = np.linalg.norm(error * e.std, axis=1)
    return {
        "feature_min": float(holds.mean(axis=0).min()),
        "feature_mean": float(holds.mean()),
        "simultaneous": float(holds_all.mean()),
        "l2": float((away <= e.radius + rounding).mean()),
        "width": float((upper - lower).mean() / size),
        "error_ratio": float(np.sqrt((e.standard_error**2).sum() / (error**2).sum())),
    }


def measure(d: int, n: int, repeats: int, combinations: Iterable[tuple[str, str]]) -> Iterable[dict[str, Any]]:
    """One record per method, design and case."""
    model = AllCases(d)
    x = np.zeros((repeats, d))
    neighbourhood = sl.Neighbourhood(1.0)
    for position, (method, design) in enumerate(combinations):
        # a seed for each call, else one unlucky set of draws shows in every line of a table
        seed = SEED + 1_000_000 * d + 100 * n + position
        answers = sl.explain_outputs(
            model,
            x,
            method=method,
            design=design,
            sigma=neighbourhood,
            n_samples=n,
            confidence=CONFIDENCE,
            draws="independent",
            seed=seed,
            progress=False,
        )
        default = sl.explain(model, x[:1], method=method, n_samples=n, target=0, progress=False).design
        for name, function in zip(CASES, model.functions, strict=True):
            e = answers[name]
            yield {
                "d": d,
                "n": n,
                "n_used": int(e.n_samples[0]),
                "repeats": repeats,
                "seed": seed,
                "method": method,
                "design": e.design,
                "is_default": e.design == default,
                "case": name,
                "group": "well-behaved" if name in WELL_BEHAVED else "skewed",
                **judge(e, function.slopes(x[:1], neighbourhood)[0]),
            }


def shown(coverage: float, repeats: int, among: int = 1) -> str:
    """A coverage in per cent, bold where it is too low for chance; `among`: as the smallest of so many."""
    return f"**{100 * coverage:.1f}**" if coverage < CONFIDENCE - leeway(repeats, among) else f"{100 * coverage:.1f}"


def leeway(repeats: int, among: int = 1) -> float:
    """How far the smallest of so many coverages may be off by chance."""
    return float(ndtri(1 - CHANCE / among) * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / repeats))


def by_feature(record: dict[str, Any]) -> str:
    """Mean and smallest coverage over the features; one number where they agree."""
    mean = shown(record["feature_mean"], record["repeats"])
    if record["feature_min"] > CONFIDENCE + leeway(record["repeats"]):
        mean = f"*{mean}*"
    if record["feature_min"] == record["feature_mean"]:
        return mean
    return f"{mean} ({shown(record['feature_min'], record['repeats'], record['d'])})"


def worst(records: Iterable[dict[str, Any]], key: str) -> str:
    lowest = min(records, key=lambda each: each[key])
    return shown(lowest[key], lowest["repeats"], len(WELL_BEHAVED))


def called(record: dict[str, Any]) -> str:
    method, design = record["method"], record["design"]
    return method if method == design else f"{method}, {design}"


def by_method(records: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Records by method and design, in the order they were made."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in records:
        found.setdefault(called(each), []).append(each)
    return found


def well_behaved_table(records: Sequence[dict[str, Any]], n: int) -> str:
    rows = []
    for d in sorted({each["d"] for each in records}):
        here = [each for each in records if (each["d"], each["n"], each["group"]) == (d, n, "well-behaved")]
        for who, found in by_method(here).items():
            mark = " (default)" if found[0]["is_default"] else ""
            widths = " / ".join(f"{100 * each['width']:.2g}" for each in found)
            cells = [by_feature(each) for each in found]
            rows.append((d, who + mark, *cells, worst(found, "simultaneous"), worst(found, "l2"), widths))
    return markdown(("d", "method, design", *WELL_BEHAVED, "simultaneous", "L2", "widths"), rows)


def skewed_table(records: Sequence[dict[str, Any]], d: int) -> str:
    rows = []
    for case in SKEWED:
        here = [each for each in records if (each["d"], each["case"]) == (d, case)]
        for who, found in by_method(here).items():
            cells = [by_feature(each) for each in found]
            if d > 1:  # with one feature the two are the same
                cells = [
                    f"{cell} · {shown(each['l2'], each['repeats'])}" for cell, each in zip(cells, found, strict=True)
                ]
            widths = " / ".join(f"{100 * each['width']:.2g}" for each in found)
            rows.append((case, who, *cells, widths))
    draws = sorted({each["n"] for each in records if each["d"] == d})
    return markdown(("case", "method, design", *(f"n = {n:,}" for n in draws), "widths"), rows)


def is_short(record: dict[str, Any]) -> bool:
    """Whether any of the coverages is too low for chance."""
    allowed = {"feature_mean": 1, "feature_min": record["d"], "simultaneous": 1, "l2": 1}
    return any(record[key] < CONFIDENCE - leeway(record["repeats"], among) for key, among in allowed.items())


def shortfalls_table(records: Sequence[dict[str, Any]]) -> str:
    """Every default that falls short, at any d and n: what the other tables leave out."""
    rows = [
        (
            each["case"],
            each["d"],
            f"{each['n']:,}",
            called(each),
            by_feature(each),
            shown(each["simultaneous"], each["repeats"]),
            shown(each["l2"], each["repeats"]),
            f"{each['error_ratio']:.2f}",
        )
        for each in sorted(records, key=lambda each: each["feature_min"])
        if each["is_default"] and is_short(each)
    ]
    return markdown(("case", "d", "n", "method, design", "per feature", "simultaneous", "L2", "error ratio"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the repeats, up to 1,024 draws, d = 3")
    quick = parser.parse_args().quick
    plan = {3: {256: 100, 1_024: 100}} if quick else {1: REPEATS, 3: REPEATS, 8: FEWER_AT_8}
    facts = machine() | {"confidence": CONFIDENCE}
    records = []
    for d, by_draws in plan.items():
        for n, repeats in by_draws.items():
            print(f"d = {d}, n = {n:,}, {repeats:,} repeats", file=sys.stderr, flush=True)
            records += measure(d, n, repeats, COMBINATIONS)
    path = write_lines("coverage_quick" if quick else "coverage", [each | facts for each in records])
    print(
        "\nWell-behaved functions, n = 1,024. Per feature: mean (smallest) coverage in %; simultaneous and L2: the"
        " lowest of the five cases; widths of the five in % of the norm of the slopes.\n"
    )
    print(well_behaved_table(records, 1_024))
    for d in plan:
        print(
            f"\nSkewed functions, d = {d}. Per feature: mean (smallest) coverage in %{'; then L2' * (d > 1)};"
            " widths by n in % of the norm of the slopes.\n"
        )
        print(skewed_table(records, d))
    defaults = sum(each["is_default"] for each in records)
    print(f"\nDefault designs that fall short, of {defaults} combinations; {CHANCE * defaults:.1f} by chance alone.\n")
    print(shortfalls_table(records))
    print(f"\nsmoothlime {facts['versions']['smoothlime']}, commit {facts['commit']}; written to {path.name}")


if __name__ == "__main__":
    main()

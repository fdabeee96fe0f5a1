"""Is a line that was only seen near a row taken for one all over its neighbourhood? Misses, and what it costs to ask.

f = g(v·z) + trend·(u·z) around x = 0 with σ = 1, where g is 0 near the row: max(0, s − k) (relu), the same on both
sides (two-sided), (s − k)₊²/2 (hinge), and a bump exp(−((s − k)/0.3)²/2). The trend rises along v or across. Equal rows
with draws of their own are independent runs: 200 a cell, default method and design, rtol = 0.05.

Missed: share of the rows that say they have converged whose true error exceeds max(atol, rtol·‖w‖). Cells are judged
where at least 20 rows converge. Also counted: how many of them are further off than their radius.

The last table is what it costs: evaluations of a row, and CPU time of a call at default settings. Run the same script
on an older commit to compare.

    python benchmarks/bench_far.py [--quick]
"""

from __future__ import annotations

from common import interleaved, is_quick, machine, markdown, publish  # before NumPy: it sets one thread

# isort: split
import statistics
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import torch
from scipy.special import ndtr

import smoothlime as sl
from smoothlime.testing import Exponential, KnownFunction, Linear, Probit, Profile, RidgeFunction, Sine

RTOL, REPEATS, FEWEST = 0.05, 200, 20
CAPS = {"gradients": 2_048, "values": 2_048}
AROUND = sl.Neighbourhood(1.0)
FEATURES, KINKS, TRENDS = (1, 2, 5, 20, 64), (2.0, 2.5, 3.0), (0.01, 0.03, 0.1)
WIDTH = 0.3
"""Of a bump."""
ROUNDS = 9


def _phi(s: Any) -> Any:
    return np.exp(-np.square(s) / 2) / np.sqrt(2 * np.pi)


def families(k: float) -> dict[str, Profile]:
    """Functions that are 0 near the row; only the mean of the derivative over N(0, 1) is asked for."""
    bump = lambda s: np.exp(-(((s - k) / WIDTH) ** 2) / 2)
    wide = WIDTH**2 + 1
    means = {
        "relu": ndtr(-k),
        "two-sided": 2 * ndtr(-k),
        "hinge": _phi(k) - k * ndtr(-k),
        "bump": WIDTH / np.sqrt(wide) * np.exp(-(k**2) / wide / 2) * k / wide,
    }
    shapes = {
        "relu": (lambda s: np.maximum(s - k, 0), lambda s: (s > k) * 1.0),
        "two-sided": (lambda s: np.sign(s) * np.maximum(np.abs(s) - k, 0), lambda s: (np.abs(s) > k) * 1.0),
        "hinge": (lambda s: np.maximum(s - k, 0) ** 2 / 2, lambda s: np.maximum(s - k, 0)),
        "bump": (bump, lambda s: -(s - k) / WIDTH**2 * bump(s)),
    }
    unused = lambda m, t: np.zeros_like(m)
    return {
        name: Profile(*shapes[name], unused, lambda m, t, mean=mean: np.full_like(m, mean))
        for name, mean in means.items()
    }


class OnAPlane(KnownFunction):
    """A function of v·a on a plane."""

    def __init__(self, ridge: RidgeFunction, plane: RidgeFunction) -> None:
        self.ridge, self.plane = ridge, plane

    def _values(self, a: Any) -> Any:
        return self.ridge._values(a) + self.plane._values(a)

    def _gradients(self, a: Any) -> Any:
        return self.ridge._gradients(a) + self.plane._gradients(a)

    def _slopes(self, x: Any, cov: Any) -> Any:
        return self.ridge._slopes(x, cov) + self.plane._slopes(x, cov)


def direction(d: int) -> np.ndarray:
    v = np.cos(1.0 + 2.0 * np.arange(d))
    return v / np.linalg.norm(v)


def across(v: np.ndarray) -> np.ndarray:
    u = np.sin(1.0 + 3.0 * np.arange(len(v)))
    u -= (u @ v) * v
    return u / np.linalg.norm(u)


def cells(*, few: bool) -> Iterator[dict[str, Any]]:
    names = ("relu",) if few else tuple(families(2.0))
    kinks, trends = ((2.5, 3.0), (0.01, 0.03)) if few else (KINKS, TRENDS)
    for needs, d, name, kink, trend, way in product(CAPS, FEATURES, names, kinks, trends, ("along", "across")):
        if d > 1 or way == "along":
            yield {"needs": needs, "d": d, "family": name, "kink": kink, "trend": trend, "way": way}


def measure(cell: dict[str, Any]) -> dict[str, Any]:
    d, needs, v = cell["d"], cell["needs"], direction(cell["d"])
    profile, is_along = families(cell["kink"])[cell["family"]], cell["way"] == "along"
    function = OnAPlane(RidgeFunction(profile, v), Linear(cell["trend"] * (v if is_along else across(v))))
    model = function if needs == "gradients" else lambda a: function.values(a)[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl.errors.NotConverged)
        e = sl.explain(model, np.zeros((REPEATS, d)), rtol=RTOL, max_samples=CAPS[needs], draws="independent")
    truth = function.slopes(np.zeros((1, d)), AROUND)
    s, t = np.random.default_rng(0).standard_normal((2, 200_000))
    spread = (profile.value(s) + cell["trend"] * (s if is_along else t)).std()
    errors = np.linalg.norm(e.values - truth, axis=1)[e.converged]
    return cell | {
        "what": "cell",
        "runs": REPEATS,
        "converged": int(e.converged.sum()),
        "missed": int((errors > max(RTOL * np.linalg.norm(truth), 0.01 * spread)).sum()),
        "beyond_radius": int((errors > e.radius[e.converged] * (1 + 1e-9)).sum()),
        "draws": float(e.n_samples.mean()),
        "evaluations": float(e.n_evaluations.mean()),
    }


def network(activation: type[torch.nn.Module]) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(15, 10), activation(), torch.nn.Linear(10, 10), activation(), torch.nn.Linear(10, 1)
    ).eval()


def models() -> dict[str, Any]:
    """What is explained by default settings: by gradients, and the same function by its values."""
    v = direction(15)
    smooth = {"exp(s/2)": Exponential(v / 2), "sin": Sine(v, 0.3), "Φ(2s)": Probit(2 * v, 0.3), "linear": Linear(v)}
    found: dict[str, Any] = {f"{name}, gradients": function for name, function in smooth.items()}
    found |= {f"{name}, values": lambda a, f=function: f.values(a)[:, 0] for name, function in smooth.items()}
    return found | {"ELU network": network(torch.nn.ELU), "ReLU network": network(torch.nn.ReLU)}


def costs() -> list[dict[str, Any]]:
    records = []
    for name, model in models().items():
        for rows in (1, 200):
            x = 0.3 * np.random.default_rng(1).standard_normal((rows, 15)).astype(np.float32).astype(np.float64)
            for settings in ({}, {"n_samples": 1_024}):
                job = lambda m=model, x=x, settings=settings: sl.explain(m, x, sigma=0.5, **settings)
                seconds = interleaved({name: job}, ROUNDS if rows == 1 else 3)[name]
                e = job()
                records.append(
                    {
                        "what": "cost",
                        "model": name,
                        "rows": rows,
                        "n_samples": settings.get("n_samples"),
                        "draws": float(e.n_samples.mean()),
                        "evaluations": float(e.n_evaluations.mean()),
                        "converged": int(e.converged.sum()),
                        "milliseconds": 1e3 * statistics.median(seconds),
                    }
                )
    return records


def share(record: dict[str, Any]) -> str:
    """Misses among converged rows; bold where more than 5% cannot be put down to chance."""
    found = record["missed"] / record["converged"]
    return f"**{found:.1%}**" if is_short(record) else f"{found:.1%}"


def is_short(record: dict[str, Any]) -> bool:
    limit = 0.05 + 3 * np.sqrt(0.05 * 0.95 / record["converged"])
    return bool(record["missed"] / record["converged"] > limit)


def cell_table(records: list[dict[str, Any]]) -> str:
    """Cells by what is explained and d: how many are judged and short of the promise, misses, and cost."""
    lines = []
    for needs, d in product(CAPS, FEATURES):
        here = [each for each in records if each["what"] == "cell" and (each["needs"], each["d"]) == (needs, d)]
        judged = [each for each in here if each["converged"] >= FEWEST]
        if here:
            shares = [each["missed"] / each["converged"] for each in judged]
            beyond = [each["beyond_radius"] / each["converged"] for each in judged]
            lines.append(
                (
                    needs, d, len(here), len(judged), sum(map(is_short, judged)),
                    f"{sum(each['missed'] for each in here) / sum(each['runs'] for each in here):.2%}",
                    f"{max(shares, default=0):.1%}", f"{max(beyond, default=0):.0%}",
                    f"{np.mean([each['evaluations'] - each['draws'] for each in here]):.0f}",
                )
            )  # fmt: skip
    header = (
        "from", "d", "cells", "judged", "short", "missed, of all rows", "worst cell, of converged",
        "beyond radius, worst", "evaluations beside draws",
    )  # fmt: skip
    return markdown(header, lines)


def short_table(records: list[dict[str, Any]]) -> str:
    """Cells that are short of the promise."""
    short = [each for each in records if each["what"] == "cell" and each["converged"] >= FEWEST and is_short(each)]
    names = ("needs", "d", "family", "kink", "trend", "way", "converged")
    return markdown((*names, "missed"), [(*(each[name] for name in names), share(each)) for each in short])


def cost_table(records: list[dict[str, Any]]) -> str:
    header = ("model", "rows", "n_samples", "draws", "evaluations", "converged", "ms")
    return markdown(
        header,
        [
            (
                each["model"], each["rows"], each["n_samples"] or "auto", f"{each['draws']:,.0f}",
                f"{each['evaluations']:,.0f}", f"{each['converged'] / each['rows']:.0%}",
                f"{each['milliseconds']:,.1f}",
            )
            for each in records
            if each["what"] == "cost"
        ],
    )  # fmt: skip


def main() -> None:
    quick = is_quick(__doc__, "a ninth of the cells")
    facts = machine("torch")
    records = [measure(cell) for cell in cells(few=quick)] + costs()
    shown = f"rtol {RTOL}, {REPEATS} rows a cell, at most {CAPS} draws; commit {facts['commit']}"
    publish(
        "far",
        records,
        facts,
        "\n\n".join((shown, cell_table(records), short_table(records), cost_table(records))),
        quick=quick,
    )


if __name__ == "__main__":
    main()

"""Do intervals hold where a kink or a jump lies in an unlucky place? A scan over places and kinds of kinks.

Sixteen runs of one sequence, or eight sequences, hold m points each, one in each cell of length 1/m. If the tail beyond
a kink is (k + e/16)/m, all runs hold k points there with probability 1 − |e|: they agree, and err alike. So the scan
goes over k and e, not over distances: the worst places are few, and lie elsewhere for every number of draws.

Each case is a function of one feature around 0 with σ = 1. A repeat is a row: equal rows with independent draws, which
all cells of one n share.

- coverage: share of repeats whose 95% interval holds the slope, in the worst cell; and how many cells hold less than
  90% less three standard errors;
- half_width and rms_error: means in units of J/n, the error of one draw beyond the kink, over the cells; times n for
  functions without kinks, where they show what a floor costs.

    python benchmarks/bench_gaps.py [--quick]
"""

from __future__ import annotations

from common import is_quick, machine, markdown, publish, short  # before NumPy: it sets one thread

# isort: split
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

import smoothlime as sl

CONFIDENCE = 0.95
SEED = 3
PLACES = (-0.9, -0.6, -0.3, 0.3, 0.6, 0.9)
COUNTS = (1, 2, 3, 5, 8, 12, 16, 20)
REPEATS = {256: 300, 1_024: 300, 4_096: 150, 16_384: 60}
LOW = 0.9
AT_ONCE = 12
"""Cells that are outputs of one model."""
FARTHEST = 0.4
"""Tails beyond this are no tails: runs of few points hold as many on either side."""

METHODS: dict[str, tuple[Any, str]] = {
    "smoothgrad, aligned": (sl.SmoothGrad(control="values"), "aligned"),
    "smoothgrad, sobol": (sl.SmoothGrad(), "sobol"),
    "clime with curves, aligned": (sl.CLime(curves=True), "aligned"),
    "clime, aligned": (sl.CLime(), "aligned"),
    "clime, sobol": (sl.CLime(), "sobol"),
    "stein, sobol": (sl.Stein(), "sobol"),
}
RUNS = {"aligned": 16, "sobol": 8}

Function = Callable[[np.ndarray], np.ndarray]


def density(z: Any) -> Any:
    """Of a standard normal number."""
    return np.exp(-np.square(z) / 2) / np.sqrt(2 * np.pi)


@dataclass(frozen=True, slots=True)
class Cell:
    """A function of one feature, its derivative, and the mean of that over N(0, 1)."""

    kind: str
    k: int
    e: float
    jump: float
    value: Function
    slope: Function
    truth: float


def kinked(k: int, e: float, m: int) -> Iterator[Cell]:
    """Functions whose slope jumps where the tail is (k + e/16)/m."""
    q = (k + e / 16) / m
    t = float(-ndtri(q))
    u = float(-ndtri(min(0.45, 2.37 * q + 0.11)))
    shapes: dict[str, tuple[float, Function, Function, float]] = {
        "relu": (1.0, lambda z: np.maximum(z - t, 0.0), lambda z: 1.0 * (z > t), q),
        "clipped exp": (
            float(np.exp(t)),
            lambda z: np.exp(np.minimum(z, t)),
            lambda z: np.exp(np.minimum(z, t)) * (z < t),
            float(np.exp(0.5) * ndtr(t - 1)),
        ),
        "clipped square": (
            2 * t, lambda z: np.minimum(z, t) ** 2, lambda z: 2 * z * (z < t), float(-2 * density(t)),
        ),
        "two kinks": (
            1.0,
            lambda z: np.maximum(z - t, 0.0) + 0.5 * np.maximum(z - u, 0.0),
            lambda z: (z > t) + 0.5 * (z > u),
            q + 0.5 * float(ndtr(-u)),
        ),
        "box": (
            1.0,
            lambda z: np.clip(z - t, 0.0, 0.5),
            lambda z: 1.0 * ((z > t) & (z < t + 0.5)),
            q - float(ndtr(-t - 0.5)),
        ),
    }  # fmt: skip
    for kind, (jump, value, slope, truth) in shapes.items():
        yield Cell(kind, k, e, jump, value, slope, truth)


def stepped(k: int, e: float, m: int) -> Iterator[Cell]:
    """Functions that jump there themselves: for methods that ask for values."""
    q = (k + e / 16) / m
    t = float(-ndtri(q))
    yield Cell("step", k, e, 1.0, lambda z: 1.0 * (z > t), np.zeros_like, float(density(t)))
    yield Cell(
        "narrow step", k, e, 1.0,
        lambda z: 1.0 * ((z > t) & (z < t + 0.5)), np.zeros_like, float(density(t) - density(t + 0.5)),
    )  # fmt: skip


def smooth() -> Iterator[Cell]:
    """Functions without kinks."""
    for kind, value, slope, truth in (
        ("sin", lambda z: np.sin(z + 0.5), lambda z: np.cos(z + 0.5), np.cos(0.5) * np.exp(-0.5)),
        ("quick sin", lambda z: np.sin(2 * z + 0.5), lambda z: 2 * np.cos(2 * z + 0.5), 2 * np.cos(0.5) * np.exp(-2)),
        ("probit", lambda z: ndtr(z - 0.3), lambda z: density(z - 0.3), density(0.3 / 2**0.5) / 2**0.5),
        ("steep probit", lambda z: ndtr(3 * z - 6), lambda z: 3 * density(3 * z - 6), 3 * density(3.6**0.5) / 10**0.5),
        ("exp", np.exp, np.exp, np.exp(0.5)),
        (
            "elu",
            lambda z: np.where(z > 0.3, z - 0.3, np.expm1(np.minimum(z - 0.3, 0.0))),
            lambda z: np.where(z > 0.3, 1.0, np.exp(np.minimum(z - 0.3, 0.0))),
            float(ndtr(-0.3) + np.exp(-0.3 + 0.5) * ndtr(0.3 - 1)),
        ),
    ):  # fmt: skip
        yield Cell(kind, 0, 0.0, 1.0, value, slope, float(truth))


class Cells:
    """All cells as outputs of one model of one feature."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = cells
        self.outputs = tuple(f"{i}" for i in range(len(cells)))
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def values(self, points: np.ndarray) -> np.ndarray:
        """Every cell at every point, (n, k)."""
        if self._last is None or not np.array_equal(self._last[0], points):
            z = points[:, 0]
            self._last = points.copy(), np.stack([each.value(z) for each in self.cells], axis=1)
        return self._last[1].copy()

    def values_and_gradients(self, points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every cell (n, k), and the gradient of their weighted sum, (n, 1)."""
        gradients = sum(weights[:, i] * self.cells[i].slope(points[:, 0]) for i in np.flatnonzero(weights.any(axis=0)))
        return self.values(points), np.asarray(gradients)[:, None]


def measure(name: str, n: int, repeats: int, cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """One record for each cell."""
    method, design = METHODS[name]
    answers = sl.explain_outputs(
        Cells(cells), np.zeros((repeats, 1)), method=method, design=design, sigma=1.0, n_samples=n,
        confidence=CONFIDENCE, draws="independent", seed=SEED + n, progress=False,
    )  # fmt: skip
    for each, e in zip(cells, answers.values(), strict=True):
        half = e.half_width(1 - CONFIDENCE)[:, 0]
        error = np.abs(e.values[:, 0] - each.truth)
        rounding = 1e-12 * abs(each.jump)
        yield {
            "kind": each.kind,
            "k": each.k,
            "e": each.e,
            "coverage": float((error <= half + rounding).mean()),
            "half_width": float(np.mean(half) * n / each.jump),
            "rms_error": float(np.sqrt(np.mean(error**2)) * n / each.jump),
        }


def places(name: str, n: int) -> list[Cell]:
    """All cells of a method with n draws."""
    design = METHODS[name][1]
    m = n // RUNS[design]
    found = []
    for k in COUNTS:
        for e in PLACES if k <= FARTHEST * m else ():
            # scrambles that are independent disagree at every place between two counts: these lie between k and k + 1
            where = e if design == "aligned" else 8 * (e + 1)
            found += [*kinked(k, where, m), *(() if "smoothgrad" in name else stepped(k, where, m))]
    return found


def scan(name: str, n: int, repeats: int) -> Iterator[dict[str, Any]]:
    """One record for each kind of function: its worst cell, and how many are worse than 90%."""
    cells = places(name, n)
    made = [each for i in range(0, len(cells), AT_ONCE) for each in measure(name, n, repeats, cells[i : i + AT_ONCE])]
    low = LOW - 3 * np.sqrt(LOW * (1 - LOW) / repeats)
    for kind in dict.fromkeys(each["kind"] for each in made):
        found = [each for each in made if each["kind"] == kind]
        worst = min(found, key=lambda each: each["coverage"])
        yield {
            "method": name,
            "n": n,
            "repeats": repeats,
            "is_smooth": False,
            **worst,
            "cells": len(found),
            "below": sum(bool(each["coverage"] < low) for each in found),
            "half_width": float(np.mean([each["half_width"] for each in found])),
            "rms_error": float(np.mean([each["rms_error"] for each in found])),
        }
    for each in measure(name, n, repeats, list(smooth())):
        yield {"method": name, "n": n, "repeats": repeats, "is_smooth": True, **each, "cells": 1, "below": 0}


def cells_table(records: Sequence[dict[str, Any]]) -> str:
    """The worst coverage of each kind, and how many cells are below."""
    jumps = [each for each in records if not each["is_smooth"]]
    kinds = list(dict.fromkeys(each["kind"] for each in jumps))
    rows = []
    for name, n in dict.fromkeys((each["method"], each["n"]) for each in jumps):
        here = {each["kind"]: each for each in jumps if (each["method"], each["n"]) == (name, n)}
        below, cells = (sum(each[key] for each in here.values()) for key in ("below", "cells"))
        worst = (f"{100 * here[kind]['coverage']:.0f}" if kind in here else "" for kind in kinds)
        rows.append((name, f"{n:,}", *worst, f"{below} of {cells}"))
    return markdown(("method, design", "n", *kinds, "cells below 90%"), rows)


def smooth_table(records: Sequence[dict[str, Any]]) -> str:
    """Coverage and width where there is no kink."""
    calm = [each for each in records if each["is_smooth"]]
    kinds = list(dict.fromkeys(each["kind"] for each in calm))
    rows = []
    for name, n in dict.fromkeys((each["method"], each["n"]) for each in calm):
        here = {each["kind"]: each for each in calm if (each["method"], each["n"]) == (name, n)}
        cells = (f"{100 * here[kind]['coverage']:.0f} ({short(here[kind]['half_width'])})" for kind in kinds)
        rows.append((name, f"{n:,}", *cells))
    return markdown(("method, design", "n", *kinds), rows)


def main() -> None:
    quick = is_quick(__doc__ or "", "gradients at 256 and 1,024 draws, 100 repeats")
    facts = machine()
    made: list[dict[str, Any]] = []
    for name in METHODS:
        for n, repeats in REPEATS.items():
            is_long = n > 4_096 and name != "smoothgrad, aligned"
            if not (is_long or (quick and (n > 1_024 or "smoothgrad" not in name))):
                made += scan(name, n, 100 if quick else repeats)
    shown = f"{cells_table(made)}\n\nSmooth: coverage in % (half-width times n)\n\n{smooth_table(made)}"
    publish("gaps", made, facts, shown, quick=quick)


if __name__ == "__main__":
    main()

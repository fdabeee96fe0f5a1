"""Whether the runs of one scrambled sequence tell its error, whichever two coordinates a model multiplies.

Means of g(z_j)·g(z_k) over n points, which are 0, for every two coordinates and six functions g. For each pair the
standard error from sixteen runs over the true one, both as root mean squares over seeds: below 1, runs err alike and
intervals are too narrow. Scrambled Sobol' points as they are, and `design="aligned"`, which has its points change
places (`smoothlime.draws.sobol`). The table behind `EVEN_TOGETHER`.

    python benchmarks/bench_nets.py
"""

from __future__ import annotations

from common import machine, markdown, write_lines  # before NumPy: it sets one thread

# isort: split
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from smoothlime.draws.designs import DESIGNS, PARTS

FEATURES, DRAWS, SEEDS = 40, (256, 512, 1_024, 2_048, 4_096, 8_192), 100
FIRST = (6, 7, 8, 10, 16, 40)
LOW = 0.7
FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "z": lambda z: z,
    "z² − 1": lambda z: z**2 - 1,
    "z³ − 3z": lambda z: z**3 - 3 * z,
    "sin 2z": lambda z: np.sin(2 * z),
    "sin 3z": lambda z: np.sin(3 * z),
    "cos 2z − e⁻²": lambda z: np.cos(2 * z) - np.exp(-2),
}


def sobol(n: int, seed: int) -> np.ndarray:
    """Scrambled points as they are, normal."""
    return ndtri(qmc.Sobol(FEATURES, scramble=True, rng=np.random.default_rng(seed)).random(n) + 0.5**31)


def aligned(n: int, seed: int) -> np.ndarray:
    """Draws of the design, before they are turned."""
    return DESIGNS["aligned"].stream(FEATURES, seed).take(n)


def told(draw: Callable[[int, int], np.ndarray], n: int) -> np.ndarray:
    """(functions, pairs) errors that runs tell, over the true ones."""
    pairs = np.triu_indices(FEATURES, 1)
    true, seen = np.zeros((2, len(FUNCTIONS), len(pairs[0])))
    for seed in range(SEEDS):
        z = draw(n, seed).reshape(PARTS, n // PARTS, FEATURES)
        for i, function in enumerate(FUNCTIONS.values()):
            g = function(z)
            by_run = (g.swapaxes(1, 2) @ g / g.shape[1])[:, *pairs]
            true[i] += by_run.mean(axis=0) ** 2
            seen[i] += by_run.var(axis=0, ddof=1) / PARTS
    return np.sqrt(seen / true)


def records() -> list[dict[str, Any]]:
    first, second = np.triu_indices(FEATURES, 1)
    found = []
    for who, draw in (("Sobol'", sobol), ("aligned", aligned)):
        for n in DRAWS:
            ratio = told(draw, n)
            for k in FIRST:
                some = ratio[:, (first < k) & (second < k)]
                function = list(FUNCTIONS)[int(some.min(axis=1).argmin())]
                found.append(
                    {"who": who, "draws": n, "first": k, "pairs": some.shape[1], "least": float(some.min()),
                     "function": function, "low": int((some.min(axis=0) < LOW).sum())}
                )  # fmt: skip
            print(f"{who}, {n:,} points: least {found[-1]['least']:.2f} of all pairs", flush=True)
    return found


def main() -> None:
    facts = machine() | {"features": FEATURES, "seeds": SEEDS, "low_below": LOW}
    made = records()
    path = write_lines("nets", [each | facts for each in made])
    header = ("points", "from", *(f"any two of {k}" for k in FIRST))
    lines = [
        (
            f"{n:,}",
            who,
            *(f"{each['least']:.2f} ({each['low']})" for each in made if each["draws"] == n and each["who"] == who),
        )
        for who in ("Sobol'", "aligned")
        for n in DRAWS
    ]
    print(markdown(header, lines))
    print(f"\nleast ratio over pairs and functions, and how many pairs are below {LOW}; written to {path.name}")


if __name__ == "__main__":
    main()

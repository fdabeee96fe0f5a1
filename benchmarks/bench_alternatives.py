"""What aligned draws could have been instead: fewer or more runs, directions and pilots, pairs, no values, no curves.

Networks of `bench_designs`, six rows, eight seeds. "Gain" is the squared error of independent draws over that of the
alternative at the same number of draws (the pilot not counted, as alternatives differ in it); "draws" is what rows
take on average (geometric mean) until their error is within 5%.

    python benchmarks/bench_alternatives.py
"""

from __future__ import annotations

from common import machine, markdown, write_lines  # before NumPy: it sets one thread

# isort: split
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from bench_designs import trained

import smoothlime as sl
from smoothlime.draws import designs
from smoothlime.draws import rotation as alignment
from smoothlime.estimators import gradient_value as both

NETWORKS = ((11, 10), (16, 10), (64, 128))
SIGMAS, DRAWS, SEEDS, REFERENCE = (0.1, 0.316, 1.0), 1_024, 8, 2**16
SHIPPED = {"runs": 16, "directions": 5, "pilot": 16}
OTHERS = {"runs": (8, 32), "directions": (1, 3, 10), "pilot": (8, 32)}
PLACES = {
    "runs": ((designs, "PARTS"),),
    "directions": ((alignment, "DIRECTIONS"),),
    "pilot": ((alignment, "PILOTS"),),
    "pilot of values": ((alignment, "VALUE_PILOTS"),),
    "skewness": ((both, "SKEWED"),),
}


@contextmanager
def instead(what: str, value: Any) -> Iterator[None]:
    """The library with another constant."""
    before = [getattr(module, name) for module, name in PLACES[what]]
    for module, name in PLACES[what]:
        setattr(module, name, (value, value) if what == "pilot" else value)
    try:
        yield
    finally:
        for (module, name), old in zip(PLACES[what], before, strict=True):
            setattr(module, name, old)


class Case:
    """A network, its rows, a σ, and how well independent draws do."""

    def __init__(self, d: int, width: int, sigma: float) -> None:
        net, self.rows = trained(d, width)
        self.d, self.sigma = d, sigma
        self.model = sl.as_model(net, output="probability")
        self.values = sl.from_functions(values=self.model.values)
        self.truth = self.explain(n_samples=REFERENCE, method="smoothgrad").standardised
        self.iid = self.error(method="smoothgrad", design="iid")

    def explain(self, *, by: str = "gradients", **more: Any) -> sl.Explanation:
        """All rows, by gradients or by predictions."""
        model = self.model if by == "gradients" else self.values
        return sl.explain(model, self.rows, sigma=self.sigma, target=1, progress=False, **more)

    def error(self, **more: Any) -> np.ndarray:
        """Squared error of each row, mean over seeds."""
        runs = [self.explain(n_samples=DRAWS, seed=seed + 1, **more) for seed in range(SEEDS)]
        return np.mean([((e.standardised - self.truth) ** 2).sum(axis=1) for e in runs], axis=0)

    def gain(self, **more: Any) -> float:
        """Squared error of independent draws over that of something else, for the median row."""
        return float(np.median(self.iid / self.error(**more)))

    def drawn(self, **more: Any) -> float:
        """Draws until the error is within 5%."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sl.errors.NotConverged)
            return float(np.exp(np.mean([np.log(self.explain(seed=seed, **more).n_samples) for seed in (1, 2)])))

    def pairs(self) -> float:
        """Gain of pairs ±z of a sequence half as long, turned alike."""
        squared = []
        for seed in range(1, SEEDS + 1):
            e = self.explain(n_samples=DRAWS, seed=seed)
            z = designs.DESIGNS["aligned"].stream(self.d, seed).take(DRAWS // 2)
            turned = self.sigma * alignment.Rotation.onto(e.directions).of(z[None])
            weights = np.tile([0.0, 1.0], (DRAWS, 1))
            for row, steps in zip(self.rows, turned, strict=True):
                points = np.concatenate([row + steps, row - steps])
                squared.append(self.sigma * self.model.values_and_gradients(points, weights)[1].mean(axis=0))
        off = np.array(squared).reshape(SEEDS, len(self.rows), -1) - self.truth
        return float(np.median(self.iid / (off**2).sum(axis=2).mean(axis=0)))


def measure(case: Case) -> Iterator[dict[str, Any]]:
    """Every alternative, the shipped settings first."""
    yield {"what": "shipped", "gain": case.gain(), "draws": case.drawn()}
    for what, values in OTHERS.items():
        for value in values:
            with instead(what, value):
                yield {"what": f"{value} {what}", "gain": case.gain(), "draws": case.drawn()}
    mean = {"method": "smoothgrad"}
    yield {"what": "gradients alone", "gain": case.gain(**mean), "draws": case.drawn(**mean)}
    with instead("skewness", (1e6, 2e6)):
        yield {"what": "values, skewed or not", "gain": case.gain(), "draws": case.drawn()}
    yield {"what": "pairs ±z, gradients alone", "gain": case.pairs(), "draws": None}
    yield {"what": "eight scrambles, not turned", "gain": case.gain(design="sobol"), "draws": None}


def measure_values(case: Case) -> Iterator[dict[str, Any]]:
    """From predictions, against independent draws for C-LIME."""
    case.iid = case.error(by="values", method="clime", design="iid")
    curves = {"by": "values", "method": sl.CLime(curves=True)}
    yield {"what": "shipped", "gain": case.gain(**curves)}
    yield {"what": "curves, single points", "gain": case.gain(**curves, design="aligned")}
    yield {"what": "odd curves, pairs", "gain": case.gain(**curves, design="aligned-pairs")}
    for draws in (4, 8, 16):
        with instead("pilot of values", (draws, draws, draws)):
            yield {"what": f"shipped, pilot of {draws} draws", "gain": case.gain(**curves)}
    yield {"what": "no curves, aligned", "gain": case.gain(by="values", method="clime", design="aligned")}
    yield {"what": "differences", "gain": case.gain(by="values", method="differences")}
    yield {"what": "eight scrambles, not turned", "gain": case.gain(by="values", method="clime", design="sobol")}
    yield {"what": "pairs in random bases", "gain": case.gain(by="values", method="clime", design="orthogonal")}


def main() -> None:
    facts = machine("torch")
    records = []
    for d, width in NETWORKS:
        for sigma in SIGMAS:
            case = Case(d, width, sigma)
            known = {"d": d, "sigma": sigma}
            records += [{**known, "by": "gradients", **found} for found in measure(case)]
            records += [{**known, "by": "predictions", **found} for found in measure_values(case)]
    path = write_lines("alternatives", [{**facts, **record} for record in records])
    for by in ("gradients", "predictions"):
        names = list(dict.fromkeys(each["what"] for each in records if each["by"] == by))
        lines = []
        for name in names:
            found = [each for each in records if (each["by"], each["what"]) == (by, name)]
            cells = [
                f"{each['gain']:.1f}" + (f" ({each['draws']:,.0f})" if each.get("draws") else "") for each in found
            ]
            lines.append((name, *cells))
        print(f"\nby {by}: gain over independent draws at {DRAWS:,} draws (draws to stop)")
        print(markdown((f"d, σ = {SIGMAS}", *(f"{d}, {sigma}" for d, _ in NETWORKS for sigma in SIGMAS)), lines))
    print(f"\nwritten to {path.name}")


if __name__ == "__main__":
    main()

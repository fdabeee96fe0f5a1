"""How tight are the certificates, and how often are they and the test of agreement wrong? Ratios, misses, size, power.

Tightness: bound over true change of the explanation, at distances ρ (in neighbourhood standard deviations). 1 is
attained. "slab" and "kink" are made to attain a bound: 1{|z| > t} with t best for each ρ, and |z|, moved across their
middle. "probit" is Φ(2v·a); "mixture" the median over 40 random means of 8 units Φ(v·a + c) in 5 features, at
a random row, in the worst of 200 directions. True changes are closed forms. Residuals: 10,000 draws.

Misses: runs in which the sampled bound on the residual is below the true residual, at 95% confidence.

Agreement: share of the runs that reject at 5%. "smooth" is a mixture of softplus-like units with its own gradients
(size: 5% is right, less is careful); "rounded" is a share of it rounded, whose gradients miss that share (power).

Noise: robustness less its population part, C-LIME with iid draws, at equal n.

    python benchmarks/bench_certificates.py
"""

from __future__ import annotations

from common import machine, markdown, write_lines  # before NumPy: it sets one thread

# isort: split
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri

import smoothlime as sl
from smoothlime.guarantees.residual import residual_bound
from smoothlime.testing import Absolute, Probit

DISTANCES = (0.05, 0.2, 0.5, 1.0, 2.0)
AROUND = sl.Neighbourhood(1.0)
CONFIDENCE = 0.95


def phi(t: Any) -> Any:
    return np.exp(-np.square(t) / 2) / np.sqrt(2 * np.pi)


class Mixture:
    """Weighted mean of Φ(v·a + c): a network that ends in a probability, with slopes in closed form."""

    outputs = ("probability",)
    output_range = (0.0, 1.0)

    def __init__(self, d: int, units: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.v, self.c = rng.normal(size=(units, d)), rng.normal(size=units)
        self.share = rng.dirichlet(np.ones(units))

    def values(self, points: Any) -> Any:
        """Probability at each point."""
        return (ndtr(points @ self.v.T + self.c) @ self.share)[:, None]

    def slopes(self, x: Any) -> Any:
        """True explanation for sigma = 1."""
        wide = np.sqrt(1 + (self.v**2).sum(axis=1))
        return (phi((x @ self.v.T + self.c) / wide) * self.share / wide) @ self.v

    def gradient_bound(self) -> float:
        """Triangle inequality over units."""
        return float(np.linalg.norm(self.v, axis=1) @ self.share / np.sqrt(2 * np.pi))

    def farthest(self, x: Any, rho: float, directions: int = 200) -> float:
        """Largest true change at distance rho, over random directions."""
        u = np.random.default_rng(1).normal(size=(directions, len(x)))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        return float(np.linalg.norm(self.slopes(x + rho * u) - self.slopes(x[None]), axis=1).max())


def tightness() -> list[dict[str, Any]]:
    by_range = sl.certify(None, [[0.0]], sigma=1.0, output_range=(0, 1))
    by_gradient = sl.certify(None, [[0.0]], sigma=1.0, gradient_bound=1.0)
    probit = Probit([2.0])
    bounds = {
        "range": sl.certify(None, [[0.0]], sigma=1.0, output_range=(0, 1)),
        "gradient": sl.certify(None, [[0.0]], sigma=1.0, gradient_bound=2 / np.sqrt(2 * np.pi)),
        "residual": sl.certify(probit, [[0.0]], sigma=1.0, output_range=(0, 1), n_samples=10_000),
    }
    mixtures = [Mixture(5, 8, seed) for seed in range(40)]
    rows = [np.random.default_rng(seed).normal(size=5) for seed in range(40)]
    typical = {
        "range": [sl.certify(each, x, sigma=1.0) for each, x in zip(mixtures, rows, strict=True)],
        "gradient": [
            sl.certify(None, x, sigma=1.0, gradient_bound=each.gradient_bound())
            for each, x in zip(mixtures, rows, strict=True)
        ],
        "residual": [sl.certify(each, x, sigma=1.0, n_samples=10_000) for each, x in zip(mixtures, rows, strict=True)],
    }
    found = []
    for rho in DISTANCES:
        h = rho / 2

        def record(function: str, certificate: str, ratio: Any, rho: float = rho) -> dict[str, Any]:
            spread = np.atleast_1d(ratio)
            return {
                "table": "tightness",
                "function": function,
                "certificate": certificate,
                "distance": rho,
                "ratio": float(np.median(spread)),
                "least": float(spread.min()),
            }

        t = brentq(lambda t, h=h: t * np.tanh(t * h) - h, 1e-9, h + 2)
        found.append(record("slab", "range", by_range.bound(rho)[0] / (2 * (phi(t - h) - phi(t + h)))))
        kink = np.ptp(Absolute([1.0]).slopes([[-h], [h]], AROUND))
        found.append(record("kink", "gradient", by_gradient.bound(rho)[0] / kink))
        found.append(record("kink", "paper", by_gradient.paper_lipschitz * rho / kink))
        # a probit at its middle moves most to one side
        moved = np.ptp(probit.slopes([[0.0], [rho]], AROUND))
        found += [record("probit", name, each.bound(rho)[0] / moved) for name, each in bounds.items()]
        true = np.array([each.farthest(x, rho) for each, x in zip(mixtures, rows, strict=True)])
        for name, each in typical.items():
            found.append(record("mixture", name, np.array([one.bound(rho)[0] for one in each]) / true))
    return found


def misses(runs: int = 500) -> list[dict[str, Any]]:
    """Functions of one direction in d features with outputs 0 or 1, or a probit; true residual variances known."""

    def step(p: float) -> tuple[Any, float]:
        c = -ndtri(p)
        return lambda z: (z[:, 0] > c).astype(float), p * (1 - p) - phi(c) ** 2

    def slab(p: float) -> tuple[Any, float]:
        c = -ndtri(p / 2)
        return lambda z: (np.abs(z[:, 0]) > c).astype(float), p * (1 - p)

    s = np.linspace(-9, 9, 200_001)
    f = ndtr(2 * s + 0.5)
    mean = np.trapezoid(f * phi(s), s)
    line = np.trapezoid(s * f * phi(s), s)
    smooth = np.trapezoid((f - mean - line * s) ** 2 * phi(s), s)
    cases = {
        "step, half": step(0.5),
        "step, 1%": step(0.01),
        "slab, 32%": slab(0.3173),
        "slab, 1%": slab(0.01),
        "slab, 0.1%": slab(0.001),
        "probit": (lambda z: ndtr(2 * z[:, 0] + 0.5), float(smooth)),
    }
    found = []
    for name, (function, variance) in cases.items():
        for d, n in ((1, 200), (5, 500), (5, 5_000)):
            pilot = max(int(0.15 * n), 4 * (d + 1))
            z = np.random.default_rng(d * n).standard_normal((runs, n, d))
            bound = np.array([residual_bound(each, function(each), (0, 1), pilot, 1 - CONFIDENCE) for each in z])
            found.append(
                {
                    "table": "misses",
                    "function": name,
                    "d": d,
                    "n": n,
                    "runs": runs,
                    "missed": int((bound**2 < variance).sum()),
                    "ratio": float(np.median(bound) / np.sqrt(variance)),
                }
            )
    return found


class Softplus:
    """Units log(1 + exp(4s))/4, a smooth ReLU; optionally a share of the output is rounded, unseen by gradients."""

    outputs = ("output",)

    def __init__(self, d: int, seed: int, rounded: float = 0.0, levels: float = 2.0) -> None:
        rng = np.random.default_rng(seed)
        self.v, self.c = rng.normal(size=(10, d)) / np.sqrt(d), rng.normal(size=10)
        self.out = rng.normal(size=10) / np.sqrt(10)
        self.rounded, self.levels = rounded, levels

    def values(self, points: Any) -> Any:
        """Output at each point."""
        smooth = (np.logaddexp(0, 4 * (points @ self.v.T + self.c)) / 4) @ self.out
        steps = np.round(self.levels * smooth) / self.levels
        return ((1 - self.rounded) * smooth + self.rounded * steps)[:, None]

    def values_and_gradients(self, points: Any, weights: Any) -> Any:
        """Outputs, and gradients that do not see the rounding."""
        slopes = (expit(4 * (points @ self.v.T + self.c)) * self.out) @ self.v
        return self.values(points), np.asarray(weights) * (1 - self.rounded) * slopes


def agreement(runs: int = 1_000) -> list[dict[str, Any]]:
    found = []
    for d, n in ((2, 200), (2, 500), (2, 2_000), (10, 500), (10, 2_000), (50, 200)):
        for name, rounded in (("smooth", 0.0), ("rounded, 10%", 0.1), ("rounded, 30%", 0.3)):
            tests = [
                sl.agreement(
                    Softplus(d, seed, rounded),
                    np.random.default_rng(seed).normal(size=d),
                    sigma=0.7,
                    n_samples=n,
                    seed=seed,
                )
                for seed in range(runs if not rounded else runs // 10)
            ]
            found.append(
                {
                    "table": "agreement",
                    "function": name,
                    "d": d,
                    "n": n,
                    "runs": len(tests),
                    "rejected": int(sum(each.p_value[0] <= 0.05 for each in tests)),
                    "affirmed": int(sum(each.agrees[0] is True for each in tests)),
                    "within": float(np.median([each.within[0] for each in tests])),
                }
            )
    return found


def noise() -> list[dict[str, Any]]:
    found = []
    for d in (2, 10):
        model = Mixture(d, 8, 0)
        rows = np.random.default_rng(2).normal(size=(30, d))
        for n in (100, 400, 1_600):
            parts = {
                mode: sl.robustness(
                    model, rows, method="clime", design="iid", draws=mode, norm=2, n_samples=n, progress=False
                )
                for mode in ("independent", "shared")
            }
            found.append(
                {
                    "table": "noise",
                    "d": d,
                    "n": n,
                    "population": parts["shared"].population,
                    "ceiling": float(parts["shared"].ceiling.mean()),
                    **{mode: each.mean - each.population for mode, each in parts.items()},
                }
            )
    return found


def main() -> None:
    facts = machine()
    tight, missed, tests, parts = tightness(), misses(), agreement(), noise()
    path = write_lines("certificates", [{**facts, **record} for record in (*tight, *missed, *tests, *parts)])
    print(f"\nBound over true change, at distance ρ; commit {facts['commit']}\n")
    pairs = list(dict.fromkeys((record["function"], record["certificate"]) for record in tight))
    of = {(record["function"], record["certificate"], record["distance"]): record["ratio"] for record in tight}
    print(
        markdown(
            ("function", "certificate", *(f"ρ = {rho:g}" for rho in DISTANCES)),
            [(*pair, *(f"{of[(*pair, rho)]:.3g}" for rho in DISTANCES)) for pair in pairs],
        )
    )
    print(f"\nleast ratio of a certificate: {min(r['least'] for r in tight if r['certificate'] != 'paper'):.9f}")
    print(f"\nResidual certificate at {CONFIDENCE:.0%}\n")
    print(
        markdown(
            ("function", "d", "draws", "missed", "bound ÷ truth"),
            [
                (r["function"], r["d"], f"{r['n']:,}", f"{r['missed']} of {r['runs']}", f"{r['ratio']:.2f}")
                for r in missed
            ],
        )
    )
    print("\nAgreement at level 5%, margin 5%\n")
    print(
        markdown(
            ("model", "d", "draws", "runs", "rejected", "affirmed", "ruled out, median"),
            [
                (
                    r["function"],
                    r["d"],
                    f"{r['n']:,}",
                    r["runs"],
                    f"{r['rejected'] / r['runs']:.1%}",
                    f"{r['affirmed'] / r['runs']:.1%}",
                    f"{r['within']:.1%}",
                )
                for r in tests
            ],
        )
    )
    print("\nRobustness: the model's part, and what sampling adds to it\n")
    print(
        markdown(
            ("d", "draws", "model", "+ independent", "+ shared", "ceiling"),
            [
                (
                    r["d"],
                    f"{r['n']:,}",
                    f"{r['population']:.4f}",
                    f"{r['independent']:+.4f}",
                    f"{r['shared']:+.4f}",
                    f"{r['ceiling']:.3f}",
                )
                for r in parts
            ],
        )
    )
    print(f"\nwritten to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()

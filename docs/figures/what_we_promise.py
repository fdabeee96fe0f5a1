"""Draw the figures of docs/what-we-promise.md: bounds against distance, agreement, and robustness against draws.

    python docs/figures/what_we_promise.py

writes what_we_promise_{certify,agreement,robustness}.svg beside this file. Everything is seeded; a name with another
ending than .svg as argument writes that kind of picture beside it instead.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

import smoothlime as sl

BLUE, RED, GREEN, GREY, INK = "#2a6f97", "#c1554d", "#3d8b5f", "#8a8a8a", "#303030"


def phi(t):
    """Density of the standard normal distribution."""
    return np.exp(-np.square(t) / 2) / np.sqrt(2 * np.pi)


class Network:
    """A small network that ends in a probability: a weighted mean of Φ(v·a + c) over hidden units."""

    outputs = ("probability",)
    output_range = (0.0, 1.0)

    def __init__(self, d=4, hidden=3, seed=3):
        rng = np.random.default_rng(seed)
        self.v = rng.normal(size=(hidden, d))
        self.c = rng.normal(size=hidden)
        self.share = rng.dirichlet(np.ones(hidden))

    def values(self, points):
        """Probability at each point."""
        return (ndtr(points @ self.v.T + self.c) @ self.share)[:, None]

    def values_and_gradients(self, points, weights):
        """Probabilities and their gradients."""
        slopes = (phi(points @ self.v.T + self.c) * self.share) @ self.v
        return self.values(points), np.asarray(weights) * slopes

    def slopes(self, x, sigma):
        """True explanation, standardised."""
        wide = np.sqrt(1 + sigma**2 * (self.v**2).sum(axis=1))
        return sigma * (phi((x @ self.v.T + self.c) / wide) * self.share / wide) @ self.v

    def farthest(self, x, sigma, distances, directions=400):
        """Largest true change over many directions, at each distance in neighbourhood standard deviations."""
        u = np.random.default_rng(1).normal(size=(directions, len(x)))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        here = self.slopes(x[None], sigma)
        return [np.linalg.norm(self.slopes(x + sigma * r * u, sigma) - here, axis=1).max() for r in distances]


class Quantised:
    """Another model's output rounded to levels, with the other model's gradients of a smaller smooth part."""

    outputs = ("probability",)

    def __init__(self, inner, levels, smooth=0.4):
        self.inner, self.levels, self.smooth = inner, levels, smooth

    def values(self, points):
        """A smooth share plus a rounded share."""
        inner = self.inner.values(points)
        return self.smooth * inner + (1 - self.smooth) * np.round(self.levels * inner) / self.levels

    def values_and_gradients(self, points, weights):
        """What autodiff gives: rounding has gradient zero."""
        return self.values(points), self.smooth * self.inner.values_and_gradients(points, weights)[1]


def certificates(path):
    """Two panels: what follows from the range of the output, and what from the length of gradients."""
    sigma, x = 1.0, np.full(4, 0.2)
    network = Network()
    rho = np.linspace(0.01, 2.5, 120)
    anyone = sl.certify(network, np.tile(x, (len(rho), 1)), sigma=sigma)
    local = sl.certify(network, x, sigma=sigma, n_samples=20_000)
    near = [float(local.bound(r)[0]) for r in rho]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.3), layout="constrained")
    left.plot(rho, anyone.bound(rho), color=BLUE, lw=2.2, label="certified from the range")
    slab = 2 * (phi(1 - rho / 2) - phi(1 + rho / 2))
    left.plot(rho[::8], slab[::8], "o", color=INK, ms=4, label="true: slab 1{|z| > 1}")
    left.plot(rho, near, color=GREEN, lw=2.2, ls="--", label="with the residual, 20,000 draws")
    left.plot(rho, network.farthest(x, sigma, rho), color=RED, lw=2.2, label="true: a smooth network")
    left.set(title="Outputs between 0 and 1", ylim=(0, 0.85))

    bound = sl.certify(None, np.zeros((len(rho), 1)), sigma=1.0, gradient_bound=1.0)
    right.plot(rho, bound.bound(rho), color=BLUE, lw=2.2, label="certified from the gradient bound")
    kink = 2 * (2 * ndtr(rho / 2) - 1)
    right.plot(rho[::8], kink[::8], "o", color=INK, ms=4, label="true: |z|")
    z, weights = np.polynomial.hermite_e.hermegauss(200)
    weights = weights / weights.sum()
    smooth = [2 * weights @ ((z + r / 2) / np.hypot(z + r / 2, 0.3)) for r in rho]
    right.plot(rho, smooth, color=RED, lw=2.2, label="true: √(z² + 0.09), smooth")
    right.plot(rho, bound.paper_lipschitz * rho, color=GREY, lw=2.2, ls=":", label="the paper's G/(2σ): too small")
    right.set(title="Gradients no longer than 1", ylim=(0, 1.7))
    for axes in (left, right):
        axes.set(xlabel="distance between rows, in neighbourhood standard deviations", xlim=(0, 2.5))
        axes.legend(frameon=False, fontsize=9, loc="upper left")
        axes.spines[["top", "right"]].set_visible(False)
    left.set_ylabel("change of the explanation, L2, standardised")
    save(figure, path)


def agreement(path):
    """SmoothGrad against C-LIME with 95% intervals, for a smooth model and a quantised one."""
    x, sigma, n = np.full(4, 0.2), 0.8, 40_000
    network = Network()
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained", sharey=True)
    for axes, (name, model) in zip(
        panels, {"smooth network": network, "60% of it rounded to 4 levels": Quantised(network, 4)}.items(), strict=True
    ):
        for shift, (method, colour, marker) in enumerate((("smoothgrad", RED, "o"), ("clime", BLUE, "s"))):
            e = sl.explain(model, x, sigma=sigma, method=method, design="iid", n_samples=n)
            low, high = (each[0] * e.std for each in e.interval())
            middle = e.standardised[0]
            axes.errorbar(
                np.arange(4) + 0.16 * (shift - 0.5), middle, yerr=[middle - low, high - middle], fmt=marker,
                color=colour, ms=5, capsize=3, lw=1.6,
                label={"smoothgrad": "SmoothGrad: gradients", "clime": "C-LIME: predictions"}[method],
            )  # fmt: skip
        found = sl.agreement(model, x, sigma=sigma, n_samples=n)
        verdict = {True: "agree", False: "disagree", None: "cannot tell"}[found.agrees[0]]
        axes.axhline(0, color=GREY, lw=0.8)
        axes.set_xlim(-0.5, 3.5)
        axes.set(title=f"{name}: {verdict}", xticks=range(4), xticklabels=[f"feature {j}" for j in range(4)])
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("standardised slope, 95% interval")
    panels[0].legend(frameon=False, fontsize=9)
    save(figure, path)


def robustness(path):
    """The paper's measure against draws: independent draws, shared draws, the model's own part, the ceiling."""
    network = Network()
    rows = np.random.default_rng(2).normal(size=(15, 4))
    draws = [32, 64, 128, 256, 512, 1_024, 2_048]
    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    last = None
    for mode, colour, marker in (("independent", RED, "o"), ("shared", BLUE, "s")):
        found = [
            sl.robustness(
                network, rows, sigma=0.8, method="clime", design="iid", draws=mode, norm=2, n_samples=n, progress=False
            )
            for n in draws
        ]
        last = found[-1]
        axes.errorbar(
            draws, [each.mean for each in found], yerr=[2 * each.standard_error for each in found], fmt=f"{marker}-",
            color=colour, ms=5, capsize=3, lw=1.6, label=f"{mode} draws",
        )  # fmt: skip
    axes.axhline(last.population, color=INK, lw=1.6, ls="--")
    axes.text(draws[0], last.population * 0.93, "the model's own part", va="top", color=INK)
    ceiling = float(last.ceiling.mean())
    axes.axhline(ceiling, color=GREEN, lw=1.6)
    axes.text(draws[-1], ceiling * 1.05, "certified ceiling of the model's part", va="bottom", ha="right", color=GREEN)
    axes.set(xscale="log", yscale="log", xlabel="draws per row", ylabel="largest change among 10 neighbours, L2")
    axes.set_xticks(draws, [f"{n:,}" for n in draws])
    axes.set_yticks([0.01, 0.02, 0.05, 0.1, 0.2], ["0.01", "0.02", "0.05", "0.1", "0.2"])
    axes.set_ylim(top=0.4)
    axes.minorticks_off()
    axes.legend(frameon=False, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def save(figure, path):
    """The same bytes every time."""
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, facecolor="white", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    plt.rcParams.update({"svg.hashsalt": "smoothlime", "font.size": 10})
    first = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".svg")
    for draw in (certificates, agreement, robustness):
        name = {"certificates": "certify"}.get(draw.__name__, draw.__name__)
        draw(first.with_name(f"{first.stem}_{name}{first.suffix}"))

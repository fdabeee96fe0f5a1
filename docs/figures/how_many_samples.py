"""The figure and the measured numbers of how-many-samples.md; run me from anywhere.

Writes how_many_samples.svg beside this file and three tables into the page: what naive stopping gets wrong, what
planned looks get wrong too, and what a certificate costs. About half a minute.
"""

import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from pages import put

import smoothlime as sl
from smoothlime.testing import Exponential, Probit, Relu, Step

CONFIDENCE, CAP = 0.95, 100_000
LOOKS = [*(256 * 2 ** np.arange(9)), CAP]  # where explain looks: K = 10
RTOL, ATOL = 0.05, 0.005


def direction(d):
    """A unit vector with no two entries alike."""
    v = np.cos(1.0 + 2.0 * np.arange(d))
    return v / np.linalg.norm(v)


# ---- the figure


def paths(model, rows):
    """Radius and tolerance of each row at each look, (looks, rows), as explain sees them.

    A fixed number of draws at confidence 1 - δ/K has the radius that the look at this number has.
    """
    radius, tolerance = [], []
    for n in LOOKS[:-1]:
        e = sl.explain(
            model, rows, method="clime", design="iid", n_samples=int(n), confidence=1 - (1 - CONFIDENCE) / len(LOOKS)
        )
        radius.append(e.radius)
        tolerance.append(np.maximum(ATOL, RTOL * (np.linalg.norm(e.standardised, axis=1) - e.radius)))
    return np.array(radius), np.array(tolerance)


def figure(path):
    """Three rows of one model, from undecided to sure, each drawn until its radius is within its tolerance."""
    d = 5
    model = Probit(direction(d))
    distances = (0.0, 1.5, 3.0)
    rows = np.outer(distances, direction(d))
    e = sl.explain(model, rows, method="clime", design="iid", rtol=RTOL, atol=ATOL, max_samples=CAP)
    radius, tolerance = paths(model, rows)
    looks = np.array(LOOKS[:-1])

    plt.rcParams.update({"svg.hashsalt": "smoothlime", "font.size": 10})
    canvas, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    stops = []
    for row, colour in enumerate(("#2a6f97", "#c1554d", "#3d8b5f")):
        last = int(np.flatnonzero(looks == e.n_samples[row])[0])
        np.testing.assert_allclose(radius[last, row], e.radius[row], rtol=1e-9)  # the very numbers explain had
        until, after = slice(0, last + 1), slice(last, None)
        axes.plot(looks[until], radius[until, row], "-o", color=colour, markersize=4, linewidth=1.6)
        axes.plot(looks[after], radius[after, row], ":", color=colour, linewidth=1.2)
        axes.plot(looks[until], tolerance[until, row], "--", color=colour, linewidth=1.2)
        stops += axes.plot(
            looks[last], radius[last, row], "s", color=colour, markersize=9, markeredgecolor="black", zorder=5,
            label=f"{distances[row]:g} from the boundary: stops at {e.n_samples[row]:,}",
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(looks, [f"{n:,}" for n in looks], fontsize=9)
    axes.minorticks_off()
    ticks = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
    axes.set_yticks(ticks, [f"{each:g}" for each in ticks])
    axes.set_ylim(0.0011, 0.14)
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("draws (one grid line for each planned look)")
    axes.set_ylabel("L2 error of standardised slopes")
    grey = {"color": "#444444", "linewidth": 1.2}
    kinds = [
        Line2D([], [], marker="o", markersize=4, label="radius, look by look", **grey),
        Line2D([], [], linestyle="--", label="tolerance", **grey),
        Line2D([], [], linestyle=":", label="radius, had it gone on", **grey),
    ]
    axes.legend(handles=[*stops, *kinds], loc="upper right", framealpha=1, edgecolor="none", fontsize=9)
    canvas.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, facecolor="white", dpi=110)
    plt.close(canvas)


# ---- the tables


def naive(repeats=1_000, rtol=0.1):
    """Share of runs further off than asked for: stop once 1.96·SE is within rtol of the mean, or at planned looks."""
    model, rows = Relu([1.0], -2.054), np.zeros((repeats, 1))  # all of the gradient lies in 2% of the draws
    truth = model.slopes([0.0], sl.Neighbourhood(1.0))[0, 0]
    gradients = np.random.default_rng(0).standard_normal((repeats, 65_536)) > 2.054
    table = [["rule", f"further off than {rtol:.0%}", "mean draws"]]
    for first in (16, 64, 256):
        answer, draws = np.full((2, repeats), np.nan)
        for n in first * 2 ** np.arange(int(np.log2(65_536 / first)) + 1):
            mean = gradients[:, :n].mean(axis=1)
            newly = np.isnan(answer) & (1.96 * np.sqrt(mean * (1 - mean) / n) <= rtol * mean)
            answer[newly], draws[newly] = mean[newly], n
        assert not np.isnan(answer).any()
        wrong = np.abs(answer - truth) > rtol * truth
        table.append([f"naive, from {first} draws on", f"{wrong.mean():.1%}", f"{draws.mean():,.0f}"])
    e = sl.explain(model, rows, method="smoothgrad", design="iid", draws="independent", rtol=rtol, max_samples=262_144)
    wrong = np.abs(e.values[:, 0] - truth) > rtol * truth
    table.append(["planned looks", f"{wrong.mean():.1%}", f"{e.n_samples.mean():,.0f}"])
    put("how-many-samples.md", "naive", table)


def beyond(repeats=400):
    """Share of runs that break the promise, or their radius, where the draws show too little of the model."""
    step, exponential = Step([1.0], -2.576), Exponential([2.0])
    nearly_flat = sl.from_functions(values=lambda a: step.values(a) + 1e-6 * a)
    spread = {step: np.sqrt(0.005 * 0.995), exponential: np.exp(2) * np.sqrt(np.exp(4) - 1)}
    table = [["model", "method", "further off than promised", "further off than `radius`"]]
    for name, model, known, more in (
        ("flat but for 0.5% of the neighbourhood", nearly_flat, step, {"method": "clime", "design": "iid"}),
        ("$e^{2s}$", exponential, exponential, {"method": "smoothgrad"}),
        ("$e^{2s}$", exponential, exponential, {"method": "smoothgrad", "design": "orthogonal"}),
        ("$e^{2s}$", exponential, exponential, {"method": "smoothgrad", "design": "sobol"}),
        ("$e^{2s}$", exponential, exponential, {"method": "differences"}),
    ):
        truth = known.slopes([0.0], sl.Neighbourhood(1.0))[0, 0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sl.errors.NotConverged)  # these promise nothing
            e = sl.explain(model, np.zeros((repeats, 1)), draws="independent", progress=False, **more)
        error = np.abs(e.values[:, 0] - truth)
        broken = (error > max(0.05 * truth, 0.01 * spread[known])) & e.converged
        method = e.method if e.method == e.design else f"{e.method}, {e.design}"
        table.append([name, method, f"{broken.mean():.1%}", f"{(error > e.radius).mean():.1%}"])
    put("how-many-samples.md", "beyond", table)


def cost(eps=0.02, rows=20):
    """Draws for an L2 error of eps with 95% confidence, median over rows with draws of their own."""
    bound = 1.0001 / np.sqrt(2 * np.pi)
    ways = {
        "smoothgrad": {},
        "differences": {},
        "smoothgrad, certified": {"guarantee": "certified", "gradient_bound": bound},
        "clime, certified": {"guarantee": "certified", "output_range": (0, 1)},
    }
    table = [["features", *ways, *(f"plan: {method}" for method in ("smoothgrad", "stein", "clime"))]]
    for d in (2, 10, 50):
        model = Probit(direction(d), 0.3)
        found = []
        for name, more in ways.items():
            e = sl.explain(
                model, np.zeros((rows, d)), method=name.split(",")[0], rtol=0, atol=eps, max_samples=200_000,
                draws="independent", **more,
            )  # fmt: skip
            assert e.converged.all()
            found.append(int(np.median(e.n_samples)))
        known = {"eps": eps, "d": d, "sigma": 1.0}
        found.append(sl.plan("smoothgrad", gradient_bound=bound, **known).n_samples)
        found += [sl.plan(method, output_range=(0, 1), **known).n_samples for method in ("stein", "clime")]
        table.append([str(d), *(f"{n:,}" for n in found)])
    put("how-many-samples.md", "cost", table)


if __name__ == "__main__":
    figure(Path(__file__).with_suffix(".svg"))
    naive()
    beyond()
    cost()

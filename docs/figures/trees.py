"""The figure of trees.md; run me from anywhere.

Writes trees.svg beside this file. A name with another ending than .svg as argument writes that kind of picture instead.
A few seconds, and as many more when the loops are compiled for the first time.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import smoothlime as sl

ROW = 0
SIGMAS = {0.5: "#E69F00", 1.0: "#009E73", 2.0: "#0072B2", 4.0: "#000000"}  # light to dark, for all kinds of eyes
DRAWS = 256


def forest():
    """The forest of the page, and its patients."""
    data = load_diabetes(as_frame=True, scaled=False)
    return RandomForestRegressor(100, random_state=0).fit(data.data, data.target), data.data


def along(patients, values):
    """One patient with other body mass indices."""
    rows = patients.iloc[[ROW] * len(values)].copy()
    rows["bmi"] = values
    return rows


def compute():
    """f, and E f and slopes for each σ along the body mass index; nothing else is perturbed."""
    model, patients = forest()
    others = [name for name in patients.columns if name != "bmi"]
    grid = np.linspace(18, 42, 1_201)
    exact, drawn = {}, {}
    for i, sigma in enumerate(SIGMAS):
        around = sl.Neighbourhood(sigma, fixed=others)
        e = sl.explain(model, along(patients, grid), sigma=around)
        assert e.is_exact
        exact[sigma] = e.smoothed, e.values[:, list(patients.columns).index("bmi")]
        few = np.arange(19.0, 41.5, 3) + 0.75 * i  # side by side, not on top of each other
        c = sl.explain(
            model, along(patients, few), sigma=around, method="clime", design="iid", n_samples=DRAWS, seed=i,
            draws="independent",
        )  # fmt: skip
        lower, upper = c.interval(0.95)
        j = c.feature_names.index("bmi")
        drawn[sigma] = few, c.values[:, j], (upper - lower)[:, j] / 2
        truth = np.interp(few, grid, exact[sigma][1])
        inside = ((lower[:, j] <= truth) & (truth <= upper[:, j])).sum()
        print(f"σ = {sigma:g}: {inside} of {len(few)} intervals hold the exact slope; radius {e.radius.max():.1g}")
    return grid, model.predict(along(patients, grid)), exact, drawn, patients.iloc[ROW]["bmi"]


def figure(path):
    """f and E f above, slopes below."""
    grid, f, exact, drawn, own = compute()
    plt.rcParams.update({"svg.hashsalt": "smoothlime", "font.size": 10})
    canvas, (above, below) = plt.subplots(2, 1, figsize=(7.2, 6.4), sharex=True, layout="constrained")
    above.plot(grid, f, color="0.6", lw=1.2, label="f, the forest")
    for sigma, colour in SIGMAS.items():
        mean, slope = exact[sigma]
        above.plot(grid, mean, color=colour, lw=1.6, label=f"E f, σ = {sigma:g}")
        below.plot(grid, slope, color=colour, lw=1.6)
        below.errorbar(*drawn[sigma], fmt="o", ms=4, color=colour, lw=1.2, capsize=2.5, markeredgecolor="white")
    below.errorbar([], [], [], fmt="o", ms=3.5, color="0.4", lw=1.2, capsize=2.5, label=f"C-LIME, {DRAWS} draws, 95%")
    below.plot([], [], color="0.4", lw=1.6, label="exact")
    below.axhline(0, color="0.7", lw=0.8, zorder=0)
    for axis in (above, below):
        axis.axvline(own, color="0.7", lw=0.8, ls=":", zorder=0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, loc="upper left")
    above.annotate("this patient", (own, 0.03), (4, 0), xycoords=("data", "axes fraction"), textcoords="offset points")
    above.set_ylabel("progression")
    below.set_ylabel("slope per kg/m²")
    below.set_xlabel("body mass index, kg/m²")
    below.set_xlim(grid[0], grid[-1])
    canvas.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, facecolor="white", dpi=110)
    plt.close(canvas)


if __name__ == "__main__":
    figure(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".svg"))

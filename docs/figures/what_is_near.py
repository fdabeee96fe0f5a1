"""The pictures of what-is-near.md; run me from anywhere, with the shopping file at hand (see smoothlime.paper).

Writes what_is_near.png beside this file and prints the numbers of the page: draws around a visit to a web shop, in the
units of the columns, clipped to what the columns ever were, and in ranks. Half a minute.
"""

import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "2")

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

import smoothlime as sl
from smoothlime.paper.datasets import NUMERICAL, shopping_columns
from smoothlime.paper.fetching import SHOPPING, fetch
from smoothlime.paper.parsing import parse_csv, read_text

ROW, SIGMA, N = 100, 0.5, 4_096
SHOWN = ("ProductRelated_Duration", "ExitRates")
GREY, BLUE, RED = "#9aa0a6", "#1f6fb4", "#c8442d"


def main():
    table = parse_csv(read_text(fetch(SHOPPING)))
    rows, bought = shopping_columns(table, NUMERICAL)
    model = HistGradientBoostingClassifier(random_state=0).fit(rows, bought)

    def chance(points):
        return model.predict_proba(points)[:, 1]

    asked = {"sigma": SIGMA, "background": rows, "target": 1, "method": "clime", "n_samples": N}
    raw = sl.explain(model, rows[[ROW]], scale="linear", **asked)
    ranks = sl.explain(model, rows[[ROW]], scale="ranks", **asked)
    points = raw.perturbations(0)
    clipped = np.clip(points, rows.min(axis=0), rows.max(axis=0))
    panels = {
        "steps in the units of the columns": points,
        "the same, clipped": clipped,
        'scale="ranks"': ranks.perturbations(0),
    }
    fx = float(raw.prediction[0])
    figure, axes = plt.subplots(1, 3, figsize=(11, 4), sharex=True, sharey=True, layout="constrained")
    first, second = (NUMERICAL.index(name) for name in SHOWN)
    kept = np.random.default_rng(0).choice(len(rows), 1_500, replace=False)
    for axis, (title, draws) in zip(axes, panels.items(), strict=True):
        mean = float(chance(draws).mean())
        impossible = (draws < 0).any(axis=1)
        print(
            f"{title}: {impossible.mean():.0%} of the draws have a negative value; F(x) = {mean:.3f}, f(x) = {fx:.4f}"
        )
        few = slice(0, 500)
        axis.plot(rows[kept, first], rows[kept, second], ".", color=GREY, alpha=0.35, markersize=3, label="visits")
        for which, colour, label in ((~impossible, BLUE, "draws"), (impossible, RED, "draws that cannot be visits")):
            chosen = draws[few][which[few]]
            if len(chosen):
                axis.plot(chosen[:, first], chosen[:, second], ".", color=colour, markersize=4, alpha=0.6, label=label)
        axis.plot(*rows[ROW, [first, second]], "k*", markersize=13, label="the visit")
        axis.axvline(0, color="black", linewidth=0.6)
        axis.axhline(0, color="black", linewidth=0.6)
        axis.set_title(f"{title}\nf(x) = {fx:.3f}, mean over the draws {mean:.3f}", fontsize=10)
        axis.set_xlabel("seconds on product pages")
    axes[0].set_xlim(-500, 6_000)
    axes[0].set_ylim(-0.08, 0.21)
    axes[0].set_ylabel("exit rate")
    axes[0].legend(loc="upper right", fontsize=8)
    path = Path(__file__).with_name("what_is_near.png")
    figure.savefig(path, dpi=130)
    print(path.name)


if __name__ == "__main__":
    main()

"""The picture of what-adds-up.md; run me from anywhere.

Writes what_adds_up.svg beside this file: the contributions to a forest's prediction, exact, and those to the same
prediction rounded to tens, from predictions alone. Some seconds.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import smoothlime as sl

ROW, SIGMA = 10, 0.5


def main():
    data = load_diabetes(as_frame=True, scaled=False)
    forest = RandomForestRegressor(100, max_depth=6, random_state=0).fit(data.data, data.target)

    def rounded(table):
        return 10 * np.round(forest.predict(pd.DataFrame(table, columns=data.data.columns)) / 10)

    typical = data.data.median().drop("sex")  # which is held at the row's own
    asked = {"baseline": typical, "background": data.data, "scale": "ranks", "fixed": ["sex"], "sigma": SIGMA}
    row = data.data.iloc[[ROW]]
    exact = sl.contributions(forest, row, **asked)
    drawn = sl.contributions(rounded, row, n_samples=4_096, **asked)
    plt.rcParams["svg.hashsalt"] = "what adds up"
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    for found, axis in zip((exact, drawn), axes, strict=True):
        found.plot(ax=axis, most=8)
    axes[0].set_title("A forest: exact", fontsize=10, loc="left")
    axes[1].set_title("The same, rounded to tens: 95% intervals", fontsize=10, loc="left")
    figure.savefig(Path(__file__).with_name("what_adds_up.svg"), metadata={"Date": None})
    print(exact, drawn, sep="\n")


if __name__ == "__main__":
    main()

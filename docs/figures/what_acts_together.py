"""The picture of what-acts-together.md; run me from anywhere.

Writes what_acts_together.png beside this file: second slopes of boosted trees around a patient, exact, and those of the
same predictions rounded to whole numbers, from predictions alone. Some seconds.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import smoothlime as sl

ROW, SIGMA, MOST = 282, 1.0, 6


def main():
    data = load_diabetes(as_frame=True, scaled=False)
    model = GradientBoostingRegressor(max_depth=3, random_state=0).fit(data.data, data.target)

    def rounded(table):
        return np.round(model.predict(pd.DataFrame(table, columns=data.data.columns)))

    asked = {"background": data.data, "fixed": ["sex"], "sigma": SIGMA}
    row = data.data.iloc[[ROW]]
    exact = sl.interactions(model, row, **asked)
    drawn = sl.interactions(rounded, row, n_samples=16_384, **asked)
    figure, axes = plt.subplots(1, 2, figsize=(12, 5.4), layout="constrained")
    exact.plot(ax=axes[0], most=MOST)
    drawn.plot(ax=axes[1], most=MOST)
    picture = Path(__file__).with_name("what_acts_together.png")
    figure.savefig(picture, dpi=110, bbox_inches="tight", metadata={"Software": None})
    print(exact, drawn, sep="\n\n")


if __name__ == "__main__":
    main()

"""The picture of over-all-rows.md; run me from anywhere. Writes over_all_rows.png beside this file; a few seconds."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import smoothlime as sl

COLOURS = {"up to 50": "#0072b2", "above 50": "#d55e00"}


def main():
    patients, disease = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = GradientBoostingRegressor(random_state=0).fit(patients, disease)
    asked = {"background": patients, "sigma": 0.5, "fixed": ["sex"]}
    e = sl.explain(model, patients, **asked)
    labels = ["above 50" if age > 50 else "up to 50" for age in patients["age"]]
    split = e.effects(by=labels, rows="sample")
    names = [split.feature_names[j] for j in split.order()]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for shift, (label, colour) in zip((-0.2, 0.2), COLOURS.items(), strict=True):
        group = split.groups[label]
        lower, upper = (end * group.std for end in group.interval())
        where = [group.feature_names.index(name) for name in names]
        at = np.arange(len(names)) + shift
        middle = group.standardised[where]
        reach = (upper - lower)[where] / 2
        left.barh(at, middle, 0.36, xerr=reach, color=colour, ecolor="black", capsize=2, label=f"{label} years")
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    left.axvline(0, color="black", linewidth=0.8)
    left.set_xlabel("mean slope per neighbourhood standard deviation")
    left.set_title("Effects on disease after a year, 95% intervals for the population", fontsize=10)
    left.legend()
    sl.curve(model, patients.iloc[:50], "bmi", **asked).plot(ax=right)
    right.set_ylabel("disease after a year")
    path = Path(__file__).with_name("over_all_rows.png")
    figure.savefig(path, dpi=130)
    print(path.name)


if __name__ == "__main__":
    main()

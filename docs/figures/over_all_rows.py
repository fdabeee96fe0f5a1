"""The picture of over-all-rows.md; run me from anywhere. Writes over_all_rows.png beside this file; a few seconds."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import smoothlime as sl


def main():
    patients, disease = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = GradientBoostingRegressor(random_state=0).fit(patients, disease)
    asked = {"background": patients, "sigma": 0.5, "fixed": ["sex"]}
    e = sl.explain(model, patients, **asked)
    labels = ["above 50" if age > 50 else "up to 50" for age in patients["age"]]
    split = e.effects(by=labels, rows="sample")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    split.plot(ax=left)
    left.set_title("Effects on disease after a year, for the population", fontsize=10, loc="left")
    sl.curve(model, patients.iloc[:50], "bmi", **asked).plot(ax=right)
    right.set_ylabel("disease after a year")
    path = Path(__file__).with_name("over_all_rows.png")
    figure.savefig(path, dpi=130)
    print(path.name)


if __name__ == "__main__":
    main()

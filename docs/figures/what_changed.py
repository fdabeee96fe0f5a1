"""The picture of what-changed.md; run me from anywhere. Writes what_changed.png beside this file; a few seconds."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import smoothlime as sl

COLOURS = {"trained again": "#0072b2", "a column of noise": "#d55e00"}


def main():
    patients, diagnosis = load_breast_cancer(return_X_y=True, as_frame=True)
    patients = patients.iloc[:, [0, 1, 20, 21, 23]]
    broken = patients.copy()
    broken["worst area"] = broken["worst area"].sample(frac=1, random_state=0).to_numpy()

    def trained(table, rows):
        return make_pipeline(StandardScaler(), LogisticRegression()).fit(table.iloc[rows], diagnosis.iloc[rows])

    old = trained(patients, range(450))
    others = {"trained again": trained(patients, range(569)), "a column of noise": trained(broken, range(569))}
    rows = patients.iloc[[12, 37, 74, 81]]
    figure, axes = plt.subplots(1, len(rows), figsize=(11, 4), sharey=True, sharex=True, layout="constrained")
    titles = [f"patient {name}" for name in rows.index]
    for shift, (name, new) in zip((-0.2, 0.2), others.items(), strict=True):
        found = sl.compare(
            old, new, rows, margin=0.25, background=patients, sigma=0.5, target=1, method="clime", design="iid",
            n_samples=4_096,
        )  # fmt: skip
        lower, upper = (end * found.explanation.std for end in found.explanation.interval(simultaneous=True))
        for row, axis in enumerate(axes):
            at = np.arange(patients.shape[1]) + shift
            word = {True: "changed", False: "unchanged", None: "cannot tell"}[found.changed[row]]
            axis.barh(
                at, found.explanation.standardised[row], 0.36, xerr=(upper - lower)[row] / 2, color=COLOURS[name],
                ecolor="black", capsize=2, label=name,
            )  # fmt: skip
            titles[row] += f"\n{name}: {word}"
            if shift < 0:
                axis.axvspan(-found.allowed[row], found.allowed[row], color="#9aa0a6", alpha=0.25, linewidth=0)
    for row, axis in enumerate(axes):
        axis.set_title(titles[row], fontsize=9)
        axis.axvline(0, color="black", linewidth=0.8)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=9)
    axes[0].set_yticks(range(patients.shape[1]), patients.columns)
    axes[0].invert_yaxis()
    figure.supxlabel("change of the standardised slope; grey: the margin, 25% of the old slopes", fontsize=10)
    path = Path(__file__).with_name("what_changed.png")
    figure.savefig(path, dpi=130)
    print(path.name)


if __name__ == "__main__":
    main()

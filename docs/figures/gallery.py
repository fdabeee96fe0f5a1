"""The pictures of gallery.md; run me from anywhere. Writes gallery_<name>.png beside this file; half a minute.

Every picture that smoothlime draws, of scikit-learn's small data sets.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import smoothlime as sl

TUMOUR = ["mean radius", "mean texture", "worst radius", "worst texture", "worst area"]


def of_diabetes():
    """A boosted forest, in closed form, and the same rounded to tens, from predictions."""
    patients, disease = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    patients = patients.rename(
        columns={"bp": "blood pressure", "s5": "log triglycerides", "s6": "glucose", "s3": "HDL"}
    )
    forest = GradientBoostingRegressor(random_state=0).fit(patients, disease)

    def predict(table):
        return 10 * np.round(forest.predict(pd.DataFrame(np.asarray(table), columns=patients.columns)) / 10)

    rounded = sl.from_functions(values=predict, feature_names=tuple(patients.columns), outputs=["disease"])
    asked = {"background": patients, "sigma": 0.5, "fixed": ["sex"]}
    rows, typical = patients.iloc[:24], patients.median().drop("sex")
    e = sl.explain(rounded, rows, scale="ranks", **asked)
    yield "bars", lambda: e.plot(3)
    yield "heat", e.plot_rows
    yield "waterfall", sl.contributions(rounded, rows.iloc[:1], baseline=typical, **asked).plot
    by = ["above 50" if age > 50 else "up to 50" for age in patients["age"]]
    everyone = sl.explain(forest, patients, **asked)
    yield "beeswarm", lambda: everyone.plot(kind="beeswarm")
    yield "effects", everyone.effects(rows="sample").plot
    yield "effects_by_group", everyone.effects(by=by, rows="sample").plot
    yield "curve", sl.curve(rounded, rows, "bmi", **asked).plot
    several = [sl.explain(rounded, rows.iloc[:12], n_samples=n, **asked) for n in (128, 512, 2_048, 8_192)]
    yield "convergence", lambda: sl.plots.convergence(several)


def of_tumours():
    """Logistic regressions of five measurements, trained on fewer patients and on all."""
    patients, diagnosis = load_breast_cancer(return_X_y=True, as_frame=True)
    patients, diagnosis = patients[TUMOUR], diagnosis.map({0: "malignant", 1: "benign"})

    def trained(rows):
        return make_pipeline(StandardScaler(), LogisticRegression()).fit(patients.iloc[rows], diagnosis.iloc[rows])

    old, new = trained(range(200)), trained(range(569))
    asked = {"background": patients, "sigma": 0.5, "target": "malignant", "method": "clime"}
    found = sl.compare(old, new, patients.iloc[[12, 37, 74, 81, 5, 6]], margin=0.25, n_samples=2_048, **asked)
    yield "comparison", lambda: found.plot(1)
    yield "comparison_rows", found.plot
    del asked["sigma"]
    path = sl.sigma_path(new, patients.iloc[37], np.geomspace(0.1, 2, 9), **asked)
    yield "path", lambda: path.plot()[0]


def of_pairs():
    """A network of six measurements of tumours: which of them act together."""
    patients, diagnosis = load_breast_cancer(return_X_y=True, as_frame=True)
    patients = patients[[*TUMOUR, "worst concavity"]]
    net = make_pipeline(StandardScaler(), MLPClassifier((16,), "tanh", random_state=0, max_iter=400))
    net.fit(patients, diagnosis.map({0: "malignant", 1: "benign"}))
    found = sl.interactions(net, patients.iloc[[37]], background=patients, sigma=0.5, target="malignant")
    yield "interactions", found.plot


def of_wine():
    """A network, whose gradients agree with its predictions, and a forest."""
    wine, kind = load_wine(return_X_y=True)
    wine = StandardScaler().fit_transform(wine)[:, [0, 6, 9, 12]]
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    step = torch.optim.Adam(net.parameters(), lr=0.03)
    points, labels = torch.tensor(wine, dtype=torch.float32), torch.tensor(kind)
    for _ in range(150):
        step.zero_grad()
        torch.nn.functional.cross_entropy(net(points), labels).backward()
        step.step()
    asked = {"sigma": 0.5, "target": 0}
    yield "agreement", sl.agreement(net.eval(), wine[:12], **asked).plot
    forest = RandomForestClassifier(100, random_state=0).fit(wine, kind)
    yield "robustness", sl.robustness(forest, wine[:40], n_samples=256, **asked).plot


def of_digits():
    """A logistic regression of pictures of 8 × 8 pixels."""
    digits = load_digits()
    chosen = digits.target < 2
    model = LogisticRegression(C=0.001, max_iter=2_000).fit(digits.data[chosen], digits.target[chosen])

    def chance(pictures):
        return model.predict_proba(pictures.reshape(len(pictures), -1))

    named = sl.from_functions(values=chance, outputs=["zero", "one"])
    e = sl.explain(named, digits.images[chosen][:1], sigma=2.0, target="one", n_samples=1_024)
    yield "image", e.plot


def main():
    plt.rcParams["savefig.dpi"] = 100
    for made in (of_diabetes, of_tumours, of_pairs, of_wine, of_digits):
        for name, draw in made():
            if name in sys.argv[1:] or not sys.argv[1:]:
                file = Path(__file__).with_name(f"gallery_{name}.png")
                draw().figure.savefig(file)
                Image.open(file).convert("RGB").quantize(200).save(file, optimize=True)
                print(f"{file.name}: {file.stat().st_size / 1e3:.0f} kB")
                plt.close("all")


if __name__ == "__main__":
    main()

"""Ensembles of the size that people use, on real data with gaps: exact slopes against draws and against themselves."""

import math

import lightgbm
import numpy as np
import pytest
import xgboost
from scipy.special import ndtr
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import smoothlime as sl
from smoothlime.exact.trees.read.recognise import read_trees
from smoothlime.exact.trees.smoothing import smooth

DATA = {"cancer": load_breast_cancer(), "wine": load_wine()}  # two classes; three, and features in whole numbers
MODELS = {
    "xgboost 500 × 6": (lambda: xgboost.XGBClassifier(n_estimators=500, max_depth=6, n_jobs=1), "margin"),
    "lightgbm 500 × 31": (lambda: lightgbm.LGBMClassifier(n_estimators=500, verbose=-1, n_jobs=1), "margin"),
    "forest of 300": (lambda: RandomForestClassifier(300, random_state=0), "probability"),
    "histograms": (lambda: HistGradientBoostingClassifier(max_iter=200, random_state=0), "margin"),
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted():
    """Each model on each data set, one value in twenty missing, fitted once."""
    known = {}

    def fit(name, data):
        if (name, data) not in known:
            x = DATA[data].data.copy()
            x[np.random.default_rng(0).random(x.shape) < 0.05] = np.nan
            known[name, data] = MODELS[name][0]().fit(x, DATA[data].target), x
        return known[name, data]

    return fit


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", MODELS)
class TestFullSize:
    def question(self, x, name):
        around = sl.Neighbourhood(0.5, scale=np.nanstd(x, axis=0))
        return {"sigma": around, "target": 1, "output": MODELS[name][1]}

    def test_draws_agree(self, fitted, name, data):
        model, x = fitted(name, data)
        whole = x[~np.isnan(x).any(axis=1)][5:7]
        e = sl.explain(model, whole, **self.question(x, name))
        assert e.is_exact
        drawn = sl.explain(
            model, whole, method="clime", design="orthogonal", n_samples=200_000, **self.question(x, name)
        )
        off = np.abs(e.values - drawn.values) / np.where(drawn.standard_error > 0, drawn.standard_error, 1)
        assert off.max() < 4.5  # the largest of up to 60: 4 would be passed in one run of 250
        assert np.sqrt((off**2).mean()) < 1.4

    def test_slopes_are_the_derivative_of_the_mean_also_around_gaps(self, fitted, name, data):
        model, x = fitted(name, data)
        row = x[np.isnan(x).any(axis=1)][3]
        question = self.question(x, name)
        e = sl.explain(model, row, **question)
        assert e.is_exact
        assert np.isnan(e.values[0, np.isnan(row)]).all()
        steps = 1e-3 * np.diag(e.std)[~np.isnan(row)]
        ahead, behind = (sl.explain(model, row + sign * steps, **question).smoothed for sign in (1, -1))
        slopes = (ahead - behind) / 2e-3
        np.testing.assert_allclose(
            slopes, e.standardised[0, ~np.isnan(row)], atol=1e-6 * np.nanmax(np.abs(e.standardised))
        )


FEATURES = 11


@pytest.fixture(scope="module")
def forest():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2_500, FEATURES))
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.7 * rng.normal(size=len(x)) > 0.3
    return read_trees(RandomForestClassifier(100, random_state=0).fit(x, y), "probability")


@pytest.fixture(scope="module")
def boxes(forest):
    """Every leaf's value, and the lower and upper ends of its box, (leaves, d)."""
    found = []
    todo = [(int(root), np.full(FEATURES, -np.inf), np.full(FEATURES, np.inf)) for root in forest.roots]
    while todo:
        node, low, high = todo.pop()
        j, t = forest.feature[node], forest.threshold[node]
        if j < 0:
            found.append((forest.value[node, 1] * forest.scale, low, high))
            continue
        under, over = high.copy(), low.copy()
        under[j], over[j] = min(high[j], t), max(low[j], t)
        todo += [(int(forest.left[node]), low, under), (int(forest.right[node]), over, high)]
    return tuple(np.array(each) for each in zip(*found, strict=True))


@pytest.mark.parametrize("sigma", [0.1, 0.316, 1.0])
def test_a_forest_agrees_with_its_boxes_to_twelve_digits(forest, boxes, sigma):
    """Most leaves are hardly ever reached, and what each of them adds is small; but they are many."""
    value, lows, highs = boxes
    rows = np.random.default_rng(3).normal(size=(8, FEATURES))
    got = smooth(forest, rows, np.full(FEATURES, sigma), weights=[0.0, 1.0]).gradients[:, :, 0]
    for x, slopes in zip(rows, got, strict=True):
        low, high = (lows - x) / sigma, (np.maximum(lows, highs) - x) / sigma
        # above x from the other side, where 1 - Φ keeps its digits
        chance = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
        dense = (np.exp(-(low**2) / 2) - np.exp(-(high**2) / 2)) / np.sqrt(2 * np.pi) / sigma
        others = [np.delete(chance, j, axis=1).prod(axis=1) for j in range(FEATURES)]
        truth = [math.fsum(value * dense[:, j] * others[j]) for j in range(FEATURES)]
        assert np.linalg.norm(slopes - truth) <= 5e-13 * np.linalg.norm(truth)

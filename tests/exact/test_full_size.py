"""Ensembles of the size that people use, on real data with gaps: exact slopes against draws and against themselves."""

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import smoothlime as sl

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
        return {"sigma": around, "target": 0, "output": MODELS[name][1]}

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
        assert (e.values[0, np.isnan(row)] == 0).all()
        steps = 1e-3 * np.diag(e.std)[~np.isnan(row)]
        ahead, behind = (sl.explain(model, row + sign * steps, **question).smoothed for sign in (1, -1))
        slopes = (ahead - behind) / 2e-3
        np.testing.assert_allclose(slopes, e.standardised[0, ~np.isnan(row)], atol=1e-6 * np.abs(e.standardised).max())

"""The bankruptcy table: more than half of its companies miss a figure, and all of them are explained."""

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer
from xgboost import XGBClassifier

import smoothlime as sl
from smoothlime.paper.datasets import ATTRIBUTES, bankruptcy_columns
from smoothlime.paper.fetching import BANKRUPTCY, fetch
from smoothlime.paper.parsing import parse_arff, read_text

MODELS = {
    "xgboost": lambda: XGBClassifier(n_estimators=40, max_depth=4),
    "lightgbm": lambda: LGBMClassifier(n_estimators=40, num_leaves=12, verbose=-1),
    "hist": lambda: HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=12, random_state=0),
    "logistic after an imputer": lambda: make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True),
        QuantileTransformer(n_quantiles=100),
        LogisticRegression(max_iter=2_000),
    ),
    "forest after an imputer": lambda: make_pipeline(
        SimpleImputer(), RandomForestClassifier(20, max_depth=6, random_state=0)
    ),
}
BOOSTED = ["xgboost", "lightgbm", "hist"]


@pytest.fixture(scope="module")
def companies():
    x, y = bankruptcy_columns(parse_arff(read_text(fetch(BANKRUPTCY))), ATTRIBUTES)
    return x, y


@pytest.fixture(scope="module")
def fitted(companies):
    return {name: make().fit(*companies) for name, make in MODELS.items()}


@pytest.fixture(scope="module")
def sample(companies):
    """150 companies, of all sorts of gaps, and 10 without any."""
    gaps = np.isnan(companies[0])
    assert gaps.any(axis=1).mean() > 0.53
    rng = np.random.default_rng(0)
    kinds = np.unique(gaps, axis=0, return_index=True)[1]
    some = np.concatenate([kinds[:60], rng.choice(np.flatnonzero(gaps.any(axis=1)), 90, replace=False)])
    return np.concatenate([some, rng.choice(np.flatnonzero(~gaps.any(axis=1)), 10, replace=False)])


def explain(model, x, rows, **settings):
    return sl.explain(model, rows, background=x, scale="ranks", sigma=0.5, target=1, **settings)


@pytest.mark.parametrize("name", MODELS)
def test_every_company_is_explained(companies, fitted, sample, name):
    x, _ = companies
    rows = x[sample]
    e = explain(fitted[name], x, rows, n_samples=256)
    np.testing.assert_array_equal(np.isnan(e.values), np.isnan(rows))
    np.testing.assert_array_equal(e.missing, np.isnan(rows))
    assert e.method == ("jumps" if name in BOOSTED else "differences")
    assert np.isfinite(e.smoothed).all() == (name in BOOSTED)  # differences do not see it
    assert np.isfinite(e.radius).all()
    whole = explain(fitted[name], x, rows[-10:], n_samples=256)
    np.testing.assert_array_equal(e.values[-10:], whole.values)
    points = e.perturbations(0)
    np.testing.assert_array_equal(np.isnan(points), np.broadcast_to(np.isnan(rows[0]), points.shape))


@pytest.mark.parametrize("name", BOOSTED)
def test_slopes_are_those_of_draws_that_only_ask_the_model(companies, fitted, sample, name):
    x, _ = companies
    rows = x[sample[[0, 70, 120]]]
    e = explain(fitted[name], x, rows, n_samples=4_096)
    drawn = explain(fitted[name], x, rows, n_samples=8_192, method="clime", design="iid", seed=1)
    apart = np.abs(e.values - drawn.values) / np.hypot(e.standard_error, drawn.standard_error)
    assert np.nanmax(apart) < 6
    np.testing.assert_array_equal(np.isnan(apart), np.isnan(rows))
    assert np.nanmax(np.abs(e.standardised) / drawn.standard_error / e.std) > 6  # some slopes are seen by both


@pytest.mark.parametrize("name", BOOSTED)
def test_margins_are_exact(companies, fitted, sample, name):
    x, _ = companies
    e = explain(fitted[name], x, x[sample], output="margin")
    assert e.is_exact
    np.testing.assert_array_equal(np.isnan(e.values), np.isnan(x[sample]))

"""Nothing that is said of a forest may rest on its having no jumps."""

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import smoothlime as sl
from smoothlime.errors import InvalidArgument
from smoothlime.testing import Probit

X = np.random.default_rng(0).normal(size=(100, 2))
Y = X[:, 0] + 0.1 * X[:, 1] ** 2
ROWS = X[:3]
KNOWN = {"sigma": 0.5, "output_range": (-10, 10)}
STEEP = {"sigma": 0.5, "gradient_bound": 1e4}


def forest():
    return RandomForestRegressor(5, random_state=0)


TREES = {
    "forest": forest(),
    "lightgbm": lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, n_jobs=1),
    "in a pipeline": make_pipeline(StandardScaler(), forest()),
    "in a search": GridSearchCV(forest(), {"max_depth": [3]}, cv=2),
    "in a vote": VotingRegressor([("line", Ridge()), ("forest", forest())]),
    "bagged": BaggingRegressor(n_estimators=3, random_state=0),
}


@pytest.mark.parametrize("name", TREES)
def test_trees_are_not_said_to_have_no_jumps(name):
    model = TREES[name].fit(X, Y)
    for said in (sl.certify(model, ROWS, **KNOWN), sl.robustness(model, ROWS, n_samples=64, **KNOWN)):
        assert "jump" not in str(said)
        assert "ssumes outputs between -10 and 10" in str(said)
    for promise in (sl.certify, sl.robustness):
        with pytest.raises(
            InvalidArgument,
            match=r"gradient_bound is for models without jumps, and a \w+ is made of trees.*output_range=",
        ):
            promise(model, ROWS, **STEEP)


@pytest.mark.parametrize("model", [Ridge(), xgboost.XGBRegressor(booster="gblinear", n_estimators=2, n_jobs=1)])
def test_bounds_on_gradients_of_lines_are_taken(model):
    model.fit(X, Y)
    assert "no jumps" in sl.certify(model, ROWS, **STEEP).assumes


def test_models_with_gradients_keep_their_assumption():
    known = {"sigma": 0.5, "output_range": (0, 1)}
    assert "no jumps where gradients are averaged" in sl.certify(Probit([1.0, -0.5]), ROWS, **known).assumes
    found = sl.robustness(Probit([1.0, -0.5]), ROWS, n_samples=64, **known)
    assert "(certified; assumes outputs between 0 and 1, no jumps where gradients are averaged)" in str(found)

"""A range between 0 and 1 is taken for granted only where probabilities are known to be some."""

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import smoothlime as sl
from smoothlime import errors

POINTS = np.random.default_rng(0).normal(size=(120, 2))
LABELS = (POINTS[:, 0] + 0.5 * POINTS[:, 1] > 0).astype(int)
THREE = LABELS + (POINTS[:, 1] > 1)


def boosted(**settings):
    return lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1, **settings)


def extreme(**settings):
    return xgboost.XGBClassifier(n_estimators=3, n_jobs=1, **settings)


def known_range(model, labels=LABELS):
    return sl.as_model(model.fit(POINTS, labels)).output_range


@pytest.mark.parametrize(
    "objective",
    ["huber", "fair", "l2", "mse", "rmse", "mean_squared_error", "l2_root", "root_mean_squared_error", "l1", "mae",
     "cross_entropy_lambda", "xentlambda", "regression", "poisson", "quantile", "mape", "tweedie"],
)  # fmt: skip
def test_no_objective_of_lightgbm_but_those_known_has_a_range(objective):
    assert known_range(boosted(objective=objective)) is None


@pytest.mark.parametrize("alias", ["application", "app", "loss", "objective_type"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_objectives_are_found_by_their_other_names(alias):
    assert known_range(boosted(**{alias: "huber"})) is None
    assert known_range(boosted(**{alias: "binary"})) == (0.0, 1.0)


@pytest.mark.parametrize("objective", ["survival:cox", "binary:logitraw", "reg:squarederror", "count:poisson"])
def test_nor_of_xgboost(objective):
    assert known_range(extreme(objective=objective)) is None


def test_objectives_of_ones_own_have_none():
    assert known_range(boosted(objective=lambda y, p: (p - y, np.ones_like(p)))) is None
    assert known_range(extreme(objective=lambda y, p: (p - y, np.ones_like(p)))) is None


def test_what_was_fitted_counts_and_not_what_was_set_since():
    for model, other in (
        (boosted(objective="huber"), "binary"),
        (extreme(objective="survival:cox"), "binary:logistic"),
    ):
        model.fit(POINTS, LABELS)
        model.objective = other
        assert sl.as_model(model).output_range is None


@pytest.mark.parametrize("objective", [None, "binary", "cross_entropy", "xentropy"])
def test_binary_probabilities_of_lightgbm_have_their_range(objective):
    assert known_range(boosted(objective=objective)) == (0.0, 1.0)


@pytest.mark.parametrize("objective", [None, "multiclass", "softmax", "multiclassova", "ova"])
def test_and_those_of_several_classes(objective):
    assert known_range(boosted(objective=objective), THREE) == (0.0, 1.0)


@pytest.mark.parametrize("objective", [None, "binary:logistic", "multi:softprob", "multi:softmax"])
def test_and_those_of_xgboost(objective):
    settings = {} if objective is None else {"objective": objective}
    labels = THREE if str(objective).startswith("multi") else LABELS
    assert known_range(extreme(**settings), labels) == (0.0, 1.0)


WRAPPERS = {
    "voting": lambda part: VotingClassifier([("a", part), ("b", LogisticRegression())], voting="soft"),
    "bagging": lambda part: BaggingClassifier(part, n_estimators=2, random_state=0),
    "pipeline": lambda part: make_pipeline(StandardScaler(), part),
    "search": lambda part: GridSearchCV(part, {"random_state": [0]}, cv=2),
    "stacking": lambda part: StackingClassifier([("a", LogisticRegression())], part, cv=2),
    "calibrated": lambda part: CalibratedClassifierCV(part, cv=2),
    "adaptive": lambda part: AdaBoostClassifier(part, n_estimators=2, random_state=0),
    "one against the rest": lambda part: OneVsRestClassifier(part),
    "frozen": lambda part: FrozenEstimator(part.fit(POINTS, LABELS)),
    "nested": lambda part: GridSearchCV(
        make_pipeline(StandardScaler(), BaggingClassifier(part, 2)), {"baggingclassifier__random_state": [0]}, cv=2
    ),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_are_looked_into(name):
    assert known_range(WRAPPERS[name](boosted(objective="huber"))) is None
    assert known_range(WRAPPERS[name](boosted())) == (0.0, 1.0)


def test_votes_against_have_no_range():
    parts = [("a", LogisticRegression()), ("b", RandomForestClassifier(5, random_state=0))]
    assert known_range(VotingClassifier(parts, voting="soft", weights=[2, -1])) is None
    assert known_range(VotingClassifier(parts, voting="soft", weights=[2, 1])) == (0.0, 1.0)


@pytest.mark.parametrize("model", [RandomForestClassifier(3), GradientBoostingClassifier(n_estimators=3)])
def test_trees_have_theirs(model):
    assert known_range(model) == (0.0, 1.0)


def test_answers_that_leave_an_implied_range_are_refused_at_the_rows_too():
    class Spike:
        outputs = ("a",)
        output_range = (0.0, 1.0)

        def values(self, points):
            return np.where(points == 0, 2.0, 0.5)

    with pytest.raises(errors.ModelError, match=r"the model returned 2, outside output_range=\(0, 1\)"):
        sl.explain(Spike(), [[0.0]], method="clime", guarantee="certified", n_samples=200)

"""Averages and soft votes of known models: the same average of their closed forms, or of their jumps."""

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import smoothlime as sl
from smoothlime.errors import ModelError, NoClosedForm
from smoothlime.testing import assert_matches

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 0]
KIND = np.digitize(Y, [-0.4, 0.6])
SIGMA = np.array([0.5, 0.8])
ROW = np.array([0.3, -0.2])
SMALL = {"n_estimators": 4, "max_depth": 4, "random_state": 0}
LGBM = {"n_estimators": 6, "num_leaves": 6, "verbose": -1, "n_jobs": 1}
XGB = {"n_estimators": 6, "max_depth": 3, "n_jobs": 1}


def explain(model, rows=ROW, **more):
    return sl.explain(model, rows, **{"sigma": SIGMA, **more})


def regressors():
    return [
        ("forest", RandomForestRegressor(**SMALL)),
        ("boosted", GradientBoostingRegressor(n_estimators=6, random_state=0)),
        ("out", "drop"),
        ("light", lightgbm.LGBMRegressor(**LGBM)),
        ("line", make_pipeline(StandardScaler(), Ridge())),
    ]


def classifiers():
    return [
        ("forest", RandomForestClassifier(**SMALL)),
        ("boosted", GradientBoostingClassifier(n_estimators=6, random_state=0)),
        ("light", lightgbm.LGBMClassifier(**LGBM)),
        ("extreme", xgboost.XGBClassifier(**XGB)),
    ]


# ---- closed forms


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 9.0, 0.5, 3.0]])
def test_a_vote_of_regressors_is_that_of_its_members(weights):
    model = VotingRegressor(regressors(), weights=weights).fit(X, Y)
    rows = X[:5]
    e = explain(model, rows)
    assert e.is_exact
    share = np.array([1.0] * 4 if weights is None else [1.0, 2.0, 0.5, 3.0])
    members = [explain(each, rows) for each in model.estimators_]
    assert all(each.is_exact for each in members)
    for name in ("values", "smoothed"):
        expected = sum(w * getattr(each, name) for w, each in zip(share / share.sum(), members, strict=True))
        np.testing.assert_allclose(getattr(e, name), expected, rtol=1e-10, atol=1e-12)
    assert (e.radius <= 1e-9).all()


def test_lines_that_are_averaged_are_a_line():
    model = VotingRegressor([("a", Ridge()), ("b", make_pipeline(StandardScaler(), Ridge(100.0)))]).fit(X, Y)
    full = sl.Neighbourhood(covariance=[[0.3, 0.1], [0.1, 0.5]])
    e = explain(model, sigma=full)
    assert e.is_exact
    assert e.fidelity[0] == 1
    coef = (model.estimators_[0].coef_ + model.estimators_[1][-1].coef_ / model.estimators_[1][0].scale_) / 2
    np.testing.assert_allclose(e.values[0], coef, rtol=1e-12)


@pytest.mark.parametrize("kind", ["regression", "three classes"])
def test_bagged_trees_are_the_sum_over_their_cells(kind, by_cells, thresholds_of):
    if kind == "regression":
        model, question = BaggingRegressor(DecisionTreeRegressor(max_depth=4), 6, random_state=0).fit(X, Y), {}
        ask = model.predict
    else:
        model, question = BaggingClassifier(n_estimators=6, random_state=0).fit(X, KIND), {"target": 2}
        ask = lambda a: model.predict_proba(a)[:, 2]
    e = explain(model, **question)
    assert e.is_exact
    cuts = [np.concatenate([thresholds_of(each, j, "probability") for each in model.estimators_]) for j in range(2)]
    mean, slopes = by_cells(ask, cuts, ROW, SIGMA)
    np.testing.assert_allclose(e.smoothed, mean, rtol=1e-10)
    np.testing.assert_allclose(e.values[0], slopes, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("is_classifier", [False, True])
def test_members_that_see_some_features_only(is_classifier):
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(200, 5))
    y = wide[:, 0] * wide[:, 3]
    options = {"n_estimators": 8, "max_features": 0.6, "bootstrap_features": True, "random_state": 0}
    if is_classifier:
        model = BaggingClassifier(DecisionTreeClassifier(max_depth=3), **options).fit(wide, y > 0)
    else:
        model = BaggingRegressor(ExtraTreesRegressor(3, max_depth=3), **options).fit(wide, y)
    question = {"target": 1} if is_classifier else {}
    e = sl.explain(model, wide[:3], sigma=0.5, **question)
    assert e.is_exact
    expected, sigma = np.zeros((3, 5)), 0.5
    for each, places in zip(model.estimators_, model.estimators_features_, strict=True):
        if len(set(places)) < len(places):  # a feature that is there twice moves twice: seen by differences
            continue
        inner = sl.explain(each, wide[:3][:, places], sigma=sigma, **question)
        expected[:, places] += inner.values / len(model.estimators_)
    single = [len(set(places)) == len(places) for places in model.estimators_features_]
    if all(single):
        np.testing.assert_allclose(e.values, expected, rtol=1e-10)
    drawn = sl.explain(model, wide[:3], sigma=0.5, method="clime", n_samples=2**13, **question)
    assert_matches(drawn.values, e.values, standard_error=drawn.standard_error, sees=0.3)


def test_members_that_missed_a_class():
    rare = KIND.copy()
    rare[KIND == 2] = 0
    rare[0] = 2  # which some samples do not have
    model = BaggingClassifier(
        make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3)), 8, random_state=1
    ).fit(X, rare)
    assert {len(each.classes_) for each in model.estimators_} == {2, 3}
    for target in range(3):
        e = explain(model, target=target)
        assert e.is_exact
        at = explain(model, target=target, method="differences", n_samples=2**12)
        np.testing.assert_allclose(e.prediction, at.prediction, rtol=1e-12)


# ---- jumps


@pytest.mark.parametrize("weights", [None, [3.0, 1.0, 1.0, 2.0]])
def test_soft_votes_of_two_classes_match_their_cells(weights, by_cells, thresholds_of):
    model = VotingClassifier(classifiers(), voting="soft", weights=weights).fit(X, Y > 0)
    cuts = [
        np.concatenate([
            thresholds_of(each, j, "probability" if isinstance(each, RandomForestClassifier) else "margin")
            for each in model.estimators_
        ]) for j in range(2)
    ]  # fmt: skip
    mean, slopes = by_cells(lambda a: model.predict_proba(a)[:, 1], cuts, ROW, SIGMA)
    e = explain(model, target=1, n_samples=2**14, method="jumps")
    assert e.method == "jumps"
    assert_matches(e.values[0], slopes, standard_error=e.standard_error[0], sees=0.03)
    assert abs(e.smoothed[0] - mean) < 1e-3
    assert explain(model, target=1).method == "jumps"
    with pytest.raises(NoClosedForm, match="it puts sums of trees through a curve, and what comes out has no closed"):
        explain(model, target=1, method="exact")


@pytest.mark.parametrize("is_full", [False, True])
def test_soft_votes_of_three_classes_match_draws_of_predictions(is_full):
    model = VotingClassifier(classifiers(), voting="soft").fit(X, KIND)
    sigma = sl.Neighbourhood(covariance=[[0.3, 0.1], [0.1, 0.5]]) if is_full else SIGMA
    for target in (0, {2: 1.0, 1: -1.0}):
        e = explain(model, X[:2], target=target, sigma=sigma, n_samples=2**13, method="jumps")
        other = explain(model, X[:2], target=target, sigma=sigma, n_samples=2**16, method="clime")
        assert_matches(
            e.values, other.values, standard_error=np.hypot(e.standard_error, other.standard_error), sees=0.2
        )


def test_a_line_beside_trees_adds_its_own_slope():
    members = [("light", lightgbm.LGBMClassifier(**LGBM)), ("line", LogisticRegression())]
    model = VotingClassifier(members, voting="soft", weights=[1, 3]).fit(X, Y > 0)
    question = {"n_samples": 512, "seed": 3, "sigma": SIGMA, "target": 1, "method": sl.Jumps(control="none")}
    e = sl.explain(model, X[:3], **question)
    trees = sl.explain(model.estimators_[0], X[:3], **question)
    line = explain(model.estimators_[1], X[:3], target=1)
    np.testing.assert_allclose(e.values, 0.25 * trees.values + 0.75 * line.values, rtol=1e-10)
    np.testing.assert_allclose(e.standard_error, 0.25 * trees.standard_error, rtol=1e-6)


def test_jumps_of_a_vote_are_the_vote_of_jumps():
    members = [("light", lightgbm.LGBMClassifier(**LGBM)), ("boosted", GradientBoostingClassifier(n_estimators=6))]
    model = VotingClassifier(members, voting="soft", weights=[1, 3]).fit(X, KIND)
    question = {"n_samples": 512, "seed": 3, "target": 1, "method": sl.Jumps(control="none")}
    e = explain(model, X[:3], **question)
    one, other = (explain(each, X[:3], **question) for each in model.estimators_)
    np.testing.assert_allclose(e.values, 0.25 * one.values + 0.75 * other.values, rtol=1e-10)
    np.testing.assert_allclose(e.smoothed, 0.25 * one.smoothed + 0.75 * other.smoothed, rtol=1e-10)


def test_intervals_of_votes_hold_what_they_promise(by_cells, thresholds_of):
    members = [("light", lightgbm.LGBMClassifier(**LGBM)), ("line", LogisticRegression()), classifiers()[0]]
    model = VotingClassifier(members[::2], voting="soft").fit(X, Y > 0)
    cuts = [np.concatenate([thresholds_of(model.estimators_[0], j), thresholds_of(model.estimators_[1], j,
            "probability")]) for j in range(2)]  # fmt: skip
    _, slopes = by_cells(lambda a: model.predict_proba(a)[:, 1], cuts, ROW, SIGMA)
    e = explain(model, np.tile(ROW, (1_000, 1)), target=1, n_samples=512, draws="independent", method="jumps")
    low, high = e.interval()
    inside = (low <= slopes) & (slopes <= high)
    assert (inside.mean(axis=0) > 0.925).all()


# ---- refusals, and changes


def test_members_that_are_not_known_are_named():
    model = VotingRegressor([*regressors(), ("near", KNeighborsRegressor())]).fit(X, Y)
    with pytest.raises(NoClosedForm, match="this VotingRegressor is not known throughout: its KNeighborsRegressor has"):
        explain(model, method="exact")
    votes = VotingClassifier([("line", LogisticRegression())], voting="soft").fit(X, KIND)
    with pytest.raises(NoClosedForm, match="probabilities of three classes or more of the LogisticRegression have no"):
        explain(votes, target=0, method="exact")
    bagged = BaggingRegressor(KNeighborsRegressor()).fit(X, Y)
    with pytest.raises(NoClosedForm, match="this BaggingRegressor is not known throughout: its KNeighbors"):
        explain(bagged, method="jumps")


def test_a_derived_class_is_asked_instead():
    class Odd(VotingRegressor):
        def predict(self, X):
            return super().predict(X) ** 2

    model = Odd(regressors()).fit(X, Y)
    assert not explain(model, n_samples=64).is_exact
    with pytest.raises(NoClosedForm, match="a Odd by predict has none"):
        explain(model, method="exact")


def test_parts_that_do_not_fit_together_are_left_to_the_model():
    model = BaggingClassifier(GradientBoostingClassifier(n_estimators=2), n_estimators=3, random_state=0).fit(X, KIND)
    model.estimators_features_ = model.estimators_features_[:2]  # scikit-learn goes on with two of the three
    assert explain(model, target=0).method not in ("jumps", "exact")
    with pytest.raises(NoClosedForm, match=r"its parts do not fit together \(ValueError"):
        explain(model, target=0, method="jumps")
    votes = VotingRegressor(regressors(), weights=[1.0] * 5).fit(X, Y).set_params(weights=[1.0, 2.0])
    with pytest.raises(ModelError, match="weights"):
        explain(votes)


def test_a_reading_that_is_no_number_is_not_the_model(monkeypatch):
    from smoothlime.exact.linear import LinearModel

    model = LogisticRegression().fit(X, KIND > 0)
    assert explain(model, target=1).is_exact
    monkeypatch.setattr(LinearModel, "values", lambda self, x: np.full((len(x), 2), np.nan))
    assert not explain(model, target=1).is_exact


CHANGES = {
    "weights": lambda m: m.set_params(weights=[5.0, 1.0, 1.0, 1.0, 1.0]),
    "a leaf": lambda m: np.multiply(m.estimators_[0].estimators_[1].tree_.value, 2.0,
                               out=m.estimators_[0].estimators_[1].tree_.value),
    "a coefficient": lambda m: np.multiply(m.estimators_[-1][-1].coef_, 2, out=m.estimators_[-1][-1].coef_),
    "a member": lambda m: m.estimators_.__setitem__(1, Ridge().fit(X, Y)),
    "a round of boosting": lambda m: m.estimators_[1].set_params(warm_start=True, n_estimators=8).fit(X, Y),
    "fitted anew": lambda m: m.fit(X, -Y),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_vote_changed_in_place_is_read_anew(change):
    import copy

    model = VotingRegressor(regressors()).fit(X, Y)
    before = explain(model)
    CHANGES[change](model)
    after = explain(model)
    assert before.is_exact
    assert after.is_exact
    assert not np.allclose(before.values, after.values, rtol=1e-6)
    np.testing.assert_allclose(after.values, explain(copy.deepcopy(model)).values, rtol=1e-13)


@pytest.mark.parametrize("part", [lambda m: m, lambda m: m.estimators_[0], lambda m: m.estimators_[0].estimators_[0]])
def test_a_method_that_was_replaced_is_not_answered_for(part, monkeypatch):
    model = VotingRegressor(regressors()).fit(X, Y)
    assert explain(model).is_exact
    patched = part(model)
    original = patched.predict
    monkeypatch.setattr(patched, "predict", lambda rows, **named: original(rows, **named) + 20.0 * (rows[:, 0] > 1.2))
    with pytest.raises(NoClosedForm, match=r"predict otherwise than|does not reproduce its outputs"):
        explain(model, sigma=0.01, method="exact")


def test_an_average_that_is_misread_is_refused(monkeypatch):
    from smoothlime.exact import compound

    original = compound.average
    monkeypatch.setattr(compound, "average", lambda mixes, weights=None: original(mixes))
    model = VotingRegressor(regressors(), weights=[5.0, 1.0, 1.0, 1.0, 1.0]).fit(X, Y)
    with pytest.raises(NoClosedForm, match="does not reproduce its outputs"):
        explain(model, method="exact")

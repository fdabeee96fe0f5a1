"""Calibrated classifiers and transformed targets: a curve after the curve, over trees by jumps, over lines exactly."""

from itertools import pairwise

import lightgbm
import numpy as np
import pytest
import xgboost
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PowerTransformer, StandardScaler
from sklearn.svm import LinearSVC

import smoothlime as sl
from smoothlime.errors import NoClosedForm
from smoothlime.exact.bend_links import SQUARE, table_link
from smoothlime.testing import assert_matches

RNG = np.random.default_rng(11)
X = RNG.normal(size=(500, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 0] + 0.3 * RNG.normal(size=500)
KIND = np.digitize(Y, [-0.4, 0.6])
SIGMA = np.array([0.5, 0.8])
ROW = np.array([0.3, -0.2])
CLASSIFIERS = {
    "boosted": lambda: GradientBoostingClassifier(n_estimators=6, random_state=0),
    "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=6, num_leaves=6, verbose=-1, n_jobs=1),
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1),
    "forest": lambda: RandomForestClassifier(4, max_depth=4, random_state=0),
    "pipeline": lambda: make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=4, random_state=0)),
}


def explain(model, rows=ROW, **more):
    return sl.explain(model, rows, **{"sigma": SIGMA, **more})


def cuts_of(model, thresholds_of):
    """Thresholds of all classifiers that were calibrated."""
    found = [[], []]
    for each in model.calibrated_classifiers_:
        inner, scale, shift = each.estimator, np.ones(2), np.zeros(2)
        if hasattr(inner, "steps"):
            scale, shift, inner = inner[0].scale_, inner[0].mean_, inner[-1]
        for j in range(2):
            output = "probability" if isinstance(inner, RandomForestClassifier) else "margin"
            found[j].append(thresholds_of(inner, j, output) * scale[j] + shift[j])
    return [np.concatenate(each) for each in found]


# ---- trees


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_two_classes_match_their_cells(name, method, ensemble, by_cells, thresholds_of):
    model = CalibratedClassifierCV(CLASSIFIERS[name](), method=method, ensemble=ensemble, cv=2).fit(X, Y > 0)
    mean, slopes = by_cells(lambda a: model.predict_proba(a)[:, 1], cuts_of(model, thresholds_of), ROW, SIGMA)
    e = explain(model, target=1, n_samples=2**14, method="jumps")
    assert_matches(e.values[0], slopes, standard_error=e.standard_error[0], sees=0.05)
    assert abs(e.smoothed[0] - mean) < 4 * 0.5 / 2**7  # four standard errors of a probability at most
    assert explain(model, target=1).method == "jumps"
    other = explain(model, target=0, n_samples=256, method="jumps", seed=1)
    np.testing.assert_allclose(other.values, -explain(model, target=1, n_samples=256, method="jumps", seed=1).values)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("name", ["boosted", "lightgbm", "forest"])
def test_three_classes_match_their_cells(name, method, by_cells, thresholds_of):
    model = CalibratedClassifierCV(CLASSIFIERS[name](), method=method, cv=2).fit(X, KIND)
    _, slopes = by_cells(lambda a: model.predict_proba(a)[:, 2], cuts_of(model, thresholds_of), ROW, SIGMA)
    e = explain(model, target=2, n_samples=2**14, method="jumps")
    assert_matches(e.values[0], slopes, standard_error=e.standard_error[0], sees=0.05)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_full_covariances_match_draws_of_predictions(method):
    model = CalibratedClassifierCV(CLASSIFIERS["lightgbm"](), method=method, cv=2).fit(X, Y > 0)
    sigma = sl.Neighbourhood(covariance=[[0.3, 0.1], [0.1, 0.5]])
    e = explain(model, target=1, sigma=sigma, n_samples=2**14, method="jumps")
    other = explain(model, target=1, sigma=sigma, n_samples=2**16, method="clime")
    assert_matches(e.values, other.values, standard_error=np.hypot(e.standard_error, other.standard_error), sees=0.1)


def test_what_was_fitted_before_may_be_calibrated_and_averaged():
    inner = CLASSIFIERS["boosted"]().fit(X[:250], Y[:250] > 0)
    model = CalibratedClassifierCV(FrozenEstimator(inner)).fit(X[250:], Y[250:] > 0)
    members = [("calibrated", CalibratedClassifierCV(CLASSIFIERS["forest"](), cv=2)), ("line", LogisticRegression())]
    vote = VotingClassifier(members, voting="soft").fit(X, Y > 0)
    for each in (model, vote):
        e = explain(each, target=1, n_samples=2**13, method="jumps")
        other = explain(each, target=1, n_samples=2**15, method="clime")
        assert_matches(
            e.values, other.values, standard_error=np.hypot(e.standard_error, other.standard_error), sees=0.1
        )


# ---- lines


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("make", [LogisticRegression, lambda: make_pipeline(StandardScaler(), LinearSVC())])
def test_lines_by_sigmoid_match_quadrature(make, ensemble, by_quadrature):
    model = CalibratedClassifierCV(make(), ensemble=ensemble, cv=3).fit(X, Y > 0)
    factor = np.array([[0.5, 0.0], [0.2, 0.7]])
    e = explain(model, target=1, sigma=sl.Neighbourhood(covariance=factor @ factor.T))
    assert e.is_exact
    mean, slopes = by_quadrature(lambda a: model.predict_proba(a)[:, 1], ROW, factor)
    np.testing.assert_allclose(e.smoothed, mean, rtol=1e-10)
    np.testing.assert_allclose(e.values[0], slopes, rtol=1e-9)


def test_lines_by_isotonic_regression_match_quadrature():
    model = CalibratedClassifierCV(LogisticRegression(), method="isotonic", ensemble=False).fit(X, Y > 0)
    e = explain(model, target=1)
    assert e.is_exact
    line, table = model.calibrated_classifiers_[0].estimator, model.calibrated_classifiers_[0].calibrators[0]
    c = line.coef_[0]
    m, tau = line.decision_function(ROW[None])[0], np.linalg.norm(c * SIGMA)
    ends = (table.X_thresholds_ - m) / tau
    rises = np.diff(table.y_thresholds_) / np.diff(table.X_thresholds_)
    slope = sum(r * quad(norm.pdf, a, b, epsabs=1e-16)[0] for r, (a, b) in zip(rises, pairwise(ends), strict=True))
    np.testing.assert_allclose(e.values[0], c * slope, rtol=1e-10)


KNOTS, HEIGHTS = np.array([-1.0, -0.2, 0.1, 0.15, 2.0]), np.array([0.0, 0.1, 0.1, 0.7, 1.0])
LINKS = {
    "table": (table_link(KNOTS, HEIGHTS), lambda u: np.interp(u, KNOTS, HEIGHTS), KNOTS),
    "square": (SQUARE, np.square, [0.0]),
}


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("m", [-3.0, 0.0, 0.12, 1.0])
@pytest.mark.parametrize("tau", [1e-2, 0.5, 3.0])
def test_links_match_quadrature(name, m, tau):
    link, g, kinks = LINKS[name]
    at = np.array([[m]]), np.array([[tau]])
    ends = np.unique(np.clip([-12.0, *((np.asarray(kinks) - m) / tau), 0.0, 12.0], -12, 12))

    def mean(h):
        return sum(quad(lambda z: h(z) * norm.pdf(z), a, b, epsabs=1e-15, epsrel=1e-13)[0] for a, b in pairwise(ends))

    middle = mean(lambda z: g(m + tau * z))
    np.testing.assert_allclose(link.mean(*at)[0, 0], middle, rtol=1e-10, atol=1e-13)
    slope = mean(lambda z: (g(m + tau * z) - middle) * z) / tau
    np.testing.assert_allclose(link.slope(*at)[0, 0], slope, rtol=1e-9, atol=1e-12)
    variance = mean(lambda z: (g(m + tau * z) - middle) ** 2)
    if variance > 1e-8:
        np.testing.assert_allclose(link.fidelity(*at)[0, 0], (slope * tau) ** 2 / variance, rtol=1e-7)
    moved = link.slope(at[0] + 1e-6, at[1] + 1e-6) - link.slope(*at)
    step = np.array([[1e-6]])
    assert np.abs(moved) <= link.off(link.slope(*at), at[1], step, step) * (1 + 1e-6)


def test_a_line_that_is_flat_keeps_its_place():
    """Where nothing moves, a table has the slope of its piece."""
    link = table_link(KNOTS, HEIGHTS)
    nothing = np.zeros((1, 1))
    np.testing.assert_allclose(link.mean(nothing + 0.5, nothing), np.interp(0.5, KNOTS, HEIGHTS))
    assert np.isfinite(link.off(nothing, nothing, nothing, nothing)).all()


# ---- targets


TARGETS = {
    "exp": (np.log, np.exp), "expm1": (np.log1p, np.expm1), "exp2": (np.log2, np.exp2), "square": (np.sqrt, np.square),
}  # fmt: skip
POSITIVE = np.exp(Y / 2)


@pytest.mark.parametrize("name", TARGETS)
def test_targets_of_trees_match_their_cells(name, by_cells, thresholds_of):
    func, inverse = TARGETS[name]
    inner = GradientBoostingRegressor(n_estimators=6, random_state=0)
    model = TransformedTargetRegressor(inner, func=func, inverse_func=inverse).fit(X, POSITIVE)
    cuts = [thresholds_of(model.regressor_, j) for j in range(2)]
    mean, slopes = by_cells(model.predict, cuts, ROW, SIGMA)
    e = explain(model, n_samples=2**14, method="jumps")
    assert_matches(e.values[0], slopes, standard_error=e.standard_error[0], sees=0.05)
    assert abs(e.smoothed[0] / mean - 1) < 4 * 0.5 / 2**7
    assert explain(model).method == "jumps"


@pytest.mark.parametrize("name", TARGETS)
def test_targets_of_lines_match_quadrature(name, by_quadrature):
    func, inverse = TARGETS[name]
    model = TransformedTargetRegressor(make_pipeline(StandardScaler(), Ridge()), func=func, inverse_func=inverse)
    model.fit(X, POSITIVE)
    factor = np.array([[0.5, 0.0], [0.2, 0.7]])
    e = explain(model, sigma=sl.Neighbourhood(covariance=factor @ factor.T))
    assert e.is_exact
    mean, slopes = by_quadrature(model.predict, ROW, factor)
    np.testing.assert_allclose(e.smoothed, mean, rtol=1e-10)
    np.testing.assert_allclose(e.values[0], slopes, rtol=1e-9)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
def test_scaled_targets_scale_the_closed_form(scaler):
    forest = RandomForestRegressor(4, max_depth=4, random_state=0)
    model = TransformedTargetRegressor(make_pipeline(StandardScaler(), forest), transformer=scaler).fit(X, POSITIVE)
    e, inner = explain(model), explain(model.regressor_)
    unit = model.transformer_.scale_[0] if isinstance(scaler, StandardScaler) else 1 / model.transformer_.scale_[0]
    assert e.is_exact
    np.testing.assert_allclose(e.values, inner.values * unit, rtol=1e-10)
    np.testing.assert_allclose(e.smoothed, model.transformer_.inverse_transform(inner.smoothed[:, None])[:, 0])


def test_the_mean_of_a_target_takes_no_digits_from_slopes():
    forest = RandomForestRegressor(4, max_depth=4, random_state=0)
    model = TransformedTargetRegressor(forest, transformer=StandardScaler()).fit(X, Y + 1e9)
    e, inner = explain(model), explain(model.regressor_)
    assert e.is_exact
    unit = model.transformer_.scale_[0]
    assert np.linalg.norm(SIGMA * (e.values - inner.values * unit)) <= e.radius[0] + unit * inner.radius[0]


def test_a_curve_within_the_target_is_bent_again(by_cells, thresholds_of):
    inner = HistGradientBoostingRegressor(max_iter=6, loss="poisson")
    model = TransformedTargetRegressor(inner, func=np.sqrt, inverse_func=np.square).fit(X, POSITIVE)
    _, slopes = by_cells(model.predict, [thresholds_of(model.regressor_, j) for j in range(2)], ROW, SIGMA)
    e = explain(model, n_samples=2**14, method="jumps")
    assert_matches(e.values[0], slopes, standard_error=e.standard_error[0], sees=0.05)


# ---- refusals, and changes


def refused(model, reason, **question):
    with pytest.raises(NoClosedForm, match=reason):
        explain(model, method="exact", **question)


def test_what_is_not_known_is_said():
    y = Y > 0
    vote = VotingClassifier([(name, CLASSIFIERS[name]()) for name in ("boosted", "lightgbm")], voting="soft")
    refused(CalibratedClassifierCV(vote, cv=2).fit(X, y), "its calibration bends a sum of several curves", target=1)
    lines = CalibratedClassifierCV(LogisticRegression(), cv=2).fit(X, KIND)
    refused(lines, "its calibration bends several lines together, which has no closed form", target=1)
    warm = CalibratedClassifierCV(CLASSIFIERS["boosted"](), method="temperature", cv=2).fit(X, y)
    refused(warm, "its calibration by 'temperature' is not known here", target=1)
    for made, reason in (
        ({"func": np.exp, "inverse_func": np.log}, "is 'log', which is none of exp, exp2, expm1 and square"),
        ({"func": np.log, "inverse_func": lambda a: np.exp(a)}, "is '<lambda>', which is none of exp"),
        ({"transformer": PowerTransformer()}, "its target's transformation, a PowerTransformer, is not known here"),
    ):
        model = TransformedTargetRegressor(GradientBoostingRegressor(n_estimators=3), **made).fit(X, POSITIVE)
        refused(model, reason)


def change_leaf(model):
    value = model.calibrated_classifiers_[0].estimator.estimators_[0, 0].tree_.value
    np.multiply(value, 3.0, out=value)


CHANGES = {
    "a parameter": lambda m: setattr(m.calibrated_classifiers_[0].calibrators[0], "a_", -3.0),
    "a leaf": change_leaf,
    "one classifier less": lambda m: m.calibrated_classifiers_.pop(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_calibrated_classifier_changed_in_place_is_read_anew(change):
    import copy

    model = CalibratedClassifierCV(CLASSIFIERS["boosted"](), cv=2).fit(X, Y > 0)
    question = {"target": 1, "n_samples": 256, "method": "jumps"}
    before = explain(model, **question)
    CHANGES[change](model)
    after = explain(model, **question)
    assert not np.allclose(before.values, after.values, rtol=1e-4)
    np.testing.assert_allclose(after.values, explain(copy.deepcopy(model), **question).values, rtol=1e-12)


def test_an_isotonic_table_changed_in_place_is_refused_where_the_model_does_not_follow():
    """Its own interpolation was made at the fit, and predicts as before."""
    model = CalibratedClassifierCV(CLASSIFIERS["boosted"](), method="isotonic", cv=2).fit(X, Y > 0)
    heights = model.calibrated_classifiers_[0].calibrators[0].y_thresholds_
    heights[:] = heights**2
    with pytest.raises(NoClosedForm, match="does not reproduce its outputs"):
        explain(model, target=1, method="jumps")


def test_a_calibrator_that_was_replaced_is_not_answered_for(monkeypatch):
    model = CalibratedClassifierCV(CLASSIFIERS["boosted"](), cv=2).fit(X, Y > 0)
    calibrator = model.calibrated_classifiers_[0].calibrators[0]
    original = calibrator.predict
    monkeypatch.setattr(calibrator, "predict", lambda u: np.clip(original(u), 0.2, 0.8))
    with pytest.raises(NoClosedForm, match="does not reproduce its outputs"):
        explain(model, target=1, method="jumps")

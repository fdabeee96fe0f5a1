"""Jumps of trees: error bars that hold, whatever the design, and rows that stop within their tolerance."""

import itertools

import numpy as np
import pytest
import xgboost
from scipy.special import expit, ndtr, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import GradientBoostingClassifier

import smoothlime as sl
from smoothlime.exact.trees.read.recognise import read_trees

ROWS = 2_000


def data(d, classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, d))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, -1] + 0.4 * rng.normal(size=len(X))
    return X, (signal > 0.3).astype(int) if classes == 2 else np.digitize(signal, [-0.3, 0.8])


@pytest.fixture(scope="module")
def models():
    """About ten small trees on three features, with two classes and with three, and on eight."""
    X, y = data(3, 2)
    one = xgboost.XGBClassifier(n_estimators=10, max_depth=3, learning_rate=0.5, n_jobs=1).fit(X, y)
    X, y = data(3, 3)
    three = GradientBoostingClassifier(n_estimators=4, max_depth=3, learning_rate=0.6, random_state=0).fit(X, y)
    X, y = data(8, 2)
    wide = xgboost.XGBClassifier(n_estimators=12, max_depth=4, learning_rate=0.5, n_jobs=1).fit(X, y)
    return {2: one, 3: three, 8: wide}


def by_cells(model, x, sigma, target):
    """The smoothed slopes of a probability (d,), from every cell that the thresholds of three features cut out."""
    trees = read_trees(model, "margin")
    middles, chances, slopes = [], [], []
    for j, at in enumerate(x):
        inner = np.unique(trees.threshold[trees.feature == j])
        z = (np.concatenate([[-np.inf], inner, [np.inf]]) - at) / sigma
        middles.append(np.concatenate([inner[:1] - 1, (inner[1:] + inner[:-1]) / 2, inner[-1:] + 1]))
        chances.append(np.diff(ndtr(z)))
        slopes.append(-np.diff(np.exp(-(z**2) / 2)) / np.sqrt(2 * np.pi) / sigma)
    margins = trees.predict(np.array(list(itertools.product(*middles))))
    p = softmax(margins, axis=1)[:, target] if trees.k > 1 else expit(margins[:, 0])
    cube = p.reshape([len(each) for each in middles])
    factors = [[slopes[i] if i == j else chances[i] for i in range(3)] for j in range(3)]
    return np.array([np.einsum("ijk,i,j,k->", cube, *each) for each in factors])


def holds(e, truth):
    lower, upper = e.interval()
    return ((lower <= truth) & (truth <= upper)).mean(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("design", sl.Jumps.designs)
@pytest.mark.parametrize(("classes", "sigma"), [(2, 0.3), (3, 1.0)])
def test_intervals_hold(models, design, classes, sigma):
    x = np.array([0.3, -0.4, 0.5])
    truth = by_cells(models[classes], x, sigma, 1)
    rows = 500 if design == "sobol" else ROWS  # to scramble a sequence for every row takes longer than all else
    asked = {"sigma": sigma, "target": 1, "method": "jumps", "design": design, "draws": "independent"}
    for n, least in ((1_024, 0.925), (256, 0.90)):
        e = sl.explain(models[classes], np.tile(x, (rows, 1)), n_samples=n, progress=False, **asked)
        chance = 3 * np.sqrt(0.05 * 0.95 / rows)
        covered = holds(e, truth)
        assert covered.min() >= least - (0 if rows == ROWS else chance)
        off = np.linalg.norm((e.values - truth) * sigma, axis=1)
        assert (off > e.radius).mean() < 0.05 + chance
        if design != "aligned":  # whose error bars are made of runs of one sequence, and cautious
            ratio = np.sqrt((e.standard_error**2).mean(axis=0) / ((e.values - truth) ** 2).mean(axis=0))
            assert (ratio > 0.85).all()
            assert (ratio < 1.2).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "is_full", "control"),
    [
        (0.3, False, "margin"),
        (1.0, False, "margin"),
        (0.3, False, "none"),
        (0.3, True, "margin"),
        (1.0, True, "margin"),
    ],
)
def test_intervals_hold_around_many_rows_and_where_steps_are_correlated(models, sigma, is_full, control):
    """Of slopes next to 0, too, which come of jumps that few draws meet, or none."""
    rows, repeats = np.random.default_rng(1).normal(size=(8, 8)), 100
    around = sl.Neighbourhood(sigma, covariance=0.6 * np.eye(8) + 0.4) if is_full else sl.Neighbourhood(sigma)
    asked = {"sigma": around, "target": 1, "method": sl.Jumps(control=control), "progress": False}
    known = sl.explain(models[8], rows, n_samples=2**15, seed=1, **asked)
    truth, unsure = known.values[:, None], 3 * known.standard_error[:, None]
    for n, least in ((1_024, 0.925), (256, 0.90)):
        e = sl.explain(models[8], np.repeat(rows, repeats, axis=0), n_samples=n, draws="independent", **asked)
        lower, upper = (each.reshape(8, repeats, 8) for each in e.interval())
        covered = ((lower - unsure <= truth) & (truth <= upper + unsure)).mean(axis=1)
        by_row = covered.mean(axis=1)
        assert covered.min() >= 0.80  # of each slope by itself, in so few repeats
        assert by_row.mean() >= least
        assert by_row.min() >= 0.90 - 3 * np.sqrt(0.05 * 0.95 / repeats / 8)


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "sigma"), [(2, 0.3), (2, 1.0), (3, 1.0)])
def test_rows_stop_within_their_tolerance(models, classes, sigma):
    rows = np.random.default_rng(3).normal(size=(20, 3))
    truth = np.array([by_cells(models[classes], x, sigma, 1) for x in rows]) * sigma
    e = sl.explain(models[classes], np.repeat(rows, 50, axis=0), sigma=sigma, target=1, draws="independent", rtol=0.02)
    assert e.method == "jumps"
    assert e.converged.mean() > 0.99
    off = np.linalg.norm(e.standardised - np.repeat(truth, 50, axis=0), axis=1)
    allowed = np.maximum(0.02 * np.linalg.norm(np.repeat(truth, 50, axis=0), axis=1), 0.005)  # of probabilities
    assert (off > allowed).mean() < 0.05
    assert (off > np.maximum(e.radius, allowed)).mean() < 0.01


def test_they_are_unbiased_for_every_curve_and_without_a_control(models):
    x, sigma = np.array([0.3, -0.4, 0.5]), 0.7
    for classes, control in itertools.product((2, 3), sl.estimators.jumps.CONTROLS):
        truth = by_cells(models[classes], x, sigma, 1)
        asked = {"sigma": sigma, "target": 1, "method": sl.Jumps(control=control), "design": "iid", "n_samples": 128}
        e = sl.explain(models[classes], np.tile(x, (ROWS, 1)), draws="independent", progress=False, **asked)
        error = e.values.std(axis=0) / np.sqrt(ROWS)
        assert (np.abs(e.values.mean(axis=0) - truth) < 4.5 * error).all()


@pytest.mark.parametrize("design", ["sobol", "iid"])
def test_intervals_hold_where_isotonic_tables_jump(design):
    """A table is flat where the margin moves, and leaps where it hardly does: it cannot tell what is not met."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X))
    boosted = GradientBoostingClassifier(n_estimators=10, random_state=0)
    model = CalibratedClassifierCV(boosted, method="isotonic", cv=2).fit(X, signal > 0.2)
    asked = {"sigma": 0.5, "target": 1, "progress": False}
    known = sl.explain(model, X[:2], method=sl.Jumps(control="none"), n_samples=2**16, **asked)
    truth, unsure = known.values[:, None], 3 * known.standard_error[:, None]
    for n in (256, 1_024):
        e = sl.explain(model, np.repeat(X[:2], 200, axis=0), n_samples=n, draws="independent", design=design, **asked)
        assert e.method == "jumps"
        lower, upper = (each.reshape(2, 200, 4) for each in e.interval())
        covered = ((lower - unsure <= truth) & (truth <= upper + unsure)).mean(axis=1)
        assert covered.min() >= 0.90

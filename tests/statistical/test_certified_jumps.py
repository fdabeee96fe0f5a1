"""Certificates for probabilities of trees hold, where jumps are rare, steep or many, at whatever look a run stops."""

import itertools

import numpy as np
import pytest
import xgboost
from scipy.special import expit, ndtr, softmax
from sklearn.ensemble import GradientBoostingClassifier

import smoothlime as sl
from smoothlime.errors import InvalidArgument, ModelError, NoClosedForm, TooFewDraws
from smoothlime.estimators.certified_jumps import CertifiedJumps
from smoothlime.exact.bent_trees import BentTrees, find_margin_trees
from smoothlime.exact.curves import Curve
from smoothlime.exact.trees.read.recognise import read_trees
from smoothlime.sampling.tree_bounds import bound_jumps

ROWS = 2_000


def steps(inside, steepness=20.0):
    """One deep tree that says whether points are inside, with probabilities next to 0 and 1."""
    X = np.random.default_rng(0).normal(size=(6_000, 3)) * 1.5
    asked = {"n_estimators": 1, "max_depth": 6, "learning_rate": steepness, "n_jobs": 1, "tree_method": "exact"}
    return xgboost.XGBClassifier(base_score=0.5, reg_lambda=0, min_child_weight=0, **asked).fit(X, inside(X))


def boosted(classes):
    X = np.random.default_rng(0).normal(size=(2_000, 3))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, -1] + 0.4 * np.random.default_rng(1).normal(size=len(X))
    if classes == 3:
        model = GradientBoostingClassifier(n_estimators=4, max_depth=3, learning_rate=0.6, random_state=0)
        return model.fit(X, np.digitize(signal, [-0.3, 0.8]))
    return xgboost.XGBClassifier(n_estimators=10, max_depth=3, learning_rate=0.5, n_jobs=1).fit(X, signal > 0.3)


MODELS = {
    "boosted": lambda: boosted(2),
    "three classes": lambda: boosted(3),
    "one step": lambda: steps(lambda X: X[:, 0] > 0.1),
    "parity": lambda: steps(lambda X: (X > 0.1).sum(axis=1) % 2 == 1),
    "rare corner": lambda: steps(lambda X: (X > [1.6, 1.4, 0.3]).all(axis=1)),
    "rare and far": lambda: steps(lambda X: (X[:, 0] > 2.4) & (X[:, 1] < 0)),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: make() for name, make in MODELS.items()}


def by_cells(model, x, sigma, weights):
    """The smoothed slopes of weighed probabilities (d,), from every cell that the thresholds of three features cut."""
    trees = read_trees(model, "margin")
    middles, chances, slopes = [], [], []
    for j, at in enumerate(x):
        inner = np.unique(trees.threshold[trees.feature == j])
        z = (np.concatenate([[-np.inf], inner, [np.inf]]) - at) / sigma
        ends = np.concatenate([[at - 1], inner, [at + 1]]) if not len(inner) else inner
        middles.append(
            np.concatenate([ends[:1] - 1, (ends[1:] + ends[:-1]) / 2, ends[-1:] + 1]) if len(inner) else [at]
        )
        chances.append(np.diff(ndtr(z)))
        slopes.append(-np.diff(np.exp(-(z**2) / 2)) / np.sqrt(2 * np.pi) / sigma)
    margins = trees.predict(np.array(list(itertools.product(*middles))))
    p = softmax(margins, axis=1) if trees.k > 1 else np.concatenate([expit(-margins), expit(margins)], axis=1)
    cube = (p @ weights).reshape([len(each) for each in middles])
    factors = [[slopes[i] if i == j else chances[i] for i in range(3)] for j in range(3)]
    return np.array([np.einsum("ijk,i,j,k->", cube, *each) for each in factors])


def errors(e, truth):
    return np.linalg.norm((e.values - truth) * e.std, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "control"), [(0.3, "margin"), (1.0, "margin"), (1.0, "none")])
@pytest.mark.parametrize("name", MODELS)
def test_radii_hold(fitted, name, sigma, control):
    model, x = fitted[name], np.array([0.1, -0.4, 0.5])
    target, weights = ({"2": 1, "0": -1}, [-1, 0, 1]) if name == "three classes" else (1, [0, 1])
    truth = by_cells(model, x, sigma, np.array(weights))
    asked = {"sigma": sigma, "target": target, "method": sl.Jumps(control=control), "guarantee": "certified"}
    for n in (160, 800):
        e = sl.explain(model, np.tile(x, (ROWS, 1)), n_samples=n, draws="independent", progress=False, **asked)
        assert (e.method, e.design, e.provenance.guarantee) == ("jumps", "iid", "certified")
        off = errors(e, truth)
        assert (off > e.radius).mean() < 0.005  # of 0.05: these are no worst cases of the bound
        if n == 800 and name in ("boosted", "three classes"):
            assert np.median(e.radius) < 0.05  # and it says something


@pytest.mark.slow
def test_radii_hold_where_steps_are_correlated():
    X = np.random.default_rng(0).normal(size=(2_000, 2))
    model = xgboost.XGBClassifier(n_estimators=10, max_depth=3, learning_rate=0.5, n_jobs=1)
    model.fit(X, np.sin(2 * X[:, 0]) + X.prod(axis=1) > 0.3)
    x = np.array([0.3, -0.4])
    for covariance in ([[0.5, 0.4], [0.4, 0.9]], [[1.0, 0.999], [0.999, 1.0]]):
        truth = np.array([by_faces(model, x, np.array(covariance), j) for j in range(2)])
        around = sl.Neighbourhood(1.0, covariance=covariance)
        asked = {"sigma": around, "target": 1, "guarantee": "certified", "draws": "independent", "progress": False}
        e = sl.explain(model, np.tile(x, (ROWS, 1)), n_samples=1_024, **asked)
        assert e.method == "jumps"
        off = errors(e, truth)
        assert (off > e.radius).mean() < 0.005
        assert (e.radius < 10 * np.quantile(off, 0.95)).all()


def by_faces(model, x, covariance, j):
    """Jumps across each face of a cell along feature j, by the density of j and the chance of the rest given that."""
    trees = read_trees(model, "margin")
    own, others = (np.unique(trees.threshold[trees.feature == i]) for i in (j, 1 - j))
    ends = np.concatenate([[-np.inf], others, [np.inf]])
    middles = np.concatenate([others[:1] - 1, (others[1:] + others[:-1]) / 2, others[-1:] + 1])
    std, pull = np.sqrt(covariance[j, j]), covariance[0, 1] / covariance[j, j]
    left = np.sqrt(covariance[1 - j, 1 - j] - covariance[0, 1] * pull)
    nearest = np.diff(own).min() / 2
    total = 0.0
    for t in own:
        points = np.empty((2, len(middles), 2))
        points[:, :, 1 - j], points[0, :, j], points[1, :, j] = middles, t - nearest, t + nearest
        below, above = (expit(trees.predict(side)[:, 0]) for side in points)
        chance = np.diff(ndtr((ends - x[1 - j] - pull * (t - x[j])) / left))
        total += np.exp(-(((t - x[j]) / std) ** 2) / 2) / np.sqrt(2 * np.pi) / std * chance @ (above - below)
    return total


@pytest.mark.slow
def test_they_hold_at_whatever_look_a_row_stops(fitted):
    rows, repeats = np.random.default_rng(3).normal(size=(20, 3)), 50
    for name in ("boosted", "rare corner"):
        truth = np.array([by_cells(fitted[name], x, 1.0, np.array([0, 1])) for x in rows])
        e = sl.explain(
            fitted[name], np.repeat(rows, repeats, axis=0), sigma=1.0, target=1, guarantee="certified", rtol=0.1,
            atol=0.02, draws="independent", progress=False,
        )  # fmt: skip
        assert e.converged.all()
        assert e.n_samples.max() <= 16_384
        off = errors(e, np.repeat(truth, repeats, axis=0))
        assert (off > e.radius).mean() < 0.005
        size = np.linalg.norm(e.standardised, axis=1)
        assert (e.radius <= np.maximum(0.02, 0.1 * size)).all()


def test_intervals_and_all_that_goes_with_slopes_are_those_of_what_is_reported(fitted):
    x = np.array([0.3, -0.4, 0.5])
    truth = by_cells(fitted["boosted"], x, 0.7, np.array([0, 1]))
    asked = {"sigma": 0.7, "target": 1, "guarantee": "certified", "draws": "independent", "progress": False}
    e = sl.explain(fitted["boosted"], np.tile(x, (ROWS, 1)), n_samples=512, **asked)
    lower, upper = e.interval()
    covered = ((lower <= truth) & (truth <= upper)).mean(axis=0)
    assert (covered > 0.925).all()
    assert (covered < 0.98).all()
    error = e.values.std(axis=0) / np.sqrt(ROWS)
    assert (np.abs(e.values.mean(axis=0) - truth) < 4.5 * error).all()
    outputs = fitted["boosted"].predict_proba(e.perturbations(7))[:, 1]
    np.testing.assert_allclose(e.smoothed[7], outputs.mean(), rtol=1e-6)


@pytest.mark.parametrize("control", ["none", "margin"])
def test_the_radius_is_the_bound_of_the_page(fitted, control):
    """Done again from what the trees say at the draws, in the words of docs/theory/bounds.md."""
    model, x, sigma = fitted["boosted"], np.array([[0.3, -0.4, 0.5]]), 0.7
    asked = {"sigma": sigma, "target": 1, "guarantee": "certified", "n_samples": 2_000}
    e = sl.explain(model, x, method=sl.Jumps(control=control), **asked)
    trees, _ = find_margin_trees(sl.as_model(model), factor := e.neighbourhood.factor(3))
    bent, one = BentTrees(trees, Curve("logistic", mirrors=True)), np.array([[[0.0, 1.0]]])
    controls = bent.curve.gradient(trees.values(x), one)
    known = bent.margin_slopes(x, factor, controls)
    found = bent.jumps(x, (e.perturbations(0) - x)[None], factor, one, controls)
    y, h = found.slopes[0, 0] * sigma, (found.of_margin[0, 0] - known[0]) * sigma
    largest = bound_jumps(bent, x, factor, one, controls, known, 1e-9)
    b, b_h = largest.slopes[0, 0] * sigma, largest.controls[0, 0] * sigma
    assert (b <= 0.39895).all()

    options, n, level = [], 2_000 - 64, np.log(2 / 0.05)
    best = ((y - y[:64].mean(axis=0)) * h)[:64].sum() / ((h - h[:64].mean(axis=0))[:64] ** 2).sum()
    for beta in best * np.array([1, 0.75, 0.5, 0.25, 0]) if control == "margin" else [0.0]:
        m = (y - beta * h)[:64].mean(axis=0)
        V, c = (y - beta * h)[:64].var(axis=0).sum(), np.linalg.norm(b + abs(beta) * b_h + abs(m))
        options.append((np.sqrt(2 * V * np.log(40) / n) + c * np.log(40) / n, beta, m, V, c))
    _, beta, m, V, c = min(options, key=lambda each: each[0])
    rest = (y - beta * h)[64:]
    lam = min(0.9, np.sqrt(2 * level * c**2 / (n * V)))
    psi = np.log(np.exp(lam) - 2 * lam) - np.log(1 - lam)
    radius = (c * level + psi * ((rest - m) ** 2).sum() / c) / (lam * n)

    np.testing.assert_allclose(e.standardised[0], rest.mean(axis=0), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(e.radius[0], radius + largest.off[0, 0] + beta * largest.off_of_control[0, 0], rtol=1e-7)
    assert (beta > 0) == (control == "margin")


def test_auto_takes_them_where_trees_are_known(fitted):
    x, asked = np.array([[0.3, -0.4, 0.5]]), {"sigma": 0.5, "guarantee": "certified", "rtol": 0.1, "atol": 0.01}
    e = sl.explain(fitted["boosted"], x, target=1, **asked)
    assert e.method == "jumps"
    assert e.provenance.method == CertifiedJumps(0.0, 1.0)
    assert e.converged.all()
    by_range = sl.explain(fitted["boosted"], x, target=1, method="clime", **asked)
    assert (e.n_samples < by_range.n_samples / 4).all()
    assert np.linalg.norm((e.values - by_range.values) * e.std) < e.radius + by_range.radius
    assert "certified at 0.95 confidence for outputs between 0 and 1, and trees that are the model's own" in str(e)
    each = sl.explain_outputs(fitted["three classes"], x, **asked)
    assert {one.method for one in each.values()} == {"jumps"}
    assert sl.explain(fitted["boosted"], x, target=1, design="iid", **asked).method == "jumps"


def test_auto_asks_models_that_round_too_much_for_their_trees_to_tell():
    """Leaves of 10¹⁵, added up in float32: what is read is not what the model says, though it is at most points."""
    X = np.random.default_rng(0).normal(size=(1_500, 3))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * np.random.default_rng(1).normal(size=1_500) > 0
    asked = {"n_estimators": 40, "max_depth": 4, "learning_rate": 20.0, "n_jobs": 1}
    model = xgboost.XGBClassifier(reg_lambda=0, min_child_weight=0, **asked).fit(X, y)
    asked = {"sigma": 0.5, "target": 1, "guarantee": "certified"}
    e = sl.explain(model, X[:1], rtol=0.1, atol=0.02, **asked)
    assert e.method == "clime"
    assert e.converged.all()
    assert sl.explain(model, X[:1], method="jumps", n_samples=256, **asked).radius[0] > 1


def test_files_hold_them(fitted, tmp_path, assert_same):
    x = np.random.default_rng(5).normal(size=(3, 3))
    e = sl.explain(fitted["three classes"], x, sigma=0.5, target="predicted", guarantee="certified", n_samples=256)
    for suffix in ("json", "parquet"):
        e.save(tmp_path / f"e.{suffix}")
        assert_same(sl.load(tmp_path / f"e.{suffix}"), e)
    assert_same(e[1], e[1:2])


def test_a_row_around_which_nothing_moves_is_certified_at_once():
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, X[:, 0] > 0)
    e = sl.explain(model, [[60.0, 60.0]], sigma=0.5, target=1, guarantee="certified", rtol=0, atol=0.001)
    np.testing.assert_array_equal(e.values, 0)
    assert e.converged[0]
    assert e.radius[0] < 1e-5


def test_what_has_no_certificate_is_refused(fitted):
    model, x = fitted["boosted"], np.array([[0.3, -0.4, 0.5]])
    asked = {"sigma": 0.5, "guarantee": "certified"}
    with pytest.raises(InvalidArgument, match="needs iid draws"):
        sl.explain(model, x, target=1, method="jumps", design="sobol", **asked)
    with pytest.raises(InvalidArgument, match="needs output_range"):
        sl.explain(model, x, method="jumps", output="margin", **asked)
    with pytest.raises(TooFewDraws, match="at least 128 are needed"):
        sl.explain(model, x, target=1, method="jumps", n_samples=100, **asked)
    with pytest.raises(ModelError, match="the promise would be void"):
        sl.explain(model, x, target=1, method="jumps", output_range=(0, 0.01), n_samples=256, **asked)
    counts = np.random.default_rng(0).poisson(2.0, size=500)
    X = np.random.default_rng(1).normal(size=(500, 3))
    poisson = xgboost.XGBRegressor(n_estimators=5, objective="count:poisson", n_jobs=1).fit(X, counts)
    with pytest.raises(NoClosedForm, match="no bound for jumps of trees behind the curve 'exponential'"):
        sl.explain(poisson, x, method="jumps", output_range=(0, 20), n_samples=256, **asked)
    assert sl.explain(poisson, x, output_range=(0, 20), n_samples=512, **asked).method == "clime"
    with pytest.raises(InvalidArgument, match="their bound goes by the jumps that draws show"):
        sl.plan("jumps", eps=0.05, d=3, output_range=(0, 1))

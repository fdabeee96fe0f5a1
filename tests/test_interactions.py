"""Second slopes: closed forms on every route, coverage, shares, exact models, scales, gaps, bad input."""

import io
import itertools
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy.stats import binom
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

import smoothlime as sl
from smoothlime.errors import InvalidArgument, JumpsUnseen, NoClosedForm, NoGradients, TooFewDraws, WrongType
from smoothlime.exact.trees.format import join_trees
from smoothlime.exact.trees.second_slopes import second_slopes
from smoothlime.exact.trees.smoothing import smooth
from smoothlime.testing import (
    Absolute,
    Box,
    Cubic,
    KnownFunction,
    Linear,
    Probit,
    Quadratic,
    RadialBasis,
    Relu,
    Sine,
    SineProduct,
    Step,
    covariance,
)  # fmt: skip

RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(300, 3))
LABELS = DATA[:, 0] * DATA[:, 1] + np.abs(DATA[:, 2])
V, X = [1.0, -0.5, 0.3], np.array([0.7, -0.2, 0.4])
A = np.array([[1.0, 0.5, 0.0], [0.5, -1.0, 0.2], [0.0, 0.2, 0.3]])
DIAGONAL = sl.Neighbourhood([0.3, 0.5, 0.8])
FULL = sl.Neighbourhood(covariance=[[0.5, 0.2, 0.0], [0.2, 0.4, -0.1], [0.0, -0.1, 0.3]])
SMOOTH = [Probit(V), Sine(V, 0.3), Cubic(V), RadialBasis([0.2, 0.0, 0.1], 0.9), SineProduct([1.0, 0, 0.5], [0, 2.0, 0])]
KINKED = [Relu(V), Absolute(V, 0.1)]


def named(model):
    return getattr(getattr(model, "profile", None), "value", model).__class__.__name__


def values_of(model):
    """The same model without its gradients."""
    return lambda a: model.values(a)


def within(found, wanted, sigmas=6.0):
    assert (np.abs(found.values - wanted) <= sigmas * found.standard_error + 1e-10 * np.abs(wanted).max()).all()


def differences(slopes, x, step=1e-5):
    """Central differences of slopes (r, d) at a row."""
    ends = [slopes(np.array([x - step * e, x + step * e])) for e in np.eye(len(x))]
    return np.stack([(after - before) / (2 * step) for before, after in ends])


# ---- the closed forms themselves


@pytest.mark.parametrize("around", [DIAGONAL, FULL], ids=["diagonal", "full"])
@pytest.mark.parametrize(
    "model",
    [*SMOOTH, *KINKED, Linear(V), Step(V, 0.2), Quadratic(A, V), Box([-0.5, -np.inf, 0.0], [1.0, 0.3, np.inf])],
    ids=named,
)
def test_closed_forms_are_what_their_slopes_change_by(model, around):
    if isinstance(model, Box) and around is FULL:
        with pytest.raises(InvalidArgument, match="perturbed independently"):
            model.second_slopes(X, around)
        return
    found = model.second_slopes(X, around)[0]
    np.testing.assert_allclose(found, differences(lambda rows: model.slopes(rows, around), X), atol=2e-9)
    step = 1e-5
    mean = [np.diff(model.smoothed([X - step * e, X + step * e], around))[0] / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(mean, model.slopes(X, around)[0], atol=1e-9)


# ---- from draws


@pytest.mark.parametrize("around", [DIAGONAL, FULL], ids=["diagonal", "full"])
@pytest.mark.parametrize("drawn_as", ["iid", "antithetic", "orthogonal", "sobol"])
@pytest.mark.parametrize("way", ["smoothgrad", "clime"])
@pytest.mark.parametrize("model", [*SMOOTH, *KINKED], ids=named)
def test_draws_give_the_closed_form(model, way, drawn_as, around):
    found = sl.interactions(model, X, sigma=around, method=way, design=drawn_as, n_samples=2_048)
    wanted = model.second_slopes(X, around)[0]
    within(found, wanted)
    assert (found.standard_error < 0.25 * np.abs(wanted).max()).all()
    assert np.array_equal(found.values, found.values.swapaxes(1, 2))
    w = model.slopes(X, around)[0]
    assert (np.abs(found.explanation.values - w) <= 6 * found.explanation.standard_error + 1e-10).all()


@pytest.mark.parametrize("around", [DIAGONAL, FULL], ids=["diagonal", "full"])
@pytest.mark.parametrize("method", ["smoothgrad", "clime"])
def test_polynomials_of_degree_2_are_exact_and_share_out_their_variance(method, around):
    b = np.array([0.1, 0.2, 0.3])
    found = sl.interactions(Quadratic(A, b), X, sigma=around, method=method, n_samples=512, design="orthogonal")
    np.testing.assert_allclose(found.values[0], A, atol=1e-12)
    cov = covariance(around, 3)
    w = A @ X + b
    linear, quadratic = w @ cov @ w, np.trace(A @ cov @ A @ cov) / 2
    variance = linear + quadratic
    np.testing.assert_allclose(found.variance, variance, rtol=0.02)
    assert sum(share[0] for share in found.shares.values()) == pytest.approx(1.0)
    assert found.shares["linear"][0] == pytest.approx(linear / variance, abs=0.02)
    assert found.shares["beyond"][0] == pytest.approx(0.0, abs=0.02)
    if around is FULL:
        assert list(found.shares) == ["linear", "quadratic", "beyond"]
        assert np.isnan(found.top(1)[0].share)
        return
    bends = (np.diag(A) * np.diag(cov)) @ (np.diag(A) * np.diag(cov)) / 2
    assert found.shares["bends"][0] == pytest.approx(bends / variance, abs=0.01)
    assert found.shares["interactions"][0] == pytest.approx((quadratic - bends) / variance, abs=0.01)
    assert sum(pair.share for pair in found.top(3)) == pytest.approx(found.shares["interactions"][0])


def test_steps_and_boxes_from_predictions():
    for model in (Step(V, 0.2), Box([-0.2, -0.9, -0.5], [1.4, 0.5, 1.0])):
        found = sl.interactions(values_of(model), X, sigma=DIAGONAL, n_samples=8_192, design="orthogonal")
        wanted = model.second_slopes(X, DIAGONAL)[0]
        within(found, wanted)
        assert (found.standard_error < 0.2 * np.abs(wanted).max()).all()


def test_draws_of_a_network_are_those_of_its_slopes_and_nothing_more_is_asked():
    model, asked = Probit(V), []

    class Counted(Probit(V).__class__):
        def values_and_gradients(self, points, weights):
            asked.append(len(points))
            return super().values_and_gradients(points, weights)

    counted = Counted(model.profile, V)
    rows = np.stack([X, X + 0.1])
    options = {"sigma": DIAGONAL, "n_samples": 1_024, "design": "orthogonal"}
    e = sl.explain(counted, rows, method="smoothgrad", **options)
    before = sum(asked)
    found = sl.interactions(counted, rows, method="smoothgrad", **options)
    assert sum(asked) == 2 * before
    np.testing.assert_allclose(found.explanation.values, e.values, rtol=1e-12)
    np.testing.assert_allclose(found.explanation.standard_error, e.standard_error, rtol=1e-9)
    assert found.explanation.method == "smoothgrad"
    np.testing.assert_array_equal(found.explanation.perturbations(1), e.perturbations(1))


@pytest.mark.parametrize("method", ["smoothgrad", "clime"])
def test_by_hand_from_the_points_that_were_asked(method):
    """The mean of u_i u_j f, u = Σ⁻¹(a − x), and the covariance of u and gradients, from the very draws."""
    model, n = Sine(V, 0.3), 65_536
    found = sl.interactions(model, X, sigma=DIAGONAL, method=method, design="sobol", n_samples=n)
    std = np.array([0.3, 0.5, 0.8])
    z = (found.explanation.perturbations(0) - X) / std
    if method == "smoothgrad":
        gradients = model.values_and_gradients(X + std * z, np.ones((n, 1)))[1]
        by_hand = (z / std).T @ (gradients - gradients.mean(axis=0)) / n
        weights = np.ones(n)
    else:
        share = found.explanation.provenance.longer
        weights = 1 / (1 - share + share * (z**2).sum(axis=1) ** 2 / 15)
        assert weights.mean() == pytest.approx(1.0, abs=1e-3)
        f = model.values(X + std * z)[:, 0]
        centred = weights * (f - weights @ f / n)
        by_hand = np.einsum("n,ni,nj->ij", centred, z / std, z / std) / n
    np.testing.assert_allclose(found.values[0], (by_hand + by_hand.T) / 2, atol=0.01)
    np.testing.assert_allclose(found.values[0], model.second_slopes(X, DIAGONAL)[0], atol=0.002)


@pytest.mark.parametrize("method", ["smoothgrad", "clime"])
@pytest.mark.parametrize(
    ("model", "around", "least", "most"),
    [(Probit(V), DIAGONAL, 0.925, 0.975), (Sine(V, 0.3), FULL, 0.925, 0.975), (Relu(V), DIAGONAL, 0.925, 1.0),
     (Absolute(V, 0.1), FULL, 0.925, 1.0)],
    ids=["smooth", "smooth-full", "kinked", "kinked-full"],
)  # fmt: skip
def test_intervals_hold(model, around, least, most, method):
    repeats = 2_000
    rows = np.tile(X, (repeats, 1))
    found = sl.interactions(
        model, rows, sigma=around, method=method, n_samples=1_024, draws="independent", design="antithetic"
    )
    wanted = model.second_slopes(X, around)[0]
    lower, upper = found.interval()
    low, high = binom.ppf([1e-4, 1 - 1e-4], repeats, [least, most])
    upper_half = np.triu_indices(3)
    hits = ((lower <= wanted) & (wanted <= upper)).sum(axis=0)[upper_half]
    assert ((low <= hits) & (hits <= high)).all(), hits / repeats
    spread = found.values.std(axis=0)[upper_half]
    bias = np.abs(found.values.mean(axis=0) - wanted)[upper_half] / (spread / np.sqrt(repeats))
    assert (bias < 5).all()
    ratio = np.sqrt((found.standard_error**2).mean(axis=0))[upper_half] / spread
    assert (np.abs(ratio - 1) < 0.15).all(), ratio


@pytest.mark.parametrize("method", ["smoothgrad", "clime"])
def test_intervals_of_nets_hold(method):
    repeats = 500
    for model in (Probit(V), Absolute(V, 0.1)):
        found = sl.interactions(
            model, np.tile(X, (repeats, 1)), sigma=DIAGONAL, method=method, n_samples=1_024, draws="independent",
            design="sobol",
        )  # fmt: skip
        lower, upper = found.interval()
        wanted = model.second_slopes(X, DIAGONAL)[0]
        hits = ((lower <= wanted) & (wanted <= upper)).sum(axis=0)
        assert (hits >= binom.ppf(1e-4, repeats, 0.925)).all(), hits / repeats


def test_shares_hold_over_many_runs():
    model = Sine(V, 0.3)
    cov = covariance(DIAGONAL, 3)
    h = np.sqrt(np.diag(cov)) * model.second_slopes(X, DIAGONAL)[0] * np.sqrt(np.diag(cov))[:, None]
    tau2, middle = np.array(V) @ cov @ V, X @ V + 0.3
    variance = (1 - np.exp(-2 * tau2) * np.cos(2 * middle)) / 2 - (np.sin(middle) * np.exp(-tau2 / 2)) ** 2
    w = model.slopes(X, DIAGONAL)[0]
    wanted = {
        "linear": w @ cov @ w / variance,
        "bends": (np.diag(h) ** 2).sum() / 2 / variance,
        "interactions": (np.triu(h, 1) ** 2).sum() / variance,
    }
    for method in ("smoothgrad", "clime"):
        options = {"method": method, "draws": "independent", "n_samples": 256, "design": "iid"}
        found = sl.interactions(model, np.tile(X, (400, 1)), sigma=DIAGONAL, **options)
        for name, share in wanted.items():
            got = found.shares[name]
            assert abs(got.mean() - share) < max(5 * got.std() / 20, 0.01), (method, name, got.mean(), share)
        assert abs(found.shares["beyond"].mean() - (1 - sum(wanted.values()))) < 0.02


def test_it_is_linear_in_the_model_and_ignores_what_the_model_ignores():
    one, other = Sine([1.0, -0.5, 0.0]), Cubic([0.2, 0.5, 0.0])
    options = {"sigma": DIAGONAL, "n_samples": 1_024, "method": "clime"}
    both = sl.interactions(lambda a: 2 * one.values(a) - other.values(a), X, **options)
    parts = [sl.interactions(each, X, **options) for each in (one, other)]
    np.testing.assert_allclose(both.values, 2 * parts[0].values - parts[1].values, atol=1e-10)
    within(parts[0], one.second_slopes(X, DIAGONAL)[0])
    by_gradients = sl.interactions(one, X, sigma=DIAGONAL, n_samples=1_024)
    within(by_gradients, one.second_slopes(X, DIAGONAL)[0])
    assert by_gradients.values[0, 2, 2] == 0


@pytest.mark.parametrize("method", ["smoothgrad", "clime"])
def test_rows_in_small_panels_and_batches_say_the_same(method, monkeypatch):
    rows = RNG.normal(size=(7, 3))
    options = {"sigma": DIAGONAL, "method": method, "n_samples": 1_024}
    one = sl.interactions(Probit(V), rows, **options)
    monkeypatch.setattr("smoothlime.sampling.loop.STATE_BYTES", 20_000)
    other = sl.interactions(Probit(V), rows, batch_size=512, **options)
    np.testing.assert_allclose(other.values, one.values, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(other.standard_error, one.standard_error, rtol=1e-6, atol=1e-12)
    for row in (0, 3):
        alone = sl.interactions(Probit(V), rows[row], **options)
        np.testing.assert_allclose(alone.values[0], one.values[row], rtol=1e-8, atol=1e-12)


def test_drawing_stops_by_the_slopes_and_says_where_it_did_not():
    found = sl.interactions(Probit(V), np.stack([X, 3 * X]), sigma=DIAGONAL)
    assert found.converged.all()
    assert (found.n_samples >= 1_024).all()
    with pytest.warns(sl.errors.NotConverged, match="row 0"):
        late = sl.interactions(values_of(Step(V)), X, sigma=DIAGONAL, rtol=0.001, atol=0.0, max_samples=2_048)
    assert not late.converged.any()


# ---- pairs, and many features


def test_pairs_are_fitted_alone():
    d = 40
    v = np.zeros((2, d))
    v[0, 3], v[1, 17] = 1.0, 1.5
    model, x = SineProduct(*v), np.linspace(-0.5, 0.5, d)
    with pytest.raises(InvalidArgument, match=r"pairs of 40 features.*Name the pairs") as said:
        sl.interactions(values_of(model), x, sigma=0.5)
    assert said.value.argument == "pairs"
    wanted = model.second_slopes(x, sl.Neighbourhood(0.5))[0]
    for method in ("smoothgrad", "clime"):
        found = sl.interactions(
            model, x, sigma=0.5, method=method, pairs=[("x3", 17), (3, 3), (-1, 0)], n_samples=2_048
        )
        assert found.pairs.tolist() == [[0, 39], [3, 3], [3, 17]]
        known = np.isfinite(found.values[0])
        assert known.sum() == 5
        assert (np.abs(found.values[0] - wanted) <= 6 * found.standard_error[0])[known].all()
        assert found.top(1)[0].features == ("x3", "x17")
        assert found.standard_error[0, 3, 17] < 0.2 * abs(wanted[3, 17])
    every = sl.interactions(model, x, sigma=0.5, method="smoothgrad", n_samples=1_024)  # gradients know no such limit
    within(every, wanted)


def test_pairs_in_a_full_neighbourhood():
    model = Sine(V, 0.3)
    wanted = model.second_slopes(X, FULL)[0]
    for method in ("smoothgrad", "clime"):
        found = sl.interactions(model, X, sigma=FULL, method=method, pairs=[(0, 2)], n_samples=4_096)
        assert abs(found.values[0, 0, 2] - wanted[0, 2]) <= 6 * found.standard_error[0, 0, 2]
        assert np.isfinite(found.values[0]).sum() == 2
    wide = sl.Neighbourhood(covariance=np.eye(31) + 0.1)
    with pytest.raises(InvalidArgument, match="without covariance"):
        sl.interactions(values_of(Linear(np.ones(31))), np.zeros(31), sigma=wide, pairs=[(0, 1)])


# ---- closed forms of models


def boosted():
    return GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=0).fit(DATA, LABELS > 0.5)


@pytest.mark.parametrize(
    ("model", "output", "target"),
    [
        (RandomForestRegressor(8, max_depth=5, random_state=0), "probability", None),
        (RandomForestClassifier(8, max_depth=5, random_state=0), "probability", 1),
        (GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=0), "margin", None),
        (HistGradientBoostingRegressor(max_iter=8, random_state=0), "probability", None),
    ],
    ids=["forest", "forest of classes", "boosted", "histograms"],
)
def test_trees_are_exact(model, output, target):
    labels = LABELS > 0.5 if hasattr(model, "predict_proba") else LABELS
    model = model.fit(DATA, labels)
    options = {"sigma": DIAGONAL, "output": output, "target": target}
    found = sl.interactions(model, DATA[:4], **options)
    assert found.is_exact
    assert not found.standard_error.any()
    for row in range(2):
        by_differences = differences(lambda rows: sl.explain(model, rows, method="exact", **options).values, DATA[row])
        np.testing.assert_allclose(found.values[row], by_differences, atol=1e-8 * max(1, np.abs(by_differences).max()))
    assert np.array_equal(found.values, found.values.swapaxes(1, 2))
    total = sum(found.shares.values())
    np.testing.assert_allclose(total, 1, atol=1e-9)


def test_trees_are_sums_over_leaves():
    """Every leaf by itself, as a box."""
    forest = RandomForestRegressor(3, max_depth=4, random_state=1).fit(DATA, LABELS)
    wanted = np.zeros((2, 3, 3))
    for tree in forest.estimators_:
        nodes = tree.tree_
        todo = [(0, np.full(3, -np.inf), np.full(3, np.inf))]
        while todo:
            node, low, high = todo.pop()
            if nodes.children_left[node] < 0:
                wanted += nodes.value[node, 0, 0] * Box(low, high).second_slopes(DATA[:2], DIAGONAL) / 3
                continue
            j, t = nodes.feature[node], nodes.threshold[node]
            left, right = high.copy(), low.copy()
            left[j], right[j] = min(high[j], t), max(low[j], t)
            todo += [(nodes.children_left[node], low, left), (nodes.children_right[node], right, high)]
    found = sl.interactions(forest, DATA[:2], sigma=DIAGONAL)
    np.testing.assert_allclose(found.values, wanted, atol=1e-6)  # thresholds are float32


def test_shares_of_trees_are_those_of_draws():
    forest = RandomForestRegressor(8, max_depth=5, random_state=0).fit(DATA, LABELS)
    exact = sl.interactions(forest, DATA[:3], sigma=DIAGONAL)
    drawn = sl.interactions(forest, DATA[:3], sigma=DIAGONAL, method="clime", n_samples=16_384)
    within(drawn, exact.values)
    for name, share in exact.shares.items():
        np.testing.assert_allclose(share, drawn.shares[name], atol=0.05)


def test_trees_with_gaps_held_features_and_categories():
    node = {
        "feature": [0, 1, -1, -1, 2, -1, -1],
        "threshold": [0.2, -0.3, 0, 0, 1.0, 0, 0],
        "left": [1, 2, 0, 0, 5, 0, 0],
        "right": [4, 3, 0, 0, 6, 0, 0],
        "nan_left": [True, False, False, False, True, False, False],
        "value": [0, 0, 1.0, 4.0, 0, -2.0, 3.0],
        "category_left": {4: [1, 3]},
    }
    trees = join_trees([node, node], base=[0.5], n_features=3)
    rows = np.array([[0.1, 0.0, 1.0], [0.1, 0.0, 2.0], [np.nan, 0.0, 1.0], [0.3, np.nan, 3.0]])
    std, step = np.array([0.5, 0.4, 0.0]), 1e-5
    found = second_slopes(trees, rows, std, np.ones((4, 1)))
    for j in range(2):
        moved = step * np.eye(3)[j]
        ends = [smooth(trees, rows + sign * moved, std).gradients[:, :, 0] for sign in (-1, 1)]
        np.testing.assert_allclose(found[:, j], (ends[1] - ends[0]) / (2 * step), atol=1e-8)
    assert not found[2, 0].any()
    assert not found[:, 2].any()
    alone = join_trees([{**node, "feature": [-1] * 7, "category_left": {}}], base=[0.0], n_features=3)
    assert not second_slopes(alone, rows, std, np.ones((4, 1))).any()


@pytest.mark.parametrize("around", [DIAGONAL, FULL], ids=["diagonal", "full"])
@pytest.mark.parametrize(
    "model", [LinearRegression(), LogisticRegression(), PoissonRegressor()], ids=["line", "logistic", "poisson"]
)
def test_generalised_linear_models_are_exact(model, around):
    labels = {"LogisticRegression": LABELS > 0.5, "PoissonRegressor": np.round(np.abs(LABELS))}
    model = model.fit(DATA, labels.get(type(model).__name__, LABELS))
    target = 1 if hasattr(model, "predict_proba") else None
    found = sl.interactions(model, DATA[:3] * [[1.0], [5.0], [40.0]], sigma=around, target=target)
    assert found.is_exact
    for row, x in enumerate(found.explanation.x):
        by_differences = differences(lambda rows: sl.explain(model, rows, sigma=around, target=target).values, x, 1e-4)
        size = max(np.abs(by_differences).max(), 1e-3)
        np.testing.assert_allclose(found.values[row], by_differences, atol=1e-6 * size + 1e-10)
    np.testing.assert_allclose(sum(found.shares.values()), 1, atol=1e-9)
    if isinstance(model, LinearRegression):
        assert not found.values.any()
        np.testing.assert_allclose(found.shares["linear"], 1)


def test_wide_curves_are_exact_too():
    steep = LogisticRegression(C=1e4).fit(DATA, DATA @ V > 0.3)
    found = sl.interactions(steep, DATA[:2], sigma=1.0, target=1)
    by_differences = differences(lambda rows: sl.explain(steep, rows, sigma=1.0, target=1).values, DATA[0], 1e-4)
    np.testing.assert_allclose(found.values[0], by_differences, atol=1e-7)


# ---- scales, gaps, held features, targets


@pytest.mark.parametrize("scale", ["log", "ranks"])
def test_scales_are_those_of_the_steps(scale):
    data = np.exp(0.5 * DATA)
    forest = RandomForestRegressor(8, max_depth=5, random_state=0).fit(data, LABELS)
    options = {"sigma": 0.6, "background": data, "scale": scale}
    exact = sl.interactions(forest, data[:2], **options)
    assert exact.is_exact
    drawn = sl.interactions(lambda a: forest.predict(a), data[:2], n_samples=8_192, **options)
    within(drawn, exact.values)
    line = LinearRegression().fit(data, data @ V)
    bent = sl.interactions(line, data[:2], **options)
    assert bent.is_exact
    asked = sl.interactions(lambda a: line.predict(a), data[:2], n_samples=8_192, **options)
    within(asked, bent.values)
    off = ~np.eye(3, dtype=bool)
    assert not bent.values[:, off].any()
    assert (np.abs(bent.values[:, ~off]) > 0).all()
    if scale == "log":  # ∂²E exp(u) = E exp(u)
        np.testing.assert_allclose(np.einsum("rii->ri", bent.values), bent.explanation.values, rtol=1e-9)


def test_products_on_logarithms_interact_as_exponentials():
    s = np.array([0.3, 0.4])
    x = np.array([[2.0, 3.0]])
    around = sl.Neighbourhood.from_data(np.exp(DATA[:, :2]), sigma=1.0, scale="log")
    s = around.factor(2).std
    found = sl.interactions(lambda a: a[:, 0] * a[:, 1], x, sigma=around, n_samples=16_384)
    wanted = 6 * np.exp((s**2).sum() / 2)
    assert np.abs(found.values[0] - wanted).max() <= 6 * found.standard_error.max()
    assert found.standard_error.max() < 0.05 * wanted


@pytest.mark.parametrize("method", ["smoothgrad", "clime"])
def test_features_that_are_held_or_missing_have_none(method):
    model = Sine(V, 0.3)
    rows = np.array([X, [np.nan, -0.2, 0.4], [0.7, -0.2, np.nan]])

    def filled(a):
        return np.where(np.isnan(a), 0.0, a)

    given = sl.from_functions(
        values=lambda a: model.values(filled(a)),
        gradients=lambda a: np.where(np.isnan(a), 0.0, model.values_and_gradients(filled(a), np.ones((len(a), 1)))[1]),
    )
    found = sl.interactions(given, rows, sigma=DIAGONAL, fixed=[1], method=method, n_samples=4_096)
    around = sl.Neighbourhood([0.3, 0.5, 0.8], fixed=[1])
    free = np.ix_([0, 2], [0, 2])
    wanted = model.second_slopes(X, around)[0]
    assert (np.abs(found.values[0] - wanted)[free] <= 6 * found.standard_error[0][free]).all()
    assert np.isnan(found.values[0, 1]).all()
    assert np.isfinite(found.values[1]).sum() == 1
    alone = Sine(V, 0.3).second_slopes([0.0, -0.2, 0.4], sl.Neighbourhood([0.3, 0.5, 0.8], fixed=[0, 1]))[0]
    assert abs(found.values[1, 2, 2] - alone[2, 2]) <= 6 * found.standard_error[1, 2, 2]
    assert all(np.isfinite(share).all() for share in found.shares.values())
    assert "x2" not in " ".join(pair.features[0] for pair in found.top(3, row=1))
    gone = sl.interactions(given, rows, sigma=DIAGONAL, pairs=[(0, 0)], method=method, n_samples=1_024)
    assert np.isnan(gone.values[1]).all()
    assert gone.top(1, row=1) == ()


def test_trees_with_missing_values():
    data = np.where(RNG.random(DATA.shape) < 0.1, np.nan, DATA)
    model = HistGradientBoostingRegressor(max_iter=8, random_state=0).fit(data, LABELS)
    rows = np.array([X, [np.nan, -0.2, 0.4]])
    found = sl.interactions(model, rows, sigma=DIAGONAL)
    assert found.is_exact
    assert np.isnan(found.values[1, 0]).all()
    assert np.isfinite(found.values[1, 1:, 1:]).all()
    drawn = sl.interactions(model, rows, sigma=DIAGONAL, method="clime", n_samples=16_384)
    known = np.isfinite(drawn.values)
    assert (known == np.isfinite(found.values)).all()
    assert (np.abs(drawn.values - found.values) <= 6 * drawn.standard_error)[known].all()


def test_targets_contrasts_and_one_for_each_row():
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(DATA, np.digitize(LABELS, [0.2, 1.0]))
    one, two = (sl.interactions(model, DATA[:3], sigma=DIAGONAL, target=k) for k in (0, 1))
    contrast = sl.interactions(model, DATA[:3], sigma=DIAGONAL, target={"0": 1.0, "1": -1.0})
    np.testing.assert_allclose(contrast.values, one.values - two.values, atol=1e-12)
    each = sl.interactions(model, DATA[:3], sigma=DIAGONAL, target=[0, 1, 0])
    np.testing.assert_allclose(each.values[1], two.values[1])
    np.testing.assert_allclose(each.values[2], one.values[2])
    top = sl.interactions(
        lambda a: model.predict_proba(a), DATA[:3], sigma=DIAGONAL, target="predicted", n_samples=1_024
    )
    assert top.output_name == "predicted"


def test_a_constant_and_one_feature():
    for method in ("smoothgrad", "clime"):
        flat = sl.interactions(Linear([0.0, 0.0]), [0.0, 1.0], method=method, n_samples=1_024)
        assert not flat.values.any()
        assert {name: float(share[0]) for name, share in flat.shares.items()} == {
            "linear": 1.0, "bends": 0.0, "interactions": 0.0, "beyond": 0.0
        }  # fmt: skip
        one = sl.interactions(Cubic([1.0]), [0.5], sigma=0.4, method=method, n_samples=4_096)
        assert abs(one.values[0, 0, 0] - 3.0) <= 6 * one.standard_error[0, 0, 0] + 1e-9
        assert one.top(3) == ()


# ---- what it looks like


def test_frames_print_and_pictures():
    names = ["age", "<b>income</b>", "debt"]
    frame = pd.DataFrame(np.tile(X, (7, 1)), columns=names)
    found = sl.interactions(SineProduct([1.0, 0, 0], [0, 2.0, 0]), frame, sigma=0.3, n_samples=1_024)
    table = found.to_frame()
    assert len(table) == 7 * 6
    assert list(table.columns) == [
        "row", "output", "feature", "other", "second_slope", "standardised", "standard_error", "lower", "upper"
    ]  # fmt: skip
    line = table[(table.row == 2) & (table.feature == "age") & (table.other == "<b>income</b>")].iloc[0]
    assert line.second_slope == found.values[2, 0, 1]
    assert line.lower < line.second_slope < line.upper
    assert type(found.to_frame(library="polars")).__module__.startswith("polars")
    printed = str(found)
    assert "row 0: interactions in output" in printed
    assert "% linear" in printed
    assert "age × <b>income</b>" in printed
    assert "... and 2 more rows" in printed
    assert "&lt;b&gt;" in found._repr_html_()
    assert "<b>" not in found._repr_html_()
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(found)
    assert "age" in console.export_text()
    assert repr(found) == "<Interactions in 'output': 7 rows × 6 pairs, smoothgrad, 1,024 draws>"
    assert len(found) == 7
    pair = found.top(1, row=3)[0]
    assert pair.features == ("age", "<b>income</b>")
    assert pair.is_sure
    ax = found.plot(1)
    assert [label.get_text() for label in ax.get_xticklabels()] == names
    own = plt.figure().add_subplot()
    assert found.plot(ax=own, most=2) is own
    assert len(own.get_xticks()) == 2
    plt.close("all")
    forest = RandomForestRegressor(3, max_depth=3, random_state=0).fit(DATA, LABELS)
    exact = sl.interactions(forest, X, sigma=0.3)
    assert "exact" in str(exact)
    assert "exact" in exact.plot().get_xlabel()
    plt.close("all")


# ---- bad input


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pairs": "age"}, WrongType, "list of pairs"),
        ({"pairs": 3}, WrongType, "list of pairs"),
        ({"pairs": []}, InvalidArgument, "pairs is empty"),
        ({"pairs": [(0,)]}, InvalidArgument, "two features each"),
        ({"pairs": [("x0", "height")]}, InvalidArgument, "not a feature; the features are x0, x1, x2"),
        ({"pairs": [(0, 3)]}, InvalidArgument, "positions from 0 to 2"),
        ({"pairs": [(0, 1.5)]}, WrongType, "pairs must be a position"),
        ({"pairs": [(0, 1)], "fixed": [1]}, InvalidArgument, "held fixed"),
        ({"method": "stein"}, InvalidArgument, "'exact', 'smoothgrad' or 'clime'"),
        ({"method": sl.CLime(ridge=1.0)}, InvalidArgument, "without settings"),
        ({"method": "nonsense"}, InvalidArgument, "method must be one of"),
        ({"method": "exact"}, NoClosedForm, "closed form"),
        ({"method": "exact", "n_samples": 100}, InvalidArgument, "draws nothing"),
        ({"design": "aligned"}, InvalidArgument, "cannot use design"),
        ({"n_samples": 8}, TooFewDraws, "n_samples=8 is too few"),
        ({"method": "clime", "n_samples": 30}, TooFewDraws, "name the pairs"),
        ({"max_samples": 512}, TooFewDraws, "below the first look, at 1024"),
        ({"sigma": -1.0}, InvalidArgument, "sigma"),
    ],
)  # fmt: skip
def test_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        sl.interactions(Probit(V), X, **{"sigma": DIAGONAL, **options} if "fixed" not in options else options)


class SineAndStep(KnownFunction):
    """Its gradients know nothing of the step."""

    def _values(self, a):
        return Sine(V)._values(a) + 2 * Step(V, -0.5)._values(a)

    def _gradients(self, a):
        return Sine(V)._gradients(a)


def test_gradients_that_are_not_there_or_miss_jumps():
    with pytest.raises(NoGradients, match="smoothgrad needs gradients"):
        sl.interactions(values_of(Probit(V)), X, method="smoothgrad")
    for jumping in (Step(V), SineAndStep()):
        with pytest.warns(JumpsUnseen, match="clime"):
            sl.interactions(jumping, X, sigma=DIAGONAL, n_samples=4_096)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sl.interactions(Relu(V), X, sigma=DIAGONAL, n_samples=4_096)


def test_too_many_features_for_sums_of_a_row():
    d = 3_000
    with pytest.raises(InvalidArgument, match="Name the pairs") as said:
        sl.interactions(Linear(np.ones(d)), np.zeros(d), method="smoothgrad", n_samples=24_576, design="antithetic")
    assert said.value.argument == "pairs"
    found = sl.interactions(
        Linear(np.ones(d)), np.zeros(d), method="smoothgrad", pairs=[(5, 7)], n_samples=256, design="antithetic"
    )
    assert np.isfinite(found.by_pair).all()


def test_rows_of_results_are_checked():
    found = sl.interactions(Probit(V), X, sigma=DIAGONAL, n_samples=512)
    for ask in (lambda: found.top(3, row=1), lambda: found.plot(2)):
        with pytest.raises(InvalidArgument, match="out of range"):
            ask()
    with pytest.raises(InvalidArgument, match="k must"):
        found.top(0)
    with pytest.raises(InvalidArgument, match="confidence"):
        found.interval(1.5)
    assert list(itertools.chain(found.shares)) == ["linear", "bends", "interactions", "beyond"]


@pytest.mark.parametrize("method", ["smoothgrad", "clime"])
@pytest.mark.parametrize("around", [sl.Neighbourhood(0.8), sl.Neighbourhood(covariance=0.5 * np.eye(4) + 0.1)])
def test_what_noise_adds_to_squares_is_taken_off(method, around):
    model, x = Sine([2.0, 0.5, 0.0, -0.5]), np.full(4, 0.3)
    cov = covariance(around, 4)
    h = model.second_slopes(x, around)[0]
    w = model.slopes(x, around)[0]
    options = {"method": method, "n_samples": 128, "design": "iid", "draws": "independent"}
    found = sl.interactions(model, np.tile(x, (1_000, 1)), sigma=around, **options)
    for got, wanted in ((found.quadratic, np.trace(h @ cov @ h @ cov) / 2), (found.linear, w @ cov @ w)):
        assert abs(got.mean() - wanted) < 5 * got.std() / np.sqrt(1_000)


def test_shares_of_few_draws_add_up_to_1():
    rows = np.tile(np.random.default_rng(0).normal(size=(7, 3)), (30, 1))
    found = sl.interactions(Probit([9.0, 9.0, 9.0]), rows, sigma=0.5, n_samples=256, draws="independent")
    shares = np.array(list(found.shares.values()))
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=0), 1.0, atol=1e-12)

"""What features add on the way from a baseline: closed forms, coverage, adding up, exact models, scales, bad input."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad_vec
from scipy.special import ndtr, roots_legendre
from scipy.stats import binom
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import smoothlime as sl
from smoothlime.errors import InvalidArgument, JumpsUnseen, NoClosedForm, NoGradients, NotConverged, WrongType
from smoothlime.exact.lines import PRECISION, nodes_needed
from smoothlime.sampling.line_draws import cross_fitted, plain_factor
from smoothlime.testing import Absolute, Cubic, Probit, Quadratic, RadialBasis, Relu, Sine, Step

RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(300, 3))
LABELS = DATA[:, 0] * DATA[:, 1] + np.abs(DATA[:, 2])
V, X, B = [1.0, -0.5, 0.3], np.array([0.7, -0.2, 0.4]), np.array([-0.5, 0.6, 0.1])
DIAGONAL = sl.Neighbourhood([0.3, 0.5, 0.8])
FULL = sl.Neighbourhood(covariance=[[0.5, 0.2, 0.0], [0.2, 0.4, -0.1], [0.0, -0.1, 0.3]])


def forest(model=None, **options):
    model = RandomForestRegressor(8, max_depth=5, random_state=0) if model is None else model
    return model.fit(DATA, LABELS)


def truth(model, x, b, around, k=300):
    """By closed-form slopes at many points of the line."""
    nodes, weights = roots_legendre(k)
    t = (1 + nodes) / 2
    slopes = model.slopes(b + t[:, None] * (x - b), around)
    return (x - b) * (weights / 2 @ slopes)


def within(found, wanted, sigmas=5.0):
    assert (np.abs(found.values - wanted) <= sigmas * found.standard_error + 1e-12).all()


# ---- from draws


@pytest.mark.parametrize("around", [DIAGONAL, FULL], ids=["diagonal", "full"])
@pytest.mark.parametrize("method", ["gradients", "predictions"])
@pytest.mark.parametrize(
    "model",
    [
        Probit(V), Sine(V, 0.3), Cubic(V), Relu(V), Absolute(V, 0.1), RadialBasis([0.2, 0.0, 0.1], 0.9),
        Quadratic([[1.0, 0.5, 0.0], [0.5, -1.0, 0.2], [0.0, 0.2, 0.3]], [0.1, 0.2, 0.3]),
    ],
    ids=lambda model: getattr(getattr(model, "profile", None), "value", model).__class__.__name__,
)  # fmt: skip
def test_draws_give_the_closed_form(model, method, around):
    found = sl.contributions(model, X, baseline=B, sigma=around, method=method, n_samples=4_096)
    wanted = truth(model, X, B, around)
    within(found, wanted)
    assert (found.standard_error < 0.2 * np.abs(wanted).max()).all()
    ends = model.smoothed([X, B], around)
    assert abs(found.total[0] - ends[0]) <= 5 * found.total_error[0] + 1e-12
    assert abs(found.base[0] - ends[1]) <= 5 * found.base_error[0] + 1e-12
    assert abs(found.residual[0]) <= 5 * found.residual_error[0] + 1e-12
    np.testing.assert_allclose(found.total - found.base - found.values.sum(axis=1), found.residual, atol=1e-12)


def test_products_of_sines_and_steps_from_predictions():
    s = np.array([0.4, 0.7])
    nodes, weights = roots_legendre(50)
    t = ((1 + nodes) / 2)[:, None]
    x, b = np.array([1.0, 0.3]), np.array([-0.2, -0.8])
    p = b + t * (x - b)
    slopes = np.exp(-(s**2).sum() / 2) * np.column_stack(
        [np.cos(p[:, 0]) * np.sin(p[:, 1]), np.sin(p[:, 0]) * np.cos(p[:, 1])]
    )
    found = sl.contributions(
        lambda a: np.sin(a[:, 0]) * np.sin(a[:, 1]), x, baseline=b, sigma=sl.Neighbourhood(s), n_samples=4_096
    )
    within(found, (x - b) * (weights / 2 @ slopes))
    step = Step(V)
    found = sl.contributions(lambda a: step.values(a), X, baseline=B, sigma=DIAGONAL, n_samples=4_096)
    within(found, truth(step, X, B, DIAGONAL))


@pytest.mark.parametrize("n", [256, 1_024])
@pytest.mark.parametrize("method", ["gradients", "predictions"])
@pytest.mark.parametrize(
    ("model", "least", "most"), [(Probit(V), 0.925, 0.975), (Relu(V), 0.925, 1.0)], ids=["smooth", "kinked"]
)
def test_intervals_hold(model, least, most, method, n):
    repeats = 2_000
    found = sl.contributions(
        model, np.tile(X, (repeats, 1)), baseline=B, sigma=DIAGONAL, method=method, n_samples=n, draws="independent"
    )
    wanted = truth(model, X, B, DIAGONAL)
    lower, upper = found.interval()
    hits = ((lower <= wanted) & (wanted <= upper)).sum(axis=0)
    low, high = binom.ppf([1e-4, 1 - 1e-4], repeats, [least, most])
    assert ((low <= hits) & (hits <= high)).all(), hits / repeats
    ratio = np.sqrt((found.standard_error**2).mean(axis=0)) / found.values.std(axis=0)
    assert (np.abs(ratio - 1) < 5 / np.sqrt(2 * repeats)).all()
    bias = np.abs(found.values.mean(axis=0) - wanted) / (found.values.std(axis=0) / np.sqrt(repeats))
    assert (bias < 5).all()
    inside = (np.abs(found.residual) <= 2.04 * found.residual_error).sum()  # t of 31 degrees of freedom
    low, high = binom.ppf([1e-4, 1 - 1e-4], repeats, [0.925, 0.975])
    assert low <= inside <= high, inside / repeats


def test_several_baselines_cover_their_mean():
    data = DATA[:40]
    rows = np.tile(X, (1_000, 1))
    around = sl.Neighbourhood(0.5)
    found = sl.contributions(Probit(V), rows, background=data, sigma=around, n_samples=512, draws="independent")
    wanted = np.mean([truth(Probit(V), X, b, around, 40) for b in data], axis=0)
    lower, upper = found.interval()
    hits = ((lower <= wanted) & (wanted <= upper)).sum(axis=0)
    assert (hits >= binom.ppf(1e-4, 1_000, 0.925)).all(), hits
    assert abs(found.base.mean() - Probit(V).smoothed(data, around).mean()) < 5 * found.base.std() / np.sqrt(1_000)


def test_draws_are_made_until_the_tolerance_holds():
    rows = np.tile(X, (300, 1))
    found = sl.contributions(
        Absolute(V), rows, baseline=B, sigma=0.6, rtol=0.0, atol=0.02, method="predictions", draws="independent"
    )
    assert found.converged.all()
    wanted = truth(Absolute(V), X, B, sl.Neighbourhood(0.6))
    misses = (np.linalg.norm(found.values - wanted, axis=1) > 0.02).sum()
    assert misses <= binom.ppf(1 - 1e-4, 300, 0.05)
    assert len(np.unique(found.n_samples)) > 1 or found.n_samples[0] > 256
    with pytest.warns(NotConverged, match="row 0 did not reach the tolerance within 512 draws"):
        found = sl.contributions(Absolute(V), X, baseline=B, sigma=0.6, rtol=0.0, atol=1e-5, max_samples=512)
    assert not found.converged[0]


def test_the_regression_leaves_no_bias():
    z, delta = RNG.standard_normal((32, 64, 3)), np.ones((32, 64, 3))
    t = RNG.random((32, 64))
    slope = np.array([1.0, -2.0, 0.5])
    said = cross_fitted(z, t, delta, z @ slope + (z @ slope) * (2 * t - 1), plain_factor(3))
    np.testing.assert_allclose(said, np.tile(slope, (32, 1)) * 1.0, atol=1e-10)


def test_draws_repeat_and_do_not_depend_on_batches():
    asked = {"baseline": B, "sigma": 0.5, "n_samples": 512}
    one = sl.contributions(Sine(V), X, **asked)
    np.testing.assert_allclose(one.values, sl.contributions(Sine(V), X, batch_size=96, **asked).values, rtol=1e-10)
    assert not np.allclose(one.values, sl.contributions(Sine(V), X, seed=1, **asked).values)


# ---- what contributions are


@pytest.mark.parametrize("method", ["gradients", "predictions"])
def test_dummies_linearity_symmetry_and_sums(method):
    class Additive(sl.testing.KnownFunction):
        def _values(self, a):
            return np.sin(a[:, 0]) + a[:, 1] ** 2

        def _gradients(self, a):
            return np.column_stack([np.cos(a[:, 0]), 2 * a[:, 1], np.zeros(len(a))])

    asked = {"baseline": B, "sigma": 0.4, "n_samples": 4_096, "method": method}
    found = sl.contributions(Additive(), X, **asked)
    own = [np.exp(-0.08) * (np.sin(X[0]) - np.sin(B[0])), X[1] ** 2 - B[1] ** 2, 0.0]
    within(found, own)
    if method == "gradients":
        assert found.values[0, 2] == 0.0
    twice = sl.contributions(lambda a: 2 * np.sin(a @ V) - a[:, 0], X, **asked | {"method": "predictions"})
    once = sl.contributions(lambda a: np.sin(a @ V), X, **asked | {"method": "predictions"})
    np.testing.assert_allclose(twice.values, 2 * once.values - [[X[0] - B[0], 0, 0]], atol=1e-10)  # at the same draws
    swapped = sl.contributions(Sine([1.0, 1.0, 0.0]), [0.5, 0.5, 1.0], baseline=[0.0, 0.0, 0.0], **asked_less(asked))
    apart = swapped.values[0, 0] - swapped.values[0, 1]
    assert abs(apart) <= 5 * np.hypot(*swapped.standard_error[0, :2]) + 1e-12


def asked_less(asked):
    return {name: each for name, each in asked.items() if name != "baseline"}


def test_a_row_that_is_its_baseline_has_nothing():
    for model in (Probit(V), forest()):
        found = sl.contributions(model, X, baseline=X, sigma=0.5)
        assert not found.values.any()
        assert not found.standard_error.any()
        assert not found.half_width().any()
        assert abs(found.residual[0]) < 1e-12
        assert found.converged.all()


def test_jumps_that_gradients_miss_are_told():
    class Rounded(sl.testing.KnownFunction):
        def _values(self, a):
            return np.round(2 * a[:, 0]) + a[:, 1]

        def _gradients(self, a):
            return np.tile([0.0, 1.0, 0.0], (len(a), 1))

    with pytest.warns(JumpsUnseen, match="do not add up to what the model changes by"):
        sl.contributions(Rounded(), X, baseline=B, sigma=0.5, n_samples=1_024)
    with pytest.warns(JumpsUnseen):  # and nothing else: draws are not what is lacking
        found = sl.contributions(Rounded(), X, baseline=B, sigma=0.5)
    assert not found.converged[0]
    found = sl.contributions(Rounded(), X, baseline=B, sigma=0.5, n_samples=1_024, method="predictions")
    assert abs(found.values[0, 0] - 2.4) < 0.1
    assert abs(found.residual[0]) < 5 * found.residual_error[0]


@pytest.mark.peers
def test_small_neighbourhoods_give_integrated_gradients():
    import torch
    from captum.attr import IntegratedGradients

    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)
    ).double()
    rows = torch.tensor(DATA[:4])
    wanted = IntegratedGradients(net).attribute(rows, torch.zeros(1, 3).double(), n_steps=200).detach().numpy()
    found = sl.contributions(net.eval(), DATA[:4], baseline=np.zeros(3), sigma=1e-3, n_samples=4_096)
    assert np.linalg.norm(found.values - wanted) < 0.02 * np.linalg.norm(wanted)


# ---- exact


@pytest.mark.parametrize("sigma", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("kind", ["forest", "boosted"])
def test_trees_agree_with_adaptive_quadrature(kind, sigma):
    model = forest() if kind == "forest" else forest(HistGradientBoostingRegressor(max_iter=20))
    found = sl.contributions(model, DATA[:2], baseline=DATA[5:7], sigma=sigma)
    assert found.is_exact
    for row in range(2):
        x, b = DATA[row], DATA[5 + row]

        def slope(t, x=x, b=b):
            return sl.explain(model, b + t * (x - b), sigma=sigma).values[0]

        wanted, _ = quad_vec(slope, 0, 1, epsabs=1e-11, epsrel=1e-11)
        np.testing.assert_allclose(found.values[row], (x - b) * wanted, atol=1e-10)
        ends = sl.explain(model, np.array([x, b]), sigma=sigma).smoothed
        np.testing.assert_allclose([found.total[row], found.base[row]], ends, atol=1e-12)
    assert np.abs(found.residual).max() < 1e-10
    assert (np.abs(found.residual) <= np.sqrt(3) * found.radius).all()


def test_nodes_are_few_and_enough():
    length = np.geomspace(1e-3, 500, 60)
    nodes = nodes_needed(length, length)
    assert (nodes <= 2.2 * length + 24).all()
    # a step is the steepest that a model of range 1 can be: F along the line is Φ
    for ell, k in zip(length[length < 150], nodes, strict=False):
        for at in (0.0, 0.13, 0.5):
            t, w = roots_legendre(int(k))
            t = (1 + t) / 2
            summed = (w / 2) @ (ell * np.exp(-((ell * (t - at)) ** 2) / 2) / np.sqrt(2 * np.pi))
            assert abs(summed - (ndtr(ell * (1 - at)) - ndtr(-ell * at))) <= PRECISION + 1e-14 * ell


@pytest.mark.parametrize("around", [DIAGONAL, FULL], ids=["diagonal", "full"])
def test_generalised_linear_models_are_exact(around):
    positive = np.exp(0.3 * DATA[:, 0])
    for model, asked in (
        (LogisticRegression().fit(DATA, DATA[:, 0] + DATA[:, 1] > 0), {"target": 1}),
        (PoissonRegressor().fit(DATA, positive), {}),
        (LinearRegression().fit(DATA, LABELS), {}),
    ):
        coef = np.ravel(model.coef_)
        across = np.cross(coef, [1.0, 0.0, 0.0])  # along which the model is level: a quotient would cancel
        rows = np.array([X, B + across, B + across + 1e-4 * coef])
        found = sl.contributions(model, rows, baseline=B, sigma=around, **asked)
        assert found.is_exact
        for row, x in enumerate(rows):
            t, w = roots_legendre(80)
            p = B + ((1 + t) / 2)[:, None] * (x - B)
            slopes = sl.explain(model, p, sigma=around, **asked).values
            np.testing.assert_allclose(found.values[row], (x - B) * (w / 2 @ slopes), atol=1e-12)
        assert np.abs(found.residual).max() < 1e-12
    np.testing.assert_allclose(found.values, coef * (rows - B), atol=1e-12)


@pytest.mark.parametrize("scale", ["log", "ranks"])
def test_scales_add_up_and_agree_with_draws(scale):
    data = np.exp(DATA)
    for model in (forest(), LinearRegression().fit(data, LABELS)):
        asked = {"background": data, "scale": scale, "sigma": 0.5}
        found = sl.contributions(model, data[:3], **asked)
        drawn = sl.contributions(model, data[:3], n_samples=4_096, **asked)
        assert found.is_exact
        assert not drawn.is_exact
        assert np.abs(found.residual).max() < 1e-10
        assert (np.abs(found.values - drawn.values) <= 5 * drawn.standard_error).all()
        assert (np.abs(drawn.residual) <= 5 * drawn.residual_error).all()


def test_a_row_beyond_the_background_keeps_its_own_scale():
    data = np.exp(DATA)
    row = data[:1].copy()
    row[0, 0] = 2 * data[:, 0].max()
    asked = {"background": data, "baseline": data[7], "scale": "ranks", "sigma": 0.3}
    with pytest.warns(sl.errors.OutsideBackground):
        drawn = sl.contributions(forest(), row, n_samples=4_096, **asked)
    with pytest.warns(sl.errors.OutsideBackground):
        found = sl.contributions(forest(), row, **asked)
    np.testing.assert_allclose(found.base_prediction, forest().predict(data[7:8]))
    assert np.abs(found.residual).max() < 1e-10
    assert (np.abs(found.values - drawn.values) <= 5 * drawn.standard_error).all()
    with pytest.raises(InvalidArgument, match="ranks know nothing beyond"):
        sl.contributions(forest(), data[0], **asked | {"baseline": row[0]})


def test_many_rows_and_baselines_fit_in_memory():
    import tracemalloc

    rows = np.tile(DATA, (4, 1))
    model = PoissonRegressor().fit(DATA, np.exp(0.3 * DATA[:, 0]))
    tracemalloc.start()
    found = sl.contributions(model, rows, background=DATA, sigma=0.5)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3e8  # 120,000 lines of 600 ellipses at once would be 6e8
    assert np.abs(found.residual).max() < 1e-10


def test_progress_is_told():
    seen = []
    sl.contributions(
        forest(), DATA[:5], background=DATA, sigma=0.5, progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (500, 500)
    seen.clear()
    sl.contributions(
        Probit(V),
        DATA[:5],
        baseline=B,
        sigma=0.5,
        n_samples=512,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (5 * 512, 5 * 512)


def test_exact_where_asked_for():
    with pytest.raises(NoClosedForm, match="closed form"):
        sl.contributions(Probit(V), X, baseline=B, method="exact")
    with pytest.raises(NoGradients, match="method='gradients' needs a model with gradients"):
        sl.contributions(lambda a: a[:, 0], X, baseline=B, method="gradients")
    with pytest.raises(InvalidArgument, match="draws nothing"):
        sl.contributions(forest(), X, baseline=B, method="exact", n_samples=100)
    with pytest.raises(InvalidArgument, match="Raise sigma"):
        sl.contributions(forest(), X, baseline=B, sigma=1e-5)


# ---- targets, baselines, columns that are held


def test_targets():
    labels = np.digitize(LABELS, [0.3, 1.0])
    for model, n in ((RandomForestClassifier(5, max_depth=3, random_state=0), None), (GradientBoostingClassifier(
        n_estimators=5, random_state=0), 2_048)):  # fmt: skip
        model.fit(DATA, labels)
        asked = {"baseline": B, "sigma": 0.5, "n_samples": n}
        each = [sl.contributions(model, DATA[:4], target=k, **asked) for k in range(3)]
        contrast = sl.contributions(model, DATA[:4], target={2: 1.0, 0: -1.0}, **asked)
        np.testing.assert_allclose(contrast.values, each[2].values - each[0].values, atol=1e-10)
        by_row = sl.contributions(model, DATA[:4], target=[0, 1, 2, 1], **asked)
        np.testing.assert_allclose(by_row.values, [each[k].values[i] for i, k in enumerate([0, 1, 2, 1])], atol=1e-10)
        predicted = sl.contributions(model, DATA[:4], target="predicted", **asked)
        best = model.predict_proba(DATA[:4]).argmax(axis=1)
        np.testing.assert_allclose(predicted.values, [each[k].values[i] for i, k in enumerate(best)], atol=1e-10)
        np.testing.assert_allclose(contrast.prediction, model.predict_proba(DATA[:4]) @ [-1, 0, 1], atol=1e-6)
        np.testing.assert_allclose(contrast.base_prediction, model.predict_proba([B])[0] @ [-1, 0, 1], atol=1e-6)


def test_the_background_gives_a_hundred_baselines():
    found = sl.contributions(forest(), DATA[:2], background=DATA, sigma=0.5)
    assert found.baseline.shape == (100, 3)
    np.testing.assert_array_equal(found.baseline, DATA[found.baseline_rows])
    spread = sl.Neighbourhood.from_data(DATA, 0.5)
    each = [sl.contributions(forest(), DATA[:2], baseline=b, sigma=spread).values for b in DATA[found.baseline_rows[:]]]
    np.testing.assert_allclose(found.values, np.mean(each, axis=0), atol=1e-10)
    assert len(sl.contributions(forest(), X, background=DATA[:30], sigma=0.5).baseline) == 30
    other = sl.contributions(forest(), DATA[:2], background=DATA, sigma=0.5, seed=1)
    assert set(other.baseline_rows) != set(found.baseline_rows)
    same = sl.contributions(forest(), DATA[:2], background=DATA, sigma=spread)
    np.testing.assert_allclose(same.values, found.values, atol=1e-12)


def frame_model(table):
    return table["age"] / 10 * (1 + (table["city"] == "York")) + np.sin(table["debt"])


def test_tables_with_columns_that_are_held():
    table = pd.DataFrame({"age": [30, 50, 41], "debt": [1.0, 2.0, 0.5], "city": ["York", "Bath", "Bath"]})
    for baseline in ({"age": 40, "debt": 1.0}, pd.Series({"age": 40, "debt": 1.0}), table[["debt", "age"]].iloc[[0]]):
        one = sl.contributions(frame_model, table, baseline=baseline, sigma=0.5, n_samples=512)
        at = 30 if isinstance(baseline, pd.DataFrame) else 40
        age = (table["age"] - at) / 10 * (1 + (table["city"] == "York"))
        assert (np.abs(one.values[:, 0] - age) <= 5 * one.standard_error[:, 0]).all()
        assert (one.standard_error[:, 0] < 0.04).all()
    by_row = sl.contributions(frame_model, table, baseline=table.assign(age=[31, 52, 44]), sigma=0.5, n_samples=512)
    assert (np.abs(by_row.values[:, 0] - [-0.2, -0.2, -0.3]) <= 5 * by_row.standard_error[:, 0] + 1e-12).all()
    assert not by_row.values[:, 1].any()
    lines = by_row.to_frame()
    assert list(lines["feature"]) == ["age", "debt"] * 3
    np.testing.assert_allclose(lines["contribution"], by_row.values[:, :2].ravel())
    with pytest.raises(InvalidArgument, match="'city' is held, and is 'York' in row 0 and missing in its baseline"):
        sl.contributions(frame_model, table, baseline={"age": 1, "debt": 1, "city": None}, sigma=0.5)
    with pytest.raises(InvalidArgument, match=r"baseline has 3\.0 for 'city', a column of text that is held"):
        sl.contributions(frame_model, table, baseline={"age": 1, "debt": 1, "city": 3.0}, sigma=0.5)
    with pytest.raises(InvalidArgument, match="baseline has no 'debt'"):
        sl.contributions(frame_model, table, baseline={"age": 1}, sigma=0.5)
    with pytest.raises(InvalidArgument, match="which is not a feature"):
        sl.contributions(frame_model, table, baseline={"age": 1, "debt": 1, "income": 2}, sigma=0.5)
    with pytest.raises(WrongType, match="must hold numbers"):
        sl.contributions(frame_model, table, baseline={"age": "old", "debt": 1}, sigma=0.5)


def along(x, b, held):
    """Truth for frame_model at σ → any: age is linear, so F = T; own quadrature over settings of held columns."""
    nodes, weights = roots_legendre(40)
    t, weights = (1 + nodes) / 2, weights / 2
    age, york = b["age"] + t * (x["age"] - b["age"]), {True: x["city"] == "York", False: b["city"] == "York"}
    chance = {True: t, False: 1 - t} if held else {True: np.ones_like(t), False: np.zeros_like(t)}
    of_age = sum((weights * chance[k]) @ ((x["age"] - b["age"]) / 10 * (1 + york[k]) * np.ones_like(t)) for k in york)
    of_city = weights @ (age / 10 * (york[True] * 1.0 - york[False] * 1.0))
    return of_age, of_city


@pytest.mark.parametrize("scale", ["linear", "ranks"])
def test_held_columns_that_differ_add_what_switching_them_changes(scale):
    table = pd.DataFrame({"age": [30.0, 50.0, 41.0], "debt": [1.0, 2.0, 0.5], "city": ["York", "Bath", "Bath"]})
    b = table.iloc[[1]]
    around = {"background": table, "scale": scale, "sigma": 0.2}
    found = sl.contributions(frame_model, table, baseline=b, n_samples=4_096, **around)
    assert found.held_apart == ("city",)
    assert (np.abs(found.residual) <= 5 * found.residual_error + 1e-12).all()
    assert found.values[0, 2] > 10 * found.standard_error[0, 2] > 0
    assert not found.values[1].any()  # the baseline itself
    assert found.values[2, 2] == 0  # the same city
    np.testing.assert_allclose(found.base_prediction, frame_model(b)[1])
    assert list(found.to_frame()["feature"]) == ["age", "debt", "city"] * 3
    if scale == "linear":
        of_age, of_city = along(table.iloc[0], b.iloc[0], held=True)
        assert abs(found.values[0, 0] - of_age) <= 5 * found.standard_error[0, 0]
        assert abs(found.values[0, 2] - of_city) <= 5 * found.standard_error[0, 2]


def test_a_background_of_texts_gives_terms_for_them():
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {"age": rng.normal(40, 9, 60), "debt": rng.normal(size=60), "city": rng.choice(["York", "Bath"], 60)}
    )
    table["day"] = pd.date_range("2020-01-01", periods=60)
    found = sl.contributions(frame_model, table[:2], background=table, sigma=0.5, n_samples=8_192)
    assert found.held_apart == ("city",)
    assert found.held_alike == ("day",)  # there is no way from one date to another
    assert "Held at the row's own values in the baselines: day" in str(found)
    each = [along(table.iloc[0], table.iloc[row], held=True) for row in found.baseline_rows]
    wanted = np.mean(each, axis=0)
    assert (np.abs(found.values[0, [0, 2]] - wanted) <= 5 * found.standard_error[0, [0, 2]]).all()
    assert (found.standard_error[0, [0, 2]] < 0.2).all()


def held_columns():
    rng = np.random.default_rng(1)
    n = 300
    table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.exponential(size=n)})
    table["city"], table["own"] = rng.choice(["York", "Bath", "Leeds"], n), rng.choice(["yes", "no"], n)
    city, own = table["city"], table["own"] == "yes"
    return table, table["a"] * table["b"] + (city == "York") * table["a"] + 2 * (city == "Bath") * own


def encoded(model, kept=("city", "own")):
    columns = make_column_transformer((OneHotEncoder(), list(kept)), ("passthrough", ["a", "b"]))
    return make_pipeline(columns, model)


def by_enumeration(model, x, b, around):
    """Smoothed values and slopes at points of the line, exact, for each way to set the held columns, and quadrature."""
    nodes, weights = roots_legendre(60)
    t, weights = (1 + nodes) / 2, weights / 2
    held = [name for name in ("city", "own") if x[name] != b[name]]
    moving, found = np.zeros(2), dict.fromkeys(("city", "own"), 0.0)
    for setting in itertools.product([True, False], repeat=len(held)):
        line = pd.DataFrame({name: b[name] + t * (x[name] - b[name]) for name in ("a", "b")})
        line["city"], line["own"] = x["city"], x["own"]
        for name, is_end in zip(held, setting, strict=True):
            line[name] = (x if is_end else b)[name]
        e = sl.explain(model, line, switches=False, **around)
        assert e.is_exact
        chance = [t if is_end else 1 - t for is_end in setting]
        steps = np.array([x["a"] - b["a"], x["b"] - b["b"]])
        moving += (weights * np.prod([np.ones_like(t), *chance], axis=0)) @ e.values[:, :2] * steps
        for i, name in enumerate(held):
            others = np.prod([np.ones_like(t), *chance[:i], *chance[i + 1 :]], axis=0)
            found[name] += (1 if setting[i] else -1) * (weights * others) @ e.smoothed
    return np.array([*moving, *found.values()])


@pytest.mark.parametrize("kind", ["trees", "logistic", "line"])
def test_held_columns_are_exact_where_the_model_is(kind):
    table, wanted = held_columns()
    if kind == "trees":
        model = encoded(RandomForestRegressor(6, max_depth=5, random_state=0)).fit(table, wanted)
    else:
        model = encoded(LogisticRegression()).fit(table, wanted > 0)
    asked = {"background": table, "sigma": 0.5, "target": None if kind == "trees" else 1}
    asked["output"] = "margin" if kind == "line" else "probability"
    found = sl.contributions(model, table[:4], baseline=table.iloc[[7]], **asked)
    assert found.is_exact
    for row in range(4):
        truth = by_enumeration(model, table.iloc[row], table.iloc[7], asked)
        np.testing.assert_allclose(found.values[row], truth, atol=1e-10)
    np.testing.assert_allclose(found.residual, 0, atol=1e-10)
    drawn = sl.contributions(model, table[:4], baseline=table.iloc[[7]], **asked, n_samples=4_096)
    within(drawn, found.values)
    ranks = sl.contributions(model, table[:4], baseline=table.iloc[[7]], scale="ranks", **asked)
    assert ranks.is_exact is (kind != "logistic")
    assert (np.abs(ranks.residual) <= 5 * ranks.residual_error + 1e-10).all()
    again = sl.contributions(
        model, table[:4], baseline=table.iloc[[7]], scale="ranks", **asked, n_samples=4_096, seed=1
    )
    errors = ranks.standard_error + again.standard_error
    assert (np.abs(ranks.values - again.values) <= 5 * errors + 1e-12).all()


def test_columns_that_a_model_ignores_take_no_lines_and_add_nothing():
    table, wanted = held_columns()
    model = encoded(RandomForestRegressor(4, max_depth=4, random_state=0), ["city"]).fit(table, wanted)
    found = sl.contributions(model, table[:3], background=table, sigma=0.5)
    assert found.is_exact
    assert not found.values[:, 3].any()
    assert found.values[:, 2].any()
    assert (np.abs(found.residual) < 1e-10).all()


def test_intervals_of_held_columns_hold():
    """400 repeats of one row: 95% intervals hold at least as often as binomial chance of one in 10,000 allows."""
    table = pd.DataFrame({"a": [1.0] * 400, "city": ["York"] * 400})
    model = sl.as_model(
        lambda t: np.sin(2 * t["a"].to_numpy()) * (1 + (t["city"] == "York").to_numpy()), feature_names=["a", "city"]
    )
    asked = {"baseline": {"a": -0.5, "city": "Bath"}, "sigma": 0.4, "n_samples": 512, "draws": "independent"}
    found = sl.contributions(model, table, **asked)
    smooth = lambda a: np.sin(2 * a) * np.exp(-2 * 0.4**2)
    line = lambda t: -0.5 + 1.5 * t
    city = quad_vec(lambda t: smooth(line(t)), 0, 1)[0]
    a = quad_vec(lambda t: 1.5 * 2 * np.cos(2 * line(t)) * np.exp(-2 * 0.4**2) * (1 + t), 0, 1)[0]
    lower, upper = found.interval()
    held = ((lower <= [a, city]) & ([a, city] <= upper)).sum(axis=0)
    assert (held >= binom.ppf(1e-4, 400, 0.95)).all()
    assert np.abs(found.values.mean(axis=0) - [a, city]).max() < 5 * np.max(found.standard_error) / np.sqrt(400)
    assert (found.residual_error > 0).all()


def test_fixed_features_that_differ_are_switched():
    found = sl.contributions(forest(), X, baseline=[*B[:2], X[2]], fixed=[2], sigma=0.5)
    assert found.values[0, 2] == 0
    assert abs(found.residual[0]) < 1e-10
    far = [*B[:2], -1.5]
    apart = sl.contributions(forest(), X, baseline=far, fixed=[2], sigma=0.5)
    assert apart.is_exact
    assert apart.values[0, 2] != 0
    assert abs(apart.residual[0]) < 1e-10
    within(sl.contributions(forest(), X, baseline=far, fixed=[2], sigma=0.5, n_samples=8_192), apart.values)
    with pytest.raises(InvalidArgument, match=r"'x2' is held, and is 0\.4 in row 0 and missing in its baseline"):
        sl.contributions(forest(), X, baseline=[*B[:2], np.nan], fixed=[2], sigma=0.5)


def test_gaps():
    boosted = forest(HistGradientBoostingRegressor(max_iter=20))
    rows, b = DATA[:3].copy(), B.copy()
    rows[1, 0] = np.nan
    data = DATA.copy()
    data[::2, 1] = np.nan
    for n in (None, 4_096):
        found = sl.contributions(boosted, rows, background=data, sigma=0.5, n_samples=n)
        assert np.isfinite(found.baseline).all()
        assert found.values[1, 0] == 0
        assert (np.abs(found.residual) <= 5 * found.residual_error + 1e-10).all()
        np.testing.assert_allclose(found.prediction, boosted.predict(rows), atol=1e-6)
        if n is None:
            exact = found
    assert (np.abs(found.values - exact.values) <= 5 * found.standard_error + 1e-12).all()
    with pytest.raises(InvalidArgument, match="row 1 has no value at 'x0' in X, but one in its baseline"):
        sl.contributions(boosted, rows, baseline=b, sigma=0.5)
    b[1] = np.nan
    with pytest.raises(InvalidArgument, match="row 0 has no value at 'x1' in its baseline, but one in X"):
        sl.contributions(boosted, rows, baseline=b, sigma=0.5)
    data[:, 1] = np.nan
    with pytest.raises(InvalidArgument, match="no row of the background has a value in every feature"):
        sl.contributions(boosted, rows, background=data, sigma=sl.Neighbourhood(0.5))


def test_bad_input():
    with pytest.raises(InvalidArgument, match=r"give baseline= .* or background="):
        sl.contributions(Probit(V), X)
    with pytest.raises(InvalidArgument, match="baseline has 2 features and X has 3"):
        sl.contributions(Probit(V), X, baseline=[1.0, 2.0])
    with pytest.raises(InvalidArgument, match="baseline has 3 rows; give one row for all, or one for each of the 2"):
        sl.contributions(Probit(V), DATA[:2], baseline=DATA[:3])
    with pytest.raises(InvalidArgument, match="background must have at least 2 rows"):
        sl.contributions(Probit(V), X, background=DATA[:1])
    with pytest.raises(InvalidArgument, match="baseline must be finite"):
        sl.contributions(Probit(V), X, baseline=[np.inf, 0, 0])
    with pytest.raises(InvalidArgument, match="method must be"):
        sl.contributions(Probit(V), X, baseline=B, method="clime")
    with pytest.raises(InvalidArgument, match="out of range"):
        sl.contributions(Probit(V), X, baseline=B, target=3)
    with pytest.raises(InvalidArgument, match="does not go with the scales"):
        sl.contributions(Probit(V), np.abs(X), baseline=-np.abs(B), scale="log")


def test_rows_of_a_shape():
    def model(points):
        return np.sin(points[:, 0, 1]) + points.sum(axis=(1, 2))

    pictures = RNG.normal(size=(2, 3, 2))
    own = pictures.reshape(2, -1) - 0.0
    own[:, 1] += np.exp(-0.02) * np.sin(pictures[:, 0, 1])
    for baseline in (np.zeros((3, 2)), np.zeros((1, 3, 2)), np.zeros((2, 3, 2)), np.zeros(6)):
        found = sl.contributions(model, pictures, baseline=baseline, sigma=0.2, n_samples=1_024)
        within(found, own)
    with pytest.raises(InvalidArgument, match=r"baseline has rows of shape \(2, 3\) and X of shape \(3, 2\)"):
        sl.contributions(model, pictures, baseline=np.zeros((1, 2, 3)), sigma=0.2)


# ---- forms


def test_shap_draws_them_right():
    import shap

    found = sl.contributions(forest(), DATA[:6], background=DATA, sigma=0.5)
    given = found.to_shap()
    np.testing.assert_allclose(given.base_values + given.values.sum(axis=1), found.total, atol=1e-10)
    shap.plots.waterfall(given[0], show=False)
    texts = [each.get_text() for each in plt.gcf().findobj(plt.Text)]
    assert any(f"{found.total[0]:.3f}" in text.replace("\N{MINUS SIGN}", "-") for text in texts)
    assert any(f"{found.base[0]:.3f}" in text.replace("\N{MINUS SIGN}", "-") for text in texts)
    plt.close("all")
    shap.plots.beeswarm(given, show=False)
    plt.close("all")


@pytest.mark.parametrize("n", [None, 512])
def test_the_waterfall_goes_from_f_of_b_to_f_of_x(n):
    found = sl.contributions(forest(), DATA[:2], background=DATA, sigma=0.5, n_samples=n)
    ax = found.plot(1, most=2)
    bars = ax.patches
    assert bars[0].get_x() == pytest.approx(found.base_prediction[1])
    assert bars[-1].get_x() + bars[-1].get_width() == pytest.approx(found.prediction[1])
    for one, two in itertools.pairwise(bars):
        assert one.get_x() + one.get_width() == pytest.approx(two.get_x())
    names = [each.get_text() for each in ax.get_yticklabels()]
    assert names[0] == "smoothing at the baseline"
    assert names[1] == "2 other features"
    assert names[-1] == "smoothing at the row"
    assert ("residual of drawing" in names) == (n is not None)
    plt.close("all")
    with pytest.raises(InvalidArgument, match="row 2 is out of range"):
        found.plot(2)


def test_print_and_repr():
    found = sl.contributions(forest(), DATA[:2], background=DATA, sigma=0.5)
    assert repr(found) == "<Contributions to 'output': 2 rows × 3 features, 100 baselines, exact>"
    text = str(found)
    for each in ("base F(b), 100 baselines", "total F(x)", "f(x) − F(x)", "f(b) − F(b)", "row 0 of 2: exact"):
        assert each in text
    drawn = sl.contributions(Probit(V), X, baseline=B, n_samples=512)
    assert "512 draws" in str(drawn)
    assert "residual" in str(drawn)
    assert len(drawn) == 1

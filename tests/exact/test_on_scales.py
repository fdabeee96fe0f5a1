"""Closed forms where steps are taken in logarithms and ranks: against sums over all values, and against draws."""

import itertools

import lightgbm
import numpy as np
import pytest
import xgboost
from scipy.special import ndtr, ndtri
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

import smoothlime as sl
from smoothlime.errors import NoClosedForm
from smoothlime.exact.trees.form import read_ensemble

pytestmark = pytest.mark.filterwarnings("ignore:values outside of the background")
RNG = np.random.default_rng(21)
COUNTS = np.column_stack([RNG.poisson(2, 900), RNG.binomial(6, 0.3, 900), RNG.choice([0, 0, 0, 5, 30], 900)]).astype(
    float
)
SUM = COUNTS @ [1.0, -2.0, 0.3] + np.sin(COUNTS[:, 0]) * (COUNTS[:, 2] > 1)
MIXED = np.column_stack([RNG.lognormal(0, 1, 1_500), RNG.poisson(2, 1_500), RNG.normal(size=1_500)])
Y = np.log(MIXED[:, 0]) * MIXED[:, 1] + np.sin(2 * MIXED[:, 2])
KINDS = {0: "log", 1: "ranks", 2: "ranks"}
X = np.vstack([MIXED[:3], [[500.0, 3.0, 0.0], [1.0, 70.0, 9.0]]])
"""The last two lie outside of what the background ever was."""


def shares(column, u, sigma):
    """Values of a column of counts, the chance of each under N(u, σ²), and its derivative in u."""
    values, counts = np.unique(column, return_counts=True)
    ends = (ndtri(np.concatenate([[0], np.cumsum(counts)]) / len(column)) - u) / sigma
    density = np.where(np.isfinite(ends), np.exp(-(np.nan_to_num(ends, posinf=0, neginf=0) ** 2) / 2), 0)
    return values, np.diff(ndtr(ends)), -np.diff(density) / np.sqrt(2 * np.pi) / sigma


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingRegressor(max_iter=40, min_samples_leaf=5),
        RandomForestRegressor(15, random_state=0),
        LinearRegression(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_ranks_of_counts_are_a_sum_over_all_values(model):
    """The model itself, asked at every combination of values, each with its chance."""
    model.fit(COUNTS, SUM)
    e = sl.explain(model, COUNTS[:4], sigma=0.7, background=COUNTS, scale="ranks")
    assert e.is_exact
    for row, x in enumerate(COUNTS[:4]):
        score = [ndtri((c < v).mean() + (c == v).mean() / 2) for c, v in zip(COUNTS.T, x, strict=True)]
        parts = [shares(c, u, 0.7) for c, u in zip(COUNTS.T, score, strict=True)]
        grid = np.array(list(itertools.product(*(values for values, _, _ in parts))))
        answers = model.predict(grid)
        weigh = lambda which: np.array([np.prod(each) for each in itertools.product(*which)])
        chances = [p for _, p, _ in parts]
        assert e.smoothed[row] == pytest.approx(weigh(chances) @ answers, rel=1e-12)
        for j, (_, _, change) in enumerate(parts):
            slope = weigh([change if i == j else p for i, p in enumerate(chances)]) @ answers
            assert e.values[row, j] == pytest.approx(slope, abs=1e-12 * np.abs(SUM).max())


def leaves(trees, node, low, high):
    """Boxes (low, high] of the leaves below a node, and what they add."""
    if trees.feature[node] < 0:
        yield low, high, trees.value[node, 0]
        return
    j, t = trees.feature[node], trees.threshold[node]
    left, right = high.copy(), low.copy()
    left[j], right[j] = min(high[j], t), max(low[j], t)
    yield from leaves(trees, trees.left[node], low, left)
    yield from leaves(trees, trees.right[node], right, high)


def passed(scale, cut):
    """sup{u: T(u) <= cut}, by halving, from T alone."""
    low, high = -39.0, 39.0
    if scale is None:
        return cut
    if not np.isfinite(cut) or scale.values(np.array([high]))[0] <= cut:
        return np.inf if cut > 0 or np.isfinite(cut) else -np.inf
    if scale.values(np.array([low]))[0] > cut:
        return -np.inf
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if scale.values(np.array([middle]))[0] <= cut else (low, middle)
    return low


def test_trees_are_a_sum_over_their_leaves():
    model = HistGradientBoostingRegressor(max_iter=4, max_leaf_nodes=12).fit(MIXED, Y)
    e = sl.explain(model, X, sigma=0.5, background=MIXED, scale=KINDS)
    assert e.is_exact
    trees = read_ensemble(model, is_margin=False).trees
    std, inf = e.std, np.full(3, np.inf)
    for row in range(len(X)):
        scales, u = e.row_scales.of_row(row), e.scores[row]
        total = trees.base[0]
        for root in trees.roots:
            for box in leaves(trees, root, -inf, inf):
                ends = [
                    ndtr((passed(scale, cut) - at) / s)
                    for end in box[:2]
                    for scale, cut, at, s in zip(scales, end, u, std, strict=True)
                ]
                total += box[2] * np.prod(np.subtract(ends[3:], ends[:3]))
        assert e.smoothed[row] == pytest.approx(total, abs=1e-12)


MODELS = {
    "hist": lambda: HistGradientBoostingRegressor(max_iter=30),
    "forest": lambda: RandomForestRegressor(15, random_state=0),
    "xgboost": lambda: xgboost.XGBRegressor(n_estimators=30),
    "lightgbm": lambda: lightgbm.LGBMRegressor(n_estimators=30, verbose=-1),
    "line": LinearRegression,
}


@pytest.mark.parametrize("name", MODELS)
def test_the_closed_form_is_what_draws_find(name):
    model = MODELS[name]().fit(MIXED, Y)
    settings = {"sigma": 0.5, "background": MIXED, "scale": KINDS}
    exact = sl.explain(model, X, **settings)
    assert exact.is_exact
    assert (exact.radius < 1e-8).all()
    drawn = sl.explain(model, X, method="stein", n_samples=16_384, **settings)
    assert (np.abs(exact.values - drawn.values) <= 5.5 * drawn.standard_error + 1e-9).all()
    np.testing.assert_array_equal(exact.prediction, drawn.prediction)
    if name == "line":
        np.testing.assert_allclose(exact.fidelity, drawn.fidelity, atol=0.03)


def test_answers_do_not_depend_on_the_rows_beside():
    model = HistGradientBoostingRegressor(max_iter=20).fit(MIXED, Y)
    for known in (model, LinearRegression().fit(MIXED, Y)):
        together = sl.explain(known, X, sigma=0.5, background=MIXED, scale="ranks")
        for row in range(len(X)):
            alone = sl.explain(known, X[row], sigma=0.5, background=MIXED, scale="ranks")
            np.testing.assert_allclose(alone.values[0], together.values[row], rtol=1e-12, atol=1e-14)


Z = RNG.multivariate_normal([0, 0, 0], [[1, 0.6, 0.2], [0.6, 1, 0], [0.2, 0, 1]], size=1_500)
TIED = np.column_stack([np.exp(Z[:, 0]), np.floor(np.exp(Z[:, 1])), Z[:, 2]])
FULL = sl.Neighbourhood.from_data(TIED, 0.5, full=True, scale=KINDS)


def test_a_line_has_a_closed_form_in_a_full_covariance():
    model = LinearRegression().fit(TIED, Y)
    assert not FULL.factor(3).is_diagonal
    exact, drawn = (
        sl.explain(model, TIED[:4], sigma=FULL, **more) for more in ({}, {"method": "stein", "n_samples": 16_384})
    )
    assert exact.is_exact
    assert (np.abs(exact.values - drawn.values) <= 5.5 * drawn.standard_error).all()
    np.testing.assert_allclose(exact.smoothed, drawn.smoothed, rtol=0.01, atol=0.01)
    assert np.isnan(exact.fidelity).all()


@pytest.mark.parametrize("sigma", ["diagonal", "full"])
def test_jumps_work_on_scales(sigma):
    model = HistGradientBoostingClassifier(max_iter=30).fit(TIED, Y > 1)
    around = FULL if sigma == "full" else sl.Neighbourhood.from_data(TIED, 0.5, scale=KINDS)
    x = np.vstack([TIED[:3], [1.0, 90.0, 0.0]])
    found = sl.explain(model, x, sigma=around, target=1, n_samples=4_096)
    assert found.method == "jumps"
    other = sl.explain(model, x, sigma=around, target=1, n_samples=16_384, method="clime")
    assert (
        np.abs(found.values - other.values) <= 5 * np.hypot(found.standard_error, other.standard_error) + 1e-9
    ).all()
    assert np.linalg.norm(found.standard_error) < np.linalg.norm(other.standard_error)


def test_certificates_of_jumps_hold_on_scales():
    model = HistGradientBoostingClassifier(max_iter=15).fit(TIED, Y > 1)
    around = sl.Neighbourhood.from_data(TIED, 0.5, scale=KINDS)
    x = np.vstack([TIED[:3], [1.0, 90.0, 0.0]])
    vouched = sl.explain(model, x, sigma=around, target=1, guarantee="certified", n_samples=8_192)
    assert vouched.method == "jumps"
    best = sl.explain(model, x, sigma=around, target=1, n_samples=32_768)
    away = np.linalg.norm(vouched.standardised - best.standardised, axis=1)
    assert (away <= vouched.radius + best.radius).all()
    assert (vouched.radius < 0.2).all()


def test_margins_are_controls_on_scales():
    model = HistGradientBoostingClassifier(max_iter=30).fit(MIXED, Y > 1)
    settings = {"sigma": 0.5, "background": MIXED, "scale": KINDS, "target": 1, "n_samples": 2_048}
    plain, controlled = (
        sl.explain(model, X, method=sl.Differences(control=control), **settings) for control in ("none", "margin")
    )
    error = np.hypot(plain.standard_error, controlled.standard_error)
    assert (np.abs(plain.values - controlled.values) <= 5 * error + 1e-9).all()
    assert np.linalg.norm(controlled.standard_error) < np.linalg.norm(plain.standard_error)


def test_what_has_no_closed_form_says_why():
    settings = {"sigma": 0.5, "background": MIXED, "scale": KINDS, "method": "exact"}
    curved = PoissonRegressor().fit(MIXED, MIXED[:, 1])
    with pytest.raises(NoClosedForm, match="it is a curve of a sum, and steps are taken in logarithms or ranks"):
        sl.explain(curved, X, **settings)
    assert sl.explain(curved, X, n_samples=256, **settings | {"method": "auto"}).method == "clime"
    logistic = LogisticRegression().fit(MIXED, Y > 1)
    assert sl.explain(logistic, X, output="margin", **settings).is_exact
    zero = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, zero_as_missing=True).fit(MIXED, Y)
    with pytest.raises(NoClosedForm, match="the trees take 0 for missing, and steps in ranks meet it at feature 1"):
        sl.explain(zero, X, **settings)
    found = sl.explain(zero, X[:2], n_samples=1_024, **settings | {"method": "auto"})
    assert found.method == "clime"


def test_a_missing_value_has_no_slope_and_others_do():
    model = HistGradientBoostingRegressor(max_iter=20).fit(MIXED, Y)
    x = X.copy()
    x[0, 1] = np.nan
    settings = {"sigma": 0.5, "background": MIXED, "scale": KINDS}
    found = sl.explain(model, x, **settings)
    other = sl.explain(model, x[:1], fixed=[1], **settings)
    np.testing.assert_allclose(found.values[0, [0, 2]], other.values[0, [0, 2]], rtol=1e-12)

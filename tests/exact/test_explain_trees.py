"""Trees through the front door: exact with no options, and honest where they are not."""

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier

import smoothlime as sl
from smoothlime.errors import CategoriesPerturbed, NoClosedForm

CANCER, SICK = load_breast_cancer(return_X_y=True, as_frame=True)
DIABETES, SUGAR = load_diabetes(return_X_y=True, as_frame=True)
WINE, GROWER = load_wine(return_X_y=True, as_frame=True)

CAT = {"iterations": 30, "depth": 4, "random_seed": 0, "verbose": 0, "allow_writing_files": False}

MODELS = {
    "forest": (lambda: RandomForestClassifier(30, random_state=0), CANCER, SICK, {"target": "1"}),
    "forest of three": (lambda: RandomForestClassifier(30, random_state=0), WINE, GROWER, {"target": "predicted"}),
    "forest regressor": (lambda: RandomForestRegressor(20, random_state=0), DIABETES, SUGAR, {}),
    "extra trees": (lambda: ExtraTreesRegressor(20, random_state=0), DIABETES, SUGAR, {}),
    "tree": (lambda: DecisionTreeClassifier(max_depth=4, random_state=0), CANCER, SICK, {"target": 1}),
    "boosting margin": (lambda: GradientBoostingClassifier(n_estimators=30), CANCER, SICK, {"output": "margin"}),
    "hist": (lambda: HistGradientBoostingRegressor(max_iter=30), DIABETES, SUGAR, {}),
    "hist margin": (lambda: HistGradientBoostingClassifier(max_iter=30), CANCER, SICK, {"output": "margin"}),
    "xgboost": (lambda: xgboost.XGBRegressor(n_estimators=40), DIABETES, SUGAR, {}),
    "xgboost margin": (lambda: xgboost.XGBClassifier(n_estimators=40), CANCER, SICK, {"output": "margin"}),
    "xgboost of three": (
        lambda: xgboost.XGBClassifier(n_estimators=20),
        WINE,
        GROWER,
        {"output": "margin", "target": {"0": 1, "2": -1}},
    ),
    "lightgbm": (lambda: lightgbm.LGBMRegressor(n_estimators=40, verbose=-1), DIABETES, SUGAR, {}),
    "lightgbm margin": (
        lambda: lightgbm.LGBMClassifier(n_estimators=40, verbose=-1),
        CANCER,
        SICK,
        {"output": "margin"},
    ),
    "catboost": (lambda: catboost.CatBoostRegressor(**CAT), DIABETES, SUGAR, {}),
    "catboost margin": (lambda: catboost.CatBoostClassifier(**CAT), CANCER, SICK, {"output": "margin"}),
    "catboost of three": (lambda: catboost.CatBoostClassifier(**CAT), WINE, GROWER, {"output": "margin", "target": 2}),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: make().fit(data, labels) for name, (make, data, labels, _) in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_no_options_are_needed_for_an_exact_answer(fitted, name):
    _, data, _, question = MODELS[name]
    around = {"background": data, "sigma": 0.5, **question}
    e = sl.explain(fitted[name], data.iloc[:3], **around)
    drawn = sl.explain(fitted[name], data.iloc[:3], method="clime", design="iid", n_samples=200_000, **around)
    assert e.is_exact
    assert e.feature_names == tuple(data.columns)
    assert (e.standard_error == 0).all()
    np.testing.assert_allclose(e.prediction, drawn.prediction, rtol=1e-6, atol=1e-6)
    apart = np.abs(e.values - drawn.values) / drawn.standard_error
    assert apart.max() < 5.3  # Student's t with 31 degrees of freedom passes this once in 1e5; there are about 1,000
    assert np.sqrt((apart**2).mean()) < 1.3
    assert np.median(drawn.standard_error * drawn.std) < 0.1 * np.linalg.norm(e.standardised, axis=1).max()
    assert (e.radius < 1e-9 * np.linalg.norm(e.standardised, axis=1).max()).all()


def test_frames_and_arrays_give_the_same(fitted):
    model = RandomForestClassifier(30, random_state=0).fit(CANCER.to_numpy(), SICK)
    around = sl.Neighbourhood.from_data(CANCER.to_numpy(), 0.5)
    by_array = sl.explain(model, CANCER.to_numpy()[:3], sigma=around, target="1")
    by_frame = sl.explain(fitted["forest"], CANCER.iloc[:3], background=CANCER, sigma=0.5, target="1")
    np.testing.assert_array_equal(by_array.values, by_frame.values)


@pytest.mark.parametrize("name", ["xgboost margin", "lightgbm margin", "hist margin"])
def test_missing_values_follow_their_direction(fitted, name):
    rows = CANCER.iloc[:3].copy()
    rows.iloc[1, 2] = np.nan
    e = sl.explain(fitted[name], rows, background=CANCER, sigma=0.5, output="margin")
    assert e.is_exact
    assert np.argwhere(np.isnan(e.values)).tolist() == [[1, 2]]
    assert np.argwhere(e.missing).tolist() == [[1, 2]]
    whole = sl.explain(fitted[name], CANCER.iloc[:3], background=CANCER, sigma=0.5, output="margin")
    np.testing.assert_array_equal(e.values[[0, 2]], whole.values[[0, 2]])
    drawn = sl.explain(fitted[name], rows[1:2], background=CANCER, sigma=0.5, output="margin", method="clime")
    assert np.nanmax(np.abs(drawn.values - e[1].values) / drawn.standard_error) < 5


@pytest.mark.parametrize("name", ["boosting margin", "xgboost margin", "lightgbm margin"])
def test_probabilities_of_boosting_are_drawn(fitted, name):
    e = sl.explain(fitted[name], CANCER.iloc[:1], background=CANCER, target="1", max_samples=512, rtol=0.9, atol=0.5)
    assert e.method == "jumps"
    with pytest.raises(NoClosedForm, match=r"by a curve.*output='margin'"):
        sl.explain(fitted[name], CANCER.iloc[:1], background=CANCER, target="1", method="exact")


def test_a_full_covariance_is_drawn(fitted):
    model, rows = fitted["xgboost"], DIABETES.iloc[:1]
    around = sl.Neighbourhood.from_data(DIABETES, 0.5, full=True)
    assert sl.explain(model, rows, sigma=around, max_samples=512, rtol=0.9, atol=99).method == "jumps"
    with pytest.raises(NoClosedForm, match="Σ is full"):
        sl.explain(model, rows, sigma=around, method="exact")


def test_fixed_features_decide_by_their_value(fitted):
    model, rows = fitted["xgboost"], DIABETES.iloc[:2]
    around = sl.Neighbourhood.from_data(DIABETES, 0.5, fixed=["bmi"])
    e = sl.explain(model, rows, sigma=around)
    drawn = sl.explain(model, rows, sigma=around, method="clime", design="iid", n_samples=100_000)
    assert np.isnan(e.values[:, 2]).all()
    assert np.nanmax(np.abs(e.values - drawn.values) / drawn.standard_error) < 5.3


def test_ten_thousand_rows_in_bounded_memory(fitted):
    import tracemalloc

    rows = DIABETES.sample(10_000, replace=True, random_state=0)
    seen = []
    tracemalloc.start()
    e = sl.explain(
        fitted["xgboost"], rows, background=DIABETES, progress=lambda done, total: seen.append((done, total))
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(e) == 10_000
    assert peak < 100e6
    assert seen[-1] == (10_000, 10_000)
    assert len(seen) >= 10


def test_without_numba_auto_draws_and_exact_says_what_to_install(fitted, hide):
    hide("numba")
    model, rows, question = fitted["tree"], CANCER.iloc[:1], {"background": CANCER, "target": "1"}
    assert sl.explain(model, rows, max_samples=512, rtol=0.9, atol=9, **question).method == "differences"
    with pytest.raises(NoClosedForm, match=r"numba is needed to explain trees exactly.*smoothlime\[trees\]"):
        sl.explain(model, rows, method="exact", **question)


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_a_path_over_sigma_needs_no_draws(fitted, method):
    row, sigmas = DIABETES.iloc[[5]], [0.1, 0.5, 2.0]
    path = sl.sigma_path(fitted["xgboost"], row, sigmas, background=DIABETES, method=method)
    for sigma, e in zip(sigmas, path.explanations, strict=True):
        assert e.is_exact
        np.testing.assert_array_equal(
            e.values, sl.explain(fitted["xgboost"], row, background=DIABETES, sigma=sigma).values
        )
    assert "exact" in str(path)
    path.plot()


def test_outputs_near_zero_do_not_spoil_the_reading():
    rows = np.random.default_rng(0).normal(size=(2_000, 4))
    model = xgboost.XGBRegressor(n_estimators=100, max_depth=4, learning_rate=0.1).fit(
        rows, 2 * rows[:, 0] + np.sin(3 * rows[:, 1])
    )
    e = sl.explain(model, rows)
    assert e.is_exact
    np.testing.assert_array_equal(e.values[:3], sl.explain(model, rows[:3]).values)


@pytest.mark.parametrize("kind", [xgboost.XGBRegressor, lightgbm.LGBMRegressor])
def test_subclasses_are_asked(kind):
    class Positive(kind):
        def predict(self, X, **more):
            return np.maximum(super().predict(X, **more), 150.0)

    more = {"verbose": -1} if kind is lightgbm.LGBMRegressor else {}
    model = Positive(n_estimators=20, **more).fit(DIABETES.to_numpy(), SUGAR)
    rows = DIABETES.to_numpy()[:2]
    assert sl.explain(model, rows, max_samples=512, rtol=0.9, atol=1e9).method == "clime"
    with pytest.raises(NoClosedForm):
        sl.explain(model, rows, method="exact")


def test_categories_of_a_perturbed_feature_are_asked_and_of_a_fixed_one_are_exact():
    rows = np.random.default_rng(0).normal(size=(500, 3))
    rows[:, 2] = np.arange(500) % 4
    model = HistGradientBoostingRegressor(max_iter=20, categorical_features=[2]).fit(
        rows, rows[:, 0] + (rows[:, 2] == 2)
    )
    with pytest.warns(CategoriesPerturbed, match="'x2' is a category to the HistGradientBoostingRegressor"):
        assert sl.explain(model, rows[:2], max_samples=512, rtol=0.9, atol=9).method == "clime"
    with pytest.raises(NoClosedForm, match="the trees split on categories of feature 2, which is perturbed"):
        sl.explain(model, rows[:2], method="exact")
    assert sl.explain(model, rows[:2], sigma=sl.Neighbourhood(fixed=[2])).is_exact


def test_rounding_of_many_trees_is_allowed_for():
    model = xgboost.XGBClassifier(n_estimators=500, max_depth=6).fit(CANCER, SICK)
    e = sl.explain(model, CANCER, background=CANCER, output="margin")
    assert e.is_exact


def test_a_model_without_trees_is_its_base():
    model = xgboost.XGBRegressor(n_estimators=0).fit(DIABETES, SUGAR)
    e = sl.explain(model, DIABETES.iloc[:2], background=DIABETES, method="exact")
    np.testing.assert_array_equal(e.values, 0)
    np.testing.assert_allclose(e.smoothed, e.prediction, rtol=1e-6)
    np.testing.assert_array_equal(e.radius, 0)


# ---- models that round


def stamped(level, height, **settings):
    """A regressor whose target lies far from 0 next to how it varies, and two features."""
    rows = np.random.default_rng(0).normal(size=(1_000, 2))
    target = level + height * (np.sin(2 * rows[:, 0]) + 0.3 * rows[:, 1])
    return xgboost.XGBRegressor(n_jobs=1, **settings).fit(rows, target)


ROUNDS = {
    "a million and a half": (1e6, 0.5, {"max_depth": 3}),
    "nothing is left": (1e6, 0.5, {"max_depth": 3, "n_estimators": 300, "learning_rate": 0.01}),
    "time stamps": (1.7e9, 86_400, {"max_depth": 4, "n_estimators": 300, "learning_rate": 0.02}),
}


@pytest.mark.parametrize("kind", ROUNDS)
def test_a_model_that_rounds_its_leaves_away_is_drawn(kind):
    level, height, settings = ROUNDS[kind]
    model, x = stamped(level, height, **settings), np.zeros((1, 2))
    e = sl.explain(model, x, sigma=0.3, n_samples=None, rtol=0.2, atol=1e9)
    assert not e.is_exact
    with pytest.raises(
        NoClosedForm, match=r"the XGBRegressor rounds its outputs.*is lost; fit it to a target less its"
    ):
        sl.explain(model, x, sigma=0.3, method="exact")


def test_the_same_model_of_a_target_less_its_mean_is_exact():
    e = sl.explain(stamped(0.0, 0.5, max_depth=3), np.zeros((1, 2)), sigma=0.3, method="exact")
    assert e.n_evaluations.tolist() == [33]


@pytest.mark.parametrize("sigma", [1e-6, 1e-3, 1e-2, 0.1, 1.0])
@pytest.mark.parametrize("name", ["xgboost", "xgboost margin", "xgboost of three", "lightgbm", "hist", "extra trees"])
def test_ordinary_models_are_exact_in_small_and_in_large_neighbourhoods(fitted, name, sigma):
    """Also where nothing varies, and where XGBoost rounds what hardly does."""
    _, data, _, question = MODELS[name]
    for rows in (data.iloc[:1], data.iloc[:60]):
        assert sl.explain(fitted[name], rows, background=data, sigma=sigma, method="exact", **question).is_exact


def test_what_outputs_can_vary_by_is_the_sum_of_the_ranges_of_leaves():
    from smoothlime.exact.trees.form import TreesForm
    from smoothlime.exact.trees.format import join_trees

    def step(*leaves):
        return {"feature": [0, -1, -1], "threshold": [0.0] * 3, "left": [1, 0, 0], "right": [2, 0, 0],
                "nan_left": [True] * 3, "value": [np.zeros_like(leaves[0]), *leaves]}  # fmt: skip

    by_class = join_trees([step(5.0, 6.0), step(9.0, 7.0), step(1.0, 1.5)], base=[0, 0], n_features=1, target=[0, 1, 0])
    assert TreesForm(by_class).spread.tolist() == [1.5, 2.0]
    vector = join_trees([step([5.0, 1.0], [6.0, 0.0])] * 2, base=[0, 0], n_features=1, averaged=True)
    assert TreesForm(vector).spread.tolist() == [1.0, 1.0]
    assert TreesForm(join_trees([], base=[0.0], n_features=1)).spread.tolist() == [0.0]

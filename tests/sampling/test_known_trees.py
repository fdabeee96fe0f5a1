"""Jumps of known trees through `explain`: what `auto` takes for probabilities of boosted trees, and where else."""

import copy
import dataclasses
import warnings

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression

import smoothlime as sl
from smoothlime.errors import InvalidArgument, ModelError, NoClosedForm
from smoothlime.estimators import Jumps
from smoothlime.exact.trees.read.recognise import Access
from smoothlime.models.estimator import EstimatorModel

CANCER, SICK = load_breast_cancer(return_X_y=True, as_frame=True)
WINE, GROWER = load_wine(return_X_y=True, as_frame=True)
DIABETES, PROGRESS = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
IRIS, SPECIES = load_iris(return_X_y=True)

QUICK = {"n_estimators": 15, "n_jobs": 1}
MODELS = {
    "boosting": (lambda: GradientBoostingClassifier(n_estimators=15, random_state=0), CANCER, SICK),
    "boosting, exponential loss": (
        lambda: GradientBoostingClassifier(n_estimators=15, loss="exponential", random_state=0), CANCER, SICK,
    ),
    "boosting of three": (lambda: GradientBoostingClassifier(n_estimators=10, random_state=0), WINE, GROWER),
    "hist": (lambda: HistGradientBoostingClassifier(max_iter=15), CANCER, SICK),
    "hist of three": (lambda: HistGradientBoostingClassifier(max_iter=10), WINE, GROWER),
    "hist, Poisson": (lambda: HistGradientBoostingRegressor(loss="poisson", max_iter=15), DIABETES, PROGRESS),
    "xgboost": (lambda: xgboost.XGBClassifier(**QUICK), CANCER, SICK),
    "xgboost of three": (lambda: xgboost.XGBClassifier(**QUICK), WINE, GROWER),
    "xgboost, gamma": (lambda: xgboost.XGBRegressor(objective="reg:gamma", **QUICK), DIABETES, PROGRESS),
    "xgboost, share": (lambda: xgboost.XGBRegressor(objective="reg:logistic", **QUICK), CANCER, SICK),
    "lightgbm": (lambda: lightgbm.LGBMClassifier(verbose=-1, **QUICK), CANCER, SICK),
    "lightgbm, sharper": (lambda: lightgbm.LGBMClassifier(verbose=-1, sigmoid=1.3, **QUICK), CANCER, SICK),
    "lightgbm of three": (lambda: lightgbm.LGBMClassifier(verbose=-1, **QUICK), WINE, GROWER),
    "lightgbm, one against the rest": (
        lambda: lightgbm.LGBMClassifier(verbose=-1, objective="multiclassova", **QUICK), WINE, GROWER,
    ),
    "lightgbm, tweedie": (lambda: lightgbm.LGBMRegressor(objective="tweedie", verbose=-1, **QUICK), DIABETES, PROGRESS),
}  # fmt: skip
FEW = ("lightgbm", "lightgbm of three", "xgboost")


@pytest.fixture(scope="module")
def fitted():
    return {name: make().fit(data, labels) for name, (make, data, labels) in MODELS.items()}


def explain(model, rows, data=CANCER, sigma=0.5, target=1, n_samples=512, **more):
    return sl.explain(model, rows, background=data, sigma=sigma, target=target, n_samples=n_samples, **more)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_auto_takes_them_and_they_agree_with_draws_that_only_ask_the_model(fitted, name):
    model, data, _ = fitted[name], *MODELS[name][1:]
    rows, target = data.iloc[[5, 60, 100]], 1 if hasattr(model, "classes_") else None
    e = explain(model, rows, data, target=target, n_samples=4_096)
    assert (e.method, e.design) == ("jumps", "sobol")
    asked = {"target": target, "n_samples": 100_000, "method": "clime", "design": "antithetic", "seed": 1}
    reference = explain(model, rows, data, **asked)
    answers = getattr(model, "predict_proba", model.predict)(rows)
    np.testing.assert_allclose(e.prediction, answers if target is None else answers[:, target], rtol=1e-6)
    apart = np.abs(e.values - reference.values) / np.hypot(e.standard_error, reference.standard_error)
    assert apart.max() < 5.5  # Student's t with 15 degrees of freedom passes this once in 16,000; there are about 500
    assert np.sqrt((apart**2).mean()) < 1.25
    assert (e.standard_error.sum(axis=1) < 0.7 * reference.standard_error.sum(axis=1)).all()
    np.testing.assert_allclose(e.smoothed, reference.smoothed, rtol=0.02)
    np.testing.assert_allclose(e.fidelity, reference.fidelity, atol=0.1)


@pytest.mark.parametrize("name", FEW)
def test_the_model_is_asked_at_the_rows_and_never_for_draws(fitted, name, monkeypatch):
    asked = []
    values = EstimatorModel.values
    monkeypatch.setattr(
        EstimatorModel, "values", lambda self, points: asked.append(len(points)) or values(self, points)
    )
    _, data, _ = MODELS[name]
    e = explain(fitted[name], data.iloc[:8], data)
    assert sum(asked) == e.n_evaluations.sum()
    assert (e.n_evaluations <= 40).all()
    assert (e.n_samples == 512).all()


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("design", Jumps.designs)
def test_what_is_smoothed_is_the_model_at_the_draws_that_can_be_made_again(fitted, name, design):
    _, data, _ = MODELS[name]
    e = explain(fitted[name], data.iloc[[5, 60]], data, design=design, method="jumps")
    for row in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs = fitted[name].predict_proba(e.perturbations(row))[:, 1]
        assert len(outputs) == e.n_samples[row]
        np.testing.assert_allclose(e.smoothed[row], outputs.mean(), rtol=1e-6)


def test_every_target_is_explained_from_the_same_draws(fitted):
    model, rows = fitted["lightgbm of three"], WINE.iloc[[3, 80, 150]]
    each = sl.explain_outputs(model, rows, background=WINE, sigma=0.5, n_samples=1_024, design="iid")
    assert {e.method for e in each.values()} == {"jumps"}
    predicted = explain(model, rows, WINE, target="predicted", n_samples=1_024, design="iid")
    for row, name in enumerate(predicted.row_outputs):
        np.testing.assert_allclose(predicted.values[row], each[name].values[row], rtol=1e-9, atol=1e-15)
    contrast = explain(model, rows, WINE, target={"0": 2, "2": -1}, n_samples=1_024, design="iid")
    by_hand = 2 * each["0"] - each["2"]
    assert (np.abs(contrast.values - by_hand.values) < 2 * by_hand.standard_error + 1e-12).all()
    asked = {"n_samples": 1_024, "design": "iid", "method": sl.Jumps(control="none")}
    plain = sl.explain_outputs(model, rows, background=WINE, sigma=0.5, **asked)
    total = plain["0"] + plain["1"] + plain["2"]
    np.testing.assert_allclose(total.values * total.std, 0, atol=1e-13)
    np.testing.assert_allclose(total.standard_error * total.std, 0, atol=1e-3)  # but for what no draw has met


def test_the_two_classes_of_a_binary_model_mirror_each_other(fitted):
    asked = {"background": CANCER, "sigma": 0.5, "n_samples": 512, "design": "iid"}
    for control in ("margin", "none"):
        each = sl.explain_outputs(fitted["xgboost"], CANCER.iloc[:5], method=sl.Jumps(control=control), **asked)
        total = each["0"] + each["1"]
        np.testing.assert_allclose(total.values * total.std, 0, atol=1e-13)
        np.testing.assert_allclose(total.standard_error * total.std, 0, atol=1e-13)


def test_the_estimate_is_what_a_fit_without_each_group_gives(fitted):
    """Done again from what the trees say at the draws."""
    from smoothlime.exact.curves import Curve
    from smoothlime.exact.trees.jumps import find_jumps, plan_jumps
    from smoothlime.exact.trees.read.recognise import read_trees

    model, row = fitted["xgboost"], CANCER.iloc[[20]]
    e = explain(model, row, sigma=1.0, n_samples=512, design="iid")
    known = sl.explain(model, row, background=CANCER, sigma=1.0, output="margin")
    trees, factor = read_trees(model, "margin"), e.neighbourhood.factor(30)
    steps = (e.perturbations(0) - row.to_numpy())[None]
    curve, weights = Curve("logistic", mirrors=True), np.array([[[0.0, 1.0]]])
    found = find_jumps(trees, plan_jumps(trees), curve, row.to_numpy(), steps, factor, weights, np.ones((1, 1, 1)))
    y, h = found.slopes[0, 0] * e.std, (found.of_margin[0, 0] - known.values[0]) * e.std
    group = np.arange(512) % 32
    means = np.empty((32, 30))
    for g in range(32):
        rest = group != g
        from_mean = h[rest] - h[rest].mean(axis=0)
        means[g] = (y - h * (y[rest] * from_mean).sum() / (h[rest] * from_mean).sum())[~rest].mean(axis=0)
    np.testing.assert_allclose(e.standardised[0], means.mean(axis=0), rtol=1e-8, atol=1e-12)
    error = means.std(axis=0, ddof=1) / np.sqrt(32)
    told = np.abs(h.mean(axis=0)) < 1.5 * h.reshape(16, 32, 30).mean(axis=0).std(axis=0, ddof=1) / np.sqrt(32)
    assert told.sum() > 15
    np.testing.assert_allclose((e.standard_error * e.std)[0, told], error[told], rtol=1e-6)
    assert np.abs(y.mean(axis=0) - means.mean(axis=0)).max() > 1e-4  # the test sees the control at work


def test_the_margin_takes_error_away(fitted):
    rows = CANCER.iloc[[20, 40, 60]]
    sizes = [
        np.linalg.norm(e.standard_error * e.std, axis=1)
        for e in (
            explain(fitted["lightgbm"], rows, method=sl.Jumps(control=control), design="iid")
            for control in ("margin", "none")
        )
    ]
    assert (sizes[0] < 0.9 * sizes[1]).all()


def test_a_plain_sum_leaves_no_error_where_its_own_slope_is_the_control(fitted):
    model, rows = fitted["lightgbm"], CANCER.iloc[[20, 40]]
    exact = sl.explain(model, rows, background=CANCER, sigma=0.5, output="margin")
    e = sl.explain(model, rows, background=CANCER, sigma=0.5, output="margin", method="jumps")
    size = np.linalg.norm(exact.standardised, axis=1)
    assert (np.linalg.norm(e.standardised - exact.standardised, axis=1) < 1e-9 * size).all()
    assert (e.radius < 0.01 * size).all()  # what no draw has met is in it all the same


def test_a_full_covariance_of_any_trees_is_drawn_by_jumps():
    around = sl.Neighbourhood.from_data(WINE, 0.5, full=True)
    rows = WINE.iloc[[3, 80]]
    models = RandomForestClassifier(10, random_state=0), lightgbm.LGBMClassifier(verbose=-1, **QUICK)
    for model in models:
        model.fit(WINE, GROWER)
        e = sl.explain(model, rows, sigma=around, target=1, n_samples=4_096)
        assert e.method == "jumps"
        reference = sl.explain(model, rows, sigma=around, target=1, n_samples=60_000, method="clime", design="iid")
        apart = (e.values - reference.values) / np.hypot(e.standard_error, reference.standard_error)
        assert np.abs(apart).max() < 5
        assert np.sqrt((apart**2).mean()) < 1.35
    forest = RandomForestRegressor(10, random_state=0).fit(DIABETES, PROGRESS)
    correlated = sl.Neighbourhood.from_data(DIABETES, 0.5, full=True)
    assert sl.explain(forest, DIABETES.iloc[:1], sigma=correlated, n_samples=256).method == "jumps"
    assert sl.explain(forest, DIABETES.iloc[:1], background=DIABETES).is_exact


def test_missing_values_are_held_and_have_no_slope():
    data = WINE.copy()
    data.iloc[::3, 9] = np.nan
    model = lightgbm.LGBMClassifier(verbose=-1, **QUICK).fit(data, GROWER)
    rows = data.iloc[[3, 80]].copy()
    rows.iloc[:, 9] = [np.nan, 4.0]
    e = explain(model, rows, WINE, n_samples=2_048)
    assert e.method == "jumps"
    assert np.isnan([e.values[0, 9], e.standard_error[0, 9]]).all()
    assert e.values[1, 9] != 0
    held = sl.Neighbourhood.from_data(WINE, 0.5, fixed=["color_intensity"])
    asked = {"sigma": held, "target": 1, "n_samples": 60_000, "method": "clime", "design": "iid"}
    reference = sl.explain(model, rows.iloc[:1], **asked)
    apart = (e[0].values - reference.values) / np.hypot(e[0].standard_error, reference.standard_error)
    assert np.nanmax(np.abs(apart)) < 5
    full = sl.explain(
        model, rows.iloc[:1], sigma=sl.Neighbourhood.from_data(WINE, 0.5, full=True), target=1, n_samples=256
    )
    assert np.isnan(full.values[0, 9])
    assert np.isfinite(full.values).sum() == full.values.size - 1


def test_models_that_take_no_missing_values_refuse_them_as_ever(fitted):
    rows = CANCER.iloc[:2].copy()
    rows.iloc[:, 3] = np.nan
    with pytest.raises(ModelError, match=r"Row 0 has gaps in 'mean area', and another row has some\."):
        explain(fitted["boosting"], rows)


def test_held_features_and_categories_keep_their_value():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(2_000, 3)), rng.integers(4, size=2_000)])
    y = (X[:, 0] + (X[:, 3] == 2) * X[:, 1] > 0).astype(int)
    grown = lightgbm.LGBMClassifier(verbose=-1, min_data_per_group=5, cat_smooth=1, max_cat_to_onehot=1, **QUICK)
    model = grown.fit(X, y, categorical_feature=[3])
    around = sl.Neighbourhood(0.5, fixed=[3])
    rows = np.array([[0.1, 0.2, 0.0, 2.0], [0.1, 0.2, 0.0, 1.0]])
    e = sl.explain(model, rows, sigma=around, target=1, n_samples=2_048)
    assert e.method == "jumps"
    assert np.isnan(e.values[:, 3]).all()
    reference = sl.explain(model, rows, sigma=around, target=1, n_samples=60_000, method="clime", design="iid")
    apart = (e.values - reference.values)[:, :3] / np.hypot(e.standard_error, reference.standard_error)[:, :3]
    assert np.abs(apart).max() < 5
    assert np.abs(e.values[0, 1] - e.values[1, 1]) > 10 * e.standard_error[:, 1].max()
    with pytest.warns(sl.errors.CategoriesPerturbed):
        assert sl.explain(model, rows, sigma=0.5, target=1, n_samples=256).method != "jumps"
    with pytest.raises(NoClosedForm, match="split on categories of feature 3, which is perturbed"):
        sl.explain(model, rows, sigma=0.5, target=1, n_samples=256, method="jumps")


@pytest.mark.parametrize("draws", ["shared", "independent"])
def test_batches_panels_and_company_change_rounding_only(fitted, draws, monkeypatch):
    import smoothlime.sampling.loop

    model, rows = fitted["lightgbm of three"], WINE.iloc[[3, 80, 150]]
    whole = explain(model, rows, WINE, draws=draws)
    alike = {"rtol": 1e-9, "atol": 1e-14}
    small = explain(model, rows, WINE, draws=draws, batch_size=100)
    np.testing.assert_allclose(small.values, whole.values, **alike)
    np.testing.assert_allclose(small.standard_error, whole.standard_error, **alike)
    first = explain(model, rows.iloc[:1], WINE, draws=draws)
    np.testing.assert_allclose(first.values, whole.values[:1], **alike)
    monkeypatch.setattr(smoothlime.sampling.loop, "STATE_BYTES", 1)
    np.testing.assert_allclose(explain(model, rows, WINE, draws=draws).values, whole.values, **alike)


def test_rows_arithmetic_and_files_work_as_ever(fitted, tmp_path, assert_same):
    model, rows = fitted["lightgbm of three"], WINE.iloc[[3, 80, 150]]
    e = explain(model, rows, WINE, method=sl.Jumps(control="none"), design="iid")
    assert_same(e[1], e[1:2])
    with warnings.catch_warnings():
        warnings.simplefilter("error", sl.errors.ErrorsAdded)  # common draws: errors are combined
        difference = e[0] - e[0]
    np.testing.assert_array_equal(difference.standard_error, 0)
    for suffix in ("json", "parquet"):
        e.save(tmp_path / f"e.{suffix}")
        loaded = sl.load(tmp_path / f"e.{suffix}")
        assert_same(loaded, e)
        assert loaded.provenance.method == sl.Jumps(control="none")
    np.testing.assert_array_equal(loaded.perturbations(1), e.perturbations(1))


def test_a_path_over_sigma_has_the_numbers_of_explain(fitted):
    model, row = fitted["lightgbm of three"], WINE.iloc[[80]]
    path = sl.sigma_path(model, row, [0.2, 1.0], background=WINE, target=1, n_samples=512)
    for sigma, e in zip((0.2, 1.0), path.explanations, strict=True):
        again = explain(model, row, WINE, sigma=sigma, method="jumps", design=e.design)
        assert e.method == "jumps"
        np.testing.assert_allclose(e.values, again.values, rtol=1e-9)


def test_a_row_around_which_nothing_moves_has_no_slope(fitted):
    model = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(IRIS, SPECIES)
    e = sl.explain(model, IRIS[:1], sigma=0.01, target=1)
    assert e.method == "jumps"
    np.testing.assert_array_equal(e.values, 0)
    np.testing.assert_array_equal(e.standard_error, 0)
    assert e.converged.all()


@pytest.mark.parametrize("control", ["margin", "none"])
def test_one_feature_needs_no_draws_at_all(control):
    X = np.random.default_rng(0).normal(size=(300, 1))
    model = xgboost.XGBClassifier(**QUICK).fit(X, X[:, 0] > 0.3)
    e = sl.explain(model, X[:2], sigma=0.5, target=1, n_samples=256, method=sl.Jumps(control=control))
    asked = {"method": "clime", "n_samples": 60_000, "design": "iid"}
    reference = sl.explain(model, X[:2], sigma=0.5, target=1, **asked)
    assert (np.abs(e.values - reference.values) < 5 * reference.standard_error).all()
    assert (e.standard_error < 1e-9).all()


# ---- where there is none


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (lambda a: a[:, 0], "only models of scikit-learn and its kin"),
        (LogisticRegression(max_iter=5_000).fit(WINE.to_numpy(), GROWER), "a LogisticRegression is not made of trees"),
    ],
)
def test_other_models_are_refused_by_name(model, why):
    with pytest.raises(NoClosedForm, match=f"method='jumps' needs trees whose outputs we know: {why}"):
        sl.explain(model, WINE.to_numpy()[:1], method="jumps", target=0, sigma=0.5)


def test_trees_that_are_misread_are_not_used(fitted, monkeypatch):
    prove = Access.prove

    def misread(access):
        trees = prove(access)
        return dataclasses.replace(trees, base=trees.base + 0.1)

    monkeypatch.setattr(Access, "prove", misread)
    model = copy.deepcopy(fitted["lightgbm"])  # nothing is kept of it
    assert explain(model, CANCER.iloc[:1]).method != "jumps"
    with pytest.raises(NoClosedForm, match="its outputs are none of the curves of their sum that we know"):
        explain(model, CANCER.iloc[:1], method="jumps")


def test_other_curves_are_asked_instead():
    model = lightgbm.LGBMRegressor(objective="cross_entropy_lambda", verbose=-1, **QUICK).fit(CANCER, SICK)
    e = sl.explain(model, CANCER.iloc[:1], background=CANCER, sigma=0.5, n_samples=512)
    assert e.method != "jumps"


def test_without_numba_the_model_is_asked(fitted, hide):
    hide("numba")
    assert explain(fitted["lightgbm"], CANCER.iloc[:1]).method != "jumps"
    with pytest.raises(NoClosedForm, match="numba is needed"):
        explain(fitted["lightgbm"], CANCER.iloc[:1], method="jumps")


def test_what_asks_for_more_is_not_traded_for_jumps(fitted):
    model, rows = fitted["lightgbm"], CANCER.iloc[:1]
    assert explain(model, rows, design="orthogonal").method == "clime"
    assert explain(model, rows, method="clime").method == "clime"
    with pytest.raises(InvalidArgument, match="method 'jumps' cannot use design 'orthogonal'"):
        explain(model, rows, method="jumps", design="orthogonal")


def test_unknown_controls_are_refused():
    with pytest.raises(InvalidArgument, match=r"control must be one of 'none', 'margin'.*got 'magic'"):
        sl.Jumps(control="magic")

"""Probabilities of boosted classifiers by differences, with the exact margin as control variate."""

import copy
import dataclasses
import warnings

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import smoothlime as sl
from smoothlime.errors import InvalidArgument, NoClosedForm
from smoothlime.estimators import Differences
from smoothlime.exact.trees.read.recognise import Access
from smoothlime.models.estimator import EstimatorModel

CANCER, SICK = load_breast_cancer(return_X_y=True, as_frame=True)
WINE, GROWER = load_wine(return_X_y=True, as_frame=True)
IRIS, SPECIES = load_iris(return_X_y=True)

CONTROLLED = Differences(control="margin")

MODELS = {
    "boosting": (lambda: GradientBoostingClassifier(n_estimators=30, random_state=0), CANCER, SICK),
    "boosting of three": (lambda: GradientBoostingClassifier(n_estimators=20, random_state=0), WINE, GROWER),
    "hist": (lambda: HistGradientBoostingClassifier(max_iter=30), CANCER, SICK),
    "hist of three": (lambda: HistGradientBoostingClassifier(max_iter=20), WINE, GROWER),
    "xgboost": (lambda: xgboost.XGBClassifier(n_estimators=40), CANCER, SICK),
    "xgboost of three": (lambda: xgboost.XGBClassifier(n_estimators=20), WINE, GROWER),
    "lightgbm": (lambda: lightgbm.LGBMClassifier(n_estimators=40, verbose=-1), CANCER, SICK),
    "lightgbm of three": (lambda: lightgbm.LGBMClassifier(n_estimators=20, verbose=-1), WINE, GROWER),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: make().fit(data, labels) for name, (make, data, labels) in MODELS.items()}


def explain(model, rows, data=WINE, sigma=0.5, target=1, n_samples=1_024, method=CONTROLLED, **more):
    asked = {"sigma": sigma, "target": target, "n_samples": n_samples, "method": method}
    return sl.explain(model, rows, background=data, **asked, **more)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_answer_agrees_with_plain_draws_and_is_closer(fitted, name):
    _, data, _ = MODELS[name]
    rows = data.iloc[[5, 60, 100, 150]]
    e = explain(fitted[name], rows, data, n_samples=4_096)
    plain = explain(fitted[name], rows, data, n_samples=4_096, method="differences")
    reference = explain(fitted[name], rows, data, n_samples=100_000, method="clime", design="iid", seed=1)
    assert e.method == "differences"
    assert not e.is_exact
    assert e.provenance.method == Differences(control="margin")
    np.testing.assert_allclose(e.prediction, fitted[name].predict_proba(rows)[:, 1], rtol=1e-12)
    apart = np.abs(e.values - reference.values) / np.hypot(e.standard_error, reference.standard_error)
    assert apart.max() < 5.5  # Student's t with 31 degrees of freedom passes this once in 2e5; there are about 700
    assert np.sqrt((apart**2).mean()) < 1.25
    size = (e.standard_error * e.std).sum(axis=1) / (plain.standard_error * plain.std).sum(axis=1)
    assert (size < 1 + 1e-6).all()
    assert size.min() < 0.9


def test_the_estimate_is_what_a_fit_without_each_group_gives(fitted):
    """Done again by hand, from the points that were evaluated."""
    model, row = fitted["lightgbm of three"], WINE.iloc[[100]]
    e = explain(model, row, sigma=1.0)
    points = e.perturbations(0)
    table = pd.DataFrame(points, columns=WINE.columns)
    margins, outputs = model.predict(table, raw_score=True), model.predict_proba(table)[:, 1]
    z = ((points - row.to_numpy()) / e.std)[0::2]
    known = [
        sl.explain(model, row, background=WINE, output="margin", target=k).standardised[0] for k in range(3)
    ]  # exact
    h = (margins[0::2] - margins[1::2]) / 2 - z @ np.array(known).T
    y = (outputs[0::2] - outputs[1::2]) / 2
    m, d = z.shape
    omega = d / (z**2).sum(axis=1)
    group = (np.arange(m) // (e.provenance.block // 2)) % 32
    found = np.zeros(d)
    for g in range(32):
        own, rest = group == g, group != g
        w = omega[rest]
        s_h, s_y = (w * h[rest].T) @ z[rest], (w * y[rest]) @ z[rest]
        noise = ((w * y[rest] ** 2).sum() - (s_y**2).sum() / m) / m
        left = (w * h[rest].T) @ h[rest] - s_h @ s_h.T / m + noise / 0.25**2 * np.eye(3)
        c = np.linalg.solve(left, (w * h[rest].T) @ y[rest] - s_h @ s_y / m)
        found += (omega[own] * (y[own] - h[own] @ c)) @ z[own] / m
    np.testing.assert_allclose(e.standardised[0], found, rtol=1e-8, atol=1e-12)
    plain = explain(model, row, sigma=1.0, method="differences")
    assert np.abs(e.standardised - plain.standardised).max() > 1e-3  # the test sees the control at work


def test_the_result_says_that_the_margin_is_one_word_away(fitted):
    e = explain(fitted["xgboost"], CANCER.iloc[:1], CANCER)
    assert e.note == "the exact margin is its control variate; output='margin' is exact"
    for shown in (str(e), repr(e), e._repr_html_().replace("&#x27;", "'")):
        assert "output='margin' is exact" in shown
    assert sl.explain(fitted["xgboost"], CANCER.iloc[:1], background=CANCER, output="margin").is_exact
    plain = explain(fitted["xgboost"], CANCER.iloc[:1], CANCER, method="differences")
    assert plain.note == ""
    assert "margin" not in str(plain) + repr(plain) + plain._repr_html_()


def test_targets_are_those_of_any_model(fitted):
    model, rows = fitted["lightgbm of three"], WINE.iloc[[3, 80, 150]]
    each = sl.explain_outputs(model, rows, background=WINE, sigma=0.5, n_samples=1_024, method=CONTROLLED)
    predicted = explain(model, rows, target="predicted")
    contrast = explain(model, rows, target={"0": 2, "2": -1})
    for row, name in enumerate(predicted.row_outputs):
        np.testing.assert_allclose(predicted.values[row], each[name].values[row], rtol=1e-9, atol=1e-15)
    by_hand = 2 * each["0"] - each["2"]
    assert (np.abs(contrast.values - by_hand.values) < 2 * by_hand.standard_error).all()
    assert contrast.note == predicted.note == by_hand.note == each["1"].note != ""


def test_the_two_classes_of_a_binary_model_mirror_each_other(fitted):
    asked = {"background": CANCER, "sigma": 0.5, "n_samples": 1_024, "method": CONTROLLED}
    each = sl.explain_outputs(fitted["xgboost"], CANCER.iloc[:5], **asked)
    total = each["0"] + each["1"]
    np.testing.assert_allclose(total.values * total.std, 0, atol=1e-13)
    np.testing.assert_allclose(total.standard_error * total.std, 0, atol=1e-13)


@pytest.mark.parametrize("draws", ["shared", "independent"])
def test_batches_panels_and_company_change_rounding_only(fitted, draws, monkeypatch):
    import smoothlime.sampling.loop

    model, rows = fitted["lightgbm of three"], WINE.iloc[[3, 80, 150]]
    whole = explain(model, rows, draws=draws)
    alike = {"rtol": 1e-9, "atol": 1e-14}
    small = explain(model, rows, draws=draws, batch_size=100)
    np.testing.assert_allclose(small.values, whole.values, **alike)
    np.testing.assert_allclose(small.standard_error, whole.standard_error, **alike)
    first = explain(model, rows.iloc[:1], draws=draws)
    np.testing.assert_allclose(first.values, whole.values[:1], **alike)
    monkeypatch.setattr(smoothlime.sampling.loop, "STATE_BYTES", 1)
    np.testing.assert_allclose(explain(model, rows, draws=draws).values, whole.values, **alike)


def test_rows_stop_earlier(fitted):
    model, rows = fitted["lightgbm"], CANCER.iloc[[20, 40, 60]]
    question = {"background": CANCER, "target": 1, "rtol": 0.1, "sigma": 1.0}
    e = sl.explain(model, rows, method=CONTROLLED, **question)
    plain = sl.explain(model, rows, method="differences", **question)
    assert e.converged.all()
    assert (e.n_samples <= plain.n_samples).all()
    assert e.n_samples.sum() < 0.7 * plain.n_samples.sum()
    # the same draws, but other groups, on which coefficients are fitted
    again = explain(model, rows.iloc[:1], CANCER, sigma=1.0, n_samples=int(e.n_samples[0]))
    assert (np.abs(e.values[0] - again.values[0]) < again.standard_error[0]).all()


def test_rows_arithmetic_and_files_work_as_ever(fitted, tmp_path, assert_same):
    model, rows = fitted["lightgbm of three"], WINE.iloc[[3, 80, 150]]
    e = explain(model, rows)
    assert_same(e[1], e[1:2])
    np.testing.assert_array_equal((e[0] - e[1]).values, e.values[:1] - e.values[1:2])
    with warnings.catch_warnings():
        warnings.simplefilter("error", sl.errors.ErrorsAdded)  # common draws: errors are combined
        difference = e[0] - e[0]
    np.testing.assert_array_equal(difference.standard_error, 0)
    for suffix in ("json", "parquet"):
        e.save(tmp_path / f"e.{suffix}")
        loaded = sl.load(tmp_path / f"e.{suffix}")
        assert_same(loaded, e)
        assert loaded.note == e.note
    plain = explain(model, rows, method="differences")
    np.testing.assert_array_equal(e.perturbations(2), plain.perturbations(2))
    with pytest.warns(sl.errors.ErrorsAdded):
        _ = e - plain


def test_frames_and_arrays_give_the_same(fitted):
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1).fit(WINE.to_numpy(), GROWER)
    by_array = explain(model, WINE.to_numpy()[:2], WINE.to_numpy())
    by_frame = explain(fitted["lightgbm of three"], WINE.iloc[:2])
    np.testing.assert_allclose(by_array.values, by_frame.values, rtol=1e-12)
    assert by_array.note


def test_a_path_over_sigma_has_the_numbers_of_explain(fitted):
    model, row = fitted["lightgbm of three"], WINE.iloc[[80]]
    path = sl.sigma_path(model, row, [0.2, 1.0], background=WINE, target=1, n_samples=1_024, method=CONTROLLED)
    for sigma, e in zip((0.2, 1.0), path.explanations, strict=True):
        np.testing.assert_allclose(e.values, explain(model, row, sigma=sigma).values, rtol=1e-12)
        assert e.note


def test_features_that_are_missing_are_as_fixed_ones(fitted):
    model, rows = fitted["lightgbm"], CANCER.iloc[:2].copy()
    rows.iloc[:, 3] = np.nan
    missing = explain(model, rows, CANCER)
    around = sl.Neighbourhood.from_data(CANCER, 0.5, fixed=["mean area"])
    e = sl.explain(model, rows, sigma=around, target=1, n_samples=1_024, method=CONTROLLED)
    np.testing.assert_array_equal(missing.values, e.values)
    plain = sl.explain(model, rows, sigma=around, target=1, n_samples=1_024, method="differences")
    assert e.note
    assert np.isnan(e.values[:, 3]).all()
    assert (np.delete(np.abs(e.values - plain.values) / plain.standard_error, 3, axis=1) < 5).all()


def test_many_classes_share_one_combination_of_margins():
    digits, labels = load_digits(return_X_y=True)
    model = HistGradientBoostingClassifier(max_iter=15, max_leaf_nodes=8).fit(digits, labels)
    rows = digits[[3, 10, 40]]
    question = {"sigma": 4.0, "target": "predicted", "n_samples": 2_048}
    e = sl.explain(model, rows, method=CONTROLLED, **question)
    plain = sl.explain(model, rows, method="differences", **question)
    assert e.note
    assert np.sqrt((((e.values - plain.values) / plain.standard_error) ** 2).mean()) < 1.5
    assert (np.linalg.norm(e.standard_error, axis=1) < 0.85 * np.linalg.norm(plain.standard_error, axis=1)).all()


def test_a_row_around_which_nothing_moves_has_no_slope():
    model = GradientBoostingClassifier(n_estimators=30, random_state=0).fit(IRIS, SPECIES)
    e = sl.explain(model, IRIS[:1], sigma=0.01, target=1, n_samples=512, method=CONTROLLED)
    np.testing.assert_array_equal(e.values, 0)
    np.testing.assert_array_equal(e.standard_error, 0)


def test_every_evaluation_is_counted(fitted, monkeypatch):
    asked = []
    values = EstimatorModel.values
    monkeypatch.setattr(
        EstimatorModel, "values", lambda self, points: asked.append(len(points)) or values(self, points)
    )
    e = explain(fitted["lightgbm"], CANCER.iloc[:4], CANCER)
    assert e.note
    assert sum(asked) == e.n_evaluations.sum() > e.n_samples.sum()


# ---- where there is none


def test_other_links_are_refused():
    model = GradientBoostingClassifier(n_estimators=20, loss="exponential").fit(CANCER, SICK)  # p = σ(2·margin)
    with pytest.raises(NoClosedForm, match="its probabilities are no logistic curve or softmax of its margins"):
        explain(model, CANCER.iloc[:1], CANCER, method=CONTROLLED)


def test_a_margin_that_is_not_what_was_read_is_refused(fitted, monkeypatch):
    prove = Access.prove

    def misread(access):
        trees = prove(access)
        return dataclasses.replace(trees, base=trees.base + 0.1)

    monkeypatch.setattr(Access, "prove", misread)
    model = copy.deepcopy(fitted["lightgbm"])  # nothing is kept of it
    with pytest.raises(NoClosedForm, match="the trees that were read do not reproduce its margin"):
        explain(model, CANCER.iloc[:1], CANCER, method=CONTROLLED)


def test_a_margin_that_is_rounded_away_is_refused():
    model = xgboost.XGBClassifier(base_score=0.9, learning_rate=1e-7, n_estimators=4, n_jobs=1).fit(CANCER, SICK)
    with pytest.raises(NoClosedForm, match=r"it rounds its margin, and loses \d+% of how that varies around the rows"):
        explain(model, CANCER.iloc[:1], CANCER, method=CONTROLLED)


def test_a_model_that_stops_early_has_no_control():
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1, pred_early_stop=True).fit(CANCER, SICK)
    with pytest.raises(NoClosedForm, match=r"control='margin' needs.*has pred_early_stop among its parameters"):
        explain(model, CANCER.iloc[:1], CANCER, method=CONTROLLED)


def test_a_full_covariance_and_missing_numba_are_refused(fitted, hide):
    around = sl.Neighbourhood.from_data(CANCER, 0.5, full=True)
    asked = {"sigma": around, "target": 1, "n_samples": 256}
    with pytest.raises(NoClosedForm, match=r"control='margin' needs a boosted classifier.*Σ is full"):
        sl.explain(fitted["lightgbm"], CANCER.iloc[:1], method=CONTROLLED, **asked)
    hide("numba")
    with pytest.raises(NoClosedForm, match="numba is needed"):
        explain(fitted["lightgbm"], CANCER.iloc[:1], CANCER, method=CONTROLLED)


def test_models_without_a_margin_behind_them_are_refused_by_name(fitted):
    control = sl.Differences(control="margin")
    with pytest.raises(NoClosedForm, match="only classifiers that are asked for probabilities"):
        sl.explain(lambda a: a[:, 0], [0.0, 1.0], method=control)
    with pytest.raises(NoClosedForm, match="only classifiers that are asked for probabilities"):
        sl.explain(fitted["lightgbm"], CANCER.iloc[:1], output="margin", background=CANCER, method=control)
    forest = RandomForestClassifier(5).fit(CANCER, SICK)
    with pytest.raises(NoClosedForm, match="output='margin' needs decision_function"):
        explain(forest, CANCER.iloc[:1], CANCER, method=control)
    line = LogisticRegression(max_iter=1_000).fit(IRIS, SPECIES)
    with pytest.raises(NoClosedForm, match="the margin is linear"):
        sl.explain(line, IRIS[:1], target=1, method=control)
    assert sl.explain(line, IRIS[:1], target=1, n_samples=256).note == ""


def test_unknown_controls_are_refused():
    with pytest.raises(InvalidArgument, match=r"control must be one of 'none', 'margin'.*got 'magic'"):
        sl.Differences(control="magic")


def test_a_certificate_that_was_asked_for_is_not_traded_for_a_control(fitted):
    question = {
        "guarantee": "certified",
        "rtol": 0.5,
        "atol": 0.5,
        "target": 1,
        "sigma": sl.Neighbourhood.from_data(CANCER, 0.5),
    }
    e = sl.explain(fitted["xgboost"], CANCER.iloc[:1], **question)
    assert e.provenance.guarantee == "certified"
    assert (e.method, e.design) == ("jumps", "iid")

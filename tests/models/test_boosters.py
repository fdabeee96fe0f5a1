"""The boosters themselves, without estimators around them: XGBoost's, LightGBM's, and CatBoost's base class."""

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost

import smoothlime as sl
from smoothlime.errors import CategoriesPerturbed, InvalidArgument, WrongType
from smoothlime.exact.trees.read.recognise import has_trees

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
VALUE = X[:, 0] + np.sin(2 * X[:, 1])
TWO, THREE, COUNT = (VALUE > 0).astype(int), np.digitize(VALUE, [-0.5, 0.5]), np.exp(VALUE).round()
POINTS = X[:5]
ONE = {"nthread": 1}
CAT = {"iterations": 5, "depth": 3, "thread_count": 1, "verbose": 0, "allow_writing_files": False}


def train(y, rounds=5, data=X, **settings):
    return xgboost.train({**ONE, **settings}, xgboost.DMatrix(data, y), rounds)


def own(booster, points, **how):
    return booster.predict(xgboost.DMatrix(points, feature_names=booster.feature_names), **how)


@pytest.mark.parametrize(
    ("y", "settings"),
    [
        (VALUE, {"objective": "reg:squarederror", "base_score": 3.0}),
        (TWO, {"objective": "binary:logistic"}),
        (TWO, {"objective": "binary:logistic", "base_score": 0.2}),
        (THREE, {"objective": "multi:softprob", "num_class": 3}),
        (COUNT, {"objective": "count:poisson"}),
        (VALUE, {"booster": "dart", "rate_drop": 0.5, "seed": 1}),
    ],
    ids=str,
)
class TestXGBoost:
    def test_outputs_and_raw_scores_are_its_own(self, y, settings):
        booster = train(y, **settings)
        for output, how in ((None, {}), ("margin", {"output_margin": True})):
            found = sl.as_model(booster, output=output).values(POINTS)
            np.testing.assert_allclose(found, own(booster, POINTS, **how).reshape(5, -1), rtol=1e-6)

    def test_slopes_are_those_of_the_estimator_around_it(self, y, settings):
        is_classifier = settings.get("objective", "")[:3] in ("bin", "mul")
        kind = xgboost.XGBClassifier if is_classifier else xgboost.XGBRegressor
        estimator = kind(n_jobs=1, n_estimators=5, **{k: v for k, v in settings.items() if k != "num_class"}).fit(X, y)
        target = None if y is not THREE else 2
        margin = sl.explain(estimator.get_booster(), POINTS, output="margin", target=target)
        assert margin.is_exact
        if is_classifier:
            around = sl.explain(estimator, POINTS, output="margin", target=target)
            np.testing.assert_array_equal(margin.values, around.values)
        e = sl.explain(estimator.get_booster(), POINTS, target=target)
        same = sl.explain(estimator, POINTS, target=1 if y is TWO else target)
        assert e.method == same.method == ("exact" if y is VALUE else "jumps")
        np.testing.assert_array_equal(e.values, same.values)
        np.testing.assert_array_equal(e.n_samples, same.n_samples)


def test_all_rounds_count_as_in_its_own_predict_and_a_part_is_a_booster():
    data, held_out = xgboost.DMatrix(X, VALUE), xgboost.DMatrix(X[:50], -VALUE[:50])
    booster = xgboost.train(ONE, data, 12, evals=[(held_out, "held")], early_stopping_rounds=3, verbose_eval=False)
    assert booster.best_iteration < booster.num_boosted_rounds() - 1
    best = booster[: booster.best_iteration + 1]
    for each in (booster, best):
        e = sl.explain(each, POINTS)
        np.testing.assert_allclose(e.prediction, own(each, POINTS), rtol=1e-6)
    assert np.abs(sl.explain(booster, POINTS).values - sl.explain(best, POINTS).values).max() > 1e-3


def test_gaps_are_part_of_the_model():
    holes = X.copy()
    holes[::3, 0] = np.nan
    booster, rows = train(VALUE, data=holes), POINTS.copy()
    rows[0, 0] = np.nan
    e = sl.explain(booster, rows)
    np.testing.assert_allclose(e.prediction, own(booster, rows), rtol=1e-6)
    assert np.isnan(e.values[0, 0])  # what a row misses is held there
    assert np.isfinite(e.values[1:]).all()


def test_names_are_those_it_was_trained_with():
    booster = train(VALUE, data=pd.DataFrame(X, columns=list("abcd")))
    for rows in (POINTS, pd.DataFrame(POINTS, columns=list("abcd")), pl.DataFrame(POINTS, schema=list("abcd"))):
        e = sl.explain(booster, rows)
        assert e.feature_names == tuple("abcd")
        np.testing.assert_allclose(e.prediction, own(booster, POINTS), rtol=1e-6)
    with pytest.raises(InvalidArgument, match="different columns: at position 0 X has 'd' and the model 'a'"):
        sl.explain(booster, pd.DataFrame(POINTS, columns=list("dcba")))


@pytest.mark.parametrize("kind", ["pandas", "codes"])
def test_categories_are_held_or_named(kind):
    words = pd.Categorical(np.array(list("xyz"))[RNG.integers(0, 3, 200)])
    frame = pd.DataFrame({"size": X[:, 0], "town": words})
    y = X[:, 0] + 2 * (words == "y")
    booster = xgboost.train(ONE, xgboost.DMatrix(frame, y, enable_categorical=True), 5)
    expected = booster.predict(xgboost.DMatrix(frame.iloc[:5], enable_categorical=True))
    if kind == "pandas":
        e = sl.explain(booster, frame.iloc[:5], n_samples=256)
    else:
        codes = np.column_stack([X[:5, 0], words.codes[:5]])
        with pytest.warns(CategoriesPerturbed, match=r"'town' is a category to the Booster"):
            sl.explain(booster, codes, n_samples=64)
        e = sl.explain(booster, codes, sigma=sl.Neighbourhood(fixed=["town"]))
        assert e.is_exact
    np.testing.assert_allclose(e.prediction, expected, rtol=1e-6)
    assert np.isnan(e.values[:, 1]).all()


def test_linear_boosters_work_too():
    booster = train(VALUE, booster="gblinear", data=pd.DataFrame(X, columns=list("abcd")))
    e = sl.explain(booster, POINTS, n_samples=64)
    np.testing.assert_allclose(e.prediction, own(booster, POINTS), rtol=1e-6)


def test_linear_boosters_are_not_taken_for_trees():
    assert not has_trees(train(VALUE, booster="gblinear"))
    assert has_trees(train(VALUE))
    with pytest.raises(InvalidArgument, match=r"gradient_bound is for models without jumps, and a Booster is made"):
        sl.robustness(train(VALUE), POINTS, gradient_bound=9.0, n_samples=64)


@pytest.mark.parametrize("width", [3, 5])
def test_a_column_too_few_or_too_many_is_refused(width):
    rows = np.zeros((2, width))
    with pytest.raises(InvalidArgument, match=rf"X has {width} features but the model takes 4"):
        sl.explain(train(VALUE), rows)


@pytest.mark.parametrize(
    ("objective", "better"), [("multi:softmax", "multi:softprob"), ("binary:hinge", "binary:logis")]
)
def test_labels_are_refused_and_raw_scores_are_not(objective, better):
    settings = {"num_class": 3} if objective == "multi:softmax" else {}
    booster = train(THREE if settings else TWO, objective=objective, **settings)
    with pytest.raises(WrongType, match=rf"model is a Booster, which predicts the number of a class.*{better}"):
        sl.explain(booster, POINTS)
    margin = sl.explain(booster, POINTS, output="margin", target=0)
    np.testing.assert_allclose(
        margin.prediction, own(booster, POINTS, output_margin=True).reshape(5, -1)[:, 0], rtol=1e-6
    )


def test_a_booster_without_training_says_so():
    with pytest.raises(InvalidArgument, match=r"xgboost Booster is not trained; take what xgboost.train returns"):
        sl.explain(xgboost.Booster(), POINTS)


def test_only_what_is_known_as_a_probability_has_its_range():
    assert sl.as_model(train(TWO, objective="binary:logistic")).output_range == (0.0, 1.0)
    assert sl.as_model(train(TWO, objective="binary:logistic"), output="margin").output_range is None
    assert sl.as_model(train(VALUE)).output_range is None


def test_best_iterations_of_lightgbm_are_those_of_its_own_predict():
    data = lightgbm.Dataset(X, VALUE)
    held_out = lightgbm.Dataset(X[:50], -VALUE[:50], reference=data)
    stop = lightgbm.early_stopping(2, verbose=False)
    settings = {"objective": "regression", "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(settings, data, 12, valid_sets=[held_out], callbacks=[stop], keep_training_booster=True)
    assert booster.best_iteration < booster.current_iteration()
    e = sl.explain(booster, POINTS)
    assert e.is_exact
    np.testing.assert_allclose(e.prediction, booster.predict(POINTS), rtol=1e-12)


@pytest.mark.parametrize(("y", "loss"), [(TWO, "Logloss"), (THREE, "MultiClass")])
def test_the_base_class_of_catboost_gives_probabilities_too(y, loss, tmp_path):
    model = catboost.CatBoost({"loss_function": loss, **CAT}).fit(X, y)
    model.save_model(tmp_path / "model.cbm")
    e = sl.explain(model, POINTS, target=1)
    for each in (model, catboost.CatBoost().load_model(tmp_path / "model.cbm")):
        e = sl.explain(each, POINTS, target=1)
        np.testing.assert_allclose(e.prediction, model.predict(POINTS, prediction_type="Probability")[:, 1])
        assert e.method == "jumps"
    same = sl.explain(catboost.CatBoostClassifier(loss_function=loss, **CAT).fit(X, y), POINTS, target=1)
    np.testing.assert_array_equal(sl.explain(model, POINTS, target=1).values, same.values)


def test_the_base_class_of_catboost_gives_what_it_predicts():
    model = catboost.CatBoost({"loss_function": "RMSE", **CAT}).fit(X, VALUE)
    e = sl.explain(model, POINTS)
    assert e.is_exact
    np.testing.assert_allclose(e.prediction, model.predict(POINTS))


def test_outputs_may_be_named_where_the_library_has_no_names():
    model = sl.as_model(train(THREE, objective="multi:softprob", num_class=3), outputs=["low", "mid", "top"])
    e = sl.explain(model, POINTS, target="top")
    assert (e.output_name, e.method) == ("top", "jumps")
    np.testing.assert_array_equal(e.values, sl.explain(model.estimator, POINTS, target=2).values)
    classifier = xgboost.XGBClassifier(n_estimators=2, n_jobs=1).fit(X, TWO)
    with pytest.raises(InvalidArgument, match=r"outputs is for models that do not name theirs; the XGBClassifier has"):
        sl.as_model(classifier, outputs=["no", "yes"])


def test_the_predict_of_a_booster_names_the_booster():
    with pytest.raises(WrongType, match="own matrices; give the Booster itself"):
        sl.explain(train(VALUE).predict, POINTS)

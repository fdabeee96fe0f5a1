"""CatBoost's categories, which it takes as whole numbers or text alone, and its names of columns."""

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV

import smoothlime as sl
from smoothlime.errors import InvalidArgument, ModelError

CAT = {"iterations": 10, "depth": 3, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"age": RNG.normal(size=300), "region": RNG.integers(0, 5, 300), "debt": RNG.normal(size=300)})
Y = FRAME.age + 3 * np.isin(FRAME.region, [1, 4]) + 0.1 * FRAME.debt
HELD = sl.Neighbourhood(0.5, fixed=["region"])
ROWS = FRAME.iloc[:4]


@pytest.fixture(scope="module")
def model():
    return catboost.CatBoostRegressor(**CAT).fit(FRAME, Y, cat_features=["region"])


@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_whole_categories_reach_the_model_as_whole_numbers(model, kind):
    rows = {"pandas": ROWS, "polars": pl.from_pandas(ROWS), "array": ROWS.to_numpy(dtype=float)}[kind]
    e = sl.explain(model, rows, sigma=HELD, n_samples=256)
    np.testing.assert_allclose(e.prediction, model.predict(ROWS), rtol=1e-12)
    assert e.feature_names == ("age", "region", "debt")
    assert np.isnan(e.values[:, 1]).all()
    by_hand = sl.explain(
        sl.as_model(lambda frame: model.predict(frame.astype({"region": int})), takes="table"), ROWS, sigma=HELD,
        n_samples=256,
    )  # fmt: skip
    np.testing.assert_allclose(e.values, by_hand.values, rtol=1e-9)


def test_they_do_so_in_a_search_and_by_a_margin():
    search = GridSearchCV(catboost.CatBoostClassifier(**CAT), {"depth": [2]}, cv=2).fit(FRAME, Y > 1, cat_features=[1])
    e = sl.explain(
        search, ROWS.to_numpy(dtype=float), sigma=sl.Neighbourhood(0.5, fixed=[1]), target="True", n_samples=64
    )
    np.testing.assert_allclose(e.prediction, search.predict_proba(ROWS)[:, 1], rtol=1e-12)
    best = search.best_estimator_
    margin = sl.explain(best, ROWS, sigma=HELD, output="margin", n_samples=64)
    np.testing.assert_allclose(margin.prediction, best.predict(ROWS, prediction_type="RawFormulaVal"), rtol=1e-12)


@pytest.mark.parametrize("rows", [ROWS, ROWS.to_numpy(dtype=float)], ids=["frame", "array"])
def test_to_perturb_a_category_is_refused_with_the_fix(model, rows):
    with pytest.raises(
        InvalidArgument, match=r"perturbs 'region': to the CatBoostRegressor a category.*fixed=\['region'\]"
    ):
        sl.explain(model, rows, n_samples=64)
    with pytest.raises(InvalidArgument, match="perturbs 'region'"):
        sl.robustness(model, rows, n_samples=64)


def test_categories_between_whole_numbers_are_not_rounded(model):
    rows = ROWS.to_numpy(dtype=float)
    rows[0, 1] = 1.5
    with pytest.raises(ModelError, match="CatBoostError"):
        sl.explain(model, rows, sigma=HELD, n_samples=64)


def test_text_and_whole_categories_go_together():
    frame = FRAME.assign(town=np.array(["a", "b", "c"])[FRAME.region % 3])
    model = catboost.CatBoostRegressor(**CAT).fit(frame, Y, cat_features=["region", "town"])
    e = sl.explain(model, frame.iloc[:4], sigma=HELD, n_samples=64)
    np.testing.assert_allclose(e.prediction, model.predict(frame.iloc[:4]), rtol=1e-12)


def fitted(library):
    if library == "catboost":
        return catboost.CatBoostRegressor(**CAT).fit(FRAME, Y)
    data = lightgbm.Dataset(FRAME, Y)
    return lightgbm.train({"objective": "regression", "verbose": -1, "num_threads": 1}, data, 3)


@pytest.mark.parametrize("library", ["catboost", "lightgbm"])
def test_columns_in_another_order_are_refused(library):
    model = fitted(library)
    with pytest.raises(InvalidArgument, match="different columns: at position 0 X has 'debt' and the model 'age'"):
        sl.explain(model, FRAME[["debt", "region", "age"]], n_samples=64)
    assert sl.explain(model, ROWS.to_numpy(dtype=float)).feature_names == ("age", "region", "debt")


def test_names_that_the_library_made_up_are_not_taken():
    numbers = FRAME.to_numpy(dtype=float)
    data = lightgbm.Dataset(numbers, Y)
    plain = [
        catboost.CatBoostRegressor(**CAT).fit(numbers, Y),
        lightgbm.train({"objective": "regression", "verbose": -1, "num_threads": 1}, data, 3),
    ]
    for model in plain:
        assert sl.explain(model, ROWS).feature_names == ("age", "region", "debt")


@pytest.mark.parametrize("kind", [catboost.CatBoostRegressor, catboost.CatBoostClassifier, catboost.CatBoostRanker])
def test_models_that_are_not_fitted_say_so(kind):
    with pytest.raises(InvalidArgument, match=f"the {kind.__name__} is not fitted; call its fit first"):
        sl.explain(kind(**CAT), [[0.0, 1.0]], target=None)

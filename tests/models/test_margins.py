"""output="margin" is the library's own raw score wherever there is one, and refused where there is none."""

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import smoothlime as sl
from smoothlime.errors import InvalidArgument

X = np.random.default_rng(0).normal(size=(200, 3))
VALUE = X[:, 0] + np.sin(2 * X[:, 1])
TWO, THREE, COUNT = (VALUE > 0).astype(int), np.digitize(VALUE, [-0.5, 0.5]), np.exp(VALUE).round()
GRADE, GROUPS = THREE, [50] * 4
POINTS = X[:2]
LIGHT = {"verbose": -1, "num_threads": 1}
FEW = {"n_estimators": 5, "n_jobs": 1}
CAT = {"iterations": 5, "depth": 3, "thread_count": 1, "verbose": 0, "allow_writing_files": False}


def booster(y, **settings):
    return lightgbm.train({**LIGHT, **settings}, lightgbm.Dataset(X, y), 5)


def raw(model, points):
    return model.predict(points, raw_score=True)


def margin(model, points):
    return model.predict(points, output_margin=True)


def formula(model, points):
    return model.predict(points, prediction_type="RawFormulaVal")


def value(model, points):
    return model.predict(points)


# the model, the library's own raw score, and whether that has a closed form
MODELS = {
    "booster": (lambda: booster(VALUE, objective="regression"), raw, True),
    "booster, two classes": (lambda: booster(TWO, objective="binary"), raw, True),
    "booster, three classes": (lambda: booster(THREE, objective="multiclass", num_class=3), raw, True),
    "booster, one against all": (lambda: booster(THREE, objective="multiclassova", num_class=3), raw, True),
    "booster, counts": (lambda: booster(COUNT, objective="poisson"), raw, True),
    "booster, cross-entropy": (lambda: booster(TWO / 2, objective="cross_entropy"), raw, True),
    "lightgbm, counts": (lambda: lightgbm.LGBMRegressor(objective="poisson", **FEW, **LIGHT).fit(X, COUNT), raw, True),
    "lightgbm, ranks": (lambda: lightgbm.LGBMRanker(**FEW, **LIGHT).fit(X, GRADE, group=GROUPS), raw, True),
    "xgboost": (lambda: xgboost.XGBRegressor(**FEW).fit(X, VALUE), margin, True),
    "xgboost, counts": (lambda: xgboost.XGBRegressor(objective="count:poisson", **FEW).fit(X, COUNT), margin, True),
    "xgboost, logistic": (lambda: xgboost.XGBRegressor(objective="reg:logistic", **FEW).fit(X, TWO), margin, True),
    "xgboost, ranks": (lambda: xgboost.XGBRanker(**FEW).fit(X, GRADE, group=GROUPS), margin, True),
    "xgboost in a pipeline": (
        lambda: make_pipeline(StandardScaler(), xgboost.XGBClassifier(**FEW)).fit(X, TWO), margin, True,
    ),
    "catboost": (lambda: catboost.CatBoostClassifier(**CAT).fit(X, TWO), formula, True),
    "catboost, three classes": (lambda: catboost.CatBoostClassifier(**CAT).fit(X, THREE), formula, True),
    "catboost, words": (lambda: catboost.CatBoostClassifier(**CAT).fit(X, np.array(["no", "yes"])[TWO]), formula, True),
    "catboost, counts": (
        lambda: catboost.CatBoostRegressor(loss_function="Poisson", **CAT).fit(X, COUNT), formula, True,
    ),
    "catboost, mean and variance": (
        lambda: catboost.CatBoostRegressor(loss_function="RMSEWithUncertainty", **CAT).fit(X, VALUE), formula, True,
    ),
    "catboost, ranks": (
        lambda: catboost.CatBoostRanker(**CAT).fit(X, GRADE, group_id=np.repeat(range(4), 50)), value, True,
    ),
    "catboost, of a loss": (lambda: catboost.CatBoost({"loss_function": "Logloss", **CAT}).fit(X, TWO), formula, True),
    "catboost in a pipeline": (
        lambda: make_pipeline(StandardScaler(), catboost.CatBoostClassifier(**CAT)).fit(X, TWO), formula, True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_margins_are_the_raw_scores_of_the_library(name):
    make, ask, is_exact = MODELS[name]
    model = make()
    expected = np.asarray(ask(model, POINTS)).reshape(2, -1)
    asked = {"output": "margin"} if expected.shape[1] == 1 else {"output": "margin", "target": 1}
    e = sl.explain(model, POINTS, sigma=0.5, max_samples=512, rtol=0.5, **asked)
    np.testing.assert_allclose(e.prediction, expected[:, min(1, expected.shape[1] - 1)], rtol=1e-5)
    assert e.is_exact == is_exact
    if not is_exact:
        return
    drawn = sl.explain(model, POINTS, sigma=0.5, method="clime", n_samples=4_096, **asked)
    apart = np.abs(e.values - drawn.values) / np.maximum(drawn.standard_error, 1e-12)
    assert apart.max() < 6  # 15 to 31 degrees of freedom: once in 1e4 or less, for each of 6 numbers; one seed is fixed


@pytest.mark.parametrize("name", ["catboost", "catboost, words"])
def test_margins_of_catboost_are_of_the_second_class_and_help_its_probabilities(name):
    model = MODELS[name][0]()
    by_margin = sl.explain(model, POINTS, output="margin")
    assert by_margin.output_name == str(model.classes_[1])
    e = sl.explain(model, POINTS, target=1, n_samples=256)
    assert e.method == "jumps"


@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        PoissonRegressor(),
        RandomForestRegressor(2),
        HistGradientBoostingRegressor(max_iter=2),
        make_pipeline(Ridge()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_has_no_raw_score_refuses_to_be_asked_for_one(model):
    model.fit(X, COUNT)
    with pytest.raises(InvalidArgument, match=rf"output='margin' needs a score.*this {type(model).__name__} has none"):
        sl.explain(model, POINTS, output="margin")
    np.testing.assert_array_equal(sl.explain(model, POINTS, n_samples=64).prediction, model.predict(POINTS))


@pytest.mark.parametrize("output", ["probability", "margin"])
def test_advice_about_outputs_is_not_circular(output):
    """Whatever the refusal of one output names, is not refused."""
    search = GridSearchCV(catboost.CatBoostClassifier(**CAT), {"depth": [2]}, cv=2).fit(X, TWO)
    if output == "margin":
        with pytest.raises(InvalidArgument, match="which this GridSearchCV has not; give its best_estimator_"):
            sl.explain(search, POINTS, output="margin")
        sl.explain(search.best_estimator_, POINTS, output="margin")
    else:
        plain = catboost.CatBoost({"loss_function": "MultiClass", **CAT}).fit(X, THREE)
        e = sl.explain(plain, POINTS, target=0, output="margin")
        np.testing.assert_allclose(e.prediction, formula(plain, POINTS)[:, 0], rtol=1e-12)

"""Every reader against the library it reads: predictions on thresholds, beside them and with values missing."""

import json
import subprocess
import sys
from pathlib import Path

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from smoothlime.errors import InvalidArgument, MissingExtra, NoClosedForm, UnreadableFile
from smoothlime.exact.trees.read import recognise as readers
from smoothlime.exact.trees.read.catboost import read_catboost
from smoothlime.exact.trees.read.recognise import probe_rows, read_trees
from smoothlime.exact.trees.smoothing import smooth

DIABETES, CANCER, WINE = (load(return_X_y=True) for load in (load_diabetes, load_breast_cancer, load_wine))
CATBOOST = json.loads((Path(__file__).parent / "catboost.json").read_text())
SMALL = {"n_estimators": 12, "random_state": 0}
XGB = {**SMALL, "n_jobs": 1}
LGBM = {**SMALL, "n_jobs": 1, "verbose": -1}
CAT = {"iterations": 12, "depth": 4, "random_seed": 0, "thread_count": 1, "verbose": 0, "allow_writing_files": False}


def holes(X, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < 0.05, np.nan, X)


def with_categories(seed=0):
    """Wine, with a third column of categories 1, 3, 5, 7, 9 that say something about the class."""
    X = WINE[0][:, :6].copy()
    bins = np.digitize(WINE[0][:, 12], np.quantile(WINE[0][:, 12], [0.2, 0.4, 0.6, 0.8]))
    X[:, 2] = np.array([3, 0, 2, 1, 4])[bins] * 2 + 1
    return holes(X, seed), WINE[1]


SEVERAL = (DIABETES[0], np.column_stack([DIABETES[1], -DIABETES[1], DIABETES[1] ** 2]))
WHOLE = (np.round(DIABETES[0] * 100), DIABETES[1])  # features that are whole numbers, as counts are
ZEROS = (np.where(np.abs(DIABETES[0]) < 0.01, 0, DIABETES[0]), DIABETES[1])
HOLEY_WINE, HOLEY_CANCER = (holes(WINE[0]), WINE[1]), (holes(CANCER[0]), CANCER[1])
RANKS = (DIABETES[0], (DIABETES[1] // 100).astype(int))
CATEGORIES = with_categories()


def early(model):
    X, y = CANCER
    model = model.set_params(n_estimators=100, learning_rate=1.0)
    if isinstance(model, xgboost.XGBModel):
        model.set_params(early_stopping_rounds=3)
        return model.fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])], verbose=False)
    stop = lightgbm.early_stopping(3, verbose=False)
    return model.fit(X[:200], y[:200], eval_X=X[200:], eval_y=y[200:], callbacks=[stop])


class Booster:
    """Trains a Booster of XGBoost, whose third feature is one of categories."""

    def fit(self, X, y):
        data = xgboost.DMatrix(X, y, feature_types=["q", "q", "c", "q", "q", "q"], enable_categorical=True)
        return xgboost.train({"objective": "multi:softprob", "num_class": 3, "nthread": 1}, data, 8)


class Early:
    """Fits a model until it does not get better."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        return early(self.model)


ASK = {
    "probability": lambda model, X: model.predict_proba(X),
    "value": lambda model, X: model.predict(X),
    "decision": lambda model, X: model.decision_function(X),
    "log": lambda model, X: np.log(model.predict(X)),
    "xgb": lambda model, X: model.predict(X, output_margin=True),
    "booster": lambda model, X: model.predict(
        xgboost.DMatrix(X, feature_types=model.feature_types), output_margin=True
    ),
    "lgbm": lambda model, X: model.predict(X, raw_score=True),
    "cat": lambda model, X: model.predict(X, prediction_type="RawFormulaVal"),
    "lgbm mean": lambda model, X: model.predict(X, raw_score=True) / SMALL["n_estimators"],
}
FORESTS = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
BY_CATEGORY = {"min_data_per_group": 5, "cat_smooth": 1.0}
GROUPS = {"group": [200, 242]}

# the model, what it is fitted to, how it is asked, its outputs, and how else it is fitted
MODELS = {
    "decision tree": (DecisionTreeClassifier(random_state=0), WINE, "probability", 3, {}),
    "decision tree, NaN": (DecisionTreeClassifier(random_state=0), HOLEY_WINE, "probability", 3, {}),
    "extra tree": (ExtraTreeClassifier(random_state=0), WINE, "probability", 3, {}),
    "tree regression": (DecisionTreeRegressor(random_state=0), WHOLE, "value", 1, {}),
    "extra tree regression": (ExtraTreeRegressor(random_state=0), DIABETES, "value", 1, {}),
    "random forest": (RandomForestClassifier(**SMALL), HOLEY_WINE, "probability", 3, {}),
    "random forest, two classes": (RandomForestClassifier(**SMALL), CANCER, "probability", 2, {}),
    "forest regression": (RandomForestRegressor(**SMALL), DIABETES, "value", 1, {}),
    "forest of several targets": (RandomForestRegressor(**SMALL), SEVERAL, "value", 3, {}),
    "extra trees": (ExtraTreesClassifier(**SMALL), CANCER, "probability", 2, {}),
    "extra trees, NaN": (ExtraTreesClassifier(**SMALL), HOLEY_CANCER, "probability", 2, {}),
    "extra trees regression": (ExtraTreesRegressor(**SMALL), WHOLE, "value", 1, {}),
    "gradient boosting": (GradientBoostingClassifier(**SMALL), CANCER, "decision", 1, {}),
    "gradient boosting, three classes": (GradientBoostingClassifier(**SMALL), WINE, "decision", 3, {}),
    "gradient boosting regression": (GradientBoostingRegressor(**SMALL), DIABETES, "value", 1, {}),
    "gradient boosting from zero": (GradientBoostingRegressor(init="zero", **SMALL), DIABETES, "value", 1, {}),
    "hist": (HistGradientBoostingClassifier(max_iter=12), HOLEY_CANCER, "decision", 1, {}),
    "hist, nothing missing": (HistGradientBoostingClassifier(max_iter=12), WINE, "decision", 3, {}),
    "hist with categories": (
        HistGradientBoostingClassifier(max_iter=12, categorical_features=[2]), CATEGORIES, "decision", 3, {},
    ),
    "hist regression": (HistGradientBoostingRegressor(max_iter=12), WHOLE, "value", 1, {}),
    "hist poisson": (HistGradientBoostingRegressor(max_iter=12, loss="poisson"), DIABETES, "log", 1, {}),
    "xgboost": (xgboost.XGBClassifier(**XGB), HOLEY_CANCER, "xgb", 1, {}),
    "xgboost, three classes": (xgboost.XGBClassifier(**XGB), WINE, "xgb", 3, {}),
    "xgboost regression": (xgboost.XGBRegressor(**XGB), WHOLE, "value", 1, {}),
    "xgboost poisson": (xgboost.XGBRegressor(objective="count:poisson", **XGB), DIABETES, "xgb", 1, {}),
    "xgboost quantiles": (
        xgboost.XGBRegressor(objective="reg:quantileerror", quantile_alpha=[0.1, 0.9], **XGB), DIABETES, "xgb", 2, {},
    ),
    "xgboost logitraw": (xgboost.XGBClassifier(objective="binary:logitraw", **XGB), CANCER, "xgb", 1, {}),
    "xgboost, vector leaves": (
        xgboost.XGBRegressor(multi_strategy="multi_output_tree", **XGB), SEVERAL, "value", 3, {},
    ),
    "xgboost, tree per target": (xgboost.XGBRegressor(**XGB), SEVERAL, "value", 3, {}),
    "xgboost dart": (xgboost.XGBClassifier(booster="dart", rate_drop=0.3, **XGB), CANCER, "xgb", 1, {}),
    "xgboost stopped early": (Early(xgboost.XGBClassifier(**XGB)), CANCER, "xgb", 1, {}),
    "xgboost forest": (xgboost.XGBRFRegressor(**XGB), DIABETES, "value", 1, {}),
    "xgboost ranker": (xgboost.XGBRanker(**XGB), RANKS, "value", 1, GROUPS),
    "xgboost with categories": (Booster(), CATEGORIES, "booster", 3, {}),
    "lightgbm": (lightgbm.LGBMClassifier(**LGBM), HOLEY_CANCER, "lgbm", 1, {}),
    "lightgbm, nothing missing": (lightgbm.LGBMClassifier(**LGBM), CANCER, "lgbm", 1, {}),
    "lightgbm, three classes": (lightgbm.LGBMClassifier(**LGBM), WINE, "lgbm", 3, {}),
    "lightgbm regression": (lightgbm.LGBMRegressor(**LGBM), WHOLE, "value", 1, {}),
    "lightgbm, 0 is missing": (lightgbm.LGBMRegressor(zero_as_missing=True, **LGBM), ZEROS, "value", 1, {}),
    "lightgbm, none is missing": (lightgbm.LGBMRegressor(use_missing=False, **LGBM), DIABETES, "value", 1, {}),
    "lightgbm with categories": (
        lightgbm.LGBMClassifier(**LGBM, **BY_CATEGORY), CATEGORIES, "lgbm", 3, {"categorical_feature": [2]},
    ),
    "lightgbm forest": (lightgbm.LGBMClassifier(**FORESTS, **LGBM), WINE, "lgbm mean", 3, {}),
    "lightgbm dart": (lightgbm.LGBMClassifier(boosting_type="dart", **LGBM), CANCER, "lgbm", 1, {}),
    "lightgbm stopped early": (Early(lightgbm.LGBMClassifier(**LGBM)), CANCER, "lgbm", 1, {}),
    "lightgbm ranker": (lightgbm.LGBMRanker(**LGBM), RANKS, "value", 1, GROUPS),
    "catboost": (catboost.CatBoostClassifier(**CAT), HOLEY_CANCER, "cat", 1, {}),
    "catboost, three classes": (catboost.CatBoostClassifier(**CAT), HOLEY_WINE, "cat", 3, {}),
    "catboost, nothing missing": (catboost.CatBoostRegressor(**CAT), WHOLE, "value", 1, {}),
    "catboost, missing is most": (catboost.CatBoostClassifier(nan_mode="Max", **CAT), HOLEY_CANCER, "cat", 1, {}),
    "catboost by depth": (catboost.CatBoostRegressor(grow_policy="Depthwise", **CAT), DIABETES, "value", 1, {}),
    "catboost by leaves": (catboost.CatBoostClassifier(grow_policy="Lossguide", **CAT), HOLEY_WINE, "cat", 3, {}),
    "catboost of several targets": (
        catboost.CatBoostRegressor(loss_function="MultiRMSE", **CAT), SEVERAL, "value", 3, {},
    ),
    "catboost poisson": (catboost.CatBoostRegressor(loss_function="Poisson", **CAT), DIABETES, "cat", 1, {}),
    "catboost, some ignored": (catboost.CatBoostRegressor(ignored_features=[0, 9], **CAT), DIABETES, "value", 1, {}),
    "catboost without a name for its kind": (catboost.CatBoost(CAT), DIABETES, "value", 1, {}),
    "catboost ranker": (catboost.CatBoostRanker(**CAT), RANKS, "value", 1, {"group_id": [0] * 200 + [1] * 242}),
}  # fmt: skip
NAN_REFUSED = "gradient boosting"


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize("kind", MODELS)
def test_trees_predict_what_their_model_does(kind):
    model, data, how, k, settings = MODELS[kind]
    model = model.fit(*data, **settings)
    trees = read_trees(model, how if how in ("probability", "value") else "margin")
    rows = data[0] if kind.startswith(NAN_REFUSED) else np.concatenate([data[0], holes(data[0], 7)])
    assert (trees.k, trees.n_features) == (k, rows.shape[1])
    assert trees.categorical_features == ((2,) if "categories" in kind else ())
    expected = ASK[how](model, rows).reshape(len(rows), -1)
    precision = 2e-6 if "xgboost" in kind else 1e-13  # XGBoost adds in single precision
    size = np.abs(expected).max()
    np.testing.assert_allclose(trees.predict(rows), expected, rtol=0, atol=precision * size)
    some = rows[:: len(rows) // 6]
    fixed = smooth(trees, some, np.zeros(trees.n_features))
    np.testing.assert_allclose(fixed.values, trees.predict(some), rtol=0, atol=1e-12 * size)
    spread = np.nanstd(rows, axis=0)
    spread[list(trees.categorical_features)] = 0.0
    got = smooth(trees, some, spread)
    assert got.gradients.shape == (len(some), trees.n_features, k)
    assert np.isfinite(got.gradients).all()
    assert np.abs(got.gradients).max() > 0
    assert (got.gradients[np.isnan(some)] == 0).all()


def test_xgboost_rows_end_in_the_very_leaves_that_xgboost_names():
    model = xgboost.XGBClassifier(**XGB).fit(*HOLEY_CANCER)
    trees = read_trees(model, "margin")
    rows = probe_rows(trees)
    rows[::3] = holes(rows[::3], 4)
    np.testing.assert_array_equal(trees.apply(rows) - trees.roots, model.apply(rows))


def test_lightgbm_rows_end_in_leaves_of_the_same_value():
    model = lightgbm.LGBMRegressor(**LGBM).fit(holes(WHOLE[0]), DIABETES[1])
    trees = read_trees(model)
    rows = probe_rows(trees)
    rows[::3] = holes(rows[::3], 4)
    leaf = model.booster_.predict(rows, pred_leaf=True)
    expected = [[model.booster_.get_leaf_output(t, i) for t, i in enumerate(row)] for row in leaf]
    np.testing.assert_array_equal(trees.value[trees.apply(rows), 0], expected)


def test_trees_stop_where_training_did():
    grown = early(lightgbm.LGBMClassifier(**LGBM))
    assert read_trees(grown, "margin").n_trees == read_trees(grown.booster_, "margin").n_trees == grown.best_iteration_
    grown = early(xgboost.XGBClassifier(**XGB))
    assert read_trees(grown, "margin").n_trees == grown.best_iteration + 1
    # a Booster of XGBoost predicts with all rounds, the ones after the best included
    assert read_trees(grown.get_booster(), "margin").n_trees == grown.get_booster().num_boosted_rounds() < 100


def test_models_fitted_on_data_frames_are_read():
    import pandas

    frame = pandas.DataFrame(WINE[0][:, :4], columns=["a", "b", "c", "d"])
    for model in (
        RandomForestClassifier(n_estimators=3, random_state=0),
        HistGradientBoostingRegressor(max_iter=3),
        xgboost.XGBRegressor(n_estimators=3, n_jobs=1),
        lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, n_jobs=1),
    ):
        assert read_trees(model.fit(frame, WINE[1])).n_features == 4


def test_categories_of_a_fixed_feature_decide():
    X, y = CATEGORIES
    model = lightgbm.LGBMClassifier(**LGBM, **BY_CATEGORY).fit(X, y, categorical_feature=[2])
    trees = read_trees(model, "margin")
    assert trees.categorical_features == (2,)
    std = np.array([0.5, 0.5, 0.0, 0.5, 0.5, 0.5])
    row = np.tile(np.nan_to_num(X[:1]), (2, 1))
    row[:, 2] = 1, 9
    got = smooth(trees, row, std)
    assert np.abs(got.values[0] - got.values[1]).max() > 0.01
    with pytest.raises(NoClosedForm, match="split on categories of feature 2"):
        smooth(trees, row, np.full(6, 0.5))


def test_a_category_may_be_negative():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=800), rng.integers(-2, 6, size=800)])
    target = rows[:, 0] + 2 * (rows[:, 1] == -1) + (rows[:, 1] == 3)
    for sign in (1, -1):  # lists of those that go left, and of those that go right
        model = HistGradientBoostingRegressor(categorical_features=[1], max_iter=10).fit(rows, sign * target)
        trees = read_trees(model)
        assert trees.categorical_features == (1,)
        assert -1 in probe_rows(trees)[:, 1]  # else it would not be proved
        asked = np.column_stack([np.zeros(10), [*np.arange(-3.0, 6.0), np.nan]])
        np.testing.assert_allclose(trees.predict(asked)[:, 0], model.predict(asked), rtol=0, atol=1e-13)


def test_categories_may_be_large_numbers():
    """Node and category in one number, which is more than 32 bits hold."""
    rng = np.random.default_rng(0)
    ids = rng.choice(1_000_000, 40, replace=False)
    kind = rng.integers(40, size=3_000)
    rows = np.column_stack([rng.normal(size=3_000), ids[kind]])
    model = lightgbm.LGBMRegressor(n_estimators=200, num_leaves=15, verbose=-1, n_jobs=1, **BY_CATEGORY)
    model.fit(rows, rows[:, 0] + rng.normal(size=40)[kind], categorical_feature=[1])
    trees = read_trees(model)
    assert trees.is_categorical[3_000:].any()
    np.testing.assert_allclose(trees.predict(rows)[:, 0], model.predict(rows), rtol=0, atol=1e-13)


def test_sampling_agrees_on_a_boosted_model():
    model = xgboost.XGBRegressor(**XGB, max_depth=4).fit(*DIABETES)
    trees, x, std = read_trees(model), DIABETES[0][3], np.full(10, 0.03)
    z = np.random.default_rng(0).normal(size=(100_000, 10))
    up, down = (model.predict(x + sign * std * z).astype(float) for sign in (1, -1))
    draws = 0.5 * (up - down)[:, None] * z / std
    got, error = smooth(trees, x, std), draws.std(axis=0, ddof=1) / np.sqrt(len(z))
    assert (np.abs(draws.mean(axis=0) - got.gradients[0, :, 0]) <= 4 * error).all()
    assert error.max() < 0.05 * np.abs(got.gradients).max()


@pytest.mark.parametrize("kind", CATBOOST)
def test_catboost_files_predict_what_was_recorded(kind, tmp_path):
    recorded = CATBOOST[kind]
    rows = np.array(recorded["rows"], dtype=np.float64)
    trees = read_catboost(recorded["model"])
    np.testing.assert_allclose(trees.predict(rows), recorded["raw"], rtol=0, atol=1e-13)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(recorded["model"]))
    np.testing.assert_array_equal(read_catboost(path).predict(rows), trees.predict(rows))
    assert trees.k == (3 if kind == "multiclass" else 1)


def test_catboost_models_are_proved(monkeypatch):
    model = catboost.CatBoostRegressor(**CAT).fit(*DIABETES)
    predict = catboost.CatBoostRegressor.predict
    monkeypatch.setattr(catboost.CatBoostRegressor, "predict", lambda *given, **more: predict(*given, **more) + 1.0)
    with pytest.raises(NoClosedForm, match=r"from the CatBoostRegressor predict otherwise than the model, by up to 1;"):
        read_trees(model)


def test_catboost_categories_are_refused(tmp_path):
    X, y = DIABETES[0].astype(object), DIABETES[1]
    X[:, 1] = (DIABETES[0][:, 1] > 0).astype(int)
    model = catboost.CatBoostRegressor(cat_features=[1], **CAT).fit(X, y + 200.0 * X[:, 1].astype(float))
    with pytest.raises(NoClosedForm, match=r"the CatBoostRegressor has categories.*not read"):
        read_trees(model)
    model.save_model(tmp_path / "model.json", format="json")
    with pytest.raises(NoClosedForm, match=r"splits on categories \(OneHotFeature\).*method='clime'"):
        read_catboost(tmp_path / "model.json")


def test_catboost_features_go_by_their_number_and_not_by_their_place():
    content = json.loads(json.dumps(CATBOOST["oblivious"]["model"]))
    held = content["features_info"]["float_features"]
    asked = {each["float_feature_index"] for tree in content["oblivious_trees"] for each in tree["splits"]}
    content["features_info"]["float_features"] = [each for each in held[::-1] if each["feature_index"] in asked]
    trees, rows = read_catboost(content), np.array(CATBOOST["oblivious"]["rows"], dtype=np.float64)
    assert trees.n_features == max(asked) + 1
    np.testing.assert_allclose(
        trees.predict(rows[:, : trees.n_features]), CATBOOST["oblivious"]["raw"], rtol=0, atol=1e-13
    )
    assert read_catboost(content, 4).n_features == 4
    content["features_info"]["float_features"] = [each for each in held if each["feature_index"] != max(asked)]
    with pytest.raises(NoClosedForm, match=r"splits on float feature \d, which is not among .* method='clime'"):
        read_catboost(content)


def test_files_that_are_no_catboost_models_are_named(tmp_path):
    path = tmp_path / "model.cbm"
    path.write_text("CBM1")
    with pytest.raises(UnreadableFile, match=r"model\.cbm holds no JSON.*format='json'"):
        read_catboost(path)
    path.write_text("[1]")
    with pytest.raises(UnreadableFile, match="it holds a list"):
        read_catboost(path)
    with pytest.raises(UnreadableFile, match="this is no CatBoost model"):
        read_catboost({"features_info": {}})


def test_other_models_have_no_trees():
    for model in (LinearRegression().fit(*DIABETES), IsolationForest(n_estimators=2), np.sin, object()):
        assert read_trees(model) is None


def test_subclasses_are_recognised_by_the_names_of_their_parents():
    class Mine(RandomForestRegressor):
        pass

    assert read_trees(Mine(n_estimators=2, random_state=0).fit(*DIABETES)).n_trees == 2


@pytest.mark.parametrize("value", [True, "+", "true"])
def test_lightgbm_that_leaves_trees_out_at_some_rows_is_refused(value):
    stops = {"pred_early_stop": value, "pred_early_stop_margin": 1.0, "pred_early_stop_freq": 2}
    model = lightgbm.LGBMClassifier(**LGBM, **stops).fit(*CANCER)
    for each in (model, model.booster_):
        with pytest.raises(NoClosedForm, match=r"has pred_early_stop among its parameters.*Set pred_early_stop=False"):
            read_trees(each, "margin")
    model = lightgbm.LGBMClassifier(**LGBM).fit(*CANCER)
    assert read_trees(model, "margin").n_trees == 12
    with pytest.raises(NoClosedForm, match="has pred_early_stop among its parameters"):
        read_trees(model.set_params(**stops), "margin")
    assert read_trees(model.set_params(pred_early_stop=False), "margin").n_trees == 12


CURVE = r"turns the sum of its trees .* output='margin', or use method='clime'"
ONLY_A_CURVE = r"turns the sum of its trees .* has no closed form\. Use method='clime'"  # without a raw score
STARTED = {"init": DecisionTreeRegressor(), **SMALL}
TWICE = (WINE[0], np.column_stack([WINE[1], WINE[1]]))


@pytest.mark.parametrize(
    ("model", "data", "output", "message"),
    [
        (GradientBoostingClassifier(**SMALL), CANCER, "probability", f"the GradientBoostingClassifier {CURVE}"),
        (HistGradientBoostingRegressor(loss="poisson", max_iter=3), DIABETES, "probability", ONLY_A_CURVE),
        (xgboost.XGBClassifier(**XGB), WINE, "probability", f"the XGBClassifier {CURVE}"),
        (xgboost.XGBRegressor(objective="reg:gamma", **XGB), DIABETES, "probability", f"the XGBRegressor {CURVE}"),
        (lightgbm.LGBMClassifier(**LGBM), CANCER, "probability", f"the LGBMClassifier {CURVE}"),
        (catboost.CatBoostClassifier(**CAT), WINE, "probability", f"the CatBoostClassifier {CURVE}"),
        (catboost.CatBoostRegressor(loss_function="Poisson", **CAT), DIABETES, "probability", CURVE),
        (GradientBoostingRegressor(**STARTED), DIABETES, "margin", "from a DecisionTreeRegressor.*method='clime'"),
        (xgboost.XGBRegressor(booster="gblinear", n_estimators=2), DIABETES, "margin", "not made of trees; use method"),
        (lightgbm.LGBMRegressor(linear_tree=True, **LGBM), DIABETES, "margin", "linear trees .* use method='clime'"),
        (xgboost.XGBRegressor(missing=-999.0, **XGB), DIABETES, "margin", "takes -999 for a missing value.*'clime'"),
        (RandomForestClassifier(**SMALL), TWICE, "probability", "predicts several targets at once"),
    ],
)
def test_what_has_no_closed_form_is_refused_by_name(model, data, output, message):
    with pytest.raises(NoClosedForm, match=message):
        read_trees(model.fit(*data), output)


def test_models_without_a_margin_say_so():
    with pytest.raises(InvalidArgument, match="output='margin' needs decision_function, which this RandomForest"):
        read_trees(RandomForestClassifier(**SMALL).fit(*WINE), "margin")


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(),
        DecisionTreeRegressor(),
        GradientBoostingRegressor(),
        HistGradientBoostingClassifier(),
        xgboost.XGBClassifier(),
        lightgbm.LGBMRegressor(),
        catboost.CatBoostRegressor(),
    ],
)
def test_models_that_are_not_fitted_say_so(model):
    with pytest.raises(InvalidArgument, match=f"the {type(model).__name__} is not fitted; call its fit first"):
        read_trees(model)


def test_a_reading_that_is_off_is_refused(monkeypatch):
    model = RandomForestRegressor(**SMALL).fit(*DIABETES)
    for wrong in (lambda out: out + 1e-6, lambda out: out * (1 + 1e-8)):
        with monkeypatch.context() as patch:
            patch.setattr(RandomForestRegressor, "predict", lambda self, X, wrong=wrong: wrong(fair(self, X)))
            with pytest.raises(NoClosedForm, match=r"from the RandomForestRegressor predict otherwise .* by up to"):
                read_trees(model)
    with monkeypatch.context() as patch:
        patch.setattr(RandomForestRegressor, "predict", lambda self, X: np.ones((len(X), 2)))
        with pytest.raises(NoClosedForm, match="have 1 outputs and the model 2"):
            read_trees(model)


def fair(model, X):
    return np.mean([each.predict(X) for each in model.estimators_], axis=0)


def test_probes_lie_on_thresholds_and_next_to_them():
    trees = read_trees(DecisionTreeRegressor(random_state=0, max_depth=4).fit(*WHOLE))
    rows = probe_rows(trees)
    for j in np.unique(trees.feature[trees.feature >= 0]):
        known = trees.threshold[trees.feature == j]
        assert np.isin(rows[:, j], known).any()
        assert np.isin(rows[:, j], np.nextafter(known, np.inf)).any()


def test_without_treelite_the_extra_is_named(hide):
    model = HistGradientBoostingRegressor(max_iter=2).fit(*DIABETES)
    hide("treelite")
    with pytest.raises(MissingExtra, match=r"treelite is needed to read the trees of a Hist.*smoothlime\[trees\]"):
        read_trees(model)


def test_asking_for_the_library_imports_none():
    assert readers.__name__ in sys.modules
    heavy = ["numba", "treelite", "sklearn", "xgboost", "lightgbm", "catboost", "scipy"]
    code = (
        "import sys\nfrom smoothlime.exact.trees.read.recognise import read_trees\n"
        f"assert read_trees(object()) is None\nprint([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""A model is read once, and never answered for from memory when it is no longer the model that was read."""

import copy
import gc
import json
import multiprocessing
import pickle
import threading
import warnings
import weakref

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import smoothlime as sl
from smoothlime.errors import NoClosedForm
from smoothlime.exact.trees import form
from smoothlime.exact.trees.read.recognise import Access

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=300)
OTHER = -2 * Y + X[:, 3]
ROW = X[:1]
XGB = {"n_estimators": 12, "max_depth": 4, "n_jobs": 1}
LGBM = {"n_estimators": 12, "n_jobs": 1, "verbose": -1}
CAT = {"iterations": 12, "depth": 4, "thread_count": 1, "verbose": 0, "allow_writing_files": False}

REGRESSORS = {
    "tree": lambda: DecisionTreeRegressor(max_depth=5, random_state=0),
    "forest": lambda: RandomForestRegressor(6, max_depth=5, random_state=0),
    "extra trees": lambda: ExtraTreesRegressor(6, max_depth=5, random_state=0),
    "boosting": lambda: GradientBoostingRegressor(n_estimators=12, random_state=0),
    "hist": lambda: HistGradientBoostingRegressor(max_iter=12, random_state=0),
    "xgboost": lambda: xgboost.XGBRegressor(**XGB),
    "lightgbm": lambda: lightgbm.LGBMRegressor(**LGBM),
    "catboost": lambda: catboost.CatBoostRegressor(**CAT),
}
CLASSIFIERS = {
    "forest": lambda: RandomForestClassifier(6, max_depth=5, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=12, random_state=0),
    "hist": lambda: HistGradientBoostingClassifier(max_iter=12, random_state=0),
    "xgboost": lambda: xgboost.XGBClassifier(**XGB),
    "lightgbm": lambda: lightgbm.LGBMClassifier(**LGBM),
    "catboost": lambda: catboost.CatBoostClassifier(**CAT),
}
LINEAR = {
    "ridge": Ridge,
    "linear": LinearRegression,
    "logistic": LogisticRegression,
    "pipeline": lambda: make_pipeline(StandardScaler(), Ridge()),
    "logistic pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
}


def explain(model, rows=ROW, **more):
    return sl.explain(model, rows, sigma=0.7, **more)


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("values", "prediction", "smoothed", "radius", "row_outputs", "feature_names")
    )


def unread(model, **more):
    """The answer of a process that has never seen the model."""
    held = dict(form._READ)
    form._READ.clear()
    try:
        return explain(model, **more)
    finally:
        form._READ.clear()
        form._READ.update(held)


@pytest.fixture
def reads(monkeypatch):
    """One entry for each time that a model was read and proved."""
    found, prove = [], Access.prove
    monkeypatch.setattr(Access, "prove", lambda access: found.append(type(access.model)) or prove(access))
    return found


# ---- once


@pytest.mark.parametrize("name", REGRESSORS)
def test_the_second_call_does_not_read_again(reads, name):
    model = REGRESSORS[name]().fit(X, Y)
    first, again, elsewhere = explain(model), explain(model), explain(model, X[7:9])
    adapted = explain(sl.as_model(model))
    assert len(reads) == 1
    assert first.is_exact
    assert same(first, again)
    assert same(first, adapted)
    assert same(elsewhere, unread(model, rows=X[7:9]))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_probabilities_and_margins_share_what_was_read(reads, name):
    model = CLASSIFIERS[name]().fit(X, Y > 0)
    for _ in range(2):
        assert explain(model, target=1).is_exact == (name == "forest")  # others draw, their trees known
        if name != "forest":
            assert explain(model, target=1).method == "jumps"
            assert explain(model, output="margin").is_exact
            with pytest.raises(NoClosedForm, match="turns the sum of its trees into its output by a curve"):
                explain(model, target=1, method="exact")
    assert len(reads) == 1


def test_models_that_cannot_be_hashed_or_compared_are_told_apart(reads):
    class Odd(xgboost.XGBRegressor):
        __module__ = "xgboost.sklearn"
        __hash__ = None

        def __eq__(self, other):
            raise AssertionError

    one, other = Odd(**XGB).fit(X, Y), Odd(**XGB).fit(X, OTHER)
    found = [explain(each) for each in (one, other, one, other)]
    assert len(reads) == 2
    assert same(found[0], found[2])
    assert same(found[1], found[3])
    assert not same(found[0], found[1])


# ---- never from memory once it has changed


def edited(booster, edit):
    """Put other contents into the same Booster."""
    content = json.loads(bytes(booster.save_raw(raw_format="json")))
    edit(content["learner"])
    booster.load_model(bytearray(json.dumps(content).encode()))


def rarest_leaf(cover, is_leaf):
    return int(np.flatnonzero(is_leaf)[np.argmin(np.asarray(cover)[is_leaf])])


def change_leaf_of_xgboost(model):
    def edit(learner):
        tree = learner["gradient_booster"]["model"]["trees"][3]
        leaf = rarest_leaf(tree["sum_hessian"], np.array(tree["left_children"]) < 0)
        tree["split_conditions"][leaf] += 0.5
        tree["base_weights"][leaf] += 0.5

    edited(model.get_booster(), edit)


def refresh_leaves(model):
    """As many rounds as before, with other leaves."""
    booster = model.get_booster()
    booster.set_param({"process_type": "update", "updater": "refresh", "refresh_leaf": True})
    data = xgboost.DMatrix(X, OTHER)
    with xgboost.config_context(verbosity=0):
        for i in range(XGB["n_estimators"]):
            booster.update(data, i)
    assert booster.num_boosted_rounds() == XGB["n_estimators"]


def train_xgboost_further(model):
    model.get_booster().update(xgboost.DMatrix(X, OTHER), XGB["n_estimators"])


def change_leaf_of_tree(tree):
    leaf = rarest_leaf(tree.n_node_samples, tree.children_left < 0)
    tree.value[leaf] += 0.5


def change_threshold(tree):
    tree.threshold[0] += 0.01


def change_leaf_of_hist(model):
    nodes = model._predictors[2][0].nodes
    nodes["value"][rarest_leaf(nodes["count"], nodes["is_leaf"].astype(bool))] += 0.5


def swap_two_leaves(model):
    one, other = (model.booster_.get_leaf_output(3, leaf) for leaf in (0, 1))
    model.booster_.set_leaf_output(3, 0, other).set_leaf_output(3, 1, one)


def replace_text(model):
    text = model.booster_.model_to_string().replace("Tree=1\n", "Tree=1\nshrinkage=0.1\n", 1)
    lines = text.split("\n")
    at = [i for i, line in enumerate(lines) if line.startswith("leaf_value=")][2]
    values = lines[at].removeprefix("leaf_value=").split()
    lines[at] = "leaf_value=" + " ".join(["0.75", *values[1:]])
    start = lines.index(next(line for line in lines if line.startswith("tree_sizes=")))
    del lines[start]  # which is made anew
    model.booster_.model_from_string("\n".join(lines))


def grow(model, **more):
    model.set_params(warm_start=True, **more).fit(X, OTHER)


def stop_earlier(model):
    model.get_booster().set_attr(best_iteration="5")


def take_fewer_rounds(model):
    model.booster_.best_iteration = 5


CHANGES = {
    "forest, a leaf": ("forest", lambda m: change_leaf_of_tree(m.estimators_[2].tree_)),
    "forest, a threshold": ("forest", lambda m: change_threshold(m.estimators_[2].tree_)),
    "forest, one tree for another": (
        "forest", lambda m: m.estimators_.__setitem__(0, DecisionTreeRegressor(max_depth=3).fit(X, OTHER)),
    ),
    "forest, one tree less": ("forest", lambda m: m.estimators_.pop()),
    "forest, grown": ("forest", lambda m: grow(m, n_estimators=9)),
    "tree, a leaf": ("tree", lambda m: change_leaf_of_tree(m.tree_)),
    "tree, all leaves": ("tree", lambda m: np.multiply(m.tree_.value, 2, out=m.tree_.value)),
    "extra trees, a leaf": ("extra trees", lambda m: change_leaf_of_tree(m.estimators_[5].tree_)),
    "boosting, a leaf": ("boosting", lambda m: change_leaf_of_tree(m.estimators_[4, 0].tree_)),
    "boosting, grown": ("boosting", lambda m: grow(m, n_estimators=15)),
    "boosting, its rate": ("boosting", lambda m: m.set_params(learning_rate=0.2)),
    "boosting, its start": ("boosting", lambda m: np.add(m.init_.constant_, 1e-7, out=m.init_.constant_)),
    "hist, a leaf": ("hist", change_leaf_of_hist),
    "hist, grown": ("hist", lambda m: grow(m, max_iter=15)),
    "hist, its start": ("hist", lambda m: np.add(m._baseline_prediction, 1e-7, out=m._baseline_prediction)),
    "hist, one tree less": ("hist", lambda m: m._predictors.pop()),
    "xgboost, a leaf": ("xgboost", change_leaf_of_xgboost),
    "xgboost, as many trees with other leaves": ("xgboost", refresh_leaves),
    "xgboost, trained further": ("xgboost", train_xgboost_further),
    "xgboost, fewer rounds": ("xgboost", stop_earlier),
    "xgboost, its start": (
        "xgboost", lambda m: edited(m.get_booster(), lambda at: at["learner_model_param"].update(base_score="[3.5]")),
    ),
    "lightgbm, a leaf": ("lightgbm", lambda m: m.booster_.set_leaf_output(3, 0, 0.7)),
    "lightgbm, two leaves swapped": ("lightgbm", swap_two_leaves),
    "lightgbm, other contents": ("lightgbm", replace_text),
    "lightgbm, fewer rounds": ("lightgbm", take_fewer_rounds),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_model_changed_in_place_is_read_anew(reads, change):
    name, apply = CHANGES[change]
    model = REGRESSORS[name]().fit(X, Y)
    adapted = sl.as_model(model)
    before = explain(model)
    apply(model)
    after = explain(model)
    assert len(reads) == 2
    assert after.is_exact
    assert not same(before, after)
    assert same(after, unread(model))
    assert same(after, explain(adapted))


@pytest.mark.parametrize("name", [*REGRESSORS, *LINEAR])
def test_a_model_fitted_anew_is_read_anew(name):
    make, y, other = {**REGRESSORS, **LINEAR}[name], Y, OTHER
    if "logistic" in name:
        y, other = Y > 0, OTHER > 0
    model = make().fit(X, y)
    adapted, question = sl.as_model(model), {"target": 1} if "logistic" in name else {}
    before = explain(model, **question)
    model.fit(X, other)
    after = explain(model, **question)
    assert before.is_exact
    assert not same(before, after)
    assert same(after, explain(make().fit(X, other), **question))
    assert same(after, explain(adapted, **question))


def test_boosters_trained_further_and_back_are_read_anew(reads):
    data = [lightgbm.Dataset(X, y, free_raw_data=False).construct() for y in (Y, OTHER)]
    booster = lightgbm.train({"verbose": -1, "num_threads": 1}, data[0], 10, keep_training_booster=True)
    found = [explain(booster)]
    booster.update()
    found.append(explain(booster))
    booster.rollback_one_iter()
    found.append(explain(booster))
    booster.update(fobj=lambda predicted, _: (predicted - OTHER, np.ones(len(OTHER))))  # as many trees as before
    found.append(explain(booster))
    assert len(reads) == 4
    assert same(found[0], found[2])
    assert not same(found[1], found[3])
    assert same(found[3], unread(booster))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: np.multiply(m[-1].coef_, 2, out=m[-1].coef_),
        lambda m: setattr(m[-1], "intercept_", m[-1].intercept_ + 1),
        lambda m: np.multiply(m[0].scale_, 3, out=m[0].scale_),
        lambda m: m.steps.pop(0),
    ],
)
@pytest.mark.parametrize("name", ["pipeline", "logistic pipeline"])
def test_linear_models_changed_in_place_are_followed(name, change):
    question = {"target": 1} if "logistic" in name else {}
    model = LINEAR[name]().fit(X, Y > 0 if question else Y)
    adapted, before = sl.as_model(model), explain(model, **question)
    change(model)
    after = explain(model, **question)
    assert before.is_exact
    assert after.is_exact
    assert not same(before, after)
    assert same(after, explain(copy.deepcopy(model), **question))
    assert same(after, explain(adapted, **question))


@pytest.mark.parametrize(
    ("name", "method", "part"),
    [
        ("forest", "predict", lambda model: model),
        ("forest", "predict", lambda model: model.estimators_[0]),
        ("forest", "predict", type),
        ("lightgbm", "predict", lambda model: model.booster_),
        ("hist", "_raw_predict", lambda model: model),
    ],
    ids=["model", "member", "class", "booster", "inner"],
)
def test_a_method_that_was_replaced_is_asked_and_not_remembered(name, method, part, monkeypatch):
    """It differs far from the row only, where nothing but the proof at the thresholds looks."""
    model = REGRESSORS[name]().fit(X, Y)
    assert explain(model).is_exact
    original = getattr(part(model), method)

    def other(*given, **named):
        found = original(*given, **named)
        rows = np.asarray(given[-1])
        return found + 50.0 * (np.abs(rows[:, 0]) > 2.2).reshape(-1, *[1] * (np.ndim(found) - 1))

    with monkeypatch.context() as patch:
        patch.setattr(part(model), method, other)
        for _ in range(2):
            with pytest.raises(NoClosedForm, match="predict otherwise than the model"):
                sl.explain(model, ROW, sigma=0.05, method="exact")
    assert explain(model).is_exact


def test_a_forest_whose_members_are_no_trees_is_not_answered_for():
    model = REGRESSORS["forest"]().fit(X, Y)
    assert explain(model).is_exact
    model.estimators_[0] = LinearRegression().fit(X, Y)
    with pytest.raises(NoClosedForm, match="holds a LinearRegression where a fitted tree belongs"):
        sl.explain(model, ROW, sigma=0.05, method="exact")


def test_parameters_that_change_predictions_are_looked_at_each_time(reads):
    model = REGRESSORS["xgboost"]().fit(X, Y)
    assert explain(model).is_exact
    with pytest.raises(NoClosedForm, match="takes -1 for a missing value"):
        explain(model.set_params(missing=-1.0), method="exact")
    assert explain(model.set_params(missing=np.nan)).is_exact
    light = REGRESSORS["lightgbm"]().fit(X, Y)
    assert explain(light).is_exact
    with pytest.raises(NoClosedForm, match="has pred_early_stop among its parameters"):
        explain(light.set_params(pred_early_stop=True), method="exact")
    assert len(reads) == 2


# ---- the adapter follows its model


@pytest.mark.parametrize("name", [*REGRESSORS, "ridge", "pipeline"])
def test_an_adapter_made_before_the_fit_follows_its_model(name):
    model = {**REGRESSORS, **LINEAR}[name]()
    adapted = sl.as_model(model)
    table = pd.DataFrame(X, columns=list("abcd"))
    for rows, y, names in ((X, Y, ("0", "1", "2", "3")), (table, OTHER, tuple("abcd"))):
        model.fit(rows, y)
        found = explain(adapted, rows[:1])
        assert found.is_exact
        assert same(found, explain(model, rows[:1]))
        assert found.feature_names == (names if names[0] == "a" else found.feature_names)


@pytest.mark.parametrize("name", [*CLASSIFIERS, "logistic"])
def test_classes_of_a_later_fit_have_their_own_names(name):
    model = {**CLASSIFIERS, **LINEAR}[name]()
    labels = [0, 1] if name == "xgboost" else ["no", "yes"]
    model.fit(X, np.take(labels, Y > 0))
    adapted = sl.as_model(model, output="margin" if name not in ("forest", "logistic") else "probability")
    explain(adapted, target=labels[1])
    others = [0, 1, 2] if name == "xgboost" else ["a", "b", "c"]
    model.fit(X, np.take(others, np.digitize(Y, [-0.5, 0.5])))
    assert adapted.outputs == tuple(map(str, others))
    assert explain(adapted, target=str(others[2])).output_name == str(others[2])
    if name == "forest":
        model.classes_[:] = ["x", "y", "z"]
        assert explain(model, target="y").output_name == explain(adapted, target="y").output_name == "y"


# ---- threads, processes, memory


def test_threads_that_ask_at_once_are_all_answered_rightly():
    models = [REGRESSORS[name]().fit(X, y) for name in ("xgboost", "hist", "forest") for y in (Y, OTHER)]
    right = [unread(model) for model in models]
    start, found = threading.Barrier(8), []

    def ask(first):
        start.wait()
        for turn in range(24):
            at = (first + turn) % len(models)
            found.append(same(explain(models[at]), right[at]))

    threads = [threading.Thread(target=ask, args=(first // 2,)) for first in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 8 * 24
    assert all(found)


def test_a_model_changed_while_it_is_read_is_not_kept(monkeypatch):
    """Its trees would be taken for those that it held before."""
    model = REGRESSORS["tree"]().fit(X, Y)
    right, tree, prove = unread(model), model.tree_, Access.prove

    def late(access):
        model.fit(X, OTHER)
        return prove(access)

    with monkeypatch.context() as patched:
        patched.setattr(Access, "prove", late)
        assert same(explain(model), unread(model))
    model.tree_ = tree
    assert same(explain(model), right)


def in_child(model, other, pipe):
    kept = explain(model)
    anew = explain(model.fit(X, other))
    pipe.send((kept.values, anew.values))


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_forked_process_answers_rightly(name):
    model = REGRESSORS[name]().fit(X, Y)
    before = explain(model)
    after = unread(REGRESSORS[name]().fit(X, OTHER))
    ours, theirs = multiprocessing.Pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, from Python 3.12 on
        child = multiprocessing.get_context("fork").Process(target=in_child, args=(model, OTHER, theirs))
        child.start()
    assert ours.poll(60), "the forked process did not answer"
    kept, anew = ours.recv()
    child.join(60)
    np.testing.assert_array_equal(kept, before.values)
    np.testing.assert_array_equal(anew, after.values)
    assert same(explain(model), before)  # which no child has touched


@pytest.mark.parametrize("name", REGRESSORS)
def test_what_was_read_goes_with_the_model(name):
    model = REGRESSORS[name]().fit(X, Y)
    adapted = sl.as_model(model)
    explain(adapted)
    at = id(model)
    kept = weakref.ref(form._READ[at][1].form)
    del model
    gc.collect()
    assert kept() is not None  # the adapter holds the model
    del adapted
    gc.collect()
    assert kept() is None
    assert at not in form._READ


def test_what_was_read_before_is_dropped_with_a_new_fit():
    model = REGRESSORS["forest"]().fit(X, Y)
    explain(model)
    kept = weakref.ref(form._READ[id(model)][1].form)
    explain(model.fit(X, OTHER))
    gc.collect()
    assert kept() is None


def test_copies_and_pickles_do_not_carry_what_was_read():
    model = REGRESSORS["forest"]().fit(X, Y)
    adapted = sl.as_model(model)
    before = pickle.dumps((model, adapted))
    right = explain(adapted)
    assert pickle.dumps((model, adapted)) == before
    for other in (copy.copy(adapted), copy.deepcopy(adapted), pickle.loads(before)[1]):
        assert same(explain(other), right)


def test_a_model_that_takes_no_weak_reference_is_read_each_time(reads):
    class CatBoost:
        __module__ = "catboost.core"
        __slots__ = ("content",)

        def __init__(self, content):
            self.content = content

        def save_model(self, path, format):
            with open(path, "w") as file:
                json.dump(self.content, file)

        def predict(self, rows, prediction_type="RawFormulaVal"):
            return np.where(rows[:, 0].astype(np.float32) > self.content["oblivious_trees"][0]["splits"][0]["border"],
                            self.content["oblivious_trees"][0]["leaf_values"][1], 0.0)  # fmt: skip

    content = {
        "scale_and_bias": [1.0, [0.0]],
        "features_info": {"float_features": [{"feature_index": 0, "flat_feature_index": 0}]},
        "oblivious_trees": [{"splits": [{"float_feature_index": 0, "border": 0.5}], "leaf_values": [0.0, 3.0]}],
    }
    model = CatBoost(content)
    found = [explain(model, [0.2]), explain(model, [0.2])]
    content["oblivious_trees"][0]["leaf_values"][1] = 6.0
    found.append(explain(model, [0.2]))
    assert len(reads) == 3
    assert id(model) not in form._READ
    assert same(found[0], found[1])
    np.testing.assert_allclose(found[2].values, 2 * found[0].values, rtol=1e-12)

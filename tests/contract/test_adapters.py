"""Every adapter keeps the same promises: see adapter_checks.py. Cases of this environment's libraries."""

import tempfile
import time
from functools import cache, partial
from pathlib import Path

import catboost
import lightgbm
import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch
import xgboost
from scipy.special import logsumexp, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import SVR, LinearSVC

import smoothlime as sl

from ..models import model_server
from . import onnx_graphs
from .adapter_checks import CHECKS, Case, assert_rows, called

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
VALUE = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * X[:, 2] * X[:, 3]
TWO, THREE = (VALUE > 0).astype(int), np.digitize(VALUE, [-0.7, 0.7])
POINTS = X[:12]
FEW = {"n_estimators": 6, "n_jobs": 1}
LIGHT = {**FEW, "verbose": -1}
CAT = {"iterations": 6, "depth": 3, "thread_count": 1, "verbose": 0, "allow_writing_files": False}


def network(outputs=3, dtype=torch.float64):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        layers = [torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs)]
        return torch.nn.Sequential(*layers).to(dtype).eval()


def layered(dtype=torch.float64):
    """A network of inputs (n, 2, 2)."""
    return torch.nn.Sequential(torch.nn.Flatten(), *network(dtype=dtype)).eval()


def exported(size=None):
    """For batches of any size, or of one."""
    net = network()
    shapes = ({0: torch.export.Dim("n")},) if size is None else None
    return torch.export.export(net, (torch.tensor(POINTS[: size or 2]),), dynamic_shapes=shapes)


def through_five(program, points):
    """The library's own: batches of five, the last filled up."""
    whole = np.concatenate([points, points[: -len(points) % 5]])
    return np.concatenate([through(program.module(), part) for part in np.split(whole, len(whole) // 5)])[: len(points)]


def all_of(net):
    """Weights, whether they are trained, what was left at them, and the mode of each layer."""
    modes = [each.training for each in net.modules()]
    return modes, [(each.requires_grad, each.grad, each.detach().numpy().tobytes()) for each in net.parameters()]


def through(net, points):
    parameter = next(net.parameters())
    return net(torch.as_tensor(np.asarray(points), dtype=parameter.dtype)).detach().numpy()


def as_probabilities(net, points):
    return softmax(through(net, points).astype(float), axis=1)


def predict(model, points):
    return model.predict(points)


def probabilities(model, points):
    return model.predict_proba(points)


def score(model, points):
    return model.decision_function(points)


def trained(y, names=None, **settings):
    data = xgboost.DMatrix(X, y, feature_names=None if names is None else list(names))
    return xgboost.train({"nthread": 1, **settings}, data, 6)


def by_matrix(booster, points, **how):
    return booster.predict(xgboost.DMatrix(points, feature_names=booster.feature_names), **how)


def light(y, **settings):
    return lightgbm.train({"num_threads": 1, "verbose": -1, **settings}, lightgbm.Dataset(X, y), 6)


MARGIN = {"output": "margin"}
ANY = "any: (n, ...)"
IN_SHAPE = POINTS.reshape(-1, 2, 2)
TORCH = [
    Case("torch module", "float64", network, through, POINTS, gradients=True, method="smoothgrad",
         state=all_of, shapes=ANY),
    Case("torch module", "in a shape", layered, through, IN_SHAPE, gradients=True, method="smoothgrad", state=all_of,
         shapes=ANY),
    Case("torch program (`torch.export`)", "any batch", exported, lambda program, a: through(program.module(), a),
         POINTS, gradients=True, method="smoothgrad", spawns=False, state=lambda program: str(program.graph),
         shapes=ANY, wrong_width="size|shape"),
    Case("torch program (`torch.export`)", "batches of five", partial(exported, 5), through_five, POINTS,
         gradients=True, method="smoothgrad", spawns=False, state=lambda program: str(program.graph), shapes=ANY,
         wrong_width="size|shape"),
    Case(
        "torch module", "float32", partial(network, dtype=torch.float32), through, POINTS.astype(np.float32),
        gradients=True, method="smoothgrad", dtype=np.float32, state=all_of, shapes=ANY,
    ),
    Case(
        "torch module", "probabilities", network, as_probabilities, POINTS, gradients=True, method="smoothgrad",
        options={"output": "probability", "outputs": ("a", "b", "c"), "feature_names": tuple("wxyz")},
        outputs=("a", "b", "c"), feature_names=tuple("wxyz"), state=all_of, shapes=ANY,
    ),
]  # fmt: skip
FUNCTIONS = [
    Case("function", "", lambda: partial(logsumexp, axis=1), lambda f, a: f(a), POINTS, wrong_width=None, state=repr,
         shapes=ANY),
    Case("function", "in a shape", lambda: partial(logsumexp, axis=(1, 2)), lambda f, a: f(a), IN_SHAPE,
         wrong_width=None, state=repr, shapes=ANY),
    Case(
        "function", "several outputs, named", lambda: partial(softmax, axis=1), lambda f, a: f(a), POINTS,
        options={"outputs": tuple("abcd")}, outputs=tuple("abcd"), wrong_width=None, state=repr,
        shapes=ANY,
    ),
    Case(
        "function and its gradient (`from_functions`)", "",
        lambda: sl.from_functions(values=partial(logsumexp, axis=1), gradients=partial(softmax, axis=1)),
        lambda model, a: logsumexp(a, axis=1), POINTS, gradients=True, method="smoothgrad", wrong_width=None,
        shapes=ANY,
    ),
    Case(
        "function and its gradient (`from_functions`)", "in a shape",
        lambda: sl.from_functions(values=partial(logsumexp, axis=(1, 2)), gradients=partial(softmax, axis=(1, 2))),
        lambda model, a: logsumexp(a, axis=(1, 2)), IN_SHAPE, gradients=True, method="smoothgrad", wrong_width=None,
        shapes=ANY,
    ),
    Case(
        "`Model` of one's own", "", lambda: sl.testing.Sine([2.0, 0.5, -1.0, 0.3]), lambda f, a: f.values(a), POINTS,
        outputs=("output",), gradients=True, method="smoothgrad", spawns=False, state=lambda f: sorted(vars(f)),
        shapes=ANY,  # tests/models/test_shapes.py has one
    ),
]  # fmt: skip
SKLEARN = [
    Case("scikit-learn, linear", "regression", lambda: LinearRegression().fit(X, VALUE), predict, POINTS,
         method="exact"),
    Case("scikit-learn, linear", "two classes", lambda: LogisticRegression().fit(X, TWO), probabilities, POINTS,
         outputs=("0", "1"), method="exact"),
    Case("scikit-learn, linear", "margin of three classes", lambda: LogisticRegression().fit(X, THREE), score, POINTS,
         options=MARGIN, outputs=("0", "1", "2"), method="exact"),
    Case("scikit-learn, trees and forests", "forest", lambda: RandomForestClassifier(6, random_state=0).fit(X, THREE),
         probabilities, POINTS, outputs=("0", "1", "2"), method="exact"),
    Case("scikit-learn, trees and forests", "forest of numbers",
         lambda: RandomForestRegressor(6, random_state=0).fit(X, VALUE), predict, POINTS, method="exact"),
    Case("scikit-learn, boosted trees", "histograms",
         lambda: HistGradientBoostingRegressor(max_iter=6).fit(X, VALUE), predict, POINTS, method="exact"),
    Case("scikit-learn, boosted trees", "",
         lambda: GradientBoostingClassifier(n_estimators=6, random_state=0).fit(X, TWO), probabilities, POINTS,
         outputs=("0", "1"), method="jumps"),
    Case("scikit-learn, boosted trees", "margin",
         lambda: GradientBoostingClassifier(n_estimators=6, random_state=0).fit(X, TWO), score, POINTS,
         options=MARGIN, outputs=("1",), method="exact"),
    Case("scikit-learn, all others", "kernels", lambda: SVR().fit(X, VALUE), predict, POINTS),
    Case("scikit-learn, all others", "network",
         lambda: MLPClassifier(5, max_iter=800, random_state=0, tol=1e-2).fit(X, THREE), probabilities, POINTS,
         outputs=("0", "1", "2")),
    Case("scikit-learn, all others", "score of outliers",
         lambda: IsolationForest(n_estimators=6, random_state=0).fit(X), score, POINTS, options=MARGIN),
    Case("pipeline, steps by column and a linear model or a forest", "",
         lambda: make_pipeline(StandardScaler(), LogisticRegression()).fit(X, TWO), probabilities,
         POINTS, outputs=("0", "1"), method="exact"),
    Case("pipeline, steps by column and a linear model or a forest", "selection",
         lambda: make_pipeline(SelectKBest(k=3), MaxAbsScaler(), RandomForestClassifier(6, random_state=0)).fit(
             X, THREE), probabilities, POINTS, outputs=("0", "1", "2"), method="exact"),
    Case("pipeline, steps by column and boosted trees", "",
         lambda: make_pipeline(StandardScaler(), xgboost.XGBClassifier(**FEW)).fit(X, TWO), probabilities,
         POINTS, outputs=("0", "1"), method="jumps"),
    Case("pipeline, steps by column and boosted trees", "regression",
         lambda: make_pipeline(StandardScaler(), xgboost.XGBRegressor(**FEW)).fit(X, VALUE), predict, POINTS,
         method="exact"),
    Case("pipeline, all others", "turned",
         lambda: make_pipeline(PCA(3), LogisticRegression()).fit(X, TWO), probabilities, POINTS,
         outputs=("0", "1")),
    Case("average or bagging of known regressors", "average",
         lambda: VotingRegressor([("line", LinearRegression()), ("trees", RandomForestRegressor(4, random_state=0))]
                                 ).fit(X, VALUE), predict, POINTS, method="exact"),
    Case("average or bagging of known regressors", "bagging",
         lambda: BaggingRegressor(n_estimators=4, max_features=0.7, random_state=0).fit(X, VALUE), predict, POINTS,
         method="exact"),
    Case("soft vote of known classifiers, boosted ones among them", "",
         lambda: VotingClassifier([("line", LogisticRegression()),
                                   ("trees", GradientBoostingClassifier(n_estimators=4, random_state=0))],
                                  voting="soft").fit(X, TWO), probabilities, POINTS, outputs=("0", "1"),
         method="jumps"),
    Case("calibrated classifier, of trees", "",
         lambda: CalibratedClassifierCV(GradientBoostingClassifier(n_estimators=4, random_state=0), cv=2).fit(X, THREE),
         probabilities, POINTS, outputs=("0", "1", "2"), method="jumps"),
    Case("calibrated classifier, of a linear model and two classes", "",
         lambda: CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=2).fit(X, TWO), probabilities, POINTS,
         outputs=("0", "1"), method="exact"),
    Case("transformed target, of a linear model", "",
         lambda: TransformedTargetRegressor(LinearRegression(), func=np.log, inverse_func=np.exp).fit(X, np.exp(VALUE)),
         predict, POINTS, method="exact"),
    Case("transformed target, of trees", "",
         lambda: TransformedTargetRegressor(RandomForestRegressor(4, random_state=0), func=np.log,
                                            inverse_func=np.exp).fit(X, np.exp(VALUE)),
         predict, POINTS, method="jumps"),
]  # fmt: skip
BOOSTED = [
    Case("XGBoost estimator", "regression", lambda: xgboost.XGBRegressor(**FEW).fit(X, VALUE), predict, POINTS,
         method="exact"),
    Case("XGBoost estimator", "three classes", lambda: xgboost.XGBClassifier(**FEW).fit(X, THREE), probabilities,
         POINTS, outputs=("0", "1", "2"), method="jumps"),
    Case("XGBoost estimator", "margin", lambda: xgboost.XGBClassifier(**FEW).fit(X, TWO),
         lambda model, a: model.predict(a, output_margin=True), POINTS, options=MARGIN, outputs=("1",),
         method="exact"),
    Case("LightGBM estimator", "regression", lambda: lightgbm.LGBMRegressor(**LIGHT).fit(X, VALUE), predict, POINTS,
         method="exact"),
    Case("LightGBM estimator", "two classes", lambda: lightgbm.LGBMClassifier(**LIGHT).fit(X, TWO), probabilities,
         POINTS, outputs=("0", "1"), method="jumps"),
    Case("LightGBM estimator", "margin", lambda: lightgbm.LGBMClassifier(**LIGHT).fit(X, THREE),
         lambda model, a: model.predict(a, raw_score=True), POINTS, options=MARGIN, outputs=("0", "1", "2"),
         method="exact"),
    Case("XGBoost `Booster`", "regression", lambda: trained(VALUE), by_matrix, POINTS, method="exact"),
    Case("XGBoost `Booster`", "two classes", lambda: trained(TWO, objective="binary:logistic"), by_matrix, POINTS,
         method="jumps"),
    Case("XGBoost `Booster`", "margins of three classes, named columns",
         lambda: trained(THREE, "abcd", objective="multi:softprob", num_class=3),
         partial(by_matrix, output_margin=True), POINTS, options=MARGIN, feature_names=tuple("abcd"), method="exact"),
    Case("LightGBM `Booster`", "three classes", lambda: light(THREE, objective="multiclass", num_class=3), predict,
         POINTS, method="jumps"),
    Case("LightGBM `Booster`", "margin", lambda: light(TWO, objective="binary"),
         lambda model, a: model.predict(a, raw_score=True), POINTS, options=MARGIN, method="exact"),
    Case("CatBoost", "base class", lambda: catboost.CatBoost({"loss_function": "Logloss", **CAT}).fit(X, TWO),
         lambda model, a: model.predict(a, prediction_type="Probability"), POINTS, outputs=("0", "1"),
         method="jumps"),
    Case("CatBoost", "regression", lambda: catboost.CatBoostRegressor(**CAT).fit(X, VALUE), predict, POINTS,
         method="exact"),
    Case("CatBoost", "two classes", lambda: catboost.CatBoostClassifier(**CAT).fit(X, TWO), probabilities, POINTS,
         outputs=("0", "1"), method="jumps"),
    Case("CatBoost", "margin", lambda: catboost.CatBoostClassifier(**CAT).fit(X, TWO),
         lambda model, a: model.predict(a, prediction_type="RawFormulaVal"), POINTS, options=MARGIN, outputs=("1",),
         method="exact"),
]  # fmt: skip


def onnx_session(made):
    return onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])


def by_runtime(model, points, output="y"):
    """Answers of a session of the test's own, whatever the model was given as."""
    if isinstance(model, Path):
        model = onnx.load(model)
    session = model if hasattr(model, "run") else onnx_session(model)
    if hasattr(points, "columns"):
        kinds = {each.name: each.type for each in session.get_inputs()}
        fed = {
            name: points[name].to_numpy(object if "string" in kinds[name] else np.float32)[:, None] for name in points
        }
    else:
        fed = {"x": np.asarray(points, dtype=np.float32)}
    return session.run([output], fed)[0]


def by_dicts(model, points):
    return [[row[name] for name in ("blue", "green", "red")] for row in by_runtime(model, points, "dicts")]


@cache
def folder():
    return tempfile.TemporaryDirectory()


def onnx_file():
    path = Path(folder().name) / "network.onnx"
    path.write_bytes(onnx_graphs.network().SerializeToString())
    return path


SINGLE = POINTS.astype(np.float32)
RUNTIME = {"dtype": np.float32, "shapes": ANY}
ONNX = [
    Case("ONNX file, `ModelProto` or `InferenceSession`", "file", onnx_file, by_runtime, SINGLE, **RUNTIME,
         state=Path.read_bytes),
    Case("ONNX file, `ModelProto` or `InferenceSession`", "session", lambda: onnx_session(onnx_graphs.network()),
         by_runtime, SINGLE, **RUNTIME, state=lambda session: None, spawns=False),
    Case("ONNX file, `ModelProto` or `InferenceSession`", "one by one", lambda: onnx_graphs.network(batch=1),
         lambda model, a: np.concatenate([by_runtime(model, row[None]) for row in a]), SINGLE, **RUNTIME),
    Case("ONNX file, `ModelProto` or `InferenceSession`", "probabilities as dicts",
         lambda: onnx_graphs.classifier(zipmap=True), by_dicts, SINGLE, **RUNTIME,
         outputs=("blue", "green", "red")),
    Case("ONNX file, `ModelProto` or `InferenceSession`", "columns",
         lambda: onnx_graphs.of_columns("float", "string", "float"), by_runtime,
         pd.DataFrame({"a": SINGLE[:, 0], "b": list("xyz") * 4, "c": SINGLE[:, 1]}), **RUNTIME,
         feature_names=("a", "b", "c")),
]  # fmt: skip
ADDRESS = [
    Case("address (`sl.remote`)", protocol,
         lambda protocol=protocol: sl.remote(f"{model_server.started()}/{protocol}/contract", protocol=protocol,
                                             outputs=("up", "down")),
         lambda model, a: model_server.f(a), POINTS, outputs=("up", "down"), wrong_width=None,
         state=lambda model: model.url, shapes=ANY)
    for protocol in ("v2", "v1", "mlflow")
]  # fmt: skip
CASES = [*TORCH, *FUNCTIONS, *ADDRESS, *SKLEARN, *BOOSTED, *ONNX]


@pytest.mark.parametrize("check", CHECKS, ids=called)
@pytest.mark.parametrize("case", CASES, ids=called)
def test_the_contract(case, check):
    check(case)


def test_the_page_has_a_row_for_each_kind():
    assert_rows(CASES, "contract", complete=True)


class Faulty:
    """log Σ exp, with one fault."""

    def __init__(self, fault):
        self.fault = fault
        self.outputs = ("a", "b")[: 1 + (fault == "swapped")]
        self.dtype = np.float32 if fault == "type" else np.float64

    def values(self, points):
        if self.fault == "written":
            self.calls = True
        if self.fault == "shared":
            self.points = points  # another thread puts its own there
            time.sleep(1e-4)
            points = self.points
        if self.fault == "swapped":
            return np.column_stack([-logsumexp(points, axis=1), logsumexp(points, axis=1)])
        out = logsumexp(points, axis=1)[:, None]
        if self.fault == "batch":
            out = out + 1e-9 * len(points)
        return out * (1 + 1e-10) if self.fault == "value" else out

    def values_and_gradients(self, points, weights):
        gradient = softmax(points, axis=1) * (1.0 if self.fault == "gradient" else weights)
        return self.values(points), gradient


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("value", "values_are_the_librarys_own"),
        ("gradient", "gradients_are_finite_differences"),
        ("type", "dtype_is_the_models"),
        ("swapped", "targets_go_by_position_and_name"),
        ("batch", "the_size_of_a_batch_changes_nothing"),
        ("shared", "threads_give_the_same"),
        ("written", "the_model_is_left_as_it_was_found"),
        ("", "rows_of_a_wrong_width_are_refused"),
        ("", "explain_takes_it_as_it_is"),
    ],
)
def test_the_checks_see_faults(fault, check):
    def ask(model, points):
        out = logsumexp(points, axis=1)
        return np.column_stack([out, -out]) if fault == "swapped" else out

    outputs = ("a", "b") if fault == "swapped" else ("a",)
    case = Case("", "", lambda: Faulty(fault), ask, POINTS, outputs=outputs, gradients=True, state=repr)
    (asked,) = [each for each in CHECKS if each.__name__ == check]
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        asked(case)

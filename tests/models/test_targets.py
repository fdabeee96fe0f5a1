import copy
import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import SVC

import smoothlime as sl
from smoothlime.errors import InvalidArgument, WrongType

A = np.array([[1.0, 2.0], [0.5, -1.0], [-1.0, 0.2]])
MODEL = sl.from_functions(
    values=lambda a: np.column_stack([a @ row for row in A]),
    gradients=lambda a: np.broadcast_to(A, (len(a), 3, 2)),
    outputs=("red", "green", "blue"),
)
X = np.array([[1.0, 1.0], [-2.0, 0.0]])


@pytest.mark.parametrize("method", ["smoothgrad", "clime"])
class TestTargets:
    def explain(self, method, target):
        return sl.explain(MODEL, X, method=method, target=target, n_samples=64)

    def test_by_position_and_name(self, method):
        for target in (1, np.int64(1), "green"):
            e = self.explain(method, target)
            np.testing.assert_allclose(e.values, [A[1], A[1]], atol=1e-12)
            np.testing.assert_allclose(e.prediction, X @ A[1])
            assert e.output_name == "green"

    def test_predicted_is_each_rows_own_top_output(self, method):
        e = self.explain(method, "predicted")
        np.testing.assert_allclose(e.values, [A[0], A[2]], atol=1e-12)
        assert e.row_outputs == ("red", "blue")
        assert e.output_name == "predicted"

    def test_contrasts_weigh_outputs(self, method):
        e = self.explain(method, {"red": 1, "blue": -2})
        np.testing.assert_allclose(e.values, [A[0] - 2 * A[2]] * 2, atol=1e-12)
        assert e.output_name == "red − 2·blue"

    @pytest.mark.parametrize(
        "target",
        [
            ["blue", "green"],
            (2, "green"),
            np.array([2, 1]),
            np.array(["blue", "green"]),
            pd.Series(["blue", "green"], index=[7, 7]),
            pl.Series([2, 1]),
            pa.array(["blue", "green"]),
            torch.tensor([2, 1]),
        ],
    )
    def test_one_for_each_row(self, method, target):
        e = self.explain(method, target)
        np.testing.assert_allclose(e.values, [A[2], A[1]], atol=1e-12)
        np.testing.assert_allclose(e.prediction, [X[0] @ A[2], X[1] @ A[1]])
        assert (e.output_name, e.row_outputs) == ("by row", ("blue", "green"))

    def test_one_for_each_row_is_what_each_row_says_alone(self, method):
        both = self.explain(method, ["red", "blue"])
        for row, target in enumerate(both.row_outputs):
            alone = self.explain(method, target)
            np.testing.assert_allclose(both.values[row], alone.values[row], rtol=1e-12)
            np.testing.assert_allclose(both.radius[row], alone.radius[row], rtol=1e-12, atol=1e-15)

    def test_the_same_for_each_row_keeps_its_name(self, method):
        assert self.explain(method, ["red", 0]).output_name == "red"

    def test_every_output_from_the_same_draws(self, method):
        each = sl.explain_outputs(MODEL, X, method=method, n_samples=64)
        assert list(each) == ["red", "green", "blue"]
        for name, e in each.items():
            alone = self.explain(method, name)
            np.testing.assert_allclose(e.values, alone.values, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(e.prediction, alone.prediction)
            assert e.output_name == name

    def test_every_output_with_draws_by_row(self, method):
        each = sl.explain_outputs(MODEL, X, method=method, n_samples=64, draws="independent")
        alone = sl.explain(MODEL, X, method=method, n_samples=64, draws="independent", target="blue")
        np.testing.assert_allclose(each["blue"].values, alone.values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        (None, InvalidArgument, r"the model has 3 outputs; say which.*'red', 'green', 'blue', or 'predicted'"),
        (3, InvalidArgument, r"target 3 is out of range; positions go from 0 to 2"),
        (-1, InvalidArgument, r"target -1 is out of range"),
        (True, InvalidArgument, r"output's position or name, which True is not; write target=1 if that is meant"),
        (np.True_, InvalidArgument, r"output's position or name, which True is not; write target=1"),
        ("purple", InvalidArgument, r"target 'purple' is not an output; the outputs are 'red'"),
        (1.5, WrongType, r"target must be an output's position or name"),
        ({"red": 0}, InvalidArgument, r"weight other than 0"),
        ({"red": np.nan}, InvalidArgument, r"weights must be finite numbers"),
        ({"red": 1e308, "green": -1e308}, InvalidArgument, r"weights must be finite numbers, and 1e\+100 at most"),
        ({"red": 10**400}, InvalidArgument, r"weights must be finite numbers, and 1e\+100 at most"),
        ({"purple": 1}, InvalidArgument, r"target 'purple' is not an output"),
        (["red"], InvalidArgument, r"target has 1 entries for 2 rows; a list is one output for each row"),
        ([], InvalidArgument, r"target has 0 entries for 2 rows"),
        ([0, 1, 2], InvalidArgument, r"target has 3 entries for 2 rows.*give weights: \{'a': 1, 'b': -1\}"),
        (["red", "purple"], InvalidArgument, r"at row 1, target 'purple' is not an output; the outputs are 'red'"),
        ([0, 3], InvalidArgument, r"at row 1, target 3 is out of range; positions go from 0 to 2"),
        ([True, 1], InvalidArgument, r"at row 0, target must be .* which True is not; write target=1"),
        ([0, 1.5], WrongType, r"at row 1, target must be an output's position or name; got 1.5"),
        ([0, None], WrongType, r"at row 1, target must be an output's position or name; got None"),
        ([0, {"red": 1}], WrongType, r"at row 1, target must be an output's position or name; got \{'red'"),
        ([["red"], ["red"]], WrongType, r"at row 0, target must be an output's position or name; got \['red'\]"),
        (np.array([[0], [1]]), WrongType, r"one for each row; got a ndarray of shape \(2, 1\)"),
        ({0, 1}, WrongType, r"one for each row; got a set"),
        (iter([0, 1]), WrongType, r"one for each row; got a list_iterator"),
        (pd.DataFrame({"a": [0, 1]}), WrongType, r"one for each row; got a DataFrame of shape \(2, 1\)"),
    ],
)
def test_bad_targets_say_what_is_wanted(target, kind, message):
    with pytest.raises(kind, match=message):
        sl.explain(MODEL, X, target=target)


def test_an_output_may_be_called_true():
    model = sl.as_model(lambda a: a[:, :2], outputs=["False", "True"])
    with pytest.raises(InvalidArgument, match="which True is not; write target='True' if that is meant"):
        sl.explain(model, X, target=True)
    assert sl.explain(model, X, target="True", n_samples=64).output_name == "True"


class TestMarginOfTwoClasses:
    """Positions are those of the classes, whichever output is asked for."""

    ROWS = pd.DataFrame(X, columns=["a", "b"])
    LABELS = ("no", "yes")
    MODELS: ClassVar = {
        "exact": LogisticRegression().fit(X, LABELS),
        "drawn": SVC().fit(X, LABELS),
        "table": LogisticRegression().fit(ROWS, LABELS),
    }

    def explain(self, kind, target):
        rows = self.ROWS if kind == "table" else X
        return sl.explain(self.MODELS[kind], rows, output="margin", target=target)

    @pytest.mark.parametrize("kind", MODELS)
    def test_the_score_is_that_of_the_second_class(self, kind):
        for target in (None, 1, np.int64(1), "yes", {1: 1.0}, {"yes": 1}):
            e = self.explain(kind, target)
            assert (e.prediction > 0).tolist() == [False, True]
            assert e.output_name == "yes"

    @pytest.mark.parametrize("kind", MODELS)
    @pytest.mark.parametrize("target", [0, "no", {0: 1.0}])
    def test_the_first_class_has_none(self, kind, target):
        with pytest.raises(InvalidArgument, match=r"is class 'no', but the margin .* of 'yes': leave target out, or"):
            self.explain(kind, target)

    @pytest.mark.parametrize("target", [2, -1, "maybe"])
    def test_other_targets_are_no_outputs(self, target):
        with pytest.raises(InvalidArgument, match=r"is not an output; the margin of two classes is the score of 'yes'"):
            self.explain("exact", target)

    def test_signs_are_those_of_probabilities(self):
        by_probability = sl.explain(self.MODELS["exact"], X, target=1)
        assert (np.sign(by_probability.values) == np.sign(self.explain("exact", 1).values)).all()

    def test_models_can_be_copied(self):
        model = sl.as_model(self.MODELS["exact"], output="margin")
        copied = pickle.loads(pickle.dumps(copy.deepcopy(model)))
        assert (copied.outputs, copied.outputs.against) == (("yes",), "no")

    def test_a_single_output_of_another_model_is_at_position_0(self):
        for model in (LinearRegression().fit(X, X @ A[0]), IsolationForest(n_estimators=5).fit(X), lambda a: a[:, 0]):
            output = "margin" if hasattr(model, "decision_function") else "probability"
            assert sl.explain(model, X, target=0, output=output, n_samples=64).output_name == "output"


def test_predicted_needs_something_to_choose_from():
    with pytest.raises(InvalidArgument, match="needs several outputs"):
        sl.explain(lambda a: a[:, 0], X, target="predicted")


class TestTargetsByRow:
    """The same list wherever a target is taken."""

    @pytest.mark.parametrize(
        ("fitted", "output"),
        [
            (LogisticRegression(max_iter=1_000), "margin"),
            (RandomForestClassifier(5, random_state=0), "probability"),
        ],
    )
    def test_of_closed_forms(self, fitted, output):
        iris = load_iris()
        fitted.fit(iris.data, iris.target_names[iris.target])
        rows, names = iris.data[[0, 70, 140]], ["virginica", "setosa", "setosa"]
        each = sl.explain_outputs(fitted, rows, output=output)
        e = sl.explain(fitted, rows, target=names, output=output)
        assert e.is_exact
        for row, name in enumerate(names):
            np.testing.assert_allclose(e.values[row], each[name].values[row], rtol=1e-12, atol=1e-15)

    def test_of_a_path(self):
        path = sl.sigma_path(MODEL, X[0], [0.1, 1.0], target=["blue"])
        assert path.output_name == "blue"
        np.testing.assert_allclose(path.values, [A[2], A[2]], atol=1e-12)

    def test_of_neighbours(self):
        curved = sl.as_model(lambda a: np.tanh(a @ A.T), outputs=["red", "green", "blue"])
        settings = {"sigma": 0.5, "n_samples": 256, "method": "stein"}
        both = sl.robustness(curved, X, target=["red", "blue"], **settings)
        for row, name in enumerate(["red", "blue"]):
            alone = sl.robustness(curved, X, target=name, **settings)
            np.testing.assert_allclose(both.per_row[row], alone.per_row[row], rtol=1e-9)
        with pytest.raises(InvalidArgument, match="target has 3 entries for 2 rows"):
            sl.robustness(curved, X, target=[0, 1, 2], **settings)

    def test_of_agreement_and_certificates(self):
        names = ["red", "blue"]
        assert sl.agreement(MODEL, X, sigma=0.5, target=names).agrees == (True, True)
        bounded = sl.as_model(lambda a: 1 / (1 + np.exp(-a @ A.T)), outputs=["red", "green", "blue"])
        promise = sl.certify(bounded, X, sigma=0.5, target=names, output_range=(0, 1), n_samples=200)
        for row, name in enumerate(names):
            alone = sl.certify(bounded, X, sigma=0.5, target=name, output_range=(0, 1), n_samples=200)
            np.testing.assert_allclose(promise.residual[row], alone.residual[row], rtol=1e-12)
        words = "the output asked for at a row is explained where the row moves, too"
        assert words in promise.assumes
        assert words in sl.certify(bounded, sl.explain(bounded, X, target=names), output_range=(0, 1)).assumes

    def test_in_a_file(self, tmp_path):
        e = sl.explain(MODEL, X, target=["blue", "red"], n_samples=64)
        e.save(tmp_path / "e.json")
        again = sl.load(tmp_path / "e.json")
        assert (again.output_name, again.row_outputs) == ("by row", ("blue", "red"))

    def test_a_certificate_refuses_them_before_the_model_is_asked(self):
        with pytest.raises(InvalidArgument, match="target 'purple' is not an output"):
            sl.certify(MODEL, X, sigma=0.5, target=["red", "purple"], output_range=(0, 1))

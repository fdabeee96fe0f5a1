"""What is no model: the error names the nearest recipe."""

import itertools
import math
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
import xgboost
from sklearn.cluster import DBSCAN
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, RandomForestClassifier, RandomForestRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import smoothlime as sl
from smoothlime.errors import ModelError, NotDeterministic, SmoothlimeError, WrongType

X = np.random.default_rng(0).normal(size=(20, 3))
FOREST = RandomForestClassifier(2, random_state=0).fit(X, X[:, 0] > 0)


def of(library, *bases, **members):
    """A thing that looks as if it came from a library."""
    kinds = tuple(type(name, (), {"__module__": f"{library}.somewhere"}) for name in bases)
    return type("Its", kinds, {"__module__": f"{library}.somewhere", **members})()


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (None, r"got a NoneType: did a function that trains or loads it forget to return it\? The page"),
        ("model", r"got a str 'model': give the model itself or the path of its file, not its name"),
        ("x" * 200, r"got a str: give the model itself"),
        (
            "model.pkl",
            r"got a str 'model\.pkl', which is no file that is here; load it with pickle\.load and give what you get",
        ),
        (Path("model.joblib"), r"got a PosixPath 'model\.joblib', .* load it with joblib\.load"),
        ("net.PT", r"load it with torch\.load"),
        ("model.ubj", r"load it with xgboost\.Booster\(model_file=\.\.\.\)"),
        ("https://models.example/score", r"for a model behind an address, give sl\.remote\(url, protocol=\.\.\.\)"),
        ({"model": FOREST, "mean": 0.0}, r"got a dict, which has no predict: give what it holds, model\['model'\]"),
        ({"a": 1}, r"got a dict, which has no predict: give a function of points"),
        (torch.nn.Linear(3, 1).state_dict(), r"weights without a network: load them .*load_state_dict"),
        ([FOREST, FOREST], r"got a list of 2: give one model at a time.*np\.mean\(\[each\.predict\(a\)"),
        ((X, X), r"got a tuple: the model comes first, then the rows: explain\(model, X\)"),
        (X, r"got a ndarray: the model comes first, then the rows"),
        (pd.DataFrame(X), r"got a DataFrame: the model comes first"),
        (torch.zeros(2), r"got a Tensor: the model comes first"),
        (b"model", r"got a bytes: load them with the library that wrote them; of ONNX, give onnxruntime\.Inf"),
        (3, r"got a int: the model comes first"),
        (xgboost.DMatrix(X), r"got a DMatrix, which is data: give the Booster or estimator"),
        (lightgbm.Dataset(X), r"got a Dataset, which is data"),
        (lightgbm.CVBooster(), r"got a CVBooster, which holds a Booster for each fold: give one, model\.boosters\[0\]"),
        (DBSCAN(), r"got a DBSCAN, which labels the rows it was fitted on, but no others"),
        (StandardScaler().fit(X), r"got a StandardScaler, which transforms rows: .*lambda a: model\.transform\(a\)"),
        (math, r"got a module, which is Python's: give the model in it, math\.<name>"),
        (of("tensorflow", "Module"), r"got a Its: give a function that calls it, lambda a: model\(tf\.constant"),
        (object(), r"got a object\. The page 'Bring your model'"),
        (of("transformers", "Pipeline", __call__=len), "model is a Its of transformers, which takes text or pictures"),
        (of("transformers", "PreTrainedTokenizerBase", __call__=len), "of transformers, which takes text or pictures"),
    ],
    ids=lambda each: str(type(each).__name__) if not isinstance(each, str) else each[:20],
)
@pytest.mark.parametrize("ask", [sl.as_model, lambda model: sl.explain(model, X)], ids=["as_model", "explain"])
def test_what_is_no_model_names_the_nearest_recipe(thing, said, ask):
    with pytest.raises(WrongType, match=said) as caught:
        ask(thing)
    assert str(caught.value).endswith("has an example of each kind")


@pytest.mark.parametrize(
    "model",
    [
        RandomForestRegressor(), LinearRegression(), LogisticRegression(),
        make_pipeline(StandardScaler(), LinearRegression()), VotingRegressor([("line", LinearRegression())]),
        BaggingRegressor(), TransformedTargetRegressor(LinearRegression()), xgboost.XGBRegressor(),
        lightgbm.LGBMClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_what_is_not_fitted_says_so(model):
    with pytest.raises(SmoothlimeError, match=r"not fitted.*[Cc]all '?(its )?fit"):
        sl.explain(model, X)


@pytest.mark.parametrize("kind", [RandomForestClassifier, xgboost.Booster, torch.nn.Linear, dict])
def test_a_class_is_no_model(kind):
    with pytest.raises(WrongType, match=f"model is the class {kind.__name__}; give an instance of it"):
        sl.explain(kind, X)


def alternating(*, share):
    """An answer that moves by so many parts of itself from call to call."""
    calls = itertools.count()
    return lambda a: np.cos(a).sum(axis=1) * (1 + share * (next(calls) % 3))


class TestOrderOfSums:
    """A forest on several threads adds its trees up as they end: the last digits of its answers vary."""

    def test_last_digits_may_vary(self):
        e = sl.explain(alternating(share=2.0**-50), X[:2], sigma=0.3, n_samples=512, method="clime")
        expected = sl.explain(alternating(share=0.0), X[:2], sigma=0.3, n_samples=512, method="clime")
        np.testing.assert_allclose(e.values, expected.values, rtol=1e-9, atol=1e-12)

    def test_more_may_not(self):
        with pytest.raises(NotDeterministic, match="the model gave two answers for row 0"):
            sl.explain(alternating(share=1e-11), X[:2], sigma=0.3, n_samples=512, method="clime")

    def test_each_output_is_held_to_its_own_size(self):
        small = alternating(share=1e-6)
        with pytest.raises(NotDeterministic, match="row 0, output 1"):
            sl.explain(lambda a: np.column_stack([1e9 + a[:, 0], small(a)]), X[:2], target=0)

    def test_a_forest_of_trees_added_up_in_any_order(self):
        forest = RandomForestRegressor(40, random_state=0).fit(X, X[:, 0])
        order = np.random.default_rng(0)

        def predict(a):
            trees = [tree.predict(a) for tree in forest.estimators_]
            return sum(trees[j] for j in order.permutation(40)) / 40

        e = sl.explain(predict, X[:3], sigma=0.3, n_samples=256)
        expected = sl.explain(forest, X[:3], sigma=0.3, method="exact")
        assert (np.abs(e.values - expected.values) <= 5 * e.standard_error).all()


class TestWhatMayHelp:
    @pytest.mark.parametrize(
        ("model", "said"),
        [
            (
                lambda row: row[0] + row[1],
                r"got \(3,\) \(it is given many points at once; around a function of one row",
            ),
            (lambda row: math.sin(row[0]), r"TypeError .*around a function of one row put lambda a: \[function\(row\)"),
            (lambda row: 1.0 if row[0] > 0 else 0.0, r"ValueError .*around a function of one row put"),
            (np.sum, r"got \(\) \(it is given many points"),
            (lambda a: np.stack([a[:, 0], a[:, 1], a[:, 2]])[:2], r"got \(2, 4\)\. .* return the transpose"),
            (lambda a: a[:, :, None], r"got \(4, 3, 1\)\. Return the part of each point's outputs that is explained"),
            (lambda a: a.unsqueeze(0), r"no attribute 'unsqueeze' \(a model is given many points at once, as an array"),
        ],
        ids=["numbers", "scalar", "condition", "sum", "transposed", "axes", "tensor"],
    )
    def test_functions(self, model, said):
        with pytest.raises(ModelError, match=said):
            sl.explain(model, X[:4])

    def test_a_network_with_numpy_inside_has_values(self):
        class Inside(torch.nn.Module):
            def forward(self, a):
                return torch.tensor(a.numpy().sum(axis=1))

        with pytest.raises(ModelError, match=r"\(method='clime' needs only predictions\)"):
            sl.explain(Inside().eval(), X[:2])
        np.testing.assert_allclose(sl.explain(Inside().eval(), X[:2], method="clime").values, 1, atol=1e-4)

    def test_models_that_want_data_frames(self):
        class Scorer:
            def predict(self, table):
                return 2 * table["a"] + table["c"]

        table = pd.DataFrame(X[:4], columns=list("abc"))
        with pytest.raises(ModelError, match=r"as_model\(model\.predict, takes='table'\) gives it data frames"):
            sl.explain(Scorer(), table)
        e = sl.explain(sl.as_model(Scorer().predict, takes="table"), table)
        np.testing.assert_allclose(e.values, np.tile([2.0, 0.0, 1.0], (4, 1)), atol=1e-9)

    def test_names_for_outputs_without_any(self):
        def model(a):
            return pd.DataFrame({"u": a[:, 0], "v": a[:, 1]})

        with pytest.raises(SmoothlimeError, match=r"outputs are '0', '1'; name them by as_model\(model, outputs="):
            sl.explain(model, X[:2], target="v")
        assert sl.explain(sl.as_model(model, outputs=["u", "v"]), X[:2], target="v").output_name == "v"

    def test_raw_scores_of_an_objective_of_ones_own(self):
        def objective(y, p):
            return p - y, np.ones_like(p)

        model = lightgbm.LGBMClassifier(n_estimators=3, objective=objective, n_jobs=1, verbose=-1, min_child_samples=2)
        model.fit(X, X[:, 0] > 0)
        with (
            pytest.warns(UserWarning, match="Cannot compute class probabilities"),
            pytest.raises(SmoothlimeError, match=r"names 2 outputs .* returned 1\..* give output='margin'"),
        ):
            sl.explain(model, X[:2], target=1)
        assert sl.explain(model, X[:2], output="margin").is_exact


class TestInputsAndOutputsBesideTheFirst:
    def test_several_outputs_of_a_function_want_a_choice(self):
        def model(a):
            return a[:, 0], a

        with pytest.raises(ModelError, match=r"returned a tuple of 2 parts.*output_key=0\)"):
            sl.explain(model, np.zeros((3, 2)))
        assert sl.explain(sl.as_model(model, output_key=0), np.zeros((3, 2))).values.shape == (3, 2)

    def test_a_tuple_of_numbers_is_one_output(self):
        e = sl.explain(lambda a: tuple(map(float, 2 * a[:, 0])), np.zeros((2, 2)), n_samples=64)
        np.testing.assert_allclose(e.values, [[2, 0]] * 2, atol=1e-9)

    def test_a_missing_input_names_held(self):
        with pytest.raises(ModelError, match=r"'mask' \(inputs beside the first are held: as_model\(model, held="):
            sl.explain(lambda a, mask: a[:, 0] * mask, np.zeros((2, 2)))

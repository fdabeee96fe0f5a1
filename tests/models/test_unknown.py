"""What is no model: the error names the nearest recipe."""

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
from smoothlime.errors import ModelError, SmoothlimeError, WrongType

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

"""ONNX models: what their inputs and outputs may be, and what is said where they cannot be explained."""

import pickle
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import softmax

import smoothlime as sl
from smoothlime.errors import (
    InvalidArgument,
    LostPrecision,
    MissingExtra,
    MissingFile,
    ModelError,
    NoGradients,
    UnreadableFile,
    WrongType,
)

from ..contract import onnx_graphs as graphs

X = np.random.default_rng(0).normal(size=(6, 4))
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": list("xyzxyz")})


def session(model):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def saved(model, folder):
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("form", ["path", "text", "proto", "session"])
def test_files_models_and_sessions_are_models(form, tmp_path):
    made = graphs.network()
    path = saved(made, tmp_path)
    model = {"path": path, "text": str(path), "proto": made, "session": session(made)}[form]
    e = sl.explain(model, X, target=1, sigma=0.3, n_samples=256)
    np.testing.assert_allclose(e.prediction, graphs.logits(X)[:, 1], rtol=1e-5)
    same = sl.explain(graphs.logits, X, target=1, sigma=0.3, n_samples=256)
    np.testing.assert_allclose(e.values, same.values, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "dtype", "spacing"),
    [("float", "float32", 2.0**-23), ("double", "float64", 2.0**-52), ("float16", "float32", 2.0**-10)],
)
def test_the_spacing_of_its_numbers_is_respected(kind, dtype, spacing):
    model = sl.as_model(graphs.network(kind))
    assert (model.dtype, model.epsilon) == (dtype, spacing)
    near = sl.Neighbourhood(20 * spacing)
    with pytest.warns(LostPrecision):
        sl.explain(model, X[:1] / np.abs(X[0]).max(), sigma=near, target=0, n_samples=64)


def test_labels_beside_probabilities_are_left_out():
    e = sl.explain(graphs.classifier(), X, target=2, n_samples=64)
    np.testing.assert_allclose(e.prediction, softmax(graphs.logits(X), axis=1)[:, 2], rtol=1e-5)


def test_dicts_of_probabilities_name_the_classes():
    each = sl.explain_outputs(graphs.classifier(zipmap=True), X, n_samples=64)
    assert list(each) == ["blue", "green", "red"]  # the runtime sorts them
    np.testing.assert_allclose(each["blue"].prediction, softmax(graphs.logits(X), axis=1)[:, 2], rtol=1e-5)
    renamed = sl.as_model(graphs.classifier(zipmap=True), outputs=list("abc"))
    assert renamed.outputs == tuple("abc")


@pytest.mark.parametrize("batch", [1, 4])
def test_a_batch_of_a_fixed_size_is_filled(batch):
    model = sl.as_model(graphs.network(batch=batch))
    np.testing.assert_allclose(model.values(X.astype(np.float32)), graphs.logits(X), rtol=1e-5, atol=1e-6)
    e = sl.explain(model, X, target=1, n_samples=64)
    np.testing.assert_allclose(e.values, sl.explain(graphs.network(), X, target=1, n_samples=64).values, atol=1e-5)


class TestColumns:
    def test_inputs_of_one_column_each_are_features(self):
        model = graphs.of_columns("float", "double")
        for rows in (X[:, :2], FRAME[["a", "b"]]):
            e = sl.explain(model, rows, n_samples=64)
            assert e.feature_names == ("a", "b")
            np.testing.assert_allclose(e.prediction, np.tanh(X[:, 0] + X[:, 1]), rtol=1e-5)
        with pytest.raises(InvalidArgument, match="at position 0 X has 'b' and the model 'a'"):
            sl.explain(model, FRAME[["b", "a"]], n_samples=64)

    @pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
    def test_words_come_in_tables_and_are_held(self, kind):
        rows = {"pandas": FRAME, "polars": pl.from_pandas(FRAME), "pyarrow": pa.Table.from_pandas(FRAME)}[kind]
        model = graphs.of_columns("float", "float", "string")
        e = sl.explain(model, rows, n_samples=64)
        np.testing.assert_allclose(e.prediction, np.tanh(X[:, 0] + X[:, 1] + [0, 1, 2, 0, 1, 2]), rtol=1e-5)
        assert np.isnan(e.values[:, 2]).all()
        with pytest.raises(WrongType, match="takes tables"):
            sl.explain(model, X[:, :3])

    def test_tables_are_as_coarse_as_the_model(self):
        model, rows = graphs.of_columns("float", "float", "string"), FRAME.assign(a=1.0, b=1.0)
        with pytest.warns(LostPrecision):
            sl.explain(model, rows, sigma=1e-5, n_samples=64)

    def test_whole_numbers_are_held(self):
        rows = X[:, :2].copy()
        rows[:, 1] = [0, 1, 2, 0, 1, 2]
        model = graphs.of_columns("float", "int64")
        with pytest.raises(ModelError, match=r"input 'b' .*takes whole numbers \(int64\).*fixed=\['b'\]"):
            sl.explain(model, rows, n_samples=64)
        e = sl.explain(model, rows, sigma=sl.Neighbourhood(fixed=["b"]), n_samples=64)
        np.testing.assert_allclose(e.prediction, np.tanh(rows.sum(axis=1)), rtol=1e-5)


def test_points_are_given_the_shape_that_the_file_fixes():
    model = graphs.whole(
        [("Tanh", ["x"], ["t"], {}), ("ReduceSum", ["t", "axes"], ["y"], {"keepdims": 0})],
        [("x", "float", [None, 2, 1, 2])], [("y", "float", [None])], {"axes": np.array([1, 2, 3])},
    )  # fmt: skip
    for rows in (X, X.reshape(6, 2, 1, 2)):
        e = sl.explain(model, rows, n_samples=64)
        np.testing.assert_allclose(e.prediction, np.tanh(X).sum(axis=1), rtol=1e-5)


class TestRefused:
    def test_several_inputs_that_are_no_columns(self):
        model = graphs.whole(
            [("Add", ["x", "mask"], ["y"], {})], [("x", "float", [None, 4]), ("mask", "float", [None, 4])],
            [("y", "float", [None, 4])],
        )  # fmt: skip
        with pytest.raises(
            WrongType, match=r"x: float \(n, 4\), mask: float \(n, 4\).*neither one table.*lambda a: sess"
        ):
            sl.as_model(model)

    def test_several_outputs_without_a_choice(self):
        model = graphs.whole(
            [("Tanh", ["x"], ["y"], {}), ("Exp", ["x"], ["z"], {})], [("x", "float", [None, 4])],
            [("y", "float", [None, 4]), ("z", "float", [None, 4])],
        )  # fmt: skip
        with pytest.raises(InvalidArgument, match=r"several outputs, 'y', 'z'; say which.*output_key"):
            sl.as_model(model)
        for key in ("z", 1):
            e = sl.explain(sl.as_model(model, output_key=key), X, target=2, n_samples=64)
            np.testing.assert_allclose(e.prediction, np.exp(X[:, 2]), rtol=1e-5)

    def test_an_output_that_is_not_there(self):
        with pytest.raises(InvalidArgument, match=r"output_key 'z' is no output of the ONNX model; it has 'y'"):
            sl.as_model(graphs.network(), output_key="z")

    def test_labels_alone(self):
        nodes = [("ArgMax", ["x"], ["label"], {"axis": 1, "keepdims": 0})]
        model = graphs.whole(nodes, [("x", "float", [None, 4])], [("label", "int64", [None])])
        with pytest.raises(WrongType, match=r"returns 'label' .*labels, which have no slopes"):
            sl.as_model(model)

    def test_whole_numbers_alone(self):
        nodes = [("Cast", ["x"], ["y"], {"to": 1})]
        model = graphs.whole(nodes, [("x", "int64", [None, 4])], [("y", "float", [None, 4])])
        with pytest.raises(WrongType, match=r"takes nothing that could move \(x: int64 \(n, 4\)\)"):
            sl.as_model(model)

    def test_pixels_are_rounded_in_a_function(self):
        nodes = [("Cast", ["x"], ["y"], {"to": 1})]
        model = graphs.whole(nodes, [("x", "uint8", [None, 4])], [("y", "float", [None, 4])])
        with pytest.raises(WrongType, match=r"lambda a: session\.run\(None, \{'x': np\.clip\(np\.rint\(a\), 0, 255\)"):
            sl.as_model(model)

    def test_flat_rows_where_sizes_are_open(self):
        nodes = [("Flatten", ["x"], ["y"], {})]
        model = graphs.whole(nodes, [("x", "float", [None, 1, None, None])], [("y", "float", [None, None])])
        with pytest.raises(InvalidArgument, match=r"of shape \(n, 1, n, n\).*rows of 4 numbers: give X in that shape"):
            sl.explain(model, X, target=0)
        e = sl.explain(model, X.reshape(6, 1, 2, 2), target=3, n_samples=64)
        assert e.input_shape == (1, 2, 2)
        np.testing.assert_allclose(e.values, np.tile([0, 0, 0, 1], (6, 1)), atol=1e-5)

    @pytest.mark.parametrize("width", [3, 5])
    def test_a_column_too_few_or_too_many(self, width):
        with pytest.raises(InvalidArgument, match=f"X has {width} features but the model takes 4"):
            sl.explain(graphs.network(), np.zeros((2, width)))

    def test_no_file_and_no_onnx(self, tmp_path):
        with pytest.raises(MissingFile, match=r"there is no file .*none\.onnx"):
            sl.as_model(tmp_path / "none.onnx")
        (tmp_path / "text.onnx").write_text("no model at all")
        with pytest.raises(UnreadableFile, match=r"text\.onnx' cannot be loaded by onnxruntime"):
            sl.as_model(str(tmp_path / "text.onnx"))

    def test_gradients_and_margins(self, tmp_path):
        path = saved(graphs.network(), tmp_path)
        with pytest.raises(NoGradients, match=r"a model\.onnx gives only values"):
            sl.explain(path, X, target=0, method="smoothgrad")
        with pytest.raises(InvalidArgument, match="outputs of an ONNX model are explained as they are"):
            sl.explain(path, X, target=0, output="margin")

    def test_a_session_cannot_be_sent_but_a_file_can(self, tmp_path):
        made = graphs.network()
        with pytest.raises(pickle.PicklingError, match=r"give the path of its \.onnx file"):
            pickle.dumps(sl.as_model(session(made)))
        for model in (made, saved(made, tmp_path)):
            again = pickle.loads(pickle.dumps(sl.as_model(model, outputs=list("pqr"))))
            assert again.outputs == tuple("pqr")
            np.testing.assert_allclose(again.values(X), graphs.logits(X), rtol=1e-5, atol=1e-6)

    def test_a_machine_without_the_runtime(self, hide, tmp_path):
        path = saved(graphs.network(), tmp_path)
        hide("onnxruntime")
        with pytest.raises(MissingExtra, match=r"pip install 'smoothlime\[onnx\]'"):
            sl.as_model(Path(path))


def test_operators_of_ones_own_are_not_loaded():
    model = graphs.whole([("Mine", ["x"], ["y"], {})], [("x", "float", [None, 4])], [("y", "float", [None, 4])])
    with pytest.raises(UnreadableFile, match="the ONNX model cannot be loaded"):
        sl.as_model(model)

"""Models from files: what their libraries wrote is what they are, and nothing else is read."""

import hashlib
import io
import json
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import smoothlime as sl
from smoothlime.errors import InvalidArgument, MissingFile, UnreadableFile, WrongType
from smoothlime.models.files import read_model

from ..contract import onnx_graphs

DIGITS = {False: 0.0, True: 1e-13}
"""How far answers may be apart: CatBoost's JSON has no more digits."""

NAMES = ["age", "debt", "pay"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(150, 3)), columns=NAMES)
    return table.assign(pay=(3 * table["pay"].abs()).round())  # which some models take for a category


@pytest.fixture(scope="module")
def sold(table):
    return (table["age"] + table["debt"] ** 2 > 0.7).astype(int) + (table["pay"] > 3)


def of_xgboost(kind, form):
    def made(path, table, y):
        import xgboost

        if kind == "Booster":
            settings = {"objective": "binary:logistic", "nthread": 1}
            model = xgboost.train(settings, xgboost.DMatrix(table, y > 0), 4)
        else:
            model = getattr(xgboost, kind)(n_estimators=4, n_jobs=1).fit(table, y)
        path = path.with_suffix(f".{form}")
        model.save_model(path)
        return model, path

    return made


def of_xgboost_with(y_of=lambda table, y: y, **settings):
    def made(path, table, y):
        import xgboost

        types = ["q", "q", "c"] if settings.pop("by_category", False) else None
        data = xgboost.DMatrix(table, y_of(table, y), feature_types=types, enable_categorical=True)
        model = xgboost.train({"nthread": 1, **settings}, data, 4)
        path = path.with_suffix(".ubj")
        model.save_model(path)
        return model, path

    return made


def of_lightgbm(objective, **more):
    def made(path, table, y):
        import lightgbm

        settings = {"objective": objective, "num_threads": 1, "verbose": -1, "num_leaves": 5, **more}
        settings |= {"num_class": 3} if objective == "multiclass" else {}
        y = y > 0 if objective == "binary" else y
        model = lightgbm.train(settings, lightgbm.Dataset(table, y), 4)
        model.save_model(path)
        return model, path

    return made


def of_catboost(kind, form, **settings):
    def made(path, table, y):
        import catboost

        model = getattr(catboost, kind)(iterations=4, depth=3, verbose=0, allow_writing_files=False, **settings)
        model.fit(table, y)
        model.save_model(str(path), format=form)
        return model, path

    return made


def of_skops(make):
    def made(path, table, y):
        import skops.io

        model = make().fit(table, y)
        skops.io.dump(model, path)
        return model, path

    return made


def forest():
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(4, max_depth=3, random_state=0)


def boosted():
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(max_iter=4)


def pipeline():
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression())


WRITTEN = {
    "xgboost classifier json": of_xgboost("XGBClassifier", "json"),
    "xgboost classifier ubj": of_xgboost("XGBClassifier", "ubj"),
    "xgboost regressor ubj": of_xgboost("XGBRegressor", "ubj"),
    "xgboost booster json": of_xgboost("Booster", "json"),
    "xgboost booster of three classes by category": of_xgboost_with(
        lambda table, y: y, objective="multi:softprob", num_class=3, by_category=True
    ),
    "xgboost booster of two numbers": of_xgboost_with(
        lambda table, y: np.c_[y, table["age"]], multi_strategy="multi_output_tree", tree_method="hist"
    ),
    "xgboost booster dart": of_xgboost_with(booster="dart", rate_drop=0.5),
    "xgboost booster of lines": of_xgboost_with(booster="gblinear"),
    "lightgbm linear trees": of_lightgbm("regression", linear_tree=True),
    "lightgbm two classes": of_lightgbm("binary"),
    "lightgbm three classes": of_lightgbm("multiclass"),
    "lightgbm regression": of_lightgbm("regression"),
    "catboost classifier cbm": of_catboost("CatBoostClassifier", "cbm"),
    "catboost classifier json": of_catboost("CatBoostClassifier", "json"),
    "catboost regressor cbm": of_catboost("CatBoostRegressor", "cbm"),
    "catboost poisson json": of_catboost("CatBoostRegressor", "json", loss_function="Poisson"),
    "skops forest": of_skops(forest),
    "skops boosted": of_skops(boosted),
    "skops pipeline": of_skops(pipeline),
}


@pytest.fixture(scope="module")
def written(table, sold, tmp_path_factory):
    """Each model, the path of its file under a name that says nothing, and what was read from there."""
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for i, (name, make) in enumerate(WRITTEN.items()):
        model, path = make(folder / f"made_{i}", table, sold)
        path = path.rename(folder / f"model_{i}")
        read, digest = read_model(path)
        assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
        found[name] = model, path, read
    return found


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_answers_as_the_model_that_was_saved(written, table, name):
    model, _, read = written[name]
    live, again = sl.as_model(model), sl.as_model(read)
    assert again.feature_names == tuple(NAMES)
    assert again.outputs == live.outputs
    assert again.output_range == live.output_range
    np.testing.assert_allclose(again.values(table), live.values(table), rtol=DIGITS[name.endswith("json")], atol=0)


@pytest.mark.parametrize("name", [name for name in WRITTEN if not set(name.split()) & {"lines", "linear", "category"}])
def test_a_file_is_explained_exactly_where_the_model_is(written, table, name):
    model, _, read = written[name]
    output = "probability" if set(name.split()) & {"forest", "regressor", "regression", "boosted"} else "margin"
    each = [sl.explain_outputs(one, table[:3], sigma=0.3, output=output) for one in (model, read)]
    assert list(each[0]) == list(each[1])
    for name_of_output, live in each[0].items():
        assert live.is_exact
        assert each[1][name_of_output].is_exact
        scale = np.abs(live.values).max()
        rtol = DIGITS[name.endswith("json")]
        np.testing.assert_allclose(each[1][name_of_output].values / scale, live.values / scale, rtol=0, atol=rtol)


def test_onnx_is_known_by_its_bytes(tmp_path):
    path = tmp_path / "model.txt"
    path.write_bytes(onnx_graphs.of_columns("float", "float").SerializeToString())
    read, _ = read_model(path)
    rows = np.array([[0.1, 0.2], [0.3, -0.5]])
    np.testing.assert_allclose(sl.as_model(read).values(rows)[:, 0], np.tanh(rows.sum(axis=1)), rtol=1e-6)
    e = sl.explain(read, rows, sigma=0.2, n_samples=64)
    assert e.feature_names == ("a", "b")


def sequential():
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).eval()


def save_program(net, path):
    import torch

    sizes = ({0: torch.export.Dim("n")},)
    torch.export.save(torch.export.export(net, (torch.zeros(2, 3),), dynamic_shapes=sizes), path)


def save_script(net, path):
    import torch

    buffer = io.BytesIO()
    torch.jit.save(torch.jit.trace(net, torch.zeros(2, 3)), buffer)
    path.write_bytes(buffer.getvalue())


def save_module(net, path, **settings):
    import torch

    torch.save(net, path, **settings)


TRUSTED_ONLY = {
    "a program of torch.export": save_program,
    "a TorchScript module": save_script,
    "a module or weights of torch.save": save_module,
    "a module or weights of torch.save, former": lambda net, path: save_module(
        net, path, _use_new_zipfile_serialization=False
    ),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
@pytest.mark.parametrize("what", TRUSTED_ONLY)
def test_what_torch_writes_is_read_only_on_trust(tmp_path, table, what):
    net, path = sequential(), tmp_path / "net.pt2"
    TRUSTED_ONLY[what](net, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(UnreadableFile) as refused:
        read_model(path)
    said = str(refused.value)
    assert f"{str(path)!r} is {what.partition(',')[0]}" in said
    assert digest in said
    assert f"--trust {path}" in said
    read, again = read_model(path, trust=True)
    assert again == digest
    rows = table.to_numpy()[:3]
    np.testing.assert_allclose(sl.as_model(read).values(rows), sl.as_model(net).values(rows), atol=1e-6)
    slopes = [sl.explain(one, rows, sigma=0.3, target=1, n_samples=64).values for one in (read, net)]
    np.testing.assert_allclose(*slopes, atol=1e-6)


class Bomb:
    """Says so where it is made."""

    def __reduce__(self):
        return (exec, ("import builtins; builtins.bomb_went_off = True",))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("squeeze", ["", "zlib", "gzip", "bz2", "xz", "lzma"])
def test_no_pickle_runs(tmp_path, protocol, squeeze):
    import builtins

    import joblib

    path = tmp_path / "model.json"
    if squeeze:
        joblib.dump(Bomb(), path, compress=(squeeze, 3), protocol=protocol)
    else:
        path.write_bytes(pickle.dumps(Bomb(), protocol))
    kind = "compressed, as joblib's files may be" if squeeze else "a pickle"
    with pytest.raises(UnreadableFile, match=f"is {kind}, .*runs whatever code is in it: it is not loaded"):
        read_model(path)
    assert not hasattr(builtins, "bomb_went_off")
    read_model(path, trust=True)  # it would have run
    assert builtins.bomb_went_off
    del builtins.bomb_went_off


@pytest.mark.parametrize("compress", [0, 3])
def test_joblib_is_read_on_trust(tmp_path, table, sold, compress):
    import joblib

    model = forest().fit(table, sold)
    joblib.dump(model, tmp_path / "model", compress=compress)
    with pytest.raises(UnreadableFile, match="it is not loaded"):
        read_model(tmp_path / "model")
    read, _ = read_model(tmp_path / "model", trust=True)
    np.testing.assert_array_equal(read.predict_proba(table), model.predict_proba(table))


def test_what_a_pickle_lacks_is_said(tmp_path):
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04cno_such_module\nthing\n.")
    with pytest.raises(UnreadableFile, match=r"loading it failed: ModuleNotFoundError: .*no_such_module.*Install what"):
        read_model(tmp_path / "model.pkl", trust=True)


class Scaler:
    """A type that nobody knows."""

    def fit(self, X, y=None):
        return self

    def predict(self, X):
        return np.asarray(X).sum(axis=1)


def test_types_in_skops_are_named_before_they_are_made(tmp_path, table):
    import skops.io

    path = tmp_path / "model.skops"
    skops.io.dump(Scaler(), path)
    name = f"{Scaler.__module__}.Scaler"
    with pytest.raises(
        UnreadableFile, match=rf"types that are not known to be harmless: {name}\..*--trust-type {name}"
    ):
        read_model(path)
    read, _ = read_model(path, trust_types=[name])
    np.testing.assert_array_equal(read.predict(table), table.sum(axis=1))
    with pytest.raises(InvalidArgument, match="trust_types must be names of types"):
        read_model(path, trust_types=["os system"])


@pytest.mark.parametrize(("name", "count"), [("num_feature", 2_000_000_000), ("num_class", 2_000_000_000)])
def test_counts_that_xgboost_would_make_room_for_have_bounds(name, count, tmp_path):
    import xgboost

    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix([[0.0]], [1.0]), 0)
    told = json.loads(bytes(booster.save_raw("json")))
    told["learner"]["learner_model_param"][name] = str(count)
    (tmp_path / "model.json").write_text(json.dumps(told))
    with pytest.raises(UnreadableFile, match=r"it claims 2,000,000,000 .*at most are read"):
        read_model(tmp_path / "model.json")


def test_pipelines_that_impute_are_read_from_skops(tmp_path, table):
    import skops.io
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline

    rows = np.asarray(table, dtype=float)
    model = make_pipeline(SimpleImputer(), LinearRegression()).fit(rows, rows.sum(axis=1))
    skops.io.dump(model, tmp_path / "model.skops")
    read, _ = read_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(read.predict(rows), model.predict(rows))


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "."), text)
    return buffer.getvalue()


FOREIGN = {
    "empty": (b"", "is empty"),
    "text": (b"age,debt\n1,2\n", "is no model file that is known here. Files that are read: ONNX"),
    "python": (b"import os\n", "is no model file that is known here"),
    "one byte": (b"\x08", "is no model file that is known here"),
    "json": (b'{"a": 1}', "is JSON, but neither a model of XGBoost nor of CatBoost"),
    "broken json": (b'{"learner": ', "is no JSON that can be read: Expecting value"),
    "deep json": (b'{"learner":' * 100_000, "is no JSON that can be read"),
    "learner": (b'{"learner": 3}', "is no model of XGBoost that can be read"),
    "trees": (b'{"oblivious_trees": 3}', "is no model of CatBoost that can be read"),
    "ubjson": (b"{L\0\0\0\0\0\0\0\x07learner", "is no model of XGBoost that can be read: it ends at byte"),
    "deep ubjson": (b"{i\x01a" * 100_000, "is no model of XGBoost that can be read: it is nested"),
    "lightgbm": (b"tree\nversion=v4\n", "is no model of LightGBM that can be read"),
    "cbm": (b"CBM1", "is no model of CatBoost that can be read"),
    "onnx": (b"\x08\x0a\x12\x05hello", "cannot be loaded by onnxruntime"),
    "hdf5": (b"\x89HDF\r\n\x1a\n", "is HDF5, as Keras wrote; export the model to ONNX"),
    "parquet": (b"PAR1", "is Parquet, so a table"),
    "numpy": (b"\x93NUMPY", "is an array of NumPy, which is no model"),
    "pmml": (b"<?xml version='1.0'?>", "is XML, as PMML is"),
    "library": (b"\x7fELF", "is a compiled library, which is not run"),
    "tflite": (b"\x1c\0\0\0TFL3", "is TensorFlow Lite"),
    "safetensors": (b"\x20\0\0\0\0\0\0\0{}", "is safetensors, so weights without a network"),
    "former xgboost": (b"binf", "is XGBoost's former binary format"),
    "zip": (zipped(a="1"), "is a zip archive without a model that is known here"),
    "keras": (zipped(config__json="{}", model__weights__h5=""), "is an archive of Keras"),
    "broken zip": (zipped(a="1")[:-8], "begins as a zip archive, as skops and torch write, but is damaged"),
    "skops without a schema": (zipped(schema__json="{}"), "is no skops file that can be read"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_what_is_no_model_is_refused(tmp_path, case):
    data, message = FOREIGN[case]
    path = tmp_path / "model.json"
    path.write_bytes(data)
    for trust in (False, True):
        with pytest.raises(UnreadableFile) as refused:
            read_model(path, trust=trust)
        assert message in str(refused.value)
        assert repr(str(path)) in str(refused.value)


def test_files_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(MissingFile, match="there is no file"):
        read_model(tmp_path / "model.ubj")
    with pytest.raises(UnreadableFile, match="is a folder; give a file in it"):
        read_model(tmp_path)
    with pytest.raises(UnreadableFile, match="is no regular file"):
        read_model("/dev/null")
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_model("model\0.json")
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_model("x" * 5000)


def test_weights_alone_are_no_model(tmp_path):
    import torch

    torch.save(sequential().state_dict(), tmp_path / "weights.pt")
    weights, _ = read_model(tmp_path / "weights.pt", trust=True)
    with pytest.raises(WrongType, match="weights without a network"):
        sl.as_model(weights)


def test_children_that_would_be_read_past_the_end_are_seen(written, tmp_path):
    _, path, _ = written["xgboost booster json"]
    told = json.loads(path.read_bytes())
    tree = told["learner"]["gradient_booster"]["model"]["trees"][0]
    for name, value in (("left_children", 10_000), ("left_children", 0), ("right_children", -7), ("split_indices", 9)):
        usual = tree[name][0]
        tree[name][0] = value
        (tmp_path / "model").write_text(json.dumps(told))
        with pytest.raises(UnreadableFile, match="do not fit together"):
            read_model(tmp_path / "model")
        tree[name][0] = usual
    (tmp_path / "model").write_text(json.dumps(told))
    read_model(tmp_path / "model")


DAMAGED = {
    "xgboost classifier ubj": 24,
    "xgboost booster of two numbers": 12,
    "lightgbm two classes": 16,
    "skops forest": 20,
    "catboost classifier cbm": 8,
}
"""How many damaged copies are read."""


def test_no_damage_is_more_than_an_error(written, tmp_path):
    graph = tmp_path / "graph"
    graph.write_bytes(onnx_graphs.of_columns("float", "float").SerializeToString())
    files = [*((str(written[name][1]), str(count)) for name, count in DAMAGED.items()), (str(graph), "80")]
    command = [sys.executable, str(Path(__file__).parent / "damage.py"), *(word for pair in files for word in pair)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for name, seen in json.loads(done.stdout.splitlines()[-1]).items():
        assert set(seen) <= {"refused", "read"}, (name, seen)
        assert seen["refused"] >= sum(seen.values()) / 4  # what is cut off, at least


def test_ways_through_a_tree_without_an_end_are_seen(written, tmp_path):
    _, path, _ = written["xgboost booster json"]
    told = json.loads(path.read_bytes())
    tree = told["learner"]["gradient_booster"]["model"]["trees"][0]
    inner = next(i for i, child in enumerate(tree["left_children"]) if i and child >= 0)
    tree["left_children"][inner], tree["parents"][0] = 0, inner
    (tmp_path / "model").write_text(json.dumps(told))
    with pytest.raises(UnreadableFile, match="its children do not fit together"):
        read_model(tmp_path / "model")
    _, path, _ = written["lightgbm two classes"]
    lines = path.read_text().split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("left_child="))
    children = lines[at].removeprefix("left_child=").split(" ")
    place = next(i for i, child in enumerate(children) if int(child) > 0)
    lines[at] = "left_child=" + " ".join([*children[:place], "0", *children[place + 1 :]])
    assert len(lines[at]) == len("left_child=" + " ".join(children))  # the sizes of trees hold
    (tmp_path / "model").write_text("\n".join(lines))
    with pytest.raises(UnreadableFile, match="its children do not fit together"):
        read_model(tmp_path / "model")

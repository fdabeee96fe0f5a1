"""Model files on the command line: MODEL may be one wherever there is a MODEL."""

import hashlib
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LinearRegression

import smoothlime as sl
from smoothlime.cli import main

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.normal(size=(40, 2)), columns=["age", "debt"])
LABEL = 2 * TABLE["age"] + np.abs(TABLE["debt"])


class Twice:
    """A model of one's own."""

    def fit(self, X, y=None):
        return self

    def predict(self, X):
        return 2 * np.asarray(X)[:, 0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    import skops.io
    import xgboost

    folder = tmp_path_factory.mktemp("models")
    TABLE.assign(label=LABEL)[["label", "debt", "age"]].to_csv(folder / "rows.csv", index=False)
    for name, rounds in (("old", 3), ("new", 8)):
        model = xgboost.XGBRegressor(n_estimators=rounds, n_jobs=1).fit(TABLE, LABEL)
        model.save_model(folder / f"{name}.ubj")
    line = LinearRegression().fit(TABLE, LABEL)
    (folder / "models.py").write_text("raise SystemExit")
    (folder / "line.pkl").write_bytes(pickle.dumps(line))
    skops.io.dump(Twice(), folder / "twice.skops")
    return folder


def run(folder, *arguments):
    return CliRunner().invoke(main, [str(folder / each) if (folder / each).exists() else each for each in arguments])


def test_explain_takes_the_columns_of_the_model(folder, tmp_path):
    import xgboost

    out = tmp_path / "e.json"
    done = run(folder, "explain", "old.ubj", "rows.csv", "--rows", "5", "-o", str(out))
    assert done.exit_code == 0, done.output
    assert "rows.csv that the model does not take: label\n" in done.output
    live = xgboost.XGBRegressor(n_estimators=3, n_jobs=1).fit(TABLE, LABEL)
    e = sl.load(out)
    expected = sl.explain(live, TABLE[:5], sigma=0.5, background=TABLE)
    assert e.feature_names == ("age", "debt")
    assert e.is_exact
    np.testing.assert_allclose(e.values, expected.values, rtol=1e-12)
    np.testing.assert_array_equal(e.prediction, expected.prediction)


def test_check_and_bench_and_compare_take_files(folder, tmp_path):
    done = run(folder, "check", "old.ubj", "rows.csv", "--rows", "2", "--n-samples", "256", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output.splitlines()[-1])["rows"] == 2
    done = run(folder, "compare", "old.ubj", "new.ubj", "rows.csv", "--rows", "5", "--json")
    assert done.exit_code == 3, done.output
    done = run(folder, "compare", "new.ubj", "new.ubj", "rows.csv", "--rows", "5", "--json")
    assert done.exit_code == 0, done.output
    done = run(folder, "bench", "old.ubj", "--data", "rows.csv", "--rows", "1", "--draws", "64,128", "--repeats", "2")
    assert done.exit_code == 0, done.output


def test_a_pickle_needs_trust(folder, tmp_path):
    digest = hashlib.sha256((folder / "line.pkl").read_bytes()).hexdigest()
    done = run(folder, "explain", "line.pkl", "rows.csv")
    assert done.exit_code == 2
    assert "is a pickle, and a pickle runs whatever code is in it: it is not loaded" in done.output
    assert digest in done.output
    out = tmp_path / "e.json"
    done = run(folder, "explain", "line.pkl", "rows.csv", "--trust", "line.pkl", "-o", str(out))
    assert done.exit_code == 0, done.output
    assert f"line.pkl is trusted, and its code has run: SHA-256 {digest}" in done.output
    assert sl.load(out).is_exact
    done = run(folder, "explain", "line.pkl", "rows.csv", "--trust", "old.ubj")
    assert done.exit_code == 2
    assert "it is not loaded" in done.output
    done = run(folder, "explain", "line.pkl", "rows.csv", "--trust", "no.pkl")
    assert done.exit_code == 2
    assert "--trust names 'no.pkl', and there is no such file" in done.output
    done = run(folder, "compare", "old.ubj", "line.pkl", "rows.csv", "--rows", "2")
    assert done.exit_code == 2
    assert "it is not loaded" in done.output
    done = run(folder, "compare", "old.ubj", "line.pkl", "rows.csv", "--rows", "2", "--trust", "line.pkl")
    assert done.exit_code == 3, done.output


def test_types_of_skops_files_are_named(folder, tmp_path):
    name = f"{Twice.__module__}.Twice"
    arguments = ("explain", "twice.skops", "rows.csv", "--columns", "age,debt", "-o", str(tmp_path / "e.json"))
    done = run(folder, *arguments)
    assert done.exit_code == 2
    assert f"--trust-type {name}" in done.output
    done = run(folder, *arguments, "--trust-type", name)
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(sl.load(tmp_path / "e.json").values[:, 0], 2, atol=1e-9)
    done = run(folder, *arguments, "--trust-type", "a b")
    assert done.exit_code == 2
    assert "smoothlime: --trust-type must be names of types with their modules" in done.output


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("rows.csv", "rows.csv' is no model file that is known here"),
        (".", "is a folder; give a file in it"),
        ("no_such.json", "there is no file 'no_such.json'; MODEL must be a model file, or module:attribute"),
        ("models.py", "MODEL names a module, not a file: models:ATTRIBUTE with --path"),
        (":line", "MODEL must be a model file, or module:attribute"),
    ],
)
def test_what_is_no_model_is_named(folder, model, said):
    done = run(folder, "explain", model, "rows.csv")
    assert done.exit_code == 2
    assert said in done.output
    assert "Traceback" not in done.output

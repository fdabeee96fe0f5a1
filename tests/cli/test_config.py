"""Settings from a TOML file: what is typed comes first, then the file, then the default."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import smoothlime as sl
from smoothlime.cli import main

MODELS = "line = lambda a: 3 * a[:, 0] - a[:, 1]\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "configured_models.py").write_text(MODELS)
    (tmp_path / "rows.csv").write_text('age,debt,"a, b"\n1,2,0\n3,5,1\n2,8,0\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder, toml, *arguments):
    (folder / "s.toml").write_text(toml)
    return CliRunner().invoke(main, [*arguments, "--config", "s.toml"])


EVERYTHING = """
model = "configured_models:line"
table = "rows.csv"
path = "."
out = "e.json"
rows = 2
columns = ["age", "debt", "a, b"]
fixed = "debt"
n-samples = 64
raw-units = true
switches = false
sigma = 0.25
one_hot = ["none"]
target = 0
[scale]
age = "log"
"""


def test_everything_may_stand_in_the_file(folder):
    done = run(folder, EVERYTHING, "explain")
    assert done.exit_code == 0, done.output
    e = sl.load("e.json")
    assert e.feature_names == ("age", "debt", "a, b")
    assert e.neighbourhood.fixed == ("debt",)
    assert len(e) == 2
    assert set(e.n_samples) == {64}
    assert e.neighbourhood.sigma == 0.25
    assert e.neighbourhood.scales[0] == "log"


def test_what_is_typed_comes_first(folder):
    done = run(folder, EVERYTHING, "explain", "--sigma", "0.5", "--rows", "1", "--fixed", "age", "--scale", "linear")
    assert done.exit_code == 0, done.output
    e = sl.load("e.json")
    assert len(e) == 1
    assert e.neighbourhood.sigma == 0.5
    assert e.neighbourhood.fixed == ("age",)
    np.testing.assert_allclose(e.values, [[np.nan, -1, 0]], atol=1e-9)


def test_every_command_reads_one(folder):
    done = run(folder, 'method = "stein"\neps = 0.1\nd = 4\noutput-range = [0, 1]\njson = true\n', "plan")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["n_samples"] > 0
    done = run(folder, "sigma = 1", "reproduce")
    assert done.exit_code == 2
    assert "'s.toml' sets 'sigma', which reproduce does not have; the nearest is" in done.output


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("sgima = 1", "'s.toml' sets 'sgima', which explain does not have; the nearest is 'sigma'"),
        ("n-smaples = 1", "the nearest is 'n-samples'"),
        ("[explain]\nsigma = 1", "'s.toml' sets 'explain', which explain does not have"),
        ("config = 'other.toml'", "'s.toml' sets 'config', which explain does not have"),
        ("rows = 2.5", "Invalid value for '--rows': '2.5' is not a valid integer"),
        ("rows = true", "rows in 's.toml' must not be true or false; got True"),
        ("raw-units = 1", "raw-units in 's.toml' must be true or false; got 1"),
        ("sigma = 2020-01-01", "sigma in 's.toml' must be text, a number, or a list of these"),
        ("columns = [['age']]", "columns in 's.toml' must be text, a number, or a list of these"),
        ("sigma = ", "--config: 's.toml' is no TOML: Invalid value (at "),
        ("output = 'votes'", "Invalid value for '--output': 'votes' is not one of"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(folder, toml, said):
    done = run(folder, toml, "explain", "configured_models:line", "rows.csv", "--path", ".")
    assert done.exit_code == 2, done.output
    assert said in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(("path", "said"), [("no.toml", "there is no file 'no.toml'"), (".", "'.' cannot be read")])
def test_a_file_that_is_none_is_named(folder, path, said):
    done = CliRunner().invoke(main, ["explain", "--config", path])
    assert done.exit_code == 2
    assert f"--config: {said}" in done.output


def test_bytes_that_are_no_text_are_no_toml(folder):
    (folder / "s.toml").write_bytes(b"\xff\xfe")
    done = CliRunner().invoke(main, ["explain", "--config", "s.toml"])
    assert done.exit_code == 2
    assert "--config: 's.toml' is no TOML" in done.output

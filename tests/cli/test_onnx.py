"""An ONNX file is a model on the command line: no code runs from it."""

import numpy as np
import pytest
from click.testing import CliRunner

import smoothlime as sl
from smoothlime.cli import main

from ..contract import onnx_graphs


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.onnx").write_bytes(onnx_graphs.of_columns("float", "float").SerializeToString())
    (tmp_path / "rows.csv").write_text("a,b\n0.1,0.2\n0.3,-0.5\n0.0,0.4\n")
    return tmp_path


def test_a_file_is_explained(folder):
    out = folder / "explained.json"
    asked = ["explain", str(folder / "model.onnx"), str(folder / "rows.csv"), "-o", str(out), "--n-samples", "64"]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 0, done.output
    e = sl.load(out)
    assert e.feature_names == ("a", "b")
    np.testing.assert_allclose(e.prediction, np.tanh([0.3, -0.2, 0.4]), rtol=1e-5)


def test_a_file_that_is_not_there_is_named(folder):
    done = CliRunner().invoke(main, ["explain", str(folder / "other.onnx"), str(folder / "rows.csv")])
    assert done.exit_code == 2
    assert "there is no file" in done.output
    assert "other.onnx" in done.output
    assert "Traceback" not in done.output

"""`smoothlime compare`: verdicts, exit codes, JSON."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from smoothlime.cli import main

MODELS = """
import numpy as np
old = lambda a: np.tanh(a[:, 0] - a[:, 1])
same = lambda a: np.tanh(a[:, 0] - a[:, 1])
new = lambda a: np.tanh(a[:, 0] + a[:, 1])
noisy = lambda a: np.tanh(a[:, 0] - a[:, 1]) + np.cos(50 * a[:, 0])
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "compared.py").write_text(MODELS)
    rows = np.random.default_rng(0).normal(size=(6, 2))
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="age,debt", comments="")
    return tmp_path


def compare(folder, new, *more):
    arguments = ["compare", "compared:old", f"compared:{new}", str(folder / "rows.csv"), "--path", str(folder), *more]
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize(
    ("new", "more", "code", "words"),
    [
        ("same", [], 0, "Unchanged around all 6 rows"),
        ("new", [], 3, "Changed around 6 of 6 rows"),
        ("noisy", ["--n-samples", "256"], 4, "Cannot tell for"),
    ],
)
def test_the_exit_code_says_what_the_verdict_is(folder, new, more, code, words):
    done = compare(folder, new, *more)
    assert done.exit_code == code, done.output
    assert words in done.output


def test_json(folder):
    told = json.loads(compare(folder, "new", "--json").stdout)
    assert told["verdict"] == "changed"
    assert told["changed"] == [True] * 6
    assert len(told["p_value"]) == told["rows"] == 6


def test_bad_input_ends_with_2(folder):
    assert compare(folder, "missing").exit_code == 2
    done = compare(folder, "new", "--alpha", "7")
    assert done.exit_code == 2
    assert "--alpha must lie strictly between 0 and 1" in done.output

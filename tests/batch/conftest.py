"""Tables on the disk, and results read back."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # worker processes import models of tests by name


@pytest.fixture
def frame():
    """A table of numbers with a key and a label."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((1_000, 3)), columns=["a", "b", "c"])
    return table.assign(id=[f"k{i:04d}" for i in rng.permutation(1_000)], label=1)


@pytest.fixture
def parquet(frame, tmp_path):
    """The path of the table as one Parquet file of several row groups."""
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=300, index=False)
    return path


@pytest.fixture
def run_script(tmp_path):
    """Runs Python text as a script in a process of its own."""

    def run(text, **settings):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(text))
        return subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, env=environment(), check=False, **settings
        )

    return run


def environment():
    """Models of tests can be imported."""
    return os.environ | {"PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": "1"}


def read(folder):
    """All lines of the results, in the order of the table, as pandas reads a folder."""
    return pd.read_parquet(folder)


def read_errors(folder):
    parts = sorted((Path(folder) / "_errors").glob("*.parquet"))
    return pd.concat([pd.read_parquet(part) for part in parts], ignore_index=True)


def assert_same_bits(one, other):
    """Every column of two folders equal to the bit, sorted by their first column."""
    one, other = (read(each) for each in (one, other))
    key = one.columns[0]
    pd.testing.assert_frame_equal(
        one.sort_values(key, ignore_index=True), other.sort_values(key, ignore_index=True), check_exact=True
    )

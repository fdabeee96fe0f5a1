"""The benchmarks run, and the documentation says what their committed results say."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import smoothlime

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
SCRIPTS = ("error", "time", "stability", "scaling", "memory", "startup", "latency", "intervals")
"""Those that are quick enough to be tried; time reads what error has written."""


def python(*words, where=ROOT):
    # without OMP_NUM_THREADS: the scripts see to one thread themselves
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    env["PYTHONPATH"] = str(Path(smoothlime.__file__).parents[1])
    return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, cwd=where, env=env)


@pytest.fixture
def copy(tmp_path):
    """The benchmarks and the pages, to be tampered with."""
    shutil.copytree(FOLDER, tmp_path / "benchmarks", ignore=shutil.ignore_patterns("__pycache__", "*_quick.jsonl"))
    for folder in ("docs/figures", "docs/theory"):
        (tmp_path / folder).mkdir(parents=True)
    pages = ("README.md", "docs/benchmarks.md", "docs/theory/errors.md", "docs/trees.md", "docs/what-is-near.md")
    for page in (*pages, "docs/big-tables.md"):
        shutil.copyfile(ROOT / page, tmp_path / page)
    return tmp_path


def test_every_table_is_what_the_committed_results_say():
    done = python(FOLDER / "into_docs.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_number_that_was_changed_by_hand_is_found_and_put_right(copy):
    path = copy / "README.md"
    before = path.read_text()
    path.write_text(
        before.replace("<sub>`benchmarks/bench_stability.py` at ", "<sub>`benchmarks/bench_stability.py` at 0")
    )
    assert path.read_text() != before
    done = python("benchmarks/into_docs.py", "--check", where=copy)
    assert done.returncode == 1
    assert done.stdout == "README.md: beside-others\n"
    assert python("benchmarks/into_docs.py", where=copy).returncode == 0
    assert path.read_text() == before


def test_a_table_without_an_end_is_refused(copy):
    path = copy / "README.md"
    path.write_text(path.read_text().replace("<!-- end of table -->", "", 1))
    done = python("benchmarks/into_docs.py", where=copy)
    assert done.returncode == 1
    assert "README.md: a table has no end" in done.stderr


@pytest.mark.parametrize("name", ["bench_error.svg", "bench_stability.svg"])
def test_charts_are_drawn_from_the_committed_results(copy, name):
    """To a tenth of a point: matplotlib brings its font, but measures it by whatever FreeType it was built with."""
    done = python("benchmarks/charts.py", where=copy)
    assert done.returncode == 0, done.stderr
    number = r"-?\d+(?:\.\d+)?"
    drawn, committed = (
        re.sub(r'(?<=[#"])[mp][0-9a-f]{10}\b', "", (each / "docs" / "figures" / name).read_text())
        for each in (copy, ROOT)
    )  # without names of shapes, which are hashes of them
    assert re.sub(number, "", drawn) == re.sub(number, "", committed)
    np.testing.assert_allclose(*(np.array(re.findall(number, each), float) for each in (drawn, committed)), atol=0.1)


def test_every_script_of_make_bench_has_committed_results():
    listed = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("BENCH :="))
    for name in listed.partition(":=")[2].split():
        assert (FOLDER / f"bench_{name}.py").exists()
        first = json.loads((FOLDER / "results" / f"{name}.jsonl").read_text().splitlines()[0])
        assert {"commit", "versions", "cpu", "when"} <= set(first)


def test_intervals_are_judged_only_where_the_truth_is_known_well_enough():
    """Four rows of honest bars but for two: one has no truth to speak of, one has bars of half the size it needs."""
    code = """
import json
import bench_intervals as b, numpy as np
error = np.random.default_rng(0).standard_normal((2_000, 4, 3))
bars = np.ones_like(error)
bars[:, 2] = 0.5
truth = b.Truth(np.ones((4, 3)), "made up", np.array([0.1, 0.5, 0.05, 0.0])[:, None] * np.ones(3))
print(json.dumps(b.judged(b.Runs(error, bars, 1.96 * bars, "none", 0), truth)))
"""
    done = python("-c", code, where=FOLDER)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rows_judged"] == 3
    assert found["worst_at"] == 2
    # 6,000 intervals a row: ± 0.03 is five standard errors or more
    assert found["worst"] == pytest.approx(0.673, abs=0.03)  # |z| < 0.98
    assert found["coverage"] == pytest.approx((0.95 + 0.95 + 0.673) / 3, abs=0.03)
    assert found["bars_least"] == pytest.approx(0.5, abs=0.03)
    assert found["bars"] == pytest.approx(1, abs=0.05)
    assert found["truth_share"] == pytest.approx([0.1, 0.5, 0.1, 0])


@pytest.mark.slow
@pytest.mark.peers
def test_benchmarks_run_at_small_scale(copy):
    for name in SCRIPTS:
        done = python(f"benchmarks/bench_{name}.py", "--quick", where=copy)
        assert done.returncode == 0, f"{name}: {done.stderr}"
        assert done.stdout.startswith("| ")
        lines = (copy / "benchmarks" / "results" / f"{name}_quick.jsonl").read_text().splitlines()
        assert all(json.loads(line)["versions"]["smoothlime"] for line in lines)

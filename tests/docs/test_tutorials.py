"""Each tutorial runs as it stands, in a process and a folder of its own, with warnings as errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import smoothlime

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
TUTORIALS = sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", TUTORIALS)
def test_the_tutorial_runs(name, tmp_path):
    env = {**os.environ, "PYTHONPATH": str(Path(smoothlime.__file__).parents[1]), "PYTHONWARNINGS": "error"}
    command = [sys.executable, str(FOLDER / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_tutorial_is_on_the_page():
    page = (FOLDER.parent / "tutorials.md").read_text(encoding="utf-8")
    assert TUTORIALS
    assert [name for name in TUTORIALS if f"tutorials/{name}.py" not in page] == []

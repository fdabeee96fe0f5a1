"""`smoothlime bench`: which method and design suit one's own model."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from smoothlime.cli import main

MODELS = """
import numpy as np
import torch
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LinearRegression

curved = lambda a: np.tanh(a[:, 0]) * a[:, 1] + a[:, 2]
flat = lambda a: np.ones(len(a))
line = LinearRegression().fit(np.eye(3), [1.0, 2.0, 3.0])
many = np.random.default_rng(0).normal(size=(200, 3))
boosted = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(many, many[:, 0] * many[:, 1] > many[:, 2])
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ELU(), torch.nn.Linear(4, 1)).double().eval()
"""
SMALL = ("--draws", "64,256", "--repeats", "3", "--rows", "2")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bench_models.py").write_text(MODELS)
    rows = np.random.default_rng(0).normal(size=(6, 3))
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="age,debt,time", comments="")
    return tmp_path


def bench(folder, model, *more):
    arguments = ["bench", f"bench_models:{model}", "--data", str(folder / "rows.csv"), "--path", str(folder), *more]
    return CliRunner().invoke(main, arguments)


def test_methods_from_predictions_are_measured(folder):
    done = bench(folder, "curved", *SMALL, "-o", str(folder / "found.json"))
    assert done.exit_code == 0, done.output
    for words in ("differences", "clime        iid", "clime        sobol", "2 rows of 3 perturbed features"):
        assert words in done.output
    assert "smoothgrad" not in done.output
    found = json.loads((folder / "found.json").read_text())
    by_name = {(each["method"], each["design"]): each for each in found["contenders"]}
    plain, ours = by_name["clime", "iid"], by_name["differences", "differences"]
    assert plain["draws"] == [64, 256]
    assert plain["evaluations"] == [68, 260]
    assert ours["errors"][-1] < plain["errors"][-1] < plain["errors"][0] < 0.6
    assert plain["overhead"] > 1
    assert found["draws"] == [64, 256]
    assert found["references"][0]["evaluations"] >= 16 * 256


def test_a_network_is_measured_from_gradients_too(folder):
    done = bench(folder, "net", *SMALL, "--methods", "smoothgrad", "--designs", "iid", "--designs", "orthogonal")
    assert done.exit_code == 0, done.output
    assert len(re.findall(r"^smoothgrad +(?:iid|orthogonal) ", done.output, re.M)) == 2
    assert "clime" not in done.output
    assert "from gradients: against one run of" in done.output


def test_a_closed_form_wins_and_is_the_truth(folder):
    done = bench(folder, "line", *SMALL)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[2].startswith("exact ")
    assert "against the closed form" in done.output


def test_probabilities_of_boosted_trees_are_tried_with_their_margin_as_control(folder):
    few = ("--draws", "64,1024", "--repeats", "3", "--rows", "2", "--target", "1")
    done = bench(folder, "boosted", *few, "-o", str(folder / "found.json"), "--plot", str(folder / "errors.svg"))
    assert done.exit_code == 0, done.output
    assert re.search(r"^controlled +differences +\d", done.output, re.M)
    assert "evaluations (controlled, differences draws)" in done.output
    found = json.loads((folder / "found.json").read_text())
    errors = {each["method"]: each["errors"][-1] for each in found["contenders"]}
    assert errors["controlled"] < errors["differences"]


def test_who_needs_more_draws_is_named(folder):
    done = bench(folder, "curved", "--draws", "8,10", "--repeats", "2", "--rows", "1", "--methods", "clime")
    assert done.exit_code == 0, done.output
    assert "left out, as these need more draws: clime antithetic (16), clime orthogonal (18)" in done.output
    assert re.search("^clime +iid", done.output, re.M)


def test_draws_that_are_too_few_for_everything_are_refused_before_the_work(folder):
    only = ("--methods", "clime", "--methods", "differences", "--designs", "iid", "--designs", "differences")
    done = bench(folder, "curved", "--draws", "2,4", *only, "--plot", str(folder / "errors.svg"))
    assert done.exit_code == 2, done.output
    assert done.stderr == (
        "smoothlime: --draws must go up to at least 8 on 3 features, which is what clime with iid draws needs for"
        " slopes with error bars, and nothing else needs fewer; got 2, 4\n"
    )
    assert not (folder / "errors.svg").exists()


def test_a_picture_is_drawn(folder):
    done = bench(folder, "curved", *SMALL, "--plot", str(folder / "errors.svg"))
    assert done.exit_code == 0, done.output
    picture = (folder / "errors.svg").read_text()
    assert "<svg" in picture
    assert "model evaluations per row" in picture


def test_a_picture_keeps_to_a_dark_style(folder):
    import matplotlib.pyplot as plt

    with plt.style.context("dark_background"):
        done = bench(folder, "curved", *SMALL, "--methods", "differences", "--plot", str(folder / "errors.png"))
    assert done.exit_code == 0, done.output
    assert plt.imread(folder / "errors.png")[0, 0].tolist() == [0.0, 0.0, 0.0, 1.0]


def test_long_runs_are_announced(folder, monkeypatch):
    assert bench(folder, "curved", *SMALL, "--methods", "differences").stderr == ""
    monkeypatch.setattr("smoothlime.benchmarking.benchmark.LONG", 0.0)
    done = bench(folder, "curved", *SMALL, "--methods", "differences")
    # 2 rows × (3 seeds × (64 + 256) draws + 7 timed runs of 1,024 + a reference of 16 × 256)
    assert "smoothlime: 24,448 model evaluations, about 0 seconds; fewer rows" in done.stderr


@pytest.mark.parametrize(
    ("model", "more", "message"),
    [
        ("curved", ("--draws", "64"), "draws must name at least two different numbers"),
        ("curved", ("--draws", ""), "--draws must be whole numbers separated by commas"),
        ("curved", ("--draws", "64,many"), "--draws must be whole numbers separated by commas"),
        ("curved", ("--draws", "0,64"), "draws must be a whole number >= 1"),
        ("curved", ("--repeats", "1"), "repeats must be a whole number >= 2"),
        ("curved", ("--rows", "0"), "--rows must be a whole number >= 1"),
        ("curved", ("--methods", "magic"), "--methods must be one of"),
        ("curved", ("--designs", "magic"), "--designs must be one of"),
        ("curved", ("--methods", "smoothgrad"), "smoothgrad needs gradients, and this model gives only values"),
        ("curved", ("--methods", "differences", "--designs", "iid"), "none of the methods differences can use"),
        ("curved", ("--methods", "controlled"), "leave method 'controlled' out: control='margin' needs a boosted"),
        ("curved", ("--out", "found.txt"), "--out must end in .json"),
        ("curved", ("--out", "nowhere/found.json"), "there is no folder 'nowhere'"),
        ("curved", ("--plot", "errors.txt"), "--plot must end in .svg or .png or .pdf"),
        ("curved", ("--background", "x.csv", "--raw-units"), "give --background or --raw-units, not both"),
        ("flat", SMALL, "by its values the model does not change around these rows"),
        ("absent", (), "has no 'absent'"),
    ],
)
def test_bad_input_is_named(folder, model, more, message):
    done = bench(folder, model, *more)
    assert done.exit_code == 2, done.output
    assert message in done.output
    assert "Traceback" not in done.output


def test_the_data_must_be_given(folder):
    done = CliRunner().invoke(main, ["bench", "bench_models:curved"])
    assert done.exit_code == 2
    assert "--data" in done.output


def test_as_a_process(folder):
    command = [sys.executable, "-m", "smoothlime", "bench", "bench_models:curved", "--path", str(folder)]
    done = subprocess.run(
        [*command, "--data", str(folder / "rows.csv"), *SMALL, "--methods", "differences"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("slopes of 'output'")


def test_a_picture_is_whole_or_not_there(folder, monkeypatch):
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    for option, name in (("-o", "found.json"), ("--plot", "found.svg")):
        (folder / name).write_text("old")
        done = bench(folder, "curved", "--methods", "clime", "--designs", "iid", *SMALL, option, str(folder / name))
        assert done.exit_code == 2, done.output
        assert "cannot be written: No space left on device" in done.output
        assert (folder / name).read_text() == "old"
        assert "clime   iid" in done.stdout  # the table at least is not lost
        assert "wrote" not in done.stdout
    assert not list(folder.glob(".smoothlime-*"))


def test_what_draws_the_picture_is_asked_for_before_the_work(folder, hide, monkeypatch):
    hide("matplotlib")
    asked = "smoothlime.benchmarking.benchmark.benchmark"
    monkeypatch.setattr(asked, lambda *_, **__: pytest.fail("the work was begun"))
    done = bench(folder, "curved", *SMALL, "--plot", str(folder / "errors.svg"))
    assert done.exit_code == 2, done.output
    assert "matplotlib.pyplot is needed to draw a benchmark" in done.output


@pytest.mark.parametrize(("option", "ending"), [("--out", "json"), ("--plot", "svg")])
def test_what_is_read_is_not_written_over(folder, option, ending):
    data = folder / f"rows.{ending}"
    (folder / "rows.csv").rename(data)
    arguments = ["bench", "bench_models:curved", "--data", str(data), "--path", str(folder), option, str(data)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2, done.output
    assert f"{option} {str(data)!r} is a file that is read from" in done.output
    assert data.read_text().startswith("age,debt,time")


def test_files_are_written_before_a_table_that_cannot_be_printed(folder, monkeypatch):
    monkeypatch.setattr("smoothlime.plots.contest.as_text", lambda _: 1 / 0)
    done = bench(folder, "curved", *SMALL, "--methods", "differences", "-o", str(folder / "found.json"))
    assert isinstance(done.exception, ZeroDivisionError)
    assert json.loads((folder / "found.json").read_text())["draws"] == [64, 256]


def test_a_table_is_printed_in_a_narrow_code_page(folder):
    command = [sys.executable, "-m", "smoothlime", "bench", "bench_models:curved", "--path", str(folder)]
    command += ["--data", str(folder / "rows.csv"), *SMALL, "--methods", "differences"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "cp1252"})
    assert done.returncode == 0, done.stderr
    assert b"\xb5s each" in done.stdout  # µ is there, ≤ is not

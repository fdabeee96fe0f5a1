import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from smoothlime.cli import main

MODELS = """
import numpy as np
import smoothlime as sl
from smoothlime.testing import Probit, Step

class Bounded:
    output_range = (0.0, 1.0)
    outputs = ("p",)
    inner = Probit([1.0, -0.5], 0.2)
    values = inner.values
    values_and_gradients = inner.values_and_gradients

smooth = Bounded()
step = Step([1.0, -0.5])

class Sides:
    # the border of the two classes runs through the rows of border.csv
    output_range = (0.0, 1.0)
    outputs = ("left", "right")
    def values(self, points):
        right = 1 / (1 + np.exp(-20 * points[:, 0]))
        return np.column_stack([1 - right, right])

sides = Sides()
plain = lambda a: a[:, 0] ** 2
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mymodels.py").write_text(MODELS)
    rows = np.random.default_rng(0).normal(size=(6, 2))
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="age,debt", comments="")
    return tmp_path


def check(folder, model, *more, table="rows.csv"):
    arguments = ["check", f"mymodels:{model}", str(folder / table), "--path", str(folder), *more]
    return CliRunner().invoke(main, arguments)


def test_a_smooth_model_is_trusted(folder):
    done = check(folder, "smooth")
    assert done.exit_code == 0, done.output
    assert "agree within" in done.output
    assert "certified, from range" in done.output
    assert done.output.strip().endswith("Nothing speaks against these explanations.")


def test_a_step_is_not(folder):
    done = check(folder, "step", "--output-range", "0", "1")
    assert done.exit_code == 3
    assert "piecewise constant" in done.output
    assert "Do not trust gradient explanations" in done.output


def test_too_few_draws_cannot_tell(folder):
    done = check(folder, "smooth", "--n-samples", "40", "--sigma", "2")
    assert done.exit_code == 4
    assert "Too few draws to tell" in done.output


def test_predictions_alone_have_nothing_to_compare(folder):
    done = check(folder, "plain")
    assert done.exit_code == 0
    assert "predictions only" in done.output
    assert "No certificate: give --output-range" in done.output


def test_a_forest_is_not_said_to_have_no_jumps(folder):
    (folder / "forests.py").write_text(
        "from sklearn.ensemble import RandomForestClassifier\n"
        "model = RandomForestClassifier(5, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]], [0, 1, 1, 0])\n"
    )
    arguments = ["check", "forests:model", str(folder / "rows.csv"), "--path", str(folder), "--target", "1"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "jump" not in done.output
    assert "certified; assumes outputs between 0 and 1)" in done.output
    steep = CliRunner().invoke(main, [*arguments, "--gradient-bound", "1000"])
    assert steep.exit_code == 2
    assert "smoothlime: --gradient-bound is for models without jumps, and a RandomForestClassifier is" in steep.output


def test_the_predicted_class_of_a_row_is_held_for_its_neighbours(folder):
    (folder / "border.csv").write_text("age,debt\n0.0,0.0\n0.001,1.0\n-0.001,2.0\n")
    done = check(folder, "sides", "--target", "predicted", "--raw-units", "--sigma", "0.5", table="border.csv")
    assert done.exit_code == 0, done.output
    (population,) = re.findall(r"shared, it is ([0-9.e-]+): that part is the model", done.output)
    (ceiling,) = re.findall(r"The model's part cannot exceed ([0-9.e-]+) ", done.output)
    assert float(population) <= float(ceiling)
    assert "the output predicted at a row is explained where the row moves, too" in done.output


def test_json_holds_the_same(folder):
    found = json.loads(check(folder, "smooth", "--json", "--rows", "3").output)
    assert found["rows"] == 3
    assert found["agreement"]["agrees"] == [True] * 3
    assert found["certificate"]["kind"] == "range"
    assert found["certificate"]["assumes"].startswith("outputs between 0 and 1")


def test_parquet_files_are_read_too(folder):
    import pyarrow as pa
    from pyarrow import parquet

    rows = np.random.default_rng(0).normal(size=(6, 2))
    parquet.write_table(pa.table({"age": rows[:, 0], "debt": rows[:, 1]}), folder / "rows.parquet")
    done = check(folder, "smooth", "--json", table="rows.parquet")
    assert json.loads(done.output)["agreement"] == json.loads(check(folder, "smooth", "--json").output)["agreement"]
    (folder / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    broken = check(folder, "smooth", table="broken.parquet")
    assert broken.exit_code == 2
    assert "cannot be read as Parquet" in broken.output


def test_columns_are_chosen_by_name(folder):
    text = "id,age,debt\n" + "\n".join(f"row{i},{i / 7},{i / 5}" for i in range(5))
    (folder / "mixed.csv").write_text(text)
    done = check(folder, "smooth", table="mixed.csv")
    assert done.exit_code == 2
    assert "X has columns that hold no numbers ('id'), but this model is asked with arrays" in done.output
    assert check(folder, "smooth", "--columns", "age, debt", table="mixed.csv").exit_code in (0, 4)


@pytest.mark.parametrize(
    ("model", "more", "table", "message"),
    [
        ("absent", (), "rows.csv", "'mymodels' has no 'absent'"),
        ("smooth", (), "absent.csv", "there is no file"),
        ("smooth", ("--columns", "height"), "rows.csv", "has no column 'height'; its columns are 'age', 'debt'"),
        ("smooth", (), "empty.csv", "must have a header and at least one row"),
        ("smooth", (), "ragged.csv", "row 1 has 1 cells but the header has 2"),
    ],
)
def test_bad_input_is_named(folder, model, more, table, message):
    (folder / "empty.csv").write_text("a,b\n")
    (folder / "ragged.csv").write_text("a,b\n1,2\n3\n")
    done = check(folder, model, *more, table=table)
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output


def test_model_names_are_checked(folder):
    for model, message in (
        ("nothing", "there is no file 'nothing'; MODEL must be a model file, or module:attribute"),
        ("no_such_module:model", "there is no module 'no_such_module'"),
    ):
        done = CliRunner().invoke(main, ["check", model, str(folder / "rows.csv")])
        assert done.exit_code == 2
        assert message in done.output


def test_it_takes_the_same_description_of_a_neighbourhood_as_explain(folder):
    (folder / "wide.csv").write_text("age,debt\n0,0\n20,4\n-20,8\n")
    narrow = json.loads(check(folder, "smooth", "--json", "--rows", "3").output)
    wide = json.loads(check(folder, "smooth", "--json", "--rows", "3", "--background", str(folder / "wide.csv")).output)
    held = json.loads(check(folder, "smooth", "--json", "--rows", "3", "--fixed", "debt").output)
    assert len({each["robustness"]["mean"] for each in (narrow, wide, held)}) == 3


def test_margins_of_classifiers_can_be_checked(folder):
    (folder / "classes.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "model = LogisticRegression().fit([[0, 1], [1, 0], [1, 1]], [0, 1, 1])\n"
    )
    arguments = [
        "check",
        "classes:model",
        str(folder / "rows.csv"),
        "--path",
        str(folder),
        "--json",
        "--output",
        "margin",
    ]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["robustness"]["mean"] < 1e-9  # a margin is linear: its slopes are the same everywhere
    assert found["certificate"] is None


def test_what_the_model_contradicts_is_not_certified(folder):
    outside = check(folder, "plain", "--output-range", "0", "0.001")
    assert outside.exit_code == 2
    assert "smoothlime: --output-range: the model returned" in outside.output
    assert "outside output_range=(0, 0.001): the promise would be void" in outside.output
    for bound in ("0", "0.01"):
        steep = check(folder, "plain", "--gradient-bound", bound)
        assert steep.exit_code == 2
        assert "smoothlime: --gradient-bound: the model has a slope" in steep.output
        assert f"beyond gradient_bound={bound}: the promise would be void" in steep.output


def test_a_single_row_has_no_error_in_json(folder):
    done = check(folder, "plain", "--rows", "1", "--json")
    found = json.loads(done.output, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert found["robustness"]["standard_error"] is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--n-samples", "0"), "--n-samples must be a whole number >= 1; got 0"),
        (("--margin", "nan"), "--margin must be finite and >= 0; got nan"),
        (("--margin", "-1"), "--margin must be finite and >= 0"),
        (("--seed", "-1"), "--seed must be a whole number >= 0; got -1"),
    ],
)
def test_options_are_checked_whatever_the_model(folder, more, message):
    for model in ("plain", "smooth"):
        done = check(folder, model, *more)
        assert done.exit_code == 2, done.output
        assert message in done.output


def test_a_warning_is_a_line_and_said_once(folder):
    (folder / "narrow_models.py").write_text(
        "import torch\n"
        "torch.manual_seed(0)\n"
        "layers = torch.nn.Linear(2, 8), torch.nn.ELU(), torch.nn.Linear(8, 1)\n"
        "net = torch.nn.Sequential(*layers).eval().to(torch.bfloat16)\n"
    )
    arguments = ["check", "narrow_models:net", str(folder / "rows.csv"), "--path", str(folder), "--n-samples", "500"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code in (0, 4), done.output
    (line,) = done.stderr.splitlines()
    assert re.match(r"smoothlime: sigma is .* slopes lose digits", line)


@pytest.mark.parametrize("more", [("--output-range", "1", "0"), ("--gradient-bound", "-1")])
def test_what_is_known_of_a_model_is_checked_before_it_is_asked(folder, more, monkeypatch):
    monkeypatch.setattr("smoothlime.guarantees.agreement", lambda *_, **__: pytest.fail("the work was begun"))
    done = check(folder, "smooth", *more)
    assert done.exit_code == 2, done.output
    assert f"smoothlime: {more[0]} must be finite" in done.output

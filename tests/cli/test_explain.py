"""`smoothlime explain`: tables in, explanations out."""

import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

import smoothlime as sl
from smoothlime.cli import main

MODELS = """
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

line = lambda a: 3 * a[:, 0] - a[:, 1]
wave = lambda a: np.sin(20 * a[:, 0]) + 0 * a[:, 1]
with_gaps = lambda a: np.nan_to_num(a) @ [3.0, -1.0]

table = pd.DataFrame({"age": [20.0, 40.0, 60.0, 30.0], "debt": [1.0, 5.0, 2.0, 9.0], "city": ["a", "b", "a", "b"]})
prepare = ColumnTransformer([("n", StandardScaler(), ["age", "debt"]), ("w", OneHotEncoder(), ["city"])])
mixed = make_pipeline(prepare, LinearRegression()).fit(table, 2 * table["age"] - table["debt"] + (table["city"] == "b"))
"""
MIXED = "age,debt,city\n20,1,a\n40,5,b\n60,2,a\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "explained_models.py").write_text(MODELS)
    (tmp_path / "rows.csv").write_text("age,debt\n1,2\n3,5\n2,8\n")
    (tmp_path / "mixed.csv").write_text(MIXED)
    return tmp_path


def explain(folder, model, *more, table="rows.csv"):
    arguments = ["explain", f"explained_models:{model}", str(folder / table), "--path", str(folder), *more]
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_rows_are_explained_into_a_file(folder, suffix):
    out = folder / f"explained.{suffix}"
    done = explain(folder, "line", "-o", str(out))
    assert done.exit_code == 0, done.output
    assert done.output == f"wrote {out}: 3 rows, clime, 256 aligned draws per row, seed 0\n"
    e = sl.load(out)
    np.testing.assert_allclose(e.values, [[3, -1]] * 3, atol=1e-9)
    assert e.feature_names == ("age", "debt")
    np.testing.assert_allclose(e.std, 0.5 * np.std([[1, 2], [3, 5], [2, 8]], axis=0, ddof=1))


def test_a_header_cannot_command_the_terminal(folder):
    (folder / "evil.csv").write_bytes(b"age\x1b]0;pwned\x07,\xe2\x80\xaedebt\n1,2\n3,5\n2,8\n")
    done = explain(folder, "line", table="evil.csv")
    assert done.exit_code == 0, done.output
    assert "age�]0;pwned�" in done.output
    assert "�debt" in done.output
    assert not {"\x1b", "\x07", "\u202e"} & set(done.output)


def test_a_mixed_table_keeps_its_text(folder):
    out = folder / "explained.json"
    done = explain(folder, "mixed", "--out", str(out), table="mixed.csv")
    assert done.exit_code == 0, done.output
    e = sl.load(out)
    np.testing.assert_allclose(e.values, [[2, -1, np.nan]] * 3, atol=1e-9)
    assert e.neighbourhood.fixed == ("city",)
    assert done.output == f"wrote {out}: 3 rows, exact; held fixed: city\n"


def test_parquet_tables_are_read(folder):
    import pandas as pd

    pd.read_csv(folder / "mixed.csv").to_parquet(folder / "mixed.parquet")
    ways = [explain(folder, "mixed", "--n-samples", "64", table=f"mixed.{each}").output for each in ("csv", "parquet")]
    assert ways[0] == ways[1]
    assert "+2" in ways[0]


def test_without_a_file_the_explanations_are_printed(folder):
    done = explain(folder, "line", "--n-samples", "64", "--rows", "1", "--raw-units", "--sigma", "0.1")
    assert done.exit_code == 0
    assert "+3.0000" in done.output
    assert "debt" in done.output


def test_scales_may_come_from_another_file(folder):
    (folder / "background.csv").write_text("debt,age\n0,0\n0,20\n4,20\n")
    out = folder / "explained.json"
    done = explain(folder, "line", "--background", str(folder / "background.csv"), "--sigma", "1", "-o", str(out))
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(sl.load(out).std, [np.std([0, 20, 20], ddof=1), np.std([0, 0, 4], ddof=1)])


def test_an_exact_answer_is_said_to_be_one(folder):
    (folder / "linear.py").write_text(
        "from sklearn.linear_model import LinearRegression\n"
        "model = LinearRegression().fit([[0, 1], [1, 0], [1, 1]], [1, 2, 4])\n"
    )
    out = folder / "e.json"
    arguments = ["explain", "linear:model", str(folder / "rows.csv"), "--path", str(folder), "-o", str(out)]
    assert CliRunner().invoke(main, arguments).output == f"wrote {out}: 3 rows, exact\n"


def test_columns_can_be_held_fixed(folder):
    out = folder / "explained.json"
    assert explain(folder, "line", "--fixed", "debt", "-o", str(out)).exit_code == 0
    assert sl.load(out).neighbourhood.fixed == ("debt",)


def test_scales_of_columns_that_numbers_name(folder):
    (folder / "numbered.csv").write_text("1,2\n1,2\n3,5\n2,8\n")
    out = folder / "explained.json"
    for units in ((), ("--raw-units",)):
        done = explain(folder, "line", "--scale", "1=log", *units, "-o", str(out), table="numbered.csv")
        assert done.exit_code == 0, done.output
        assert sl.load(out).neighbourhood.scales == ("log", "linear")
    done = explain(folder, "mixed", "--scale", "city=ranks", table="mixed.csv")
    assert done.exit_code == 2
    assert "--scale is 'ranks' for column 'city', which holds no numbers" in done.stderr


def test_rows_that_do_not_converge_are_named(folder):
    out = folder / "explained.json"
    done = explain(folder, "wave", "--max-samples", "256", "--raw-units", "--sigma", "1", "-o", str(out))
    assert done.exit_code == 0
    assert "smoothlime: 3 of 3 rows did not reach the tolerance for 'output' within 256 draws" in done.stderr
    assert "Raise max_samples, rtol or atol" in done.stderr
    assert "3 did not reach the tolerance" in done.stdout
    assert not sl.load(out).converged.any()


def _write_other_formats(folder):
    """Files that are no CSV files with a header, or hardly."""
    import gzip

    import pyarrow as pa
    from pyarrow import feather, parquet

    (folder / "index.csv").write_text(",age,debt\n0,1,2\n1,3,5\n")
    (folder / "comma.csv").write_text("age,debt,\n1,2,\n3,5,\n")
    (folder / "rows.csv.gz").write_bytes(gzip.compress(b"age,debt\n1,2\n3,5\n"))
    (folder / "wide.csv").write_text("age,debt\n1,2\n3,5\n", encoding="utf-16")
    np.save(folder / "rows.npy", np.eye(2))
    feather.write_feather(pa.table({"a": [1.0, 2.0]}), folder / "rows.feather")
    parquet.write_table(pa.table([[1.0, 2.0], [3.0, 4.0]], names=["a", "a"]), folder / "twice.parquet")
    parquet.write_table(pa.table({"age": pa.array([], pa.float64())}), folder / "none.parquet")


def _close(path, monkeypatch):
    """A file that may not be read, also by those who may read everything."""
    plain = open

    def opened(file, *more, **settings):
        if str(file) == str(path):
            raise PermissionError(13, "Permission denied")
        return plain(file, *more, **settings)

    monkeypatch.setattr("builtins.open", opened)


@pytest.mark.parametrize(
    ("more", "table", "message"),
    [
        (("-o", "explained.txt"), "rows.csv", "--out must end in .json or .parquet"),
        (("-o", "nowhere/explained.json"), "rows.csv", "there is no folder 'nowhere'"),
        (("--rows", "0"), "rows.csv", "--rows must be a whole number >= 1"),
        (("--method", "magic"), "rows.csv", "--method must be one of"),
        (("--n-samples", "2"), "rows.csv", "--n-samples=2 is too few for"),
        ((), "absent.csv", "there is no file"),
        ((), "one.csv", "one.csv' has one row, which does not show how features vary. Give --background"),
        (("--background", "few.csv"), "rows.csv", "--background 'few.csv' has one row"),
        ((), "semicolons.csv", "has ';' between its columns; save it with commas"),
        ((), "tabs.csv", r"has '\t' between its columns"),
        ((), "closed.csv", "closed.csv' cannot be read: Permission denied"),
        (
            ("--columns", ","),
            "rows.csv",
            "--columns must be names separated by commas, in double quotes where they hold one; got ','",
        ),
        (
            ("--columns", ""),
            "rows.csv",
            "--columns must be names separated by commas, in double quotes where they hold one; got ''",
        ),
        (("--fixed", ""), "rows.csv", "--fixed must be names separated by commas"),
        (("--columns", 'a,"b'), "rows.csv", "--columns must be names separated by commas, in double quotes"),
        ((), "none.parquet", "none.parquet' has no rows, which do not show how features vary"),
        ((), "index.csv", "index.csv' has no name for column 0 in its header; is it an index, or a comma too many?"),
        ((), "comma.csv", "comma.csv' has no name for column 2, the last, in its header"),
        (
            (),
            "rows.csv.gz",
            "rows.csv.gz' is compressed with gzip; save it as Parquet, or as CSV in UTF-8, which are read",
        ),
        ((), "rows.npy", "rows.npy' is an array of NumPy"),
        ((), "rows.feather", "rows.feather' is a Feather file"),
        ((), "wide.csv", "wide.csv' is text in UTF-16"),
        ((), "twice.parquet", "twice.parquet' has two columns named 'a'"),
        ((), ".", "is a folder; give a file in it"),
        ((), "a" * 5_000, "there is no file"),
        ((), "twice.csv", "has two columns named 'a'"),
        ((), "binary.csv", "cannot be read as CSV"),
        ((), "mixed.csv", "given a pandas data frame, since X has columns that hold no numbers: 'city'"),
    ],
)
def test_bad_input_is_named(folder, more, table, message, monkeypatch):
    (folder / "one.csv").write_text("a,b\n1,2\n")
    (folder / "twice.csv").write_text("a,a\n1,2\n3,4\n")
    (folder / "binary.csv").write_bytes(b"a,b\n\xff\xfe,2\n")
    _write_other_formats(folder)
    (folder / "semicolons.csv").write_text("a;b\n1;2\n3;4\n")
    (folder / "few.csv").write_text("age,debt\n1,2\n")
    (folder / "tabs.csv").write_text("a\tb\n1\t2\n3\t4\n")
    (folder / "closed.csv").write_text("a,b\n1,2\n3,4\n")
    _close(folder / "closed.csv", monkeypatch)
    monkeypatch.chdir(folder)
    done = explain(folder, "line", *more, table=table)
    assert done.exit_code == 2, done.output
    assert message in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--sigma", "0"),
        ("--sigma", "nan"),
        ("--target", "nobody"),
        ("--fixed", "height"),
        ("--method", "magic"),
        ("--method", "smoothgrad"),
        ("--method", "exact"),
        ("--design", "magic"),
        ("--n-samples", "0"),
        ("--n-samples", "2"),
        ("--rtol", "-1"),
        ("--rtol", "2"),
        ("--max-samples", "0"),
        ("--max-samples", "2"),
        ("--confidence", "1"),
        ("--seed", "-1"),
        ("--rows", "0"),
    ],
)
def test_an_error_begins_with_the_option_at_fault(folder, option, value):
    done = explain(folder, "line", option, value)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith(f"smoothlime: {option}"), done.stderr
    assert not done.stderr.startswith(f"smoothlime: {option}-")


def test_as_a_process(folder):
    command = [sys.executable, "-m", "smoothlime", "explain", "explained_models:line", str(folder / "rows.csv")]
    done = subprocess.run(
        [*command, "--path", str(folder), "-o", str(folder / "e.json")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert sl.load(folder / "e.json").values.shape == (3, 2)


def test_cells_reach_the_model_as_what_they_are(folder):
    from smoothlime.cli._tables import load_tables

    lines = [
        "whole,gappy,half,yes,code,long,under,text,spaced",
        "1,1,0.5,True,007,9007199254740993,1_2,x, 3",
        "2,,1e3,false,012,9007199254740995,3_4,,4 ",
    ]
    (folder / "typed.csv").write_text("\n".join(lines) + "\n")
    table = load_tables(str(folder / "typed.csv"), None).rows
    assert table["whole"].dtype == np.int64
    assert table["gappy"].tolist()[0] == 1.0
    assert np.isnan(table["gappy"][1])
    assert table["half"].tolist() == [0.5, 1_000.0]
    assert table["yes"].tolist() == [True, False]
    assert table["yes"].dtype == bool
    assert table["code"].tolist() == ["007", "012"]
    assert table["long"].tolist() == ["9007199254740993", "9007199254740995"]
    assert table["under"].tolist() == ["1_2", "3_4"]
    assert table["text"].isna().tolist() == [False, True]
    assert table["spaced"].tolist() == [3, 4]


def test_a_class_with_a_number_for_a_name_is_found_by_its_name(folder):
    (folder / "numbered.py").write_text(
        "import numpy as np\nfrom sklearn.linear_model import LogisticRegression\n"
        "X = np.random.default_rng(0).normal(size=(60, 2))\n"
        "model = LogisticRegression().fit(X, np.arange(60) % 3 + 1)\n"
    )
    out = folder / "e.json"
    arguments = ["explain", "numbered:model", str(folder / "rows.csv"), "--path", str(folder), "-o", str(out)]
    assert CliRunner().invoke(main, [*arguments, "--target", "1"]).exit_code == 0
    assert sl.load(out).output_name == "1"
    assert CliRunner().invoke(main, [*arguments, "--target", "0"]).exit_code == 0
    assert sl.load(out).output_name == "1"
    done = CliRunner().invoke(main, [*arguments, "--target", "²"])
    assert done.exit_code == 2
    assert "target '²' is not an output" in done.output


def test_a_target_is_the_same_class_by_margin_as_by_probability(folder):
    (folder / "halves.py").write_text(
        "import numpy as np\nfrom sklearn.linear_model import LogisticRegression\n"
        "X = np.random.default_rng(0).normal(size=(60, 2))\n"
        "model = LogisticRegression().fit(X, (X[:, 0] > 0) + 1)\n"
    )
    out = folder / "e.json"
    arguments = ["explain", "halves:model", str(folder / "rows.csv"), "--path", str(folder), "-o", str(out)]
    for target, output in (("2", "margin"), ("2", "probability"), ("0", "probability"), ("1", "probability")):
        assert CliRunner().invoke(main, [*arguments, "--output", output, "--target", target]).exit_code == 0
        assert sl.load(out).output_name == ("2" if target == "2" else "1")
    for target in ("0", "1"):
        done = CliRunner().invoke(main, [*arguments, "--output", "margin", "--target", target])
        assert done.exit_code == 2
        assert done.output.startswith("smoothlime: --target ")
        assert "is class '1', but the margin of two classes is one score, that of '2'" in done.output
        assert "leave target out, or give target='2'." in done.output


@pytest.mark.parametrize(
    ("module", "code", "message"),
    [
        ("raising", "1 / 0", "importing 'raising' failed: ZeroDivisionError"),
        ("wrong", "def", "importing 'wrong' failed: SyntaxError"),
        ("leaving", "import sys; sys.exit(3)", "importing 'leaving' failed: SystemExit"),
        ("lacking", "import no_such_library", "importing 'lacking' failed: No module named 'no_such_library'"),
        (".dotted", "", "importing '.dotted' failed: TypeError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_no_traceback(folder, module, code, message):
    (folder / f"{module.strip('.')}.py").write_text(code)
    done = CliRunner().invoke(main, ["explain", f"{module}:model", str(folder / "rows.csv"), "--path", str(folder)])
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize(
    ("more", "table", "message"),
    [
        (("--columns", "age,age"), "rows.csv", "--columns names 'age' twice"),
        (("--raw-units", "--background", "rows.csv"), "rows.csv", "give --background or --raw-units, not both"),
        (("-o", "x" * 300 + ".json"), "rows.csv", "cannot be written"),
        ((), "quoted.csv", "cannot be read as CSV"),
    ],
)
def test_more_bad_input_is_named(folder, more, table, message):
    (folder / "quoted.csv").write_text('a,b\n1,"2\n3,4\n')
    done = explain(folder, "line", *more, table=table)
    assert done.exit_code == 2, done.output
    assert message in done.output


def test_a_model_that_is_made_when_asked_for_is_made_once(folder):
    (folder / "lazy_models.py").write_text(
        "made = []\n"
        "def __getattr__(name):\n"
        "    if name == 'raising':\n"
        "        raise ValueError('no data')\n"
        "    if name != 'lazy':\n"
        "        raise AttributeError(name)\n"
        "    made.append(name)\n"
        "    return lambda a: len(made) * a[:, 0]\n"
    )
    arguments = ["explain", "lazy_models:lazy", str(folder / "rows.csv"), "--path", str(folder)]
    assert CliRunner().invoke(main, [*arguments, "-o", str(folder / "e.json")]).exit_code == 0
    np.testing.assert_allclose(sl.load(folder / "e.json").values[:, 0], 1.0)
    arguments[1] = "lazy_models:raising"
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert "getting 'raising' from 'lazy_models' failed: ValueError: no data" in done.output


def test_a_model_does_not_end_the_program(folder):
    (folder / "leaving_models.py").write_text("def leaves(a):\n    raise SystemExit(0)\n")
    for command in ("explain", "check"):
        arguments = [command, "leaving_models:leaves", str(folder / "rows.csv"), "--path", str(folder)]
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 2
        assert "the model raised SystemExit" in done.output


def test_long_digits_are_text_and_endings_may_be_capital(folder):
    import pyarrow as pa
    from pyarrow import parquet

    from smoothlime.cli._tables import load_tables

    (folder / "long.csv").write_text(f"a,b\n1,{'9' * 5_000}\n2,3\n")
    assert load_tables(str(folder / "long.csv"), None).rows["b"].tolist()[1] == "3"
    (folder / "just.csv").write_text("a\n9007199254740993\n1\n")  # 2⁵³ + 1, which is 2⁵³ as float64
    assert load_tables(str(folder / "just.csv"), None).rows["a"].tolist() == ["9007199254740993", "1"]
    parquet.write_table(pa.table({"a": [1.0, 2.0]}), folder / "ROWS.PARQUET")
    assert load_tables(str(folder / "ROWS.PARQUET"), None).rows["a"].tolist() == [1.0, 2.0]


def test_a_full_disk_is_no_traceback(folder):
    code = (
        "import errno, sys, click\n"
        "from smoothlime import cli\n"
        "echo = click.echo\n"
        "def full(text, err=False):\n"
        "    if not err:\n"
        "        raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "    echo(text, err=True)\n"
        "click.echo = full\n"
        "cli.main(['plan', 'stein', '--eps', '0.05', '--features', '3', '--range', '0', '1'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr == "smoothlime: the result cannot be printed: No space left on device\n"


@pytest.mark.parametrize("how", ["the table", "the background", "a link to it"])
def test_what_is_read_is_not_written_over(folder, how):
    import pandas as pd

    pd.read_csv(folder / "rows.csv").to_parquet(folder / "rows.parquet")
    before = (folder / "rows.parquet").read_bytes()
    (folder / "link.parquet").symlink_to(folder / "rows.parquet")
    out = folder / ("link.parquet" if how == "a link to it" else "rows.parquet")
    more = ("--background", str(folder / "rows.parquet")) if how == "the background" else ()
    table = "rows.csv" if how == "the background" else "rows.parquet"
    done = explain(folder, "line", "-o", str(out), *more, table=table)
    assert done.exit_code == 2, done.output
    assert f"--out {str(out)!r} is a file that is read from, and would be lost; choose another name" in done.output
    assert (folder / "rows.parquet").read_bytes() == before


def test_an_unnamed_column_may_be_left_out(folder):
    (folder / "index.csv").write_text(",age,debt,\n0,1,2,\n1,3,5,\n")
    done = explain(folder, "line", "--columns", "age,debt", table="index.csv")
    assert done.exit_code == 0, done.output


def test_columns_may_have_commas_in_their_names_and_long_cells(folder):
    long = "x" * 200_000  # the csv module stops at 131,072 by itself
    (folder / "odd.csv").write_text(f'"debt, total",age,note\n1,2,{long}\n3,5,{long}\n2,8,{long}\n')
    out = folder / "e.json"
    done = explain(folder, "line", "--columns", '"debt, total", age', "--fixed", "age", "-o", str(out), table="odd.csv")
    assert done.exit_code == 0, done.output
    assert sl.load(out).feature_names == ("debt, total", "age")
    assert sl.load(out).neighbourhood.fixed == ("age",)


def test_columns_that_the_model_does_not_take_are_named(folder):
    (folder / "wide.csv").write_text("id,city,debt,age,label\n7,a,1,20,0\n8,b,5,40,1\n9,a,2,60,0\n")
    (folder / "named_ones.py").write_text(
        "import numpy as np, pandas as pd\n"
        "from sklearn.linear_model import LinearRegression\n"
        "X = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 2)), columns=['age', 'debt'])\n"
        "line = LinearRegression().fit(X, X.age - 2 * X.debt)\n"
    )
    out = folder / "e.json"
    arguments = ["explain", "named_ones:line", str(folder / "wide.csv"), "--path", str(folder), "-o", str(out)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert f"smoothlime: columns of {folder / 'wide.csv'} that the model does not take: id, city, label" in done.output
    np.testing.assert_allclose(sl.load(out).values, [[1, -2]] * 3, atol=1e-9)
    (folder / "wide.csv").write_text("id,age\n7,20\n8,40\n")
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2, done.output
    assert "has no column 'debt', which the model takes; its columns are 'id', 'age'" in done.output


def test_a_table_may_come_through_a_pipe(folder):
    model = ["explain", "explained_models:line", "/dev/stdin", "--path", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "smoothlime", *model], input="age,debt\n1,2\n3,5\n", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "debt" in done.stdout


class TestWithoutDataFrames:
    @pytest.fixture(autouse=True)
    def without_libraries(self, monkeypatch):
        for module in ("cli._tables", "batch.frames"):
            monkeypatch.setattr(f"smoothlime.{module}.frame_library", lambda: None)

    def test_columns_keep_their_names(self, folder):
        out = folder / "e.json"
        done = explain(folder, "line", "--fixed", "debt", "-o", str(out))
        assert done.exit_code == 0, done.output
        assert sl.load(out).feature_names == ("age", "debt")
        assert sl.load(out).neighbourhood.fixed == ("debt",)
        raw = explain(folder, "line", "--raw-units", "-o", str(out))
        assert raw.exit_code == 0, raw.output
        assert sl.load(out).feature_names == ("age", "debt")

    def test_a_background_is_matched_by_name(self, folder):
        (folder / "background.csv").write_text("debt,age\n0,0\n0,20\n4,20\n")
        out = folder / "e.json"
        done = explain(folder, "line", "--background", str(folder / "background.csv"), "--sigma", "1", "-o", str(out))
        assert done.exit_code == 0, done.output
        np.testing.assert_allclose(sl.load(out).std, [np.std([0, 20, 20], ddof=1), np.std([0, 0, 4], ddof=1)])

    def test_columns_are_those_of_the_model(self, folder):
        (folder / "named_models.py").write_text(
            "import smoothlime as sl\n"
            "named = sl.from_functions(values=lambda a: a[:, 0], feature_names=['debt', 'age'])\n"
        )
        arguments = ["explain", "named_models:named", str(folder / "rows.csv"), "--path", str(folder)]
        out = folder / "e.json"
        done = CliRunner().invoke(main, [*arguments, "-o", str(out)])
        assert done.exit_code == 0, done.output
        assert sl.load(out).feature_names == ("debt", "age")
        np.testing.assert_allclose(sl.load(out).values, [[1, 0]] * 3, atol=1e-9)
        done = CliRunner().invoke(main, [*arguments, "--columns", "age,debt"])
        assert done.exit_code == 2, done.output
        assert "'age', 'debt'" in done.output

    def test_text_is_refused(self, folder):
        done = explain(folder, "line", table="mixed.csv")
        assert done.exit_code == 2
        assert "column 'city' holds text; install pandas or polars to keep it" in done.output


def test_a_column_has_one_type_in_both_files(folder):
    from smoothlime.cli._tables import load_tables

    (folder / "codes.csv").write_text("a,code\n1,10\n2,20\n")
    (folder / "all.csv").write_text("code,a\n10,1\nB7,2\n,3\n")
    both = load_tables(str(folder / "codes.csv"), str(folder / "all.csv"))
    assert both.rows["code"].tolist() == ["10", "20"]
    assert both.scales["code"].tolist()[:2] == ["10", "B7"]
    assert both.scales["a"].tolist() == [1, 2, 3]


def test_a_column_of_different_types_in_two_files_is_refused(folder):
    import pandas as pd

    pd.DataFrame({"age": [1.0, 2.0], "debt": ["x", "y"]}).to_parquet(folder / "typed.parquet")
    done = explain(folder, "line", "--background", str(folder / "typed.parquet"))
    assert done.exit_code == 2, done.output
    assert "column 'debt' holds numbers in " in done.output
    assert "but no numbers in --background" in done.output
    pd.DataFrame({"age": [1.0, 2.0], "debt": [None, None]}).to_parquet(folder / "gaps.parquet")
    done = explain(folder, "line", "--background", str(folder / "gaps.parquet"))
    assert done.exit_code == 0, done.output  # nothing speaks against numbers there


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_an_index_of_pandas_is_a_column_only_where_it_is_named(folder, library, monkeypatch):
    import pandas as pd

    from smoothlime.cli._tables import load_tables
    from smoothlime.space.tables import as_table

    for module in ("cli._tables", "batch.frames"):
        monkeypatch.setattr(f"smoothlime.{module}.frame_library", lambda: library)
    frame = pd.DataFrame({"idx": [7, 2, 4], "a": [1.0, 2.0, 3.0]})
    frame.set_index("idx").to_parquet(folder / "named.parquet")
    frame[["a"]].iloc[[2, 0, 1]].to_parquet(folder / "unnamed.parquet")
    for name in ("named", "unnamed"):
        assert as_table(load_tables(str(folder / f"{name}.parquet"), None).rows).names == ("a",)
    asked = load_tables(str(folder / "named.parquet"), None, ("idx", "a"))
    assert as_table(asked.rows).numbers().tolist() == [[7.0, 1.0], [2.0, 2.0], [4.0, 3.0]]
    assert asked.names == ("idx", "a")


def test_the_name_of_a_folder_is_no_column(folder):
    import pandas as pd

    from smoothlime.cli._tables import load_tables

    (folder / "year=2020").mkdir()
    pd.DataFrame({"a": [1.0, 2.0]}).to_parquet(folder / "year=2020" / "rows.parquet")
    assert load_tables(str(folder / "year=2020" / "rows.parquet"), None).names == ("a",)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_decimals_are_numbers(folder, library, monkeypatch):
    from decimal import Decimal

    import pyarrow as pa
    from pyarrow import parquet

    from smoothlime.cli._tables import load_tables
    from smoothlime.space.tables import as_table

    for module in ("cli._tables", "batch.frames"):
        monkeypatch.setattr(f"smoothlime.{module}.frame_library", lambda: library)
    cells = pa.array([Decimal("1.25"), None], pa.decimal128(5, 2))
    parquet.write_table(pa.table({"a": cells, "b": [1.0, 2.0]}), folder / "decimals.parquet")
    table = as_table(load_tables(str(folder / "decimals.parquet"), None).rows)
    assert table.is_numeric.tolist() == [True, True]
    np.testing.assert_array_equal(table.numbers(), [[1.25, 1.0], [np.nan, 2.0]])


def test_a_cell_that_makes_a_column_text_is_named(folder):
    (folder / "odd.csv").write_text("age,debt,zip,level\n1,2,02139,none\n3,1;5,10001,n/a\n2,8,94110,high\n")
    (folder / "framed.py").write_text("def model(frame):\n    return 3 * frame['age'].to_numpy()\n")
    out = folder / "e.json"
    arguments = ["explain", "framed:model", str(folder / "odd.csv"), "--path", str(folder), "-o", str(out)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert done.stderr == (
        "smoothlime: column 'debt' is taken as text and held fixed: 2 of 3 cells are numbers, but '1;5' at row 1 of"
        f" {str(folder / 'odd.csv')!r} is none. Mend or empty that cell for slopes of 'debt'\n"
    )


def test_gaps_are_told_in_any_case_among_numbers_and_only_there(folder):
    from smoothlime.cli._tables import load_tables

    (folder / "gaps.csv").write_text("a,b\nn/a,none\nNONE,NA\n3,high\n")
    rows = load_tables(str(folder / "gaps.csv"), None).rows
    np.testing.assert_array_equal(rows["a"], [np.nan, np.nan, 3.0])
    assert rows["b"].tolist()[0] == "none"
    assert rows["b"].isna().tolist() == [False, True, False]


def test_a_program_without_a_console_explains_too(folder):
    command = f"{sys.executable} -m smoothlime explain explained_models:line {folder}/rows.csv --path {folder} 2>&-"
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0
    assert "debt" in done.stdout


def test_what_writes_the_file_is_asked_for_before_the_work(folder, hide, monkeypatch):
    hide("pyarrow")
    monkeypatch.setattr(
        sys.modules["smoothlime.explain"], "explain", lambda *_, **__: pytest.fail("the work was begun")
    )
    done = explain(folder, "line", "-o", str(folder / "explained.parquet"))
    assert done.exit_code == 2, done.output
    assert "pyarrow.parquet is needed to write Parquet files" in done.output


def test_columns_with_blanks_around_their_names_can_be_named(folder):
    (folder / "blanks.csv").write_text("age, debt\n1,2\n3,5\n2,8\n")
    (folder / "others.csv").write_text("debt ,age\n2,10\n5,30\n8,20\n")
    out = folder / "explained.json"
    for more, names, std in (
        (("--columns", "debt,age"), (" debt", "age"), [1.5, 0.5]),
        (("--fixed", "debt"), ("age", " debt"), [0.5, np.nan]),
        (("--background", str(folder / "others.csv")), ("age", " debt"), [5.0, 1.5]),
    ):
        done = explain(folder, "line", *more, "-o", str(out), table="blanks.csv")
        assert done.exit_code == 0, done.output
        e = sl.load(out)
        assert e.feature_names == names  # as the file has them, and so a model that was trained on it
        np.testing.assert_allclose(e.std, std)
    (folder / "both.csv").write_text("debt, debt\n1,2\n3,5\n2,8\n")
    done = explain(folder, "line", "--columns", "debt", "--raw-units", "-o", str(out), table="both.csv")
    assert "has no column" not in done.output


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("explained_models.py:line", "a module, not a file: explained_models:line with --path '.'"),
        ("some/folder/models.py:line", "a module, not a file: models:line with --path 'some/folder'"),
    ],
)
def test_a_file_in_place_of_a_module_is_told(folder, spec, message):
    done = CliRunner().invoke(main, ["explain", spec, str(folder / "rows.csv"), "--path", str(folder)])
    assert done.exit_code == 2
    assert message in done.output


def test_an_error_of_a_model_cannot_command_the_terminal(folder):
    (folder / "loud_models.py").write_text("def loud(a):\n    raise ValueError('\\x1b]0;pwned\\x07 of\\nlines')\n")
    arguments = ["explain", "loud_models:loud", str(folder / "rows.csv"), "--path", str(folder)]
    done = CliRunner().invoke(main, arguments, color=True)
    assert done.exit_code == 2
    assert "ValueError on 3 points: �]0;pwned� of\nlines" in done.output


def test_advice_stands_below_the_slopes(folder):
    (folder / "boosted_models.py").write_text(
        "import numpy as np\n"
        "from sklearn.ensemble import GradientBoostingClassifier\n"
        "many = np.random.default_rng(0).normal(size=(200, 2))\n"
        "boosted = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(many, many.sum(axis=1) > 0)\n"
    )
    (folder / "named.csv").write_text("max_samples,rtol\n0.1,0.2\n0.3,-0.5\n-0.2,0.8\n")
    arguments = ["explain", "boosted_models:boosted", str(folder / "named.csv"), "--path", str(folder)]
    done = CliRunner().invoke(main, [*arguments, "--target", "1", "--n-samples", "256"])
    assert done.exit_code == 0, done.output
    assert done.output.endswith("draws were answered by the trees, which were read and give the model's own outputs\n")
    assert "\n  max_samples  " in done.output  # a feature, which stays as it is


def wide(folder, columns=20_000):
    """A table of many columns, with a model of gradients that knows the first two."""
    (folder / "wide_models.py").write_text(
        "import numpy as np\n"
        "import smoothlime as sl\n"
        "def slopes(a):\n"
        "    found = np.zeros(a.shape)\n"
        "    found[:, 0], found[:, 1] = 3, -1\n"
        "    return found\n"
        "line = sl.from_functions(values=lambda a: 3 * a[:, 0] - a[:, 1], gradients=slopes)\n"
        "values = lambda a: 3 * a[:, 0] - a[:, 1]\n"
    )
    numbers = np.random.default_rng(0).normal(size=(3, columns)).round(3)
    lines = [",".join(f" x{j}" for j in range(columns)), *(",".join(map(str, row)) for row in numbers.tolist())]
    (folder / "wide.csv").write_text("\n".join(lines))
    (folder / "scales.csv").write_text("\n".join([lines[0].replace(" ", ""), *lines[1:]]))
    return ",".join(f"x{j}" for j in range(2, columns))


def test_thousands_of_columns_take_seconds(folder):
    """Names were looked up one by one: with 20,000 of them, in each of three options, that alone took a minute."""
    rest = wide(folder)
    more = ["--background", str(folder / "scales.csv"), "--columns", f"x1,x0,{rest}", "--fixed", rest]
    arguments = ["explain", "wide_models:line", str(folder / "wide.csv"), "--path", str(folder), "--n-samples", "64"]
    start = time.process_time()
    done = CliRunner().invoke(main, [*arguments, *more, "--out", str(folder / "out.json")])
    assert done.exit_code == 0, done.output[:500]
    assert time.process_time() - start < 20
    e = sl.load(folder / "out.json")
    assert e.feature_names[:3] == (" x1", " x0", " x2")
    np.testing.assert_allclose(e.values[:, :2], [[3, -1]] * 3, atol=1e-9)  # the model goes by position
    assert np.isnan(e.values[:, 2:]).all()


def test_more_features_than_predictions_alone_can_tell_apart_are_no_traceback(folder, monkeypatch):
    def start(self, setup):
        raise MemoryError("Unable to allocate 95.4 GiB")

    monkeypatch.setattr(sl.CLime, "start", start)
    done = explain(folder, "line", "--method", "clime")
    assert done.exit_code == 2
    assert "the sums of clime over 2 features do not fit in memory: Unable to allocate 95.4 GiB. Hold" in done.output


def test_empty_cells_are_gaps(folder):
    (folder / "gaps.csv").write_text("age,debt\n1,2\n3,\nNA,8\n4,1\n")
    out = folder / "explained.json"
    done = explain(folder, "with_gaps", "-o", str(out), "--n-samples", "64", table="gaps.csv")
    assert done.exit_code == 0, done.output
    assert done.output.endswith("; 2 with gaps, where what is missing has no slope\n")
    e = sl.load(out)
    np.testing.assert_allclose(e.values, [[3, -1], [3, np.nan], [np.nan, -1], [3, -1]], atol=1e-9)
    printed = explain(folder, "with_gaps", "--n-samples", "64", table="gaps.csv").output
    assert "(missing: debt)" in printed
    assert "(missing: age)" in printed


def test_gaps_that_a_model_does_not_take_are_named(folder):
    (folder / "gaps.csv").write_text("age,debt\n1,2\n3,\n")
    done = explain(folder, "line", table="gaps.csv")
    assert done.exit_code == 2
    assert "Row 1 has gaps in 'debt'. If the model takes no missing values, impute them" in done.output
    (folder / "empty.csv").write_text("age,debt\n1,2\n,\n3,1\n")
    done = explain(folder, "with_gaps", table="empty.csv")
    assert done.exit_code == 2
    assert "row 1 of TABLE has no value in any" in done.output or "row 1 of X has no value in any" in done.output


class TestSwitches:
    MIXED = "age,debt,city\n20,1,a\n40,5,b\n60,2,a\n30,3,b\n"

    @pytest.fixture
    def table(self, folder):
        (folder / "mixed.csv").write_text(self.MIXED)
        return "mixed.csv"

    def test_other_levels_are_told(self, folder, table):
        done = explain(folder, "mixed", table=table)
        assert done.exit_code == 0, done.output
        assert "  city: a → b  +1" in done.output
        out = folder / "e.json"
        assert explain(folder, "mixed", "-o", str(out), table=table).exit_code == 0
        np.testing.assert_allclose(sl.load(out).switches.effect[:2], [[np.nan, 1.0], [-1.0, np.nan]], atol=1e-9)

    def test_levels_come_from_the_background(self, folder, table):
        (folder / "more.csv").write_text("age,debt,city\n20,1,a\n40,5,b\n60,2,c\n")
        done = explain(folder, "mixed", "--background", str(folder / "more.csv"), table=table)
        assert done.exit_code == 0
        assert "there are no switches: the model does not take 'c' in 'city', as switches would have it" in done.output

    def test_they_can_be_left_out(self, folder, table):
        for more in (["--no-switches"], ["--raw-units"]):
            done = explain(folder, "mixed", *more, table=table)
            assert done.exit_code == 0, done.output
            assert "→" not in done.output

    def test_groups_of_columns_are_one_category(self, folder):
        (folder / "hot.csv").write_text("age,city_a,city_b\n20,1,0\n40,0,1\n60,1,0\n30,0,1\n")
        done = explain(folder, "line", "--one-hot", "city_a,city_b", table="hot.csv")
        assert done.exit_code == 0, done.output
        assert "  city: a → b  +1" in done.output
        fixed = explain(folder, "line", "--fixed", "city_a,city_b", table="hot.csv")
        assert "  city: a → b  +1" in fixed.output
        apart = explain(folder, "line", "--fixed", "city_a,city_b", "--one-hot", "none", table="hot.csv")
        assert "  city_a: 1 → 0  +1" in apart.output
        wrong = explain(folder, "line", "--one-hot", "city_a,town", table="hot.csv")
        assert wrong.exit_code == 2
        assert "--one-hot names 'town', which is not a column" in wrong.output

import os
import time

import batch_models
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import smoothlime as sl

from .conftest import read, read_errors

FEATURES = ["a", "b", "c"]
FAST = {"columns": FEATURES, "n_samples": 256, "sigma": 0.5, "block_rows": 128, "progress": False}


def table_of(tmp_path, content, name="rows.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(source, tmp_path, message, kind=sl.errors.SmoothlimeError, model=batch_models.wave, **settings):
    """The job is refused with this message, and nothing stays behind but perhaps an empty folder."""
    with pytest.raises(kind, match=message):
        sl.explain_table(model, source, tmp_path / "out", **FAST | settings)
    assert not list((tmp_path / "out").glob("part-*"))
    assert not list((tmp_path / "out").glob("_manifest*"))


class TestRefused:
    def test_a_missing_file(self, tmp_path):
        refused(tmp_path / "no.parquet", tmp_path, r"there is no file '.*no.parquet'", sl.errors.MissingFile)
        refused(str(tmp_path / "*.parquet"), tmp_path, "there is no file that source", sl.errors.MissingFile)
        (tmp_path / "empty").mkdir()
        refused(tmp_path / "empty", tmp_path, "a folder without Parquet files", sl.errors.MissingFile)
        refused("a\0b", tmp_path, "cannot be read|there is no file", sl.errors.MissingFile)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "cannot be read as CSV: Empty CSV file"),
            ("a,b,c\n", "must have a header and at least one row"),
            ("a,b,a\n1,2,3\n", "has two columns named 'a'; rename one"),
            ("a,b,\n1,2,3\n", "has no name for column 2"),
            ("a;b;c\n1;2;3\n", "has ';' between its columns; save it with commas"),
            ("a,b,x\n1,2,3\n", r"has no column 'c', which columns names; its columns are 'a', 'b', 'x'"),
            (b"a,b,c\n1,\xff,3\n", "cannot be read as CSV: .*UTF8"),
            (b"\xff\xfea\x00,\x00", "is text in UTF-16; save it as Parquet"),
            (b"PK\x03\x04rest", "a zip archive or an Excel sheet"),
            (b"PAR1nothing", "cannot be read as Parquet"),
            ("a,b,c\n1,2\n1\n", "no row can be read; the first, row 0: it has 2 cells, but the header has 3|one row"),
        ],
    )
    def test_a_table_that_is_none(self, tmp_path, content, message):
        refused(table_of(tmp_path, content), tmp_path, message)

    def test_parquet_without_rows_or_of_two_columns_of_one_name(self, tmp_path):
        pq.write_table(pa.table({name: pa.array([], pa.float64()) for name in FEATURES}), tmp_path / "none.parquet")
        refused(tmp_path / "none.parquet", tmp_path, "holds no rows")
        twice = pa.Table.from_arrays([pa.array([1.0, 2.0])] * 3, names=["a", "b", "a"])
        pq.write_table(twice, tmp_path / "twice.parquet")
        refused(tmp_path / "twice.parquet", tmp_path, "has two columns named 'a'")

    def test_files_of_different_columns_or_types(self, frame, tmp_path):
        folder = tmp_path / "parts"
        folder.mkdir()
        frame.to_parquet(folder / "0.parquet")
        frame.drop(columns="b").to_parquet(folder / "1.parquet")
        refused(folder, tmp_path, r"0.parquet' has a column 'b' that '.*1.parquet' lacks")
        frame.assign(b="text").to_parquet(folder / "1.parquet")
        refused(folder, tmp_path, "the files of source hold different types: .*b")

    def test_arguments_that_mean_nothing(self, parquet, frame, tmp_path):
        for settings, message in (
            ({"key": "name"}, "key must be a column of the table; got 'name', and its columns are 'a', 'b', 'c', 'id'"),
            ({"key": "a"}, "key names 'a', which is a feature of the model"),
            ({"columns": ["a", "a"]}, "columns must name each column once"),
            ({"columns": ["a", "z"]}, "has no column 'z', which columns names"),
            ({"types": {"a": "double"}}, "types is for CSV files"),
            ({"engine": "steam"}, "engine must be one of 'local', 'ray', 'dask'"),
            ({"workers": 0}, "workers must be a whole number >= 1"),
            ({"resume": "yes"}, "resume must be True or False"),
            ({"target": [0, 1]}, "target must be one for all rows of a table"),
            ({"draws": "independent"}, "draws must be 'shared' for a table"),
            ({"block_rows": 0}, "block_rows must be a whole number >= 1"),
            ({"n_samples": 3}, "n_samples=3 is too few"),
            ({"sigma": -1.0}, "sigma must be"),
            ({"target": 4}, "target 4 is out of range"),
        ):
            refused(parquet, tmp_path, message, **settings)
        refused(frame, tmp_path, "source must be the path .* A data frame that is in memory goes to explain")
        refused(parquet, tmp_path, "steam", types=None, engine="steam")
        path = table_of(tmp_path, "a,b,c\n1,2,3\n")
        refused(path, tmp_path, "types: 'a' must be double, int64", types={"a": "colour"})
        refused(path, tmp_path, "types names 'd', which is not a column", types={"d": "double"})

    def test_a_folder_that_holds_other_things_or_the_table(self, parquet, tmp_path):
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "letter.txt").write_text("dear")
        with pytest.raises(sl.errors.InvalidArgument, match=r"holds other files, such as 'letter\.txt'"):
            sl.explain_table(batch_models.wave, parquet, tmp_path / "mine", **FAST)
        with pytest.raises(sl.errors.InvalidArgument, match="holds the table that is read"):
            sl.explain_table(batch_models.wave, parquet, tmp_path, **FAST)

    def test_a_model_that_knows_its_columns_names_the_one_that_is_missing(self, frame, parquet, tmp_path):
        model = LinearRegression().fit(frame[["b", "a"]].assign(missing=1.0), frame["c"])
        refused(parquet, tmp_path, "no column 'missing', which the model takes", model=model, columns=None)
        model = LinearRegression().fit(frame[["b", "a"]].to_numpy(), frame["c"])
        refused(parquet, tmp_path, r"takes 2 features, whose .* 5 columns: .*columns=\[", model=model, columns=None)

    def test_a_model_that_answers_nowhere(self, parquet, tmp_path):
        def broken(a):
            raise ZeroDivisionError("always")

        refused(parquet, tmp_path, "the model raised ZeroDivisionError .*always", sl.errors.ModelError, model=broken)
        rng = np.random.default_rng(0)
        refused(parquet, tmp_path, "gave two answers", model=lambda a: rng.random(len(a)), method="clime")


class TestRowsThatFail:
    def test_cells_that_do_not_fit_cost_their_row_alone(self, tmp_path):
        rows = [f"{i},{i / 7},x{i % 3}" for i in range(5_000)]
        rows[4_000], rows[4_001], rows[4_500], rows[4_999] = "many,1,x1", "1,--,x2", "1,2", "1,2,3,4"
        rows[10] = ",,x1"
        path = table_of(tmp_path, "\n".join(["a,b,kind", *rows]) + "\n")
        done = sl.explain_table(
            lambda x: np.asarray(x["a"]) * 2.0, path, tmp_path / "out", method="clime", **FAST | {"columns": None}
        )
        failed = read_errors(tmp_path / "out").set_index("row")["reason"]
        assert (done.rows, done.failed) == (4_995, 5)
        assert failed[4_000] == "column 'a' holds 'many', which is no int64"
        assert failed[4_001] == "column 'b' holds '--', which is no double"
        assert failed[4_500] == "it has 2 cells, but the header has 3"
        assert failed[4_999] == "it has 4 cells, but the header has 3"
        assert "no value in any of the features that are perturbed" in failed[10]
        written = read(tmp_path / "out")
        assert sorted([*written["row"], *failed.index]) == list(range(5_000))
        np.testing.assert_array_equal(written["prediction"], 2.0 * written["row"])

    def test_whole_numbers_become_floats_where_a_later_cell_needs_it_unless_their_type_was_given(self, tmp_path):
        rows = [f"{i},{i}" for i in range(2_000)]
        rows[1_999] = "2.5,1999"
        path = table_of(tmp_path, "\n".join(["a,b", *rows[:1_000], " " * 2**20 + "7,7", *rows[1_000:]]))
        settings = FAST | {"columns": ["a", "b"]}
        done = sl.explain_table(lambda x: x[:, 0], path, tmp_path / "out", **settings)
        assert done.failed == 0
        assert read(tmp_path / "out")["prediction"].iloc[-1] == 2.5
        done = sl.explain_table(lambda x: x[:, 0], path, tmp_path / "said", types={"a": "int64"}, **settings)
        assert read_errors(tmp_path / "said")["reason"].tolist() == ["column 'a' holds '2.5', which is no int64"]

    def test_rows_that_the_model_refuses_have_its_reason(self, frame, tmp_path):
        frame.loc[[20, 500], "c"] = [-20.0, 12.0]
        frame.to_parquet(tmp_path / "rows.parquet")
        out = tmp_path / "out"
        done = sl.explain_table(batch_models.picky, tmp_path / "rows.parquet", out, **FAST)
        failed = read_errors(out).set_index("row")["reason"]
        assert done.failed == len(failed) == 2
        assert "the model raised ValueError" in failed[20]
        assert "below -9" in failed[20]
        assert failed[500].startswith("the model returned [nan] at row 500; it must be finite")
        np.testing.assert_array_equal(read(out)["row"], np.delete(np.arange(1_000), [20, 500]))

    def test_strict_stops_at_the_first_and_the_job_can_go_on(self, frame, tmp_path):
        frame.loc[500, "c"] = -20.0
        frame.to_parquet(tmp_path / "rows.parquet")
        out = tmp_path / "out"
        with pytest.raises(sl.errors.ModelError, match="row 500 cannot be explained: the model raised ValueError"):
            sl.explain_table(batch_models.picky, tmp_path / "rows.parquet", out, strict=True, **FAST)
        assert len(list(out.glob("part-*"))) == 3
        assert sl.explain_table(batch_models.picky, tmp_path / "rows.parquet", out, **FAST).failed == 1

    def test_nulls_that_the_model_does_not_take(self, frame, tmp_path):
        model = LinearRegression().fit(frame[FEATURES], frame["a"])
        frame.loc[frame.index % 3 == 0, "b"] = np.nan
        frame.to_parquet(tmp_path / "rows.parquet")
        start = time.monotonic()
        done = sl.explain_table(model, tmp_path / "rows.parquet", tmp_path / "out", progress=False)
        assert time.monotonic() - start < 20  # a third of all rows, not one call each
        assert (done.rows, done.failed) == (666, 334)
        assert read_errors(tmp_path / "out")["reason"].str.contains("Input X contains NaN").all()
        assert set(read(tmp_path / "out")["method"]) == {"exact"}

    def test_nulls_that_the_model_takes(self, frame, tmp_path):
        model = make_pipeline(SimpleImputer(), LinearRegression()).fit(frame[FEATURES], frame["a"] + frame["b"])
        frame.loc[::7, "c"] = np.nan
        frame.to_parquet(tmp_path / "rows.parquet")
        done = sl.explain_table(model, tmp_path / "rows.parquet", tmp_path / "out", progress=False)
        written = read(tmp_path / "out")
        assert done.failed == 0
        assert written["c"].isna().to_numpy().nonzero()[0].tolist() == list(range(0, 1_000, 7))
        np.testing.assert_allclose(written[["a", "b"]], 1.0, atol=1e-6)
        assert done.load().missing[:, 2].sum() == 143

    def test_a_model_that_breaks_on_the_way_stops_the_job(self, parquet, tmp_path):
        left = [30]

        def tired(a):
            left[0] -= 1
            if left[0] < 0:
                raise RuntimeError("the card fell off")
            return batch_models.wave(a)

        with pytest.raises(sl.errors.ModelError, match="no longer answers rows that it answered at the start"):
            sl.explain_table(tired, parquet, tmp_path / "out", **FAST)


def test_parquet_that_is_damaged_inside_is_named_and_loses_nothing(frame, tmp_path):
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=250)
    whole = path.read_bytes()
    place = pq.ParquetFile(path).metadata.row_group(2).column(1).data_page_offset
    path.write_bytes(whole[:place] + b"\xff" * 40 + whole[place + 40 :])
    settings = FAST | {"sigma": sl.Neighbourhood(0.5)}
    with pytest.raises(sl.errors.UnreadableFile, match=r"rows.parquet' cannot be read from row 384 on"):
        sl.explain_table(batch_models.wave, path, tmp_path / "out", **settings)
    assert len(list((tmp_path / "out").glob("part-*"))) == 3


def test_ten_thousand_columns(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(10_000)]
    pd.DataFrame(rng.standard_normal((40, 10_000)), columns=names).to_parquet(tmp_path / "rows.parquet")
    weights = rng.standard_normal(10_000)
    model = LinearRegression()
    model.coef_, model.intercept_, model.n_features_in_ = weights, 0.0, 10_000
    start = time.monotonic()
    done = sl.explain_table(model, tmp_path / "rows.parquet", tmp_path / "out", progress=False)
    assert time.monotonic() - start < 60
    np.testing.assert_allclose(done.load(rows=[3, 30]).values, [weights, weights], rtol=1e-9)


def test_codes_and_words_for_nothing_are_read_as_they_are(tmp_path):
    path = table_of(
        tmp_path, 'code,size,flag,name\n007,1.5,true,"a, b"\n010,NA,FALSE,none\n011, 2 ,,\n012,-.5e1,true,x\n'
    )
    source = sl.batch.source.open_source(path)
    (run,) = source.runs(source.names, 10, lambda *_: True)
    assert run.rows.to_pydict() == {
        "code": ["007", "010", "011", "012"],
        "size": [1.5, None, 2.0, -5.0],
        "flag": [True, False, None, True],
        "name": ["a, b", "none", None, "x"],
    }
    assert os.path.basename(source.paths[0]) == "rows.csv"

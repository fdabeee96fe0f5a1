"""`explain` into a folder, and `merge`."""

import dataclasses
import json
import sys

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from xgboost import XGBRegressor

import smoothlime as sl
from smoothlime.batch.manifest import read_manifest
from smoothlime.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a model file, a module, and a table with a label."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.standard_normal((300, 3)), columns=["age", "income", "debt"])
    XGBRegressor(n_estimators=5, n_jobs=1).fit(rows[["income", "age"]], rows["income"] ** 2).save_model(
        tmp_path / "m.ubj"
    )
    rows.assign(id=np.arange(300) + 1_000, label="yes").to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "own.py").write_text("def wave(a):\n    return a[:, 0] * a[:, 1]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_a_table_and_a_model_file_become_a_folder_and_one_file(here):
    done = run("explain", "m.ubj", "rows.csv", "--out", "slopes", "--key", "id")
    assert done.exit_code == 0, done.output
    assert "columns that the model does not take are ignored: 'debt', 'label'" in done.stderr
    assert done.stdout.startswith("wrote slopes: 300 rows explained in ")
    done = run("merge", "slopes", "slopes.parquet")
    assert (done.exit_code, done.stdout) == (0, "wrote slopes.parquet: 300 rows\n")
    table = pd.read_parquet("slopes.parquet")
    pd.testing.assert_frame_equal(table, pd.read_parquet("slopes"), check_exact=True)
    assert table["id"].tolist() == list(range(1_000, 1_300))
    notes = json.loads(pq.read_schema("slopes.parquet").metadata[b"smoothlime"])
    assert notes["asked"]["model"]["name"] == "m.ubj"
    assert len(notes["asked"]["model"]["file"]) == 64
    assert run("explain", "m.ubj", "rows.csv", "--out", "slopes", "--key", "id").exit_code == 0  # nothing left to do


def test_settings_are_those_of_explain(here):
    words = [
        "explain",
        "own:wave",
        "rows.csv",
        "--path",
        ".",
        "--out",
        "slopes",
        "--columns",
        "debt,age",
        "--n-samples",
    ]
    done = run(*words, 512, "--sigma", 0.25, "--raw-units", "--fixed", "age", "--seed", 3, "--types", "debt=double")
    assert done.exit_code == 0, done.output
    rows = pd.read_csv("rows.csv")[["debt", "age"]]
    e = sl.explain(lambda a: a[:, 0] * a[:, 1], rows, sigma=0.25, fixed=["age"], n_samples=512, seed=3)
    found = sl.load("slopes")
    np.testing.assert_allclose(found.values, e.values, rtol=1e-12, atol=1e-12)
    done = run(*words, 256, "--sigma", 0.25, "--raw-units", "--fixed", "age", "--seed", 3, "--types", "debt=double")
    assert done.exit_code == 2
    assert "n_samples was 512 and is 256" in done.stderr
    done = run(*words, 256, "--background", "rows.csv", "--scale", "debt=ranks", "--no-resume")
    assert done.exit_code == 0, done.output
    assert sl.load("slopes").neighbourhood.scales == ("ranks", "linear")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "slopes", "--rows", 5), "--rows goes with a file or the screen"),
        (("-o", "one.json", "--workers", 2), "--workers goes with --out FOLDER"),
        (("--strict",), "--strict goes with --out FOLDER"),
        (("-o", "one.json", "--no-resume"), "--no-resume goes with --out FOLDER"),
        (("--out", "slopes", "--types", "debt"), "--types must be column=word, separated by commas; got 'debt'"),
        (("--out", "slopes", "--types", "debt=colour"), "--types: 'debt' must be double, int64, string or bool"),
        (("--out", "slopes", "--key", "name"), "--key must be a column of the table; got 'name'"),
        (("--out", "slopes", "--engine", "steam"), "--engine must be one of 'local', 'ray', 'dask'"),
        (("--out", "slopes", "--raw-units", "--background", "rows.csv"), "give --background or --raw-units, not both"),
        (("--out", "own.py/slopes"), "cannot be made: Not a directory"),
    ],
)
def test_options_that_mean_nothing_are_named(here, words, message):
    done = run("explain", "own:wave", "rows.csv", "--path", ".", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not list(here.glob("slopes/part-*"))


def test_merge_says_what_is_missing(here):
    run("explain", "m.ubj", "rows.csv", "--out", "slopes")
    for words, message in (
        (("nowhere", "a.parquet"), "a folder without results|without results of explain_table"),
        (("slopes", "a.csv"), "OUT must end in .parquet"),
        (("slopes", "slopes/a.parquet"), "OUT must not lie in 'slopes'"),
        (("slopes", "nowhere/a.parquet"), "there is no folder 'nowhere'"),
    ):
        done = run("merge", *words)
        assert done.exit_code == 2
        assert any(each in done.stderr for each in message.split("|"))
    manifest = read_manifest(here / "slopes")
    dataclasses.replace(manifest, finished=None).write(here / "slopes")
    done = run("merge", "slopes", "a.parquet")
    assert "is not finished: 300 of 300 rows are there. Run it again" in done.stderr
    with pytest.raises(sl.errors.UnreadableFile, match="is not finished"):
        sl.load("slopes")
    later = json.loads((here / "slopes" / "_manifest.json").read_text()) | {"version": 99}
    (here / "slopes" / "_manifest.json").write_text(json.dumps(later))
    assert "format version 99" in run("merge", "slopes", "a.parquet").stderr
    assert not (here / "a.parquet").exists()


def test_lines_of_a_folder_are_checked(here):
    run("explain", "m.ubj", "rows.csv", "--out", "slopes")
    for rows, message in (
        ([300], "must lie within the 300 lines"),
        ("all", "must be a slice, a range or a list"),
        ([], "names no line"),
        ([[1]], "must be a slice, a range or a list"),
    ):
        with pytest.raises(sl.errors.SmoothlimeError, match=message):
            sl.load("slopes", rows=rows)
    with pytest.raises(sl.errors.InvalidArgument, match="rows is for folders of explain_table"):
        sl.load("m.ubj", rows=[1])


def test_more_than_two_gigabytes_are_not_loaded_by_accident(here, monkeypatch):
    run("explain", "m.ubj", "rows.csv", "--out", "slopes")
    monkeypatch.setattr(
        sys.modules["smoothlime.batch.load"], "LARGE", 20_000
    )  # the package has a function of that name
    with pytest.raises(sl.errors.InvalidArgument, match=r"300 lines of 2 features, .*rows=slice\(0, 100_000\)"):
        sl.load("slopes")
    assert len(sl.load("slopes", rows=slice(0, 7))) == 7


def test_rows_that_are_gone_are_nan_and_said_to_be(here):
    run("explain", "m.ubj", "rows.csv", "--out", "slopes")
    (here / "rows.csv").unlink()
    with pytest.warns(sl.errors.DamagedFile, match=r"rows x of 'slopes' are not known, and NaN: there is no file"):
        e = sl.load("slopes")
    assert np.isnan(e.x).all()
    assert np.isfinite(e.values).all()
    assert str(e)


def test_a_model_of_another_file_is_not_taken_for_the_same(here):
    run("explain", "m.ubj", "rows.csv", "--out", "slopes")
    rows = pd.read_csv("rows.csv")
    XGBRegressor(n_estimators=6, n_jobs=1).fit(rows[["income", "age"]], rows["debt"]).save_model("m.ubj")
    done = run("explain", "m.ubj", "rows.csv", "--out", "slopes")
    assert done.exit_code == 2
    assert "the model file has changed" in done.stderr


def test_a_folder_with_a_dot_in_its_name_ends_with_a_slash(here):
    done = run("explain", "m.ubj", "rows.csv", "--out", "slopes.v2", "--key", "id")
    assert done.exit_code == 2
    assert "with /, as in --out results.v2/" in done.stderr
    assert run("explain", "m.ubj", "rows.csv", "--out", "slopes.v2/", "--key", "id").exit_code == 0
    assert len(sl.load("slopes.v2")) == 300

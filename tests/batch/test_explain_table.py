import json
import sys

import batch_models
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scipy import stats
from sklearn.ensemble import GradientBoostingRegressor

import smoothlime as sl

from .conftest import assert_same_bits, read, read_errors

FEATURES = ["a", "b", "c"]
FAST = {"columns": FEATURES, "n_samples": 256, "sigma": 0.5, "block_rows": 128, "progress": False}


def assert_is(written, e, atol=1e-12):
    """Lines of results are what `explain` says of the same rows."""
    for j, name in enumerate(e.feature_names):
        np.testing.assert_allclose(written[name], e.values[:, j], rtol=1e-12, atol=atol)
        np.testing.assert_allclose(written[f"{name}_se"], e.standard_error[:, j], rtol=1e-10, atol=atol)
    for name in ("prediction", "smoothed", "radius", "fidelity", "degrees_of_freedom"):
        np.testing.assert_allclose(written[name], getattr(e, name), rtol=1e-10, atol=atol, err_msg=name)
    for name in ("converged", "n_samples", "n_evaluations"):
        assert (written[name] == getattr(e, name)).all() or name == "n_evaluations"


def test_lines_are_what_explain_says_of_the_same_rows(frame, parquet, tmp_path):
    done = sl.explain_table(batch_models.wave, parquet, tmp_path / "out", **FAST)
    e = sl.explain(batch_models.wave, frame[FEATURES], background=frame[FEATURES], sigma=0.5, n_samples=256)
    written = read(tmp_path / "out")
    assert (done.rows, done.failed, done.not_converged) == (1_000, 0, 0)
    assert written["row"].tolist() == list(range(1_000))
    assert list(written.columns[:9]) == [
        *("row", "prediction", "smoothed", "radius", "converged", "n_samples", "n_evaluations", "a", "a_se"),
    ]
    assert_is(written, e)


def test_exact_lines_are_what_explain_says(frame, parquet, tmp_path):
    model = GradientBoostingRegressor(n_estimators=10, random_state=0).fit(frame[FEATURES], frame["a"] * frame["b"])
    done = sl.explain_table(model, parquet, tmp_path / "out", block_rows=128, progress=False)
    written = read(tmp_path / "out")
    assert_is(written, sl.explain(model, frame[FEATURES], background=frame[FEATURES]))
    assert set(written["method"]) == {"exact"}
    assert done.ignored == ("id", "label")  # the model knows its columns


def test_rows_that_draw_until_they_have_their_tolerance_are_what_explain_says(frame, parquet, tmp_path):
    settings = {"sigma": 0.5, "rtol": 0.002, "atol": 0.0005, "max_samples": 2_048}
    with pytest.warns(sl.errors.NotConverged, match="of 1,000 rows did not reach"):
        done = sl.explain_table(
            batch_models.wave, parquet, tmp_path / "out", columns=FEATURES, block_rows=256, progress=False, **settings
        )
    with pytest.warns(sl.errors.NotConverged):
        e = sl.explain(batch_models.wave, frame[FEATURES], background=frame[FEATURES], **settings)
    assert_is(read(tmp_path / "out"), e)
    assert done.not_converged == (~e.converged).sum()


def test_two_workers_and_one_give_the_same_bits(parquet, tmp_path):
    for workers in (1, 2):
        sl.explain_table(batch_models.wave, parquet, tmp_path / str(workers), workers=workers, **FAST)
    assert_same_bits(tmp_path / "1", tmp_path / "2")


def test_a_folder_loads_as_an_explanation(frame, parquet, tmp_path):
    done = sl.explain_table(batch_models.wave, parquet, tmp_path / "out", **FAST)
    e, again = (
        done.load(),
        sl.explain(batch_models.wave, frame[FEATURES], background=frame[FEATURES], sigma=0.5, n_samples=256),
    )
    for name in ("x", "values", "standard_error", "prediction", "smoothed", "radius", "fidelity", "n_samples"):
        np.testing.assert_allclose(getattr(e, name), getattr(again, name), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(e.standardised, again.standardised, rtol=1e-10, atol=1e-12)
    reach = stats.t.ppf(0.95, again.degrees_of_freedom)[:, None] * again.standard_error
    np.testing.assert_allclose(e.interval(0.9), (again.values - reach, again.values + reach), rtol=1e-9, atol=1e-12)
    assert (e.feature_names, e.method, e.design, e.seed) == (again.feature_names, again.method, again.design, 0)
    some = sl.load(tmp_path / "out", rows=[700, 3, -1])
    np.testing.assert_array_equal(some.values, e.values[[700, 3, 999]])
    np.testing.assert_array_equal(some.x, e.x[[700, 3, 999]])
    assert len(sl.load(tmp_path / "out", rows=range(100, 400, 7))) == 43
    assert len(sl.load(tmp_path / "out", rows=slice(990, None))) == 10


def test_a_key_names_the_lines_and_the_errors(frame, tmp_path):
    frame.loc[[4, 900], "c"] = [-50.0, np.inf]
    frame.to_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "out"
    sl.explain_table(batch_models.picky, tmp_path / "rows.parquet", out, key="id", **FAST)
    assert read(out)["id"].tolist() == frame["id"].drop([4, 900]).tolist()
    failed = read_errors(out)
    assert failed["row"].tolist() == [4, 900]
    assert failed["id"].tolist() == frame["id"][[4, 900]].tolist()
    e = sl.load(out)
    np.testing.assert_array_equal(e.x, frame[FEATURES].drop([4, 900]))


def test_the_manifest_says_what_was_asked(parquet, tmp_path):
    sl.explain_table(batch_models.wave, parquet, tmp_path / "out", seed=5, **FAST)
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    asked = manifest["asked"]
    assert asked["settings"]["n_samples"] == 256
    assert asked["settings"]["seed"] == 5
    assert asked["versions"]["smoothlime"] == sl.__version__
    assert len(asked["model"]["predictions"]) == 64
    assert asked["source"][0]["bytes"] == parquet.stat().st_size
    assert manifest["ignored"] == ["id", "label"]
    assert manifest["finished"] == {"rows": 1_000, "failed": 0, "not_converged": 0}
    assert manifest["runs"][0]["workers"] == 1


def test_folders_globs_lists_and_datasets_are_one_table(frame, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(3):
        frame[i * 350 : (i + 1) * 350].to_parquet(folder / f"{i}.parquet", row_group_size=100)
    frame.to_parquet(tmp_path / "whole.parquet")
    sources = (
        tmp_path / "whole.parquet", folder, str(folder / "*.parquet"), sorted(folder.iterdir()), ds.dataset(folder),
    )  # fmt: skip
    for i, source in enumerate(sources):
        sl.explain_table(batch_models.wave, source, tmp_path / f"out{i}", **FAST)
        assert_same_bits(tmp_path / "out0", tmp_path / f"out{i}")


def test_names_of_folders_are_columns(frame, tmp_path):
    table = pa.Table.from_pandas(frame.assign(year=[2020, 2021] * 500))
    pq.write_to_dataset(table, tmp_path / "parts", partition_cols=["year"])
    out = tmp_path / "out"
    done = sl.explain_table(batch_models.wave, tmp_path / "parts", out, **FAST | {"columns": [*FEATURES, "year"]})
    assert set(done.load().x[:, 3]) == {2020, 2021}


def test_scales_are_those_of_all_rows_where_quantiles_are_of_some(frame, parquet, tmp_path, monkeypatch):
    monkeypatch.setattr("smoothlime.batch.survey.CHOSEN", 200)
    settings = FAST | {"scale": {"c": "ranks"}}
    done = sl.explain_table(batch_models.wave, parquet, tmp_path / "out", **settings)
    around = done.load().neighbourhood
    np.testing.assert_allclose(around.scale[:2], frame[["a", "b"]].std(), rtol=1e-13)
    assert around.background.count == 1_000
    np.testing.assert_array_equal(around.background.largest, frame[FEATURES].max())
    assert around.background.scales[2].count == 202  # chosen by key, and the ends: the median is that of a sample
    assert around.background.scales[2].ends == (frame["c"].min(), frame["c"].max())
    middle = np.interp(0.0, around.background.scales[2].middle, around.background.scales[2].known)
    assert abs(middle - frame["c"].median()) < 4 * 1.2533 * frame["c"].std() / np.sqrt(200)


def test_background_and_raw_units_take_the_place_of_the_pass(frame, parquet, tmp_path):
    some = frame[FEATURES][:100] * 3
    sl.explain_table(batch_models.wave, parquet, tmp_path / "given", background=some, **FAST)
    assert_is(
        read(tmp_path / "given"),
        sl.explain(batch_models.wave, frame[FEATURES], background=some, sigma=0.5, n_samples=256),
    )
    sl.explain_table(batch_models.wave, parquet, tmp_path / "raw", background=False, **FAST)
    sl.explain_table(batch_models.wave, parquet, tmp_path / "same", **FAST | {"sigma": sl.Neighbourhood(0.5)})
    assert_is(read(tmp_path / "raw"), sl.explain(batch_models.wave, frame[FEATURES], sigma=0.5, n_samples=256))
    assert_same_bits(tmp_path / "raw", tmp_path / "same")


def test_a_feature_that_is_called_like_a_column_of_the_results_gets_another_name(frame, tmp_path):
    frame.rename(columns={"a": "radius", "b": "b_se", "c": "b"}).to_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "out"
    done = sl.explain_table(
        batch_models.wave, tmp_path / "rows.parquet", out, **FAST | {"columns": ["radius", "b_se", "b"]}
    )
    written = read(out)
    assert written.columns.is_unique
    assert done.load().feature_names == ("radius", "b_se", "b")
    e = sl.explain(batch_models.wave, frame[FEATURES], background=frame[FEATURES], sigma=0.5, n_samples=256)
    np.testing.assert_allclose(written["radius_slope"], e.values[:, 0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(done.load().values, e.values, rtol=1e-12, atol=1e-12)


def test_each_rows_own_top_class_is_named(frame, parquet, tmp_path):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(frame[FEATURES], np.array(["no", "yes"])[(frame["a"] > 0).astype(int)])
    done = sl.explain_table(model, parquet, tmp_path / "out", target="predicted", progress=False)
    assert done.load().row_outputs == tuple(model.predict(frame[FEATURES]))


def test_text_is_held_and_categoricals_keep_their_levels_in_every_block(frame, tmp_path):
    def ask(table):
        assert list(table["kind"].cat.categories) == ["x", "y", "z"]
        return table["a"] + (table["kind"] == "z") * table["b"]

    frame["kind"] = pd.Categorical(["x"] * 500 + ["z", "y"] * 250, categories=["x", "y", "z"])
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    model = sl.as_model(ask, takes="table")
    settings = FAST | {"columns": ["a", "b", "kind"]}
    done = sl.explain_table(model, tmp_path / "rows.parquet", tmp_path / "out", **settings)
    e = sl.explain(
        model, frame[["a", "b", "kind"]], background=frame[["a", "b", "kind"]], sigma=0.5, n_samples=256, switches=False
    )
    assert done.failed == 0
    assert_is(read(tmp_path / "out"), e)
    assert done.load().not_numeric[:, 2].all()


def test_what_blocks_warn_of_is_said_once(frame, tmp_path):
    frame["b"] = np.r_[np.zeros(950), np.linspace(0, 1, 50)]
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.warns(sl.errors.DrawsOffData, match=r"in 8 of 8 blocks") as caught:
        sl.explain_table(batch_models.wave, tmp_path / "rows.parquet", tmp_path / "out", **FAST | {"sigma": 3.0})
    assert len([each for each in caught if each.category is sl.errors.DrawsOffData]) == 1


def test_a_script_without_a_guard_can_use_workers(parquet, tmp_path, run_script):
    done = run_script(
        f"""
        import batch_models, smoothlime as sl
        print(sl.explain_table(batch_models.wave, {str(parquet)!r}, {str(tmp_path / "out")!r}, workers=2, **{FAST!r}))
        """
    )
    assert "1,000 rows explained" in done.stdout, done.stderr


def test_a_model_that_cannot_be_sent_is_named(parquet, tmp_path):
    with pytest.raises(sl.errors.WrongType, match=r"cannot be sent to other processes: .*workers=1"):
        sl.explain_table(lambda a: a[:, 0], parquet, tmp_path / "out", workers=2, **FAST)
    assert sys.modules["__main__"].__name__ == "__main__"

"""Keys, and types of columns of text: whatever names the rows is in the results as it was in the table."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import smoothlime as sl
from smoothlime.batch.merge import merge

from .conftest import read, read_errors

SETTINGS = {"columns": ["a", "b"], "n_samples": 16, "sigma": 0.5, "block_rows": 16}


def product(a):
    a = np.asarray(a, dtype=float)
    return np.sin(a[:, 0]) * a[:, 1]


@pytest.fixture
def rows():
    return pd.DataFrame(np.random.default_rng(0).standard_normal((50, 2)), columns=["a", "b"])


@pytest.mark.parametrize("name", ["prediction", "converged", "method", "n_samples", "reason", "row", "a_se", "a"])
def test_a_key_called_like_a_column_of_the_results_is_kept(rows, name, tmp_path):
    keys = [f"k{i}" for i in range(50)]
    columns = ["a", "b"] if name != "a" else ["b", "c"]
    table = rows.assign(c=1.5 * rows["b"])
    table.loc[:2, columns] = np.nan
    table[name] = keys
    table.to_parquet(tmp_path / "rows.parquet")
    done = sl.explain_table(
        product, tmp_path / "rows.parquet", tmp_path / "out", key=name, **SETTINGS | {"columns": columns}
    )
    assert (done.rows, done.failed) == (47, 3)
    parts, errors = read(tmp_path / "out"), read_errors(tmp_path / "out")
    beside = f"{name}_key"
    assert parts[beside if beside in parts else name].tolist() == keys[3:]
    assert errors[beside if beside in errors else name].tolist() == keys[:3]
    assert errors["row"].tolist() == [0, 1, 2]
    assert np.isfinite(parts["prediction"]).all()
    assert sl.load(tmp_path / "out").prediction.tolist() == parts["prediction"].tolist()


def test_decimals_are_kept_as_keys_and_numbers_as_features(rows, tmp_path):
    keys = [Decimal(12345678901234567890123456789) + i for i in range(50)]
    table = pa.table({
        "a": pa.array([Decimal(i) / 4 for i in range(50)], pa.decimal128(10, 2)),
        "b": rows["b"],
        "k": pa.array(keys, pa.decimal128(38, 0)),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "rows.parquet")
    sl.explain_table(product, tmp_path / "rows.parquet", tmp_path / "out", key="k", **SETTINGS)
    merge(tmp_path / "out", tmp_path / "merged.parquet")
    assert pq.read_table(tmp_path / "merged.parquet").column("k").to_pylist() == keys
    assert sl.load(tmp_path / "out").x[:, 0].tolist() == [i / 4 for i in range(50)]


LATE = 120_000
"""Rows of a file whose last rows stand behind its first MiB."""


def write_late(path, line):
    """Whole numbers in a CSV file of more than a MiB, and another line near its end."""
    lines = [f"{i},{i % 7},{i * 37 % 101 / 10}" for i in range(LATE)]
    lines[LATE - 9] = line
    path.write_text("\n".join(["id,a,b", *lines]))


def test_whole_numbers_that_turn_into_others_late_are_read_back(tmp_path):
    write_late(tmp_path / "rows.csv", f"{LATE - 9},2.5,1.5")
    done = sl.explain_table(
        product, tmp_path / "rows.csv", tmp_path / "out", key="id", **SETTINGS | {"block_rows": 60_000, "n_samples": 8}
    )
    assert (done.rows, done.failed) == (LATE, 0)
    np.testing.assert_array_equal(sl.load(tmp_path / "out").x, pd.read_csv(tmp_path / "rows.csv")[["a", "b"]])


def test_keys_have_one_type_in_all_parts(tmp_path):
    write_late(tmp_path / "rows.csv", "7.5,2,1.5")
    done = sl.explain_table(
        product, tmp_path / "rows.csv", tmp_path / "out", key="id", **SETTINGS | {"block_rows": 60_000, "n_samples": 8}
    )
    assert (done.rows, done.failed) == (LATE - 1, 1)
    assert read_errors(tmp_path / "out")["reason"].tolist() == ["column 'id' holds '7.5', which is no int64"]
    assert read(tmp_path / "out")["id"].tolist() == [i for i in range(LATE) if i != LATE - 9]
    merge(tmp_path / "out", tmp_path / "merged.parquet")
    assert len(pd.read_parquet(tmp_path / "merged.parquet")) == LATE - 1


def test_other_types_are_another_job(rows, tmp_path):
    rows.assign(id=range(50)).to_csv(tmp_path / "rows.csv", index=False)
    ask = {"key": "id", **SETTINGS}
    sl.explain_table(product, tmp_path / "rows.csv", tmp_path / "out", **ask)
    with pytest.raises(sl.errors.InvalidArgument, match="types id was 'int64' and is 'string'"):
        sl.explain_table(product, tmp_path / "rows.csv", tmp_path / "out", types={"id": "string"}, **ask)


def test_a_file_whose_rows_are_all_too_short_says_so(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1\n2\n")
    with pytest.raises(sl.errors.InvalidArgument, match="row 0 is none, as it has 1 cells, but the header has 2"):
        sl.explain_table(product, tmp_path / "rows.csv", tmp_path / "out", **SETTINGS)


def test_categories_of_bytes_are_named(rows, tmp_path):
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 25, pa.int8()), pa.array([b"x", b"\xff"]))
    pq.write_table(pa.table({"a": rows["a"], "b": rows["b"], "k": codes}), tmp_path / "rows.parquet")
    with pytest.raises(sl.errors.InvalidArgument, match="column 'k' holds categories of bytes; save it as text"):
        sl.explain_table(
            lambda frame: np.asarray(frame["a"] * frame["b"]),
            tmp_path / "rows.parquet",
            tmp_path / "out",
            **SETTINGS | {"columns": ["a", "b", "k"]},
        )

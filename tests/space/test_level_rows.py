"""Frames in which some points have another level, in every library."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from smoothlime.space.level_rows import with_levels
from smoothlime.space.tables import as_table

DATA = pd.DataFrame(
    {
        "a": [1.0, 2.0, 3.0],
        "word": ["x", "y", None],
        "kind": pd.Categorical(["u", "v", "u"]),
        "flag": [True, False, True],
        "code": [1, 2, 3],
        "gappy": pd.array([1, None, 3], dtype="Int64"),
    }
)
FREE = np.array([0])


def given(library):
    if library == "pandas":
        return DATA
    if library == "enum":
        return pl.from_pandas(DATA).with_columns(pl.col("kind").cast(pl.Enum(["u", "v"])))
    return pl.from_pandas(DATA) if library == "polars" else pa.Table.from_pandas(DATA)


def plain(frame):
    """Columns as lists of plain values, with None for what is missing."""
    table = as_table(frame)
    return {name: table.cells(j) for j, name in enumerate(table.names)}


@pytest.mark.parametrize("library", ["pandas", "polars", "enum", "pyarrow"])
def test_points_have_the_levels_of_their_codes_in_columns_of_the_same_type(library):
    table = as_table(given(library))
    levels = {1: ["x", "q"], 2: ["u", "w"], 3: [False, True], 4: [1, 2, 5], 5: [7]}
    longer = with_levels(table, levels)
    rows = table.coded(table.numbers(), FREE)
    points = np.repeat(rows, 2, axis=0)
    points[1, 1] = 3 + 1  # x → q
    points[3, [1, 2]] = 3 + 1  # y → q and v → w, which the column did not know
    points[4, [3, 4]] = 3 + 0, 3 + 2  # two at once
    points[5, 5] = 3 + 0
    before, after = longer.to_frame(rows, FREE), longer.to_frame(points, FREE)
    assert plain(after) == {
        "a": [1.0, 1.0, 2.0, 2.0, 3.0, 3.0],
        "word": ["x", "q", "y", "q", None, None],
        "kind": ["u", "u", "v", "w", "u", "u"],
        "flag": [True, True, False, False, False, True],
        "code": [1, 1, 2, 2, 5, 3],
        "gappy": [1, 1, None, None, 3, 7],
    }
    assert plain(before) == plain(given(library))
    assert as_table(after).dtypes[:2] == as_table(before).dtypes[:2] == table.dtypes[:2]
    assert as_table(after).dtypes[3:] == table.dtypes[3:]
    assert as_table(after).names == table.names


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_numbers_that_a_column_cannot_hold_make_it_one_of_floats(library):
    table = as_table(given(library))
    longer = with_levels(table, {4: [1.0, 2.5]})
    points = table.coded(table.numbers(), FREE)
    points[:, 4] = 3, 4, 2
    assert plain(longer.to_frame(points, FREE))["code"] == [1.0, 2.5, 3.0]
    whole = with_levels(table, {4: [1.0, 4.0]})
    assert as_table(whole.to_frame(points, FREE)).dtypes == table.dtypes


def test_codes_of_known_categories_stay():
    """Some libraries go by the codes of a categorical, not by its values."""
    table = as_table(DATA)
    frame = with_levels(table, {2: ["a", "u"]}).to_frame(table.coded(table.numbers(), FREE), FREE)
    assert frame["kind"].cat.codes.tolist() == DATA["kind"].cat.codes.tolist()


def test_nothing_is_added_where_nothing_switches():
    table = as_table(DATA)
    assert with_levels(table, {}) is table

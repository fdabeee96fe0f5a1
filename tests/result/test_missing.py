"""Rows with gaps, shown: in print, pictures, frames and shap's format."""

import io

import numpy as np
import pandas as pd
import pytest

import smoothlime as sl

FRAME = pd.DataFrame({"age": [30.0, np.nan, 50.0], "income": [1.0, 2.0, np.nan], "debt": [0.5, 0.1, np.nan]})


@pytest.fixture(scope="module")
def e():
    return sl.explain(lambda a: np.nan_to_num(a) @ [0.1, 2.0, -1.0], FRAME, sigma=0.5, n_samples=256)


def test_print_says_what_is_missing(e):
    blocks = str(e).split("\n\n")
    assert "missing" not in blocks[0]
    assert "(missing: age)" in blocks[1]
    assert "(missing: income, debt)" in blocks[2]
    assert "nan" not in str(e)
    assert "held fixed" not in str(e)
    assert "(missing: income, debt)" in e._repr_html_()


def test_rich_says_it_too(e):
    from rich.console import Console

    console = Console(width=120, record=True, file=io.StringIO())
    console.print(e)
    assert "(missing: income, debt)" in console.export_text()


def test_long_lists_are_cut_short():
    row = np.r_[1.0, np.full(9, np.nan)]
    found = sl.explain(lambda a: a[:, 0], row, n_samples=64)
    assert "(missing: x1, x2, x3, x4, x5, x6 and 3 more)" in str(found)


def test_bars_leave_them_out_and_say_so(e):
    ax = e.plot(row=1)
    assert [each.get_text() for each in ax.get_yticklabels()] == ["income = 2", "debt = 0.1"]
    assert "missing: age" in ax.get_xlabel()
    assert "not shown" not in ax.get_xlabel()
    assert "1 smaller slope not shown; missing: age" in " ".join(e.plot(row=1, most=1).get_xlabel().split())
    assert "missing" not in e.plot(row=0).get_xlabel()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_have_a_line_without_a_slope(e, library):
    tidy = e.to_frame(library=library)
    tidy = tidy.to_pandas() if library != "pandas" else tidy
    assert len(tidy) == 9
    none = tidy[tidy["slope"].isna()]
    assert list(zip(none["row"], none["feature"], strict=True)) == [(1, "age"), (2, "income"), (2, "debt")]
    assert none[["x", "standardised", "standard_error", "lower", "upper"]].isna().all(axis=None)
    wide = e.to_frame("wide", library="pandas")
    assert wide["age"].isna().tolist() == [False, True, False]


def test_shap_gets_zeros(e):
    slopes = e.to_shap()
    assert slopes.values[1, 0] == 0
    assert np.isfinite(slopes.values).all()
    parts = e.to_shap("contributions", reference={"age": 0.0, "income": 1.0, "debt": 0.0})
    np.testing.assert_allclose(parts.values[1], [0.0, 2.0, -0.1], atol=1e-9)
    np.testing.assert_allclose(parts.base_values + parts.values.sum(axis=1), e.smoothed, atol=1e-9)


def test_intervals_of_a_row_together_count_what_it_has(e):
    curved = sl.explain(
        lambda a: np.tanh(np.nan_to_num(a)).sum(axis=1), FRAME, n_samples=256, design="iid", method="clime"
    )
    alone = [curved[row].interval(simultaneous=True) for row in range(3)]
    np.testing.assert_array_equal(curved.interval(simultaneous=True), np.concatenate(alone, axis=1))
    last = np.array(curved[2].interval(simultaneous=True))[:, 0, 0]
    np.testing.assert_allclose(last, np.array(curved[2].interval())[:, 0, 0])

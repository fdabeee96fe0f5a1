"""The parsers on small files in the real formats; the real files are read in tests/data."""

import numpy as np
import pytest

from smoothlime.errors import UnreadableFile
from smoothlime.paper.parsing import check_rows, parse_arff, parse_csv, read_text

HEADER = "@relation '1year-weka.filters-Enot ismissing(ATT20)'\n\n@attribute Attr1 numeric\n@attribute Attr2 numeric\n"
ARFF = HEADER + "@attribute class {0,1}\n\n@data\n0.17419,6.5269e-006,0\r\n-1.2314e+005,?,0\r\n3,0,1\r\n\r\n"
CSV = "PageValues,Month,Weekend,Revenue\r\n0.25,Feb,FALSE,FALSE\r\n12,June,TRUE,TRUE\r\n"


def test_arff_in_the_published_form():
    table = parse_arff(ARFF)
    assert table.names == ("Attr1", "Attr2", "class")
    expected = [[0.17419, 6.5269e-6], [-123140.0, np.nan], [3.0, 0.0]]
    np.testing.assert_array_equal(table.numbers(["Attr1", "Attr2"]), expected)
    np.testing.assert_array_equal(table.codes("class", {"0": 0, "1": 1}), [0, 0, 1])


def test_columns_come_in_the_order_asked_for():
    np.testing.assert_array_equal(parse_arff(ARFF).numbers(["Attr2", "Attr1"])[2], [0.0, 3.0])


def test_csv_in_the_published_form():
    table = parse_csv(CSV)
    np.testing.assert_array_equal(table.numbers(["PageValues"]), [[0.25], [12.0]])
    np.testing.assert_array_equal(table.codes("Revenue", {"FALSE": 0, "TRUE": 1}), [0, 1])
    assert table.columns(["Month"]).tolist() == [["Feb"], ["June"]]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (ARFF[: ARFF.index("@data")], "ends before @data"),
        (ARFF[: ARFF.index("?") - 1], "line 9 has 1 cells for 3 columns; was the file cut off"),
        (ARFF.replace("{0,1}", "date"), "line 5 must declare a numeric or {nominal} attribute"),
        (ARFF.replace("@attribute Attr2", "@what Attr2"), "line 4 of the header is none of"),
        (ARFF.replace("Attr2", "Attr1"), "column names must differ"),
        ("", "ends before @data"),
    ],
)
def test_arff_that_is_not_understood(text, complaint):
    with pytest.raises(UnreadableFile, match=complaint):
        parse_arff(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the file is empty"),
        (CSV[:-12], "line 3 has 2 cells for 4 columns"),
        (CSV + '"unclosed', "line 4 is not comma-separated text"),
    ],
)
def test_csv_that_is_not_understood(text, complaint):
    with pytest.raises(UnreadableFile, match=complaint):
        parse_csv(text)


@pytest.mark.parametrize("cell", ["abc", "", "1,5"])
def test_cells_that_hold_no_number(cell):
    with pytest.raises(UnreadableFile, match=r"could not convert string|cells for 3 columns"):
        parse_arff(ARFF.replace("0.17419", cell)).numbers(["Attr1"])


@pytest.mark.parametrize("cell", ["nan", "inf", "1e999"])
def test_only_a_question_mark_is_a_missing_cell(cell):
    with pytest.raises(UnreadableFile, match=f"cells must be finite; got '{cell}' in row 0, column Attr1"):
        parse_arff(ARFF.replace("0.17419", cell)).numbers(["Attr1"])


def test_unknown_labels_and_absent_columns():
    with pytest.raises(UnreadableFile, match="column class must hold only 0, 1; got '2'"):
        parse_arff(ARFF.replace("3,0,1", "3,0,2")).codes("class", {"0": 0, "1": 1})
    with pytest.raises(UnreadableFile, match="the file has no column Attr9; it has Attr1, Attr2, class"):
        parse_arff(ARFF).numbers(["Attr1", "Attr9"])


def test_rows_are_counted():
    assert check_rows(parse_arff(ARFF), 3).cells.shape == (3, 3)
    with pytest.raises(UnreadableFile, match="the file must have 4 rows; got 3"):
        check_rows(parse_arff(ARFF), 4)


def test_a_file_that_is_not_ascii():
    with pytest.raises(UnreadableFile, match="plain ASCII"):
        read_text(b"Zi\xc4\x99ba")

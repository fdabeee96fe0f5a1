"""Names as people see them: nothing in them may command a terminal, break a file, or hide which feature is meant."""

import dataclasses
import unicodedata
from io import StringIO
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest
from rich.console import Console

import smoothlime as sl
from smoothlime.plots.names import shortened, shown, told_apart

EVIL = (
    "\u2028\x7f", "nul\x00", "two\nlines", "back\u202ewards\u2066", "c1\x9b31m", "\ud800\uffff", "\x1b]0;pwned\x07",
)  # fmt: skip
OUTPUT = "p\x1b[2J\u202e\x00"


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def model(names, output="output"):
    weights = np.arange(1.0, len(names) + 1)
    return sl.from_functions(values=lambda a: a @ weights, feature_names=names, outputs=[output])


def explain(names, output="output"):
    return sl.explain(model(names, output), np.zeros(len(names)), method="clime", n_samples=256)


def path(names, output="output"):
    return sl.sigma_path(model(names, output), np.zeros(len(names)), [0.5, 1.0], method="clime", n_samples=256)


def commands(text):
    """Characters that a terminal obeys, that reorder what is read, or that cannot be written."""
    return {each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"}


@pytest.mark.parametrize("made", [explain, path])
def test_no_name_sends_commands_to_a_terminal_or_a_notebook(made):
    found = made(EVIL, OUTPUT)
    console = Console(width=200, record=True, file=StringIO())
    console.print(found)
    for text in (str(found), repr(found), found._repr_html_(), console.export_text()):
        assert not commands(text)
        text.encode()
    assert "�]0;pwned�" in str(explain(EVIL))
    assert "two lines" in str(explain(EVIL))


def test_what_a_file_says_that_it_assumes_is_no_command_either():
    e = explain(["a", "b"])
    told = dataclasses.replace(e.provenance, guarantee="certified", assumes="outputs \x1b[2J in [0, 1]")
    assert "for outputs �[2J in [0, 1]" in str(dataclasses.replace(e, provenance=told))


@pytest.mark.parametrize("made", [explain, path])
def test_pictures_of_any_names_are_well_formed(made, tmp_path):
    axes = np.ravel(made(EVIL, OUTPUT).plot())[0]
    with plt.rc_context({"svg.fonttype": "none"}):  # names as text, not as curves
        axes.figure.savefig(tmp_path / "picture.svg")
    written = "".join(ElementTree.parse(tmp_path / "picture.svg").getroot().itertext())
    assert "�]0;pwned�" in written
    assert "back�wards�" in written
    assert not commands(written)


def test_names_are_kept_and_saved_as_they_are(tmp_path):
    names = tuple(name for name in EVIL if "\ud800" not in name)
    e = explain(names, OUTPUT)
    for file in ("e.json", "e.parquet"):
        e.save(tmp_path / file)
        assert sl.load(tmp_path / file).feature_names == names
        assert sl.load(tmp_path / file).output_name == OUTPUT


@pytest.mark.parametrize(
    ("name", "text"),
    [("age", "age"), ("größe 年齢 é", "größe 年齢 é"), ("می‌خواهم", "می‌خواهم"), ("", "''"), ("\t ", r"'\t '")],
)  # fmt: skip
def test_ordinary_names_stay_and_blank_ones_are_quoted(name, text):
    assert shown(name) == text


def test_blank_names_have_a_label_everywhere():
    e = explain(["", "b"], "")
    assert [each.get_text() for each in e.plot().get_yticklabels()] == ["b = 0", "'' = 0"]
    assert e.plot().get_title("left").startswith("'': f(x)")
    assert "\n  ''       " in str(e)
    assert "<td style='text-align:left'>&#x27;&#x27;</td>" in e._repr_html_()
    assert "''" in {text.get_text() for text in path(["", "b"]).plot()[0].texts}


def test_names_with_a_long_beginning_in_common_stay_apart():
    names = [f"average_transaction_amount_last_12_months_{j}" for j in range(8)]
    labels = [each.get_text() for each in explain(names).plot().get_yticklabels()]
    assert labels[0] == "average_transactio…_last_12_months_7 = 0"
    assert len(set(labels)) == 8
    assert len({text.get_text() for text in path(names).plot(most=8)[0].texts} - {""}) == 8


def test_names_that_look_alike_have_their_position_behind():
    names = [f"share of all payments made in {year} by customers who stayed" for year in (2023, 2024)]
    assert told_apart([*names, "age"], [0, 2, 1], 32) == [
        "share of a…ho stayed (feature 0)", "age", "share of a…ho stayed (feature 1)",
    ]  # fmt: skip
    assert "a b (feature 0)" in str(explain(["a\nb", "a b"]))


@pytest.mark.parametrize("longest", range(3, 12))
def test_shortened_names_are_as_long_as_allowed(longest):
    text = shortened("abcdefghijkl", longest)
    assert len(text) == longest
    assert text.startswith("a")
    assert text.endswith("l")


def test_a_dollar_sign_where_a_name_is_cut_leaves_no_backslash():
    for before in range(12, 22):
        (label,) = explain(["a" * before + "$" + "b" * 40]).plot().get_yticklabels()
        assert label.get_text().replace(r"\$", "").count("\\") == 0
        assert len(label.get_text().replace(r"\$", "$")) == 40

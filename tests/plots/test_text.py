"""Numbers and names in print: what is not known is left out, and no digit or column is lost on the way."""

import dataclasses
from io import StringIO
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from rich.console import Console
from sklearn.tree import DecisionTreeRegressor

import smoothlime as sl
from smoothlime.plots.bars import UNSURE
from smoothlime.plots.contest import COLOURS
from smoothlime.plots.numbers import number

STAIRS = DecisionTreeRegressor().fit([[-1.0, 0.0], [1.0, 0.0]], [0.0, 1.0])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def explain(names, **settings):
    weights = np.arange(1.0, len(names) + 1)
    model = sl.from_functions(values=lambda a: np.sin(a @ weights / weights.sum()), feature_names=names)
    return sl.explain(model, np.zeros(len(names)), **({"method": "clime", "n_samples": 512} | settings))


def in_rich(shown, width):
    console = Console(width=width, file=StringIO())
    console.print(shown)
    return console.file.getvalue()


def test_paths_of_trees_show_no_fidelity_and_no_errors():
    path = sl.sigma_path(STAIRS, [0.0, 0.0], [0.1, 0.5, 1.0])
    for text in (str(path), path._repr_html_(), in_rich(path, 100)):
        assert "+0.797885" in text
        assert "F(x)" in text
        assert "nan" not in text
        assert "fidelity" not in text
        assert "±" not in text


def test_narrow_terminals_break_numbers_but_keep_their_digits():
    path = sl.sigma_path(lambda a: np.sin(a @ [1.0, 2.0, 3.0, 4.0]), np.zeros(4), [0.1, 0.3], method="clime")
    assert "…" not in in_rich(path, 50)
    assert "…" not in in_rich(explain(["a", "b"]), 30)


@pytest.mark.parametrize("name", ["年齢", "나이", "Größe", "e\N{COMBINING ACUTE ACCENT}"])
def test_columns_stay_aligned_beside_letters_of_any_width(name):
    wide = {"年齢": 4, "나이": 4, "Größe": 5, "e\N{COMBINING ACUTE ACCENT}": 1}[name]
    lines = str(explain([name, "b"])).splitlines()
    (line,) = [each for each in lines if name in each]
    (other,) = [each for each in lines if each.startswith("  b ")]
    assert line.index("+") + wide - len(name) == other.index("+")
    path = sl.sigma_path(sl.as_model(lambda a: a @ [1.0, 2.0], feature_names=["b", name]), [0.0, 0.0], [0.1, 1.0])
    head, first = str(path).splitlines()[1:3]
    assert head.index("b", head.index(name) + len(name)) + wide - len(name) == first.rindex("+")


def test_the_table_of_a_path_stays_narrow_beside_long_names():
    names = [f"average_transaction_amount_last_12_months_{j}" for j in range(4)]
    model = sl.as_model(lambda a: a @ [1.0, 2.0, 3.0, 4.0], feature_names=names)
    table = str(sl.sigma_path(model, np.zeros(4), [0.1, 1.0])).splitlines()[1:4]
    assert max(map(len, table)) < 120
    assert "…" in table[0]


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.955336489, 2.6e-11, "+9.55336489000e-01 ± 2.6e-11"),
        (-1.23456789e-5, 3.1e-13, "-1.234567890e-05 ± 3.1e-13"),
        (1.23456789e12, 5.2e5, "+1.23456789e+12 ± 5.2e+05"),
        (0.0, 2e-11, "+0.000e+00 ± 2.0e-11"),
    ],
)  # fmt: skip
def test_values_are_not_rounded_by_more_than_their_error(value, error, text):
    assert number(value, error) == text


def test_what_was_left_out_of_a_fit_is_zero():
    e = explain(["age", "debt"], method=sl.Lime(features=1))
    assert "  age      0 ± 0           0 ± 0  (sign uncertain)" in str(e)


@pytest.mark.parametrize(("n", "told"), [(3, "1 smaller slope not"), (4, "2 smaller slopes not")])
def test_one_slope_that_is_not_shown_is_no_plural(n, told):
    assert told in explain([f"x{j}" for j in range(n)]).plot(most=2).get_xlabel()


def test_pictures_speak_of_errors_where_there_are_any_and_say_when_draws_are_few():
    exact, path = sl.explain(STAIRS, [0.0, 0.0]), sl.sigma_path(STAIRS, [0.0, 0.0], [0.1, 1.0])
    assert exact.plot().get_xlabel().endswith("standard deviation\nexact, no sampling")
    assert path.plot()[1].get_xlabel().endswith("exact, no sampling")
    for n, told in ((64, "95% intervals (indicative)"), (512, "95% intervals")):
        assert explain(["a", "b"], n_samples=n).plot().get_xlabel().endswith(told)
    for n, told in ((64, "95% bands (indicative)"), (512, "95% bands")):
        drawn = sl.sigma_path(lambda a: np.sin(a[:, 0]), [0.1], [0.1, 1.0], n_samples=n)
        assert drawn.plot()[1].get_xlabel().endswith(told)


def test_what_grey_means_is_said_where_there_is_any():
    sure = explain(["a", "b"])
    unsure = dataclasses.replace(sure, standard_error=np.array([[9.0, 0.001]]), groups=None)
    for e, is_said in ((sure, False), (unsure, True)):
        assert ("grey: sign uncertain" in e.plot().get_xlabel()) == is_said
        assert ("grey: sign uncertain" in e._repr_html_()) == is_said
        assert ("dim: sign uncertain" in in_rich(e, 100)) == is_said


def test_bars_whose_error_is_unknown_are_grey():
    e = dataclasses.replace(explain(["a", "b"]), standard_error=np.full((1, 2), np.nan), groups=None)
    assert {to_hex(bar.get_facecolor()) for bar in e.plot().patches} == {UNSURE}
    assert str(e).count("sign uncertain") == 2


@pytest.mark.parametrize("ends", [(1e-6, 1e6), (1e-5, 1e-1), (1e-5, 2.9e-2), (1e-12, 1e12), (0.02, 3)])
def test_labels_along_sigma_do_not_touch(ends):
    _, axes = sl.sigma_path(lambda a: np.sin(a[:, 0]), [0.1], np.geomspace(*ends, 5), method="clime").plot()
    axes.figure.canvas.draw()
    low, high = axes.get_xlim()
    ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    boxes = [label.get_window_extent() for tick, label in ticks if low <= tick <= high]
    assert len(boxes) > 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_features_of_a_path_that_are_named_twice_are_drawn_once():
    path = sl.sigma_path(lambda a: np.sin(a @ [1.0, 2.0, 3.0]), np.zeros(3), [0.1, 1.0])
    slopes, below = path.plot(["x0", 0, "x0", "x1"])
    assert [text.get_text() for text in slopes.texts if text.get_text()] == ["x0", "x1"]
    assert "1 other slope not shown" in below.get_xlabel()


def test_what_is_no_feature_and_no_axes_is_told():
    path = sl.sigma_path(lambda a: np.sin(a[:, 0]), [0.1], [0.1, 1.0])
    with pytest.raises(sl.errors.WrongType, match=r"features must be names or positions, or a list of them; got 1\.5"):
        path.plot(1.5)
    with pytest.raises(sl.errors.InvalidArgument, match=r"ax must be two Axes"):
        path.plot(ax=["slopes", "fidelity"])


def test_methods_that_always_take_part_are_drawn_in_colours_that_white_does_not_hide():
    for method in ("smoothgrad", "both", "clime", "curves", "differences"):
        red, green, blue = (int(COLOURS[method][i : i + 2], 16) / 255 for i in (1, 3, 5))
        assert 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 < 0.5

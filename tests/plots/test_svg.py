"""Inline SVG: well-formed, escaped, and as long as the numbers say."""

import dataclasses
import re
from xml.etree import ElementTree

import numpy as np
import pandas
import pytest

import smoothlime as sl
from smoothlime.plots.chart import Bar, Chart, of_row, value_word
from smoothlime.plots.style import LOWERS, RAISES, UNSURE
from smoothlime.plots.svg import bars_svg, chart_svg, nice_ticks

SVG = "{http://www.w3.org/2000/svg}"


def explain(names=("age", "debt", "noise"), **settings):
    weights = np.array([2.0, -1.0, 0.0])[: len(names)]
    model = sl.from_functions(values=lambda a: np.tanh(a @ weights), feature_names=names)
    asked = {"method": "clime", "n_samples": 512, "sigma": 0.5} | settings
    return sl.explain(model, np.array([[0.1, 0.2, 0.3], [0.0, 0.1, 47.0]])[:, : len(names)], **asked)


def parts(picture):
    """Groups of bars, ticks with their places, and all text of a picture."""
    root = ElementTree.fromstring(picture)
    texts = root.findall(f"{SVG}text")
    ticks = {float(each.text): float(each.get("x")) for each in texts if re.fullmatch(r"-?[\d.]+(e-?\d+)?", each.text)}
    return root, root.findall(f"{SVG}g"), ticks, [each.text for each in texts]


def test_bars_and_intervals_are_as_long_as_the_numbers():
    e = explain()
    _, groups, ticks, _ = parts(bars_svg(e, 1, confidence=0.9))
    zero, unit = ticks[0.0], (ticks[0.0] - ticks[min(ticks)]) / -min(ticks)
    chosen = np.argsort(-np.abs(e.standardised[1]))
    lower, upper = (end[1] * e.std for end in e.interval(0.9))
    for group, j in zip(groups, chosen, strict=True):
        bar, whisker = group.find(f"{SVG}rect"), group.find(f"{SVG}path").get("d")
        assert float(bar.get("width")) == pytest.approx(abs(e.standardised[1, j]) * unit, abs=0.02)
        begin, end = map(float, re.match(r"M([\d.]+) [\d.]+H([\d.]+)", whisker).groups())
        np.testing.assert_allclose([begin, end], zero + unit * np.array([lower[j], upper[j]]), atol=0.02)
        is_sure = lower[j] > 0 or upper[j] < 0
        assert bar.get("fill") == (UNSURE if not is_sure else RAISES if e.values[1, j] > 0 else LOWERS)


def test_names_stand_with_their_values_and_numbers_behind():
    e = explain()
    chart = of_row(e, 1)
    assert chart.title.startswith("output, row 1 of 2: f(x) = -0.09967, smoothed ")
    assert {bar.label for bar in chart.bars} == {"age = 0", "debt = 0.1", "noise = 47"}
    assert of_row(e[0]).title.startswith("output: f(x)")  # alone, its place is not known
    texts = parts(bars_svg(e, 1))[3]
    assert all(bar.label in texts and bar.text in texts for bar in chart.bars)
    assert [each for each in texts if "=" in each] == [bar.label for bar in chart.bars]
    short = chart_svg(Chart("t", (Bar("a", 1.0, 0.5, 1.5, is_sure=True, text="b"),), "x"))
    assert {"a", "b", "x"} <= set(parts(short)[3])
    assert "grey: sign uncertain" in chart.notes
    assert of_row(e, -1) == of_row(e, 1)
    with pytest.raises(IndexError, match="row 2 is out of range"):
        of_row(e, 2)


def test_steps_on_scales_are_told_in_words():
    rows = np.random.default_rng(0).exponential(size=(200, 2))
    e = sl.explain(lambda a: a @ [1.0, 2.0], rows[:1], background=rows, scale="ranks", sigma=0.3, n_samples=256)
    down, up = e.step_ends
    for bar in of_row(e).bars:
        j = e.feature_names.index(bar.name)
        assert bar.label == f"{bar.name} = {rows[0, j]:.4g} ({down[0, j]:.3g} → {up[0, j]:.3g})"


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "a&b", "\"'><", "$x_1$", "nul\x00 \x1b[2J\ud800", "年齢" * 40, "w" * 300, ""]
)
def test_any_name_is_text(name):
    e = explain((name, "b"))
    e = dataclasses.replace(e, row_outputs=(name, name))
    picture = bars_svg(e)
    root, _, _, texts = parts(picture)
    assert {each.tag for each in root.iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "g", "title", "rect", "path", "text")
    }
    assert "<script" not in picture
    assert max(map(len, texts)) < 100
    picture.encode()


def test_switches_are_hollow_and_below():
    table = pandas.DataFrame({"x": np.linspace(-1, 1, 60), "colour": ["red", "green", "blue"] * 20})

    def model(t):
        return np.sin(t["x"].to_numpy(float)) + 2.0 * (t["colour"] == "red").to_numpy(float)

    e = sl.explain(model, table.iloc[:1], background=table, n_samples=256)
    chart = of_row(e)
    assert [bar.is_hollow for bar in chart.bars] == [False, True]
    assert chart.bars[1].label.startswith("colour: red → ")
    assert chart.bars[1].value == pytest.approx(-2.0)
    assert "hollow" in chart.axis
    first, second = (group.find(f"{SVG}rect") for group in parts(bars_svg(e))[1])
    assert second.get("fill") == "none"
    assert float(second.get("y")) > float(first.get("y"))


@pytest.mark.parametrize("error", [np.inf, np.nan, 0.0])
@pytest.mark.parametrize("slope", [0.0, 1e-300, 3.0, 1e300])
def test_errors_of_any_size_are_drawn(error, slope):
    e = explain()
    e = dataclasses.replace(e, values=np.full((2, 3), slope), standard_error=np.full((2, 3), error), groups=None)
    picture = bars_svg(e)
    _, groups, _, _ = parts(picture)
    assert len(groups) == 3
    assert "nan" not in re.sub(r">[^<]*<", "", picture)
    has_whisker = [group.find(f"{SVG}path") is not None for group in groups]
    assert has_whisker == [error == np.inf] * 3
    if error == np.inf:  # no end is drawn where there is none
        assert "V" not in groups[0].find(f"{SVG}path").get("d")


def test_many_features_show_the_largest_and_say_how_many_are_left_out():
    model = sl.from_functions(values=lambda a: a @ np.arange(200.0), feature_names=[f"f{j}" for j in range(200)])
    chart = of_row(sl.explain(model, np.zeros(200), n_samples=1_024, method="clime"), most=5)
    assert [bar.name for bar in chart.bars] == ["f199", "f198", "f197", "f196", "f195"]
    assert "195 smaller slopes not shown" in chart.notes


def test_nothing_to_draw_is_an_empty_axis():
    root, groups, ticks, _ = parts(chart_svg(Chart("nothing", (), "axis")))
    assert groups == []
    assert list(ticks) == [-1.0, 0.0, 1.0]
    assert root.get("aria-label") == "nothing"
    one = Bar("a", float("nan"), float("nan"), float("nan"), is_sure=False, text="?")
    assert len(parts(chart_svg(Chart("unknown", (one,), "axis")))[1]) == 1


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.3, 0.1), (-1e-9, 2e-9), (0, 1e300), (-7.0, 7.0)])
def test_ticks_are_round_and_within(ends):
    ticks = nice_ticks(*ends)
    assert 2 <= len(ticks) <= 6
    assert ends[0] * (1 + 1e-9) <= min(ticks) <= max(ticks) <= ends[1] * (1 + 1e-9)
    assert all(float(f"{each:.3g}") == each for each in ticks)


def test_values_are_short():
    words = [value_word(each) for each in (47.0, 0.1 + 0.2, 2019.0, 1234567.0, 1e9, -0.00001234, np.nan, np.inf)]
    assert words == ["47", "0.3", "2019", "1234567", "1e+09", "-1.234e-05", "", ""]

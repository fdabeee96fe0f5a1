"""Results in notebooks: well-formed, escaped, without scripts, and with the numbers of the result."""

import re
import sys
import types
from xml.etree import ElementTree

import numpy as np
import pandas
import pytest

import smoothlime as sl
from smoothlime._core import progress

NAMES = ("<script>alert(1)</script>", "a&b \x1b[2J", "年齢 \"'>")
TAGS = {
    "div", "p", "b", "br", "small", "table", "thead", "tbody", "tr", "th", "td", "details", "summary",
    "svg", "g", "title", "rect", "path", "text",
}  # fmt: skip
WEIGHTS = np.array([2.0, -1.0, 0.0])
X = np.array([[0.1, 0.2, 0.3], [0.0, 0.1, 4.0]])


def model(weights=WEIGHTS):
    return sl.from_functions(values=lambda a: np.tanh(a @ weights), feature_names=NAMES, outputs=["<b>p</b>"])


def explanation():
    return sl.explain(model(), X, sigma=0.5, method="clime", n_samples=512)


def switched():
    table = pandas.DataFrame({NAMES[0]: np.linspace(-1, 1, 60), "<i>": ["<b>", "&", "c"] * 20})

    def ask(t):
        return np.sin(t[NAMES[0]].to_numpy(float)) + (t["<i>"] == "&").to_numpy(float)

    return sl.explain(ask, table.iloc[:2], background=table, n_samples=256)


RESULTS = {
    "explanation": explanation,
    "switched": switched,
    "switches": lambda: switched().switches,
    "contributions": lambda: sl.contributions(model(), X, baseline=np.zeros(3), sigma=0.5, n_samples=256),
    "effects": lambda: explanation().effects(),
    "groups": lambda: explanation().effects(by=["<a>", "$b"]),
    "comparison": lambda: sl.compare(model(), model(np.array([2.0, 1.0, 0.0])), X, sigma=0.5, n_samples=1_024),
    "interactions": lambda: sl.interactions(model(), X, sigma=0.5, n_samples=1_024),
    "path": lambda: sl.sigma_path(model(), X[0], [0.5, 1.0], n_samples=64, method="clime"),
}


def cells(html):
    """Tables as lists of lines of text."""
    root = ElementTree.fromstring(html)
    return [[[cell.text or "" for cell in line] for line in table.iter("tr")] for table in root.iter("table")]


def widths(html):
    """Bars of all pictures, by the text of their tooltip."""
    svg = "{http://www.w3.org/2000/svg}"
    groups = ElementTree.fromstring(html).iter(f"{svg}g")
    return {group.find(f"{svg}title").text: float(group.find(f"{svg}rect").get("width")) for group in groups}


@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_is_well_formed_escaped_and_without_scripts(kind):
    html = RESULTS[kind]()._repr_html_()
    root = ElementTree.fromstring(html)
    assert {each.tag.rpartition("}")[2] for each in root.iter()} <= TAGS
    assert not any(name.startswith("on") for each in root.iter() for name in each.attrib)
    assert "\x1b" not in html
    assert len(html) < 40_000
    if kind != "path":
        assert "currentColor" in html  # read on light and on dark pages


def test_the_table_of_an_explanation_has_its_numbers():
    e = explanation()
    html = e._repr_html_()
    first, second = cells(html)
    assert first[0] == ["feature", "slope per unit", "per neighbourhood std"]
    order = np.argsort(-np.abs(e.standardised[1]))
    half = e.half_width(0.05)[1]
    for line, j in zip(second[1:], order, strict=True):
        value, error = map(float, line[1].split(" ± "))
        assert value == pytest.approx(e.values[1, j], abs=half[j] / 10 + 1e-12)
        assert error == pytest.approx(half[j], rel=0.1)
    bars = [width for name, width in widths(html).items() if name.startswith("<script>")]
    assert len(bars) == 2  # a picture for each row
    assert "<details><summary>row 1: slopes of &#x27;&lt;b&gt;p&lt;/b&gt;&#x27;" in html


def test_bars_of_contributions_are_their_numbers_and_the_gaps_stand_in_the_table():
    c = RESULTS["contributions"]()
    html = c._repr_html_()
    drawn = np.array(list(widths(html).values()))
    shown = [j for j in np.argsort(-np.abs(c.values[0])) if c.values[0, j] != 0]
    np.testing.assert_allclose(drawn / drawn[0], np.abs(c.values[0, shown] / c.values[0, shown[0]]), atol=0.001)
    (table,) = cells(html)
    told = {line[0]: float(line[1].split(" ± ")[0]) for line in table[1:]}
    assert told["base F(b)"] == pytest.approx(c.base[0], abs=1e-3)
    assert told["total F(x)"] == pytest.approx(c.total[0], rel=1e-3)
    assert told["f(x) − F(x)"] == pytest.approx(c.prediction[0] - c.total[0], rel=1e-3)
    assert "residual" in told


def test_effects_and_their_groups_have_a_picture_each():
    found = RESULTS["groups"]()
    html = found._repr_html_()
    assert html.count("<svg") == 3
    assert "over 1 row, &lt;a&gt;</summary>" in html
    whole = cells(html)[0]
    order = found.order()
    assert [float(line[2]) for line in whole[1:]] == pytest.approx(found.absolute[order], rel=1e-3)
    assert [line[3] for line in whole[1:]] == [f"{found.positive[j]:.0%}" for j in order]


def test_comparisons_name_their_verdict_and_each_row():
    found = RESULTS["comparison"]()
    html = found._repr_html_()
    assert "<b>Changed around 2 of 2 rows" in html
    (table,) = cells(html)
    for line in table[1:]:
        row = int(line[0].split()[1])
        assert line[1] == "changed"
        assert float(line[2]) == pytest.approx(found.size[row], rel=0.01)
        assert float(line[3]) == pytest.approx(found.allowed[row], rel=0.01)


def test_interactions_have_the_largest_pairs():
    found = RESULTS["interactions"]()
    html = found._repr_html_()
    pair = found.top(1)[0]
    first = cells(html)[0][1]
    assert first[0] == " × ".join(pair.features).replace("\x1b", "�")
    assert float(first[2].split(" ± ")[0]) == pytest.approx(pair.standardised, rel=0.05)
    assert len(widths(html)) >= len(found.top(5))


def test_switches_are_listed_by_size():
    found = RESULTS["switches"]()
    first = cells(found._repr_html_())[0]
    assert first[1][0] == "<i>: <b> → &"
    assert float(first[1][1].split(" ± ")[0]) == pytest.approx(1.0, abs=1e-6)
    assert "effect on the output" in cells(switched()._repr_html_())[1][0]


class TestProgress:
    """tqdm.auto, which makes widgets, only where a notebook runs."""

    @pytest.fixture(autouse=True)
    def soon(self, monkeypatch):
        monkeypatch.setattr(progress, "SHOW_AFTER", -1.0)

    def run(self):
        with progress.Progress("auto", 10) as watch:
            watch.advance(1)
            watch.expect(24)
            watch.advance(24)

    def test_a_notebook_has_a_widget_whose_end_follows_the_forecast(self, monkeypatch):
        from tqdm import tqdm

        made = []

        class Widget(tqdm):
            def __init__(self, **settings):
                super().__init__(**settings | {"disable": False})
                self.container = types.SimpleNamespace(children=(None, types.SimpleNamespace(max=self.total), None))
                made.append(self)

        monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
        auto = types.ModuleType("tqdm.auto")
        auto.tqdm = Widget
        monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
        self.run()
        (bar,) = made
        assert bar.container.children[1].max == bar.total == bar.n == 25

    def test_where_widgets_are_missing_a_bar_of_text_does(self, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
        self.run()
        assert re.search(r"25(\.0)?/25", capsys.readouterr().err)

    def test_elsewhere_tqdm_auto_is_not_loaded(self, monkeypatch, capsys):
        monkeypatch.delitem(sys.modules, "tqdm.auto", raising=False)
        with progress.Progress(True, 10) as watch:
            watch.advance(10)
        assert "tqdm.auto" not in sys.modules
        assert "10.0" in capsys.readouterr().err

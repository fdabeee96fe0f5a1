"""The report in a browser: it shows what the explanation says, for any row, and nothing in it becomes code."""

from pathlib import Path

import numpy as np
import pytest

from smoothlime.plots.chart import of_row, value_word
from smoothlime.plots.numbers import number
from smoothlime.plots.text import row_lines
from smoothlime.report.page import Part, report

from . import samples


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Explanations by name, and the addresses of their reports, made once each."""
    folder, made = tmp_path_factory.mktemp("reports"), {}

    def write(kind, **settings):
        if kind not in made:
            e = kind()
            path = folder / f"{kind.__name__}.html"
            e.to_html(path, **settings)
            made[kind] = e, path.as_uri()
        return made[kind]

    return write


def texts(page, selector):
    return [each.strip() for each in page.locator(selector).all_text_contents()]


def bars(page):
    """Labels and numbers of the bars that are drawn."""
    drawn = page.locator('[data-part="chart"] g.bar')
    return [tuple(each.locator("text").all_text_contents()) for each in drawn.all()]


def pick(page, row):
    page.locator('[data-part="picker"]').select_option(str(row))


@pytest.mark.parametrize("kind", samples.KINDS, ids=lambda kind: kind.__name__)
def test_the_numbers_shown_are_those_of_the_explanation(visit, written, kind):
    e, address = written(kind)
    page = visit(address)
    for row in sorted({0, len(e) // 2, len(e) - 1}):
        if len(e) > 1:
            pick(page, row)
        expected = [(bar.label, bar.text, bar.is_sure, bar.is_hollow) for bar in of_row(e, row).bars]
        drawn = page.locator('[data-part="chart"] g.bar').all()
        kinds = [each.get_attribute("class") for each in drawn]
        shown = [
            (*labels, "unsure" not in kind, "hollow" in kind) for labels, kind in zip(bars(page), kinds, strict=True)
        ]
        assert shown == expected
        lines = texts(page, '[data-part="features"] tbody tr')
        for line, told in zip(row_lines(e, row, most=200), lines, strict=True):
            assert told.startswith(line.feature)
            assert line.slope in told
            assert line.standardised in told
            assert line.step in told
        assert page.locator('[data-part="title"]').text_content() == of_row(e, row).title.replace(f" of {len(e)}:", ":")


def test_bars_have_the_lengths_of_their_numbers_and_whiskers_hold_their_ends(visit, written):
    e, address = written(samples.with_switches)
    page = visit(address)
    drawn = page.locator('[data-part="chart"] g.bar:not(.hollow)')
    wide = [float(each.get_attribute("width")) for each in drawn.locator("rect").all()]
    chart = [bar for bar in of_row(e, 0).bars if not bar.is_hollow]
    size = np.abs([bar.value for bar in chart])
    scale = wide[0] / size[0]
    np.testing.assert_allclose(wide, np.maximum(scale * size, 0.5), atol=0.02)
    ends = [each.get_attribute("d") for each in drawn.locator("path.whisker").all()]
    reach = [float(d.split("H")[1].split("M")[0]) - float(d[1:].split()[0]) for d in ends]
    np.testing.assert_allclose(reach, [scale * (bar.upper - bar.lower) for bar in chart], atol=0.05)


def test_numbers_are_written_as_in_python(visit, written):
    page = visit(written(samples.one_row)[1])
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.uniform(-12, 12, (600, 2)) * rng.choice([-1, 1], (600, 2))
    pairs = [(float(value), abs(float(error))) for value, error in sizes]
    pairs += [(0.0, 0.0), (0.0, 0.1), (5.0, 0.0), (1.0, 1e-14), (-0.004, 0.1), (2.5, 1e9), (-1e-20, 1e-3), (1e5, 3e4)]
    pairs += [(k / 8, error) for k in range(-20, 20) for error in (0.25, 30.0, 3.0, 0.5)]  # half-way between two
    assert page.evaluate("pairs => pairs.map(([v, e]) => Bars.number(v, e))", pairs) == [
        number(*each) for each in pairs
    ]
    values = [value for value, _ in pairs] + [1e-5, 123456.0, 1e7, 0.5]
    for digits in (1, 4, 6):
        shown = page.evaluate("([values, n]) => values.map((v) => Bars.general(v, n))", [values, digits])
        assert shown == [f"{value:.{digits}g}" for value in values]


def test_search_and_buttons_pick_rows_and_change_the_picture(visit, written):
    e, address = written(samples.with_switches)
    page = visit(address)
    first = bars(page)
    page.get_by_role("button", name="Next →").first.click()
    assert page.locator('[data-part="picker"]').input_value() == "1"
    assert bars(page) != first
    page.get_by_role("button", name="← Previous").first.click()
    assert bars(page) == first
    own = [e.switches.own_level(row, 0) for row in range(len(e))]
    wanted = next(level for level in own if level != own[0])
    page.get_by_label("Search").fill(wanted)
    assert page.locator('[data-part="picker"]').input_value() == str(own.index(wanted))
    assert page.locator('[data-part="found"]').text_content() == f"{own.count(wanted)} of {len(e)} rows"
    assert page.locator('[data-part="picker"] option').count() == own.count(wanted)
    assert bars(page) != first
    page.get_by_label("Search").fill("no such row")
    assert page.locator('[data-part="found"]').text_content() == "No row matches"
    page.get_by_label("Search").fill("")
    assert page.locator('[data-part="picker"] option').count() == len(e)


def test_tables_are_sorted_by_any_column_and_lead_to_rows(visit, written):
    e, address = written(samples.with_switches)
    page = visit(address)
    table = page.locator('[data-part="rows"]')
    assert table.locator("tbody tr").count() == 25
    table.get_by_role("button", name="f(x)").click()
    assert table.locator("th[data-key=prediction]").get_attribute("aria-sort") == "descending"
    highest = int(np.argmax(e.prediction))
    assert texts(page, '[data-part="rows"] tbody th')[0] == str(highest)
    table.locator("tbody button").first.click()
    assert page.locator('[data-part="picker"]').input_value() == str(highest)
    table.get_by_role("button", name="f(x)").click()
    assert texts(page, '[data-part="rows"] tbody th')[0] == str(int(np.argmin(e.prediction)))
    page.locator('[data-part="page-after"]').click()
    assert table.locator("tbody tr").count() == len(e) - 25
    page.locator('[data-part="features"]').get_by_role("button", name="Feature").click()
    names = texts(page, '[data-part="features"] tbody th')
    assert names == sorted(names)
    assert len(names) == 4


def test_all_of_it_is_reached_by_keyboard(visit, written):
    page = visit(written(samples.with_switches)[1])
    first = bars(page)
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.part") == "search":
            break
    page.keyboard.type("home")
    changed = bars(page)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert bars(page) not in (first, changed)


def test_without_scripts_there_are_tables_and_pictures(visit, written):
    e, address = written(samples.with_switches)
    page = visit(address, java_script_enabled=False)
    shown = page.locator("main").text_content()
    assert page.locator("svg").count() == 2  # the first row, and the mean slopes
    for line in row_lines(e, 0):
        assert line.slope in shown
    assert page.locator('[data-part="rows"] tbody tr').count() == len(e)
    assert page.locator('[data-part="search"]').is_hidden()


def test_names_that_look_like_markup_stay_text(visit, written):
    keys = [f"row {each}" for each in samples.HOSTILE[:3]]
    _, address = written(samples.hostile, keys=keys, title=f"About {samples.HOSTILE[1]}")
    for scripts in (True, False):
        page = visit(address, java_script_enabled=scripts)
        assert page.title() == f"About {samples.HOSTILE[1]}"
        assert page.locator("script").count() == 4
        assert page.locator("img").count() == 0
        assert texts(page, '[data-part="rows"] tbody th')[:3] == keys
        names = texts(page, '[data-part="features"] tbody th')
        assert names[1] == samples.HOSTILE[3]
        assert set(names) >= set(samples.HOSTILE[:4])
        assert samples.HOSTILE[0] in page.locator('[data-part="title"]').text_content()
    page = visit(address)
    assert page.evaluate("window.broken") is None
    page.get_by_label("Search").fill("onerror")
    assert page.locator('[data-part="picker"]').input_value() == "2"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", [samples.with_switches, samples.hostile], ids=lambda kind: kind.__name__)
def test_axe_finds_no_serious_fault(visit, written, serious_faults, scheme, kind):
    page = visit(written(kind)[1], color_scheme=scheme)
    assert serious_faults(page) == []


@pytest.mark.parametrize("kind", [samples.with_switches, samples.hostile, samples.on_scales], ids=lambda k: k.__name__)
def test_a_narrow_page_scrolls_down_only_and_its_bars_keep_their_size(visit, written, kind):
    page = visit(written(kind)[1], viewport={"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    drawn = page.locator('[data-part="chart"] svg')
    before = drawn.bounding_box()["width"]
    page.set_viewport_size({"width": 1000, "height": 700})
    page.wait_for_function("wide => document.querySelector('svg.bars').clientWidth > wide + 100", arg=before)


def test_print_has_pictures_and_tables_but_no_controls(visit, written):
    page = visit(written(samples.with_switches)[1])
    page.emulate_media(media="print")
    assert page.locator('[data-part="search"]').is_hidden()
    assert page.locator('[data-part="chart"] svg').is_visible()
    assert page.pdf()[:4] == b"%PDF"


def test_several_explanations_stand_in_one_page_each_with_its_own_rows(visit, tmp_path):
    parts = [Part(samples.one_row(), "one.json", "ab" * 32), Part(samples.exact(), "<b>.json", "cd" * 32)]
    report(parts, tmp_path / "both.html")
    page = visit((tmp_path / "both.html").as_uri())
    assert page.locator("section").count() == 2
    assert texts(page, "nav a")[1].endswith("<b>.json")
    assert "cd" * 32 in page.locator("section").nth(1).text_content()
    section = page.locator("section").nth(1)
    before = section.locator("svg.bars").first.get_attribute("aria-label")
    section.locator('[data-part="after"]').click()
    assert section.locator("svg.bars").first.get_attribute("aria-label") != before


def test_a_thousand_rows_of_fifty_features_open_from_less_than_5_mb(visit, written):
    e, address = written(samples.large)
    page = visit(address)
    assert page.locator('[data-part="rows"] tbody tr').count() == 25
    pick(page, 999)
    labels = [label for label, _ in bars(page)]
    assert labels == [bar.label for bar in of_row(e, 999).bars]
    assert Path(address.removeprefix("file://")).stat().st_size < 5_000_000


@pytest.mark.parametrize("kind", [samples.with_gaps, samples.on_scales], ids=["linear", "scales"])
def test_the_sentence_says_where_one_step_up_leads(visit, written, kind):
    e, address = written(kind)
    page = visit(address)
    for row in range(len(e)):
        pick(page, row)
        j = int(np.nanargmax(np.abs(e.standardised[row])))
        up = e.x[row, j] + e.std[j] if e.row_scales is None else e.step_ends[1][row, j]
        told = page.locator('[data-part="sentence"]').text_content()
        if e.feature_names[j] == "income" and e.row_scales is not None:
            assert up == pytest.approx(e.x[row, j] * np.exp(e.std[j]))  # a step of the logarithm
        assert f"one step up in {e.feature_names[j]}, from {value_word(e.x[row, j])} to {value_word(up)}, " in told

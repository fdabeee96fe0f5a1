"""The page of the paper: what it says, that nothing in the data can break out of it, and that it is written whole."""

import json
import math
import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from smoothlime.errors import InvalidArgument
from smoothlime.paper import page, report
from smoothlime.paper.errata import ERRATA

DRAWS = [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000]


def curve(label, role, start, *, floor=0.0, dashed=False):
    """One that falls like the square root of the draws, with a band."""
    y = [start * math.sqrt(10 / n) + floor for n in DRAWS]
    return {"label": label, "x": DRAWS, "y": y, "low": [0.8 * v for v in y], "high": [1.25 * v for v in y],
            "role": role, "dashed": dashed}  # fmt: skip


def curves(title, lines, marks=()):
    return {"kind": "curves", "title": title, "x_label": "perturbations", "y_label": "mean L1 distance",
            "x_scale": "log", "y_scale": "log", "curves": lines, "marks": list(marks)}  # fmt: skip


def field():
    rng = np.random.default_rng(0)
    grid = np.linspace(-4, 4, 60)
    z = 1 / (1 + np.exp(-2 * (grid[None, :] + grid[:, None])))
    points = [
        {"x": list(rng.normal(c, 1, 80)), "y": list(rng.normal(c, 1, 80)), "label": f"class {k}"}
        for k, c in enumerate((-1, 1))
    ]
    return {"kind": "field", "title": "Simulated", "x_label": "x₁", "y_label": "x₂", "x": grid, "y": grid,
            "z": z, "points": points, "level": 0.5}  # fmt: skip


def bars(scale="linear"):
    series = [
        {"label": "SmoothGrad", "values": [0.9, 0.5, None], "low": [0.8, 0.4, None], "high": [1, 0.6, None],
         "role": "smoothgrad"},
        {"label": "C-LIME", "values": [0.7, 0.4, 0.2], "low": None, "high": None, "role": "clime"},
    ]  # fmt: skip
    return {"kind": "bars", "title": "Error at equal calls", "y_label": "L2 error", "series": series,
            "groups": ["simulated", "bankruptcy", "shopping"], "y_scale": scale}  # fmt: skip


def heatmap():
    return {"kind": "heatmap", "title": "Rank correlation", "rows": ["SmoothGrad", "C-LIME", "LIME package"],
            "columns": ["SmoothGrad", "C-LIME", "LIME package"],
            "values": [[1, 0.99, 0.4], [0.99, 1, None], [0.4, None, 1]],
            "label": "correlation", "low": 0.0, "high": 1.0}  # fmt: skip


def robustness(name):
    return curves(
        name,
        [
            curve("SmoothGrad", "smoothgrad", 0.4, floor=0.03),
            curve("C-LIME", "clime", 0.9, floor=0.03),
            curve("SmoothGrad, shared draws", "smoothgrad", 0.01, floor=0.03, dashed=True),
            curve("C-LIME, shared draws", "clime", 0.03, floor=0.03, dashed=True),
            {"label": "limit", "x": [10, 100_000], "y": [0.03] * 2, "low": None, "high": None, "role": "truth"},
        ],
    )  # fmt: skip


def ablation(title):
    return curves(title, [curve(f"σ² = {v:g}", role, v**0.5) for v, role in ((0.01, "a"), (0.1, "b"), (1, "c"))])


CLAIMS = [
    ("equivalence", "Section 6.2", "The distance between SmoothGrad and C-LIME falls with perturbations.",
     "slope of log distance against log draws", "−0.50 ± 0.01", "holds", "The interval excludes zero everywhere."),
    ("hundred", "Section 6.2", "Equivalence is reached at 100 perturbations.",
     "L1 distance as a share of the explanation at n = 100", "3%, 48%, 41%", "holds in part", "In the plane only."),
    ("faster", "Section 6.4", "Smaller σ² converges faster.", "ratio", "3.1 ± 0.2", "holds", "Ratio above 1."),
    ("zero", "Section 6.3", "The average maximum distance approaches zero.", "limit of the curve", "0.030 ± 0.001",
     "does not hold", "Two different points have different explanations in the limit."),
    ("best", "Section 6.1", "The shopping model reaches 99.8%.", "test accuracy", "", "cannot be tested", "No data."),
]  # fmt: skip


def fake_results():
    """What a run might hand over; the numbers are made up."""

    def figure(title, paper, *panels):
        caption = f"{title}, as measured here. Bands are 95% intervals over rows."
        return {"title": title, "caption": caption, "paper": paper, "panels": list(panels)}

    datasets = (("Simulated", "simulated", 0.3), ("Bankruptcy", "bankruptcy", 1.1), ("Shopping", "shopping", 0.8))
    names = ("Equivalence", "Robustness of SmoothGrad", "Robustness of C-LIME")
    marks = [{"x": 100, "label": "100: the paper's claim"}, {"x": 150, "label": "ours"}, {"x": None, "label": "gone"}]
    keys = ("dataset", "source", "model", "epochs", "accuracy", "balanced_accuracy", "auc", "majority", "paper",
            "bayes", "note")  # fmt: skip
    accuracy = [
        ("simulated", "simulated", "good", 15, 0.92, 0.92, 0.97, 0.5, 0.995, 0.92135, ""),
        ("bankruptcy", "uci", "good", 60, 0.953, 0.5, 0.71, 0.953, 0.963, None, "names one class only"),
        ("bankruptcy", "uci", "weak", 16, 0.953, 0.5, float("nan"), 0.953, 0.86, None, ""),
        ("shopping", "stand-in", "good", 100, 0.88, 0.74, 0.88, 0.845, 0.998, None, ""),
    ]
    return {
        "figures": {
            "figure1": figure("Decision boundary", "Figure 1", field()),
            "figure2": figure("Equivalence", "Figure 2", curves("All data", [curve(*one) for one in datasets], marks)),
            "figure3": figure("Robustness", "Figure 3", *(robustness(name) for name, *_ in datasets)),
            "figure4-bankruptcy": figure("Sensitivity to σ²", "Figure 4", *map(ablation, names)),
            "peers": figure("Other libraries", "beyond the paper", bars(), bars("log"), heatmap(), field()),
        },
        "claims": [
            dict(zip(("id", "where", "claim", "test", "number", "verdict", "reason"), claim, strict=True))
            for claim in CLAIMS
        ],
        "accuracy": [dict(zip(keys, row, strict=True)) for row in accuracy],
        "run": {
            "seed": 0,
            "scale": "quick",
            "versions": {"smoothlime": "0.1", "numpy": "2.3"},
            "seconds": 93.4,
            "steps": {"figure2": 12.3, "figure3": 70.0},
            "stand_ins": ["shopping"],
            "started": "2026-01-02T03:04:05+00:00",
            "rows": {"equivalence": {"simulated": 200, "bankruptcy": 100}, "robustness": {"simulated": 50}},
            "cpu": "2 cores",
        },
    }


EMPTY = {"meta", "br", "hr", "img", "input", "link"}
HOSTILE = "<script>alert(1)</script> \" onload='x' \n<svg/onload=alert(2)> --> ]]> &amp; 🍋 $x^2$ _\x00\ud800 {0} %s"


class Page(HTMLParser):
    """Tags in order, their attributes, and the text; fails where a tag is closed that is not the last one opened."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.words, self.text = [], [], [], {}
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return report.write(fake_results(), folder).parent


@pytest.fixture(scope="module")
def shown(written):
    return Page((written / "index.html").read_text(encoding="utf-8"))


def hostile(value):
    """The same with every text made hostile, but for the words that choose a path through the code."""
    kept = {"kind", "verdict", "role", "x_scale", "y_scale", "scale", "source", "model"}
    if isinstance(value, dict):
        return {key: one if key in kept else hostile(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [hostile(one) for one in value]
    return f"{value} {HOSTILE}" if isinstance(value, str) else value


def small(**changes):
    """Results with one small figure: quick to draw."""
    made = fake_results()
    made["figures"] = {"figure2": made["figures"]["figure2"]}
    return made | changes


def test_the_summary_counts_the_verdicts(shown):
    lead = " ".join(shown.text["p"])
    assert "put 5 claims to the test: 2 hold, 1 holds in part, 1 does not hold and 1 cannot be tested." in lead


def test_every_claim_shows_its_verdict_in_words_its_number_and_its_reason(shown):
    everything = " ".join(shown.words)
    for _, where, claim, test, number, verdict, reason in CLAIMS:
        for said in (where, claim, test, number, verdict, reason):
            assert said in everything
    pills = [one["class"] for one in shown.all("span") if one.get("class", "").startswith("pill")]
    assert pills == ["pill holds", "pill part", "pill holds", "pill fails", "pill none"]


def test_accuracies_stand_beside_majority_bayes_and_paper(shown):
    cells = shown.text["td"]
    for number in ("92.0%", "50.0%", "92.1%", "99.5%", "95.3%", "96.3%", "86.0%", "0.970"):
        assert number in cells
    assert "the paper's number is above the best that any classifier can reach" in cells
    assert "names one class only; no better than always naming the larger class" in cells


@pytest.mark.parametrize(
    ("stand_ins", "source", "scale", "expected"),
    [
        ([], "uci", "full", []),
        (["shopping"], "uci", "full", ["Stand-in data were used for shopping"]),
        ([], "stand-in", "full", ["Stand-in data were used for shopping"]),
        ([], "uci", "quick", ["Quick scale"]),
    ],
)
def test_a_banner_is_there_exactly_when_data_or_scale_are_not_the_papers(stand_ins, source, scale, expected):
    results = small(figures={})
    results["run"] |= {"stand_ins": stand_ins, "scale": scale}
    results["accuracy"][-1]["source"] = source
    shown = Page(page.as_html(results, {}))
    banners = [one for one in shown.all("div") if one.get("class") == "banner"]
    assert len(banners) == bool(expected)
    assert bool(page.warning_line(results)) == bool(expected)
    for said in expected:
        assert said in " ".join(shown.text["li"])


def test_the_page_needs_nothing_but_itself(shown):
    for tag, attributes in shown.tags:
        assert tag not in {"script", "link", "iframe", "object", "embed", "img", "base", "form"}
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in {"href", "src", "xlink:href"}:
                assert value.startswith(("#", "data:image/png;base64,", "figures/")) or value == "results.json"
    assert "@import" not in "".join(shown.words)
    assert "url(http" not in "".join(shown.words)


def test_links_within_the_page_and_beside_it_lead_somewhere(shown, written):
    ids = [attributes["id"] for _, attributes in shown.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = [value for _, one in shown.tags for key, value in one.items() if key in {"href", "xlink:href"}]
    used += [
        f"#{name}" for _, one in shown.tags for v in one.values() for name in re.findall(r"url\(#(.*?)\)", v or "")
    ]
    assert len(used) > 50
    for target in used:
        if target.startswith("#"):
            assert target[1:] in ids
        elif not target.startswith("data:"):
            assert (written / target).stat().st_size > 200


def test_headings_go_down_one_step_at_a_time_and_tables_have_heads(shown):
    levels = [int(tag[1]) for tag, _ in shown.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))
    assert {one["scope"] for one in shown.all("th")} == {"col", "row"}
    assert len(shown.all("caption")) == len(shown.all("table"))


def test_every_figure_has_a_caption_and_words_in_its_place(shown):
    drawings = [one for one in shown.all("svg") if "role" in one]
    assert len(drawings) == len(shown.all("figcaption")) == len(fake_results()["figures"])
    assert all(one["role"] == "img" for one in drawings)
    assert "SmoothGrad 0.43 at 10, 0.034 at 100k" in drawings[2]["aria-label"]
    assert "bankruptcy 0.5, shopping n/a" in drawings[4]["aria-label"]


def test_hostile_text_stays_text(tmp_path):
    results = hostile(small())
    source = report.write(results, tmp_path).read_text(encoding="utf-8")
    shown = Page(source)
    harmless = Page(report.write(small(), tmp_path / "harmless").read_text(encoding="utf-8"))
    assert {tag for tag, _ in shown.tags} == {tag for tag, _ in harmless.tags}
    assert not [name for _, one in shown.tags for name in one if name.startswith("on")]
    assert "<script" not in source.lower()
    assert "\x00" not in source
    assert "<script>alert(1)</script>" in " ".join(shown.text["td"])  # as the reader sees it
    assert "🍋" in " ".join(shown.text["td"])


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", 'a"b', "<b>", "a b"])
def test_a_figure_name_that_is_no_file_name_is_refused_before_anything_is_written(tmp_path, name):
    results = small()
    results["figures"][name] = results["figures"]["figure2"]
    with pytest.raises(InvalidArgument, match="a figure's name has letters"):
        report.write(results, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_numbers_come_back_from_json_with_null_for_what_is_not_finite(tmp_path):
    results = small()
    results["figures"]["figure2"]["panels"][0]["curves"][0]["y"][0] = float("inf")
    results["run"]["seed"] = np.int64(7)
    report.write(results, tmp_path)

    def refuse(word):
        raise AssertionError(word)

    read = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert read == report.as_plain(results)
    assert read["figures"]["figure2"]["panels"][0]["curves"][0]["y"][0] is None
    assert read["accuracy"][2]["auc"] is None
    assert read["run"]["seed"] == 7


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_results_give_the_same_bytes(tmp_path, written):
    report.write(fake_results(), tmp_path)
    assert contents(tmp_path) == contents(written)
    assert len(contents(tmp_path)) == 2 + 2 * 5


def test_a_drawing_that_fails_leaves_the_old_report_whole(tmp_path):
    report.write(small(), tmp_path)
    before = contents(tmp_path)
    broken = small(claims=[])
    broken["figures"]["figure9"] = {**broken["figures"]["figure2"], "panels": [{"kind": "pie"}]}
    with pytest.raises(InvalidArgument, match="a panel is one of curves, field, bars, heatmap; got 'pie'"):
        report.write(broken, tmp_path)
    assert contents(tmp_path) == before


def test_a_disk_that_fails_leaves_every_file_whole_and_no_drafts(tmp_path, monkeypatch):
    report.write(small(), tmp_path)
    before = contents(tmp_path)

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no space left"):
        report.write(small(claims=[]), tmp_path)
    assert contents(tmp_path) == before


def test_a_report_without_claims_or_figures_can_be_written(tmp_path):
    source = report.write(small(claims=[], figures={}, accuracy=[]), tmp_path).read_text(encoding="utf-8")
    assert "put 0 claims to the test: none was tested" in source
    assert "Not judged: that takes a run of every figure" in source
    assert "What the paper says, and what we found" not in source  # no table without rows
    Page(source)


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_colours_of_the_page_can_be_read_in_light_and_dark(shown):
    style = "".join(shown.text["style"])
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in style.split("@media")[:2])
    for scheme in (light, light | dark):
        for ink, paper in (("ink", "page"), ("soft", "page"), ("soft", "card"), ("link", "page"), ("loud-ink", "loud")):
            assert contrast(scheme[ink], scheme[paper]) >= 4.5
        assert all(contrast(scheme[pill], "#ffffff") >= 4.5 for pill in ("good", "part", "bad", "none"))


def test_every_erratum_is_shown(shown):
    everything = " ".join(shown.words)
    assert all(getattr(one, part) in everything for one in ERRATA for part in ("title", "where", "wrong", "proof"))

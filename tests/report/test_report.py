"""The report as a file: what is in it, that it is written whole, and what is refused."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import smoothlime as sl
from smoothlime.errors import InvalidArgument, MissingExtra, UnwritableFile, WrongType
from smoothlime.report import page
from smoothlime.report.templates import data_block, printable

HOSTILE = "</script><script>alert(1)</script>"


class Page(HTMLParser):
    """Tags, attributes and text by element."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.tags, self.text, self.open = [], {}, []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_data(self, data):
        self.text.setdefault(self.open[-1] if self.open else "", []).append(data)


def f(a):
    return np.sin(a[:, 0]) + a[:, 1] * a[:, 2]


@pytest.fixture(scope="module")
def e():
    rows = np.random.default_rng(0).normal(size=(4, 3))
    return sl.explain(f, rows, sigma=0.5, n_samples=256)


def numbers(source):
    [found] = re.findall(r'<script type="application/json" id="numbers">(.*?)</script>', source)
    return json.loads(found)["explanations"]


def written(e, folder, **settings):
    e.to_html(folder / "report.html", **settings)
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_numbers_in_the_page_are_those_of_the_explanation(e, tmp_path):
    [found] = numbers(written(e, tmp_path))
    np.testing.assert_array_equal(found["values"], e.values)
    np.testing.assert_array_equal(found["prediction"], e.prediction)
    np.testing.assert_array_equal(found["std"], e.std)
    np.testing.assert_allclose(found["half"], e.half_width(0.05), rtol=1e-8)
    np.testing.assert_allclose(found["standard_error"], e.standard_error, rtol=1e-5)
    np.testing.assert_allclose(found["x"], e.x, rtol=1e-8)
    means = [bar["value"] for bar in found["effects"]["bars"]]
    np.testing.assert_allclose(sorted(means), sorted(e.values.mean(axis=0) * e.std))


def test_it_needs_nothing_but_itself_and_runs_no_script_but_its_own(e, tmp_path):
    source = written(e, tmp_path)
    shown = Page(source)
    for tag, attributes in shown.tags:
        assert tag not in {"link", "iframe", "object", "embed", "img", "base", "form"}
        assert "src" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert attributes.get("href", "#").startswith("#")
    [policy] = [one["content"] for _, one in shown.tags if one.get("http-equiv") == "Content-Security-Policy"]
    scripts = re.findall(r"<script>(.*?)</script>", source, flags=re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts]
    assert re.findall(r"'sha256-(.*?)'", policy) == hashes
    assert "default-src 'none'" in policy
    assert "http" not in policy


@pytest.mark.parametrize("where", ["keys", "title", "names", "output"])
def test_what_looks_like_markup_stays_text(where, tmp_path):
    names = [HOSTILE, "b", "c"] if where == "names" else ["a", "b", "c"]
    model = sl.from_functions(values=f, outputs=(HOSTILE,)) if where == "output" else f
    e = sl.explain(model, _table(names), sigma=0.5, n_samples=256)
    settings = {"keys": [HOSTILE, "two"]} if where == "keys" else {"title": HOSTILE} if where == "title" else {}
    source = written(e, tmp_path, **settings)
    assert len(re.findall("<script", source, flags=re.IGNORECASE)) == 4
    [found] = numbers(source)
    shown = Page(source)
    said = " ".join(text for tag, texts in shown.text.items() if tag not in ("script", "style") for text in texts)
    assert HOSTILE in said
    assert where == "title" or HOSTILE in json.dumps(found)


def _table(names):
    import pandas as pd

    return pd.DataFrame(np.random.default_rng(0).normal(size=(2, 3)), columns=names)


def test_data_in_a_script_cannot_end_it():
    hard = {"a": "</script>", "b": "<!--", "c": "\u2028&", "d": [1.5, None, True]}
    block = str(data_block(hard))
    assert not set("<>&\u2028") & set(block)
    assert json.loads(block) == hard
    with pytest.raises(ValueError, match="not JSON compliant"):
        data_block(float("nan"))


def test_nothing_is_printed_as_a_dash_and_control_characters_are_left_out():
    assert printable(None) == printable("") == "–"
    assert printable(0) == "0"
    assert printable("a\x00b\x1b\ud800🍋") == "ab?🍋"


def test_the_same_explanation_gives_the_same_bytes(e, tmp_path):
    assert written(e, tmp_path) == written(e, tmp_path)


def test_the_page_says_how_it_was_made(e, tmp_path):
    e.save(tmp_path / "e.json")
    digest = page.digest(tmp_path / "e.json")
    assert digest == hashlib.sha256((tmp_path / "e.json").read_bytes()).hexdigest()
    source = page.as_html([page.Part(e, "e.json", digest)])
    said = " ".join(Page(source).text["dd"])
    expected = ("clime", "aligned draws", "256 for each row", "sigma=0.5", "95% confidence", "numpy", "e.json")
    for words in (*expected, digest):
        assert words in said


def test_a_certificate_is_named_with_what_it_assumes(tmp_path):
    certified = sl.explain(
        lambda a: 1 / (1 + np.exp(-a[:, 0])), [[0.0, 1.0]], guarantee="certified", output_range=(0, 1), n_samples=4096,
        design="iid", method=sl.Stein(),
    )  # fmt: skip
    shown = Page(written(certified, tmp_path))
    names, said = ([text for text in shown.text[tag] if text.strip()] for tag in ("dt", "dd"))
    facts = dict(zip(names, said, strict=True))
    assert facts["Certificate"].startswith("error bounds hold for finite samples at 95% confidence")
    assert certified.provenance.assumes in facts["Certificate"]


def test_rows_that_missed_the_tolerance_are_said_to_have(tmp_path):
    with pytest.warns(sl.errors.NotConverged):
        e = sl.explain(f, [[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]], rtol=1e-4, atol=0.0, max_samples=256)
    assert "2 of 2 rows did not reach the tolerance" in written(e, tmp_path)


def test_of_many_features_the_largest_are_kept(tmp_path):
    weights = np.arange(300.0)
    e = sl.explain(lambda a: a @ weights, np.zeros((1, 300)), n_samples=256, method=sl.Stein(), design="antithetic")
    [found] = numbers(written(e, tmp_path))
    assert len(found["features"]) == 200
    assert found["n_features"] == 300
    largest = np.sort(np.abs(e.standardised[0]))[100:]
    np.testing.assert_array_equal(np.sort(np.abs(found["values"][0])), largest)


def test_a_page_that_would_be_too_large_is_refused_and_nothing_is_written(e, tmp_path, monkeypatch):
    monkeypatch.setattr("smoothlime.report.contents.MOST_CELLS", 6)
    with pytest.raises(InvalidArgument, match=r"a page holds 6 numbers, which 4 rows exceed. Take fewer: e\[:2\]"):
        e.to_html(tmp_path / "report.html")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"path": "report.pdf"}, InvalidArgument, "path must end in .html; got"),
        ({"path": "none/report.html"}, UnwritableFile, "there is no folder"),
        ({"keys": "abcd"}, WrongType, "keys must be a name for each row; got 'abcd'"),
        ({"keys": ["a"]}, InvalidArgument, "keys must have one name for each of the 4 rows; got 1"),
        ({"title": 3}, WrongType, "title must be text; got 3"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(e, tmp_path, settings, error, words):
    path = tmp_path / settings.pop("path", "report.html")
    with pytest.raises(error, match=re.escape(words)):
        e.to_html(path, **settings)


def test_a_disk_that_fails_leaves_the_old_page_whole(e, tmp_path, monkeypatch):
    before = written(e, tmp_path)

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(UnwritableFile, match="no space left"):
        e.to_html(tmp_path / "report.html", title="another")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == before
    assert len([*tmp_path.iterdir()]) == 1


def test_without_jinja2_the_extra_is_named(e, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises((MissingExtra, ModuleNotFoundError), match="jinja2"):
        e.to_html(tmp_path / "report.html")


@pytest.mark.parametrize("kind", ["combined", "infinite"])
def test_unusual_numbers_can_be_shown(e, tmp_path, kind):
    if kind == "combined":
        with pytest.warns(sl.errors.ErrorsAdded):
            e = e[0] - e[1]
    else:
        e = sl.explain(f, [[0.0, 1.0, 2.0]], n_samples=8, design="iid", method=sl.Stein())
    [found] = numbers(written(e, tmp_path))
    assert len(found["values"]) == 1

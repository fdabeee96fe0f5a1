"""`smoothlime report`: one page of several files."""

import hashlib

import numpy as np
import pytest
from click.testing import CliRunner

import smoothlime as sl
from smoothlime.cli import main


@pytest.fixture
def folder(tmp_path):
    rows = np.random.default_rng(0).normal(size=(3, 2))
    e = sl.explain(lambda a: np.sin(a[:, 0]) * a[:, 1], rows, sigma=0.5, n_samples=256)
    e.save(tmp_path / "one.json")
    e[:1].save(tmp_path / "two.parquet")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def test_files_become_one_page_with_their_digests(folder):
    done = run(folder / "one.json", folder / "two.parquet", "--out", folder / "page.html", "--title", "Loans <b>")
    assert done.exit_code == 0, done.output
    assert done.stdout == f"wrote {folder / 'page.html'}: 2 explanations, 4 rows\n"
    source = (folder / "page.html").read_text(encoding="utf-8")
    assert "<title>Loans &lt;b&gt;</title>" in source
    for name in ("one.json", "two.parquet"):
        assert name in source
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() in source


def test_the_page_is_called_report_html_unless_told_otherwise(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert run("one.json").stdout == "wrote report.html: 1 explanation, 3 rows\n"
    assert (folder / "report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing argument 'FILES...'"),
        (["none.json"], "there is no file 'none.json'"),
        (["one.json", "-o", "page.txt"], "--out must end in .html or .htm; got 'page.txt'"),
        (["one.json", "-o", "nowhere/page.html"], "there is no folder 'nowhere'"),
        (["other.html", "-o", "other.html"], "--out 'other.html' is a file that is read from"),
        (["other.html"], "'other.html' cannot be loaded: it is neither JSON nor Parquet"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_lost(folder, monkeypatch, arguments, words):
    monkeypatch.chdir(folder)
    (folder / "other.html").write_text("mine")
    done = run(*arguments)
    assert done.exit_code == 2
    assert words in done.output
    assert (folder / "other.html").read_text() == "mine"
    assert not (folder / "report.html").exists()


def test_other_answers_make_no_page(tmp_path):
    found = sl.interactions(lambda a: a[:, 0] * a[:, 1], [1.0, 2.0], n_samples=256)
    found.save(tmp_path / "pairs.json")
    done = run(tmp_path / "pairs.json", "-o", tmp_path / "page.html")
    assert done.exit_code == 2
    assert "holds interactions; a page is made of explanations" in done.output

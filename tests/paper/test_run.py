"""The run: every figure, the store that lets it go on, and the command line."""

import importlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import smoothlime
from smoothlime.cli import main
from smoothlime.errors import InvalidArgument, MissingExtra, UnwritableFile
from smoothlime.paper import datasets, figures, run, side_by_side
from smoothlime.paper.study import Study

from .conftest import TINY, unavailable

NAMES = (
    "figure1", "figure2", "figure3",
    "figure4-bankruptcy", "figure4-simulated", "figure4-shopping",
    "figure5-bankruptcy", "figure5-simulated", "figure5-shopping",
    "convergence", "lipschitz", "regularised",
    "peers-simulated", "peers-bankruptcy", "peers-shopping",
)  # fmt: skip


@pytest.fixture
def tiny(monkeypatch):
    """The smallest scale and no data sets but those made or shipped."""
    monkeypatch.setattr(run, "QUICK", TINY)
    for name in ("bankruptcy", "shopping"):
        monkeypatch.setattr(datasets, name, unavailable)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "QUICK", TINY)
        for name in ("bankruptcy", "shopping"):
            patch.setattr(datasets, name, unavailable)
        results = run.reproduce(folder, quick=True, say=said.append)
    return folder, results, said


def test_everything_is_there(finished):
    folder, results, _ = finished
    assert tuple(results["figures"]) == NAMES
    assert set(results) == {"figures", "claims", "accuracy", "run"}
    assert len(results["accuracy"]) == 9
    assert {row["paper"] for row in results["accuracy"] if row["source"] == "stand-in"} == {None}
    assert {"torch", "captum", "shap", "lime"} <= set(results["run"]["versions"])
    written = json.loads((folder / "results.json").read_text())
    assert tuple(written["figures"]) == NAMES
    page = (folder / "index.html").read_text()
    assert page.count("<svg") == len(NAMES)
    for name in NAMES:
        assert (folder / "figures" / f"{name}.svg").is_file()
        assert (folder / "figures" / f"{name}.pdf").is_file()


def test_stand_ins_are_called_stand_ins(finished):
    folder, results, said = finished
    assert results["run"]["stand_ins"] == ["stand-in for Bankruptcy", "stand-in for Online Shopping"]
    assert sum(line.startswith("!! no such file here") for line in said) == 2
    labels = [line["label"] for line in results["figures"]["figure2"]["panels"][0]["curves"]]
    assert labels[:3] == ["Simulated", "stand-in for Bankruptcy", "stand-in for Online Shopping"]
    assert "stand-in" in (folder / "index.html").read_text()


def test_progress_says_what_is_left(finished):
    *_, said = finished
    assert said[0] == "reading the data and training the networks"
    assert any(line.startswith(f"[2/{len(NAMES)}] figure2: ") and " left" in line for line in said)
    assert " left" in said[-3], "claims take their time, too"
    assert said[-2] == "judging 23 claims"
    assert said[-1].startswith("the report is in ")


def test_curves_have_bands_and_nested_draws(finished):
    _, results, _ = finished
    for line in results["figures"]["figure3"]["panels"][0]["curves"]:
        assert len(line["x"]) == len(line["y"]) == len(line["low"]) == len(line["high"])
        assert line["x"] == sorted(line["x"])
        assert all(low <= y <= high for low, y, high in zip(line["low"], line["y"], line["high"], strict=True))


def test_an_interrupted_run_goes_on_and_the_numbers_are_the_same(finished, tiny, tmp_path, monkeypatch):
    _, results, _ = finished
    made = []
    keep = Study.keep

    def counted(self, name, make):
        def once():
            made.append(name)
            if len(made) == 3:
                raise KeyboardInterrupt
            return make()

        return keep(self, name, once)

    monkeypatch.setattr(Study, "keep", counted)
    with pytest.raises(KeyboardInterrupt):
        run.reproduce(tmp_path, quick=True, only=["figure2"], say=lambda line: None)
    done = made[:2]
    assert len(list((tmp_path / "kept").glob("*.json"))) == 2
    again = run.reproduce(tmp_path, quick=True, only=["figure2"], say=lambda line: None)
    assert not set(done) & set(made[3:])
    assert again["figures"]["figure2"] == results["figures"]["figure2"]
    assert again["claims"] == []
    assert (results["run"]["kept"], again["run"]["kept"]) == (0, 2)
    assert "not counting those of an earlier run that 2 measurements came from" in (tmp_path / "index.html").read_text()


def test_rows_are_counted_as_they_are(study):
    many = replace(TINY, shared_rows=300, robustness_rows=500, limit_rows=400, equivalence_rows=None)
    counted = run._rows(Study(many, 0, study.data, study.trained))
    tested = {name: len(study.data[name].x_test) for name in study.data}
    assert all(
        rows == {name: min(most, tested[name]) for name in tested}
        for rows, most in zip(counted.values(), (10**6, 1_200, 500, 300, 400), strict=True)
    )
    assert run._rows(study)["robustness, shared draws"] == dict.fromkeys(tested, 8)


def test_captions_say_how_many_rows_there_were(study, finished):
    _, results, _ = finished
    assert "40 test rows at most" in results["figures"]["figure2"]["caption"]
    everything = Study(replace(TINY, equivalence_rows=None), 0, study.data, study.trained)
    assert "all test rows" in figures.figure2(everything)["caption"]


def test_other_versions_of_other_libraries_are_asked_anew(study, tmp_path, monkeypatch):
    kept, asked = Study(TINY, 0, study.data, study.trained, tmp_path), []
    found = {"settings": {}, "rows": 2, "notes": [""]}
    monkeypatch.setattr(side_by_side, "side_by_side", lambda *args, **how: asked.append(1) or found)
    monkeypatch.setattr(side_by_side, "panels", lambda found: [])
    for shap in ("0.50", "0.50", "0.51"):
        monkeypatch.setattr(run, "_versions_of_peers", lambda: {"captum": "1", "shap": shap, "lime": "1"})  # noqa: B023
        run.peers(kept, "simulated")
    assert len(asked) == 2


def test_another_seed_is_another_run(study, tmp_path):
    one, other = (Study(TINY, seed, study.data, study.trained, tmp_path) for seed in (0, 1))
    assert one.fingerprint != other.fingerprint


def test_a_damaged_file_in_the_store_is_made_again(study, tmp_path):
    kept = Study(TINY, 0, study.data, study.trained, tmp_path)
    assert kept.keep("thing", lambda: {"a": 1}) == {"a": 1}
    assert kept.keep("thing", lambda: {"a": 2}) == {"a": 1}
    (path,) = tmp_path.glob("thing-*.json")
    for damage in ('{"a":', "[]", "null", "{}", '{"name": "other", "made": {}}'):
        path.write_text(damage)
        assert kept.keep("thing", lambda: {"a": 2}) == {"a": 2}
    path.write_text(path.read_text().replace('{"a": 2}', "{}"))
    assert kept.keep("thing", lambda: {"a": 3}) == {"a": 3}
    assert kept.keep("thing", lambda: {"a": 4}) == {"a": 3}


def test_a_store_that_cannot_be_written_is_an_error(study, tmp_path):
    kept = Study(TINY, 0, study.data, study.trained, tmp_path / "missing")
    with pytest.raises(UnwritableFile, match="cannot be written"):
        kept.keep("thing", lambda: {"a": 1})


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_nothing_half_written_stays_in_the_store(study, tmp_path, monkeypatch, error):
    def stopped(self, target):
        raise error

    kept = Study(TINY, 0, study.data, study.trained, tmp_path)
    monkeypatch.setattr(Path, "replace", stopped)
    with pytest.raises((UnwritableFile, KeyboardInterrupt)):
        kept.keep("thing", lambda: {"a": 1})
    assert list(tmp_path.iterdir()) == []


def test_a_full_report_is_not_written_over(tiny, tmp_path):
    (tmp_path / "results.json").write_text('{"run": {"scale": "full"}, "claims": [{}]}')
    for more in (["--quick"], ["--only", "figure1"]):
        done = CliRunner().invoke(main, ["reproduce", "--out", str(tmp_path), *more])
        assert done.exit_code == 2
        assert "holds the report of a full run; choose another folder" in done.output
    assert CliRunner().invoke(main, ["reproduce", "--out", ""]).exit_code == 2


def test_a_report_that_cannot_be_written_is_an_error(tiny, tmp_path):
    (tmp_path / "figures").write_text("a file")
    done = CliRunner().invoke(main, ["reproduce", "--quick", "--only", "figure1", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "the report cannot be written" in done.output


def without(library, monkeypatch):
    """As if it were not installed."""
    found = importlib.import_module

    def import_module(name, package=None):
        if name.partition(".")[0] == library:
            raise ModuleNotFoundError(name=library)
        return found(name, package)

    monkeypatch.setattr(smoothlime._core.optional.importlib, "import_module", import_module)


@pytest.mark.parametrize("library", ["captum", "shap", "lime", "matplotlib"])
def test_a_missing_library_is_named_before_anything_else_is_done(tiny, tmp_path, monkeypatch, library):
    without(library, monkeypatch)
    monkeypatch.setattr(run, "prepare", lambda *args: pytest.fail("the long part has begun"))
    with pytest.raises(MissingExtra, match=f"^{library}.* is needed"):
        run.reproduce(tmp_path / "report", quick=True, say=lambda line: None)
    assert not (tmp_path / "report").exists()


def test_other_libraries_are_asked_for_only_where_they_are_compared(tiny, tmp_path, monkeypatch):
    without("shap", monkeypatch)
    run.reproduce(tmp_path, quick=True, only=["figure1"], say=lambda line: None)


def test_a_bad_seed_makes_no_folder(tmp_path):
    with pytest.raises(InvalidArgument, match="seed"):
        run.reproduce(tmp_path / "report", seed=-1)
    assert not (tmp_path / "report").exists()


def test_unknown_figures_are_named():
    with pytest.raises(InvalidArgument, match="--only: there is no 'figure9'; choose from figure1, figure2"):
        run.reproduce("nowhere", only=["figure9"])


def test_only_one_figure_and_its_twins(tiny, tmp_path):
    done = CliRunner().invoke(main, ["reproduce", "--quick", "--only", "figure1", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert tuple(json.loads((tmp_path / "results.json").read_text())["figures"]) == ("figure1",)
    assert tuple(run._wanted(["figure4"])) == NAMES[3:6]


def test_a_folder_that_cannot_be_made_is_an_error(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(main, ["reproduce", "--quick", "--out", str(tmp_path / "file")])
    assert done.exit_code == 2
    assert "the report cannot be written to" in done.output

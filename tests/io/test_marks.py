"""What stands behind NaN in a row, saved and loaded: missing, no number, or of different rows."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import smoothlime as sl
from smoothlime.errors import InvalidArgument, UnreadableFile

FOLDER = Path(__file__).parent
ROWS = np.array([[0.5, 1.0, 0.2], [2.0, np.nan, 0.7], [np.nan, 0.25, np.nan]])
SUFFIXES = [".json", ".parquet"]


def curved(a):
    z = np.nan_to_num(a)
    return z[:, 0] ** 2 + z[:, 1] * z[:, 2]


def with_gaps(**settings):
    return sl.explain(curved, ROWS, sigma=0.3, **{"n_samples": 64, **settings})


def of_text():
    table = pd.DataFrame(
        {"a": [1.0, np.nan, 2.0], "kind": ["x", None, "y"], "code": [np.nan, 1.0, 2.0], "b": [0.5, 1.0, 2.0]}
    )
    around = sl.Neighbourhood(0.3, fixed=["code"])
    model = sl.as_model(lambda t: np.nan_to_num(t["a"].to_numpy()) ** 2 * t["b"].to_numpy(), takes="table")
    return sl.explain(model, table, sigma=around, n_samples=64)


def marks(e):
    return {name: np.argwhere(getattr(e, name)).tolist() for name in ("missing", "not_numeric", "combined")}


class TestMarks:
    def test_each_cell_has_its_own(self):
        e = of_text()
        assert marks(e) == {"missing": [[1, 0]], "not_numeric": [[0, 1], [2, 1]], "combined": []}
        assert np.argwhere(e.held).tolist() == [[0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [2, 1], [2, 2]]
        np.testing.assert_array_equal(np.isnan(e.values), e.held)

    def test_rows_keep_theirs(self):
        e = of_text()
        assert marks(e[1]) == {"missing": [[0, 0]], "not_numeric": [], "combined": []}
        assert marks(e[[2, 1]]) == {"missing": [[1, 0]], "not_numeric": [[0, 1]], "combined": []}


class TestArithmetic:
    def test_the_same_rows_keep_their_gaps_and_draws(self, recwarn):
        one, two = (
            with_gaps(design="iid"),
            sl.explain(lambda a: 3 * curved(a), ROWS, sigma=0.3, n_samples=64, design="iid"),
        )
        apart = two - 3 * one
        np.testing.assert_allclose(apart.values, np.where(np.isnan(ROWS), np.nan, 0.0), atol=1e-12)
        assert np.nanmax(apart.standard_error) < 1e-12
        assert marks(apart) == marks(one)
        np.testing.assert_array_equal(apart.perturbations(1), one.perturbations(1))
        assert not recwarn.list

    def test_what_is_missing_in_one_of_two_rows_has_no_slope(self):
        e = with_gaps()
        with pytest.warns(sl.errors.ErrorsAdded):
            apart = e[0] - e[1]
        assert np.isnan(apart.values).tolist() == [[False, True, False]]
        assert marks(apart) == {"missing": [[0, 1]], "not_numeric": [], "combined": [[0]]}
        assert np.isnan(apart.x).all()
        lower, upper = apart.interval()
        np.testing.assert_array_equal(np.isnan(upper - lower), np.isnan(apart.values))
        with pytest.raises(InvalidArgument, match="combines different draws or rows"):
            apart.perturbations()

    def test_other_rows_are_what_they_were(self):
        e = with_gaps(design="sobol")
        apart = e - e[[0, 1, 2]]
        assert not apart.combined.any()
        with pytest.warns(sl.errors.ErrorsAdded):
            apart = e - e[[0, 2, 1]]
        assert apart.combined.tolist() == [False, True, True]
        np.testing.assert_array_equal(apart.x[0], ROWS[0])
        assert apart.missing.all(axis=1).tolist() == [False, True, True]  # they have nothing in common
        assert np.isnan(apart.interval(simultaneous=True)[0][1:]).all()
        assert "nan" not in str(apart[1:])

    def test_rows_with_the_same_gaps_share_their_draws(self, recwarn):
        rows = ROWS[[1, 1]] + [[0.0], [0.5]]
        e = sl.explain(curved, rows, sigma=0.3, n_samples=64, design="sobol")
        assert (e[0] - e[1]).groups is not None
        assert not recwarn.list


@pytest.mark.parametrize("suffix", SUFFIXES)
class TestFiles:
    @pytest.mark.parametrize("made", [with_gaps, of_text, lambda: with_gaps(design="aligned", method="clime"),
                                      lambda: with_gaps(draws="independent", design="iid")])  # fmt: skip
    def test_everything_is_there_again(self, tmp_path, suffix, made):
        e = made()
        e.save(tmp_path / f"e{suffix}")
        again = sl.load(tmp_path / f"e{suffix}", check=True)
        assert marks(again) == marks(e)
        for row in range(len(e)):
            np.testing.assert_array_equal(again.perturbations(row), e.perturbations(row))
        np.testing.assert_array_equal(again.interval(0.9, simultaneous=True), e.interval(0.9, simultaneous=True))
        np.testing.assert_array_equal(again.values, e.values)

    def test_combined_rows(self, tmp_path, suffix):
        e = with_gaps(design="sobol")
        with pytest.warns(sl.errors.ErrorsAdded):
            apart = e - e[[0, 2, 1]]
        apart.save(tmp_path / f"e{suffix}")
        assert marks(sl.load(tmp_path / f"e{suffix}", check=True)) == marks(apart)


def test_rows_without_any_write_none():
    written = json.loads(sl.explain(curved, ROWS[:1], n_samples=64).to_json())
    assert written["marks"] == []
    assert not {"missing", "not_numeric", "combined"} & set(written["arrays"])


class TestTheVersionBefore:
    """Saved by version 5, which marked nothing: NaN in `x` stood for all of it."""

    def test_trees_had_slopes_of_zero(self):
        e = sl.load(FOLDER / "version_5_exact.json")
        assert marks(e)["missing"] == [[1, 1], [2, 0], [2, 2]]
        np.testing.assert_array_equal(np.isnan(e.values), e.missing)
        np.testing.assert_array_equal(np.isnan(e.standard_error), e.missing)

    def test_draws_were_of_all_features(self):
        e = sl.load(FOLDER / "version_5_jumps.parquet")
        assert marks(e)["missing"] == [[1, 1], [2, 0], [2, 2]]
        np.testing.assert_array_equal(np.isnan(e.interval()[0]), e.missing)
        with pytest.raises(InvalidArgument, match="has no perturbations of its own"):
            e.perturbations(1)

    def test_text_and_rows_that_were_combined(self):
        assert marks(sl.load(FOLDER / "version_5_text.json")) == {
            "missing": [],
            "not_numeric": [[0, 1], [1, 1]],
            "combined": [],
        }
        assert sl.load(FOLDER / "version_5_text.json").perturbations(1).shape == (64, 3)
        assert marks(sl.load(FOLDER / "version_5_combined.json"))["combined"] == [[0], [1]]


class TestHostileFiles:
    def spoil(self, tmp_path, change, made=with_gaps):
        content = json.loads(made().to_json())
        change(content)
        (tmp_path / "e.json").write_text(json.dumps(content))
        with pytest.raises(UnreadableFile) as caught:
            sl.load(tmp_path / "e.json")
        return str(caught.value)

    @pytest.mark.parametrize(
        "to", ["missing", ["nonsense"], [3], ["missing", "missing"], [["missing"]], {"missing": 1}, None]
    )
    def test_names_that_are_none(self, tmp_path, to):
        assert "'marks' must" in self.spoil(tmp_path, lambda e: e.update(marks=to))

    def test_marks_that_are_gone(self, tmp_path):
        assert "the field 'marks' is missing" in self.spoil(tmp_path, lambda e: e.pop("marks"))
        assert "'x' does not fit to what is missing" in self.spoil(tmp_path, lambda e: e.update(marks=[]))

    @pytest.mark.parametrize(
        "to", [1, "x", [1, 2], [[1, 0, 0]] * 3, [[True] * 3] * 2, [[True] * 2] * 3, [[None] * 3] * 3]
    )
    def test_marks_of_another_shape_or_kind(self, tmp_path, to):
        assert "missing" in self.spoil(tmp_path, lambda e: e["arrays"].update(missing=to))

    def test_marks_that_no_run_makes(self, tmp_path):
        def at(name, row, j, to=True):
            return lambda e: e["arrays"][name][row].__setitem__(j, to)

        assert "'x' does not fit" in self.spoil(tmp_path, at("missing", 0, 0))  # where there is a number
        assert "'x' does not fit" in self.spoil(tmp_path, at("missing", 1, 1, to=False))
        assert "'missing' does not fit" in self.spoil(tmp_path, at("missing", 2, 1))  # nothing is left
        assert "'missing' does not fit" in self.spoil(tmp_path, at("missing", 0, 1), of_text)  # of a fixed feature
        assert "'not_numeric' does not fit" in self.spoil(tmp_path, at("not_numeric", 0, 3), of_text)  # a perturbed one
        assert "'not_numeric' does not fit" in self.spoil(tmp_path, at("not_numeric", 1, 2), of_text)  # it is a number

        def combined(e):
            e["marks"].append("combined")
            e["arrays"]["combined"] = [True, False, False]

        assert "'combined' does not fit" in self.spoil(tmp_path, combined)

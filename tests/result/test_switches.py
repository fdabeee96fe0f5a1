"""Switches as a result: rows of it, arithmetic, frames, files, text and bars."""

import json
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import smoothlime as sl
from smoothlime import errors
from smoothlime.models import as_model

mpl.use("Agg")

DATA = pd.DataFrame({"a": np.linspace(-1, 1, 24), "word": ["x", "y", "z"] * 8, "flag": [True, False] * 12})
ROWS = DATA.iloc[:4]
SHIFT = {"x": 0.0, "y": 0.5, "z": -1.2, "odd": 3.0}


def function(frame, times=1.0):
    shift = frame["word"].map(SHIFT).to_numpy(dtype=float)
    return times * np.tanh(frame["a"].to_numpy() + shift) + 0.1 * frame["flag"].to_numpy(dtype=float)


def explain(rows=ROWS, times=1.0, **asked):
    model = as_model(lambda frame: function(frame, times), takes="table")
    return sl.explain(model, rows, **{"background": DATA, "n_samples": 512, "sigma": 0.5, **asked})


def assert_same_switches(one, other):
    assert (one.columns, one.backend) == (other.columns, other.backend)
    for name in ("own", "effect", "standard_error", "skewness", "converged", "n_samples"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


class TestRows:
    def test_rows_are_sliced_with_the_explanation(self):
        e = explain()
        for kept in (2, slice(1, 3), [3, 0], np.array([True, False, False, True])):
            np.testing.assert_array_equal(e[kept].switches.effect, np.atleast_2d(e.switches.effect[kept]))
            assert len(e[kept].switches) == len(e[kept])
        assert [len(each) for each in e.switches] == [1] * 4
        assert e[1].switches.own_level(0, 0) == "y"

    def test_frames_have_a_line_per_row_and_other_level(self):
        e = explain()
        frame = e.switches.to_frame()
        names = ["row", "feature", "from", "to", "effect", "standard_error", "lower", "upper", "converged"]
        assert list(frame.columns) == names
        assert len(frame) == 4 * 3
        first = frame.iloc[0]
        assert (first["row"], first["feature"], first["from"], first["to"]) == (0, "word", "x", "y")
        assert first["effect"] == e.switches.effect[0, 1]
        assert first["lower"] < first["effect"] < first["upper"]
        assert "polars" in type(e.switches.to_frame(library="polars")).__module__
        narrow = e.switches.to_frame(confidence=0.5)
        assert (narrow["upper"] - narrow["lower"] <= frame["upper"] - frame["lower"]).all()

    def test_intervals_are_wider_at_more_confidence_and_where_groups_are_skewed(self):
        s = explain().switches
        assert (s.half_width(0.99) >= s.half_width(0.95))[~np.isnan(s.effect)].all()
        with pytest.raises(errors.InvalidArgument, match="confidence must lie strictly between 0 and 1"):
            s.interval(1.0)


class TestArithmetic:
    def test_multiples(self):
        e = explain()
        for times in (-2.0, 0.5):
            np.testing.assert_array_equal((times * e).switches.effect, times * e.switches.effect)
            np.testing.assert_array_equal((times * e).switches.standard_error, abs(times) * e.switches.standard_error)

    def test_errors_of_differences_are_added_and_cover_the_truth(self):
        one, other = explain(design="orthogonal"), explain(times=2.0, design="orthogonal")
        found = (other - one).switches
        np.testing.assert_array_equal(found.effect, other.switches.effect - one.switches.effect)
        np.testing.assert_array_equal(found.standard_error, one.switches.standard_error + other.switches.standard_error)

    def test_what_does_not_have_the_same_switches_gives_none(self):
        e = explain(design="orthogonal")
        others = explain(design="orthogonal", switches=["word"]), explain(design="orthogonal", switches=False)
        for other in others:
            assert (e - other).switches is None
            assert (other + e).switches is None
        assert (e[0] - e[1]).switches is None  # of another level each
        assert (e[0] - e[3]).switches is None  # word alike, flag not
        odd = explain(ROWS.assign(word="odd", flag=True), design="orthogonal")
        np.testing.assert_array_equal((odd[0] + odd[1]).switches.own, [[3, 1]])
        unlike = explain(ROWS.assign(word=["odd", "x", "x", "x"]), design="orthogonal")
        assert (odd[0] + unlike[0]).switches is not None


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
class TestFiles:
    def test_all_of_it_comes_back(self, tmp_path, suffix, assert_same):
        rows = ROWS.assign(word=["odd", "x", "y", "y"])
        for e in (explain(rows), explain(rows, n_samples=None), explain()[:0], explain(switches=False)):
            e.save(tmp_path / f"e{suffix}")
            again = sl.load(tmp_path / f"e{suffix}")
            if e.switches is None:
                assert again.switches is None
            else:
                assert_same_switches(again.switches, e.switches)
                assert str(again) == str(e)

    @pytest.mark.parametrize(
        ("name", "to", "complaint"),
        [
            ("switch_own", 2, "'switch_own' must hold positions of levels; one is beyond them"),
            ("switch_own", 7, "'switch_own' must hold positions of levels; one is beyond them"),
            ("switch_own", -1, "'switch_own' must hold positions of levels"),
            ("switch_standard_error", -1.0, "'switch_standard_error' holds numbers that no run can have given"),
            ("switch_effect", float("inf"), "'switch_effect' holds numbers that no run can have given"),
            ("switch_skewness", -1.0, "'switch_skewness' holds numbers that no run"),
            ("switch_n_samples", -5, "'switch_n_samples' holds numbers that no run"),
        ],
    )
    def test_numbers_that_make_no_sense_are_refused(self, tmp_path, suffix, name, to, complaint):
        import pyarrow.parquet

        path = tmp_path / f"e{suffix}"
        explain().save(path)
        if suffix == ".json":
            plain = json.loads(path.read_text())
            plain["arrays"][name][0][1] = "Infinity" if to == float("inf") else to
            path.write_text(json.dumps(plain))
        else:
            table = pyarrow.parquet.read_table(path)
            column = table[name].to_pylist()
            column[0][1] = to
            at = table.column_names.index(name)
            table = table.set_column(at, table.field(at), pyarrow.array(column, table.field(at).type))
            pyarrow.parquet.write_table(table, path)
        with pytest.raises(errors.UnreadableFile, match=complaint):
            sl.load(path)


@pytest.mark.parametrize(
    ("to", "complaint"),
    [
        ([], "'switches' must hold columns with levels; it has none"),
        (3, "'switches' must be a list; got 3"),
        ([3], "'switches' must hold objects; got 3"),
        ([{"feature": "word", "levels": [1], "others": []}], "'levels' must hold text; got 1"),
        ([{"feature": "word", "levels": ["x"]}], "'others' is missing"),
        ([{"feature": "word", "levels": ["x"], "others": []}], "its parts do not fit together: 'switch_own'"),
    ],
)
def test_headers_that_make_no_sense_are_refused(tmp_path, to, complaint):
    path = tmp_path / "e.json"
    path.write_text(json.dumps(json.loads(explain().to_json()) | {"switches": to}))
    with pytest.raises(errors.UnreadableFile, match=complaint):
        sl.load(path)


class TestShown:
    def test_text_names_the_switches_largest_first(self):
        e = explain()
        lines = str(e[0]).splitlines()
        at = next(i for i, line in enumerate(lines) if line.split()[:1] == ["switch"])
        found = [line.split(" ±")[0].rsplit(maxsplit=1)[0].strip() for line in lines[at + 1 : at + 4]]
        assert found == ["word: x → y", "word: x → z", "flag: True → False"]
        assert str(e.switches[0]).splitlines()[0] == "row 0"
        assert str(e.switches[0]).splitlines()[1:4] == lines[at : at + 3]
        assert repr(e.switches) == "<Switches of 4 rows: 5 levels of 'word', 'flag', sampled>"

    def test_many_are_cut_short(self):
        data = pd.concat([DATA] * 2, ignore_index=True).assign(word=[f"w{i % 12:02}" for i in range(48)])
        model = as_model(lambda frame: frame["a"] + frame["word"].str[1:].astype(float), takes="table")
        e = sl.explain(model, data.iloc[[0]], background=data, n_samples=256)
        assert "... and 4 smaller switches" in str(e)
        assert "... and 4 smaller switches" in e._repr_html_()
        assert str(e).count("→") == 8

    def test_html_escapes_levels_and_rich_shows_them(self):
        import io

        import rich.console

        data = DATA.assign(word=DATA["word"].replace("x", "<b>x</b>"))
        model = as_model(lambda frame: frame["a"] * frame["flag"], takes="table")
        e = sl.explain(model, data.iloc[[0]], background=data, n_samples=256)
        assert "&lt;b&gt;x&lt;/b&gt; → y" in e._repr_html_()
        console = rich.console.Console(file=io.StringIO(), width=200)
        console.print(e)
        assert "flag: True → False" in console.file.getvalue()

    def test_bars_have_the_largest_switch_of_each_category_below_the_slopes(self):
        e = explain()
        axes = e.plot(0)
        labels = [each.get_text() for each in axes.get_yticklabels()]
        assert labels == [f"a = {e.x[0, 0]:.4g}", "word: x → y", "flag: True → False"]
        bars = [each for each in axes.patches if each.get_height() == 0.7]
        np.testing.assert_allclose([each.get_width() for each in bars], [
            e.standardised[0, 0], e.switches.effect[0, 1], e.switches.effect[0, 3],
        ])  # fmt: skip
        assert [bool(each.get_hatch()) for each in bars] == [False, True, True]
        assert "hollow: change to another level" in " ".join(axes.get_xlabel().split())
        assert "hollow" not in explain(switches=False).plot(0).get_xlabel()
        low, _ = axes.get_ylim()
        assert low < min(axes.get_yticks()) - 0.35
        mpl.pyplot.close("all")

    def test_exact_ones_say_so(self):
        from sklearn.linear_model import LinearRegression

        model = LinearRegression().fit([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]], [0.0, 3.0, 2.0])
        e = sl.explain(model, [[0.0, 0.0]], fixed=[1], switches={"x1": [1]})
        assert "x1: 0 → 1  +2" in str(e)
        assert repr(e.switches).endswith("exact>")

    def test_certificates_are_not_of_switches(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.SmoothlimeWarning)
            e = explain(n_samples=2_048, guarantee="certified", output_range=(-1, 2), method="stein")
        assert "switches are approximate" in str(e)


def test_other_levels_than_the_row_has_are_counted_right():
    s = explain(ROWS.assign(word=["odd", "x", "y", "y"])).switches
    assert s.is_own.sum(axis=1).tolist() == [1, 2, 2, 2]
    np.testing.assert_array_equal(np.isnan(s.effect), s.is_own)
    assert s.own_level(0, 0) == "odd"
    assert s.n_evaluations.tolist() == [5 * 512, 4 * 512, 4 * 512, 4 * 512]

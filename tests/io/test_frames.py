"""Explanations as data frames: every number in its place, in every library."""

import dataclasses

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known
from smoothlime.io import frames

V = np.array([0.7, -0.4, 0.3])
X = np.random.default_rng(0).normal(size=(4, 3))
F = known.Sine(V, 0.3)


def explain(function=F, x=X, **more):
    return sl.explain(function, x, **{"sigma": 0.6, "n_samples": 128, "method": "clime", **more})


class TestFrames:
    @pytest.mark.parametrize("library", frames.LIBRARIES)
    def test_tidy_has_a_line_per_row_and_feature(self, library):
        import narwhals as nw

        e = explain(sl.as_model(F.values, feature_names=("a", "b", "c")))
        native = e.to_frame(library=library, confidence=0.9)
        assert type(native).__module__.partition(".")[0] == library
        table = nw.from_native(native)
        names = ["row", "output", "feature", "x", "slope", "standardised", "standard_error", "lower", "upper"]
        assert table.columns == names
        assert table["row"].to_list() == np.repeat(np.arange(4), 3).tolist()
        assert table["feature"].to_list() == ["a", "b", "c"] * 4
        assert set(table["output"].to_list()) == {"output"}
        lower, upper = e.interval(0.9)
        expected = [e.x, e.values, e.standardised, e.standard_error, lower, upper]
        for name, each in zip(names[3:], expected, strict=True):
            np.testing.assert_array_equal(table[name].to_numpy().reshape(4, 3), each)

    @pytest.mark.parametrize("library", frames.LIBRARIES)
    def test_wide_has_a_line_per_row(self, library):
        import narwhals as nw

        e = explain(sl.as_model(F.values, feature_names=("a", "b", "c")))
        table = nw.from_native(e.to_frame("wide", library=library))
        fields = ["prediction", "smoothed", "fidelity", "radius", "converged", "n_samples"]
        assert table.columns == ["row", "output", *fields, "a", "a_se", "b", "b_se", "c", "c_se"]
        for name in fields:
            np.testing.assert_array_equal(table[name].to_numpy(), getattr(e, name))
        for j, name in enumerate("abc"):
            np.testing.assert_array_equal(table[name].to_numpy(), e.values[:, j])
            np.testing.assert_array_equal(table[f"{name}_se"].to_numpy(), e.standard_error[:, j])
        assert table.schema["converged"] == nw.Boolean
        assert table.schema["n_samples"] == nw.Int64

    @pytest.mark.parametrize("library", frames.LIBRARIES)
    @pytest.mark.parametrize("kind", ["tidy", "wide"])
    def test_no_rows_keep_their_types(self, library, kind):
        import narwhals as nw

        some, none = (nw.from_native(e.to_frame(kind, library=library)) for e in (explain(), explain()[0:0]))
        assert none.shape == (0, some.shape[1])
        assert none.schema == some.schema

    def test_fixed_features_are_left_out(self):
        e = explain(sigma=sl.Neighbourhood(0.6, fixed=[1]))
        assert e.to_frame()["feature"].tolist() == ["x0", "x2"] * 4
        assert "x1" not in e.to_frame("wide").columns
        np.testing.assert_array_equal(e.to_frame()["slope"].to_numpy().reshape(4, 2), e.values[:, [0, 2]])

    def test_how_often_features_were_selected_is_shown_where_known(self):
        e = dataclasses.replace(explain(), selected=np.arange(12.0).reshape(4, 3))
        np.testing.assert_array_equal(e.to_frame()["selected"], np.arange(12.0))
        assert "selected" not in explain().to_frame().columns

    def test_frames_come_in_the_library_of_the_rows(self):
        for library in ("pandas", "polars", "pyarrow", "", "dask"):
            e = explain()
            e = dataclasses.replace(e, provenance=dataclasses.replace(e.provenance, backend=library))
            expected = library if library in frames.LIBRARIES else "pandas"
            assert type(e.to_frame()).__module__.partition(".")[0] == expected
            assert type(e.to_frame(library="polars")).__module__.partition(".")[0] == "polars"

    @pytest.mark.parametrize(
        ("names", "twice"), [(("row", "b", "c"), "row"), (("a", "radius", "c"), "radius"), (("a", "a_se", "c"), "a_se")]
    )
    def test_names_that_would_stand_twice_are_refused(self, names, twice):
        e = explain(sl.as_model(F.values, feature_names=names))
        with pytest.raises(errors.InvalidArgument, match=f"two columns '{twice}', one of them for .* Use kind='tidy'"):
            e.to_frame("wide")
        assert len(e.to_frame()) == 12

    def test_unknown_words_are_refused(self):
        with pytest.raises(errors.InvalidArgument, match="kind must be one of 'tidy', 'wide'; got 'long'"):
            explain().to_frame("long")
        with pytest.raises(errors.InvalidArgument, match="library must be one of 'pandas', 'polars', 'pyarrow'"):
            explain().to_frame(library="duckdb")
        with pytest.raises(errors.InvalidArgument, match="confidence must lie strictly between 0 and 1"):
            explain().to_frame(confidence=95)

    def test_a_missing_library_names_the_others(self, hide):
        hide("pandas")
        with pytest.raises(
            errors.MissingExtra, match=r"pandas is needed .* or ask for library='polars' or library='pya"
        ):
            explain().to_frame()
        assert explain().to_frame(library="polars").shape == (12, 9)

    def test_a_broken_library_shows_its_own_error(self, monkeypatch):
        def broken(name):
            raise ModuleNotFoundError("No module named 'inner'", name="inner")

        monkeypatch.setattr("importlib.import_module", broken)
        with pytest.raises(ModuleNotFoundError, match="inner") as caught:
            explain().to_frame()
        assert not isinstance(caught.value, errors.MissingExtra)

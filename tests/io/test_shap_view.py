"""The two readings of an explanation in shap: what they hold, and that shap's plots draw them."""

import re

import matplotlib
import numpy as np
import pandas as pd
import pytest

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known

matplotlib.use("Agg")

V = np.array([0.7, -0.4, 0.3])
X = np.random.default_rng(0).normal(size=(6, 3))
NAMES = ("age", "debt", "income")
REFERENCE = [0.5, -0.5, 0.25]


def explain(function=known.Sine(V, 0.3), x=X, **more):  # noqa: B008 (never changed)
    model = sl.as_model(function.values, feature_names=NAMES)
    return sl.explain(model, x, **{"sigma": 0.6, "n_samples": 128, "method": "clime", **more})


@pytest.fixture(params=[False, True], ids=["all features", "one fixed"])
def sigma(request):
    return sl.Neighbourhood([0.6, 0.3, 1.0], fixed=["debt"] if request.param else [])


@pytest.fixture
def shap():
    import shap  # takes two seconds: only where plots are drawn

    return shap


@pytest.fixture
def figure():
    """A fresh figure; asks for what was drawn on it."""
    from matplotlib import pyplot

    pyplot.close("all")
    yield pyplot.figure
    pyplot.close("all")


class TestSlopes:
    def test_slopes_are_standardised_and_bring_their_errors(self, sigma):
        e = explain(sigma=sigma)
        s = e.to_shap()
        lower, upper = e.interval(0.95)
        expected = {
            "values": e.standardised,
            "error_std": e.standard_error * e.std,
            "lower_bounds": lower * e.std,
            "upper_bounds": upper * e.std,
        }
        for name, each in expected.items():
            np.testing.assert_allclose(getattr(s, name), np.nan_to_num(each), rtol=1e-12, err_msg=name)
        np.testing.assert_array_equal(s.data, e.x)
        assert s.feature_names == list(NAMES)
        assert s.output_names == "output"
        assert s.shape == (6, 3)
        assert s[2].values.shape == s[2].error_std.shape == (3,)

    def test_slopes_take_no_reference(self):
        with pytest.raises(errors.InvalidArgument, match="slopes are not measured from anywhere"):
            explain().to_shap(reference=REFERENCE)


class TestContributions:
    @pytest.mark.parametrize("method", ["clime", "differences"])
    def test_they_add_up_to_the_model_at_the_row(self, sigma, method):
        e = explain(sigma=sigma, method=method)
        s = e.to_shap("contributions", reference=REFERENCE)
        at_row = e.prediction if method == "differences" else e.smoothed  # differences do not see F
        assert np.isfinite(at_row).all()
        np.testing.assert_allclose(s.base_values + s.values.sum(axis=1), at_row, rtol=1e-14, atol=1e-15)
        steps = X - REFERENCE
        np.testing.assert_allclose(s.values, np.nan_to_num(e.values) * steps, rtol=1e-12)
        np.testing.assert_allclose(s.error_std, np.nan_to_num(e.standard_error) * abs(steps), rtol=1e-12)
        assert (s.lower_bounds <= s.values).all()
        assert (s.values <= s.upper_bounds).all()
        lower, upper = e.interval()
        np.testing.assert_allclose(
            s.upper_bounds - s.lower_bounds, np.nan_to_num(upper - lower) * abs(steps), atol=1e-14
        )

    def test_the_base_is_the_line_at_the_reference(self):
        """For a linear model that is the model there."""
        line = known.Linear(V, 0.4)
        s = explain(line).to_shap("contributions", reference=REFERENCE)
        np.testing.assert_allclose(s.base_values, line.values(np.array([REFERENCE])).item(), rtol=1e-10)

    def test_references_come_in_many_forms(self):
        import pandas
        import polars
        import pyarrow

        e = explain()
        expected = e.to_shap("contributions", reference=REFERENCE)
        by_name = dict(zip(NAMES, REFERENCE, strict=True))
        turned = dict(reversed(by_name.items()))
        for reference in (
            np.array(REFERENCE),
            np.array([REFERENCE]),
            by_name,
            turned,
            pandas.DataFrame([turned]),
            pandas.DataFrame([turned], index=["somewhere"]),
            pandas.Series(turned),
            polars.DataFrame([turned]),
            pyarrow.Table.from_pylist([turned]),
            pandas.DataFrame([by_name, by_name]).mean(),
        ):
            s = e.to_shap("contributions", reference=reference)
            np.testing.assert_array_equal(s.values, expected.values)
            np.testing.assert_array_equal(s.base_values, expected.base_values)

    def test_a_reference_is_found_by_labels_that_are_no_strings(self):
        import pandas

        frame = pandas.DataFrame([[1.0, 2.0]], columns=[1, 0])
        e = sl.explain(known.Linear([3.0, 5.0]), frame, n_samples=64)
        s = e.to_shap("contributions", reference=pandas.DataFrame([[0.5, 0.25]], columns=[0, 1]))
        np.testing.assert_allclose(s.values, [[3.0 * 0.75, 5.0 * 1.5]])

    def test_fixed_features_need_no_reference(self):
        e = explain(sigma=sl.Neighbourhood(0.6, fixed=["debt"]))
        expected = e.to_shap("contributions", reference=REFERENCE)
        for reference in (
            [0.5, np.nan, 0.25],
            {"age": 0.5, "income": 0.25},
            {"age": 0.5, "debt": "low", "income": 0.25},
        ):
            s = e.to_shap("contributions", reference=reference)
            np.testing.assert_array_equal(s.values, expected.values)
            assert (s.values[:, 1] == 0).all()

    @pytest.mark.parametrize(
        ("reference", "message"),
        [
            (None, "kind='contributions' needs a reference to measure from: one number per feature"),
            (0.0, r"reference must have one number for each of 3 features; got shape \(\)"),
            ([0.0, 1.0], r"one number for each of 3 features; got shape \(2,\)"),
            (X, r"one number for each of 3 features; got shape \(6, 3\)"),
            ({"age": 1.0, "debt": 1.0}, "reference has no 'income'; it must cover every feature that was perturbed"),
            ({"age": 1.0, "debt": 1.0, "income": 1.0, "size": 2.0}, "reference names 'size', which is not a feature"),
            ([0.0, np.nan, 1.0], "reference must be finite; got nan for 'debt'"),
            ({"age": 1.0, "debt": None, "income": np.inf}, "reference must be finite; got nan for 'debt'"),
            ({"age": "old", "debt": 1.0, "income": 1.0}, "reference must hold numbers; got 'old' for 'age'"),
            ({"age": "3", "debt": 1.0, "income": 1.0}, "reference must hold numbers; got '3' for 'age'"),
            (pd.DataFrame({"age": ["3"], "debt": [1.0], "income": [1.0]}), "hold numbers; got '3' for 'age'"),
            (["a", "b", "c"], "reference must hold numbers"),
        ],
    )
    def test_references_that_are_none(self, reference, message):
        with pytest.raises((errors.InvalidArgument, errors.WrongType), match=message):
            explain().to_shap("contributions", reference=reference)

    def test_tables_must_have_one_row(self):
        import pandas

        with pytest.raises(errors.InvalidArgument, match="reference must be a table of one row; got 6"):
            explain().to_shap("contributions", reference=pandas.DataFrame(X, columns=NAMES))

    def test_combined_rows_have_no_contributions(self):
        e = explain()
        with pytest.raises(errors.InvalidArgument, match="combines different rows, so there is no x to measure from"):
            (e[0] - e[1]).to_shap("contributions", reference=REFERENCE)
        assert np.isnan((e[0] - e[1]).to_shap().data).all()


class TestScales:
    def test_contributions_count_in_logarithms(self):
        """Of log a + 2 log b: log(a / a₀) and 2 log(b / b₀), from the model at the reference."""
        x, at = np.exp(X), np.array([1.0, 0.5, 2.0])

        def f(a):
            return np.log(a[:, 0]) + 2 * np.log(a[:, 1]) + 3 * a[:, 2]

        e = sl.explain(f, x, sigma=0.1, scale={0: "log", 1: "log"}, method="clime", n_samples=256)
        s = e.to_shap("contributions", reference=at)
        np.testing.assert_allclose(
            s.values, np.column_stack([np.log(x / at)[:, :2], x[:, 2] - at[2]]) * [1, 2, 3], atol=1e-6
        )
        np.testing.assert_allclose(s.base_values, f(at[None])[0], atol=1e-6)

    def test_contributions_count_in_ranks(self):
        """Of a model that is linear in the ranks: the same for every row, but for its own rank."""
        data = np.exp(np.random.default_rng(3).normal(size=(200, 2)))
        around = sl.Neighbourhood.from_data(data, 0.1, scale="ranks")
        scores = around.row_scales(data).scores

        def f(a):
            return scores(a) @ np.array([1.0, -2.0])

        middle = data[np.abs(scores(data)).max(axis=1) < 1.0]
        e = sl.explain(f, middle[:5], sigma=around, method="clime", n_samples=1_024)
        s = e.to_shap("contributions", reference=middle[7])
        expected = (scores(middle[:5]) - scores(middle[7:8])) * [1, -2]
        reach = 6 * s.error_std + 0.02 * np.abs(expected)
        assert (np.abs(s.values - expected) < reach + 1e-6).all()

    def test_a_reference_that_the_scale_does_not_have(self):
        e = sl.explain(lambda a: np.log(a[:, 0]), np.exp(X), sigma=0.1, scale={0: "log"}, n_samples=256)
        with pytest.raises(
            errors.InvalidArgument, match="reference does not go with the scales of the rows: scale='log' is"
        ):
            e.to_shap("contributions", reference=[-1.0, 0.0, 0.0])


class TestPlots:
    @pytest.mark.parametrize("kind", ["slopes", "contributions"])
    def test_bars_of_one_row_have_the_right_lengths(self, shap, figure, sigma, kind):
        e = explain(sigma=sigma)
        s = e.to_shap(kind, reference=REFERENCE if kind == "contributions" else None)
        figure()
        axes = shap.plots.bar(s[1], show=False)
        axes.figure.canvas.draw()
        found = sorted(bar.get_width() for bar in axes.patches)
        np.testing.assert_allclose(found, sorted(s.values[1]))
        labels = " ".join(label.get_text() for label in axes.get_yticklabels())
        assert all(name in labels for name in NAMES)

    def test_bars_of_many_rows_are_mean_sizes(self, shap, figure, sigma):
        s = explain(sigma=sigma).to_shap()
        figure()
        axes = shap.plots.bar(s, show=False)
        sizes = np.abs(s.values).mean(axis=0)
        found = [bar.get_width() for bar in axes.patches]
        np.testing.assert_allclose(sorted(found), sorted(sizes))
        labels = [label.get_text() for label in axes.get_yticklabels()]
        assert labels[: len(NAMES)] == [NAMES[j] for j in np.argsort(-sizes)]

    @pytest.mark.parametrize("rows", [1, 6])
    @pytest.mark.parametrize("kind", ["slopes", "contributions"])
    def test_beeswarms_have_a_dot_per_row_and_feature(self, shap, figure, sigma, kind, rows):
        s = explain(x=X[:rows], sigma=sigma).to_shap(kind, reference=REFERENCE if kind == "contributions" else None)
        figure()
        axes = shap.plots.beeswarm(s, show=False, plot_size=None)
        axes.figure.canvas.draw()
        dots = [each.get_offsets()[:, 0] for each in axes.collections if len(each.get_offsets())]
        found = np.sort(np.concatenate(dots))
        np.testing.assert_allclose(found, np.sort(s.values.ravel()), atol=1e-12)

    @pytest.mark.parametrize("rows", [1, 6])
    def test_waterfalls_end_at_the_model(self, shap, figure, sigma, rows):
        e = explain(x=X[:rows], sigma=sigma)
        s = e.to_shap("contributions", reference=REFERENCE)
        figure()
        axes = shap.plots.waterfall(s[rows - 1], show=False)
        axes.figure.canvas.draw()
        texts = [text.get_text() for each in axes.figure.axes for text in each.get_xticklabels()]
        for name, value in (("f(x)", e.smoothed), ("E[f(X)]", s.base_values)):  # the first and the last label on top
            written = re.search(re.escape(f"${name}$") + r"\s+\$ = (\S+)\$", " ".join(texts)).group(1)
            assert float(written.replace("−", "-")) == pytest.approx(value[rows - 1], abs=1e-3)
        steps = [float(text.get_text().replace("−", "-")) for text in axes.figure.axes[0].texts]
        np.testing.assert_allclose(sorted(steps), sorted(s.values[rows - 1]), atol=0.006)  # shown with two digits
        labels = " ".join(label.get_text() for label in axes.get_yticklabels())
        assert all(name in labels for name in NAMES)

    def test_waterfalls_draw_the_intervals(self, shap, figure, sigma):
        """At the end of each arrow, from where the lower bound would take it to where the upper one would."""
        s = explain(sigma=sigma, n_samples=64).to_shap("contributions", reference=REFERENCE)[2]
        figure()
        axes = shap.plots.waterfall(s, show=False)
        drawn = [each for part in axes.figure.axes for each in part.collections if hasattr(each, "get_segments")]
        lines = [each.get_segments()[0] for each in drawn]
        found = sorted((float(line[0][0]), float(line[1][0])) for line in lines)
        order = np.argsort(-np.abs(s.values))
        start = float(s.base_values) + s.values.sum() - np.cumsum(s.values[order])
        expected = sorted(zip(start + s.lower_bounds[order], start + s.upper_bounds[order], strict=True))
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert max(high - low for low, high in found) > 0.01

    def test_text_columns_do_not_stop_the_plots(self, shap, figure):
        """A column that was text is fixed, and its x is NaN throughout."""
        import dataclasses

        e = explain(sigma=sl.Neighbourhood(0.6, fixed=["debt"]))
        x = e.x.copy()
        x[:, 1] = np.nan
        e = dataclasses.replace(e, x=x)
        for kind, reference in (("slopes", None), ("contributions", REFERENCE)):
            s = e.to_shap(kind, reference=reference)
            assert np.isfinite(s.values).all()
            assert np.isfinite(s.base_values).all()
            figure()
            shap.plots.bar(s, show=False).figure.canvas.draw()
            figure()
            shap.plots.waterfall(s[0], show=False).figure.canvas.draw()
            figure()
            with pytest.warns(RuntimeWarning, match="All-NaN slice"):  # shap asks for the range of every column
                shap.plots.beeswarm(s, show=False, plot_size=None).figure.canvas.draw()


def test_unknown_readings_are_refused():
    with pytest.raises(errors.InvalidArgument, match="kind must be one of 'slopes', 'contributions'; got 'values'"):
        explain().to_shap("values")


def test_shap_is_an_extra(hide):
    hide("shap")
    with pytest.raises(errors.MissingExtra, match=r"shap is needed to make .* pip install 'smoothlime\[shap\]'"):
        explain().to_shap()

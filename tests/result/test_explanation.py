import dataclasses
import itertools
import re

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known
from smoothlime._core.validate import _may_share, as_float_array

V = np.array([0.7, -0.4, 0.3])
X = np.random.default_rng(0).normal(size=(4, 3))
F, G = known.Sine(V, 0.3), known.Probit(2 * V[::-1], 0.1)


def explain(function=F, x=X, **more):
    settings = {"sigma": 0.6, "n_samples": 512, "method": "clime", "design": "orthogonal"}
    return sl.explain(function, x, **settings | more)


class TestNumbers:
    def test_standardised_slopes_include_sigma(self):
        e = explain(sigma=sl.Neighbourhood(0.5, scale=[1.0, 2.0, 4.0]))
        np.testing.assert_allclose(e.standardised, e.values * [0.5, 1.0, 2.0])

    def test_intervals_are_centred_and_grow_with_confidence(self):
        e = explain()
        widths = []
        for confidence in (0.5, 0.9, 0.99):
            lower, upper = e.interval(confidence)
            np.testing.assert_allclose((lower + upper) / 2, e.values)
            widths.append(upper - lower)
        assert (widths[0] < widths[1]).all()
        assert (widths[1] < widths[2]).all()
        lower, upper = e.interval(0.9, simultaneous=True)
        assert (upper - lower > widths[1]).all()

    def test_a_t_quantile_stands_behind_intervals_across_the_slope(self):
        """Skewness widens along the slope only; across it the interval is the textbook one."""
        from scipy.stats import t

        for design, degrees in (("sobol", 7), ("iid", 31)):
            e = explain(known.Sine([1.0, 0.0, 0.0], 0.3), method="smoothgrad", design=design)
            assert (e.standard_error[:, 1:] == 0).all()
            across = explain(known.Quadratic(np.diag([0.0, 1.0, 1.0]), [1.0, 0, 0]), x=np.zeros(3), design=design)
            lower, upper = across.interval(0.9)
            plain = 2 * t.ppf(0.95, degrees) * across.standard_error
            np.testing.assert_allclose((upper - lower)[:, 1:], plain[:, 1:], rtol=0.02)
            assert (upper - lower >= plain - 1e-12).all()

    def test_the_radius_is_at_most_the_length_of_the_half_widths(self):
        e = explain()
        lower, upper = e.interval(0.95)
        length = np.linalg.norm((upper - lower) / 2 * e.std, axis=1)
        assert ((length / 3 < e.radius) & (e.radius <= length)).all()
        few = explain(n_samples=64, design="iid")
        lower, upper = few.interval(0.95)
        np.testing.assert_allclose(few.radius, np.linalg.norm((upper - lower) / 2 * few.std, axis=1))

    def test_skewed_groups_widen_intervals(self):
        from scipy.stats import t

        e = explain(known.Cubic(V), design="antithetic", n_samples=1_024)
        lower, upper = e.interval(0.95)
        plain = 2 * t.ppf(0.975, 31) * e.standard_error
        assert ((upper - lower) > 1.05 * plain).any()

    def test_few_draws_are_marked_indicative(self):
        assert explain(n_samples=64).is_indicative.all()
        assert "indicative" in str(explain(n_samples=64))
        assert not explain().is_indicative.any()
        assert "approximate" in str(explain())

    def test_fixed_features_have_no_slope(self):
        e = explain(sigma=sl.Neighbourhood(0.6, fixed=(1,)))
        assert np.isnan(e.values[:, 1]).all()
        assert np.isnan(e.standardised[:, 1]).all()
        assert np.isfinite(e.radius).all()
        np.testing.assert_array_equal(e.perturbations(0)[:, 1], X[0, 1])
        free = known.Sine(V[[0, 2]], 0.3 + X[0, 1] * V[1])
        same = explain(free, X[:1, [0, 2]])
        np.testing.assert_allclose(e.values[0, [0, 2]], same.values[0], rtol=1e-12)

    def test_a_background_gives_scales(self):
        e = explain(sigma=0.5, background=X)
        np.testing.assert_allclose(e.std, 0.5 * X.std(axis=0, ddof=1))

    def test_counts(self):
        e = explain(design="orthogonal", n_samples=500)
        assert e.n_samples.tolist() == [504] * 4
        assert e.n_evaluations.tolist() == [509, 506, 506, 506]  # the first row was asked beside two points too
        assert not e.is_exact
        assert (e.method, e.design, e.seed) == ("clime", "orthogonal", 0)


class TestRows:
    def test_slices_keep_their_draws(self):
        e = explain(draws="independent")
        assert len(e) == 4
        for part, rows in ((e[2], [2]), (e[-1], [3]), (e[1:3], [1, 2]), (e[[3, 0]], [3, 0])):
            np.testing.assert_array_equal(part.values, e.values[rows])
            np.testing.assert_array_equal(part.radius, e.radius[rows])
            np.testing.assert_array_equal(part.perturbations(0), e.perturbations(rows[0]))
        assert [len(row) for row in e] == [1] * 4
        assert len(e[0:0]) == 0
        assert "seed 0" in str(e[0:0])

    def test_missing_rows_say_how_many_there_are(self):
        with pytest.raises(IndexError, match="row 4 is out of range; this explanation has 4 rows"):
            explain()[4]
        with pytest.raises(IndexError, match="row -5 is out of range"):
            explain().perturbations(-5)

    @pytest.mark.parametrize("row", [1.5, 1.0, "1", True, np.array([0, 1])])
    def test_what_is_no_position_is_refused(self, row):
        e = explain()
        for ask in (e.perturbations, e.plot):
            with pytest.raises(errors.WrongType, match="row must be a position, which is a whole number; got "):
                ask(row)


class TestOwnMemory:
    """What the caller does to arrays later does not reach what was made of them."""

    @pytest.mark.parametrize("model", [F, LinearRegression().fit(X, X @ V)], ids=["drawn", "exact"])
    @pytest.mark.parametrize("as_rows", [np.array, torch.tensor, np.asfortranarray, lambda x: np.array(x)[0]])
    def test_rows_and_sigma_are_copied(self, model, as_rows):
        rows, sigma, data = as_rows(X), np.array([0.5, 1.0, 2.0]), np.array(X)
        more = {} if model is not F else {"n_samples": 64, "method": "clime"}
        e = sl.explain(model, rows, sigma=sigma, background=data, **more)
        before = e.to_json()
        rows += 10
        sigma *= 5
        data *= 3
        assert e.to_json() == before
        np.testing.assert_array_equal(e.x, X[: len(e)])
        np.testing.assert_array_equal(e.neighbourhood.sigma, [0.5, 1.0, 2.0])

    @pytest.mark.parametrize("as_scale", [np.array, torch.tensor, pd.Series])
    def test_a_neighbourhood_is_of_its_own(self, as_scale):
        sigma, scale, covariance = as_scale([1.0, 2.0]), as_scale([3.0, 4.0]), np.eye(2)
        around, correlated = sl.Neighbourhood(sigma, scale=scale), sl.Neighbourhood(covariance=covariance)
        for given in (sigma, scale, covariance):
            given *= 7
        assert around == sl.Neighbourhood([1.0, 2.0], scale=[3.0, 4.0])
        assert correlated == sl.Neighbourhood(covariance=np.eye(2))

    def test_predictions_are_not_the_models_own(self):
        answers = np.empty(10_000)

        def function(a):
            answers[: len(a)] = a @ V
            return answers[: len(a)]

        e = explain(function)
        answers[:] = 0
        np.testing.assert_allclose(e.prediction, X @ V)

    def test_what_a_conversion_has_copied_is_not_copied_again(self):
        for given in (X.astype(np.float32), torch.tensor(X, dtype=torch.float32), X.tolist(), np.ma.array(X)):
            array = as_float_array(given, "X")
            assert not _may_share(given, array)
        assert _may_share(X, as_float_array(X, "X"))


class TestArithmetic:
    def test_common_draws_combine_exactly(self):
        e = explain()
        np.testing.assert_allclose((e - e).standard_error, 0, atol=1e-15)
        np.testing.assert_allclose((e + e).standard_error, (2 * e).standard_error)
        np.testing.assert_allclose((e / 2 - e * 0.5).values, 0, atol=1e-15)
        np.testing.assert_allclose((-e).values, -e.values)
        assert (2 * e - explain(G)).output_name == "2·output − output"

    def test_neighbouring_rows_differ_by_less_than_their_errors(self):
        """Shared draws cancel between rows; this is what makes explanations of neighbours comparable."""
        e = explain(x=[X[0], X[0] + 1e-3])
        assert ((e[0] - e[1]).standard_error < 0.01 * e.standard_error[:1]).all()

    def test_different_draws_add_their_errors_and_say_so(self):
        e = explain()
        for other in (explain(seed=1), explain(n_samples=1_024), explain(method="stein", design="iid")):
            with pytest.warns(errors.ErrorsAdded, match="their errors are added"):
                both = e - other
            assert (both.standard_error >= (e.standard_error + other.standard_error) * (1 - 1e-12)).all()
            for miss in (0.05, 0.05 / 3):  # for each feature, and for all three together
                widths, parts = both.half_width(miss), e.half_width(miss) + other.half_width(miss)
                assert (widths >= parts * (1 - 1e-12)).all()
            assert (widths <= parts * 1.25).all()  # the fewer degrees of freedom count for both
        apart = explain(draws="independent")
        with pytest.warns(errors.ErrorsAdded):
            _ = apart[0] - apart[1]

    def test_the_fewer_groups_decide_where_errors_are_added(self):
        nets, draws = explain(design="sobol"), explain(design="iid")  # of 8 and 32 groups
        for one, other in ((nets, draws), (draws, nets)):
            with pytest.warns(errors.ErrorsAdded):
                both = one - other
            np.testing.assert_array_equal(both.degrees_of_freedom, 7)
            assert (both.half_width(0.05) >= (one.half_width(0.05) + other.half_width(0.05)) * (1 - 1e-12)).all()

    def test_what_is_known_exactly_adds_no_error_and_takes_none_away(self):
        tail = sl.from_functions(
            values=lambda a: np.exp(1.5 * a[:, 0]), gradients=lambda a: 1.5 * np.exp(1.5 * a) * [1.0, 0.0]
        )
        x = np.zeros((5, 2))
        e = sl.explain(tail, x, method="smoothgrad", design="iid", n_samples=256, draws="independent")
        line = sl.explain(LinearRegression().fit(np.eye(2), [1.0, 2.0]), x)
        assert (e.half_width(0.05) > 2.1 * e.standard_error)[:, 0].any()  # groups are skewed
        for both, slopes in ((e - line, e.values - line.values), (line - e, line.values - e.values)):
            np.testing.assert_allclose(both.values, slopes, rtol=1e-12)
            np.testing.assert_allclose(both.standard_error, e.standard_error, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(both.half_width(0.05), e.half_width(0.05), rtol=1e-9)
            assert both.provenance.confidence == e.provenance.confidence
            np.testing.assert_array_equal(both.perturbations(3), e.perturbations(3))
        np.testing.assert_allclose((line - e + e).standard_error, 0.0, atol=1e-12)  # the same draws, with their sign
        back = e - line + line
        np.testing.assert_allclose(back.half_width(0.05), e.half_width(0.05), rtol=1e-9)

    def test_aligned_draws_are_kept_beside_what_is_exact(self):
        e = sl.explain(F, X[0], n_samples=256)
        line = sl.explain(LinearRegression().fit(np.eye(3), [1.0, 2.0, 3.0]), X[0])
        assert e.directions is not None
        np.testing.assert_array_equal((line - e).perturbations(), e.perturbations())

    def test_added_errors_stay_added(self):
        with pytest.warns(errors.ErrorsAdded):
            mixed = explain() - explain(seed=1)
        with pytest.warns(errors.ErrorsAdded):
            again = mixed + explain()
        assert (again.standard_error > mixed.standard_error).all()
        with pytest.raises(errors.InvalidArgument, match="has no perturbations of its own"):
            mixed.perturbations(0)

    def test_combinations_of_rows_have_no_perturbations(self):
        e = explain()
        with pytest.raises(errors.InvalidArgument, match="has no perturbations of its own"):
            (e[0] - e[1]).perturbations(0)
        np.testing.assert_array_equal((2 * e).perturbations(1), e.perturbations(1))

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            (explain(sigma=0.5), "different neighbourhoods"),
            (explain(x=X[:2]), "have 4 and 2 rows"),
            (explain(sl.as_model(F.values, feature_names=("a", "b", "c"))), "different features"),
        ],
    )
    def test_what_cannot_be_combined_is_refused(self, other, message):
        with pytest.raises(errors.IncompatibleExplanations, match=message):
            explain() - other

    def test_sums_begin_at_nothing(self):
        e = explain()
        np.testing.assert_allclose(sum([e, e, e]).values, 3 * e.values)

    def test_groups_dealt_differently_do_not_combine(self):
        """The same draws in pairs or in whole bases: equal values, different groups."""
        function, x = known.Sine(np.linspace(-0.5, 0.6, 16), 0.3), np.zeros(16)
        whole = sl.explain(function, x, method="differences", n_samples=1_024)
        with pytest.warns(errors.NotConverged):
            pairs = sl.explain(function, x, method="differences", rtol=1e-6, atol=0, max_samples=1_024)
        np.testing.assert_allclose(whole.values, pairs.values, rtol=1e-9)
        with pytest.warns(errors.ErrorsAdded):
            _ = whole - pairs

    def test_numpy_numbers_multiply_from_the_left(self):
        e = explain()
        np.testing.assert_allclose((np.float64(2) * e).values, 2 * e.values)

    @pytest.mark.parametrize(
        "factor",
        [np.nan, -np.inf, np.float32("nan"), np.complex128(1j), np.timedelta64(2), pytest.param(10**400, id="huge")],
    )
    def test_factors_are_finite_real_numbers(self, factor):
        kind = errors.WrongType if isinstance(factor, np.complex128 | np.timedelta64) else errors.InvalidArgument
        for multiply in (lambda e: e * factor, lambda e: factor * e):
            with pytest.raises(kind, match="an explanation can be multiplied by a finite real number; got "):
                multiply(explain())

    @pytest.mark.parametrize("divisor", [np.nan, np.inf, -np.inf, np.complex128(1j), pytest.param(10**400, id="huge")])
    def test_divisors_are_finite_real_numbers(self, divisor):
        kind = errors.WrongType if isinstance(divisor, np.complex128) else errors.InvalidArgument
        with pytest.raises(kind, match="an explanation can be divided by a finite real number; got "):
            explain() / divisor

    @pytest.mark.parametrize("divisor", [5e-324, -1e-310])
    def test_divisors_have_a_reciprocal(self, divisor):
        with pytest.raises(errors.InvalidArgument, match=f"divided by numbers of 5.6e-309 or more.*; got {divisor:g}"):
            explain() / divisor

    def test_numbers_divide_and_nothing_else_does(self):
        e = explain()
        np.testing.assert_array_equal((e / np.float32(4)).values, e.values / 4)
        for nothing in (0, 0.0, np.float64(0)):
            with pytest.raises(ZeroDivisionError):
                e / nothing
        for other in (e, "2", None, True):
            with pytest.raises(TypeError, match=r"unsupported operand type.* 'Explanation' and"):
                e / other

    def test_equal_neighbourhoods_combine_however_they_were_written(self):
        both = explain(sigma=[0.6, 0.6, 0.6]) - explain(sigma=0.6)
        np.testing.assert_allclose(both.values, 0, atol=1e-12)

    def test_numbers_are_not_explanations(self):
        with pytest.raises(TypeError):
            explain() + 1
        with pytest.raises(TypeError):
            explain() * "2"


class TestShown:
    def test_text_names_what_is_needed(self):
        text = str(explain(sl.as_model(F.values, feature_names=("age", "income", "debt"))))
        for word in ("row 0", "age", "income", "±", "clime", "516", "orthogonal", "seed 0", "linear nearby"):
            assert word in text, word
        assert "2 more rows" in str(explain(x=np.zeros((7, 3))))
        assert str(explain()[0]).count("\n") < 10

    def test_largest_slopes_come_first_and_uncertain_signs_are_said(self):
        text = str(explain(known.Linear([0.1, -2.0, 1.0]), x=X[0]))
        assert text.index("x1") < text.index("x2") < text.index("x0")
        noisy = explain(known.Sine([3.0, 0.0, 0.0]), x=X[0], n_samples=64)
        assert "sign uncertain" in str(noisy)

    def test_slopes_beyond_all_numbers_are_shown_all_the_same(self):
        e = explain(x=X[0])
        beyond = dataclasses.replace(e, values=np.full_like(e.values, np.inf), groups=None)
        assert "3 smaller ones" in str(beyond)

    def test_many_features_are_cut_short(self):
        e = sl.explain(lambda a: a.sum(axis=1), np.zeros(20), n_samples=128)
        assert "... and 8 smaller ones" in str(e)
        fixed = sl.explain(lambda a: a.sum(axis=1), np.zeros(3), sigma=sl.Neighbourhood(fixed=[0]), n_samples=128)
        assert "(1 feature held fixed)" in str(fixed)

    def test_html_escapes_names(self):
        evil = sl.as_model(F.values, feature_names=("<script>alert(1)</script>", 'a"b', "c&d"))
        html = explain(evil)._repr_html_()
        assert "<script>" not in html
        assert "&lt;script&gt;" in html
        assert "c&amp;d" in html

    def test_rich_prints_it(self):
        from rich.console import Console

        console = Console(record=True, width=120, file=open("/dev/null", "w"))  # noqa: SIM115 (recorded, not written)
        console.print(explain(sl.as_model(F.values, feature_names=("[bold]a", "b", "c"))))
        text = console.export_text()
        assert "[bold]a" in text
        assert "seed 0" in text
        console.file.close()

    def test_names_with_line_breaks_stay_on_their_line(self):
        e = explain(sl.as_model(F.values, feature_names=("a\nb", "c", "d")), x=X[0])
        assert "a b" in str(e)

    @pytest.mark.parametrize(
        ("value", "error", "text"),
        [
            (1.23456, 0.0123, "+1.235 ± 0.012"),
            (-1.2, 0.5, "-1.20 ± 0.50"),
            (12345.0, 50.0, "+12345 ± 50"),
            (2.0, 0.0, "+2.00000 ± 0.00000"),
            (0.0, 0.0, "+0.0000 ± 0.0000"),
            (2.0, 1.3e-15, "+2.00000 ± 1.3e-15"),
            (2e-5, 1e-18, "+2.000e-05 ± 1.0e-18"),
            (1.5e9, 2e7, "+1.500e+09 ± 2.0e+07"),
            (np.nan, np.nan, "+nan ± nan"),
        ],
    )
    def test_numbers_show_the_digits_their_error_warrants(self, value, error, text):
        from smoothlime.plots.numbers import number

        assert number(value, error) == text

    def test_a_model_that_does_not_move_is_called_so(self):
        e = sl.explain(lambda a: np.zeros(len(a)), X[0], method="clime")
        assert "the model did not change over the draws" in str(e)

    def test_errors_are_shown_as_zero_only_where_they_are(self):
        wide = lambda a: 1e12 * a[:, 0] + 1e-9 * a[:, 1]  # beside the first slope, rounding hides the second
        e = sl.explain(wide, [[1e6, 1e-6]], sigma=[1e5, 1e-7], method="clime")
        for text in (str(e), e._repr_html_()):
            shown = [float(each) for each in re.findall(r"± ([\d.e+-]+)", text.rpartition("</svg>")[2])]
            half = e.half_width(0.05)[0]
            np.testing.assert_allclose(shown[:2], half[0] * np.array([1.0, e.std[0]]), rtol=0.05)
            within = abs(e.values[0, 1]) + half[1]  # what rounding leaves: of one digit, whatever it happens to be
            np.testing.assert_allclose(shown[2:4], within * np.array([1.0, e.std[1]]), rtol=0.34)

    def test_what_rounding_leaves_has_no_sure_sign(self):
        slopes, error = np.array([[1.0, 3e-17, 0.5]]), np.array([[0.1, 1e-18, 0.1]])
        e = dataclasses.replace(explain(x=X[0]), values=slopes, standard_error=error, groups=None)
        assert re.search(r"x1 +0 ± 3e-17 .*sign uncertain", str(e))
        assert str(e).count("sign uncertain") == 1

    def test_exact_slopes_are_shown_however_small(self):
        line = LinearRegression().fit(np.eye(2), [1.0, 2.0])
        line.coef_ = np.array([1e12, 1e-9])
        assert "+1e-09" in str(sl.explain(line, [1.0, 1.0]))

    def test_repr_is_one_line(self):
        assert repr(explain()) == "<Explanation of 'output': 4 × 3 slopes, clime, orthogonal draws>"
        assert (
            repr(explain(method="differences", design="auto")) == "<Explanation of 'output': 4 × 3 slopes, differences>"
        )


class TestPlot:
    def test_bars_show_slopes_with_error_bars_and_grey_where_unsure(self):
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        from smoothlime.plots.bars import UNSURE

        e = explain(known.Sine([2.0, -1.0, 0.0]), x=[[0.1, 0.2, 0.3]])
        lower, upper = e.interval()
        assert lower[0, 2] < 0 < upper[0, 2]
        axes = e.plot()
        bars = axes.patches
        by_name = dict(zip([t.get_text().split(" = ")[0] for t in axes.get_yticklabels()], bars, strict=True))
        for name, slope in zip(e.feature_names, e.standardised[0], strict=True):
            assert by_name[name].get_width() == pytest.approx(slope)
        assert matplotlib.colors.same_color(by_name["x2"].get_facecolor(), UNSURE)
        assert not matplotlib.colors.same_color(by_name["x0"].get_facecolor(), UNSURE)
        segments = axes.collections[0].get_segments()
        shown = sorted(segment[:, 0].tolist() for segment in segments)
        expected = sorted(zip((lower[0] * 0.6).tolist(), (upper[0] * 0.6).tolist(), strict=True))
        np.testing.assert_allclose(shown, expected)
        pyplot.close(axes.figure)

    @pytest.mark.parametrize(("confidence", "words"), [(0.95, "95% "), (0.995, "99.5% "), (0.999, "99.9% ")])
    def test_pictures_say_their_confidence_in_full(self, confidence, words):
        from matplotlib import pyplot

        assert f"; {words}intervals" in " ".join(explain().plot(0, confidence=confidence).get_xlabel().split())
        path = sl.sigma_path(F, X[0], [0.5, 1.0], n_samples=64)
        assert f"; {words}bands" in path.plot(confidence=confidence)[1].get_xlabel()
        pyplot.close("all")

    def test_pictures_are_drawn_into_one_axes(self):
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(1, 2)
        for wrong in (axes, figure, "left", pyplot):
            with pytest.raises(errors.WrongType, match=r"ax must be one Axes of matplotlib.*as in axes\[0\]"):
                explain().plot(ax=wrong)
        pyplot.close(figure)

    @pytest.mark.parametrize("most", [0, -1, True, 2.5, "all"])
    def test_a_picture_has_at_least_one_bar(self, most):
        from matplotlib import pyplot

        with pytest.raises(errors.SmoothlimeError, match="most must be a whole number"):
            explain().plot(0, most=most)
        assert len(explain().plot(0, most=2).patches) == 2
        pyplot.close("all")

    def test_plots_go_where_they_are_told_and_take_odd_names(self):
        from matplotlib import pyplot

        figure, axes = pyplot.subplots()
        e = explain(sl.as_model(F.values, feature_names=("$x_1$", "a" * 60, "b\nc")))
        assert e.plot(2, ax=axes) is axes
        figure.canvas.draw()
        pyplot.close(figure)


def test_progress_is_silent_where_there_is_no_console(monkeypatch):
    from smoothlime._core import progress as _progress

    monkeypatch.setattr(_progress, "SHOW_AFTER", -1.0)
    monkeypatch.setattr("sys.stderr", None)
    for progress in ("auto", True):
        with _progress.Progress(progress, 10) as watch:
            watch.advance(10)


def test_progress_is_reported_to_a_callable_and_adds_up():
    seen = []
    explain(progress=lambda done, total: seen.append((done, total)), batch_size=100)
    assert seen[-1][0] == seen[-1][1] == 4 * 512 + 4 * 4  # orthogonal blocks of 6: 516 draws
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_bar_appears_only_when_work_is_long(monkeypatch, capsys):
    from smoothlime._core import progress as _progress

    explain(progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(_progress, "SHOW_AFTER", -1.0)
    explain(progress=True, batch_size=100)
    shown = capsys.readouterr().err
    assert "explaining" in shown
    assert "100%" in shown
    explain(progress=False)
    explain(progress="auto")  # nobody is watching
    assert capsys.readouterr().err == ""


def test_explanations_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        explain().values = 0


def test_missing_extras_say_how_to_get_them(monkeypatch):
    import sys

    class Hidden:
        """A machine without matplotlib: the import system finds nothing."""

        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "matplotlib":
                raise ModuleNotFoundError(f"No module named {name!r}", name="matplotlib")

    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Hidden(), *sys.meta_path])
    with pytest.raises(errors.MissingExtra, match=r"pip install 'smoothlime\[plot\]'"):
        explain().plot()


def test_a_broken_extra_shows_its_own_error(monkeypatch):
    from smoothlime._core.optional import require

    def broken(name):
        raise ModuleNotFoundError("No module named 'inner'", name="inner")

    monkeypatch.setattr("importlib.import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="inner") as caught:
        require("outer", extra="plot", to="draw")
    assert not isinstance(caught.value, errors.MissingExtra)


def test_automatic_choices_are_recorded(elu_network):
    chosen = {
        (e.method, e.design)
        for e in (
            sl.explain(elu_network, X, target=0),
            sl.explain(elu_network, X, target=0, n_samples=50),
            sl.explain(F.values, X),
            sl.explain(F.values, X, n_samples=100),
            sl.explain(F.values, X, method="clime", n_samples=1_000),
            sl.explain(F.values, X, method=sl.CLime(ridge=0.1)),
        )
    }
    assert chosen == {
        ("smoothgrad", "aligned"),
        ("smoothgrad", "orthogonal"),
        ("clime", "aligned"),
        ("differences", "differences"),
        ("clime", "sobol"),
        ("clime", "orthogonal"),
    }


@pytest.mark.parametrize("count", [1, 300])
def test_default_draws_suffice_for_any_number_of_features(count):
    e = sl.explain(lambda a: a.sum(axis=1), np.zeros(count))
    assert e.n_samples[0] >= max(256, 4 * count)
    np.testing.assert_allclose(e.values, 1, rtol=1e-9)


def test_every_iteration_is_independent_of_order():
    assert [row.values.tolist() for row in explain()] == [e.values.tolist() for e in itertools.islice(explain(), 4)]

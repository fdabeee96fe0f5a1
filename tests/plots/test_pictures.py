"""Every picture shows the numbers of its result, with errors, whatever is in it."""

import dataclasses
import subprocess
import sys
import warnings
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import same_color, to_hex
from matplotlib.container import ErrorbarContainer
from sklearn.linear_model import LinearRegression

import smoothlime as sl
from smoothlime import errors, plots
from smoothlime.plots.style import GAP, GROUPS, LOWERS, RAISES, UNSURE
from smoothlime.testing import Sine, Step

ODD = ("<script>alert(1)</script>", "$x_{1}$ \\frac", "nul\x00 \x1b[2J\u202e", "w" * 300, "größe é")
"""Names that must be drawn as they are; no font here has wider scripts"""

KINDS = (
    "bars", "heat", "beeswarm", "effects", "groups", "waterfall", "comparison", "comparisons", "convergence", "curve",
    "path", "interactions",
)  # fmt: skip


LINE = LinearRegression().fit(np.eye(2), [1.0, 2.0])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def explain(names=("age", "debt", "noise"), rows=4, **settings):
    weights = np.array([2.0, -1.0, 0.0, 0.5, 0.25])[: len(names)]
    x = np.random.default_rng(0).normal(size=(rows, len(names)))
    model = sl.from_functions(values=lambda a: np.tanh(a @ weights), feature_names=names)
    return sl.explain(model, x, **({"method": "clime", "n_samples": 512, "sigma": 0.5} | settings))


def contributions(names=("age", "debt", "noise"), rows=2, n=256):
    model = sl.from_functions(
        values=lambda a: np.tanh(a @ [2.0, -1.0, 0.0, 0.5, 0.25][: len(names)]), feature_names=names
    )
    x = np.random.default_rng(0).normal(size=(rows, len(names)))
    return sl.contributions(model, x, baseline=np.full(len(names), 0.2), sigma=0.5, n_samples=n)


def compare(names=("age", "debt", "noise"), rows=2):
    x = np.random.default_rng(0).normal(size=(rows, len(names))) / 4
    old, new = (
        sl.from_functions(values=lambda a, w=w: np.tanh(a @ np.array(w)[: a.shape[1]]), feature_names=names)
        for w in ([2.0, -1.0, 0.0, 0.5, 0.25], [2.0, -0.5, 0.0, 0.5, 0.25])
    )
    return sl.compare(old, new, x, sigma=0.5, n_samples=1_024)


def names_of(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def said(ax):
    return " ".join(ax.get_xlabel().split())


def intervals(ax):
    """Ends of all error bars, by height."""
    found = [each for each in ax.containers if isinstance(each, ErrorbarContainer)]
    return {round(y, 6): (x0, x1) for each in found for (x0, y), (x1, _) in each[2][0].get_segments()}


class TestBars:
    def test_names_values_slopes_and_intervals(self):
        e = explain()
        ax = plots.bars(e, 2, confidence=0.9)
        order = np.argsort(-np.abs(e.standardised[2]))
        assert names_of(ax) == [f"{e.feature_names[j]} = {e.x[2, j]:.4g}" for j in order]
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], e.standardised[2, order])
        assert [bar.get_y() for bar in ax.patches] == sorted((bar.get_y() for bar in ax.patches), reverse=True)
        lower, upper = (end[2] * e.std for end in e.interval(0.9))
        np.testing.assert_allclose(
            [intervals(ax)[-float(i)] for i in range(3)], np.transpose([lower[order], upper[order]])
        )
        expected = [UNSURE if lower[j] <= 0 <= upper[j] else RAISES if lower[j] > 0 else LOWERS for j in order]
        assert [to_hex(bar.get_facecolor()) for bar in ax.patches] == expected
        assert UNSURE in expected

    def test_the_title_says_which_row_and_output_and_how_it_went(self):
        e = explain()
        title = plots.bars(e, 2).get_title("left")
        assert " ".join(title.split()).startswith(
            f"output, row 2 of 4: f(x) = {e.prediction[2]:.4g}, smoothed {e.smoothed[2]:.4g},"
            f" {e.fidelity[2]:.0%} linear nearby"
        )

    def test_the_largest_of_many_are_shown_and_the_rest_counted(self):
        model = sl.from_functions(values=lambda a: a @ np.arange(200.0), feature_names=[f"f{j}" for j in range(200)])
        e = sl.explain(model, np.zeros(200), method="clime", n_samples=1_024)
        ax = e.plot()
        assert names_of(ax)[:2] == ["f199 = 0", "f198 = 0"]
        assert "188 smaller slopes not shown" in said(ax)
        assert "180 smaller features not shown" in said(plots.heat(e))
        assert "188 smaller features not shown" in said(plots.beeswarm(e))
        assert "188 smaller features not shown" in said(plots.effects(e.effects()))


class TestWaterfall:
    def test_bars_lead_from_one_prediction_to_the_other_with_errors_and_both_gaps(self):
        c = contributions()
        ax = c.plot(1)
        bars = dict(zip(names_of(ax), ax.patches, strict=True))
        names = list(bars)
        assert names[0] == "smoothing at the baseline"
        assert names[-2:] == ["residual of drawing", "smoothing at the row"]
        order = np.argsort(np.abs(c.values[1]))
        shown = [j for j in order if c.values[1, j] != 0]
        assert names[1:-2] == [f"{c.feature_names[j]} = {c.x[1, j]:.4g}" for j in shown]
        np.testing.assert_allclose([bars[name].get_width() for name in names[1:-2]], c.values[1, shown])
        assert bars[names[0]].get_x() == pytest.approx(c.base_prediction[1])
        assert bars[names[0]].get_width() == pytest.approx(c.base[1] - c.base_prediction[1])
        last = bars[names[-1]]
        assert last.get_x() + last.get_width() == pytest.approx(c.prediction[1])
        assert last.get_width() == pytest.approx(c.prediction[1] - c.total[1])
        assert [bool(bar.get_hatch()) for bar in bars.values()] == [True, *[False] * len(shown), True, True]
        assert all(same_color(bars[name].get_edgecolor(), GAP) for name in (names[0], names[-1]))
        half = c.half_width()[1]
        for place, j in enumerate(shown, start=1):
            end = bars[names[place]].get_x() + c.values[1, j]
            np.testing.assert_allclose(intervals(ax)[float(place)], (end - half[j], end + half[j]))
        for place, middle, error in (
            (0, c.base[1], c.base_error[1]),
            (len(names) - 1, c.prediction[1], c.total_error[1]),
        ):
            low, high = intervals(ax)[float(place)]  # gaps have errors, too
            assert (low + high) / 2 == pytest.approx(middle)
            assert high - low == pytest.approx(2 * 2.04 * error, rel=0.02)  # Student's t of 31 degrees of freedom

    def test_exact_ones_have_no_error_bars(self):
        line = sl.contributions(LINE, [[1.0, 2.0]], baseline=[0.0, 0.0])
        ax = line.plot()
        assert intervals(ax) == {}
        assert "exact" in ax.get_title("left")


class TestHeat:
    def test_cells_are_slopes_and_open_ones_are_marked(self):
        e = explain(rows=5)
        ax = e.plot()
        order = np.argsort(-np.abs(e.standardised).mean(axis=0))
        np.testing.assert_allclose(ax.images[0].get_array(), e.standardised[:, order])
        assert [each.get_text() for each in ax.get_xticklabels()] == [e.feature_names[j] for j in order]
        lower, upper = (end[:, order] for end in e.interval())
        (marks,) = ax.lines
        expected = {(x, y) for y, x in np.argwhere((lower <= 0) & (upper >= 0)).tolist()}
        assert set(zip(marks.get_xdata().tolist(), marks.get_ydata().tolist(), strict=True)) == expected
        assert expected
        assert f"×: sign uncertain ({len(expected) / 15:.0%})" in said(ax)

    def test_many_cells_are_veiled_and_rows_left_out_counted(self):
        e = explain(rows=70)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys.modules["smoothlime.plots.heat"], "MOST_MARKS", 10)
            ax = e.plot_rows(most=2)
        assert len(ax.images) == 2
        assert not ax.lines
        assert "the first 60 of 70 rows" in said(ax)
        assert "1 smaller feature not shown" in said(ax)
        lower, upper = e.interval()
        order = np.argsort(-np.abs(e.standardised).mean(axis=0))[:2]
        is_open = ((lower <= 0) & (upper >= 0))[:60, order]
        np.testing.assert_array_equal(ax.images[1].get_array()[..., 3] > 0, is_open)

    def test_cells_without_a_slope_are_hatched(self):
        e = sl.explain(lambda a: np.nan_to_num(a).sum(axis=1), [[1.0, np.nan], [1.0, 2.0]], n_samples=256)
        ax = e.plot()
        assert ax.images[0].get_array().mask.sum() == 1
        assert "hatched: no slope" in said(ax)


class TestBeeswarm:
    def test_a_dot_for_each_row_at_its_slope_coloured_by_value(self):
        e = explain(rows=30)
        ax = e.plot(kind="beeswarm")
        order = np.argsort(-np.abs(e.standardised).mean(axis=0))
        assert names_of(ax) == [e.feature_names[j] for j in order]
        for place, j in enumerate(order):
            dots = [each for each in ax.collections if abs(np.mean(each.get_offsets()[:, 1]) + place) < 0.5]
            at = np.concatenate([each.get_offsets()[:, 0] for each in dots])
            shade = np.concatenate([each.get_array() for each in dots])
            np.testing.assert_allclose(np.sort(at), np.sort(e.standardised[:, j]))
            ranks = np.argsort(np.argsort(e.x[:, j])) / 29
            np.testing.assert_allclose(shade[np.argsort(at)], ranks[np.argsort(e.standardised[:, j])])
        boxes = [bar.get_width() for bar in ax.patches]
        np.testing.assert_allclose(boxes, 2 * np.median(e.half_width(0.05) * e.std, axis=0)[order])

    def test_a_constant_feature_has_the_colour_in_the_middle(self):
        e = dataclasses.replace(explain(rows=3), x=np.ones((3, 3)))
        shades = np.concatenate([each.get_array() for each in plots.beeswarm(e).collections])
        assert set(shades) == {0.5}


class TestEffects:
    def test_bars_are_means_with_both_errors(self):
        found = explain(rows=30).effects(rows="sample")
        ax = found.plot()
        order = found.order()
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], found.standardised[order])
        whole, drawing = [each[2][0].get_segments() for each in ax.containers if isinstance(each, ErrorbarContainer)]
        lower, upper = found.interval()
        np.testing.assert_allclose(
            [s[:, 0] for s in whole], np.transpose([lower * found.std, upper * found.std])[order]
        )
        shares = [np.ptp(part[:, 0]) / np.ptp(all_[:, 0]) for part, all_ in zip(drawing, whole, strict=True)]
        np.testing.assert_allclose(shares, (found.drawing_error / found.standard_error)[order])
        (diamonds,) = [line for line in ax.lines if line.get_marker() == "D"]
        np.testing.assert_allclose(diamonds.get_xdata(), (found.absolute * found.std)[order])

    def test_groups_stand_side_by_side_in_colours_of_their_own(self):
        found = explain(rows=12).effects(by=["old", "young", "<b>"] * 4)
        ax = found.plot()
        legend = [text.get_text() for text in ax.get_legend().get_texts()]
        assert legend == ["old (4)", "young (4)", "<b> (4)"]
        colours = [to_hex(bar.get_facecolor()) for bar in ax.patches]
        assert colours == [colour for colour in GROUPS[:3] for _ in range(3)]
        widths = [bar.get_width() for bar in ax.patches[3:6]]
        np.testing.assert_allclose(widths, found.groups["young"].standardised[found.order()])
        assert not set(GROUPS) & {RAISES, LOWERS}


class TestConvergence:
    def test_errors_stand_at_their_draws_with_the_tolerance(self):
        found = [explain(n_samples=n, design="antithetic", rtol=0.1) for n in (1_024, 256)]
        ax = plots.convergence(found)
        line, root = ax.lines[:2]
        assert line.get_xdata().tolist() == [256, 1_024]
        np.testing.assert_allclose(line.get_ydata(), [np.median(found[1].radius), np.median(found[0].radius)])
        np.testing.assert_allclose(root.get_ydata()[1], root.get_ydata()[0] / 2)
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")

    def test_what_has_no_errors_by_draws_is_refused(self):
        e = explain()
        for wrong in (e, 3, [], [1, 2]):
            with pytest.raises(errors.WrongType, match="convergence draws several explanations of the same rows"):
                plots.convergence(wrong)
        with pytest.raises(errors.InvalidArgument, match="must be of the same rows; they have 4, 3"):
            plots.convergence([e, e[:3]])
        exact = sl.explain(LINE, [[1.0, 2.0]])
        with pytest.raises(errors.InvalidArgument, match="were not drawn"):
            plots.convergence([exact])


class TestGuarantees:
    ROWS = np.random.default_rng(0).normal(size=(6, 2)) / 3

    def test_agreement_shows_each_row_beside_the_margin(self):
        found = sl.agreement(Sine([1.0, 0.5]), self.ROWS, sigma=0.5, n_samples=2_000)
        ax = found.plot()
        order = np.argsort(-found.relative)
        assert names_of(ax) == [f"row {row}" for row in order]
        marks = [line for line in ax.lines if line.get_marker() in "oXD"]
        np.testing.assert_allclose([mark.get_xdata()[0] for mark in marks], found.relative[order])
        lines = [line for line in ax.lines if len(line.get_xdata()) == 2]
        np.testing.assert_allclose(
            [line.get_xdata()[1] for line in lines], np.maximum(found.within, found.relative)[order]
        )
        assert found.verdict in " ".join(ax.get_title("left").split())
        unknown = dataclasses.replace(found, within=np.full(6, 1e12)).plot()
        assert unknown.get_xlim()[1] < 0.2  # endless ones end in arrows
        assert sum(line.get_marker() == ">" for line in unknown.lines) == 6
        wrong = sl.agreement(Step([1.0, 0.5]), self.ROWS, sigma=0.5).plot(most=3)
        assert "disagree" in wrong.get_legend_handles_labels()[1]
        assert {text.get_text() for text in wrong.texts} <= {"x0", "x1", "x0, x1"}
        assert "3 rows with smaller differences not shown" in said(wrong)

    def test_robustness_shows_rows_mean_and_ceiling(self):
        found = sl.robustness(Sine([1.0, 0.5]), self.ROWS, sigma=0.5, n_samples=256, output_range=(-1, 1))
        ax = found.plot()
        np.testing.assert_allclose(ax.lines[0].get_xdata(), np.sort(found.per_row))
        assert ax.lines[1].get_xdata()[0] == found.mean
        assert f"certified ceiling {found.ceiling.mean():.3g}" in said(ax)
        near = dataclasses.replace(found, ceiling=found.per_row * 2)
        assert "certified ceiling" in near.plot().get_legend_handles_labels()[1]
        alone = dataclasses.replace(found, per_row=found.per_row[:1], standard_error=float("nan"), ceiling=None)
        assert "95% interval" not in alone.plot().get_legend_handles_labels()[1]

    def test_comparison_of_a_row_shows_old_new_margin_and_the_interval_of_the_difference(self):
        found = compare()
        ax = found.plot(1)
        old, new = found.old.standardised[1], found.new.standardised[1]
        order = np.argsort(-np.maximum(np.abs(old), np.abs(new)))
        margins, bars = ax.patches[:3], ax.patches[3:]
        np.testing.assert_allclose([bar.get_width() for bar in bars], old[order])
        np.testing.assert_allclose([box.get_width() for box in margins], 2 * found.allowed[1])
        np.testing.assert_allclose([box.get_x() for box in margins], old[order] - found.allowed[1])
        dots = {round(-y): x for line in ax.lines if line.get_marker() == "o" for x, y in line.get_xydata()}
        np.testing.assert_allclose([dots[i] for i in range(3)], new[order])
        lower, upper = (end[1, order] * found.old.std[order] for end in found.explanation.interval())
        for i, j in enumerate(order):
            np.testing.assert_allclose(intervals(ax)[-float(i)], (old[j] + lower[i], old[j] + upper[i]))
        with pytest.raises(errors.InvalidArgument, match="row 2 is out of range; this comparison has 2 rows"):
            found.plot(2)

    def test_comparison_of_rows_shows_how_far_each_has_moved(self):
        found = compare()
        ax = found.plot()
        order = np.argsort(-found.size / found.allowed)
        assert names_of(ax) == [f"row {row}" for row in order]
        np.testing.assert_allclose([box.get_width() for box in ax.patches], found.allowed[order])
        dots = {round(-y): x for line in ax.lines if line.get_marker() in "oXD" for x, y in line.get_xydata()}
        np.testing.assert_allclose([dots[i] for i in range(2)], found.size[order])
        assert found.verdict in ax.get_title("left")


class TestImage:
    SHADES = np.add.outer(np.arange(6.0), np.arange(6.0)) - 5

    def explain(self, channels=3, **settings):
        model = sl.from_functions(values=lambda a: np.tanh((self.SHADES * a).sum(axis=(1, 2, 3)) / 50))
        return sl.explain(model, np.zeros((2, channels, 6, 6)), sigma=0.3, **({"n_samples": 2_048} | settings))

    def test_slopes_are_added_up_and_those_without_a_sign_greyed(self):
        e = self.explain()
        ax = e.plot(1)
        field = e.standardised[1].reshape(3, 6, 6).sum(axis=0)
        np.testing.assert_allclose(ax.images[0].get_array(), field)
        is_grey = ax.images[1].get_array()[..., 3] > 0
        assert is_grey[self.SHADES == 0].mean() > 0.5
        assert not is_grey[np.abs(self.SHADES) > 3].any()
        assert f"{1 - is_grey.mean():.0%} of 36 slopes is certain" in said(ax)
        assert ax.get_title("left").startswith("output, row 1 of 2")

    def test_errors_of_sums_over_channels_count_what_channels_share(self):
        """Repeated over seeds, sums scatter by as much as is said."""
        from smoothlime.plots.image import half_width_of_sums, summed_over_channels

        model = sl.from_functions(  # its gradient is the same in both channels, and so are their errors
            values=lambda a: np.sin(a.sum(axis=1)).sum(axis=(1, 2)),
            gradients=lambda a: np.cos(a.sum(axis=1, keepdims=True)).repeat(2, axis=1),
        )
        asked = {"sigma": 0.5, "n_samples": 256, "design": "antithetic", "method": "smoothgrad"}
        found = [sl.explain(model, np.full((1, 2, 3, 3), 0.3), seed=seed, **asked) for seed in range(60)]
        truth = 2 * 0.5 * np.cos(0.6) * np.exp(-0.25)  # of each pixel: two channels, E cos N(0.6, 0.5)
        sums = np.array([summed_over_channels(e.standardised[0], e.input_shape) for e in found])
        reach = np.array([half_width_of_sums(e, 0.95) for e in found])
        misses = (np.abs(sums - truth) > reach).mean()
        assert 0.02 < misses < 0.09  # of 540 intervals, 5% but for 4 standard errors

    def test_rows_of_tables_are_refused(self):
        with pytest.raises(errors.InvalidArgument, match=r"these are rows of a table\. Use bars"):
            explain().plot(kind="image")


class TestChoice:
    def test_the_picture_suits_what_is_there(self):
        e = explain()
        assert names_of(e[:1].plot())[0].startswith("age = ")
        assert e.plot().get_ylabel() == "row"
        assert names_of(e.plot(1))[0].startswith("age = ")
        assert names_of(e.plot(kind="bars")) == names_of(e.plot(0))
        assert TestImage().explain(n_samples=256).plot().images

    def test_what_does_not_go_together_is_refused(self):
        with pytest.raises(errors.InvalidArgument, match="kind must be"):
            explain().plot(kind="pie")
        with pytest.raises(errors.InvalidArgument, match="kind='heat' shows all rows; leave row out"):
            explain().plot(1, kind="heat")
        for wrong in (np.array([1, 2]), "left"):
            with pytest.raises(errors.WrongType, match="ax must be one Axes of matplotlib"):
                plots.effects(explain().effects(), ax=wrong)


@cache
def everything(names):
    """All pictures of results with these names."""
    e = explain(names, rows=3)
    comparison, path = compare(names), sl.sigma_path(
        sl.from_functions(values=lambda a: np.sin(a.sum(axis=1)), feature_names=names),
        np.zeros(len(names)), [0.5, 1.0], n_samples=64, method="clime",
    )  # fmt: skip
    pairs = sl.interactions(
        sl.from_functions(values=lambda a: np.sin(a.sum(axis=1)), feature_names=names),
        np.ones(len(names)),
        n_samples=256,
    )
    curve = sl.curve(
        sl.from_functions(values=lambda a: a.sum(axis=1), feature_names=names), np.zeros(len(names)), 0, grid=5
    )
    return {
        "bars": lambda **k: plots.bars(e, **k), "heat": lambda **k: plots.heat(e, **k),
        "beeswarm": lambda **k: plots.beeswarm(e, **k), "effects": lambda **k: plots.effects(e.effects(), **k),
        "groups": lambda **k: plots.effects(e.effects(by=["$a", *ODD[2:4]]), **k),
        "waterfall": lambda **k: plots.waterfall(contributions(names), **k),
        "comparison": lambda **k: plots.comparison(comparison, 0, **k),
        "comparisons": lambda **k: plots.comparison(comparison, **k),
        "convergence": lambda **k: plots.convergence([e], **k), "curve": lambda **k: plots.curve(curve, **k),
        "path": lambda **k: plots.path(path)[0], "interactions": lambda **k: plots.interactions(pairs, **k),
    }  # fmt: skip


def test_all_kinds_are_drawn():
    assert set(everything(("a",))) == set(KINDS)
    public = {*KINDS, "agreement", "image", "robustness"} - {"groups", "comparisons"}
    assert public == set(plots.__all__)


def cut(ax):
    """Texts that leave the figure."""
    figure = ax.figure
    figure.canvas.draw()
    whole = figure.bbox.padded(1.0)
    low, high = sorted(ax.get_ylim())
    ticks = [text for y, text in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True) if low <= y <= high]
    boxes = [(text.get_text(), text.get_window_extent()) for text in (ax.xaxis.label, ax._left_title, *ticks)]
    return [text for text, box in boxes if text and not (whole.contains(*box.min) and whole.contains(*box.max))]


@pytest.mark.parametrize("kind", KINDS)
def test_odd_and_long_names_are_drawn_and_nothing_is_cut_off(kind):
    assert cut(everything(ODD)[kind]()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_feature_is_drawn(kind):
    assert cut(everything(("a",))[kind]()) == []


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "path"])
def test_pictures_go_into_narrow_axes_that_were_given(kind):
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 4), layout="constrained")
    draw = everything(("age", "average_transaction_amount_last_12_months", "b"))[kind]
    assert draw(ax=right) is right
    assert cut(right) == []
    boxes = [text.get_window_extent() for text in (*right.get_yticklabels(), right.xaxis.label) if text.get_text()]
    assert min(box.x0 for box in boxes) > left.get_window_extent().x1 - 8
    assert right.get_window_extent().width > 0.9 * figure.dpi


@pytest.mark.parametrize("error", [np.inf, np.nan, 0.0])
@pytest.mark.parametrize("slope", [0.0, 1e-12, 1e9])
def test_errors_and_slopes_of_any_size_are_drawn(error, slope):
    e = explain()
    e = dataclasses.replace(
        e, values=np.full(e.values.shape, slope), standard_error=np.full(e.values.shape, error), groups=None,
        radius=np.full(len(e), error),
    )  # fmt: skip
    none = np.full(3, error)
    means = dataclasses.replace(explain().effects(), values=e.values[0], standard_error=none, drawing_error=none)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ax in (plots.bars(e), plots.heat(e), plots.beeswarm(e), plots.effects(means)):
            assert cut(ax) == []
    ends = intervals(plots.bars(e))
    arrows = [line for line in plots.bars(e).lines if line.get_marker() in "<>"]
    assert len(arrows) == (2 if error == np.inf else 0)
    assert len(ends) == (0 if np.isnan(error) else 3)


def test_held_features_and_missing_cells_are_left_out():
    e = explain(fixed=["debt"])
    assert len(names_of(plots.bars(e))) == 2
    assert names_of(plots.beeswarm(e)) == ["age", "noise"]
    assert names_of(plots.effects(e.effects())) == ["age", "noise"]


def test_importing_pictures_does_not_load_matplotlib():
    code = "import sys, smoothlime.plots; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("name", ["bars", "waterfall", "heat", "effects", "comparison"])
def test_dark_styles_have_light_ink(name):
    with plt.style.context("dark_background"):
        ax = everything(("a", "b"))[name]()
        inks = {
            to_hex(line.get_color()) for line in ax.lines if line.get_linestyle() == "-" and line.get_marker() == "None"
        }
        assert inks <= {"#ffffff"}


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@pytest.mark.parametrize("kind", ["bars", "heat", "effects", "waterfall", "interactions"])
def test_wide_scripts_are_drawn_whole(kind):
    """Where no font has their letters, matplotlib says so and draws boxes."""
    assert cut(everything(("年齢" * 20, "나이", "سن"))[kind]()) == []


@pytest.mark.parametrize("name", sorted(set(sl.plots.__all__) - {"convergence"}))
def test_what_is_no_such_result_is_named(name):
    with pytest.raises(errors.WrongType, match=r"must be a result of type [A-Z]\w+; got a ndarray"):
        getattr(sl.plots, name)(np.zeros(3))

"""Pictures are read whole: no text leaves the figure, and legends cover nothing."""

import dataclasses
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

import smoothlime as sl
from smoothlime.benchmarking.benchmark import Benchmark, Contender, Reference
from smoothlime.plots.contest import COLOURS, STYLES, as_text, errors


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def explain(n, length, letter="a", output="output"):
    names = [f"{j:{letter}>{length}}"[-length:] if length > 1 else chr(ord("A") + j) for j in range(n)]
    model = sl.from_functions(values=lambda a: np.sin(a.sum(axis=1) / n), feature_names=names, outputs=[output])
    return sl.explain(model, np.zeros(n), method="clime", design="sobol", n_samples=512)


def beyond(axes):
    """Texts that the edge of the figure cuts, once it is laid out."""
    figure = axes.figure
    figure.canvas.draw()
    whole = figure.bbox.padded(0.5)  # half a pixel is rounding
    texts = [axes.xaxis.label, axes.yaxis.label, axes._left_title, *axes.texts, *axes.get_yticklabels()]
    boxes = {text.get_text(): text.get_window_extent() for text in texts if text.get_text()}
    return {text for text, box in boxes.items() if not (whole.contains(*box.min) and whole.contains(*box.max))}


@pytest.mark.parametrize("letter", ["a", "W"])
@pytest.mark.parametrize("length", [1, 10, 32, 60])
@pytest.mark.parametrize("n", [1, 40])
def test_bars_show_all_their_text_beside_names_of_any_length(n, length, letter):
    axes = explain(n, length, letter, output=letter * length).plot()
    assert beyond(axes) == set()
    assert "".join(axes.get_xlabel().split()).endswith("95%intervals" if n == 1 else "smallerslopesnotshown")
    assert axes.get_window_extent().width > 4.3 * axes.figure.dpi


@pytest.mark.parametrize("around", [sl.Neighbourhood(scale=np.full(8, 2.0)), sl.Neighbourhood(2.0)])
@pytest.mark.parametrize("name", ["a", "W" * 40, "average_transaction_amount_last_12_months_"])
def test_paths_show_all_their_text_beside_names_of_any_length(name, around):
    names = [f"{name}{j}" for j in range(8)]
    model = sl.from_functions(values=lambda a: np.sin(a.sum(axis=1)), feature_names=names, outputs=[name])
    path = sl.sigma_path(model, np.zeros(8), [0.1, 0.3, 1.0], neighbourhood=around, method="clime")
    for axes in path.plot():
        assert beyond(axes) == set()


@pytest.mark.parametrize("size", [6, 14])
def test_bars_show_all_their_text_in_other_sizes_and_in_axes_that_were_given(size):
    with plt.rc_context({"font.size": size}):
        assert beyond(explain(6, 32, output="a name of several words, and long").plot()) == set()
        _, axes = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
        assert beyond(explain(6, 32, output="a name of several words, and long").plot(ax=axes)) == set()


def contest(pairs, measured=None, off=0.0):
    draws = (64, 256, 1_024)
    found = tuple(
        Contender(method, design, "values", draws, draws, measured or (0.1 / (i + 1), 0.05, 0.02 / (i + 1)), 1e-6, 1.0)
        for i, (method, design) in enumerate(pairs)
    )
    return Benchmark(
        found, left_out=(), references=(Reference("values", "differences", "differences", 16_384, off),),
        bare_seconds={}, draws=draws, output="output", rows=1, features=3, repeats=2, seed=0, versions={},
    )  # fmt: skip


@pytest.mark.parametrize("most", [1, 4, 15, 40])
def test_the_legend_of_a_benchmark_lies_beside_its_curves_and_in_the_figure(most):
    axes = errors(contest([(method, design) for method in COLOURS for design in STYLES][:most]))
    axes.figure.canvas.draw()
    legend = axes.get_legend().get_window_extent()
    assert len(axes.get_legend().get_texts()) == most
    assert legend.x0 > axes.get_window_extent().x1
    assert axes.get_window_extent().width > 4.5 * axes.figure.dpi
    whole = axes.figure.bbox
    assert whole.x0 <= legend.x0 < legend.x1 <= whole.x1
    assert whole.y0 <= legend.y0 < legend.y1 <= whole.y1


@pytest.mark.parametrize("measured", [(0.048, 0.034, 0.022), (0.03, 0.03, 0.03), (1.3, 0.02, 1e-9), (0.02, 0.02, 0.02)])
def test_errors_can_be_read_off_the_axis(measured):
    axes = errors(contest([("clime", "iid")], measured))
    axes.figure.canvas.draw()
    low, high = axes.get_ylim()
    ticks = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    labels = [label.get_text() for tick, label in ticks if low <= tick <= high]
    assert len(labels) >= (1 if measured[0] == 0.02 else 2)
    assert all(label.endswith("%") for label in labels)
    assert low < min(measured) <= max(measured) < high


def test_what_the_truth_cannot_tell_is_not_told():
    fine = contest([("clime", "iid")], (0.2, 0.02, 0.004), off=0.01)
    cells = as_text(fine).splitlines()[2].split("  ")
    assert [each.strip() for each in cells if each.strip()][2:8] == ["20%", "2%", "≤ 2%", "97", "201", "too fine"]
    coarse = contest([("clime", "iid")], (0.9961, 1.3, 0.05), off=0.01)
    cells = as_text(coarse).splitlines()[2].split("  ")
    assert [each.strip() for each in cells if each.strip()][2:8] == ["100%", "130%", "5%", "762", "> 1,024", "> 1,024"]
    (line,) = [each for each in errors(fine).lines if each.get_label() == "too fine below, from predictions"]
    assert line.get_ydata()[0] == 0.02
    assert len(errors(contest([("clime", "iid")], (0.2, 0.1, 0.05), off=0.001)).lines) == 1  # far below all


def test_ink_is_seen_on_dark_styles():
    from matplotlib.colors import to_hex

    with plt.style.context("dark_background"):
        axes = explain(3, 1).plot()
        assert {to_hex(line.get_markeredgecolor()) for line in axes.lines} == {"#ffffff"}
        slopes, fidelity = sl.sigma_path(lambda a: np.sin(a[:, 0]), [0.1], [0.1, 0.3], method="clime").plot()
        assert to_hex(slopes.lines[0].get_color()) == "#ffffff"
        assert to_hex(slopes.texts[-1].get_color()) == "#ffffff"
        assert to_hex(fidelity.lines[-1].get_color()) == "#ffffff"
        drawn = errors(contest([("controlled", "differences")]))
        assert to_hex(drawn.lines[0].get_color()) == "#ffffff"


def test_maps_show_all_their_text():
    shades = np.add.outer(np.arange(16.0), np.arange(16.0)) - 15
    name = "a name of several words, and long"
    model = sl.from_functions(values=lambda a: (shades * a).sum(axis=(1, 2, 3)), outputs=[name])
    axes = sl.explain(model, np.zeros((1, 3, 16, 16)), sigma=0.3).plot()
    bar = axes.images[0].colorbar.ax
    cut = beyond(axes) | beyond(bar)  # some ticks are beyond, and never drawn
    assert not cut & {axes.get_xlabel(), axes.get_title(loc="left"), bar.get_ylabel()}


@pytest.mark.parametrize("most", [0.0123, 123_456.0])
def test_numbers_on_a_narrow_axis_do_not_run_into_each_other(most):
    names = ["average_transaction_amount_of_the_last_twelve_months", "b"]
    model = sl.from_functions(values=lambda a: most * np.sin(a[:, 0] - a[:, 1]), feature_names=names)
    e = sl.explain(model, np.zeros(2), method="clime", n_samples=512)
    narrow = plt.subplots(1, 2, figsize=(7, 2.5), layout="constrained")[1][0]
    for axes in (e.plot(), e.effects().plot(), e.plot(ax=narrow)):
        axes.figure.canvas.draw()
        low, high = axes.get_xlim()
        labels = [each for each in axes.get_xticklabels() if low <= each.get_position()[0] <= high]
        ends = [(each.get_window_extent().x0, each.get_window_extent().x1) for each in labels]
        assert len(ends) >= 2
        assert all(left[1] < right[0] for left, right in pairwise(ends))


def test_rows_without_any_slope_are_one_hatched_column():
    e = explain(3, 4)
    axes = sl.plots.heat(dataclasses.replace(e, values=np.full((1, 3), np.nan)))
    assert axes.get_xlim() == (-0.5, 0.5)
    assert axes.get_xticklabels() == []

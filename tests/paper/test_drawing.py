"""Drawings: every kind of panel shows what it was given, says what it cannot show, and is the same every time."""

import gc
import math
import sys
import weakref
from itertools import combinations

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from smoothlime.errors import InvalidArgument
from smoothlime.paper import drawing, panels, ticks

HOSTILE = "<script>alert('x')</script> & \"quoted\"\n🍋 $x^$ _\x00"


def line(label="SmoothGrad", role="smoothgrad", *, x=(10, 100, 1_000), y=(1.0, 0.3, 0.1), low=None, high=None, **more):
    return {"label": label, "role": role, "x": list(x), "y": list(y), "low": low, "high": high, **more}


def curves(*lines, x_scale="log", y_scale="log", marks=(), title="Simulated"):
    return {"kind": "curves", "title": title, "x_label": "draws", "y_label": "distance", "x_scale": x_scale,
            "y_scale": y_scale, "curves": list(lines), "marks": list(marks)}  # fmt: skip


def bars(values=((1.0, 2.0), (0.5, None)), *, scale="linear", groups=("one", "two"), low=None, high=None):
    roles = ("smoothgrad", "clime", "other", "another")
    series = [
        {"label": f"series {k}", "values": list(one), "low": low, "high": high, "role": roles[k]}
        for k, one in enumerate(values)
    ]
    return {"kind": "bars", "title": "Bars", "y_label": "error", "groups": list(groups), "series": series,
            "y_scale": scale}  # fmt: skip


def heatmap(values=((1.0, 0.5), (None, 0.1)), low=0.0, high=1.0):
    return {"kind": "heatmap", "title": "Map", "rows": ["r1", "r2"], "columns": ["c1", "c2"], "label": "share",
            "values": [list(row) for row in values], "low": low, "high": high}  # fmt: skip


def field(level=0.5, z=None):
    x = [-1.0, 0.0, 1.0]
    z = [[0.1, 0.4, 0.7], [0.2, 0.5, None], [0.3, 0.6, 0.9]] if z is None else z
    points = [{"x": [0.1, -0.5], "y": [0.2, 0.3], "label": f"class {k}"} for k in range(2)]
    return {"kind": "field", "title": "Field", "x_label": "x₁", "y_label": "x₂", "x": x, "y": x, "z": z,
            "points": points, "level": level}  # fmt: skip


def draw(*parts, note=""):
    return drawing.draw({"title": "A figure", "caption": "", "paper": "Figure 2", "panels": list(parts)}, note)


def legend(owner):
    return [text.get_text() for text in owner.get_texts()]


def test_curves_show_each_line_in_the_colour_of_its_role_with_its_band():
    band = {"low": [0.8, 0.2, 0.05], "high": [1.2, 0.4, 0.2]}
    (ax,) = draw(curves(line(**band), line("C-LIME", "clime", dashed=True), line("bound", "bound"))).axes
    assert [one.get_color() for one in ax.lines] == [panels.COLOURS[role] for role in ("smoothgrad", "clime", "bound")]
    assert [one.get_linestyle() == "-" for one in ax.lines] == [True, False, False]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [1.0, 0.3, 0.1])
    assert len(ax.collections) == 1
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")) == ("draws", "distance", "Simulated")


def test_missing_values_leave_gaps():
    (ax,) = draw(curves(line(y=(1.0, None, 0.1), low=[0.5, None, None], high=[2.0, None, None]))).axes
    assert np.isnan(ax.lines[0].get_ydata()).tolist() == [False, True, False]


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_a_curve_of_one_point_is_seen_with_its_error(scale):
    one = line(x=[100], y=[0.5], low=[0.4], high=[0.6])
    (ax,) = draw(curves(one, x_scale=scale, y_scale=scale)).axes
    assert ax.lines[0].get_marker() == "o"
    (error,) = ax.collections
    assert error.get_segments()[0][:, 1].tolist() == [0.4, 0.6]
    low, high = ax.get_ylim()
    assert low < 0.4 < 0.6 < high


@pytest.mark.parametrize("y", [[], [None, None], [0.0, -1.0]])
def test_a_panel_without_values_says_so(y):
    (ax,) = draw(curves(line(x=[10, 100][: len(y)], y=y, low=y, high=y))).axes
    assert "no values" in [text.get_text() for text in ax.texts]


def test_what_a_log_axis_cannot_show_is_mentioned():
    (ax,) = draw(curves(line(y=(1.0, 0.0, 0.1)))).axes
    assert "zeros and negative values have no place on a log axis" in ax.get_xlabel()
    (ax,) = draw(curves(line(y=(1.0, 0.0, 0.1)), y_scale="linear")).axes
    assert ax.get_xlabel() == "draws"


def test_a_band_that_reaches_below_zero_does_not_stretch_a_log_axis():
    (ax,) = draw(curves(line(low=[-1.0, -1.0, 1e-30], high=[2.0, 2.0, 2.0]))).axes
    assert ax.get_ylim()[0] > 0.02


def test_marks_are_named_above_the_frame_and_kept_apart():
    marks = [{"x": 100, "label": "the paper's hundred"}, {"x": 110, "label": "ours"}, {"x": None, "label": "gone"}]
    figure = draw(curves(line(), marks=marks))
    (ax,) = figure.axes
    named = [text for text in ax.texts if text.get_text()]
    assert [text.get_text() for text in named] == ["the paper's hundred", "ours"]
    boxes = [text.get_window_extent() for text in (*named, ax.title, ax._left_title)]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2) if one.width and other.width)


@pytest.mark.parametrize("count", range(1, 10))
def test_up_to_nine_panels_share_one_legend_that_covers_nothing(count):
    figure = draw(*(curves(line(), line("C-LIME", "clime")) for _ in range(count)), note="quick scale")
    assert len(figure.axes) == count
    assert all(ax.get_legend() is None for ax in figure.axes)
    (shared,) = figure.legends
    assert legend(shared) == ["SmoothGrad", "C-LIME"]
    boxes = [ax.get_tightbbox() for ax in figure.axes]
    boxes += [shared.get_window_extent(), figure._suptitle.get_window_extent()]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert min(ax.get_window_extent().height for ax in figure.axes) > 120
    assert figure.get_figwidth() <= 11


def test_labels_that_mean_different_things_are_explained_panel_by_panel():
    figure = draw(curves(line("one", "a")), curves(line("one", "b")))
    assert figure.legends == []
    assert [legend(ax.get_legend()) for ax in figure.axes] == [["one"], ["one"]]
    for ax in figure.axes:
        assert ax.get_legend().get_window_extent().y1 < ax.get_window_extent().y0


def test_bars_stand_on_zero_and_name_what_is_missing():
    figure = draw(bars(low=[0.4, 0.4], high=[2.0, 2.5]))
    (ax,) = figure.axes
    heights = [bar.get_height() for bar in ax.patches]
    assert heights[:3] == [1.0, 2.0, 0.5]
    assert math.isnan(heights[3])
    assert [text.get_text() for text in ax.texts] == ["n/a"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["one", "two"]
    assert legend(figure.legends[0]) == ["series 0", "series 1"]


def test_bars_on_a_log_axis_are_dots():
    (ax,) = draw(bars(((1.0, 0.0), (100.0, None)), scale="log", low=[0.0, 0.0], high=[200.0, 1.0])).axes
    assert len(ax.patches) == 0
    assert [one.get_linestyle() for one in ax.lines] == ["None", "None"]
    assert "log axis" in ax.get_xlabel()


def test_a_heatmap_writes_its_numbers_in():
    ax, bar = draw(heatmap()).axes
    assert [text.get_text() for text in ax.texts] == ["1.00", "0.50", "n/a", "0.10"]
    assert bar.get_ylabel() == "share"
    assert ax.images[0].get_clim() == (0.0, 1.0)


def test_a_heatmap_through_zero_is_white_there():
    image = draw(heatmap(((-1.0, 0.5), (0.0, 2.0)), -1.0, 2.0)).axes[0].images[0]
    assert image.get_clim() == (-2.0, 2.0)
    assert min(image.cmap(image.norm(0.0))) > 0.95


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.0), (None, None)])
def test_a_heatmap_finds_limits_of_its_own(low, high):
    image = draw(heatmap(low=low, high=high)).axes[0].images[0]
    assert image.get_clim()[0] < image.get_clim()[1]


def test_a_field_shows_shading_boundary_and_classes():
    figure = draw(field())
    ax = figure.axes[0]
    assert [one.get_linestyle() for one in ax.lines] == ["None", "None"]
    assert [one.get_marker() for one in ax.lines] == ["o", "s"]
    assert len(ax.collections) == 2
    assert legend(figure.legends[0]) == ["class 0", "class 1", "decision boundary, 0.5"]


@pytest.mark.parametrize("z", [[[0.9] * 3] * 3, [[None] * 3] * 3])
def test_a_field_without_a_boundary_names_none(z):
    assert legend(draw(field(z=z)).legends[0]) == ["class 0", "class 1"]


@pytest.mark.parametrize("part", [curves(line()), bars(), heatmap(), field()], ids=lambda part: part["kind"])
def test_hostile_text_is_drawn_as_text(part):
    part = part | {"title": HOSTILE, "x_label": HOSTILE, "y_label": HOSTILE, "label": HOSTILE}
    for key in ("curves", "series", "points"):
        part |= {key: [one | {"label": HOSTILE} for one in part.get(key, [])]}
    part |= {key: [HOSTILE] * len(part[key]) for key in ("groups", "rows", "columns") if key in part}
    part["marks"] = [{"x": 50, "label": HOSTILE}]
    made = drawing.render(draw(part, note=HOSTILE), HOSTILE)
    assert b"<script" not in made["svg"]
    assert made["pdf"].startswith(b"%PDF")


@pytest.mark.parametrize("part", [curves(line()), bars(), heatmap(), field()], ids=lambda part: part["kind"])
def test_the_same_panel_gives_the_same_bytes_whatever_the_caller_has_set(part):
    first = drawing.render(draw(part))
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.hashsalt": None, "axes.grid": True}):
        assert drawing.render(draw(part)) == first
        assert matplotlib.rcParams["font.size"] == 30
    assert b"<dc:date>" not in first["svg"]
    assert b"CreationDate" not in first["pdf"]


def test_saving_writes_both_kinds_and_leaves_no_drafts(tmp_path):
    svg, pdf = drawing.save(draw(curves(line())), tmp_path / "new", "figure4-bankruptcy")
    assert sorted(path.name for path in svg.parent.iterdir()) == ["figure4-bankruptcy.pdf", "figure4-bankruptcy.svg"]
    assert svg.read_bytes().startswith(b"<?xml")
    assert pdf.read_bytes().startswith(b"%PDF")


def test_drawing_leaves_nothing_open():
    open_before = sys.modules["matplotlib.pyplot"].get_fignums() if "matplotlib.pyplot" in sys.modules else []
    figure = draw(curves(line()))
    gone = weakref.ref(figure)
    del figure
    gc.collect()
    assert gone() is None
    if "matplotlib.pyplot" in sys.modules:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == open_before


def test_a_figure_needs_panels_of_a_known_kind():
    with pytest.raises(InvalidArgument, match="a figure needs at least one panel; got none"):
        draw()
    with pytest.raises(InvalidArgument, match="a panel is one of curves, field, bars, heatmap; got 'pie'"):
        draw({"kind": "pie"})


@pytest.mark.parametrize(
    ("value", "written"),
    [(10, "10"), (1_000, "1,000"), (20_000, "20k"), (1e6, "1M"), (0.02, "0.02"), (0.001, "0.001"), (1e-4, "10⁻⁴"),
     (2e-5, "2·10⁻⁵"), (1e9, "10⁹"), (0.0, "0"), (-0.5, "-0.5"), (0.3, "0.3")],
)  # fmt: skip
def test_ticks_are_written_as_people_write_them(value, written):
    assert ticks.plain(value) == written


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (1.0, 1.1), (1.0, 1.7), (1.0, 5.0), (0.2, 7.0), (1e-6, 1e5)])
def test_every_log_axis_has_two_to_eight_ticks_that_can_be_told_apart(low, high):
    figure = draw(curves(line(x=[10, 20], y=[low, high])))
    (ax,) = figure.axes
    bottom, top = ax.get_ylim()
    shown = [t.get_text() for t, at in zip(ax.get_yticklabels(), ax.get_yticks(), strict=True) if bottom <= at <= top]
    assert 2 <= len(shown) <= 8
    assert len(set(shown)) == len(shown)


def simulated(colour, kind):
    """A colour as seen without red or green cones (Viénot et al. 1999), in linear light."""
    linear = np.array([c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)])
    to_cones = np.array([[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]])
    lost = {
        "red": [[0, 2.02344, -2.52581], [0, 1, 0], [0, 0, 1]],
        "green": [[1, 0, 0], [0.494207, 0, 1.24827], [0, 0, 1]],
    }
    seen = np.linalg.solve(to_cones, np.array(lost[kind]) @ to_cones @ linear) if kind else linear
    return np.cbrt(np.clip(seen, 0, 1))


@pytest.mark.parametrize("kind", [None, "red", "green"])
@pytest.mark.parametrize(
    "together", [("smoothgrad", "clime", "truth"), ("simulated", "bankruptcy", "shopping"), ("a", "b", "c")]
)
def test_colours_shown_together_can_be_told_apart_by_everyone(kind, together):
    seen = [simulated(panels.COLOURS[role], kind) for role in together]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 0.15

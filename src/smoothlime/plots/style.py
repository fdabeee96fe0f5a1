"""The common look of all pictures: colours and sizes.

Blue and vermilion are Okabe and Ito's (2008), told apart by colour-blind readers; both, and the grey, are seen on white
and on black. The side of zero that a bar is on says the same as its colour, so that prints in grey lose nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.optional import require
from .._core.types import Array
from ..errors import WrongType
from .names import drawn, shortened

RAISES, LOWERS = "#0072b2", "#d55e00"
"""What raises the output, and what lowers it"""

UNSURE = "#949494"
"""What may do either"""

NOTHING = "#f7f7f7"
"""Slopes of 0 in maps"""

GAP = "#b8a878"
"""What is no feature's: gaps and remainders"""

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Of lines, one after the other: Okabe and Ito's, their black and yellow left out"""

GROUPS = ("#009e73", "#e69f00", "#56b4e9", "#cc79a7", "#5f4690", "#8a8a8a")
"""Of groups of rows, side by side: none that says which sign a bar has"""

STYLES = ("-", "--", ":", "-.")
"""Of lines, when there are more of them than colours"""

BAND = 0.22
"""Opacity of bands around lines"""

RULE = "#9a9a9a"
"""Of margins, tolerances and other marks that are no result"""

TITLE, SMALL = "medium", "small"
"""Sizes of letters, relative to what the user has set"""

WIDTH, LEAST, PAD = 7.0, 4.8, 0.1
"""Inches: of a new figure, of what is drawn in it beside long names, and of a margin"""

MOST_BESIDE = 0.45
"""Of the room of axes that were given, what names may take"""

SHIFT = 0.85
"""Of the room of names, how far lines begin to the left of axes: layouts leave a little more than asked"""

COLOUR_BAR = 1.2
"""Inches that a bar of colours takes with its label"""

ENDLESS = 1.15
"""Where endless intervals are cut, in units of the largest finite end"""


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that says how to get it."""
    return require("matplotlib.pyplot", extra="plot", to="draw pictures")


def check_result(found: Any, kind: str, argument: str = "found") -> None:
    """Refuse what is not the result that a picture is of: an "Explanation", "Effects", ..."""
    if all(each.__name__ != kind for each in type(found).__mro__):
        msg = f"{argument} must be a result of type {kind}; got a {type(found).__name__}"
        raise WrongType(msg, argument=argument)


def open_axes(ax: Any, height: float, width: float = WIDTH) -> tuple[Any, bool]:
    """The axes to draw into, and whether they are new: in a figure of this size in inches."""
    plt = pyplot()
    if ax is None:
        return plt.subplots(figsize=(width, height), layout="constrained")[1], True
    if not hasattr(ax, "set_yticks"):
        msg = f"ax must be one Axes of matplotlib to draw into; got a {type(ax).__name__}. Give one, as in axes[0]"
        raise WrongType(msg, argument="ax")
    return ax, False


def ink(ax: Any) -> Any:
    """The colour of text in these axes, which is seen on dark styles too."""
    return ax.xaxis.label.get_color()


def name_lines(ax: Any, names: Sequence[str], places: Sequence[float] | None = None) -> None:
    """Names beside lines of a chart, the first on top; dollar signs in them are no mathematics."""
    ax.set_yticks(range(len(names)) if places is None else places, [drawn(name) for name in names])
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def whiskers(ax: Any, at: Any, places: Any, lower: Any, upper: Any, **look: Any) -> None:
    """Error bars from `lower` to `upper`; endless ones are cut and end in arrows, unknown ones (NaN) left out."""
    at, places, lower, upper = (np.asarray(each, dtype=np.float64) for each in (at, places, lower, upper))
    known = ~(np.isnan(lower) | np.isnan(upper) | np.isnan(at))
    if not known.any():
        return
    at, places, lower, upper = (each[known] for each in (at, places, lower, upper))
    finite = np.abs(np.concatenate([[0.0], at, lower[np.isfinite(lower)], upper[np.isfinite(upper)]]))
    far = ENDLESS * (finite.max() or 1.0)
    colour = look.pop("color", ink(ax))
    ends = [at - np.maximum(lower, -far), np.minimum(upper, far) - at]
    style = {"fmt": "none", "ecolor": colour, "capsize": 3, "linewidth": 1.2} | look
    ax.errorbar(at, places, xerr=np.maximum(ends, 0.0), **style)
    for marker, end, is_endless in (("<", -far, lower == -np.inf), (">", far, upper == np.inf)):
        if is_endless.any():
            ax.plot(np.full(is_endless.sum(), end), places[is_endless], marker, color=colour, markersize=5)


def legend(ax: Any, *, is_new: bool) -> None:
    """To the right of what is drawn in a new figure, else where there is room inside."""
    look = {"fontsize": SMALL, "frameon": not is_new}
    ax.legend(**look, **({"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if is_new else {"loc": "best"}))


def caption(ax: Any, title: str, below: Sequence[str], *, is_new: bool, bar: float = 0.0) -> None:
    """Title, and lines below the axis, broken where they are too long; wider figures for long names.

    In axes that were given, names that leave too little room are shortened, and lines begin below them. `bar`: inches
    that a bar of colours takes. matplotlib's own wrapping reckons with the figure, not with axes beside others.
    """
    if is_new:
        _make_room(ax, bar)
    cell = _cell(ax)
    if not is_new:
        _shorten_names(ax, MOST_BESIDE * (cell - bar))
    beside = _beside(ax)
    width = max(cell - beside - bar - 3 * PAD, 0.5)
    above = below_axes = width
    shift = 0.0
    if not is_new and width < LEAST:  # lines begin at the names
        shift = SHIFT * beside / max(width, beside)
        above, below_axes = width + (SHIFT * beside if bar == 0 else bar), width + SHIFT * beside
    ax.set_title("", loc="left", fontsize=TITLE, x=-shift if bar == 0 else 0.0)
    ax.set_xlabel("", fontsize=SMALL)
    ax.xaxis.label.set_x(0.5 - shift / 2)
    _thin_ticks(ax, width)
    _fill(ax._left_title, [title], above * ax.figure.dpi)
    _fill(ax.xaxis.label, below, below_axes * ax.figure.dpi)


def _thin_ticks(ax: Any, room: float) -> None:
    """Fewer numbers on the axis below, where they would run into each other in so many inches."""
    ticker: Any = require("matplotlib.ticker", extra="plot", to="draw pictures")
    if not isinstance(ax.xaxis.get_major_locator(), ticker.MaxNLocator):
        return
    for most in range(8, 1, -1):
        low, high = sorted(ax.get_xlim())
        shown = [label for label in ax.get_xticklabels() if low <= label.get_position()[0] <= high]
        wide = sum(label.get_window_extent().width / ax.figure.dpi + PAD for label in shown)
        if wide <= room:
            return
        ax.locator_params(axis="x", nbins=most)


def _make_room(ax: Any, bar: float) -> None:
    """Widen a figure of one axes where names and a legend leave too little of it."""
    box = ax.get_legend()
    behind = box.get_window_extent().width / ax.figure.dpi if box is not None and not box.get_frame_on() else 0.0
    ax.figure.set_figwidth(max(ax.figure.get_figwidth(), _beside(ax) + LEAST + max(behind - 1.2, 0.0)))
    ax.figure.set_figwidth(ax.figure.get_figwidth() + bar)


def _beside(ax: Any) -> float:
    """Inches that names on the left take."""
    labels = [*ax.get_yticklabels(), ax.yaxis.label]
    return max((label.get_window_extent().width for label in labels if label.get_text()), default=0.0) / ax.figure.dpi


def _shorten_names(ax: Any, most: float) -> None:
    """Cut names in their middle to so many inches."""
    names = [label.get_text().replace(r"\$", "$") for label in ax.get_yticklabels()]
    for longest in range(max(map(len, names), default=0), 5, -2):
        if _beside(ax) <= most:
            return
        ax.set_yticks(ax.get_yticks(), [drawn(shortened(name, longest)) for name in names])


def _cell(ax: Any) -> float:
    """Inches from the left to the right that these axes may take, with all that stands beside them."""
    figure, place = ax.figure, ax.get_subplotspec()
    if figure.get_layout_engine() is None or place is None:
        return float(ax.get_window_extent().width / figure.dpi) + _beside(ax)
    return float(figure.get_figwidth() * len(place.colspan) / place.get_gridspec().ncols)


def _fill(label: Any, lines: Sequence[str], room: float) -> None:
    """Write lines into a text of matplotlib, each broken between words, or within those that are too long."""

    def is_too_long(text: str) -> bool:
        label.set_text(drawn(text))
        return bool(label.get_window_extent().width > room)

    done: list[str] = []
    for line in lines:
        current = ""
        for word in line.split():
            joined = f"{current} {word}".strip()
            if not is_too_long(joined):
                current = joined
                continue
            done += [current] if current else []
            current = word
            while len(current) > 1 and is_too_long(current):
                kept = next((n for n in range(len(current) - 1, 1, -1) if not is_too_long(current[:n])), 1)
                done.append(current[:kept])
                current = current[kept:]
        done += [current] if current else []
    label.set_text(drawn("\n".join(done)))


def largest_first(size: Array, most: int) -> list[int]:
    """Positions of the largest numbers, NaN left out."""
    order = np.argsort(-np.nan_to_num(size, nan=-1.0), kind="stable")
    return [int(j) for j in order if np.isfinite(size[j])][:most]


def diverging(ax: Any, field: Array, **look: Any) -> Any:
    """An image of numbers: blue above 0, vermilion below, white at 0, hatched where there is none."""
    field = field if field.size else np.full((len(field), 1), np.nan)
    colors: Any = require("matplotlib.colors", extra="plot", to="draw pictures")
    largest = float(np.max(np.abs(field), initial=0.0, where=np.isfinite(field))) or 1.0
    colours = colors.LinearSegmentedColormap.from_list("slopes", [LOWERS, NOTHING, RAISES])
    ax.set_facecolor("#c8c8c8")
    if np.isnan(field).any():
        height, width = field.shape
        ax.fill_between([-0.5, width - 0.5], -0.5, height - 0.5, facecolor="#c8c8c8", edgecolor="#8a8a8a", hatch="////",
                        linewidth=0, zorder=0)  # fmt: skip
    ends = {"vmin": -largest, "vmax": largest}
    return ax.imshow(np.ma.masked_invalid(field), cmap=colours, interpolation="nearest", zorder=1, **ends, **look)

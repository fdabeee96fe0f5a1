"""One row as bars with error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.optional import require
from .._core.validate import check_count
from ..errors import WrongType
from . import switch_bars
from .names import count, drawn, percent, shortened, shown, told_apart
from .text import missing_features, order

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    from ..result.explanation import Explanation

RAISES, LOWERS, UNSURE = "#2a6f97", "#c1554d", "#b5b5b5"

LONGEST = 32
"""Characters of a name in a picture."""

WIDTH, ROOM, PAD = 7.0, 4.8, 0.1
"""Inches: of a figure, of the bars in it with what lies between them and their names, and of a margin."""


def bars(e: Explanation, ax: Axes | None = None, *, confidence: float = 0.95, most: int = 12) -> Axes:
    """Standardised slopes of the first row of `e`, largest on top; grey where the interval holds zero.

    Below them, hollow, the largest switch of each category, in the same unit.
    """
    pyplot: Any = require("matplotlib.pyplot", extra="plot", to="draw an explanation")
    check_axes(ax)
    chosen = order(e, 0)[: check_count(most, "most")][::-1]
    switches = [] if e.switches is None else switch_bars.largest(e.switches, most)
    lower, upper = (end[0, chosen] * e.std[chosen] for end in e.interval(confidence))
    middle = e.standardised[0, chosen]
    is_sure = (lower > 0) | (upper < 0) | e.is_exact  # not so where an error is unknown
    colours = np.where(is_sure, np.where(middle > 0, RAISES, LOWERS), UNSURE)
    figure = None
    if ax is None:
        figure, ax = pyplot.subplots(figsize=(WIDTH, 1.6 + 0.32 * (len(chosen) + len(switches))), layout="constrained")
    assert ax is not None
    ink = pyplot.rcParams["text.color"]  # seen on dark styles too
    ax.barh(range(len(chosen)), middle, color=list(colours), height=0.7)
    ax.errorbar(
        middle,
        range(len(chosen)),
        xerr=[middle - lower, upper - middle],
        fmt="none",
        ecolor=ink,
        capsize=3,
    )
    ax.axvline(0, color=ink, linewidth=0.8)
    places: list[float] = [*range(len(chosen))]
    names = [drawn(name) for name in told_apart(e.feature_names, chosen, LONGEST)]
    is_all_sure = bool(is_sure.all())
    if e.switches is not None and switches:
        more = switch_bars.draw(e.switches, ax, switches, confidence, (RAISES, LOWERS, UNSURE), LONGEST)
        places, names, is_all_sure = [*places, *more[0]], [*names, *more[1]], is_all_sure and more[2]
    ax.set_yticks(places, names)
    title = _say(e, ax, confidence, len(chosen), is_all_sure=is_all_sure)
    ax.set_ylim(min(places) - 0.9, max(len(chosen) - 0.1, 2.1))
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    if figure is None:
        title.set_wrap(True)
    else:
        _make_room(figure, [*ax.get_yticklabels()], title)
    return ax


def check_axes(ax: Any) -> None:
    """Refuse what nothing can be drawn into, such as an array of several Axes."""
    if ax is not None and not hasattr(ax, "set_yticks"):
        msg = f"ax must be one Axes of matplotlib to draw into; got a {type(ax).__name__}. Give one, as in axes[0]"
        raise WrongType(msg)


def _say(e: Explanation, ax: Axes, confidence: float, n: int, *, is_all_sure: bool) -> Text:
    """Title and axis label, which is wrapped: layouts reckon with its height but not with its width."""
    output = drawn(shortened(shown(e.row_outputs[0]), LONGEST))
    rest = "" if is_all_sure else "; grey: sign uncertain"
    if left_out := int((~e.held[0]).sum()) - n:
        rest += f"; {count(left_out, 'smaller slope')} not shown"
    if missing := missing_features(e, 0):
        rest += f"; {drawn(missing)}"
    scale = "slope × neighbourhood standard deviation"
    scale += "\nhollow: largest effect of another level of each category" * (e.switches is not None)
    if e.is_exact:
        label = f"{scale}\nexact, no sampling{rest}"
    else:
        few = " (indicative)" if e.is_indicative[0] else ""
        label = f"{scale}, with {percent(confidence)} intervals{few}\n{e.method}, {int(e.n_samples[0]):,} draws{rest}"
    ax.set_xlabel(label, wrap=True)
    return ax.set_title(f"{output}: f(x) = {e.prediction[0]:.3g}", loc="left")


def _make_room(figure: Any, names: list[Text], title: Text) -> None:
    """Widen the figure where names leave too little of it to the bars, or to the title above them."""
    beside = max((name.get_window_extent().width for name in names), default=0.0) / figure.dpi
    above = title.get_window_extent().width / figure.dpi + 2 * PAD
    figure.set_figwidth(max(WIDTH, beside + max(ROOM, above)))

"""One row as bars with error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.validate import check_count
from .chart import Chart, of_row
from .style import LOWERS, RAISES, RULE, UNSURE, caption, check_result, ink, name_lines, open_axes, whiskers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result.explanation import Explanation

GAP = 0.4
"""Between slopes and switches, in bars"""


def bars(e: Explanation, row: int = 0, *, ax: Axes | None = None, confidence: float = 0.95, most: int = 12) -> Axes:
    """Slopes of a row with their intervals, standardised, largest on top; grey where the sign is uncertain.

    Each feature stands with its value, on scales also with where a step leads. Hollow bars below are switches: the
    largest of each category, in the same unit.
    """
    check_result(e, "Explanation", "e")
    return draw(of_row(e, row, confidence=confidence, most=check_count(most, "most")), ax)


def draw(chart: Chart, ax: Any) -> Any:
    """Bars of any chart."""
    shown = chart.bars
    hollow = np.array([bar.is_hollow for bar in shown], dtype=bool)
    places = -np.arange(len(shown)) - GAP * hollow
    ax, is_new = open_axes(ax, 1.5 + 0.32 * max(2, len(shown)))
    for bar, place in zip(shown, places, strict=True):
        colour = UNSURE if not bar.is_sure else RAISES if bar.value > 0 else LOWERS
        look = {"color": "none", "edgecolor": colour, "hatch": "////", "linewidth": 1.2}
        ax.barh(place, bar.value, height=0.7, **(look if bar.is_hollow else {"color": colour}))
    ends = np.array([(bar.value, bar.lower, bar.upper) for bar in shown]).reshape(-1, 3)
    whiskers(ax, ends[:, 0], places, ends[:, 1], ends[:, 2])
    if hollow.any() and not hollow.all():
        ax.axhline(places[hollow][0] + (1 + GAP) / 2, color=RULE, linewidth=0.8, linestyle=":")
    ax.axvline(0, color=ink(ax), linewidth=0.8)
    name_lines(ax, [bar.label if is_new else bar.short or bar.label for bar in shown], places.tolist())
    ax.set_ylim(min(places.min(initial=0.0), -1.0) - 0.6, 0.6)
    caption(ax, chart.title, [chart.axis, "; ".join(chart.notes)], is_new=is_new)
    return ax

"""The smoothed model along one feature, with its band."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .names import drawn, percent, shortened, shown
from .style import BAND, RAISES, UNSURE, caption, check_result, ink, open_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..curve import Curve

MOST_ROWS = 50
"""Curves of single rows; more are a grey wall."""

LONGEST, SHORT = 40, 14


def curve(found: Curve, *, ax: Axes | None = None, confidence: float = 0.95) -> Axes:
    """The mean curve and its band over those of single rows, or a point for each level; ticks below are the rows."""
    check_result(found, "Curve")
    ax, is_new = open_axes(ax, 4.0, 6.0)
    lower, upper = found.interval(confidence)
    if len(found.by_row) > 1:
        for each in found.by_row[:MOST_ROWS]:
            ax.plot(found.grid, each, color=UNSURE, linewidth=0.6, alpha=0.5)
    if found.levels:
        ax.errorbar(found.grid, found.values, (upper - lower) / 2, fmt="o", color=RAISES, ecolor=ink(ax), capsize=3)
        ax.set_xticks(found.grid, [drawn(shortened(shown(level), SHORT)) for level in found.levels])
        ax.margins(x=0.2)
    else:
        ax.plot(found.grid, found.values, color=RAISES, linewidth=2)
        ax.fill_between(found.grid, lower, upper, color=RAISES, alpha=BAND, linewidth=0)
    ax.plot(found.x, [0.0] * len(found.x), "|", color=ink(ax), markersize=8, transform=ax.get_xaxis_transform())
    ax.spines[["top", "right"]].set_visible(False)
    rows = "the row" if len(found.by_row) == 1 else f"the mean over {len(found.by_row)} rows"
    errors = "error bars" if found.levels else "band"
    band = "exact" if found.is_exact else f"{percent(confidence)} {errors} of drawing"
    ax.set_ylabel(drawn(shortened(shown(found.output_name), LONGEST)))
    caption(ax, f"Smoothed output, {rows}; {band}", [shortened(shown(found.feature), LONGEST)], is_new=is_new)
    return ax

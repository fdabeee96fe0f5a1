"""The smoothed model along one feature, with its band."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.optional import require
from .names import drawn, percent, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..curve import Curve

COLOUR, FAINT = "#0072b2", "#9aa0a6"

MOST_ROWS = 50
"""Curves of single rows; more are a grey wall."""

LONGEST = 40


def curve(found: Curve, *, ax: Axes | None, confidence: float) -> Axes:
    """Draw the mean curve and its band over those of single rows; ticks at the bottom are the rows."""
    pyplot = require("matplotlib.pyplot", extra="plot", to="draw a curve")
    if ax is None:
        _, ax = pyplot.subplots(figsize=(6, 4), layout="constrained")
    lower, upper = found.interval(confidence)
    if len(found.by_row) > 1:
        for each in found.by_row[:MOST_ROWS]:
            ax.plot(found.grid, each, color=FAINT, linewidth=0.6, alpha=0.5)
    ax.plot(found.grid, found.values, color=COLOUR, linewidth=2)
    ax.fill_between(found.grid, lower, upper, color=COLOUR, alpha=0.25, linewidth=0)
    ax.plot(found.x, [0.0] * len(found.x), "|", color="black", markersize=8, transform=ax.get_xaxis_transform())
    ax.set_xlabel(drawn(shortened(found.feature, LONGEST)))
    ax.set_ylabel(drawn(shortened(found.output_name, LONGEST)))
    rows = "the row" if len(found.by_row) == 1 else f"the mean over {len(found.by_row)} rows"
    band = "exact" if found.is_exact else f"{percent(confidence)} band of drawing"
    ax.set_title(f"Smoothed output, {rows}; {band}", fontsize=10)
    return ax

"""Slopes of many rows as dots, coloured by the values of the feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._core.types import Array
from .._core.validate import check_count
from .heat import mean_size
from .names import count, percent, shortened, shown, told_apart
from .style import COLOUR_BAR, SMALL, UNSURE, caption, check_result, ink, largest_first, name_lines, open_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result.explanation import Explanation

LONGEST = 32
"""Characters of a name in a picture"""

COLOURS = "cividis"
"""Told apart by colour-blind readers, and in grey: dark is low, light is high"""

WIDEST = 0.38
"""Of a swarm, on either side, in lines"""


def beeswarm(e: Explanation, *, ax: Axes | None = None, confidence: float = 0.95, most: int = 12) -> Axes:
    """Standardised slopes, a dot for each row: dark for low values of the feature, light for high ones.

    Features with the largest mean |slope| on top. Dots without an edge have no certain sign; a grey box around 0 is as
    wide as the interval of the typical row, its median.
    """
    check_result(e, "Explanation", "e")
    chosen = largest_first(mean_size(e.standardised), check_count(most, "most"))
    ax, is_new = open_axes(ax, 1.7 + 0.42 * max(2, len(chosen)))
    places = -np.arange(len(chosen), dtype=np.float64)
    lower, upper = (end * e.std for end in e.interval(confidence))
    colour = ink(ax)
    dots = None
    for j, place in zip(chosen, places, strict=True):
        known = np.isfinite(e.standardised[:, j])
        slopes = e.standardised[known, j]
        is_sure = (lower[known, j] > 0) | (upper[known, j] < 0) | e.is_exact
        typical = float(np.median(upper[known, j] - slopes))
        if np.isfinite(typical) and not e.is_exact:
            ax.barh(place, 2 * typical, left=-typical, height=0.84, color=UNSURE, alpha=0.4, linewidth=0, zorder=0)
        y = place + _swarm(slopes)
        share = _ranks(e.x[known, j])
        for sure, edge in ((~is_sure, "none"), (is_sure, colour)):
            if sure.any():
                dots = ax.scatter(
                    slopes[sure], y[sure], s=16, c=share[sure], cmap=COLOURS, vmin=0, vmax=1, edgecolors=edge,
                    linewidths=0.4, zorder=2, plotnonfinite=True,
                )  # fmt: skip
    ax.axvline(0, color=colour, linewidth=0.8, zorder=1)
    name_lines(ax, told_apart(e.feature_names, chosen, LONGEST), places.tolist())
    ax.set_ylim(min(places.min(initial=0.0), -1.0) - 0.6, 0.6)
    if dots is not None:
        bar = ax.figure.colorbar(dots, ax=ax, ticks=[0, 1], aspect=30)
        bar.ax.set_yticklabels(["low", "high"])
        bar.set_label("value of the feature", fontsize=SMALL)
        bar.outline.set_visible(False)
    title = f"{shortened(shown(e.output_name), LONGEST)}: slopes of {count(len(e), 'row')}"
    caption(ax, title, _below(e, len(chosen), confidence), is_new=is_new, bar=COLOUR_BAR)
    return ax


def _below(e: Explanation, chosen: int, confidence: float) -> list[str]:
    notes = ["slope per neighbourhood standard deviation"]
    if e.is_exact:
        notes.append("exact, no sampling")
    else:
        half = f"grey box: {percent(confidence)} interval of the typical row"
        notes += [half, "dots without edge: sign uncertain"]
    left_out = int((~e.held).any(axis=0).sum()) - chosen
    return [*notes, *([f"{count(left_out, 'smaller feature')} not shown"] if left_out > 0 else [])]


def _ranks(values: Array) -> Array:
    """Values as shares between the lowest, 0, and the highest, 1; those in the middle where all are the same."""
    known = np.isfinite(values)
    share = np.full(len(values), np.nan)
    different, which = np.unique(values[known], return_inverse=True)
    share[known] = 0.5 if len(different) < 2 else which / (len(different) - 1)
    return share


def _swarm(slopes: Array) -> Array:
    """Offsets that keep dots of nearly equal slopes apart: the more there are, the wider; the same each time."""
    if len(slopes) < 2 or np.ptp(slopes) == 0:
        return np.linspace(-WIDEST, WIDEST, len(slopes)) if len(slopes) > 1 else np.zeros(len(slopes))
    bins = np.minimum((100 * (slopes - slopes.min()) / np.ptp(slopes)).astype(int), 99)
    offset = np.zeros(len(slopes))
    fullest = np.bincount(bins).max()
    for each in np.unique(bins):
        inside = np.flatnonzero(bins == each)
        step = np.ceil(np.arange(len(inside)) / 2) * np.where(np.arange(len(inside)) % 2, 1, -1)
        offset[inside] = step
    return offset * min(0.07, 2 * WIDEST / max(fullest, 1))

"""Rows × features as a map of slopes, with cells marked whose sign is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.types import Array
from .._core.validate import check_count
from .chart import LONGEST_OUTPUT
from .names import count, drawn, percent, shortened, shown, told_apart
from .style import COLOUR_BAR, SMALL, caption, check_result, diverging, largest_first, open_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result.explanation import Explanation

LONGEST = 24
"""Characters of a name, which stands on its side."""

MOST_MARKS = 1_500
"""Cells that have room for a mark each; of more, the open ones are greyed."""


def heat(
    e: Explanation, *, ax: Axes | None = None, confidence: float = 0.95, most: int = 20, most_rows: int = 60
) -> Axes:
    """Standardised slopes of all rows: blue raises the output, vermilion lowers it; × where the sign is uncertain.

    Features with the largest mean |slope| from left to right. Hatched cells have no slope: held fixed, or missing.
    """
    check_result(e, "Explanation", "e")
    rows = min(len(e), check_count(most_rows, "most_rows"))
    some = e[:rows]
    size = mean_size(e.standardised)
    chosen = largest_first(size, check_count(most, "most"))
    slopes = some.standardised[:, chosen]
    ax, is_new = open_axes(ax, 2.2 + min(0.24 * max(rows, 2), 6.0))
    image = diverging(ax, slopes, aspect="auto")
    lower, upper = (end[:, chosen] for end in some.interval(confidence))
    is_open = np.isfinite(slopes) & ~((lower > 0) | (upper < 0) | e.is_exact)
    mark_open(ax, is_open)
    names = told_apart(e.feature_names, chosen, LONGEST)
    ax.set_xticks(range(len(chosen)), [drawn(name) for name in names], rotation=45, ha="right", rotation_mode="anchor")
    step = max(1, rows // 20)
    outputs = e.row_outputs[:rows] if len(set(e.row_outputs)) > 1 else [""] * rows
    labels = [f"{i}" + (f" ({shown(name)[:12]})" if name else "") for i, name in enumerate(outputs)]
    ax.set_yticks(range(0, rows, step), [drawn(label) for label in labels[::step]])
    ax.set_ylabel("row")
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label("slope per neighbourhood\nstandard deviation", fontsize=SMALL)
    title = f"{shortened(shown(e.output_name), LONGEST_OUTPUT)}: slopes of {count(rows, 'row')}"
    below = _below(e, len(chosen), rows, confidence, is_open=is_open, is_held=np.isnan(slopes))
    caption(ax, title, below, is_new=is_new, bar=COLOUR_BAR)
    return ax


def mean_size(slopes: Array) -> Array:
    """(d,) mean |slope| over the rows that have one; NaN where none has."""
    known = np.isfinite(slopes)
    total = np.where(known, np.abs(slopes), 0.0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)


def mark_open(ax: Any, is_open: Any) -> None:
    """A cross in each cell whose sign is uncertain; of many cells a veil of grey."""
    if not is_open.any():
        return
    if is_open.size <= MOST_MARKS:
        y, x = np.nonzero(is_open)
        ax.plot(x, y, "x", color="#404040", markersize=3.5, markeredgewidth=0.8)
        return
    veil = np.zeros((*is_open.shape, 4))
    veil[is_open] = (0.58, 0.58, 0.58, 0.8)
    ax.imshow(veil, interpolation="nearest", aspect=ax.get_aspect())


def _below(
    e: Explanation, shown_features: int, rows: int, confidence: float, *, is_open: Any, is_held: Any
) -> list[str]:
    notes = ["exact, no sampling" if e.is_exact else f"{e.method}; {percent(confidence)} intervals"]
    if is_open.any():
        mark = "×" if is_open.size <= MOST_MARKS else "grey"
        notes[0] += f"; {mark}: sign uncertain ({is_open.mean():.0%})"
    if is_held.any():
        notes[0] += "; hatched: no slope"
    left_out = int((~e.held).any(axis=0).sum()) - shown_features
    if left_out > 0:
        notes.append(f"{count(left_out, 'smaller feature')} not shown")
    if rows < len(e):
        notes.append(f"the first {rows:,} of {len(e):,} rows")
    return notes

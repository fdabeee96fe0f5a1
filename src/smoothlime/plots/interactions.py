"""Interactions of a row: shares and the largest pairs as text and tables, and a map of all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.types import Array
from .._core.validate import check_count
from .heat import LONGEST
from .image import VEIL
from .names import cells, count, drawn, padded, percent, shown, told_apart
from .numbers import number
from .style import COLOUR_BAR, SMALL, caption, check_result, diverging, open_axes
from .text import made_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result.interactions import Interactions, Pair

MOST_ROWS, MOST_PAIRS = 5, 5

HEAD = ("pair", "second slope", "per both std", "share")

SMALLEST = 1e-9
"""Of the largest: pairs of exact second slopes below this are rounding."""


def as_text(found: Interactions) -> str:
    """What explains the variance around each row, and the largest pairs."""
    parts = []
    for row in range(min(len(found), MOST_ROWS)):
        lines = [HEAD, *(pair_cells(found, pair) for pair in told(found, row))]
        widths = [max(cells(line[column]) for line in lines) for column in range(len(HEAD))]
        body = ["  " + "  ".join(map(padded, line, widths)).rstrip() for line in lines]
        parts.append("\n".join([headline(found, row), f"  {shares(found, row)}", *body * (len(lines) > 1)]))
    if len(found) > MOST_ROWS:
        parts.append(f"... and {count(len(found) - MOST_ROWS, 'more row')}")
    return "\n\n".join([*parts, footer(found)])


def as_rich(found: Interactions) -> Any:
    """The same as tables for rich."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    tables: list[Any] = []
    for row in range(min(len(found), MOST_ROWS)):
        table = Table(title=Text(f"{headline(found, row)}\n{shares(found, row)}"), title_justify="left")
        for column in HEAD:
            table.add_column(column, justify="left" if column == "pair" else "right", overflow="fold")
        for pair in told(found, row):
            style = "" if pair.is_sure or found.is_exact else "dim"
            table.add_row(*map(Text, pair_cells(found, pair)), style=style)
        tables.append(table)
    if len(found) > MOST_ROWS:
        tables.append(Text(f"... and {count(len(found) - MOST_ROWS, 'more row')}"))
    return Group(*tables, Text(footer(found)))


def interactions(
    found: Interactions, row: int = 0, *, ax: Axes | None = None, confidence: float = 0.95, most: int = 10
) -> Axes:
    """Standardised second slopes of a row as a map of the features with the largest: bends on the diagonal.

    Blue: each of the two makes the slope of the other steeper; vermilion: flatter. Below each number stands the
    half-width of its interval; grey covers what has no certain sign.
    """
    check_result(found, "Interactions")
    i = found.position(row)
    chosen = _chosen(found, i, check_count(most, "most"))
    std = found.explanation.std[chosen]
    field = found.standardised[i][np.ix_(chosen, chosen)]
    lower, upper = (end[i][np.ix_(chosen, chosen)] * (std[:, None] * std) for end in found.interval(confidence))
    is_open = np.isfinite(field) & (lower <= 0) & (upper >= 0) & (not found.is_exact)
    side = 1.8 + 0.6 * max(2, len(chosen))
    ax, is_new = open_axes(ax, side + 0.6, side)
    image = diverging(ax, field)
    veil = np.zeros((*field.shape, 4))
    veil[is_open] = VEIL
    ax.imshow(veil, interpolation="nearest", zorder=2)
    _write(ax, field, (upper - lower) / 2, is_open, is_exact=found.is_exact)
    names = [drawn(name) for name in told_apart(found.feature_names, chosen, LONGEST)]
    ax.set_xticks(range(len(chosen)), names, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(chosen)), names)
    ax.figure.colorbar(image, ax=ax).set_label("second slope per both\nstandard deviations", fontsize=SMALL)
    how = "exact, no sampling" if found.is_exact else f"{percent(confidence)} intervals; grey: sign uncertain"
    below = [shares(found, i), f"{made_by(found.explanation)}; {how}" if not found.is_exact else how]
    caption(ax, headline(found, i), below, is_new=is_new, bar=COLOUR_BAR)
    return ax


def _write(ax: Axes, field: Array, reach: Array, is_open: Any, *, is_exact: bool) -> None:
    """Numbers into the cells."""
    largest = np.nanmax(np.abs(field), initial=0.0)
    for i, j in np.argwhere(np.isfinite(field)):
        told = f"{field[i, j]:.2g}" + ("" if is_exact else f"\n±{reach[i, j]:.1g}")
        is_dark = abs(field[i, j]) > 0.6 * largest and not is_open[i, j]
        ax.text(j, i, told, ha="center", va="center", fontsize=7, color="white" if is_dark else "black", zorder=3)


def _chosen(found: Interactions, row: int, most: int) -> list[int]:
    """Features with the largest second slopes, in the order of the table."""
    field = np.nan_to_num(np.abs(found.standardised[row]))
    free = found.explanation.factor.free
    free = free[np.isfinite(found.standardised[row]).any(axis=1)[free]]
    size = field.max(axis=1)[free]
    return sorted(map(int, free[np.argsort(-size, kind="stable")[:most]]))


def told(found: Interactions, row: int) -> list[Pair]:
    """The largest pairs of a row, without what is rounding of exact ones."""
    pairs = found.top(MOST_PAIRS, row=row)
    largest = max((abs(pair.standardised) for pair in pairs), default=0.0)
    return [pair for pair in pairs if not found.is_exact or abs(pair.standardised) > SMALLEST * largest]


def pair_cells(found: Interactions, pair: Pair) -> tuple[str, str, str, str]:
    """A line of a table, as in `HEAD`."""
    name = " × ".join(map(shown, pair.features))
    share = "" if np.isnan(pair.share) else f"{pair.share:.1%}"
    if found.is_exact:
        return name, f"{pair.value:+.6g}", f"{pair.standardised:+.6g}", share
    half = (pair.upper - pair.lower) / 2
    scale = pair.standardised / pair.value if pair.value else 1.0
    return name, number(pair.value, half), number(pair.standardised, half * scale), share


def headline(found: Interactions, row: int) -> str:
    """One line about a row."""
    e = found.explanation
    return f"row {row}: interactions in {shown(e.row_outputs[row])}, f(x) = {e.prediction[row]:.4g}"


def shares(found: Interactions, row: int) -> str:
    """`71% linear, 6% bends, 18% interactions, 5% beyond`."""
    told = (f"{share[row]:.0%} {name}" for name, share in found.shares.items() if np.isfinite(share[row]))
    return ", ".join(told) + " nearby"


def footer(found: Interactions) -> str:
    """How the numbers came about."""
    if found.is_exact:
        return "exact: no sampling, no sampling error"
    return f"{made_by(found.explanation)}; ± is a 95% interval"

"""How far explanations of neighbours are apart: of each row, on average, and what the certificate allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._core.types import Array, Indices
from .names import count
from .style import BAND, LOWERS, RAISES, RULE, SERIES, caption, check_result, ink, legend, open_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..guarantees.robustness import Robustness

FAR = 4.0
"""A ceiling beyond so many times the largest distance is named, not drawn."""

TWO_SIDED = 1.96
"""Standard errors of a mean over rows on either side"""


def robustness(found: Robustness, *, ax: Axes | None = None) -> Axes:
    """Largest distance to a neighbour's explanation, a dot for each row, smallest first; their mean with its interval.

    Dashed: the same with 16 times the draws, which is the model's part. Triangles: what the certificate allows that.
    """
    check_result(found, "Robustness")
    order = np.argsort(found.per_row, kind="stable")
    r = len(order)
    ax, is_new = open_axes(ax, 4.0)
    places = (np.arange(r) + 0.5) / r
    ax.plot(found.per_row[order], places, "o", color=RAISES, markersize=5 if r <= 50 else 3, label="rows")
    ax.axvline(found.mean, color=ink(ax), linewidth=1.4, label=f"mean {found.mean:.3g}")
    if np.isfinite(found.standard_error):
        reach = TWO_SIDED * found.standard_error
        ax.axvspan(found.mean - reach, found.mean + reach, color=RULE, alpha=BAND, linewidth=0, label="95% interval")
    ax.axvline(
        found.population, color=LOWERS, linestyle="--", linewidth=1.4, label=f"the model's part {found.population:.3g}"
    )
    notes = [
        f"largest L{found.norm} distance over {found.neighbours} neighbours (spread {found.spread:g}), {found.units}"
    ]
    if found.ceiling is not None:
        notes.append(_ceiling(found, order, places, ax))
    ax.set_xlim(left=0)
    ax.set_ylim(0, 1)
    ax.set_ylabel("share of rows")
    ax.spines[["top", "right"]].set_visible(False)
    legend(ax, is_new=is_new)
    caption(ax, f"Explanations of neighbours, {count(r, 'row')}", notes, is_new=is_new)
    return ax


def _ceiling(found: Robustness, order: Indices, places: Array, ax: Axes) -> str:
    """Draw the ceiling where it is near, and say where it is."""
    assert found.ceiling is not None
    if found.ceiling.min() <= FAR * max(float(found.per_row.max()), found.population):
        ax.plot(found.ceiling[order], places, "<", color=SERIES[2], markersize=5, label="certified ceiling")
        return f"certified ceiling assumes {found.assumes}"
    return f"certified ceiling {found.ceiling.mean():.3g}, beyond the picture; assumes {found.assumes}"

"""Do gradients agree with predictions? Their difference at each row, beside the margin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.validate import check_count
from .names import count, drawn, percent, shortened, shown
from .style import LOWERS, RAISES, RULE, SMALL, UNSURE, caption, check_result, ink, legend, name_lines, open_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..guarantees.agreement import Agreement

COLOURS = {True: (RAISES, "agree", "o"), False: (LOWERS, "disagree", "X"), None: (UNSURE, "cannot tell", "D")}
"""Colour, word and mark of each verdict"""

ANY_AMOUNT = 10.0
"""Relative differences from here on are drawn as endless: there is hardly a slope to compare with"""

MOST_NAMES, LONGEST = 3, 32
"""Features named at a row that disagrees, and characters of their names"""


def agreement(found: Agreement, *, ax: Axes | None = None, most: int = 25) -> Axes:
    """Relative difference of the slopes from gradients and from predictions, a line for each row, the largest on top.

    From each mark a line leads to what is ruled out at level alpha: where it ends within the margin, the row agrees.
    """
    check_result(found, "Agreement")
    order = np.argsort(-np.nan_to_num(found.relative, nan=np.inf), kind="stable")
    chosen = order[: check_count(most, "most")]
    ax, is_new = open_axes(ax, 1.7 + 0.3 * max(2, len(chosen)))
    known = np.concatenate([found.relative[chosen], found.within[chosen], [found.margin]])
    far = 1.1 * float(known[known < ANY_AMOUNT].max(initial=0.0) or 1.0)
    ax.axvspan(0, found.margin, color=RULE, alpha=0.3, linewidth=0, label=f"margin {percent(found.margin)}")
    for place, row in enumerate(chosen):
        colour, word, mark = COLOURS[found.agrees[row]]
        at, end = (min(float(each[row]), far) for each in (found.relative, found.within))
        ax.plot([at, max(at, end)], [-place, -place], color=ink(ax), linewidth=1.2)
        is_endless = max(found.relative[row], found.within[row]) > far
        if is_endless or end > at:
            ax.plot(max(at, end), -place, ">" if is_endless else "|", color=ink(ax), markersize=5 if is_endless else 8)
        has_label = word in ax.get_legend_handles_labels()[1]
        ax.plot(at, -place, mark, color=colour, markersize=7, label=None if has_label else word)
        if found.features[row]:
            _name(ax, found.features[row], max(at, end), -place)
    name_lines(ax, [f"row {row}" for row in chosen], (-np.arange(len(chosen))).tolist())
    ax.set_xlim(0, far * 1.04)
    ax.set_ylim(-max(len(chosen), 2) + 0.4, 0.6)
    ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g}%")
    legend(ax, is_new=is_new)
    caption(ax, f"Gradients and predictions: {found.verdict}", _below(found, len(chosen)), is_new=is_new)
    return ax


def _name(ax: Any, features: Sequence[str], x: float, y: float) -> None:
    """Name what differs, beside its line."""
    named = ", ".join(shown(name) for name in features[:MOST_NAMES]) + (", ..." if len(features) > MOST_NAMES else "")
    text = drawn(shortened(named, LONGEST))
    ax.annotate(
        text, (x, y), xytext=(6, 0), textcoords="offset points", va="center", fontsize=SMALL, color=ink(ax),
        annotation_clip=False,
    )  # fmt: skip


def _below(found: Agreement, shown_rows: int) -> list[str]:
    notes = ["difference of the slopes, relative to their length", "lines lead to what is ruled out"]
    left_out = len(found) - shown_rows
    notes[1] += f" at level {found.alpha:g}; {found.n_samples:,} shared draws"
    return [*notes, *([f"{count(left_out, 'row')} with smaller differences not shown"] if left_out else [])]

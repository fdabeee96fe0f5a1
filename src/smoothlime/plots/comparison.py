"""Slopes of an old model and a new one, with the margin between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.validate import check_count, check_position
from ..errors import InvalidArgument
from .chart import LONGEST_OUTPUT, value_word
from .names import count, percent, shortened, shown, told_apart
from .style import (
    LOWERS,
    RAISES,
    RULE,
    UNSURE,
    caption,
    check_result,
    ink,
    largest_first,
    legend,
    name_lines,
    open_axes,
    whiskers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..guarantees.compare import Comparison

WORDS = {True: "changed", False: "unchanged", None: "cannot tell"}
COLOURS = {True: LOWERS, False: RAISES, None: UNSURE}
MARKS = {True: "X", False: "o", None: "D"}

LONGEST = 32
"""Characters of a name in a picture"""


def comparison(
    found: Comparison, row: int | None = None, *, ax: Axes | None = None, confidence: float = 0.95, most: int = 12
) -> Axes:
    """Old slopes and new ones of a row, each with what the margin allows around the old; of several rows, all of them.

    Of one row: bars are old slopes, marks new ones, with the interval of the difference. Grey boxes are as wide as the
    margin on either side. Of several rows: how far all slopes together have moved, beside what the margin allows.
    """
    check_result(found, "Comparison")
    check_count(most, "most")
    if row is None and len(found) > 1:
        return _rows(found, ax, most)
    i = _position(found, 0 if row is None else row)
    return _one(found, i, ax, confidence, most)


def _one(found: Comparison, i: int, ax: Axes | None, confidence: float, most: int) -> Axes:
    old, new = found.old.standardised[i], found.new.standardised[i]
    chosen = largest_first(np.fmax(np.abs(old), np.abs(new)), most)
    ax, is_new = open_axes(ax, 1.7 + 0.34 * max(2, len(chosen)))
    places = -np.arange(len(chosen), dtype=np.float64)
    old, new = old[chosen], new[chosen]
    allowed = float(found.allowed[i])
    lower, upper = (end[i, chosen] * found.explanation.std[chosen] for end in found.explanation.interval(confidence))
    ax.barh(places, 2 * allowed, left=old - allowed, height=0.78, color=RULE, alpha=0.3, linewidth=0, label="margin")
    ax.use_sticky_edges = False  # boxes need not end at the frame
    ax.barh(places, old, height=0.4, color=UNSURE, label="old")
    is_beyond = (lower > allowed) | (upper < -allowed)
    whiskers(ax, new, places, old + lower, old + upper)
    for beyond, colour, word in ((~is_beyond, RAISES, "new"), (is_beyond, LOWERS, "new, beyond the margin")):
        if beyond.any():
            ax.plot(new[beyond], places[beyond], "o", color=colour, markersize=7, markeredgecolor=ink(ax), label=word)
    ax.axvline(0, color=ink(ax), linewidth=0.8)
    values = [value_word(found.old.x[i, j]) for j in chosen]
    names = told_apart(found.old.feature_names, chosen, LONGEST)
    labels = [name + (f" = {value}" if value else "") for name, value in zip(names, values, strict=True)]
    name_lines(ax, labels, places.tolist())
    ax.set_ylim(min(places.min(initial=0.0), -1.0) - 0.6, 0.6)
    if is_new:
        legend(ax, is_new=True)
    where = f", row {i} of {len(found):,}" if len(found) > 1 else ""
    moved = f"moved by {found.size[i]:.3g}, allowed {allowed:.3g}"
    title = f"{shortened(shown(found.old.row_outputs[i]), LONGEST_OUTPUT)}{where}: {WORDS[found.changed[i]]}; {moved}"
    left_out = int((~found.old.held[i]).sum()) - len(chosen)
    caption(ax, title, _below(found, confidence, left_out, has_legend=is_new), is_new=is_new)
    return ax


def _rows(found: Comparison, ax: Axes | None, most: int) -> Axes:
    """How far each row has moved, those that moved furthest for their margin on top."""
    share = found.size / np.where(found.allowed > 0, found.allowed, 1.0)
    chosen = np.argsort(-share, kind="stable")[: max(most, 1)]
    ax, is_new = open_axes(ax, 1.7 + 0.3 * max(2, len(chosen)))
    places = -np.arange(len(chosen), dtype=np.float64)
    size, allowed, radius = found.size[chosen], found.allowed[chosen], found.explanation.radius[chosen]
    ax.barh(places, allowed, height=0.78, color=RULE, alpha=0.3, linewidth=0, label="margin")
    whiskers(ax, size, places, np.maximum(size - radius, 0.0), size + radius)
    for verdict in (True, None, False):
        here = np.array([found.changed[row] is verdict for row in chosen])
        if here.any():
            look = {"color": COLOURS[verdict], "label": WORDS[verdict], "markeredgecolor": ink(ax)}
            ax.plot(size[here], places[here], MARKS[verdict], markersize=7, **look)
    name_lines(ax, [f"row {row}" for row in chosen], places.tolist())
    ax.set_xlim(left=0)
    ax.set_ylim(min(places.min(initial=0.0), -1.0) - 0.6, 0.6)
    legend(ax, is_new=is_new)
    told = percent(found.explanation.provenance.confidence)
    notes = ["change of all slopes together (L2, standardised)", f"error bars: bounds of {told} confidence"]
    if left_out := len(found) - len(chosen):
        notes.append(f"{count(left_out, 'row')} that moved less not shown")
    changed = sum(each is True for each in found.changed)
    output = shortened(shown(found.old.output_name), LONGEST_OUTPUT)
    title = f"{output}: {found.verdict}; {changed} of {len(found):,} rows by more than the margin"
    caption(ax, title, notes, is_new=is_new)
    return ax


def _below(found: Comparison, confidence: float, left_out: int, *, has_legend: bool) -> list[str]:
    how = "exact" if found.explanation.is_exact else f"{percent(confidence)} intervals of the difference"
    notes = ["slope per neighbourhood standard deviation", f"{how}; margin {percent(found.margin)} of all old slopes"]
    if not has_legend:
        notes.append("bars: old; dots: new, vermilion beyond the margin; boxes: margin")
    return [*notes, *([f"{count(left_out, 'smaller slope')} not shown"] if left_out > 0 else [])]


def _position(found: Comparison, row: Any) -> int:
    position = check_position(row, "row")
    if not -len(found) <= position < len(found):
        msg = f"row {position} is out of range; this comparison has {count(len(found), 'row')}"
        raise InvalidArgument(msg, argument="row")
    return position % len(found)

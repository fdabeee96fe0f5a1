"""Contributions of a row: a waterfall from f(b) to f(x), gaps included, and the same as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.optional import require
from .._core.types import Array
from .._core.validate import check_count, check_position
from ..errors import InvalidArgument
from .names import count, drawn, padded, percent, shown, told_apart
from .numbers import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..contributions import Contributions

RAISES, LOWERS, UNSURE, GAP = "#2a6f97", "#c1554d", "#b5b5b5", "#d9d2c0"

LONGEST = 32
"""Characters of a name in a picture."""

MOST_LINES = 12
"""Features in print."""


def waterfall(c: Contributions, row: int, *, ax: Axes | None, confidence: float, most: int) -> Axes:
    """Bars from f(b) at the bottom to f(x) on top, the largest contributions highest; error bars at their ends."""
    pyplot: Any = require("matplotlib.pyplot", extra="plot", to="draw contributions")
    i = _row(c, row)
    chosen, others = _chosen(c, i, check_count(most, "most"))
    reach = c.half_width(confidence)[i]
    steps = [(c.base[i] - c.base_prediction[i], 0.0, "smoothing at the baseline", GAP)]
    if others:
        rest = float(c.values[i, others].sum())
        steps.append((rest, _reach_of_sum(c, i, others, reach), f"{count(len(others), 'other feature')}", UNSURE))
    names = told_apart(c.feature_names, chosen, LONGEST)
    for j, name in reversed(list(zip(chosen, names, strict=True))):
        value, half = float(c.values[i, j]), float(reach[j])
        colour = UNSURE if abs(value) <= half and not c.is_exact else RAISES if value > 0 else LOWERS
        steps.append((value, half, name, colour))
    if not c.is_exact:
        steps.append((float(c.residual[i]), 0.0, "residual of drawing", GAP))
    steps.append((c.prediction[i] - c.total[i], 0.0, "smoothing at the row", GAP))
    if ax is None:
        _, ax = pyplot.subplots(figsize=(7, 1.4 + 0.34 * len(steps)), layout="constrained")
    assert ax is not None
    ink = pyplot.rcParams["text.color"]
    at = float(c.base_prediction[i])
    for place, (value, half, _, colour) in enumerate(steps):
        ax.barh(place, value, left=at, color=colour, height=0.7)
        if half > 0 and not c.is_exact:
            ax.errorbar(at + value, place, xerr=half, fmt="none", ecolor=ink, capsize=3)
        ax.plot([at + value] * 2, [place - 0.35, min(place + 1.35, len(steps) - 0.65)], color=ink, linewidth=0.6)
        at += value
    ax.axvline(c.base_prediction[i], color=ink, linewidth=0.6, linestyle=":")
    ax.use_sticky_edges = False  # bars need not end at the frame
    ax.autoscale_view()
    ax.set_yticks(range(len(steps)), [drawn(name) for *_, name, _ in steps])
    ax.set_xlabel(drawn(f"f(b) = {c.base_prediction[i]:.4g}  →  f(x) = {c.prediction[i]:.4g}"))
    how = "exact" if c.is_exact else f"{percent(confidence)} intervals, {int(c.n_samples[i]):,} draws"
    ax.set_title(drawn(f"Contributions to {shown(c.row_outputs[i])}, row {i}; {how}"), fontsize=10)
    return ax


def as_text(c: Contributions) -> str:
    """The first row, the largest contributions first, between F(b) and F(x); the gaps below."""
    reach = c.half_width()[0]
    chosen, others = _chosen(c, 0, MOST_LINES)
    names = told_apart(c.feature_names, chosen)
    lines = [(f"base F(b), {count(len(c.baseline), 'baseline')}", f"{c.base[0]:+.4g}")]
    lines += [(name, _told(c, float(c.values[0, j]), float(reach[j]))) for j, name in zip(chosen, names, strict=True)]
    if others:
        rest = float(c.values[0, others].sum())
        lines.append((count(len(others), "other feature"), _told(c, rest, _reach_of_sum(c, 0, others, reach))))
    lines.append(("total F(x)", f"{c.total[0]:+.4g}"))
    lines.append(("f(x) − F(x)", f"{c.prediction[0] - c.total[0]:+.4g}"))
    lines.append(("f(b) − F(b)", f"{c.base_prediction[0] - c.base[0]:+.4g}"))
    if not c.is_exact:
        lines.append(("residual", number(float(c.residual[0]), 1.96 * float(c.residual_error[0]))))
    wide = max(len(name) for name, _ in lines)
    how = "exact" if c.is_exact else f"{int(c.n_samples[0]):,} draws, ± 95%"
    more = f" of {len(c):,}" if len(c) > 1 else ""
    told = [f"Contributions to {shown(c.row_outputs[0])}, row 0{more}: {how}"]
    told += [f"  {padded(name, wide)}  {value}" for name, value in lines]
    if c.held_alike:
        listed = ", ".join(map(shown, c.held_alike[:6])) + (", ..." if len(c.held_alike) > 6 else "")
        told.append(f"Held at the row's own values in the baselines: {listed}")
    return "\n".join(told)


def _told(c: Contributions, value: float, half: float) -> str:
    return f"{value:+.4g}" if c.is_exact else number(value, half)


def _row(c: Contributions, row: Any) -> int:
    """A position among the rows."""
    position = check_position(row, "row")
    if not -len(c) <= position < len(c):
        msg = f"row {position} is out of range; these are contributions to {count(len(c), 'row')}"
        raise InvalidArgument(msg, argument="row")
    return position % len(c)


def _chosen(c: Contributions, i: int, most: int) -> tuple[list[int], list[int]]:
    """Positions of the largest contributions, and of the others that are not 0."""
    order = np.argsort(-np.abs(c.values[i]), kind="stable")
    some = [int(j) for j in order if c.values[i, j] != 0]
    return (some, []) if len(some) <= most else (some[: most - 1], some[most - 1 :])


def _reach_of_sum(c: Contributions, i: int, others: list[int], reach: Array) -> float:
    """Half-width of a sum of contributions: by what groups say of it."""
    if c.groups is None:
        return float(c.radius[i]) * len(others) ** 0.5
    said = c.groups.pseudo[i][:, others]
    alone = np.sqrt(said.var(axis=0, ddof=1).sum())
    wider = float(np.linalg.norm(reach[others])) / float(alone) if alone > 0 else 0.0
    return float(said.sum(axis=1).std(ddof=1)) * wider

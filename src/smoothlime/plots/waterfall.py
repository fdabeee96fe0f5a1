"""Contributions of a row: a waterfall from f(b) to f(x), gaps included, and the same as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.types import Array
from .._core.validate import check_count, check_position
from ..errors import InvalidArgument
from ..uncertainty.jackknife import t_quantile
from .chart import value_word
from .names import count, padded, percent, shortened, shown, told_apart
from .numbers import number
from .style import GAP, LOWERS, RAISES, UNSURE, caption, check_result, ink, name_lines, open_axes, whiskers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..contributions import Contributions

LONGEST = 32
"""Characters of a name in a picture; its value stands behind it."""

MOST_LINES = 12
"""Features in print."""


class Step(NamedTuple):
    """One bar of a waterfall."""

    label: str
    value: float
    reach: float
    """Half-width of its interval"""
    colour: str
    is_gap: bool = False


def waterfall(
    c: Contributions, row: int = 0, *, ax: Axes | None = None, confidence: float = 0.95, most: int = 10
) -> Axes:
    """Bars from f(b) at the bottom to f(x) on top, the largest contributions highest; error bars at their ends.

    Hatched bars are what smoothing changes at the baseline and at the row: the gaps between the model and F.
    """
    check_result(c, "Contributions", "c")
    i = _row(c, row)
    steps = _steps(c, i, confidence, check_count(most, "most"))
    ax, is_new = open_axes(ax, 1.5 + 0.32 * len(steps))
    starts = c.base_prediction[i] + np.cumsum([0.0, *(step.value for step in steps)])
    for place, step in enumerate(steps):
        look: dict[str, Any] = (
            {"color": "none", "edgecolor": step.colour, "hatch": "////"} if step.is_gap else {"color": step.colour}
        )
        ax.barh(place, step.value, left=starts[place], height=0.7, **look)
        end = starts[place + 1]
        ax.plot([end, end], [place - 0.35, min(place + 1.35, len(steps) - 0.65)], color=ink(ax), linewidth=0.6)
    reach = np.array([step.reach for step in steps])
    has_error = (reach > 0) & (not c.is_exact)
    ends, places = starts[1:][has_error], np.flatnonzero(has_error)
    whiskers(ax, ends, places, ends - reach[has_error], ends + reach[has_error])
    ax.axvline(c.base_prediction[i], color=ink(ax), linewidth=0.6, linestyle=":")
    ax.use_sticky_edges = False  # bars need not end at the frame
    ax.autoscale_view()
    name_lines(ax, [step.label for step in steps])
    how = "exact" if c.is_exact else f"{percent(confidence)} intervals, {int(c.n_samples[i]):,} draws"
    grey = ["grey: sign uncertain"] if any(step.colour == UNSURE and not step.is_gap for step in steps) else []
    where = f", row {i} of {len(c):,}" if len(c) > 1 else ""
    title = f"{shortened(shown(c.row_outputs[i]), LONGEST)}{where}: contributions, {how}"
    below = f"f(b) = {c.base_prediction[i]:.4g}  →  f(x) = {c.prediction[i]:.4g}"
    caption(ax, title, [below, "hatched: gaps between the model and its mean nearby", *grey], is_new=is_new)
    return ax


def _steps(c: Contributions, i: int, confidence: float, most: int) -> list[Step]:
    """The gap at the baseline, small contributions together, large ones, the residual, the gap at the row."""
    chosen, others = _chosen(c, i, most)
    reach = c.half_width(confidence)[i]
    times = 0.0 if c.groups is None else float(t_quantile(c.groups.degrees_of_freedom[i], (1 + confidence) / 2))

    def gap(label: str, value: float, error: float) -> Step:
        return Step(label, float(value), times * float(error), GAP, is_gap=True)

    steps = [gap("smoothing at the baseline", c.base[i] - c.base_prediction[i], c.base_error[i])]
    if others:
        rest = float(c.values[i, others].sum())
        half = _reach_of_sum(c, i, others, reach)
        label = count(len(others), "other feature")
        steps.append(Step(label, rest, half, _colour(c, rest, half)))
    names = told_apart(c.feature_names, chosen, LONGEST)
    for j, name in reversed(list(zip(chosen, names, strict=True))):
        value, half, x = float(c.values[i, j]), float(reach[j]), value_word(c.x[i, j])
        steps.append(Step(name + (f" = {x}" if x else ""), value, half, _colour(c, value, half)))
    if not c.is_exact:
        steps.append(gap("residual of drawing", c.residual[i], c.residual_error[i]))
    return [*steps, gap("smoothing at the row", c.prediction[i] - c.total[i], c.total_error[i])]


def _colour(c: Contributions, value: float, half: float) -> str:
    return UNSURE if not (abs(value) > half or c.is_exact) else RAISES if value > 0 else LOWERS


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

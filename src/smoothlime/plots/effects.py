"""Mean slopes over rows, with the error of drawing and that of sampling the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._core.validate import check_count, check_fraction
from ..uncertainty.jackknife import t_quantile
from .names import count, drawn, percent, shortened, shown, told_apart
from .style import GROUPS, LOWERS, RAISES, UNSURE, caption, check_result, ink, legend, name_lines, open_axes, whiskers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result.effects import Effects

LONGEST = 32
"""Characters of a name in a picture"""

MOST_GROUPS = len(GROUPS)
"""Groups side by side"""


def effects(found: Effects, *, ax: Axes | None = None, confidence: float = 0.95, most: int = 12) -> Axes:
    """Mean slopes, standardised, features with the largest mean |slope| on top; a colour for each group.

    Thin error bars are the whole interval. For rows that are a sample, thick ones are the part that more draws would
    take away. Diamonds are mean |slopes|: far from the bar where slopes of both signs cancel.
    """
    check_result(found, "Effects")
    miss = 1 - check_fraction(confidence, "confidence")
    chosen = found.order()[: check_count(most, "most")]
    parts = dict(list(found.groups.items())[:MOST_GROUPS]) or {None: found}
    ax, is_new = open_axes(ax, 1.6 + max(0.32, 0.17 * len(parts)) * max(2, len(chosen)) + 0.25 * (len(parts) > 1))
    places = -np.arange(len(chosen), dtype=np.float64)
    height = 0.76 / len(parts)
    is_sure = True
    for i, (label, each) in enumerate(parts.items()):
        at = places + 0.38 - height * (i + 0.5)
        middle, std = each.standardised[chosen], each.std[chosen]
        lower, upper = (end[chosen] * std for end in each.interval(confidence))
        sure = (lower > 0) | (upper < 0) | (each.standard_error[chosen] == 0)
        is_sure &= bool(sure.all())
        colours = np.where(sure, np.where(middle > 0, RAISES, LOWERS), UNSURE)
        if label is None:
            ax.barh(at, middle, height=height, color=list(colours))
            ax.plot(each.absolute[chosen] * std, at, "D", color=ink(ax), markerfacecolor="none", markersize=4.5)
        else:
            ax.barh(at, middle, height=height, color=GROUPS[i], label=_group(label, each))
        whiskers(ax, middle, at, lower, upper, capsize=3 if height > 0.3 else 2)
        if found.rows == "sample":
            reach = t_quantile(each.degrees_of_freedom, 1 - miss / 2)[chosen] * each.drawing_error[chosen] * std
            whiskers(ax, middle, at, middle - reach, middle + reach, capsize=0, linewidth=3.5 if height > 0.3 else 2.5)
    ax.axvline(0, color=ink(ax), linewidth=0.8)
    name_lines(ax, told_apart(found.feature_names, chosen, LONGEST), places.tolist())
    ax.set_ylim(min(places.min(initial=0.0), -1.0) - 0.6, 0.6)
    if len(parts) > 1 or found.groups:
        legend(ax, is_new=is_new)
    rows = count(int(found.count.max(initial=0)), "row")
    title = f"{shortened(shown(found.output_name), LONGEST)}: mean {several(found.what)} over {rows}"
    caption(ax, title, _below(found, chosen, confidence, is_sure=is_sure), is_new=is_new)
    return ax


def several(what: str) -> str:
    """More than one of what is averaged."""
    return f"{what}{'es' if what.endswith('ch') else 's'}"


def _group(label: object, each: Effects) -> str:
    return drawn(f"{shortened(shown(str(label)), LONGEST)} ({int(each.count.max(initial=0)):,})")


def _below(found: Effects, chosen: list[int], confidence: float, *, is_sure: bool) -> list[str]:
    interval = f"{percent(confidence)} intervals"
    of = "for errors of drawing" if found.rows == "these" else "for the population"
    is_drawn = found.rows == "sample" and bool((found.drawing_error[chosen] > 0).any())
    of += "; thick: error of drawing alone" * is_drawn
    per = " per neighbourhood standard deviation" if found.what == "slope" else ", in units of the output"
    notes = [f"mean {found.what}{per}", f"{interval} {of}"]
    if not found.groups:
        notes.append(f"diamonds: mean |{found.what}|" + ("" if is_sure else "; grey: sign uncertain"))
    if left_out := len(found.order()) - len(chosen):
        notes.append(f"{count(left_out, 'smaller feature')} not shown")
    if len(found.groups) > MOST_GROUPS:
        notes.append(f"the first {MOST_GROUPS} of {len(found.groups)} groups")
    return notes

"""Effects of other levels as bars of their own, below those of slopes and in the same unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..result.switches import Switches
from .names import drawn, shortened
from .switched import called, order

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP = 1.4
"""Of an empty line and a dotted one, in bars, between slopes and switches."""


def largest(switches: Switches, most: int) -> list[int]:
    """The largest switch of each category at the first row, largest first."""
    chosen: dict[int, int] = {}
    for s in order(switches, 0).tolist():
        chosen.setdefault(switches.column_of(s), s)
    return list(chosen.values())[:most]


def draw(
    switches: Switches, ax: Axes, chosen: list[int], confidence: float, colours: tuple[str, str, str], longest: int
) -> tuple[list[float], list[str], bool]:
    """Hollow, hatched bars below 0: places and names of their ticks, and whether all signs are sure."""
    effect, reach = switches.effect[0, chosen], switches.half_width(confidence)[0, chosen]
    places = [-GAP - i for i in range(len(chosen))]
    is_sure = (np.abs(effect) > reach) | switches.is_exact
    raises, lowers, unsure = colours
    edges = np.where(is_sure, np.where(effect > 0, raises, lowers), unsure)
    ax.barh(places, effect, height=0.7, color="none", edgecolor=list(edges), hatch="////", linewidth=1.2)
    style: dict[str, Any] = {"fmt": "none", "ecolor": ax.xaxis.label.get_color(), "capsize": 3}
    ax.errorbar(effect, places, xerr=reach, **style)
    ax.axhline(-GAP / 2, color="0.6", linewidth=0.8, linestyle=":")
    names = [drawn(shortened(called(switches, 0, s), longest)) for s in chosen]
    return places, names, bool(is_sure.all())

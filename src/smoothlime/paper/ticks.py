"""Axes that can be read: 1, 2, 5 or powers of ten on log axes, written as people write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.optional import require
from .._core.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def set_scale(ax: Axes, which: str, scale: str, values: Array) -> None:
    """Scale of the x or y axis, with limits and ticks that suit the values."""
    values = values[np.isfinite(values) & ((values > 0) | (scale != "log"))]
    if scale != "log" or not len(values):
        return
    getattr(ax, f"set_{which}scale")("log")
    low, high = getattr(ax, f"get_{which}lim")()
    low = max(low, values.min() / 4)  # a band that reaches below zero does not stretch the axis
    if high / low < 1.2:
        low, high = low / 1.3, high * 1.3
    getattr(ax, f"set_{which}lim")(low, high)
    _log_ticks(getattr(ax, f"{which}axis"), low, high)


def plain(value: float) -> str:
    """A tick as people write it: 0.02, 500, 20k, 3M; powers of ten beyond."""
    size = abs(value)
    if size >= 1e9 or 0 < size < 9.9e-4:
        power = int(np.floor(np.log10(size) + 1e-9))
        lead = round(value / 10.0**power, 3)
        return f"{'' if lead == 1 else f'{lead:g}·'}10{str(power).translate(RAISED)}"
    if size >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if size >= 1e4 else f"{value:,.0f}" if size >= 1e3 else f"{value:.3g}"


def _log_ticks(axis: Any, low: float, high: float) -> None:
    ticker = require("matplotlib.ticker", extra="plot", to="draw the figures of the paper")
    decades = np.log10(high / low)
    if decades >= 1.7:
        axis.set_major_locator(ticker.LogLocator(numticks=7))
        axis.set_minor_locator(
            ticker.LogLocator(subs=tuple(range(2, 10)), numticks=100) if decades <= 6 else ticker.NullLocator()
        )
    else:
        steps = (1, 2, 5) if decades >= 0.8 else (1, 1.5, 2, 3, 4, 5, 6, 8) if decades >= 0.3 else None
        axis.set_major_locator(ticker.LogLocator(subs=steps, numticks=20) if steps else ticker.MaxNLocator(4))
        axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: plain(value)))
    axis.set_minor_formatter(ticker.NullFormatter())

"""Bar charts as inline SVG, without matplotlib and without scripts.

Text and lines have the colour of the text around them (`currentColor`), so that a picture is read on light pages and on
dark ones. Every text is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import ceil, floor, isfinite, log10
from typing import TYPE_CHECKING

from .chart import Bar, Chart, of_row
from .names import cells, fitted, shown
from .style import LOWERS, RAISES, UNSURE

if TYPE_CHECKING:
    from ..result.explanation import Explanation

WIDTH, RIGHT = 720, 556
"""Of the picture, and where bars end; labels stand before them, numbers behind."""

PITCH, BAR, GAP = 22, 13, 10
"""Height of a line, of a bar in it, and of the space between slopes and switches."""

LABEL_CELLS, NUMBER_CELLS, CELL = 40, 24, 6.6
"""Most letters beside the bars, of which wide ones count twice, and the width of one in pixels."""

INFINITE = 1.12
"""Where endless intervals end, in units of the largest number."""


def bars_svg(e: Explanation, row: int = 0, *, confidence: float = 0.95, most: int = 12) -> str:
    """The bars of a row as an `<svg>` element: names with values, slopes with intervals, numbers behind.

    >>> import smoothlime as sl
    >>> e = sl.explain(lambda a: 2 * a[:, 0] - a[:, 1], [0.3, 0.7], sigma=0.5)
    >>> bars_svg(e)[:29]
    '<svg class="smoothlime-chart"'
    """
    return chart_svg(of_row(e, row, confidence=confidence, most=most))


def chart_svg(chart: Chart) -> str:
    """Bars, largest on top; filled by their sign, grey where it is uncertain, hollow where they are of another kind."""
    low, high, ticks = _axis(chart.bars)
    labels = [fitted(shown(bar.label), LABEL_CELLS) for bar in chart.bars]
    left = 12 + CELL * max(map(cells, labels), default=0)

    def across(value: float) -> float:
        return round(left + (RIGHT - left) * (min(max(value, low), high) - low) / (high - low), 2)

    places, bottom = _places(chart.bars)
    parts = [_rule(across(tick), bottom, is_zero=tick == 0) for tick in ticks]
    parts += [
        _bar(bar, place, across) + _beside(bar, place, left, label)
        for bar, place, label in zip(chart.bars, places, labels, strict=True)
    ]
    parts += [_text(across(tick), bottom + 15, f"{tick:g}", "middle", size=11) for tick in ticks]
    parts.append(_text((left + RIGHT) / 2, bottom + 32, fitted(shown(chart.axis), 100), "middle", size=11))
    height = bottom + 40
    return (
        f'<svg class="smoothlime-chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}"'
        f' width="{WIDTH}" style="max-width:100%;height:auto" role="img" aria-label="{_safe(chart.title)}"'
        f' font-family="system-ui,sans-serif" font-size="12">{"".join(parts)}</svg>'
    )


def _axis(bars: Sequence[Bar]) -> tuple[float, float, list[float]]:
    """Ends and ticks of an axis that holds all bars and intervals, and 0."""
    ends = [0.0, *(end for bar in bars for end in (bar.value, bar.lower, bar.upper) if isfinite(end))]
    low, high = min(ends), max(ends)
    if low == high:
        return -1.0, 1.0, [-1.0, 0.0, 1.0]
    if any(end in (float("inf"), float("-inf")) for bar in bars for end in (bar.lower, bar.upper)):
        low, high = -INFINITE * max(high, -low), INFINITE * max(high, -low)
    ticks = nice_ticks(low, high)
    return min(low, ticks[0]), max(high, ticks[-1]), ticks


def nice_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between two ends.

    >>> nice_ticks(-0.03, 0.11)
    [0.0, 0.05, 0.1]
    """
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough * (1 - 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") + 0.0 for i in range(first, last + 1)]


def _places(bars: Sequence[Bar]) -> tuple[list[float], float]:
    """Middles of the bars, top down, and where the last one ends; hollow ones begin after a gap."""
    places: list[float] = []
    y, was_hollow = 4.0, False
    for bar in bars:
        y += GAP * (bar.is_hollow and not was_hollow and bool(places))
        places.append(y + PITCH / 2)
        y, was_hollow = y + PITCH, bar.is_hollow
    return places, y + 2


def _bar(bar: Bar, y: float, across: Callable[[float], float]) -> str:
    colour = UNSURE if not bar.is_sure else RAISES if bar.value > 0 else LOWERS
    value = bar.value if isfinite(bar.value) else 0.0
    left, right = sorted((across(0.0), across(value)))
    kind = f'fill="none" stroke="{colour}" stroke-width="1.5"' if bar.is_hollow else f'fill="{colour}"'
    body = [f'<rect x="{left:g}" y="{y - BAR / 2:g}" width="{right - left:g}" height="{BAR}" {kind}/>']
    if not (bar.lower != bar.lower or bar.upper != bar.upper) and bar.lower != bar.upper:
        low, high = across(bar.lower), across(bar.upper)
        ends = [x for x, end in ((low, bar.lower), (high, bar.upper)) if isfinite(end)]
        path = f"M{low:g} {y:g}H{high:g}" + "".join(f"M{x:g} {y - 3:g}V{y + 3:g}" for x in ends)
        body.append(f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.3"/>')
    return f"<g><title>{_safe(f'{bar.name or bar.label}: {bar.text}')}</title>{''.join(body)}</g>"


def _beside(bar: Bar, y: float, left: float, label: str) -> str:
    number = fitted(shown(bar.text), NUMBER_CELLS)
    return _text(left - 8, y + 4, label, "end") + _text(RIGHT + 8, y + 4, number, "start", faint=not bar.is_sure)


def _rule(x: float, bottom: float, *, is_zero: bool) -> str:
    opacity = "0.8" if is_zero else "0.15"
    return f'<path d="M{x:g} 2V{bottom:g}" stroke="currentColor" stroke-opacity="{opacity}"/>'


def _text(x: float, y: float, text: str, anchor: str, *, size: int = 12, faint: bool = False) -> str:
    look = ' fill-opacity="0.7"' * faint
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="currentColor"{look}>'
        f"{_safe(text)}</text>"
    )


def _safe(text: str) -> str:
    """A text on one line, without characters that XML has no place for, escaped."""
    return escape(shown(text))

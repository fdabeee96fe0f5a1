"""What bar charts show, as plain data: read by matplotlib's bars, by inline SVG and by pages of HTML alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .names import count, percent, shortened, shown, told_apart
from .numbers import number
from .switched import called, largest
from .text import how_it_went, missing_features, row_lines

if TYPE_CHECKING:
    from ..result.explanation import Explanation

LONGEST, LEAST = 40, 16
"""Characters of a label, and those of them that a name has in any case; its value stands behind it."""

LONGEST_OUTPUT = 32
"""Characters of an output's name in a title"""

LONGEST_STEP = 24
"""Longer words about a step are for tables."""

UNIT = "change of the output per neighbourhood standard deviation"


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: a number, its interval, and what they are called."""

    label: str
    value: float
    lower: float
    """NaN where the error is unknown"""
    upper: float
    is_sure: bool
    """Whether the sign is certain"""
    text: str
    """The number with its error, as people read it"""
    name: str = ""
    """The whole name, where the label is shortened"""
    is_hollow: bool = False
    """Of another kind than the others, such as a switch"""
    short: str = ""
    """The label without words about the step, for narrow pictures"""


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars, largest first, with the words around them; nothing in it is escaped."""

    title: str
    bars: tuple[Bar, ...]
    axis: str
    """What the numbers are"""
    notes: tuple[str, ...] = ()
    """How they came about, and what is not shown"""


def of_row(e: Explanation, row: int = 0, *, confidence: float = 0.95, most: int = 12) -> Chart:
    """The slopes of a row, standardised, and the largest switch of each category."""
    one, several = e[row], len(e) > 1
    bars = (*_slopes(one, confidence, most), *_switches(one, confidence, most))
    where = f", row {row % len(e)} of {len(e):,}" if several else ""
    title = f"{shortened(shown(one.row_outputs[0]), LONGEST_OUTPUT)}{where}: {', '.join(how_it_went(one, 0))}"
    axis = UNIT + ("; hollow: change to another level" if any(bar.is_hollow for bar in bars) else "")
    return Chart(title, bars, axis, tuple(_notes(one, bars, confidence)))


def value_word(x: float) -> str:
    """A value of a feature: whole numbers whole, others with four digits.

    >>> value_word(47.0), value_word(0.023456), value_word(45_231.7)
    ('47', '0.02346', '45232')
    """
    if not np.isfinite(x):
        return ""
    if 1e4 <= abs(x) < 1e7 or (x == round(x) and abs(x) < 1e7):
        return f"{x:.0f}"
    return f"{x:.4g}"


def _slopes(one: Explanation, confidence: float, most: int) -> list[Bar]:
    lines = row_lines(one, 0, most=most, confidence=confidence)
    chosen = [line.position for line in lines]
    values = [_behind(value_word(one.x[0, line.position]), line.step) for line in lines]
    names = told_apart(one.feature_names, chosen, max(LEAST, LONGEST - max(map(len, values), default=0)))
    lower, upper = (end[0] * one.std for end in one.interval(confidence))
    return [
        Bar(
            label=name + behind,
            value=float(one.standardised[0, line.position]),
            lower=float(lower[line.position]),
            upper=float(upper[line.position]),
            is_sure=line.is_sure,
            text=line.standardised,
            name=line.feature,
            short=name + _behind(value_word(one.x[0, line.position]), ""),
        )
        for line, name, behind in zip(lines, names, values, strict=True)
    ]


def _behind(value: str, step: str) -> str:
    """What stands behind a name: ` = 47`, and where a step leads: ` = 0.03 (0.02 → 0.05)`."""
    return (f" = {value}" if value else "") + (f" ({step})" if step and len(step) <= LONGEST_STEP else "")


def _switches(one: Explanation, confidence: float, most: int) -> list[Bar]:
    if one.switches is None:
        return []
    switches = one.switches
    reach = switches.half_width(confidence)[0]
    found = []
    for s in largest(switches, most):
        effect, half = float(switches.effect[0, s]), float(reach[s])
        name = called(switches, 0, s)
        found.append(
            Bar(
                label=name,
                value=effect,
                lower=effect - half,
                upper=effect + half,
                is_sure=switches.is_exact or abs(effect) > half,
                text=f"{effect:+.6g}" if switches.is_exact else number(effect, half),
                name=name,
                is_hollow=True,
            )
        )
    return found


def _notes(one: Explanation, bars: Sequence[Bar], confidence: float) -> list[str]:
    few = " (indicative)" if one.is_indicative[0] else ""
    notes = [
        "exact, no sampling"
        if one.is_exact
        else f"{one.method}, {int(one.n_samples[0]):,} draws; {percent(confidence)} intervals{few}"
    ]
    if not all(bar.is_sure for bar in bars):
        notes.append("grey: sign uncertain")
    left_out = int((~one.held[0]).sum()) - sum(not bar.is_hollow for bar in bars)
    if left_out:
        notes.append(f"{count(left_out, 'smaller slope')} not shown")
    if missing := missing_features(one, 0):
        notes.append(missing)
    return notes

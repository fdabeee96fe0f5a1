"""What bar charts show, as plain data: read by matplotlib's bars, by inline SVG and by pages of HTML alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .names import count, percent, shortened, shown, told_apart
from .numbers import number
from .style import largest_first
from .switched import called, largest, order
from .text import how_it_went, missing_features, row_lines

if TYPE_CHECKING:
    from ..contributions import Contributions
    from ..guarantees.compare import Comparison
    from ..result.effects import Effects
    from ..result.explanation import Explanation
    from ..result.switches import Switches

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


def of_switches(switches: Switches, row: int = 0, *, confidence: float = 0.95, most: int = 12) -> Chart:
    """Effects of other levels at a row."""
    one = switches[row]
    bars = _of_levels(one, order(one, 0)[:most].tolist(), confidence)
    return Chart(f"switches, row {row}", tuple(bars), "change of the output")


def of_contributions(c: Contributions, row: int = 0, *, confidence: float = 0.95, most: int = 12) -> Chart:
    """What each feature adds between the baseline and a row, largest first; what is small is counted, not drawn."""
    chosen = [j for j in largest_first(np.abs(c.values[row]), c.values.shape[1]) if c.values[row, j] != 0]
    names = told_apart(c.feature_names, chosen[:most], LONGEST - LEAST // 2)
    lower, upper = (end[row] for end in c.interval(confidence))
    bars = [
        _bar(
            name + _behind(value_word(c.x[row, j]), ""),
            (float(c.values[row, j]), float(lower[j]), float(upper[j])),
            is_exact=c.is_exact,
            name=shown(c.feature_names[j]),
        )
        for j, name in zip(chosen, names, strict=False)
    ]
    where = f", row {row} of {len(c):,}" if len(c) > 1 else ""
    output = shortened(shown(c.row_outputs[row]), LONGEST_OUTPUT)
    title = (
        f"Contributions to {output}{where}: from f(b) = {c.base_prediction[row]:.4g} to f(x) = {c.prediction[row]:.4g}"
    )
    how = "exact" if c.is_exact else f"{int(c.n_samples[row]):,} draws, ± is a {percent(confidence)} interval"
    more = [f"{count(len(chosen) - most, 'smaller contribution')} not shown"] if len(chosen) > most else []
    held = [f"held at the row's own values in the baselines: {', '.join(map(shown, c.held_alike[:6]))}"] * bool(
        c.held_alike
    )
    return Chart(title, tuple(bars), "contribution to the output", (how, *more, *held))


def of_effects(found: Effects, *, confidence: float = 0.95, most: int = 12) -> Chart:
    """Means over rows; of slopes standardised."""
    chosen = found.order()[:most]
    lower, upper = (end * found.std for end in found.interval(confidence))
    bars = [
        _bar(
            name,
            (float(found.standardised[j]), float(lower[j]), float(upper[j])),
            is_exact=bool(found.standard_error[j] == 0),
            name=shown(found.feature_names[j]),
        )
        for j, name in zip(chosen, told_apart(found.feature_names, chosen, LONGEST), strict=True)
    ]
    rows = count(int(found.count.max(initial=0)), "row")
    many = f"{found.what}{'es' if found.what.endswith('ch') else 's'}"
    title = f"Mean {many} of {shortened(shown(found.output_name), LONGEST_OUTPUT)} over {rows}"
    return Chart(title, tuple(bars), f"mean {UNIT}" if found.what == "slope" else f"mean {found.what}")


def of_comparison(found: Comparison, row: int = 0, *, confidence: float = 0.95, most: int = 12) -> Chart:
    """Differences between the slopes of two models at a row."""
    one = found.explanation[row]
    chart = of_row(one, 0, confidence=confidence, most=most)
    moved = f"moved by {found.size[row]:.3g}, allowed {found.allowed[row]:.3g}"
    where = f"row {row} of {len(found):,}" if len(found) > 1 else "the row"
    bars = tuple(bar for bar in chart.bars if not bar.is_hollow)
    return Chart(f"New slopes less old ones, {where}: {moved}", bars, f"difference, {UNIT}", chart.notes)


def _bar(label: str, ends: tuple[float, float, float], *, is_exact: bool, name: str, is_hollow: bool = False) -> Bar:
    """A bar from its value, and the lower and upper end of its interval."""
    value, lower, upper = ends
    half = (upper - lower) / 2
    is_sure = is_exact or lower > 0 or upper < 0
    text = f"{value:+.6g}" if is_exact else number(value, half)
    return Bar(label, value, lower, upper, is_sure, text, name, is_hollow=is_hollow)


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
    """The largest switch of each category."""
    return [] if one.switches is None else _of_levels(one.switches, largest(one.switches, most), confidence)


def _of_levels(switches: Switches, chosen: Sequence[int], confidence: float) -> list[Bar]:
    """Switches of the first row."""
    lower, upper = (end[0] for end in switches.interval(confidence))
    found = []
    for s in chosen:
        ends = float(switches.effect[0, s]), float(lower[s]), float(upper[s])
        name = called(switches, 0, s)
        found.append(_bar(name, ends, is_exact=switches.is_exact, name=name, is_hollow=True))
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

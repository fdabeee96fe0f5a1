"""Effects of other levels as text: what each row would be like if a category were another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..result.switches import Switches
from .names import cells, count, padded, shown
from .numbers import number

MOST_ROWS, MOST = 5, 8
"""Rows that are printed, and switches of each."""

CONFIDENCE = 0.95


class Line(NamedTuple):
    """One switch of one row, ready to print."""

    switch: str
    effect: str
    is_sure: bool


def as_text(switches: Switches) -> str:
    """Effects with their half-widths, largest first, a block per row."""
    parts = ["\n".join([f"row {row}", *block(switches, row)]) for row in range(min(len(switches), MOST_ROWS))]
    if len(switches) > MOST_ROWS:
        parts.append(f"... and {count(len(switches) - MOST_ROWS, 'more row')}")
    return "\n\n".join(parts)


def block(switches: Switches, row: int) -> list[str]:
    """Lines of text for one row; none where there is nothing to switch."""
    found, left_out = lines(switches, row)
    if not found:
        return []
    wide = max([len("switch"), *(cells(line.switch) for line in found)])
    text = [f"  {'switch':{wide}}  effect on the output"]
    text += [
        f"  {padded(line.switch, wide)}  {line.effect}" + ("" if line.is_sure else "  (sign uncertain)")
        for line in found
    ]
    return [*text, *([f"  ... and {count(left_out, 'smaller switch', 'smaller switches')}"] if left_out else [])]


def lines(switches: Switches, row: int) -> tuple[list[Line], int]:
    """The largest switches of a row, and how many more there are."""
    chosen = order(switches, row)
    reach = switches.half_width(CONFIDENCE)[row]
    found = []
    for s in chosen[:MOST]:
        effect, half = float(switches.effect[row, s]), float(reach[s])
        text = f"{effect:+.6g}" if switches.is_exact else number(effect, half)
        found.append(Line(called(switches, row, int(s)), text, switches.is_exact or abs(effect) > half or half == 0))
    return found, max(0, len(chosen) - MOST)


def called(switches: Switches, row: int, s: int) -> str:
    """What a switch is called: `Month: Nov → Dec`."""
    feature, level = switches.features[s], switches.levels[s]
    c = switches.column_of(s)
    return f"{shown(feature)}: {shown(switches.own_level(row, c))} → {shown(level)}"


def order(switches: Switches, row: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Switches of a row, largest effect first; those that are none are left out."""
    size = np.abs(switches.effect[row])
    return np.argsort(-np.nan_to_num(size, nan=-1.0), kind="stable")[: int(np.isfinite(size).sum())]


def largest(switches: Switches, most: int) -> list[int]:
    """The largest switch of each category at the first row, largest first."""
    chosen: dict[int, int] = {}
    for s in order(switches, 0).tolist():
        chosen.setdefault(switches.column_of(s), s)
    return list(chosen.values())[:most]

"""What a report shows of an explanation, as plain data: the page draws its pictures and tables from nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.types import Array, Indices
from ..errors import InvalidArgument
from ..plots.chart import UNIT, Bar, Chart
from ..plots.names import count, percent, shown, told_apart
from ..plots.numbers import number
from ..plots.steps import step_word
from ..plots.text import CONFIDENCE, how_it_went, order

if TYPE_CHECKING:
    from ..result.explanation import Explanation
    from ..result.switches import Switches

MOST_FEATURES = 200
"""Of each row, largest first; images have more."""

MOST_CELLS = 400_000
"""Rows times features of a page: about 25 MB."""


def contents(e: Explanation, keys: Sequence[str]) -> dict[str, Any]:
    """Numbers of an explanation, for JSON: None where there is none. Values in full, errors to nine digits."""
    r, d = e.values.shape
    if r * min(d, MOST_FEATURES) > MOST_CELLS:
        fits = MOST_CELLS // min(d, MOST_FEATURES)
        msg = f"a page holds {MOST_CELLS:,} numbers, which {r:,} rows exceed. Take fewer: e[:{fits}].to_html(path)"
        raise InvalidArgument(msg)
    chosen = _largest(e)
    kept = np.unique(chosen)
    half = e.half_width(1 - CONFIDENCE)
    return {
        "output": shown(e.output_name),
        "features": told_apart(e.feature_names, kept.tolist()),
        "n_features": d,
        "std": plain(e.std[kept]),
        "is_exact": e.is_exact,
        "confidence": percent(CONFIDENCE),
        "keys": list(keys),
        "outputs": [shown(name) for name in e.row_outputs],
        "how": [", ".join(how_it_went(e, row)) for row in range(r)],
        "prediction": plain(e.prediction),
        "smoothed": plain(e.smoothed),
        "fidelity": plain(e.fidelity),
        "radius": plain(e.radius, 6),
        "converged": e.converged.tolist(),
        "indicative": e.is_indicative.tolist(),
        "n_samples": e.n_samples.tolist(),
        "missing": [np.flatnonzero(each).tolist() for each in e.missing[:, kept]],
        "x": plain(e.x[:, kept], 9),
        "values": plain(e.values[:, kept]),
        "half": plain(half[:, kept], 9),
        "standard_error": plain(e.standard_error[:, kept], 6),
        "steps": None if e.row_scales is None else _steps(e, kept),
        "step_up": _step_up(e),
        "off_data": _off_data(e, kept),
        "switches": None if e.switches is None else _switches(e.switches),
        "effects": None,
    }


def _largest(e: Explanation) -> Indices:
    """Positions of the features that are shown: of each row the largest, all if they are not too many."""
    d = e.values.shape[1]
    if d <= MOST_FEATURES:
        return np.arange(d)
    size = np.nan_to_num(np.abs(e.standardised), nan=-1.0).max(axis=0)
    return np.argsort(-size, kind="stable")[:MOST_FEATURES]


def plain(numbers: Array, digits: int = 17) -> list[Any]:
    """Nested lists of numbers with so many digits; None for NaN, and infinities as text."""
    if numbers.ndim > 1:
        return [plain(each, digits) for each in numbers]
    return [_plain(each, digits) for each in numbers.tolist()]


def _plain(value: float, digits: int) -> Any:
    if value != value:
        return None
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    short = value if digits >= 17 else float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _steps(e: Explanation, kept: Indices) -> list[list[str]]:
    """Where a step leads, in words."""
    found = []
    for row in range(len(e)):
        one = e[row]
        found.append([step_word(one, 0, int(j)) for j in kept])
    return found


def _step_up(e: Explanation) -> list[Any]:
    """Where a step up in the feature with the largest slope leads, for each row."""
    first = [order(e, row)[:1] for row in range(len(e))]
    up = [e.step_ends[1][row, j[0]] if len(j) else np.nan for row, j in enumerate(first)]
    return plain(np.array(up), 9)


def _off_data(e: Explanation, kept: Indices) -> list[Any] | None:
    """Shares of draws beyond the data, where there are any."""
    share = e.off_data[:, kept]
    return plain(share, 3) if np.nan_to_num(share).any() else None


def _switches(switches: Switches) -> dict[str, Any]:
    return {
        "features": [shown(each) for each in switches.features],
        "levels": [shown(each) for each in switches.levels],
        "columns": [shown(each.feature) for each in switches.columns],
        "column": [switches.column_of(s) for s in range(len(switches.features))],
        "own": [
            [shown(switches.own_level(row, c)) for c in range(len(switches.columns))] for row in range(len(switches))
        ],
        "is_exact": switches.is_exact,
        "effect": plain(switches.effect),
        "half": plain(switches.half_width(CONFIDENCE), 9),
    }


def effects_chart(e: Explanation, most: int = 12) -> tuple[Chart, list[tuple[str, ...]]]:
    """Mean slopes over all rows as bars, and the lines of a table: name, mean slope, mean |slope|, share above 0."""
    found = e.effects()
    lower, upper = (end * e.std for end in found.interval(CONFIDENCE))
    chosen = found.order()
    names = told_apart(e.feature_names, chosen)
    bars: list[Bar] = []
    lines: list[tuple[str, ...]] = []
    for j, name in zip(chosen, names, strict=True):
        middle, half = float(found.standardised[j]), float(upper[j] - lower[j]) / 2
        is_sure = e.is_exact or abs(middle) > half
        text = f"{middle:+.6g}" if e.is_exact else number(middle, half)
        bars.append(Bar(name, middle, float(lower[j]), float(upper[j]), is_sure, text, name))
        lines.append((name, text, f"{found.absolute[j] * e.std[j]:.4g}", f"{found.positive[j]:.0%}"))
    title = f"Mean slopes of {shown(e.output_name)} over {count(len(e), 'row')}"
    return Chart(title, tuple(bars[:most]), f"mean {UNIT}"), lines[:MOST_FEATURES]


def chart_data(chart: Chart) -> dict[str, Any]:
    """Bars for the script that draws them."""
    return {
        "title": chart.title,
        "axis": chart.axis,
        "bars": [
            {
                "label": bar.label,
                "name": bar.name or bar.label,
                "value": _plain(bar.value, 17),
                "lower": _plain(bar.lower, 9),
                "upper": _plain(bar.upper, 9),
                "sure": bool(bar.is_sure),
                "text": bar.text,
                "hollow": bar.is_hollow,
            }
            for bar in chart.bars
        ],
    }

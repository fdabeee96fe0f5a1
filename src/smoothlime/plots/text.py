"""Explanations as text, and as a table for rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.validate import check_fraction
from .names import cells, count, padded, percent, shown, told_apart
from .numbers import number
from .steps import scales_told, step_word, units_of
from .switched import block as switch_block
from .switched import lines as switch_lines

if TYPE_CHECKING:
    from ..result.effects import Effects
    from ..result.explanation import Explanation

MOST_ROWS = 5
MOST_FEATURES = 12
MOST_MISSING = 6
CONFIDENCE = 0.95

ROUNDING = 1e-12
"""Of the largest standardised slope: those below are what rounding leaves, whatever their own interval says."""


class Line(NamedTuple):
    """One feature of one row, ready to print."""

    position: int
    feature: str
    slope: str
    standardised: str
    is_sure: bool
    step: str = ""
    """Where a step leads; told where steps are not all linear"""


def as_text(e: Explanation) -> str:
    """Slopes with their half-widths, largest first, a block per row."""
    parts = []
    for row in range(min(len(e), MOST_ROWS)):
        lines = row_lines(e, row)
        wide = max([len("feature"), *(cells(line.feature) for line in lines)])
        slopes = max([len("slope per unit"), *(len(line.slope) for line in lines)])
        has_steps = any(line.step for line in lines)
        last = max([len("per neighbourhood std"), *(len(line.standardised) for line in lines)]) if has_steps else 0
        head = f"  {'feature':{wide}}  {'slope per unit':{slopes}}  per neighbourhood std" + "  one step" * has_steps
        body = [
            f"  {padded(line.feature, wide)}  {line.slope:{slopes}}  {line.standardised:{last}}"
            + (f"  {line.step}" if has_steps else "")
            + ("" if line.is_sure else "  (sign uncertain)")
            for line in lines
        ]
        switches = [] if e.switches is None else switch_block(e.switches, row)
        parts.append("\n".join([headline(e, row), head, *body, *left_out(e, row, len(lines)), *switches]))
    if len(e) > MOST_ROWS:
        parts.append(f"... and {count(len(e) - MOST_ROWS, 'more row')}")
    parts.append(footer(e))
    return "\n\n".join(parts)


def effects_as_text(found: Effects) -> str:
    """Mean slopes with their half-widths, largest mean |slope| first, a block for each group where there are any."""
    parts = []
    for label, each in (found.groups or {None: found}).items():
        chosen = each.order()[:MOST_FEATURES]
        _, upper = each.interval(CONFIDENCE)
        lines = [("feature", f"mean {found.what}", f"mean |{found.what}|", "positive")]
        for j, name in zip(chosen, told_apart(each.feature_names, chosen), strict=True):
            half = float(upper[j] - each.values[j])
            lines.append(
                (name, number(float(each.values[j]), half), f"{each.absolute[j]:.4g}", f"{each.positive[j]:.0%}")
            )
        widths = [max(cells(line[column]) for line in lines) for column in range(4)]
        body = ["  " + "  ".join(map(padded, line, widths)).rstrip() for line in lines]
        group = "" if label is None else f", {label}"
        head = f"effects on {each.output_name!r} over {count(int(each.count.max(initial=0)), 'row')}{group}"
        rest = len(each.order()) - len(chosen)
        parts.append("\n".join([head, *body, *([f"  ... and {count(rest, 'smaller one')}"] if rest else [])]))
    of = "of drawing" if found.rows == "these" else "of drawing and of sampling the rows"
    units = [*(["unit of each feature"] if "linear" in (found.scales or ("linear",)) else []), units_of(found.scales)]
    per = f"per {' or '.join(filter(None, units))}" if found.what == "slope" else "in units of the output"
    parts.append(f"{per}; ± is a {percent(CONFIDENCE)} interval for errors {of}")
    return "\n\n".join(parts)


def as_rich(e: Explanation) -> Any:
    """The same as tables for rich."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    shown: list[Any] = []
    is_sure = True
    for row in range(min(len(e), MOST_ROWS)):
        table = Table(title=Text(headline(e, row)), title_justify="left")
        has_steps = e.row_scales is not None
        for column in ("feature", "slope per unit", "per neighbourhood std", *["one step"] * has_steps):
            # folded, as a number that is cut short is another number
            table.add_column(column, justify="left" if column == "feature" else "right", overflow="fold")
        for line in row_lines(e, row):
            style = "" if line.is_sure else "dim"
            is_sure &= line.is_sure
            step = [Text(line.step)] * has_steps
            table.add_row(Text(line.feature), line.slope, line.standardised, *step, style=style)
        shown.append(table)
        if missing := missing_features(e, row):
            shown.append(Text(f"({missing})"))
        if e.switches is not None and (found := switch_lines(e.switches, row)[0]):
            table = Table()
            table.add_column("switch", overflow="fold")
            table.add_column("effect on the output", justify="right", overflow="fold")
            for switch in found:
                is_sure &= switch.is_sure
                table.add_row(Text(switch.switch), switch.effect, style="" if switch.is_sure else "dim")
            shown.append(table)
    if len(e) > MOST_ROWS:
        shown.append(Text(f"... and {count(len(e) - MOST_ROWS, 'more row')}"))
    return Group(*shown, Text(footer(e)), *([] if is_sure else [Text("dim: sign uncertain")]))


def footer(e: Explanation) -> str:
    """How the numbers came about, and how far they can be trusted."""
    scales = "".join(f"\n{line}" for line in scales_told(e))
    if e.is_exact:
        return f"exact: no sampling, no sampling error{scales}"
    kind = "indicative: fewer than 256 draws" if e.is_indicative.any() else "approximate"
    if e.provenance.guarantee == "certified":
        confidence = f"{e.provenance.confidence:.4g} confidence"
        kind += f"; radius {e.radius.max():.2g} at most, certified at {confidence} for {shown(e.provenance.assumes)}"
        kind += "; switches are approximate" * (e.switches is not None)
    made = f"{made_by(e)}; ± is a {percent(CONFIDENCE)} interval ({kind})"
    return (f"{made}\n{e.note}" if e.note else made) + scales


def made_by(e: Explanation) -> str:
    """The method, and what it drew."""
    if e.is_exact:
        return "exact"
    drawn = sorted({int(n) for n in e.n_samples}) or [0]
    count = f"{drawn[0]:,}" if len(drawn) == 1 else f"{drawn[0]:,} to {drawn[-1]:,}"
    drawn_as = "" if e.design == e.method else f"{e.design} "
    return f"{e.method}, {count} {drawn_as}draws per row{reached(e)}, seed {e.seed}"


def reached(e: Explanation) -> str:
    """The tolerance that all rows are within, where it is known in numbers: `, to 5% or 0.005`."""
    told = e.provenance.tolerance
    return f", to {told}" if told and e.converged.all() else ""


def order(e: Explanation, row: int) -> np.ndarray[Any, Any]:
    """Features that were perturbed, largest standardised slope first."""
    size = np.abs(e.standardised[row])
    return np.argsort(-np.nan_to_num(size, nan=-1.0), kind="stable")[: int(np.isfinite(size).sum())]


def row_lines(e: Explanation, row: int, *, most: int = MOST_FEATURES, confidence: float = CONFIDENCE) -> list[Line]:
    """The largest slopes of a row, standardised, as they are printed."""
    reach = e.half_width(1 - check_fraction(confidence, "confidence"))[row]
    std = e.std
    largest = np.nanmax(np.abs(e.standardised[row]), initial=0.0)
    lines = []
    chosen = order(e, row)[:most]
    for j, name in zip(chosen.tolist(), told_apart(e.feature_names, chosen), strict=True):
        value, half = e.values[row, j], reach[j]
        step = "" if e.row_scales is None else step_word(e, row, j)
        if e.is_exact:
            lines.append(Line(j, name, f"{value:+.6g}", f"{value * std[j]:+.6g}", is_sure=True, step=step))
            continue
        if (abs(value) + half) * std[j] < ROUNDING * largest:  # no digit of it is to be read, only how small it is
            within = abs(value) + half
            lines.append(Line(j, name, f"0 ± {within:.1g}", f"0 ± {within * std[j]:.1g}", is_sure=False, step=step))
            continue
        is_sure = bool(abs(value) > half)
        lines.append(Line(j, name, number(value, half), number(value * std[j], half * std[j]), is_sure, step))
    return lines


def headline(e: Explanation, row: int) -> str:
    """One line about a row."""
    return f"row {row}: slopes of {e.row_outputs[row]!r}, {', '.join(how_it_went(e, row))}"


def how_it_went(e: Explanation, row: int) -> list[str]:
    """f(x), what the mean nearby is, how linear the model is there, and whether the errors are as small as asked."""
    parts = [f"f(x) = {e.prediction[row]:.4g}"]
    if np.isfinite(e.smoothed[row]):
        parts.append(f"smoothed {e.smoothed[row]:.4g}")
    is_flat = not np.nansum(np.abs(e.values[row]) + e.standard_error[row])
    if is_flat and e.fidelity[row] < 1:
        parts.append("slopes of 0 though the model changes")
    elif is_flat:
        parts.append(f"the model {'does not change nearby' if e.is_exact else 'did not change over the draws'}")
    elif np.isfinite(e.fidelity[row]):
        parts.append(f"{e.fidelity[row]:.0%} linear nearby")
    if not e.converged[row]:
        parts.append("not converged")
    return parts


def missing_features(e: Explanation, row: int) -> str:
    """Names of what has no value at a row, and no slope: `missing: age, income and 3 more`; or nothing."""
    chosen = np.flatnonzero(e.missing[row])
    names = told_apart(e.feature_names, chosen[:MOST_MISSING].tolist())
    rest = f" and {len(chosen) - MOST_MISSING} more" if len(chosen) > MOST_MISSING else ""
    return f"missing: {', '.join(names)}{rest}" if len(chosen) else ""


def left_out(e: Explanation, row: int, shown: int) -> list[str]:
    """What is not in the table of a row: small slopes, features held fixed, missing ones."""
    free, moved = int(np.isfinite(e.std).sum()), int((~e.held[row]).sum())
    notes = []
    if moved > shown:
        notes.append(f"  ... and {count(moved - shown, 'smaller one')}")
    if free < len(e.feature_names):
        notes.append(f"  ({count(len(e.feature_names) - free, 'feature')} held fixed)")
    if missing := missing_features(e, row):
        notes.append(f"  ({missing})")
    return notes

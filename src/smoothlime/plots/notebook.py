"""Results in notebooks: a small picture and a table. Inline SVG, no script; every text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from .chart import Bar, Chart, of_comparison, of_contributions, of_effects, of_row, of_switches
from .comparison import WORDS
from .interactions import HEAD, pair_cells, shares, told
from .interactions import footer as footer_of_pairs
from .interactions import headline as headline_of_pairs
from .names import count, percent, shown, told_apart
from .numbers import number
from .svg import chart_svg
from .switched import Line as SwitchLine
from .switched import lines as switch_lines
from .text import CONFIDENCE, MOST_ROWS, footer, headline, left_out, row_lines

if TYPE_CHECKING:
    from ..contributions import Contributions
    from ..guarantees.compare import Comparison
    from ..result.effects import Effects
    from ..result.explanation import Explanation
    from ..result.interactions import Interactions, Pair
    from ..result.switches import Switches

MOST_BARS, MOST_LINES = 8, 12
"""In a picture, and in a table"""

STYLE = " style='text-align:left'"
"""Of cells that hold names"""

Lines = Sequence[tuple[Sequence[str], bool]]
"""Cells of each line, and whether its sign is certain"""


def explanation(e: Explanation) -> str:
    """Bars and a table for the first row; those of further rows open when they are clicked."""
    parts, is_sure = [], True
    for row in range(min(len(e), MOST_ROWS)):
        lines = row_lines(e, row)
        found: tuple[list[SwitchLine], int] = ([], 0) if e.switches is None else switch_lines(e.switches, row)
        is_sure &= all(line.is_sure for line in lines) and all(line.is_sure for line in found[0])
        has_steps = e.row_scales is not None
        head = ("feature", "slope per unit", "per neighbourhood std", *["one step"] * has_steps)
        body = [
            ((each.feature, each.slope, each.standardised, *[each.step] * has_steps), each.is_sure) for each in lines
        ]
        picture = chart_svg(of_row(e, row, most=MOST_BARS))
        notes = "".join(_note(line.strip()) for line in left_out(e, row, len(lines)))
        block = picture + _table(head, body) + notes + _switch_table(*found)
        title = escape(shown(headline(e, row)))
        parts.append(f"<p>{title}</p>{block}" if row == 0 else _folded(title, block))
    if len(e) > MOST_ROWS:
        parts.append(_note(f"... and {count(len(e) - MOST_ROWS, 'more row')}"))
    return _page(parts, footer(e), is_sure=is_sure)


def contributions(c: Contributions) -> str:
    """Bars and a table of the first row, between F(b) and F(x), with the gaps."""
    chart = of_contributions(c, 0, most=MOST_LINES)
    rows: list[tuple[Sequence[str], bool]] = [(("base F(b)", f"{c.base[0]:+.4g}"), True)]
    rows += [((bar.label, bar.text), bar.is_sure) for bar in chart.bars]
    rows += [
        (("total F(x)", f"{c.total[0]:+.4g}"), True),
        (("f(x) − F(x)", f"{c.prediction[0] - c.total[0]:+.4g}"), True),
        (("f(b) − F(b)", f"{c.base_prediction[0] - c.base[0]:+.4g}"), True),
    ]
    if not c.is_exact:
        rows.append((("residual", number(float(c.residual[0]), 1.96 * float(c.residual_error[0]))), True))
    parts = [f"<p>{escape(chart.title)}</p>", chart_svg(chart), _table(("feature", "contribution"), rows)]
    is_sure = all(bar.is_sure for bar in chart.bars)
    return _page(parts, "; ".join(chart.notes), is_sure=is_sure)


def effects(found: Effects) -> str:
    """Bars and a table of mean slopes; those of groups open when they are clicked."""
    parts, is_sure = [], True
    for label, each in {None: found, **found.groups}.items():
        chart = of_effects(each, most=MOST_BARS)
        chosen = each.order()[:MOST_LINES]
        half = (each.interval(CONFIDENCE)[1] - each.values)[chosen]
        rows = []
        for j, name, reach in zip(chosen, told_apart(each.feature_names, chosen), half, strict=True):
            value, is_certain = float(each.values[j]), bool(abs(each.values[j]) > reach or reach == 0)
            number_told = f"{value:+.6g}" if reach == 0 else number(value, float(reach))
            rows.append(((name, number_told, f"{each.absolute[j]:.4g}", f"{each.positive[j]:.0%}"), is_certain))
            is_sure &= is_certain
        rest = len(each.order()) - len(chosen)
        block = chart_svg(chart) + _table(("feature", f"mean {found.what}", f"mean |{found.what}|", "positive"), rows)
        block += _note(f"... and {count(rest, 'smaller one')}") if rest else ""
        title = escape(chart.title + ("" if label is None else f", {shown(str(label))}"))
        parts.append(f"<p>{title}</p>{block}" if label is None else _folded(title, block))
    of = "of drawing" if found.rows == "these" else "of drawing and of sampling the rows"
    unit = "per unit of each feature in the table" if found.what == "slope" else "in units of the output"
    per = f"{unit}; ± is a {percent(CONFIDENCE)} interval for errors {of}"
    return _page(parts, per, is_sure=is_sure)


def comparison(found: Comparison) -> str:
    """The verdict, the row that moved furthest for its margin as bars, and a line for each row."""
    share = found.size / np.where(found.allowed > 0, found.allowed, 1.0)
    order = np.argsort(-share, kind="stable")
    verdict, *details = str(found).splitlines()
    chart = of_comparison(found, int(order[0]), most=MOST_BARS)
    rows = [
        (
            (f"row {i}", WORDS[found.changed[i]], f"{found.size[i]:.3g}", f"{found.allowed[i]:.3g}",
             f"{max(found.p_value[i], 1e-300):.2g}"),
            found.changed[i] is not None,
        )
        for i in order[:MOST_LINES]
    ]  # fmt: skip
    head = ("row", "verdict", "change", "allowed", "p-value")
    parts = [f"<p><b>{escape(verdict)}</b></p><p>{escape(chart.title)}</p>", chart_svg(chart), _table(head, rows)]
    if len(found) > MOST_LINES:
        parts.append(_note(f"... and {count(len(found) - MOST_LINES, 'more row')}"))
    return _page(parts, " ".join(details), is_sure=all(bar.is_sure for bar in chart.bars))


def interactions(found: Interactions) -> str:
    """What explains the variance around each row, and the largest pairs as bars and as a table."""
    parts, is_sure = [], True
    for row in range(min(len(found), MOST_ROWS)):
        pairs = told(found, row)
        lines = [(pair_cells(found, pair), pair.is_sure or found.is_exact) for pair in pairs]
        is_sure &= all(is_certain for _, is_certain in lines)
        block = f"<p>{escape(shares(found, row))}</p>{chart_svg(_of_pairs(found, pairs))}{_table(HEAD, lines)}"
        title = escape(headline_of_pairs(found, row))
        parts.append(f"<p>{title}</p>{block}" if row == 0 else _folded(title, block))
    if len(found) > MOST_ROWS:
        parts.append(_note(f"... and {count(len(found) - MOST_ROWS, 'more row')}"))
    return _page(parts, footer_of_pairs(found), is_sure=is_sure)


def _of_pairs(found: Interactions, pairs: Sequence[Pair]) -> Chart:
    """Standardised second slopes."""
    bars = []
    for pair in pairs:
        name, _, text, _ = pair_cells(found, pair)
        half = (pair.upper - pair.lower) / 2 * (abs(pair.standardised / pair.value) if pair.value else 1.0)
        ends = (pair.standardised - half, pair.standardised + half)
        bars.append(Bar(name, pair.standardised, *ends, pair.is_sure or found.is_exact, text, name))
    return Chart("interactions", tuple(bars), "second slope per both neighbourhood standard deviations")


def switches(found: Switches) -> str:
    """Bars and a table of the effects of other levels at the first row; those of further rows open when clicked."""
    parts, is_sure = [], True
    for row in range(min(len(found), MOST_ROWS)):
        lines, more = switch_lines(found, row)
        is_sure &= all(line.is_sure for line in lines)
        block = chart_svg(of_switches(found, row, most=MOST_BARS)) + _switch_table(lines, more)
        parts.append(f"<p>row {row}</p>{block}" if row == 0 else _folded(f"row {row}", block))
    if len(found) > MOST_ROWS:
        parts.append(_note(f"... and {count(len(found) - MOST_ROWS, 'more row')}"))
    how = "exact" if found.is_exact else f"± is a {percent(CONFIDENCE)} interval"
    return _page(parts, how, is_sure=is_sure)


def _page(parts: Sequence[str], told: str, *, is_sure: bool) -> str:
    grey = "" if is_sure else "<br/>grey: sign uncertain"
    lines = "<br/>".join(escape(shown(line)) for line in told.splitlines())
    return f"<div>{''.join(parts)}<p><small>{lines}{grey}</small></p></div>"


def _folded(title: str, block: str) -> str:
    return f"<details><summary>{title}</summary>{block}</details>"


def _note(text: str) -> str:
    return f"<p>{escape(shown(text))}</p>"


def _table(head: Sequence[str], lines: Lines) -> str:
    """A table with names on the left and numbers on the right; grey where the sign is uncertain."""
    titles = "".join(f"<th>{escape(each)}</th>" for each in head)
    rows = "".join(
        f"<tr style='{'' if is_sure else 'color:gray'}'>"
        + "".join(
            f"<td{STYLE if j == 0 else ''}>{escape(shown(cell) if cell else '')}</td>" for j, cell in enumerate(cells)
        )
        + "</tr>"
        for cells, is_sure in lines
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"


def _switch_table(found: Sequence[SwitchLine], more: int) -> str:
    """Effects of other levels, or nothing."""
    if not found:
        return ""
    rest = _note(f"... and {count(more, 'smaller switch', 'smaller switches')}") if more else ""
    body = [((line.switch, line.effect), line.is_sure) for line in found]
    return _table(("switch", "effect on the output"), body) + rest

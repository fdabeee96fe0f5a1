"""The report of explanations: one page of HTML that needs nothing else."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.validate import is_iterable
from ..errors import InvalidArgument, WrongType
from ..io.files import check_writable, write_whole
from ..plots.chart import UNIT, of_row, value_word
from ..plots.names import count, percent, shown
from ..plots.svg import chart_svg
from ..plots.text import made_by, row_lines
from .contents import MOST_FEATURES, chart_data, contents, effects_chart
from .facts import facts, held
from .templates import as_markup, asset, data_block, policy, render

if TYPE_CHECKING:
    from ..result.explanation import Explanation

MOST_LINES = 1_000
"""Rows in the table that is there without scripts."""

HOW_TO_READ = (
    "A bar says how much the model's output changes when its feature goes up by one step, on average near the row; a"
    " step is one standard deviation of the neighbourhood. Two numbers in brackets are where a step down and a step up"
    " lead.",
    "The thin line on a bar is a 95% interval for its slope; where it holds zero the bar is grey, and may go either"
    " way.",
    "Slopes say what moves the output, not what it is made of: they do not add up to the prediction.",
)


@dataclass(frozen=True, slots=True)
class Part:
    """An explanation in a report, and where it comes from."""

    explanation: Explanation
    file: str = ""
    """Name of the file it was read from"""
    sha256: str = ""
    """Of that file"""
    keys: tuple[str, ...] = ()
    """Names of the rows"""


def report(parts: Sequence[Part], path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Write the report of some explanations to an .html file, whole or not at all."""
    target = Path(check_writable(path))
    if target.suffix.lower() not in (".html", ".htm"):
        msg = f"path must end in .html; got {str(target)!r}"
        raise InvalidArgument(msg, argument="path")
    write_whole(target, as_html(parts, title=title).encode())


def to_html(e: Explanation, path: str | os.PathLike[str], *, keys: Any = None, title: str | None = None) -> None:
    """Write the report of one explanation; `keys` are names of its rows."""
    report([Part(e, keys=_keys(e, keys))], path, title=title)


def digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def as_html(parts: Sequence[Part], *, title: str | None = None) -> str:
    """The whole page."""
    if title is not None and not isinstance(title, str):
        msg = f"title must be text; got {title!r}"
        raise WrongType(msg, argument="title")
    found = [_shown(part, len(parts) > 1) for part in parts]
    scripts = [asset("bars.js"), asset("explained.js"), asset("report.js")]
    return render(
        __package__ or "",
        "report.html.j2",
        to="write a report",
        title=title or _title(parts),
        style=as_markup(asset("base.css") + asset("report.css")),
        policy=policy(*scripts),
        scripts=[as_markup(script) for script in scripts],
        how_to_read=HOW_TO_READ,
        unit=UNIT.capitalize(),
        parts=[page for page, _ in found],
        numbers=data_block({"explanations": [numbers for _, numbers in found]}),
    )


def _title(parts: Sequence[Part]) -> str:
    names = list(dict.fromkeys(_called(part.explanation) for part in parts))
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"What moves {listed}"


def _called(e: Explanation) -> str:
    """What is explained, in words where each row has an output of its own."""
    return "the predicted output" if len(set(e.row_outputs)) > 1 else shown(e.output_name)


def _shown(part: Part, is_one_of_many: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the template shows of an explanation without scripts, and the numbers for them."""
    e = part.explanation
    numbers = contents(e, part.keys)
    r, d = e.values.shape
    chart = of_row(e, 0)
    page = {
        "heading": f"{_called(e)}{f', {part.file}' * bool(part.file and is_one_of_many)}",
        "lead": f"{count(r, 'row')}, {count(d, 'feature')}: {made_by(e)}.",
        "warning": _warning(e),
        "is_several": r > 1,
        "is_exact": e.is_exact,
        "has_switches": any(bar.is_hollow for bar in chart.bars),
        "rows": f"{r:,}",
        "chart": chart,
        "svg": as_markup(chart_svg(chart)),
        "notes": "; ".join(chart.notes) + ".",
        "feature_columns": _feature_columns(e, numbers),
        "feature_lines": _feature_lines(e, numbers),
        "held": held(e),
        "facts": facts(e, part.file, part.sha256),
    }
    if r > 1:
        effects, lines = effects_chart(e)
        numbers["effects"] = chart_data(effects)
        differs = len(set(e.row_outputs)) > 1
        page |= {
            "effects_svg": as_markup(chart_svg(effects)),
            "effects_lines": lines,
            "differs": differs,
            "row_columns": _row_columns(differs),
            "row_lines": [_row_line(e, row, numbers["keys"], differs) for row in range(min(r, MOST_LINES))],
            "rows_caption": _rows_caption(e),
        }
    return page, numbers


def _warning(e: Explanation) -> str:
    """What nobody should read the numbers without."""
    late = int((~e.converged).sum())
    if e.is_exact or not late:
        return ""
    rows = f"{late:,} of {count(len(e), 'row')}" if len(e) > 1 else "This row"
    return f"{rows} did not reach the tolerance. The intervals hold all the same; they are wider than was asked for."


def _feature_columns(e: Explanation, numbers: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Of each column: key, head, and whether it holds numbers."""
    return [
        ("name", "Feature", False),
        ("x", "Value", True),
        *[("step", "One step", False)] * (numbers["steps"] is not None),
        ("value", "Slope per unit", True),
        ("standardised", "Per standard deviation", True),
        ("error", "Standard error", True),
        *[("off", "Draws beyond the data", True)] * (numbers["off_data"] is not None),
    ]


def _feature_lines(e: Explanation, numbers: dict[str, Any]) -> list[list[tuple[str, bool]]]:
    """The slopes of the first row as the script writes them."""
    one, lines = e[0], []
    share = one.off_data[0]
    for line in row_lines(one, 0, most=MOST_FEATURES):
        j = line.position
        texts = [(line.feature, False), (value_word(float(one.x[0, j])), True)]
        texts += [(line.step, False)] * (numbers["steps"] is not None)
        error = "0" if e.is_exact else f"{one.standard_error[0, j]:.4g}"
        texts += [(line.slope, True), (line.standardised, True), (error, True)]
        texts += [(_share(share[j]), True)] * (numbers["off_data"] is not None)
        lines.append(texts)
    return lines


def _row_columns(differs: bool) -> list[tuple[str, str, bool]]:
    return [
        ("row", "Row", False),
        *[("output", "Output", False)] * differs,
        ("prediction", "f(x)", True),
        ("smoothed", "Smoothed", True),
        ("fidelity", "Linear nearby", True),
        ("radius", "Error", True),
        ("n_samples", "Draws", True),
        ("", "Largest slopes", False),
    ]


def _row_line(e: Explanation, row: int, keys: Sequence[str], differs: bool) -> list[tuple[str, bool]]:
    one = e[row]
    largest = [f"{line.feature} {line.standardised}" for line in row_lines(one, 0, most=3)]
    return [
        (keys[row] if keys else str(row), False),
        *[(shown(one.row_outputs[0]), False)] * differs,
        (_four(one.prediction[0]), True),
        (_four(one.smoothed[0]), True),
        (_share(one.fidelity[0]), True),
        ("0" if e.is_exact else _four(one.radius[0]) + " *" * (not one.converged[0]), True),
        (f"{one.n_samples[0]:,}", True),
        ("; ".join(largest), False),
    ]


def _rows_caption(e: Explanation) -> str:
    bound = "" if e.is_exact else f"; error: L2 bound on all slopes at {percent(e.provenance.confidence)} confidence"
    late = "" if e.is_exact or e.converged.all() else "; *: tolerance not reached"
    more = f"; the first {MOST_LINES:,} of {len(e):,} without scripts" if len(e) > MOST_LINES else ""
    return f"Slopes per standard deviation{bound}{late}{more}"


def _four(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else ""


def _share(value: float) -> str:
    return f"{value:.0%}" if np.isfinite(value) else ""


def _keys(e: Explanation, keys: Any) -> tuple[str, ...]:
    if keys is None:
        return ()
    if isinstance(keys, str) or not is_iterable(keys):
        msg = f"keys must be a name for each row; got {keys!r}"
        raise WrongType(msg, argument="keys")
    listed = keys.tolist() if hasattr(keys, "tolist") else list(keys)
    if len(listed) != len(e):
        msg = f"keys must have one name for each of the {count(len(e), 'row')}; got {len(listed)}"
        raise InvalidArgument(msg, argument="keys")
    return tuple(shown(str(each)) for each in listed)

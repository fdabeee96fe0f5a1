"""A σ path as text, as tables for a notebook and for rich, and as curves with bands over fidelity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.optional import require
from .._core.types import Array
from .._core.validate import check_count
from ..errors import InvalidArgument, WrongType
from .names import cells, count, drawn, padded, percent, shortened, shown, told_apart
from .numbers import number
from .style import RULE, SERIES, STYLES, TITLE, check_result
from .text import CONFIDENCE, missing_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..sigma_path import SigmaPath

MOST_SLOPES = 4
"""Features in a table; a line must fit on a screen."""

LONGEST_FEATURE, LONGEST_OUTPUT = 24, 32
"""Characters of a name in the picture; those of features stand beside it, and side by side in the table."""


# ---- tables


def as_text(path: SigmaPath) -> str:
    """A line per σ: F(x), fidelity and the largest slopes with their half-widths."""
    head, body = _table(path)
    wide = [max(map(cells, column)) for column in zip(head, *body, strict=True)]
    lines = [
        "  " + "  ".join(padded(cell, w) for cell, w in zip(row, wide, strict=True)).rstrip() for row in (head, *body)
    ]
    return "\n".join([_headline(path), *lines, *(f"  {note}" for note in _left_out(path)), "", footer(path)])


def as_html(path: SigmaPath) -> str:
    """The same as an HTML table; every name is escaped."""
    head, body = _table(path)
    titles = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
    notes = "".join(f"<p>{escape(note)}</p>" for note in _left_out(path))
    return (
        f"<div><p>{escape(_headline(path))}</p><table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"
        f"{notes}<p><small>{escape(footer(path))}</small></p></div>"
    )


def as_rich(path: SigmaPath) -> Any:
    """The same as a table for rich."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head, body = _table(path)
    table = Table(title=Text(_headline(path)), title_justify="left")
    for cell in head:
        table.add_column(Text(cell), justify="right", overflow="fold")  # a number that is cut short is another one
    for row in body:
        table.add_row(*(Text(cell) for cell in row))
    return Group(table, *(Text(note) for note in _left_out(path)), Text(footer(path)))


def footer(path: SigmaPath) -> str:
    """How the numbers came about."""
    e = path[0]
    if e.is_exact:
        return "exact at every σ: no sampling, no sampling error"
    kind = "indicative: fewer than 256 draws" if e.is_indicative.any() else "approximate"
    return f"{_drawn(path)}, seed {e.seed}; ± is a {percent(CONFIDENCE)} interval at each σ ({kind})"


def _drawn(path: SigmaPath) -> str:
    e = path[0]
    if e.is_exact:
        return "exact, no sampling"
    design = "" if e.design == e.method else f"{e.design} "
    return f"{e.method}, the same {int(e.n_samples[0]):,} {design}draws at every σ"


def _bands(path: SigmaPath, confidence: float) -> str:
    """What is drawn around the curves: nothing where they are exact."""
    if path[0].is_exact:
        return ""
    return f"; {percent(confidence)} bands{' (indicative)' if path[0].is_indicative.any() else ''}"


def _headline(path: SigmaPath) -> str:
    return f"slopes of {path.output_name!r} per unit, against σ; f(x) = {path.prediction:.4g}"


def _table(path: SigmaPath) -> tuple[list[str], list[list[str]]]:
    """Titles and cells; F(x) and fidelity only where the method sees them."""
    chosen = _largest(path)[:MOST_SLOPES]
    columns = [("σ", [f"{sigma:.4g}" for sigma in path.sigmas])]
    if np.isfinite(path.smoothed).any():
        columns.append(("F(x)", [f"{smoothed:.4g}" for smoothed in path.smoothed]))
    if np.isfinite(path.fidelity).any():
        columns.append(("fidelity", [f"{fidelity:.0%}" for fidelity in path.fidelity]))
    reach = np.concatenate([e.half_width(1 - CONFIDENCE) for e in path])
    for j, name in zip(chosen, told_apart(path.feature_names, chosen, LONGEST_FEATURE), strict=True):
        slopes = zip(path.values[:, j], reach[:, j], strict=True)
        columns.append((name, [f"{w:+.6g}" if path[0].is_exact else number(w, half) for w, half in slopes]))
    head, body = [title for title, _ in columns], zip(*(column for _, column in columns), strict=True)
    return head, [list(row) for row in body]


def _left_out(path: SigmaPath) -> list[str]:
    free, d = len(_largest(path)), len(path.feature_names)
    notes = []
    if free > MOST_SLOPES:
        notes.append(f"... and {count(free - MOST_SLOPES, 'smaller one')}")
    missing = missing_features(path[0], 0)
    if held := d - free - int(path[0].missing.sum()):
        notes.append(f"({count(held, 'feature')} held fixed)")
    if missing:
        notes.append(f"({missing})")
    return notes


def _largest(path: SigmaPath) -> list[int]:
    """Features that were perturbed, by the largest share of the explanation they have at any σ.

    Shares, |w_j|√Σ_jj over the length of all: standardised slopes grow with σ, so that their largest would be a matter
    of the widest neighbourhood alone.
    """
    slopes = np.abs(path.standardised)
    length = np.sqrt(np.nansum(slopes**2, axis=1, keepdims=True))
    share = np.divide(slopes, length, out=slopes, where=length > 0).max(axis=0)
    return [int(j) for j in np.argsort(-np.nan_to_num(share, nan=-1.0), kind="stable") if np.isfinite(share[j])]


# ---- the picture


def path(
    found: SigmaPath,
    features: Sequence[int | str] | int | str | None = None,
    *,
    most: int = 6,
    confidence: float = 0.95,
    ax: Sequence[Axes] | None = None,
) -> np.ndarray[Any, np.dtype[Any]]:
    """Slopes with bands, and fidelity below, against σ: an array of the two Axes, whatever is drawn.

    Slopes are per unit; where the neighbourhood has scales, per scale of each feature, so that features of different
    units share an axis. Standardised slopes would grow with σ even for a linear model.
    """
    check_result(found, "SigmaPath")
    chosen = _largest(found)[: check_count(most, "most")] if features is None else _positions(found, features)
    slopes, fidelity = _panels(found, ax, len(chosen))
    is_log = found.sigmas[-1] > 10 * found.sigmas[0]
    for panel in (slopes, fidelity):
        panel.spines[["top", "right"]].set_visible(False)
        panel.margins(x=0.02)
        if is_log:
            _log_axis(panel, found.sigmas)
    _slopes(found, slopes, chosen, confidence)
    _fidelity(found, fidelity)
    steps, per = _units(found)
    left_out = len(_largest(found)) - len(chosen)
    rest = f"; {count(left_out, 'other slope')} not shown" if left_out else ""
    output = drawn(shortened(shown(found.output_name), LONGEST_OUTPUT))
    slopes.set_title(f"{output}: f(x) = {found.prediction:.3g}", loc="left", wrap=True, fontsize=TITLE)
    slopes.set_ylabel(f"slope per {per}")
    slopes.tick_params(axis="x", labelbottom=False)
    fidelity.set_xlabel(f"σ, {steps}\n{_drawn(found)}{_bands(found, confidence)}{rest}", wrap=True)
    slopes.figure.align_ylabels([slopes, fidelity])
    return np.array([slopes, fidelity])


def _ink() -> Any:
    """The colour of text, which is seen on dark styles too."""
    return require("matplotlib", extra="plot", to="draw a path").rcParams["text.color"]


def _panels(path: SigmaPath, ax: Sequence[Axes] | None, names: int) -> tuple[Any, Any]:
    pyplot: Any = require("matplotlib.pyplot", extra="plot", to="draw a path")
    if ax is None:
        upper, lower = max(3.2, 0.2 * names), 1.1 if np.isfinite(path.fidelity).any() else 0.4
        _, ax = pyplot.subplots(
            2, sharex=True, figsize=(7.2, upper + lower + 1.1), layout="constrained", height_ratios=(upper, lower)
        )
    if not isinstance(ax, Sequence | np.ndarray) or len(ax) != 2 or not all(hasattr(each, "spines") for each in ax):
        msg = f"ax must be two Axes, for slopes and for fidelity: plt.subplots(2, sharex=True)[1]; got {ax!r}"
        raise InvalidArgument(msg)
    return ax[0], ax[1]


def _slopes(path: SigmaPath, panel: Any, chosen: list[int], confidence: float) -> None:
    unit = path[0].std[chosen] / path.sigmas[0]
    middle = path.values[:, chosen] * unit
    lower, upper = (end[:, chosen] * unit for end in path.interval(confidence))
    panel.axhline(0, color=_ink(), linewidth=0.8)
    looks = []
    names = told_apart(path.feature_names, chosen, LONGEST_FEATURE)
    for i in range(len(chosen)):
        colour, style = SERIES[i % len(SERIES)], STYLES[i // len(SERIES) % len(STYLES)]
        name = drawn(names[i])
        panel.fill_between(path.sigmas, lower[:, i], upper[:, i], color=colour, alpha=0.2, linewidth=0)
        if len(path) == 1:  # a band of no width: bars instead
            ends = [middle[:, i] - lower[:, i], upper[:, i] - middle[:, i]]
            panel.errorbar(path.sigmas, middle[:, i], yerr=ends, color=colour, capsize=3)
        marker = "o" if len(path) <= 25 else None
        panel.plot(
            path.sigmas, middle[:, i], linestyle=style, marker=marker, markersize=3, color=colour, linewidth=1.6,
            label=name,
        )  # fmt: skip
        looks.append((name, colour, style))
    _name_ends(panel, middle[-1], looks, path.sigmas[-1])


def _name_ends(panel: Any, heights: Array, looks: list[tuple[str, str, str]], end: float) -> None:
    """Names to the right of the curves, pushed apart where curves end close together, with a line to each."""
    low, high = panel.get_ylim()
    panel.set_ylim(low, high)  # names are placed for these limits
    places = low + (high - low) * spread((heights - low) / (high - low), min(0.065, 1 / len(heights)))
    beside = panel.get_yaxis_transform()  # x as a share of the panel, y in data
    for (name, colour, style), height, place in zip(looks, heights, places, strict=True):
        panel.annotate(
            "", xy=(end, height), xycoords="data", xytext=(1.035, place), textcoords=beside, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip
        panel.plot([1.035, 1.065], [place, place], color=colour, linestyle=style, transform=beside, clip_on=False)
        panel.text(1.075, place, name, color=_ink(), fontsize=9, va="center", transform=beside)


def spread(heights: Array, gap: float) -> Array:
    """Heights between 0 and 1, moved as little as it takes to lie `gap` apart, in the same order."""
    order = np.argsort(heights, kind="stable")
    # least squares under an order (isotonic regression): neighbours that collide are pooled, at the mean of the pool
    pools: list[tuple[float, int]] = []
    for height, rank in zip(heights[order], range(len(heights)), strict=True):
        pools.append((float(height) - gap * rank, 1))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (one, m), (two, n) = pools[-2:]
            pools[-2:] = [((one * m + two * n) / (m + n), m + n)]
    apart = np.empty(len(heights))
    lowest = np.repeat([mean for mean, _ in pools], [n for _, n in pools]).clip(0, 1 - gap * (len(heights) - 1))
    apart[order] = lowest + gap * np.arange(len(heights))
    return apart


def _fidelity(path: SigmaPath, panel: Any) -> None:
    panel.set_ylabel("fidelity")
    panel.set_ylim(-0.03, 1.05)
    if not np.isfinite(path.fidelity).any():
        panel.set_ylabel("")
        panel.set_yticks([])
        panel.spines["left"].set_visible(False)
        note = f"Fidelity is not available with {path[0].method}. Use method='clime'"
        panel.text(0.5, 0.5, note, ha="center", va="center", color=_ink(), fontsize=9, transform=panel.transAxes)
        return
    panel.axhline(1, color=RULE, linewidth=0.8)
    panel.plot(path.sigmas, path.fidelity, color=_ink(), marker="o" if len(path) <= 25 else None, markersize=3)
    panel.set_yticks([0, 0.5, 1])


def _log_axis(panel: Any, sigmas: Array) -> None:
    """Plain numbers at 1, 2 and 5, or at powers of ten over many decades."""
    ticker: Any = require("matplotlib.ticker", extra="plot", to="draw a path")
    panel.set_xscale("log")
    is_long = sigmas[-1] > 3_000 * sigmas[0]
    subs, most = ((1.0,), 8) if is_long else ((1.0, 2.0, 5.0), 20)  # of decades few, however many: labels need room
    panel.xaxis.set_major_locator(ticker.LogLocator(subs=subs, numticks=most))
    panel.xaxis.set_major_formatter(ticker.FuncFormatter(lambda sigma, _: f"{sigma:g}"))
    panel.xaxis.set_minor_locator(ticker.NullLocator())


def _units(path: SigmaPath) -> tuple[str, str]:
    """What one unit of σ is, and what the slopes drawn are per."""
    around = path[0].neighbourhood
    if np.ndim(around.sigma) or around.sigma != path.sigmas[0]:
        return "in multiples of the neighbourhood given", "standard deviation\nof the neighbourhood given"
    if around.covariance is not None:
        return "in standard deviations of the covariance given", "standard deviation of each feature"
    if around.scale is not None:
        return "in scales of each feature", "scale of each feature"
    return "standard deviation of the neighbourhood", "unit of each feature"


def _positions(path: SigmaPath, features: Sequence[int | str] | int | str) -> list[int]:
    several = [features] if isinstance(features, str | int | np.integer) else features
    if not isinstance(several, Iterable):
        msg = f"features must be names or positions, or a list of them; got {features!r}"
        raise WrongType(msg)
    names = path.feature_names
    positions = []
    for each in several:
        if isinstance(each, str) and each in names:
            position = names.index(each)
        elif isinstance(each, int | np.integer) and not isinstance(each, bool) and 0 <= each < len(names):
            position = int(each)
        else:
            shown = ", ".join(map(repr, names[:6])) + (", ..." if len(names) > 6 else "")
            msg = f"features names {each!r}, which is no feature; the {len(names)} features are {shown}"
            raise InvalidArgument(msg)
        if np.isnan(path.values[0, position]):
            why = "is missing at this row" if path[0].missing[0, position] else "was held fixed"
            msg = f"features names {each!r}, which {why} and has no slope"
            raise InvalidArgument(msg)
        positions.append(position)
    if not positions:
        msg = "features is empty; name at least one, or leave it out for the largest"
        raise InvalidArgument(msg)
    return list(dict.fromkeys(positions))  # a curve drawn twice would be counted twice

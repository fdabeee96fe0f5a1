"""A benchmark as text, and as curves of error against evaluations."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING, Any

from .._core.optional import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..benchmarking.benchmark import Benchmark, Contender

TARGETS = (0.1, 0.03, 0.01)
# Okabe and Ito's colours, which can be told apart without full colour vision; their black is the colour of text.
# Yellow is faint on white, so it is left to a method that takes part only where it is asked for.
COLOURS = {
    "smoothgrad": "#0072B2",
    "both": "#56B4E9",
    "clime": "#E69F00",
    "curves": "#D55E00",
    "differences": "#009E73",
    "stein": "#CC79A7",
    "lime": "#F0E442",
}
STYLES = {
    "iid": ":s",
    "antithetic": "-.^",
    "orthogonal": "--D",
    "sobol": "-o",
    "aligned": "-P",
    "aligned-pairs": "--P",
    "differences": "-o",
}
OTHER_STYLE = "-X"

FLOOR = "#808080"

LEGEND_LINE = 0.21
"""Inches"""


def as_text(found: Benchmark) -> str:
    """Errors by draws, evaluations to round errors, and time: a line per method and design."""
    head = ["method", "design", *(f"{n:,}" for n in found.draws), *(f"to {target:.0%}" for target in TARGETS)]
    lines = [[*head, "µs each", "× bare"], *(_line(each, found) for each in found.contenders)]
    widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
    rows = f"{found.rows} row{'s' * (found.rows != 1)} of {found.features} perturbed features"
    return "\n".join(
        [
            f"slopes of {found.output!r}: relative error by draws per row, and evaluations that an error takes",
            *(_aligned(line, widths) for line in lines),
            "",
            f"{rows}; root mean square over {found.repeats} seeds, median over rows; seed {found.seed}",
            *_left_out(found),
            *_against(found),
            *_apart(found),
        ]
    )


def _line(each: Contender, found: Benchmark) -> list[str]:
    name = [each.method, "" if each.design in ("none", each.method) else each.design]
    if each.seconds_per_evaluation is None:
        return [*name, *["0%"] * len(found.draws), *[f"{each.evaluations[0]:,}"] * len(TARGETS), "", ""]
    least = _floor(found, each.needs)
    errors = dict(zip(each.draws, each.errors, strict=True))
    cells = [_error(errors[n], least) if n in errors else "too few" for n in found.draws]
    needed = [_needed(each, target, least) for target in TARGETS]
    return [*name, *cells, *needed, f"{1e6 * each.seconds_per_evaluation:.3g}", f"{each.overhead:.2f}"]


def _floor(found: Benchmark, needs: str) -> float:
    """Errors below this cannot be told from what is left in the truth: twice its own error."""
    return next((2 * about.relative_error for about in found.references if about.needs == needs), 0.0)


def _needed(each: Contender, target: float, least: float) -> str:
    """Evaluations to an error, or on which side of those that were measured they lie, where that can be told."""
    if target < least and each.errors[-1] < least:
        return "too fine"
    n = each.evaluations_to(target)
    if n is None:
        return f"> {each.evaluations[-1]:,}"
    return f"≤ {n:,.0f}" if each.errors[0] <= target else f"{n:,.0f}"


def _error(value: float, least: float) -> str:
    """In percent; with a ≤ where it is as small as what is left in the truth."""
    return f"≤ {_percent(least)}" if value < least else _percent(value)


def _percent(share: float) -> str:
    """Two digits, or all those before the point."""
    return f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:,.0f}%"


def _aligned(cells: list[str], widths: list[int]) -> str:
    """Names to the left, numbers to the right."""
    padded = [cell.ljust(w) if j < 2 else cell.rjust(w) for j, (cell, w) in enumerate(zip(cells, widths, strict=True))]
    return "  ".join(padded).rstrip()


def _left_out(found: Benchmark) -> list[str]:
    """Who could not take part, and what they would need."""
    if not found.left_out:
        return []
    named = (f"{_name(each.method, each.design)} ({each.fewest:,})" for each in found.left_out)
    return [f"left out, as these need more draws: {', '.join(named)}"]


def _name(method: str, design: str) -> str:
    return method if design == method else f"{method} {design}"


def _kind(needs: str) -> str:
    return "gradients" if needs == "gradients" else "predictions"


def _against(found: Benchmark) -> list[str]:
    """What errors are measured against, and the bare model's speed."""
    lines = []
    for about in found.references:
        kind = _kind(about.needs)
        if about.method == "exact":
            lines.append(f"from {kind}: against the closed form")
            continue
        design = "" if about.design == about.method else f", {about.design} draws"
        lines.append(
            f"from {kind}: against one run of {about.evaluations:,} evaluations ({about.method}{design}),"
            f" itself off by about {_percent(about.relative_error)}"
        )
    speed = ", ".join(f"{1e6 * s:.3g} for {needs}" for needs, s in found.bare_seconds.items())
    return [*lines, f"bare model, µs per point: {speed}; × bare is a whole call over that"]


def _apart(found: Benchmark) -> list[str]:
    """A warning where small errors from gradients are errors of something else."""
    if found.apart is None:
        return []
    return [
        f"from gradients and from predictions slopes differ by up to {_percent(found.apart)}: the gradients miss"
        " something, jumps say, and no number of draws mends that. Methods from predictions are right"
    ]


def errors(found: Benchmark, ax: Axes | None = None) -> Axes:
    """Relative error against evaluations per row, both in logarithms; a colour per method, a dash per design."""
    pyplot: Any = require("matplotlib.pyplot", extra="plot", to="draw a benchmark")
    sampled = [each for each in found.contenders if each.needs != "structure"]
    floors = _floors_near(found, sampled)
    if ax is None:
        tall = max(4.6, 0.8 + LEGEND_LINE * (len(sampled) + len(floors)))
        _, ax = pyplot.subplots(figsize=(8.8, tall), layout="constrained")
    assert ax is not None
    for each in sampled:
        name = each.method if each.design == each.method else f"{each.method}, {each.design}"
        colour = COLOURS.get(each.method, pyplot.rcParams["text.color"])
        style = STYLES.get(each.design, OTHER_STYLE)
        ax.plot(each.evaluations, each.errors, style, color=colour, ms=4, label=name)
    for needs, error in floors.items():
        ax.axhline(error, color=FLOOR, linewidth=0.8, label=f"too fine below, from {_kind(needs)}")
    ax.set(xscale="log", yscale="log", xlabel="model evaluations per row", ylabel="relative error, L2")
    ax.set_xticks(found.draws, [f"{n:,}" for n in found.draws])
    ax.minorticks_off()
    _mark_errors(ax, [error for each in sampled for error in each.errors] + list(floors.values()))
    ax.spines[["top", "right"]].set_visible(False)
    # beside the curves, as there is no telling which corner they leave empty
    ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
    return ax


def _floors_near(found: Benchmark, sampled: list[Contender]) -> dict[str, float]:
    """Errors below which nothing can be told, by what is needed of the model, where curves come near them."""
    least = {each.needs: min(other.errors[-1] for other in sampled if other.needs == each.needs) for each in sampled}
    return {needs: _floor(found, needs) for needs, error in least.items() if error < 2 * _floor(found, needs)}


def _mark_errors(ax: Axes, shown: list[float]) -> None:
    """Limits at 1, 2 or 5, and labels there; at powers of ten over many decades."""
    ticker: Any = require("matplotlib.ticker", extra="plot", to="draw a benchmark")
    positive = [error for error in shown if error > 0]
    if not positive:
        return
    low, high = _round_limits(min(positive), max(positive))
    ax.set_ylim(low / 1.08, high * 1.08)
    ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0,) if high > 3_000 * low else (1.0, 2.0, 5.0), numticks=20))
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.6g}%")


def _round_limits(low: float, high: float) -> tuple[float, float]:
    """1, 2 or 5 times powers of ten, just below and just above.

    >>> _round_limits(0.034, 0.07)
    (0.02, 0.1)
    """
    below, above = ([step * 10.0 ** floor(log10(end)) for step in (1, 2, 5, 10)] for end in (low, high))
    few = 1e-9  # rounding
    return max(e for e in below if e <= low * (1 + few)), min(e for e in above if e >= high * (1 - few))

"""A benchmark as text, and as curves of error against evaluations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._optional import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..benchmark import Benchmark, Contender

TARGETS = (0.1, 0.03, 0.01)
# Okabe and Ito's colours, which can be told apart without full colour vision
COLOURS = {
    "smoothgrad": "#0072B2",
    "both": "#F0E442",
    "clime": "#E69F00",
    "curves": "#D55E00",
    "differences": "#009E73",
    "controlled": "#000000",
    "stein": "#CC79A7",
    "lime": "#56B4E9",
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
        ]
    )


def _line(each: Contender, found: Benchmark) -> list[str]:
    name = [each.method, "" if each.design in ("none", each.method) else each.design]
    if each.seconds_per_evaluation is None:
        return [*name, *["0%"] * len(found.draws), *[f"{each.evaluations[0]:,}"] * len(TARGETS), "", ""]
    floor = next(2 * about.relative_error for about in found.references if about.needs == each.needs)
    errors = dict(zip(each.draws, each.errors, strict=True))
    cells = [_error(errors[n], floor) if n in errors else "too few" for n in found.draws]
    needed = [_needed(each, target) for target in TARGETS]
    return [*name, *cells, *needed, f"{1e6 * each.seconds_per_evaluation:.3g}", f"{each.overhead:.2f}"]


def _needed(each: Contender, target: float) -> str:
    """Evaluations to an error, or on which side of those that were measured they lie."""
    n = each.evaluations_to(target)
    if n is None:
        return f"> {each.evaluations[-1]:,}"
    return f"≤ {n:,.0f}" if each.errors[0] <= target else f"{n:,.0f}"


def _error(value: float, floor: float) -> str:
    """In percent; with a ≤ where it is as small as what is left in the truth."""
    return f"≤ {100 * floor:.2g}%" if value < floor else f"{100 * value:.2g}%"


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


def _against(found: Benchmark) -> list[str]:
    """What errors are measured against, and the bare model's speed."""
    lines = []
    for about in found.references:
        kind = "gradients" if about.needs == "gradients" else "predictions"
        if about.method == "exact":
            lines.append(f"from {kind}: against the closed form")
            continue
        design = "" if about.design == about.method else f", {about.design} draws"
        lines.append(
            f"from {kind}: against one run of {about.evaluations:,} evaluations ({about.method}{design}),"
            f" itself off by about {100 * about.relative_error:.2g}%"
        )
    speed = ", ".join(f"{1e6 * s:.3g} for {needs}" for needs, s in found.bare_seconds.items())
    return [*lines, f"bare model, µs per point: {speed}; × bare is a whole call over that"]


def errors(found: Benchmark, ax: Axes | None = None) -> Axes:
    """Relative error against evaluations per row, both in logarithms; a colour per method, a dash per design."""
    pyplot: Any = require("matplotlib.pyplot", extra="plot", to="draw a benchmark")
    sampled = [each for each in found.contenders if each.needs != "structure"]
    if ax is None:
        tall = max(4.6, 0.8 + LEGEND_LINE * len(sampled))
        _, ax = pyplot.subplots(figsize=(8.8, tall), layout="constrained")
    assert ax is not None
    for each in sampled:
        name = each.method if each.design == each.method else f"{each.method}, {each.design}"
        ax.plot(
            each.evaluations, each.errors, STYLES.get(each.design, OTHER_STYLE), color=COLOURS[each.method], ms=4,
            label=name,
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="model evaluations per row", ylabel="relative error, L2")
    ax.set_xticks(found.draws, [f"{n:,}" for n in found.draws])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    ax.spines[["top", "right"]].set_visible(False)
    # beside the curves, as there is no telling which corner they leave empty
    ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
    return ax

"""Draws the benchmarks' two charts from the committed results: error against evaluations, and stability.

    python benchmarks/charts.py

writes docs/figures/bench_error.svg and docs/figures/bench_stability.svg. Colours can be told apart without full colour
vision (Okabe and Ito), and so can markers and dashes.
"""

from __future__ import annotations

from common import HERE, read_lines

# isort: split
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from tables import OURS, TEXTBOOK, groups, of

FOLDER = HERE.parent / "docs" / "figures"
BLUE, VERMILION, SKY, ORANGE, INK, PALE = "#0072B2", "#D55E00", "#56B4E9", "#E69F00", "#303030", "#d9d9d9"
MODEL = "15-10-10-2"
"""The network that captum and lime were asked about as well."""
LINES = {
    ("gradients", OURS): ("smoothlime, gradients", BLUE, "-", "o"),
    ("gradients", TEXTBOOK["gradients"]): ("SmoothGrad, independent draws", VERMILION, "--", "s"),
    ("values", OURS): ("smoothlime, predictions only", SKY, "-", "o"),
    ("values", TEXTBOOK["values"]): ("C-LIME, independent draws", ORANGE, "--", "s"),
}
POINTS = {("gradients", "captum"): ("captum's SmoothGrad", VERMILION, "x"), ("values", "lime"): ("lime", ORANGE, "+")}
TOOLS = {"smoothlime": BLUE, "smoothlime, predictions only": SKY, "captum": VERMILION, "lime": ORANGE}
MEASURES = {
    "spread": "spread over runs,\nrelative to the attributions",
    "top1_changes": "two runs disagree\nabout the top feature",
    "top3_changes": "two runs disagree\nabout the top three",
}


def error_chart(records: list[dict[str, Any]], path: Path) -> None:
    """A panel per variance: error of everyone against evaluations, the target errors as faint lines."""
    found = of(records, what="error", workload=MODEL)
    variances = [variance for (variance,) in groups(found, "variance")]
    figure, panels = plt.subplots(1, len(variances), figsize=(9.6, 3.9), sharey=True, layout="constrained")
    for axes, variance in zip(panels, variances, strict=True):
        here = of(found, variance=variance)
        for (kind, who), (label, colour, dash, marker) in LINES.items():
            curve = of(here, kind=kind, who=who)
            axes.plot(*_curve(curve), dash, color=colour, marker=marker, ms=4, lw=1.8, label=label)
        for (kind, who), (label, colour, marker) in POINTS.items():
            curve = of(here, kind=kind, who=who)
            axes.plot(*_curve(curve), marker, color=colour, ms=9, mew=2, label=label if curve else None)
        for target in (0.1, 0.01):
            axes.axhline(target, color=PALE, lw=0.8, zorder=0)
        axes.set(xscale="log", yscale="log", xlabel="model evaluations per row")
        axes.set_title(f"network {MODEL}, σ² = {variance:g}", fontsize=10)
        axes.set_xticks([64, 256, 1_024, 4_096], ["64", "256", "1,024", "4,096"])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("relative error, L2")
    panels[0].yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    handles = {label: line for axes in panels for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    _save(figure, path)


def _curve(curve: list[dict[str, Any]]) -> tuple[list[float], list[float]]:
    return [each["evaluations"] for each in curve], [each["error"] for each in curve]


def stability_chart(records: list[dict[str, Any]], path: Path) -> None:
    """A bar per model and tool, a panel per measure; evaluations stand beside the tool."""
    found = of(records, setting="default")
    models = [model for (model,) in groups(found, "workload")]
    places, labels, colours, at, middle = [], [], [], 0.0, {}
    for model in models:
        own = of(found, workload=model)
        middle[model] = at - 0.95
        for each in own:
            places.append(at)
            labels.append(f"{each['who']}: {each['evaluations']:,.0f} evaluations")
            colours.append(TOOLS[each["who"]])
            at += 1
        at += 1.3
    figure, panels = plt.subplots(1, 3, figsize=(9.6, 0.34 * at + 1.2), sharey=True, layout="constrained")
    for axes, (name, title) in zip(panels, MEASURES.items(), strict=True):
        values = np.array([each[name] for model in models for each in of(found, workload=model)])
        axes.barh(places, values, color=colours, height=0.75)
        for place, value in zip(places, values, strict=True):
            axes.text(value, place, f" {_percent(value)}", va="center", ha="left", fontsize=9, color=INK)
        axes.set_title(title, fontsize=10)
        axes.set_xlim(0, 1.25 * values.max())
        axes.xaxis.set_visible(False)
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(places, labels, fontsize=9)
    panels[0].set_ylim(at - 1.6, -1.5)  # downwards
    for model, place in middle.items():
        panels[0].text(0, place, f" {model}", va="center", ha="left", fontsize=10, weight="bold", color=INK)
    _save(figure, path)


def _percent(value: float) -> str:
    return f"{value:.1%}" if 5e-4 <= value < 0.1 else f"{value:.0%}"


def _save(figure: Any, path: Path) -> None:
    """The same bytes every time."""
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, facecolor="white", dpi=110)
    plt.close(figure)


def main() -> None:
    plt.rcParams.update({"svg.hashsalt": "smoothlime", "font.size": 10})
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    suffix = ".png" if "--png" in sys.argv else ".svg"
    error_chart(read_lines("error"), folder / f"bench_error{suffix}")
    stability_chart(read_lines("stability"), folder / f"bench_stability{suffix}")


if __name__ == "__main__":
    main()

"""One drawing per kind of panel: each fills the axes it is given and returns what its legend should say."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.optional import require
from .._core.types import Array
from .ticks import set_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, PALE = "#303030", "#e4e4e4"
COLOURS = {  # tell apart in every common kind of colour blindness, and dark enough to read on white
    "smoothgrad": "#0072b2",
    "clime": "#d55e00",
    "equivalence": "#00795a",
    "simulated": "#7b3fa0",
    "bankruptcy": "#d98300",
    "shopping": "#00866b",
    "bound": "#4d4d4d",
    "paper": "#8a8a8a",
    "truth": "#000000",
    "a": "#4b1d6b",
    "b": "#1f9289",
    "c": "#dba100",
}
MARKERS = {"clime": "s", "bankruptcy": "s", "shopping": "^", "b": "s", "c": "^"}
OTHERS = ("#5b6b8c", "#a2557a", "#6b7d2a", "#8c6239")
PURPLE, YELLOW = "#5e2b8a", "#f2c318"
MOST_MARKED, MOST_WRITTEN = 30, 144


def words(text: Any, longest: int = 60) -> str:
    """One line that every font here can show: no control signs, no mathematics begun by a dollar sign."""
    flat = " ".join("".join(c if unicodedata.category(c)[0] != "C" else " " for c in str(text)).split())
    flat = flat if len(flat) <= longest else flat[: longest - 1] + "…"
    known = "".join(c if ord(c) in _letters() else "�" for c in flat)
    return re.sub("^_", "-", known).replace("$", r"\$")  # a leading underscore would hide a label from legends


def numbers(values: Any) -> Array:
    """Floats with NaN for None, in as many dimensions as there are lists in lists."""
    if isinstance(values, np.ndarray):
        return values.astype(float)
    if values and isinstance(values[0], list | tuple):
        return np.array([numbers(row) for row in values])
    return np.array([math.nan if value is None else value for value in values], dtype=float)


def height(panel: dict[str, Any], wide: float) -> float:
    """Inches that suit a panel so many inches wide, with room for what stands above and below its frame."""
    more = 0.16 * _title(panel).count("\n") + 0.15 * bool(panel.get("marks"))
    if panel["kind"] == "heatmap":
        return float(np.clip(0.9 + 0.3 * len(panel["rows"]), 1.8, 6.0)) + more + 0.8 * _slanted(panel["columns"])
    if panel["kind"] == "field":
        return min(0.85 * wide, 4.6) + more
    return float(np.clip(0.8 * wide, 2.5, 3.8)) + more + 0.8 * _slanted(panel.get("groups") or [])


def look(handle: Any) -> tuple[Any, ...]:
    """What can be told apart in a legend."""
    asked = ("get_color", "get_facecolor", "get_linestyle", "get_marker", "get_markerfacecolor")
    return tuple(str(getattr(handle, name)()) for name in asked if hasattr(handle, name))


def colour(role: str, place: int = 0) -> str:
    """Colour of a role; a role without one takes its turn among the others."""
    return COLOURS.get(role) or OTHERS[place % len(OTHERS)]


def curves(ax: Axes, panel: dict[str, Any]) -> dict[str, Any]:
    """Lines with bands, and vertical lines for reference."""
    _frame(ax, panel)
    scales = panel.get("x_scale", "linear"), panel.get("y_scale", "linear")
    handles, hidden, seen = {}, False, []
    for k, curve in enumerate(panel["curves"]):
        x, y = numbers(curve["x"]), numbers(curve["y"])
        hidden |= bool(((scales[1] == "log") & (y <= 0)).any() or ((scales[0] == "log") & (x <= 0)).any())
        x, y = (np.where(v > 0, v, np.nan) if scale == "log" else v for v, scale in zip((x, y), scales, strict=True))
        seen.append((x[np.isfinite(y)], y[np.isfinite(x)]))
        style = _line_style(curve, k, len(x))
        (line,) = ax.plot(x, y, **style, zorder=3 - 0.01 * k)
        _band(ax, curve, (x, y), scales[1], style)
        handles[words(curve["label"])] = line
    levels = _marks(ax, panel.get("marks") or [], scales[0], seen)
    ax.set_title(ax.get_title(loc="left"), loc="left", pad=6 + 11 * levels)
    set_scale(ax, "x", scales[0], np.concatenate([x for x, _ in seen] or [np.empty(0)]))
    set_scale(ax, "y", scales[1], np.concatenate([y for _, y in seen] or [np.empty(0)]))
    ax.grid(color=PALE, linewidth=0.7)
    _remark(ax, seen, hidden)
    return handles


def field(ax: Axes, panel: dict[str, Any]) -> dict[str, Any]:
    """A probability as shading from purple to yellow, its boundary, and the points of each class."""
    colors = require("matplotlib.colors", extra="plot", to="draw the figures of the paper")
    lines = require("matplotlib.lines", extra="plot", to="draw the figures of the paper")
    _frame(ax, panel)
    x, y, z = numbers(panel["x"]), numbers(panel["y"]), np.ma.masked_invalid(numbers(panel["z"]))
    shades = colors.LinearSegmentedColormap.from_list("classes", ["#b79bd3", "#fbfaf7", "#fae48b"])
    mesh = ax.pcolormesh(x, y, z, cmap=shades, vmin=0, vmax=1, shading="nearest", rasterized=True)
    ax.figure.colorbar(mesh, ax=ax, shrink=0.85, pad=0.02, label="probability of class 1").outline.set_visible(False)
    handles = {}
    for k, (points, fill) in enumerate(zip(panel.get("points") or [], _alternate(PURPLE, YELLOW), strict=False)):
        handles[words(points["label"])] = ax.plot(
            numbers(points["x"]), numbers(points["y"]), "os"[k % 2], color=fill, markersize=3.6,
            markeredgecolor="#2a2a2a", markeredgewidth=0.4, linestyle="none",
        )[0]  # fmt: skip
    level = panel.get("level", 0.5)
    if min(z.shape) > 1 and z.count() and z.min() < level < z.max():
        ax.contour(x, y, z, levels=[level], colors="#000000", linewidths=1.6)
        handles[f"decision boundary, {level:g}"] = lines.Line2D([], [], color="#000000", linewidth=1.6)
    if len(x) and len(y):
        ax.set_xlim(x.min(), x.max())
        ax.set_ylim(y.min(), y.max())
    return handles


def bars(ax: Axes, panel: dict[str, Any]) -> dict[str, Any]:
    """Groups of bars from zero; on a log axis dots, as the length of a bar would mean nothing there."""
    _frame(ax, panel)
    groups, series = panel["groups"], panel["series"]
    log = panel.get("y_scale", "linear") == "log"
    at, step = np.arange(len(groups), dtype=float), 0.8 / max(1, len(series))
    handles, hidden, seen = {}, False, []
    for k, one in enumerate(series):
        y = numbers(one["values"])
        hidden |= bool(log and (y <= 0).any())
        y = np.where(y > 0, y, np.nan) if log else y
        x = at + (k - (len(series) - 1) / 2) * step
        fill = colour(one.get("role", ""), k)
        if log:
            handle: Any = ax.plot(x, y, "osDv^"[k % 5], color=fill, markersize=6, linestyle="none")[0]
        else:
            handle = (
                ax.bar(x, y, width=0.92 * step, color=fill, edgecolor="white", linewidth=0.4)[0] if len(x) else None
            )
        _bar_errors(ax, one, (x, y), log)
        for place in x[np.isnan(y)]:
            ax.annotate(
                "n/a", (place, 0.02), xycoords=("data", "axes fraction"), ha="center", fontsize=7, color="#666666"
            )
        if handle is not None:
            handles[words(one["label"])] = handle
        seen.append((x[np.isfinite(y)], y[np.isfinite(y)]))
    set_scale(ax, "y", "log" if log else "linear", np.concatenate([y for _, y in seen] or [np.empty(0)]))
    if not log:
        ax.axhline(0, color="#555555", linewidth=0.8)
    _name_columns(ax, groups)
    ax.set_xlim(-0.6, max(len(groups) - 0.4, 0.6))
    ax.grid(axis="y", color=PALE, linewidth=0.7)
    _remark(ax, seen, hidden)
    return handles if len(handles) > 1 else {}


def heatmap(ax: Axes, panel: dict[str, Any]) -> dict[str, Any]:
    """A table of colours, with the numbers written in while they fit."""
    _frame(ax, panel)
    rows, columns = panel["rows"], panel["columns"]
    z = numbers(panel["values"]).reshape(len(rows), len(columns))
    low, high = (panel.get(end) for end in ("low", "high"))
    finite = z[np.isfinite(z)] if np.isfinite(z).any() else np.zeros(1)
    low, high = finite.min() if low is None else low, finite.max() if high is None else high
    high = high if high > low else low + 1
    if low < 0 < high:  # white is zero
        low, high, shades = -max(-low, high), max(-low, high), "RdBu_r"
    else:
        shades = "viridis"
    image = ax.imshow(np.ma.masked_invalid(z), cmap=shades, vmin=low, vmax=high, aspect="auto", interpolation="nearest")
    ax.set_facecolor("#f0f0f0")
    ax.figure.colorbar(image, ax=ax, pad=0.02, label=words(panel.get("label", ""))).outline.set_visible(False)
    ax.set_yticks(range(len(rows)), [words(row, 28) for row in rows])
    _name_columns(ax, columns)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if z.size <= MOST_WRITTEN:
        for (i, j), value in np.ndenumerate(z):
            text = f"{value:.2f}" if np.isfinite(value) else "n/a"
            shade = np.asarray(image.cmap((value - low) / (high - low)))[:3] if np.isfinite(value) else np.ones(3)
            dark = shade @ [0.299, 0.587, 0.114] < 0.5
            ax.text(j, i, text, ha="center", va="center", fontsize=7.5, color="white" if dark else "black")
    return {}


DRAW = {"curves": curves, "field": field, "bars": bars, "heatmap": heatmap}


def _title(panel: dict[str, Any]) -> str:
    return textwrap.fill(words(panel.get("title", ""), 100), 46)


def _frame(ax: Axes, panel: dict[str, Any]) -> None:
    ax.set_title(_title(panel), loc="left")
    ax.set_xlabel(words(panel.get("x_label", "")))
    ax.set_ylabel(words(panel.get("y_label", "")))


def _line_style(curve: dict[str, Any], place: int, points: int) -> dict[str, Any]:
    role = curve.get("role", "")
    dashed = bool(curve.get("dashed", role == "bound"))
    plain = role in ("bound", "truth") and points > 1
    return {
        "color": colour(role, place),
        "linestyle": (0, (4, 2)) if dashed else "-",
        "linewidth": 1.5,
        "marker": MARKERS.get(role, "o" if role in COLOURS else "D") if points <= MOST_MARKED and not plain else "",
        "markersize": 3.6,
        "markerfacecolor": "white" if dashed else colour(role, place),
    }


def _band(ax: Axes, curve: dict[str, Any], line: tuple[Array, Array], scale: str, style: dict[str, Any]) -> None:
    if curve.get("low") is None or curve.get("high") is None:
        return
    (x, y), low, high = line, numbers(curve["low"]), numbers(curve["high"])
    if scale == "log":
        low = np.maximum(low, np.nanmin(y, initial=np.inf) / 3)  # what reaches below zero ends at the frame
        high = np.where(high > 0, high, np.nan)
    if np.isfinite(x * y).sum() == 1:
        ax.vlines(x, low, high, color=style["color"], linewidth=1.2)
    else:
        ax.fill_between(x, low, high, color=style["color"], alpha=0.18, linewidth=0, zorder=2)


def _bar_errors(ax: Axes, one: dict[str, Any], line: tuple[Array, Array], log: bool) -> None:
    if one.get("low") is None or one.get("high") is None:
        return
    (x, y), low, high = line, numbers(one["low"]), numbers(one["high"])
    if log:
        low = np.where(low > 0, low, y / 3)
    fine = np.isfinite(x + y + low + high)
    ax.vlines(x[fine], low[fine], high[fine], color="#222222", linewidth=1.1, zorder=4)


def _marks(ax: Axes, marks: list[dict[str, Any]], scale: str, seen: list[tuple[Array, Array]]) -> int:
    """Dotted lines with their names above the frame, on as many levels as it takes to keep them apart."""
    usable = [m for m in marks if m.get("x") is not None and math.isfinite(m["x"]) and (scale != "log" or m["x"] > 0)]
    if not usable:
        return 0
    shown = np.concatenate([x for x, _ in seen] + [np.array([m["x"] for m in usable])])
    place = np.log10 if scale == "log" else np.asarray
    low, high = place(shown).min(), place(shown).max()
    free: list[float] = []  # where the last name of each level ends, as a share of the width
    for mark in sorted(usable, key=lambda m: m["x"]):
        ax.axvline(mark["x"], color="#777777", linewidth=1.0, linestyle=":", zorder=1)
        text = words(mark["label"], 34)
        half, centre = 0.011 * len(text) + 0.01, 0.05 + 0.9 * float((place(mark["x"]) - low) / max(high - low, 1e-12))
        centre = min(max(centre, half), 1 - half) if half < 0.5 else 0.5
        level = next((k for k, end in enumerate(free) if end <= centre - half), len(free))
        free[level : level + 1] = [centre + half]
        ax.annotate(
            text, (centre, 1.0), xycoords="axes fraction", xytext=(0, 2 + 11 * level), textcoords="offset points",
            color="#555555", ha="center", va="bottom", fontsize=7.5, annotation_clip=False,
        )  # fmt: skip
    return len(free)


def _remark(ax: Axes, seen: list[tuple[Array, Array]], hidden: bool) -> None:
    """Says what cannot be seen: nothing to draw, or values that a log axis has no place for."""
    if not any(len(y) and np.isfinite(y).any() for _, y in seen):
        ax.text(0.5, 0.5, "no values", transform=ax.transAxes, ha="center", va="center", color="#666666")
    if hidden:
        label = ax.get_xlabel()
        ax.set_xlabel(f"{label}\n(zeros and negative values have no place on a log axis)".strip(), fontsize=8)


def _slanted(names: list[str]) -> bool:
    """Whether names are too long to stand side by side, on two lines if need be."""
    longest = max((len(part) for name in names for part in _wrapped(name).split("\n")), default=0)
    return len(names) * (longest + 1) > 46


def _wrapped(name: str) -> str:
    return textwrap.fill(words(name, 40), 14)


def _name_columns(ax: Axes, names: list[str]) -> None:
    places = range(len(names))
    if _slanted(names):
        ax.set_xticks(places, [words(name, 26) for name in names], rotation=35, ha="right", rotation_mode="anchor")
    else:
        ax.set_xticks(places, [_wrapped(name) for name in names])


def _alternate(*colours: str) -> list[str]:
    return [*colours, *OTHERS]


@cache
def _letters() -> frozenset[int]:
    """Letters that the font shipped with matplotlib has."""
    fonts = require("matplotlib.font_manager", extra="plot", to="draw the figures of the paper")
    return frozenset(fonts.get_font(fonts.findfont("DejaVu Sans")).get_charmap())

"""Figures from plain data: one drawing per kind of panel, laid out, coloured by role, and saved the same every time.

A figure is `{"title": ..., "panels": [...]}`; the panels are "curves", "field", "bars" or "heatmap". Nothing here knows
what the numbers mean. Missing numbers are None or NaN. On a log axis what is not positive cannot be shown, and the
panel says so.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._core.optional import require
from ..errors import InvalidArgument
from . import panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = {1: 6.4, 2: 8.6, 3: 10.6}
"""Inches by number of columns; the page shows 100 pixels per inch at most."""

MOST_SHARED = 8
"""Labels in one legend under the whole figure; more are listed panel by panel."""

STYLE = {
    "font.family": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.axisbelow": True,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "svg.fonttype": "path",  # letters as shapes look the same on every machine
    "svg.hashsalt": "smoothlime",
    "pdf.fonttype": 42,
    "savefig.dpi": 150,
}


def draw(figure: dict[str, Any], note: str = "") -> Figure:
    """A matplotlib figure of all panels; `note` goes above it, for what a figure must not be seen without.

    Belongs to no window and to no list of open figures: it is gone when nothing refers to it.
    """
    module = require("matplotlib.figure", extra="plot", to="draw the figures of the paper")
    parts = figure["panels"]
    columns = _columns(len(parts))
    rows = -(-len(parts) // columns)
    with _style():
        heights = [
            max(panels.height(part, WIDTH[columns] / columns) for part in parts[row * columns : (row + 1) * columns])
            for row in range(rows)
        ]
        canvas: Figure = module.Figure(figsize=(WIDTH[columns], sum(heights) + 0.45), layout=_spacing())
        grid = canvas.add_gridspec(rows, columns, height_ratios=heights)
        found = []
        for k, part in enumerate(parts):
            ax = canvas.add_subplot(grid[k // columns, k % columns])
            if part["kind"] not in panels.DRAW:
                raise InvalidArgument(f"a panel is one of {', '.join(panels.DRAW)}; got {part['kind']!r}")
            found.append((ax, panels.DRAW[part["kind"]](ax, part)))
        _legends(canvas, found)
        if note:
            canvas.suptitle(panels.words(note, 150), x=0.01, ha="left", fontsize=8, color="#a11212", weight="bold")
        canvas.draw_without_rendering()  # arranges the panels; once, as a second time would move them by a hair
        canvas.set_layout_engine("none")
    return canvas


def render(figure: Figure, title: str = "") -> dict[str, bytes]:
    """The figure as {"svg": ..., "pdf": ...}; the same bytes for the same figure."""
    kinds = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None, "Title": title or None}}
    done = {}
    with _style():
        for kind, metadata in kinds.items():
            stream = BytesIO()
            figure.savefig(stream, format=kind, metadata=metadata, facecolor="white")
            done[kind] = stream.getvalue()
    return done


def save(figure: Figure, folder: str | Path, name: str) -> tuple[Path, Path]:
    """Paths of `name`.svg and `name`.pdf in `folder`; each appears whole or not at all."""
    written = [
        write_whole(Path(folder) / f"{checked(name)}.{kind}", data) for kind, data in render(figure, name).items()
    ]
    return written[0], written[1]


def write_whole(path: Path, data: bytes) -> Path:
    """`path`, replaced by `data` in one step: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return path


def checked(name: str) -> str:
    """`name`, if it can be a file name on every system."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*", name):
        raise InvalidArgument(f"a figure's name has letters, digits, '-', '_' and '.' only; got {name!r}")
    return name


@contextmanager
def _style() -> Iterator[None]:
    """Our settings on top of matplotlib's own defaults, whatever the caller has set; put back afterwards."""
    matplotlib = require("matplotlib", extra="plot", to="draw the figures of the paper")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def _spacing() -> Any:
    engines = require("matplotlib.layout_engine", extra="plot", to="draw the figures of the paper")
    return engines.ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.08, hspace=0.04, wspace=0.04)


def _columns(count: int) -> int:
    if not count:
        raise InvalidArgument("a figure needs at least one panel; got none")
    return {1: 1, 2: 2, 4: 2}.get(count, 3)


def _legends(canvas: Figure, found: list[tuple[Any, dict[str, Any]]]) -> None:
    """One legend where panels share their labels, else one below each panel; never over data."""
    named = [(ax, handles) for ax, handles in found if handles]
    shared: dict[str, Any] = {}
    for _, handles in named:
        shared = handles | shared
    agree = all(
        panels.look(handle) == panels.look(shared[label]) for _, handles in named for label, handle in handles.items()
    )
    if agree and all(2 * len(handles) >= len(shared) for _, handles in named) and len(shared) <= MOST_SHARED:
        if shared:
            across = _fitting(shared, canvas.get_figwidth())
            canvas.legend(list(shared.values()), list(shared), loc="outside lower center", ncols=across)
        return
    transforms = require("matplotlib.transforms", extra="plot", to="draw the figures of the paper")
    canvas.draw_without_rendering()  # how far the names of the ticks reach down is known only now
    for ax, handles in named:
        down = (ax.get_window_extent().y0 - ax.xaxis.get_tightbbox().y0) / canvas.dpi + 0.08
        below = ax.transAxes + transforms.ScaledTranslation(0, -down, canvas.dpi_scale_trans)
        across = _fitting(handles, canvas.get_figwidth() / ax.get_gridspec().ncols)
        ax.legend(
            list(handles.values()), list(handles), loc="upper center", bbox_to_anchor=(0.5, 0), ncols=across,
            bbox_transform=below, borderaxespad=0.0, fontsize=8,
        )  # fmt: skip


def _fitting(labels: dict[str, Any], wide: float) -> int:
    """Columns of a legend that fit into so many inches."""
    widths = [0.066 * len(label) + 0.55 for label in labels]
    if sum(widths) <= wide:
        return len(labels)
    rows = -(-len(labels) // max(1, int(wide / max(widths))))
    return -(-len(labels) // rows)

"""One row that is an image or a sequence, as a map of its slopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.optional import require
from .._core.types import Array
from .bars import LONGEST, LOWERS, RAISES, check_axes
from .names import drawn, percent, shortened, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result.explanation import Explanation

CHANNELS = (1, 2, 3, 4)
"""Lengths of an axis that is taken for channels: first as torch has them, else last."""

NOTHING = "#f7f7f7"
"""Colour of slopes of 0"""


def is_drawn_as_map(shape: tuple[int, ...]) -> bool:
    """Whether rows of a shape are images or sequences: two axes, or three of which one is that of channels."""
    return len(shape) == 2 or (len(shape) == 3 and _channel_axis(shape) is not None)


def heat_map(e: Explanation, ax: Axes | None = None, *, confidence: float = 0.95) -> Axes:
    """Standardised slopes of the first row of `e`, added up over channels: blue raises the output, red lowers it."""
    pyplot: Any = require("matplotlib.pyplot", extra="plot", to="draw an explanation")
    colors: Any = require("matplotlib.colors", extra="plot", to="draw an explanation")
    check_axes(ax)
    if ax is None:
        ax = pyplot.subplots(layout="constrained")[1]
    assert ax is not None
    field = summed_over_channels(e.standardised[0], e.input_shape)
    largest = float(np.nanmax(np.abs(field), initial=0.0)) or 1.0
    colours = colors.LinearSegmentedColormap.from_list("slopes", [LOWERS, NOTHING, RAISES])
    is_image = len(e.input_shape) == 3
    image = ax.imshow(
        field,
        cmap=colours,
        vmin=-largest,
        vmax=largest,
        interpolation="nearest",
        aspect="equal" if is_image else "auto",
    )
    bar = ax.figure.colorbar(image, ax=ax)
    channels = f"\nadded up over {e.input_shape[_channel_axis(e.input_shape) or 0]} channels" if is_image else ""
    bar.set_label(f"slope × neighbourhood standard deviation{channels}")
    ax.set_xlabel(_said(e, confidence), wrap=True)
    output = drawn(shortened(shown(e.row_outputs[0]), LONGEST))
    ax.set_title(f"{output}: f(x) = {e.prediction[0]:.3g}", loc="left")
    return ax


def summed_over_channels(slopes: Array, shape: tuple[int, ...]) -> Array:
    """Slopes (d,) as (height, width): what a step of one standard deviation in all channels at once would do.

    NaN where all channels were held fixed.
    """
    field = slopes.reshape(shape)
    if len(shape) == 2:
        return field
    axis = _channel_axis(shape)
    assert axis is not None
    is_held = np.isnan(field).all(axis=axis)
    return np.where(is_held, np.nan, np.nansum(field, axis=axis))


def _channel_axis(shape: tuple[int, ...]) -> int | None:
    return next((axis for axis in (0, 2) if shape[axis] in CHANNELS), None)


def _said(e: Explanation, confidence: float) -> str:
    """How it was made, and how much of it can be told from nothing."""
    if e.is_exact:
        return "exact, no sampling"
    lower, upper = e.interval(confidence)
    is_moved = np.isfinite(e.std)
    share = float(((lower > 0) | (upper < 0))[0, is_moved].mean())
    return (
        f"{e.method}, {int(e.n_samples[0]):,} draws\nthe sign of {share:.0%} of {int(is_moved.sum()):,} slopes is"
        f" certain\n({percent(confidence)} intervals)"
    )

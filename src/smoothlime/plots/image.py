"""One row that is an image or a sequence, as a map of its slopes, greyed where their sign is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from .._core.types import Array, Flags
from ..errors import InvalidArgument
from ..uncertainty.jackknife import standard_error, t_quantile
from .chart import LONGEST_OUTPUT
from .names import percent, shortened, shown
from .style import COLOUR_BAR, SMALL, caption, check_result, diverging, open_axes
from .text import how_it_went

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result.explanation import Explanation

CHANNELS = (1, 2, 3, 4)
"""Lengths of an axis that is taken for channels: first as torch has them, else last."""

VEIL = (0.62, 0.62, 0.62, 0.85)
"""Over slopes whose sign is uncertain"""


def is_drawn_as_map(shape: tuple[int, ...]) -> bool:
    """Whether rows of a shape are images or sequences: two axes, or three of which one is that of channels."""
    return len(shape) == 2 or (len(shape) == 3 and _channel_axis(shape) is not None)


def image(e: Explanation, row: int = 0, *, ax: Axes | None = None, confidence: float = 0.95) -> Axes:
    """Standardised slopes of a row that is a picture or a sequence: blue raises the output, vermilion lowers it.

    Added up over channels. Grey covers what has no certain sign; hatched pixels were held fixed.
    """
    check_result(e, "Explanation", "e")
    shape = e.input_shape
    if not is_drawn_as_map(shape):
        was = f"inputs of shape {shape}" if shape else "rows of a table"
        msg = f"image draws inputs of two axes, or of three with channels; these are {was}. Use bars"
        raise InvalidArgument(msg)
    one = e[row]
    field = summed_over_channels(one.standardised[0], shape)
    reach = half_width_of_sums(one, confidence)
    is_open = np.isfinite(field) & ~(np.abs(field) > reach)
    ax, is_new = open_axes(ax, 5.0)
    is_picture = len(shape) == 3
    aspect: Literal["equal", "auto"] = "equal" if is_picture or max(shape) <= 2 * min(shape) else "auto"
    drawn = diverging(ax, field, aspect=aspect)
    if is_open.any() and not e.is_exact:
        veil = np.zeros((*field.shape, 4))
        veil[is_open] = VEIL
        ax.imshow(veil, interpolation="nearest", aspect=aspect, zorder=2)
    bar = ax.figure.colorbar(drawn, ax=ax)
    bar.set_label("slope per neighbourhood\nstandard deviation", fontsize=SMALL)
    where = f", row {row % len(e)} of {len(e):,}" if len(e) > 1 else ""
    title = f"{shortened(shown(one.row_outputs[0]), LONGEST_OUTPUT)}{where}: {', '.join(how_it_went(one, 0))}"
    caption(ax, title, _below(one, field, is_open, confidence), is_new=is_new, bar=COLOUR_BAR)
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


def half_width_of_sums(one: Explanation, confidence: float) -> Array:
    """(height, width) half-widths of intervals for the sums over channels, of one row.

    Channels share their draws: what groups of them say is added up first. Without groups their errors are.
    """
    shape, std = one.input_shape, one.std
    error = one.standard_error[0] * std
    if len(shape) == 2:
        return summed_over_channels(one.half_width(1 - confidence)[0] * std, shape)
    added = summed_over_channels(error, shape)
    groups, free = one.groups, one.factor.free
    if groups is not None and not one.missing.any():
        said = np.full((groups.pseudo.shape[1], len(std)), np.nan)
        said[:, free] = groups.pseudo[0] * std[free]
        sums = np.array([summed_over_channels(each, shape).ravel() for each in said])
        floor = np.zeros(len(std))
        floor[free] = np.broadcast_to(groups.resolution, (1, len(free)))[0] * std[free]
        sizes = np.atleast_2d(groups.sizes)[:1]
        together = standard_error(sums[None], sizes)[0].reshape(added.shape)
        added = np.maximum(together, summed_over_channels(floor, shape))
    return np.asarray(t_quantile(one.degrees_of_freedom[0], (1 + confidence) / 2) * added)


def _channel_axis(shape: tuple[int, ...]) -> int | None:
    return next((axis for axis in (0, 2) if shape[axis] in CHANNELS), None)


def _below(one: Explanation, field: Array, is_open: Flags, confidence: float) -> list[str]:
    """How it was made, and how much of it can be told from nothing."""
    shape = one.input_shape
    channels = [f"added up over {shape[_channel_axis(shape) or 0]} channels"] if len(shape) == 3 else []
    if one.is_exact:
        return [*channels, "exact, no sampling"]
    moved = int(np.isfinite(field).sum())
    share = 1 - is_open.sum() / max(moved, 1)
    return [
        *channels,
        f"{one.method}, {int(one.n_samples[0]):,} draws",
        f"the sign of {share:.0%} of {moved:,} slopes is certain ({percent(confidence)} intervals); grey: uncertain",
    ]

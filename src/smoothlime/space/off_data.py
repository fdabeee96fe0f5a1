"""Whether draws stay with the data: shares that lie beyond what a column ever was. No draw is needed to know."""

from __future__ import annotations

import numpy as np

from .._core.types import Array
from .background import Background
from .row_scales import RowScales
from .scales import RankScale


def shares_off_data(background: Background | None, around: RowScales | None, x: Array, std: Array) -> Array:
    """(r, d) share of draws around rows x that lie beyond a column's smallest and largest value; std is (d,).

    NaN where nothing is drawn, or nothing known. Ranks never leave the data, but to a value that a row itself has.
    """
    share = np.full(x.shape, np.nan)
    if background is None:
        return share
    from scipy.special import ndtr

    for j, scale in enumerate(background.scales):
        ends, at = np.array([background.least[j], background.largest[j]]), x[:, j]
        if not (np.isfinite(std[j]) and np.isfinite(ends).all()):
            continue
        if isinstance(scale, RankScale):
            share[:, j] = np.where(np.isnan(at), np.nan, 0.0)
            continue
        if scale is not None:
            ends, at = scale.scores(ends), scale.scores(at)
        share[:, j] = ndtr((ends[0] - at) / std[j]) + ndtr((at - ends[1]) / std[j])
    for row, own in ({} if around is None else around.own).items():
        for j in own:
            sides = shares_aside(around, x[row], row, j, std[j], (background.least[j], background.largest[j]))
            share[row, j] = sum(sides)
    return share


def shares_aside(
    around: RowScales | None, x: Array, row: int, j: int, std: float, between: tuple[float, float]
) -> tuple[float, float]:
    """Shares of the draws of feature j around a row x (d,) that lie below and above a range of values."""
    from scipy.special import ndtr

    scale = None if around is None else around.of_row(row)[j]
    low, high = np.nextafter(between[0], -np.inf), between[1]
    if scale is None:
        return float(ndtr((low - x[j]) / std)), float(ndtr((x[j] - high) / std))
    u = scale.scores(x[j : j + 1])[0]
    below, above = scale.above(np.array([low, high]))
    return float(ndtr((below - u) / std)), float(ndtr((u - above) / std))

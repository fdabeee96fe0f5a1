"""What a background says against the rows and their draws: said once per call, before anything is drawn."""

from __future__ import annotations

import numpy as np

from .._core.types import Array
from .._core.warn import warn
from ..errors import DrawsOffData, OutsideBackground
from ..space.off_data import shares_off_data
from .problem import Problem

MOST_OFF = 0.25
"""Share of draws beyond what a column ever was, on average over the rows, from which on a warning says so."""

FEWEST = 8
"""Rows of a background that say where it ends: after n rows the next lies beyond with a chance of 2/(n + 1) itself."""

NAMED = 3
"""Columns, or values, that a warning names."""


def warn_against_data(problem: Problem) -> None:
    """Say which draws leave the data, and which rows lie outside of it already."""
    _warn_of_draws(problem)
    _warn_of_rows(problem)


def _warn_of_draws(problem: Problem) -> None:
    background = problem.neighbourhood.background
    if background is None or background.count < FEWEST:
        return
    std = np.full(problem.factor.d, np.nan)
    std[problem.factor.free] = problem.factor.std
    share = shares_off_data(background, problem.scales, problem.x, std)
    share[:, [word == "ranks" for word in background.words]] = np.nan  # rows that lie beyond are named below
    mean = _means(share)
    worst = np.argsort(-mean, kind="stable")[:NAMED]
    named = [f"{mean[j]:.0%} of those of {problem.feature_names[j]!r}" for j in worst if mean[j] > MOST_OFF]
    if named:
        more = int((mean > MOST_OFF).sum()) - len(named)
        listed = ", ".join(named) + (f", and of {more} more" if more else "")
        msg = (
            f"many draws lie beyond what the background ever was: {listed}. Slopes are then those of rows that cannot"
            " exist. Use scale='ranks', whose draws never leave the background, or a smaller sigma"
        )
        warn(msg, DrawsOffData)


def _means(share: Array) -> Array:
    """(d,) over the rows where anything is known; 0 where nothing is."""
    known = ~np.isnan(share)
    return np.asarray(np.where(known, share, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))


def _warn_of_rows(problem: Problem) -> None:
    if problem.scales is None or not problem.scales.own:
        return
    named = []
    for row, own in problem.scales.own.items():
        for j in own:
            low, high = problem.scales.ends(j)
            end = f"the largest is {high:g}" if problem.x[row, j] > high else f"the smallest is {low:g}"
            named.append(f"row {row} has {problem.x[row, j]:g} at {problem.feature_names[j]!r}, where {end}")
    more = f", and {len(named) - NAMED} more" if len(named) > NAMED else ""
    msg = (
        f"values outside of the background: {'; '.join(named[:NAMED])}{more}. Ranks know nothing out there: draws go"
        " from the background to the row's own value, and no further"
    )
    warn(msg, OutsideBackground)

"""Errors against draws: how fast they fall, and where the tolerance is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.optional import require
from .._core.types import Array
from ..errors import InvalidArgument, WrongType
from .names import count, percent, shortened, shown
from .style import BAND, RAISES, RULE, SMALL, caption, open_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result.explanation import Explanation

LONGEST = 32
"""Characters of a name in a picture"""


def convergence(found: Iterable[Explanation], *, ax: Axes | None = None) -> Axes:
    """Error bounds of the same rows, explained with more and more draws, against the draws, both in logarithms.

    `found`: one explanation for each number of draws, in any order. The line is the median over the rows, the band goes
    from the smallest to the largest error. Dashed: errors of independent draws, which fall with their square root;
    dotted: what `rtol` allows at the median row.

    >>> import smoothlime as sl
    >>> model = lambda a: a[:, 0] * a[:, 1]
    >>> ax = convergence(sl.explain(model, [1.0, 2.0], sigma=0.5, n_samples=n) for n in (256, 1_024))
    >>> len(ax.lines[0].get_xdata())
    2
    """
    several = _sorted(found)
    draws = np.array([float(np.median(e.n_samples)) for e in several])
    errors = np.array([e.radius for e in several])
    ax, is_new = open_axes(ax, 4.2, 6.0)
    middle = np.median(errors, axis=1)
    ax.plot(
        draws, middle, "-o", color=RAISES, markersize=4, label="error bound" if errors.shape[1] == 1 else "median row"
    )
    if errors.shape[1] > 1:
        ax.fill_between(
            draws, errors.min(axis=1), errors.max(axis=1), color=RAISES, alpha=BAND, linewidth=0, label="all rows"
        )
    if len(draws) > 1 and np.isfinite(middle[0]) and middle[0] > 0:
        ax.plot(draws, middle[0] * np.sqrt(draws[0] / draws), "--", color=RULE, linewidth=1, label="1/√draws")
    allowed = _allowed(several[-1])
    if allowed is not None:
        ax.axhline(allowed, color=RULE, linestyle=":", linewidth=1.4, label="tolerance")
    _scales(ax, draws, errors)
    ax.set_ylabel("error bound (L2, standardised)", fontsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=SMALL)
    last = several[-1]
    rows = "" if len(last) == 1 else f", {count(len(last), 'row')}"
    title = f"{shortened(shown(last.output_name), LONGEST)}{rows}: error against draws"
    design = "" if last.design == last.method else f", {last.design} draws"
    below = ["draws per row", f"{last.method}{design}; bounds of {percent(last.provenance.confidence)} confidence"]
    caption(ax, title, below, is_new=is_new)
    return ax


def _sorted(found: Any) -> list[Explanation]:
    """Explanations of the same rows, fewest draws first."""
    from ..result.explanation import Explanation

    if isinstance(found, Explanation) or not isinstance(found, Iterable):
        msg = "convergence draws several explanations of the same rows, one for each number of draws: give a list"
        raise WrongType(msg, argument="found")
    several = list(found)
    if not several or not all(isinstance(each, Explanation) for each in several):
        msg = "convergence draws several explanations of the same rows, one for each number of draws: give a list"
        raise WrongType(msg, argument="found")
    if len({len(each) for each in several}) > 1:
        msg = f"all explanations must be of the same rows; they have {', '.join(str(len(each)) for each in several)}"
        raise InvalidArgument(msg, argument="found")
    if any(each.is_exact for each in several):
        msg = "exact explanations were not drawn and have no errors that fall with draws; use method='clime'"
        raise InvalidArgument(msg, argument="found")
    return sorted(several, key=lambda each: float(np.median(each.n_samples)))


def _allowed(e: Explanation) -> float | None:
    """Error that the tolerance allows at the median row, where it is known."""
    told = e.provenance
    if told.rtol is None:
        return None
    size = float(np.median(np.sqrt(np.nansum(e.standardised**2, axis=1))))
    allowed = max(told.rtol * size, told.atol or 0.0)
    return allowed if allowed > 0 else None


def _scales(ax: Any, draws: Array, errors: Sequence[float] | Array) -> None:
    """Logarithms where all numbers have them."""
    ax.set_xscale("log")
    ax.set_xticks(draws, [f"{n:,.0f}" for n in draws], fontsize=SMALL)
    ax.minorticks_off()
    positive = np.asarray(errors)
    if (positive[np.isfinite(positive)] > 0).all() and np.isfinite(positive).any():
        ticker: Any = require("matplotlib.ticker", extra="plot", to="draw pictures")
        ax.set_yscale("log")
        is_wide = np.nanmax(positive[np.isfinite(positive)]) > 100 * positive.min()
        ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0,) if is_wide else (1.0, 2.0, 5.0), numticks=12))
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.yaxis.set_minor_locator(ticker.NullLocator())

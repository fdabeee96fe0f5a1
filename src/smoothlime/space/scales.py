"""Scales: what a normal step in a feature is taken in. T takes scores u to values a; the model is explained as f∘T.

| scale | T | a step is |
|---|---|---|
| linear | identity (no `Scale` at all) | a unit |
| log | exp(u) − c | an e-fold |
| ranks | the data's quantiles at Φ(u) | a normal score |

T is monotone, feature by feature, and constant or a smooth curve between its breaks. So its means over a normal u have
closed forms, and a split of a tree stays a split.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from math import pi, sqrt
from typing import Literal, Protocol

import numpy as np

from .._core.types import Array, Flags, Indices
from ..errors import InvalidArgument

KNOTS = 1_024
"""Most knots of a column; a value with a share of its own has two."""

OWN_KNOTS = 340
"""Most values with a share of their own, in columns that are no steps."""

CELLS, MOST_IN_CELL = 4_096, 6
"""Cells in which breaks are looked up, and the most breaks in one of them for that to be quicker than halving."""

FEW_VALUES = 64
"""Columns of at most so many values have steps, whatever the values are."""

WHOLE = 2.0**53
"""Beyond which float64 does not hold every whole number."""

LONGEST = 2.0**64
"""Beyond which there are no codes: no type of whole numbers goes further."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Of T(u + σz), z standard normal: arrays of one shape."""

    mean: Array
    slope: Array
    """Derivative of the mean in u"""
    variance: Array
    error: Array
    """What σ·slope is off by, at most, as numbers are rounded"""
    bend: Array
    """Second derivative of the mean in u"""


UNIT = 2.0**-53
"""What a number is rounded by, at most, as a share of it."""


class Scale(Protocol):
    """A monotone curve T from scores to values."""

    @property
    def word(self) -> Literal["log", "ranks"]:
        """What `scale=` calls it."""
        ...

    @property
    def is_continuous(self) -> bool:
        """Whether T has no jumps, so that gradients go through it."""
        ...

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value that it was made of."""
        ...

    def values(self, scores: Array) -> Array:
        """T(u)."""
        ...

    def slopes(self, scores: Array) -> Array:
        """T′(u), where T is continuous."""
        ...

    def scores(self, values: Array) -> Array:
        """u with T(u) = v; NaN for NaN."""
        ...

    def above(self, values: Array) -> Array:
        """sup{u: T(u) <= c}: where a split at c lies; ±∞ where all of T is on one side."""
        ...

    def moments(self, scores: Array, sigma: float) -> Moments:
        """Mean, its slope and bend, and variance of T over N(u, σ²)."""
        ...

    def reached(self, values: Array) -> Flags:
        """Whether T takes these values."""
        ...

    def holding(self, value: float) -> Scale:
        """The scale for a row with this value: the same, but where the value lies beyond all that was seen."""
        ...


@dataclass(frozen=True, slots=True)
class LogScale:
    """T(u) = exp(u) − shift."""

    shift: float = 0.0
    word: Literal["log"] = dataclasses.field(default="log", init=False)
    is_continuous: bool = dataclasses.field(default=True, init=False)

    @property
    def ends(self) -> tuple[float, float]:
        """It has none."""
        return -np.inf, np.inf

    def values(self, scores: Array) -> Array:
        """T(u)."""
        with np.errstate(over="ignore"):  # of draws further out than numbers go; what the model says there is looked at
            return np.exp(scores) - self.shift

    def slopes(self, scores: Array) -> Array:
        """T′(u)."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(scores))

    def scores(self, values: Array) -> Array:
        """log(v + shift); NaN for values that it does not take."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(values + self.shift)
        return np.where(np.isinf(found) & (found < 0), np.nan, found)

    def above(self, values: Array) -> Array:
        """Where a split lies."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(values + self.shift, 0.0)))

    def moments(self, scores: Array, sigma: float) -> Moments:
        """Of a log-normal law."""
        grown = np.exp(scores + sigma**2 / 2)
        off = UNIT * (8 + np.abs(scores) + sigma**2) * sigma * grown
        return Moments(grown - self.shift, grown, grown**2 * np.expm1(sigma**2), off, grown)

    def reached(self, values: Array) -> Flags:
        """All but what lies at or below −shift."""
        return np.asarray(np.isnan(values) | (values + self.shift > 0))

    def holding(self, value: float) -> LogScale:
        """The same: it has no ends."""
        return self


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """Lines between m breaks, and before the first and after the last: T(u) = start + slope·(u − origin)."""

    breaks: Array
    """(m,) increasing"""
    start: Array
    """(m + 1,) the value just after −∞ and each break"""
    slope: Array
    origin: Array
    jump: Array
    """(m,) by how much T rises at each break"""


@dataclass(frozen=True, eq=False)
class RankScale:
    """T(u): the quantile of the data at Φ(u), so that T never leaves what was seen.

    Value k has the scores from `lower[k]` to `upper[k]`, and `middle[k]` is its own. In a column of steps these
    intervals meet; in others T is a line in u from one to the next, and a value without a share of its own is a point.
    """

    known: Array
    """(m,) values, increasing"""
    middle: Array
    lower: Array
    upper: Array
    is_step: bool
    count: int
    """Rows of data behind it"""

    @property
    def word(self) -> Literal["ranks"]:
        """What `scale=` calls it."""
        return "ranks"

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value that was seen."""
        return float(self.known[0]), float(self.known[-1])

    @property
    def is_continuous(self) -> bool:
        """Whether T has no jumps: no steps, and no two values next to each other that have shares of their own."""
        return not self._curve.jump.any()

    @cached_property
    def _curve(self) -> _Curve:
        """T as lines between its breaks."""
        u, v = np.stack([self.lower, self.upper], axis=1).ravel(), np.repeat(self.known, 2)
        u, v = u[np.isfinite(u)], v[np.isfinite(u)]
        is_last = np.diff(u, append=np.inf) > 0
        breaks, before, after = u[is_last], v[np.diff(u, prepend=-np.inf) > 0], v[is_last]
        slope = np.concatenate([[0.0], (before[1:] - after[:-1]) / np.diff(breaks), [0.0]])
        return _Curve(
            breaks, np.concatenate([before[:1], after]), slope, np.concatenate([[0.0], breaks]), after - before
        )

    @cached_property
    def _guide(self) -> tuple[Indices, float, int]:
        """(CELLS,) breaks below each of as many cells between the first and the last; cells per score; most in one."""
        breaks = self._curve.breaks
        width = (breaks[-1] - breaks[0]) / CELLS
        margin = 1e-9 * width  # a score may be taken for the next cell's by rounding
        ends = breaks[0] + width * np.arange(CELLS + 1)
        first = np.searchsorted(breaks, ends[:-1] - margin, side="right")
        return first, 1 / width, int((np.searchsorted(breaks, ends[1:] + margin, side="right") - first).max())

    def _pieces(self, scores: Array) -> Indices:
        """Which line each score lies on: found by cells where that is quicker than by halving."""
        breaks = self._curve.breaks
        if np.size(scores) < CELLS or len(breaks) < 2 or (guide := self._guide)[2] > MOST_IN_CELL:
            return np.asarray(np.searchsorted(breaks, scores, side="right"))
        first, per_score, most = guide
        cell = np.fmax(np.fmin((scores - breaks[0]) * per_score, CELLS - 1), 0)  # of what is missing any will do
        at, ends = first[cell.astype(np.intp)], np.append(breaks, np.nan)
        for _ in range(most):
            at += scores >= ends[at]
        return at

    def values(self, scores: Array) -> Array:
        """T(u)."""
        curve, at = self._curve, self._pieces(scores)
        found = curve.start[at] + curve.slope[at] * (scores - curve.origin[at])
        return np.clip(found, self.known[0], self.known[-1])

    def slopes(self, scores: Array) -> Array:
        """T′(u); 0 in flat parts and beyond the ends."""
        return np.where(np.isnan(scores), np.nan, self._curve.slope[self._pieces(scores)])

    def scores(self, values: Array) -> Array:
        """u of values: their own where they are known, else on the line between those around them.

        In a column of steps an unknown value lies between the scores of its neighbours.
        """
        at = np.minimum(np.searchsorted(self.known, values), len(self.known) - 1)
        found = np.where(self.known[at] == values, self.middle[at], np.nan)
        other = np.flatnonzero((self.known[at] != values) & ~np.isnan(values))
        if len(other):
            found.ravel()[other] = self.above(np.asarray(values).ravel()[other])
        if self.is_step or not len(other):
            return found
        return self._nudged(found, values)

    def _nudged(self, scores: Array, values: Array) -> Array:
        """The score next to each, if any, that T takes closer to its value: the last digits are lost on the way."""
        off = np.abs(self.values(scores) - values)
        for direction in (-np.inf, np.inf):
            tried = np.nextafter(scores, direction)
            is_closer = np.abs(self.values(tried) - values) < off
            scores = np.where(is_closer, tried, scores)
            off = np.abs(self.values(scores) - values)
        return scores

    def above(self, values: Array) -> Array:
        """sup{u: T(u) <= c}."""
        last = len(self.known) - 1
        below = np.searchsorted(self.known, values, side="right") - 1  # the largest known value <= c, −1 for none
        at = np.clip(below, 0, last)
        found = self.upper[at]
        if not self.is_step and last:
            after = np.minimum(at + 1, last)
            with np.errstate(invalid="ignore", divide="ignore"):
                share = (values - self.known[at]) / (self.known[after] - self.known[at])
                found = np.where(after > at, found + share * (self.lower[after] - found), found)
        return np.where(below < 0, -np.inf, np.where(below == last, np.inf, found))

    def moments(self, scores: Array, sigma: float) -> Moments:
        """Sums over the pieces, each a line times a normal density, and over the jumps."""
        from scipy.special import ndtr

        scores = np.asarray(scores, dtype=np.float64)
        curve, centre = self._curve, self.values(scores)[..., None]
        t = (curve.breaks - scores[..., None]) / sigma
        ends = np.concatenate([np.full((*scores.shape, 1), -np.inf), t, np.full((*scores.shape, 1), np.inf)], axis=-1)
        finite = np.where(np.isfinite(ends), ends, 0.0)
        density = np.where(np.isfinite(ends), np.exp(-(finite**2) / 2) / sqrt(2 * pi), 0.0)
        # from the nearer end, where differences of probabilities keep their digits
        p = np.where(ends[..., :-1] > 0, -np.diff(ndtr(-ends)), np.diff(ndtr(ends)))
        first, second = -np.diff(density), p - np.diff(finite * density)
        a = curve.start + curve.slope * (scores[..., None] - curve.origin) - centre
        b = curve.slope * sigma
        mean = (a * p + b * first).sum(axis=-1)
        square = (a**2 * p + 2 * a * b * first + b**2 * second).sum(axis=-1)
        steepness = (curve.slope * p).sum(axis=-1) + (curve.jump * density[..., 1:-1]).sum(axis=-1) / sigma
        # ends t are off by 2·UNIT·(|break| + |u|) / σ, which moves a share by 0.4 of that and σ·density by 0.25
        shaken = 2 * UNIT * (np.abs(curve.breaks).max() + np.abs(scores)) / sigma
        pieces, jumps = np.abs(curve.slope).sum() * sigma, curve.jump.sum()
        error = (4 * UNIT + 0.8 * shaken) * pieces + (4 * UNIT + 0.25 * shaken) * jumps
        bend = (curve.slope * first).sum(axis=-1) / sigma
        bend += (curve.jump * finite[..., 1:-1] * density[..., 1:-1]).sum(axis=-1) / sigma**2
        return Moments(centre[..., 0] + mean, steepness, np.maximum(square - mean**2, 0.0), error, bend)

    def reached(self, values: Array) -> Flags:
        """Whether T takes these values: those that were seen, and what lies on a line between two of them."""
        last = len(self.known) - 1
        below = np.searchsorted(self.known, values, side="right") - 1
        at = np.clip(below, 0, last)
        is_between = (below >= 0) & (below < last) & (self.lower[np.minimum(at + 1, last)] > self.upper[at])
        return np.asarray(np.isnan(values) | (self.known[at] == values) | is_between)

    def holding(self, value: float) -> RankScale:
        """The same where the value lies within what was seen; else as if the data had one row more, with the value."""
        n, is_above = self.count, value > self.known[-1]
        if not is_above and not value < self.known[0]:
            return self
        from scipy.special import ndtr, ndtri

        def moved(scores: Array) -> Array:
            return np.asarray(ndtri((ndtr(scores) * n + (not is_above)) / (n + 1)))

        middle, lower, upper = (moved(each) for each in (self.middle, self.lower, self.upper))
        edge, own = (float(ndtri(p / (n + 1))) for p in ((n, n + 0.5) if is_above else (1.0, 0.5)))
        if not self.is_step:
            ends = own, own
        elif is_above:
            ends, upper[-1] = (edge, np.inf), edge
        else:
            ends, lower[0] = (-np.inf, edge), edge
        place = len(self.known) if is_above else 0
        return RankScale(
            known=np.insert(self.known, place, value),
            middle=np.insert(middle, place, own),
            lower=np.insert(lower, place, ends[0]),
            upper=np.insert(upper, place, ends[1]),
            is_step=self.is_step,
            count=n + 1,
        )


def rank_scale(column: Array, name: object = "") -> RankScale:
    """The scale of ranks of a column (n,), whose missing values are left out; it must hold two different ones."""
    from scipy.special import ndtri

    seen = column[~np.isnan(column)]
    known, counts = np.unique(seen, return_counts=True)
    if WHOLE < np.abs(known[[0, -1]]).max() <= LONGEST and (known == np.rint(known)).all():
        msg = (
            f"column {name!r} goes up to {np.abs(known).max():.17g}, and whole numbers beyond 2**53 cannot be told"
            " apart as floating-point numbers. If these are codes, list it in fixed; if a measurement, divide it by a"
            " constant"
        )
        raise InvalidArgument(msg, argument="scale")
    n, below = len(seen), np.cumsum(counts) - counts
    is_whole = len(known) <= KNOTS and bool((known == np.rint(known)).all())
    is_step = is_whole or len(known) <= FEW_VALUES
    middle = ndtri((below + counts / 2) / n)
    if is_step:
        return RankScale(known, middle, ndtri(below / n), ndtri((below + counts) / n), True, n)
    has_share = (counts > n / KNOTS) & (counts > 1)  # one row shares its value with none, in short tables too
    if has_share.sum() > OWN_KNOTS:
        has_share = counts >= np.partition(counts, -OWN_KNOTS)[-OWN_KNOTS]
        has_share &= np.cumsum(has_share) <= OWN_KNOTS
    lower = np.where(has_share, ndtri(below / n), middle)
    upper = np.where(has_share, ndtri((below + counts) / n), middle)
    kept = _knots(has_share, (below + counts / 2) / n)
    return RankScale(known[kept], middle[kept], lower[kept], upper[kept], False, n)


def _knots(has_share: Flags, p: Array) -> Flags:
    """Which of the values become knots: the ends, those with a share of their own, and others evenly by probability."""
    room = KNOTS - 2 * int(has_share.sum()) - 2
    kept = has_share.copy()
    kept[[0, -1]] = True
    others = np.flatnonzero(~kept)
    if len(others) > room:
        wanted = np.linspace(p[others[0]], p[others[-1]], room)
        others = others[np.minimum(np.searchsorted(p[others], wanted), len(others) - 1)]
    kept[others] = True
    return np.asarray(kept)


def log_scale(column: Array, name: object = "") -> LogScale:
    """The scale of logarithms for a column (n,): shifted by half its smallest positive value where it has zeros."""
    seen = column[~np.isnan(column)]
    if len(seen) and seen.min() < 0:
        msg = (
            f"scale='log' is for numbers >= 0, and column {name!r} goes down to {seen.min():g}."
            " Use 'ranks' or 'linear' for it: scale={column: kind}"
        )
        raise InvalidArgument(msg, argument="scale")
    positive = seen[seen > 0]
    if not len(positive):
        msg = (
            f"scale='log' needs a positive value, and column {name!r} has none."
            " Use 'linear' for it, or list it in fixed"
        )
        raise InvalidArgument(msg, argument="scale")
    return LogScale(float(positive.min()) / 2 if len(positive) < len(seen) else 0.0)

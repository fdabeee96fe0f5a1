"""Effects: slopes, contributions or switches averaged over rows, with the errors of drawing and of sampling the rows.

Rows share their draws by default, so that errors of different rows go together. A group of draws says something of
each row, hence also of their mean: the jackknife over groups sees all of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import pi, sqrt
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._core.types import Array, Flags, Indices
from .._core.validate import as_float_array, check_choice, check_fraction, is_iterable
from ..errors import InvalidArgument
from ..space.categories import MISSING, plain
from ..uncertainty.jackknife import standard_error, t_quantile
from .gaps import patterns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..uncertainty.groups import Groups

MOST_GROUPS = 100
"""Groups of rows; more are numbers that nobody meant as groups."""


@dataclass(frozen=True, slots=True, eq=False)
class Averaged:
    """What is averaged over r rows: d numbers each, NaN where a row has none."""

    what: str
    """What one of them is called"""
    values: Array
    standard_error: Array
    degrees_of_freedom: Array
    """(r,)"""
    is_exact: bool
    groups: Groups | None
    """What groups of draws say of the numbers at `free`; None where nobody knows"""
    free: Indices
    n_samples: Indices
    """(r,)"""
    missing: Flags
    """(r, d) what a row has no number for, so that its draws are others"""
    std: Array
    """(d,) to compare numbers by"""
    names: tuple[str, ...]
    output_name: str
    scales: tuple[str, ...]
    values_of: Callable[[str], Sequence[Any]]
    """What a column holds, row by row"""

    @classmethod
    def of_slopes(cls, e: Any) -> Averaged:
        """Slopes of an explanation, per unit of each feature."""
        return cls(
            "slope", e.values, e.standard_error, e.degrees_of_freedom, e.is_exact, e.groups, e.factor.free, e.n_samples,
            e.missing, e.std, e.feature_names, e.output_name, e.neighbourhood.scales, lambda name: _values_of(e, name),
        )  # fmt: skip

    def __len__(self) -> int:
        """Count of rows."""
        return len(self.values)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Grouping:
    """Which rows are in which group, with their weights."""

    averaged: Averaged
    weight: Array
    """(r,)"""
    labels: tuple[Any, ...]
    """(r,)"""

    def members(self, label: Any) -> Array:
        """Weights (r,) of the rows of a group, 0 for all others."""
        return np.array([each == label for each in self.labels]) * self.weight

    def difference(self, first: Effects, one: Any, second: Effects, other: Any) -> Effects:
        """One group less another: draws that both share are subtracted group of draws by group of draws.

        Rows of two groups are two samples, so what sampling them adds is added up.
        """
        e = self.averaged
        share = _shares(e, self.members(one))[0] - _shares(e, self.members(other))[0]
        drawing, freedom = _drawing_error(e, share)
        values = first.values - second.values
        drawing = np.where(np.isnan(values), np.nan, drawing)
        sampling = sum(_of_sampling(each) for each in (first, second))
        unknown = np.full(len(values), np.nan)
        return dataclasses.replace(
            first,
            values=values,
            standard_error=np.sqrt(sampling + drawing**2),
            drawing_error=drawing,
            absolute=np.abs(values),
            absolute_bias=unknown,
            positive=unknown,
            degrees_of_freedom=np.minimum(freedom, np.minimum(first.degrees_of_freedom, second.degrees_of_freedom)),
            count=first.count + second.count,
            output_name=f"{first.output_name}, {one} − {other}",
        )


@dataclass(frozen=True, eq=False, repr=False)
class Effects:
    """What features do over many rows: means of slopes, (d,) each; NaN for features without a slope.

    Comes from `effects` of an explanation, of contributions or switches; where `what` is no slope, read that for slope
    below, and numbers are in units of the output. `rows="these"`: the mean over just these rows, whose error is that of
    drawing. `rows="sample"`: the mean over the population that the rows were sampled from, whose error has both parts.
    """

    values: Array
    """(d,) mean slope per unit"""
    standard_error: Array
    """(d,) of it, of drawing and, for a sample, of rows"""
    drawing_error: Array
    """(d,) part that more draws would take away"""
    absolute: Array
    """(d,) mean |slope|: how much a feature matters, whichever its sign. Errors of slopes make it larger"""
    absolute_bias: Array
    """(d,) by how much, at most about: mean of E|N(w, SE²)| − |w|"""
    positive: Array
    """(d,) share of rows with a slope above 0"""
    degrees_of_freedom: Array
    """(d,) behind the standard errors"""
    count: Array
    """(d,) rows with a slope"""
    std: Array
    """(d,) √Σ_jj, to compare features by"""
    feature_names: tuple[str, ...]
    output_name: str
    rows: Literal["these", "sample"]
    what: str = "slope"
    """What was averaged: a "slope", a "contribution", or the effect of a "switch" """
    scales: tuple[str, ...] = ()
    """What slopes are per, for each feature: "linear" for its unit, "log", "ranks"; () where all are linear"""
    groups: Mapping[Any, Effects] = field(default_factory=dict)
    """Label → the same over the rows of one group; empty where `by` was not given"""
    grouping: Grouping | None = None
    """The rows behind groups, for their differences"""

    @property
    def standardised(self) -> Array:
        """(d,) mean slopes times √Σ_jj: per neighbourhood standard deviation."""
        return self.values * self.std

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends (d,) of intervals for the mean slopes."""
        miss = 1 - check_fraction(confidence, "confidence")
        reach = t_quantile(self.degrees_of_freedom, 1 - miss / 2) * self.standard_error
        return self.values - reach, self.values + reach

    def difference(self, one: Any, other: Any) -> Effects:
        """The mean slopes of one group less those of another. Where rows share draws its error is that of the pair."""
        for label in (one, other):
            if label not in self.groups:
                msg = f"there is no group {label!r}; the groups are {list(self.groups)}"
                raise InvalidArgument(msg)
        if one == other:
            msg = f"give two different groups; got {one!r} twice"
            raise InvalidArgument(msg)
        assert self.grouping is not None  # there are groups
        return self.grouping.difference(self.groups[one], one, self.groups[other], other)

    def to_frame(self, *, library: str | None = None, confidence: float = 0.95) -> Any:
        """Data frame with a line per feature, and per group where there are any; pandas unless `library` says else."""
        from ..io.frames import frame_of_effects

        return frame_of_effects(self, library=library, confidence=confidence)

    def order(self) -> list[int]:
        """Features with a slope, largest mean |slope| first, standardised."""
        size = np.nan_to_num(self.absolute * self.std, nan=-1.0)
        return [int(j) for j in np.argsort(-size, kind="stable") if size[j] >= 0]

    def plot(self, *, ax: Axes | None = None, confidence: float = 0.95, most: int = 12) -> Axes:
        """Mean slopes as bars with both errors, groups side by side."""
        from ..plots.effects import effects

        return effects(self, ax=ax, confidence=confidence, most=most)

    def __str__(self) -> str:
        """A line per feature with error bars, largest first."""
        from ..plots.text import effects_as_text

        return effects_as_text(self)

    def _repr_html_(self) -> str:
        """Notebook form: a small picture and a table."""
        from ..plots.notebook import effects

        return effects(self)

    def __repr__(self) -> str:
        """One line: output, rows, features."""
        rows = f"{int(np.max(self.count, initial=0))} rows"
        grouped = f", {len(self.groups)} groups" if self.groups else ""
        return f"<Effects on {self.output_name!r}: {len(self.feature_names)} features over {rows}{grouped}>"


def effects(e: Averaged, weights: Any = None, by: Any = None, rows: Literal["these", "sample"] = "these") -> Effects:
    """Means over rows, and over groups of rows."""
    check_choice(rows, "rows", ("these", "sample"))
    weight = _weights(weights, len(e))
    labels = None if by is None else _labels(e, by)
    whole = _mean(e, weight, rows)
    if labels is None:
        return whole
    grouping = Grouping(e, weight, labels)
    groups = {}
    for label in dict.fromkeys(labels):
        members = grouping.members(label)
        if not members.any():
            msg = f"all rows of group {label!r} have a weight of 0; leave them out, or give them one"
            raise InvalidArgument(msg, argument="weights")
        groups[label] = _mean(e, members, rows)
    return dataclasses.replace(whole, groups=groups, grouping=grouping)


def _mean(e: Averaged, weight: Array, rows: Literal["these", "sample"]) -> Effects:
    """Means with weights (r,); a feature counts the rows in which it has a slope."""
    share, has_slope = _shares(e, weight)
    slopes, error = np.where(has_slope, e.values, 0.0), _errors(e, has_slope)
    count = has_slope.sum(axis=0)
    none = np.where(count > 0, 0.0, np.nan)  # NaN where nothing is known
    mean = np.einsum("rd,rd->d", share, slopes)
    drawing, freedom = _drawing_error(e, share)
    sampling = np.zeros(len(mean))
    if rows == "sample":
        sampling = _sampling_variance(slopes, error, share, mean, drawing, count)
        freedom = np.minimum(freedom, np.maximum(count - 1.0, 1.0))
    size = np.abs(slopes)
    absolute = np.einsum("rd,rd->d", share, size)
    folded = np.einsum("rd,rd->d", share, _folded_mean(size, error))
    return Effects(
        values=mean + none,
        standard_error=np.sqrt(sampling + drawing**2) + none,
        drawing_error=drawing + none,
        absolute=absolute + none,
        absolute_bias=folded - absolute + none,
        positive=np.einsum("rd,rd->d", share, (slopes > 0).astype(np.float64)) + none,
        degrees_of_freedom=freedom,
        count=count,
        std=e.std,
        feature_names=e.names,
        output_name=e.output_name,
        rows=rows,
        what=e.what,
        scales=e.scales,
    )


def _shares(e: Averaged, weight: Array) -> tuple[Array, Flags]:
    """Weights (r, d) that add up to 1 over the rows in which a feature has a slope, and which rows these are."""
    has_slope = np.isfinite(e.values) & (weight > 0)[:, None]
    share = weight[:, None] * has_slope
    total = share.sum(axis=0)
    return np.divide(share, total, out=np.zeros_like(share), where=total > 0), has_slope


def _drawing_error(e: Averaged, share: Array) -> tuple[Array, Array]:
    """Standard errors (d,) of sums of slopes with weights (r, d), for the draws that were made; degrees of freedom.

    Rows that stopped at another number of draws, or miss other features, hold other points, which may or may not go
    together with these: what they add is added in absolute value, which is right either way. So it is where nothing is
    known of the groups.
    """
    d = share.shape[1]
    error = _errors(e, share != 0)
    least = np.full(d, max(1.0, float(np.min(e.degrees_of_freedom))))
    if e.is_exact:
        return np.zeros(d), np.full(d, np.inf)
    groups = e.groups
    if groups is None:
        return np.einsum("rd,rd->d", np.abs(share), error), least
    if groups.row_keys is not None and len(np.unique(groups.row_keys)) == len(groups.row_keys):
        return np.sqrt(np.einsum("rd,rd->d", share**2, error**2)), least  # each row has draws of its own
    free = e.free
    total = np.zeros(d)
    for there in _drawn_alike(e):
        weighed = share[:, free] * there[:, None]
        said = np.einsum("rf,rgf->gf", weighed, groups.pseudo)[None]
        sizes = groups.sizes[np.flatnonzero(there)[:1]]
        floor = np.einsum("rf,rf->f", np.abs(weighed), np.broadcast_to(groups.resolution, weighed.shape))
        total[free] += np.maximum(standard_error(said, sizes)[0], floor)
    return total, least


def _errors(e: Averaged, counted: Flags) -> Array:
    """Standard errors (r, d) of numbers that are counted, endless where they are unknown; 0 for all others."""
    return np.where(counted, np.where(np.isnan(e.standard_error), np.inf, e.standard_error), 0.0)


def _drawn_alike(e: Averaged) -> list[Flags]:
    """Rows (r,) each time that share their points: as many draws, of the same features."""
    return [
        (e.n_samples == n) & np.isin(np.arange(len(e)), rows)
        for _, rows in patterns(e.missing)
        for n in np.unique(e.n_samples[rows])
    ]


def _sampling_variance(slopes: Array, error: Array, share: Array, mean: Array, drawing: Array, count: Array) -> Array:
    """(d,) squared error of a mean over sampled rows: how slopes differ, less what their drawing errors do to that."""
    correction = count / np.maximum(count - 1.0, 1.0)
    squares = share**2
    spread = np.einsum("rd,rd->d", squares, (slopes - mean) ** 2)
    is_known = np.isfinite(error) & np.isfinite(drawing)  # endless errors take nothing off
    noise = np.einsum("rd,rd->d", squares, np.where(is_known, error, 0.0) ** 2 - np.where(is_known, drawing, 0.0) ** 2)
    return np.where(count > 1, correction * np.maximum(spread - noise, 0.0), np.inf)


def _of_sampling(found: Effects) -> Array:
    """(d,) what sampling the rows adds to the squared error; 0 beside an endless error of drawing."""
    is_endless = np.isinf(found.drawing_error)
    drawing = np.where(is_endless, 0.0, found.drawing_error)
    return np.where(is_endless, 0.0, found.standard_error) ** 2 - drawing**2


def _folded_mean(size: Array, error: Array) -> Array:
    """E|N(m, s²)| for sizes m = |ŵ| and errors s."""
    from scipy.special import ndtr

    t = np.divide(size, error, out=np.full_like(size, np.inf), where=error > 0)
    with np.errstate(over="ignore"):
        density = np.exp(-(np.minimum(t, 1e100) ** 2) / 2)
    return np.where(error > 0, error * sqrt(2 / pi) * density + size * (1 - 2 * ndtr(-t)), size)


def _weights(weights: Any, r: int) -> Array:
    """(r,) weights that are no less than 0."""
    if weights is None:
        return np.ones(r)
    given = as_float_array(weights, "weights")
    if given.shape != (r,):
        msg = f"weights must have one number for each of the {r} rows; got shape {given.shape}"
        raise InvalidArgument(msg, argument="weights")
    if not (np.isfinite(given).all() and (given >= 0).all() and given.any()):
        msg = "weights must be finite numbers >= 0, and not all 0"
        raise InvalidArgument(msg, argument="weights")
    return given / given.max()


def _labels(e: Averaged, by: Any) -> tuple[Any, ...]:
    """A label for each row: given as such, or the values of a feature."""
    labels: Sequence[Any]
    if isinstance(by, str):
        labels = e.values_of(by)
    elif is_iterable(by):
        labels = [MISSING if plain(each) is None else each for each in (by.tolist() if hasattr(by, "tolist") else by)]
    else:
        msg = f"by must be the name of a feature, or a label for each row; got {by!r}"
        raise InvalidArgument(msg, argument="by")
    if len(labels) != len(e):
        msg = f"by must have one label for each of the {len(e)} rows; got {len(labels)}"
        raise InvalidArgument(msg, argument="by")
    if len(set(labels)) > MOST_GROUPS:
        msg = (
            f"by makes {len(set(labels))} groups, and at most {MOST_GROUPS} are compared. Cut the values into"
            " ranges first, and give a label for each row"
        )
        raise InvalidArgument(msg, argument="by")
    return tuple(labels)


def _values_of(e: Any, name: str) -> list[Any]:
    levels = _levels_of(e, name)
    if levels is not None:
        return levels
    return numbers_of(e.x, e.feature_names, name)


def numbers_of(x: Array, names: tuple[str, ...], name: str) -> list[Any]:
    """What a feature of rows x (r, d) is, whole numbers as such."""
    if name not in names:
        msg = f"by names {name!r}, which is not a feature; the features are {', '.join(names)}"
        raise InvalidArgument(msg, argument="by")
    column = x[:, names.index(name)]
    if np.isnan(column).any():
        msg = (
            f"by names {name!r}, whose values are no numbers, or missing, in {int(np.isnan(column).sum())} rows."
            f" Give a label for each row instead: by=table[{name!r}]"
        )
        raise InvalidArgument(msg, argument="by")
    return [int(each) if each == int(each) else each for each in column.tolist()]


def _levels_of(e: Any, name: str) -> list[Any] | None:
    """The level of each row, where the explanation has switches of that category: `x` holds numbers only."""
    if e.switches is None:
        return None
    for c, column in enumerate(e.switches.columns):
        if column.feature == name:
            levels = (*column.levels, *column.others)
            return [levels[own] for own in e.switches.own[:, c]]
    return None

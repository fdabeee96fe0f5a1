"""What data says of columns: the scale that each is taken in, and how far it went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._core.types import Array, Flags
from .._core.validate import check_choice, default_names
from ..errors import InvalidArgument, WrongType
from .arguments import check_meaning
from .covariance import correlations
from .scales import LogScale, RankScale, Scale, log_scale, rank_scale

SCALES = ("linear", "log", "ranks", "auto")
"""What `scale=` may say of all columns; of a single one it may also be "category"."""

WORDS = ("linear", "log", "ranks", "category", "fixed")
"""How a column can be taken."""

MOSTLY_WITHIN = 0.05
"""Share of draws beyond the data, on average over its rows, from which on "auto" takes ranks."""

TOLD = 6
"""Columns that are named of each kind."""

FEW_ROWS = 100_000
"""Rows that "auto" looks at, evenly spread, where there are more."""


@dataclass(frozen=True, eq=False)
class Background:
    """What data says of d columns."""

    words: tuple[str, ...]
    """(d,) "linear", "log", "ranks", "category" (held, its levels are known) or "fixed" (held, and nothing is known)"""
    scales: tuple[Scale | None, ...]
    """(d,) None where a step is taken in the column itself, and where none is taken"""
    least: Array
    """(d,) smallest value, NaN where it is not known"""
    largest: Array
    count: int = 0
    """Rows of data; 0 where there are none"""

    @cached_property
    def is_linear(self) -> bool:
        """Whether all steps are taken in the columns themselves."""
        return all(each is None for each in self.scales)

    def told(self, names: Sequence[Any]) -> list[str]:
        """Which columns are taken how, in words: kinds that have any, the first columns of each."""
        parts = []
        for word in ("linear", "log", "ranks"):
            own = [str(name) for name, each in zip(names, self.words, strict=True) if each == word]
            more = f", ... {len(own)} in all" if len(own) > TOLD else ""
            parts += [f"{word} ({', '.join(own[:TOLD])}{more})"] if own else []
        return parts


def same_steps(one: Background | None, other: Background | None) -> bool:
    """Whether steps are taken in the same; without a background they are taken in the columns themselves."""
    if one is None or other is None:
        return (one is None or one.is_linear) and (other is None or other.is_linear)
    return len(one.scales) == len(other.scales) and all(map(same_scale, one.scales, other.scales))


def same_scale(one: Scale | None, other: Scale | None) -> bool:
    """Whether two scales are the same curve."""
    if isinstance(one, RankScale) and isinstance(other, RankScale):
        pairs = ((getattr(one, name), getattr(other, name)) for name in ("known", "middle", "lower", "upper"))
        return one.is_step == other.is_step and all(np.array_equal(a, b) for a, b in pairs)
    return bool(one == other)


def read_scale(scale: Any, columns: Sequence[Any], d: int, categories: Sequence[str] = ()) -> list[str]:
    """A word for each of d columns, from one for all of them, or a mapping from names or positions.

    `categories` are columns that hold no numbers: they are what they are.
    """
    if isinstance(scale, str):
        words = [check_choice(scale, "scale", SCALES)] * d
        return ["category" if columns[j] in categories else word for j, word in enumerate(words)]
    if not isinstance(scale, Mapping):
        msg = f"scale must be {_listed(SCALES)}, or a mapping from columns to these; got {scale!r}"
        raise WrongType(msg, argument="scale")
    words = ["category" if column in categories else "linear" for column in columns]
    places = {name: j for j, name in enumerate(columns)}
    if list(columns) == list(range(d)):  # columns of an array, which have names in what is said of them
        places |= {name: j for j, name in enumerate(default_names(d))}
    for column, word in scale.items():
        check_meaning(column, columns, "scale")
        is_position = isinstance(column, int | np.integer) and not isinstance(column, bool)
        place = int(column) if is_position and 0 <= column < d else places.get(column)
        if place is None:
            msg = f"scale names {column!r}, which is not a column; the columns are {list(columns)}"
            raise InvalidArgument(msg, argument="scale")
        kind = check_choice(word, "scale", (*SCALES, "category"))
        if words[place] == "category" and kind not in ("category", "auto"):
            msg = (
                f"scale is {kind!r} for column {columns[place]!r}, which holds no numbers; leave it out, as it is held"
            )
            raise InvalidArgument(msg, argument="scale")
        words[place] = "category" if words[place] == "category" else kind
    return words


def without_data(scale: Any, columns: Sequence[Any], d: int) -> Background | None:
    """Scales that need no data: logarithms; None where all columns are linear."""
    if isinstance(scale, str) and scale == "linear":
        return None
    words = read_scale(scale, columns, d)
    needy = [j for j, word in enumerate(words) if word not in ("linear", "log")]
    if needy:
        msg = (
            f"scale={words[needy[0]]!r} needs data that shows how columns vary: give background="
            " (the training data, say), or use 'linear' or 'log'"
        )
        raise InvalidArgument(msg, argument="scale")
    if "log" not in words:
        return None
    unknown = np.full(d, np.nan)
    return Background(
        tuple(words), tuple(LogScale() if word == "log" else None for word in words), unknown, unknown.copy()
    )


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """What all rows of a long table say of its columns; scales are learned from some of these rows."""

    names: tuple[str, ...]
    std: Array
    """(d,) 1 where a column is constant"""
    constant: Flags
    least: Array
    largest: Array
    count: int

    def of(self, columns: Sequence[Any]) -> Spread:
        """That of some columns, by name."""
        at = [self.names.index(name) for name in columns]
        found = (self.std[at], self.constant[at], self.least[at], self.largest[at])
        return Spread(tuple(columns), *found, self.count)


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A background whose rows were chosen from a longer table."""

    rows: Any
    """A data frame"""
    spread: Spread | None
    """What the whole table says; None where the rows are all of it"""


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What rows of data say of a neighbourhood: its scales, and the units of sigma."""

    background: Background
    unit: Array
    """(d,) in which sigma counts on the scale of each column; 1 where a column has no spread"""
    covariance: Array | None
    """(d, d) of the scores, shrunk, where it was asked for; 1 and nothing else for columns that are held"""
    held: Flags
    """(d,) columns that do not move: those that were named, constant ones, and categories"""


def learn(
    rows: Array,
    columns: Sequence[Any],
    *,
    words: Sequence[str],
    fixed: Flags,
    sigma: Array,
    full: bool = False,
    called: str = "X",
    spread: Spread | None = None,
) -> Learned:
    """What rows (n, d) say of columns that are taken as `words` say; `called` is the name of the data in messages.

    A constant column has no unit of its own and is held. `spread` is that of a table of which the rows are some.
    """
    std, constant = _spread(rows)
    if spread is not None:  # a curve needs two values among the rows themselves
        std, constant = spread.std, spread.constant | (constant & (np.array(words) != "linear"))
    held = fixed | constant | (np.array(words) == "category")
    found: list[Scale | None] = [None] * len(words)
    said, unit, scores = list(words), std.copy(), rows.copy()
    for j in map(int, np.flatnonzero(~held)):
        seen = rows[~np.isnan(rows[:, j]), j]
        if spread is not None:  # the ends of all rows, so that none lies beyond
            seen = np.append(seen, [spread.least[j], spread.largest[j]])
        if said[j] == "auto":
            said[j] = _suitable(seen, std[j] * (sigma[j] if sigma.ndim else sigma))
        if said[j] == "category":
            held[j] = True
        elif said[j] == "log":
            found[j] = scale = log_scale(seen, columns[j])
            unit[j] = scale.scores(seen).std(ddof=1)
        elif said[j] == "ranks":
            found[j], unit[j] = rank_scale(seen, columns[j]), 1.0
        if (scale_of := found[j]) is not None:
            scores[:, j] = scale_of.scores(rows[:, j])
    said = ["fixed" if held[j] and word != "category" else word for j, word in enumerate(said)]
    has_numbers = ~np.isnan(rows).all(axis=0)
    least, largest = np.full((2, len(words)), np.nan)
    least[has_numbers], largest[has_numbers] = (end(rows[:, has_numbers], axis=0) for end in (np.nanmin, np.nanmax))
    together = _together(scores, ~held, unit, called) if full else None
    if spread is not None:
        least, largest = spread.least, spread.largest
    count = len(rows) if spread is None else spread.count
    return Learned(Background(tuple(said), tuple(found), least, largest, count), unit, together, held)


def _together(scores: Array, varying: Flags, unit: Array, called: str) -> Array:
    """Covariance (d, d) of the columns that vary, of shrunk correlations; the identity for all others."""
    gaps = np.argwhere(np.isnan(scores[:, varying]))
    if len(gaps):
        msg = (
            f"{called} has {len(gaps)} missing values, the first at row {gaps[0][0]}; correlations need whole rows."
            " Impute them, or use full=False"
        )
        raise InvalidArgument(msg, argument=called)
    found = np.eye(scores.shape[1])
    if varying.any():
        own = unit[varying]
        found[np.ix_(varying, varying)] = correlations(scores[:, varying], called) * np.outer(own, own)
    return found


def _spread(rows: Array) -> tuple[Array, Flags]:
    """Standard deviation of each column (d,), 1 where it has none, and which columns those are; NaN do not count."""
    known = np.isfinite(rows)
    count = known.sum(axis=0)
    filled = np.where(known, rows, 0.0)
    centred = np.where(known, rows - filled.sum(axis=0) / np.maximum(count, 1), 0.0)
    std = np.sqrt((centred**2).sum(axis=0) / np.maximum(count - 1, 1))
    constant = (count < 2) | (std <= 1e-12 * np.abs(filled).max(axis=0))
    return np.where(constant, 1.0, std), constant


def _suitable(seen: Array, step: float) -> str:
    """What "auto" takes: linear where draws mostly stay within the data, categories for 0 and 1, else ranks."""
    from scipy.special import ndtr

    low, high = seen.min(), seen.max()
    if low == 0 and high == 1 and ((seen == 0) | (seen == 1)).all():
        return "category"
    some = seen[:: -(-len(seen) // FEW_ROWS)]
    share = (ndtr((low - some) / step) + ndtr((some - high) / step)).mean()
    return "linear" if share < MOSTLY_WITHIN else "ranks"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(map(repr, words))

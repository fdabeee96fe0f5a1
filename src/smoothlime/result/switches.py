"""Effects of other levels: how the smoothed output would change if a category of a row were another."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._core.types import Array, Flags, Indices
from .._core.validate import check_fraction
from ..errors import InvalidArgument
from ..uncertainty.jackknife import t_quantile, widening

if TYPE_CHECKING:
    from .effects import Effects

GROUPS = 32
"""Groups of draws behind a standard error, where draws are enough for so many pairs."""


@dataclass(frozen=True, slots=True)
class SwitchedColumn:
    """A category and its levels, as people read them."""

    feature: str
    """Name of the column, or of what a group of 0/1 columns has in common"""
    levels: tuple[str, ...]
    """Those that rows are switched to"""
    others: tuple[str, ...] = ()
    """Those that some rows have besides"""


@dataclass(frozen=True, eq=False, repr=False)
class Switches:
    r"""Effects of other levels around r rows, for s pairs of a category and a level, with standard errors.

    $$ \Delta_{j \to v}(x) = \mathbb{E}[f(a \text{ with } a_j = v)] - \mathbb{E}[f(a)], \qquad a \sim N(x, \Sigma) $$

    In units of the output, like standardised slopes. A level that a row has already is no switch: NaN.
    """

    columns: tuple[SwitchedColumn, ...]
    own: Indices
    """(r, c) the level of each row: a position among a column's levels and, behind them, its others"""
    effect: Array
    """(r, s)"""
    standard_error: Array
    """(r, s); 0 where effects are exact"""
    skewness: Array
    """(r, s) squared, of what groups of draws say; 0 where it may be chance"""
    converged: Flags
    """(r, s) whether the standard error is within the tolerance; also where there is nothing to switch"""
    n_samples: Indices
    """(r, s) draws; 0 where none were needed"""
    backend: str = ""
    """Library of the data frame that the rows came in, or none"""

    @property
    def features(self) -> tuple[str, ...]:
        """(s,) the category of each switch."""
        return tuple(column.feature for column in self.columns for _ in column.levels)

    @property
    def levels(self) -> tuple[str, ...]:
        """(s,) the level that each switch leads to."""
        return tuple(level for column in self.columns for level in column.levels)

    @property
    def is_own(self) -> Flags:
        """(r, s) where a row has the level already."""
        parts = [self.own[:, [c]] == np.arange(len(column.levels)) for c, column in enumerate(self.columns)]
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(self.own), 0), dtype=np.bool_)

    @property
    def is_exact(self) -> bool:
        """Whether no sampling was needed."""
        return not self.n_samples.any()

    @property
    def n_evaluations(self) -> Indices:
        """(r,) model rows asked, besides those of the slopes: at each draw the row itself, and each other level."""
        return self.n_samples.sum(axis=1) + self.n_samples.max(axis=1, initial=0)

    @property
    def degrees_of_freedom(self) -> Array:
        """(r, s) behind the standard errors: groups of pairs of draws, less one."""
        groups = np.minimum(self.n_samples // 2, GROUPS)
        return np.where(self.n_samples > 0, np.maximum(groups - 1.0, 1.0), np.inf)

    def column_of(self, s: int) -> int:
        """Position of the category of a switch among the columns."""
        ends = np.cumsum([len(column.levels) for column in self.columns])
        return int(np.searchsorted(ends, s, side="right"))

    def own_level(self, row: int, c: int) -> str:
        """The level of a row in the c-th category."""
        column = self.columns[c]
        return (*column.levels, *column.others)[self.own[row, c]]

    def half_width(self, confidence: float = 0.95) -> Array:
        """(r, s) half-widths of intervals: Student's t times the standard error, wider where groups are skewed."""
        miss = 1 - check_fraction(confidence, "confidence")
        quantile = t_quantile(self.degrees_of_freedom, 1 - miss / 2)
        return np.asarray(quantile * self.standard_error * (1 + widening(quantile) * self.skewness))

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends (r, s) of intervals that each hold their effect with the given confidence."""
        reach = self.half_width(confidence)
        return self.effect - reach, self.effect + reach

    def effects(self, weights: Any = None, by: Any = None, rows: Literal["these", "sample"] = "these") -> Effects:
        """Means over all rows that have another level: mean effect of each switch, mean |effect|, errors.

        The arguments are those of `Explanation.effects`, but `by` is a label for each row, or the name of a category.
        Nothing is kept of groups of draws, so that errors of rows are added up as if they went together.
        """
        from .effects import Averaged, effects

        r, s = self.effect.shape
        names = tuple(f"{name} → {level}" for name, level in zip(self.features, self.levels, strict=True))
        averaged = Averaged(
            "switch", np.where(self.is_own, np.nan, self.effect), self.standard_error,
            np.asarray(self.degrees_of_freedom.min(axis=1, initial=np.inf)), self.is_exact, None, np.arange(s),
            self.n_samples.max(axis=1, initial=0), np.zeros((r, s), dtype=np.bool_), np.ones(s), names, "the output",
            (), self._levels_of,
        )  # fmt: skip
        return effects(averaged, weights, by, rows)

    def _levels_of(self, name: str) -> list[str]:
        """The level of each row in a category."""
        known = [column.feature for column in self.columns]
        if name not in known:
            msg = f"by names {name!r}, which is no category of these switches; they are {', '.join(known)}"
            raise InvalidArgument(msg, argument="by")
        return [self.own_level(row, known.index(name)) for row in range(len(self))]

    def __len__(self) -> int:
        """Count of rows."""
        return len(self.effect)

    def __iter__(self) -> Iterator[Switches]:
        """Switches of one row each."""
        return (self[row] for row in range(len(self)))

    def __getitem__(self, rows: Any) -> Switches:
        """Some of the rows; a single position gives those of one row."""
        kept = np.atleast_1d(np.arange(len(self))[rows])
        return dataclasses.replace(self, **{name: getattr(self, name)[kept] for name in BY_ROW})

    def __str__(self) -> str:
        """Effects with error bars as text, largest first."""
        from ..plots.switched import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        """Notebook form: a small picture and a table."""
        from ..plots.notebook import switches

        return switches(self)

    def __repr__(self) -> str:
        """One line: rows, switches, and the columns that they are of."""
        how = "exact" if self.is_exact else "sampled"
        names = ", ".join(repr(column.feature) for column in self.columns[:4]) + ", ..." * (len(self.columns) > 4)
        return f"<Switches of {len(self)} rows: {self.effect.shape[1]} levels of {names}, {how}>"

    def to_frame(self, *, library: str | None = None, confidence: float = 0.95) -> Any:
        """Data frame with a line per row and switch: row, feature, from, to, effect, standard_error, lower, upper.

        Levels are text. Those that a row has already are left out. `library` is `"pandas"`, `"polars"` or `"pyarrow"`;
        without it the one the rows came in, else pandas.
        """
        from ..io.frames import frame_of_switches

        return frame_of_switches(self, library=library, confidence=confidence)


BY_ROW = ("own", "effect", "standard_error", "skewness", "converged", "n_samples")


def scale_switches(one: Switches | None, times: float) -> Switches | None:
    """Switches of a multiple of the model."""
    if one is None:
        return None
    return dataclasses.replace(one, effect=times * one.effect, standard_error=abs(times) * one.standard_error)


def combine_switches(one: Switches | None, sign: float, other: Switches | None) -> Switches | None:
    """Switches of a sum of models: errors are added, which is valid however the two depend on each other.

    None where the two are not of the same switches: other columns or levels, or rows that have other levels.
    """
    if one is None or other is None or not _are_alike(one, other):
        return None
    return dataclasses.replace(
        one,
        effect=one.effect + sign * other.effect,
        standard_error=one.standard_error + other.standard_error,
        skewness=np.maximum(one.skewness, other.skewness),
        converged=one.converged & other.converged,
        n_samples=(np.maximum if one.is_exact or other.is_exact else np.minimum)(one.n_samples, other.n_samples),
    )


def _are_alike(one: Switches, other: Switches) -> bool:
    names = [[(column.feature, column.levels) for column in each.columns] for each in (one, other)]
    if names[0] != names[1] or one.own.shape != other.own.shape:
        return False
    rows, columns = range(len(one)), range(len(one.columns))
    return np.array_equal(one.own, other.own) and all(  # others are counted by each for itself
        one.own_level(row, c) == other.own_level(row, c)
        for c in columns
        for row in rows
        if one.own[row, c] >= len(one.columns[c].levels)
    )

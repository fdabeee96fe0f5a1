"""What comes back from `interactions`: second slopes of pairs of features, with errors, and shares of the variance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.types import Array, Indices
from .._core.validate import check_count, check_fraction, check_position
from ..errors import InvalidArgument
from ..uncertainty.jackknife import t_quantile, widening
from .explanation import Explanation

if TYPE_CHECKING:
    import os

    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Pair:
    """Two features that act together at a row."""

    features: tuple[str, str]
    value: float
    """Second slope: how much the slope of one changes per unit of the other"""
    standard_error: float
    lower: float
    upper: float
    """Ends of a 95% interval"""
    standardised: float
    """Second slope times the neighbourhood standard deviations of both"""
    share: float
    """Of the variance of the model nearby; NaN where Σ is full, as shares of pairs overlap there"""

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves no doubt about the sign."""
        return self.lower > 0 or self.upper < 0


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Second slopes of the smoothed model around r rows, ∂²F/∂x_i∂x_j, with standard errors.

    Off the diagonal: how much the slope of a feature changes per unit of another. On it: how much the model bends along
    one. Nothing is kept per group of draws, so that there is no arithmetic on them.
    """

    explanation: Explanation
    """Slopes, of the same draws"""
    pairs: Indices
    """(p, 2) positions of the pairs that were asked for, the smaller first"""
    by_pair: Array
    """(r, p) their second slopes; NaN where a feature has no value"""
    error_by_pair: Array
    """(r, p) standard errors; 0 where nothing was drawn"""
    skewness: Array
    """(r, p) squared, of what groups of draws say; 0 where it may be chance"""
    linear: Array
    """(r,) variance that slopes explain; what noise adds to squares is taken off"""
    quadratic: Array
    """(r,) and second slopes; NaN where Σ is full and not all pairs are there"""
    variance: Array
    """(r,) of the model over the neighbourhood"""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """(d,)."""
        return self.explanation.feature_names

    @property
    def output_name(self) -> str:
        """What is explained."""
        return self.explanation.output_name

    @property
    def is_exact(self) -> bool:
        """Whether no sampling was needed."""
        return self.explanation.is_exact

    @property
    def converged(self) -> Any:
        """(r,) whether the slopes reached their tolerance; second slopes have errors of their own."""
        return self.explanation.converged

    @property
    def n_samples(self) -> Indices:
        """(r,) draws; 0 where nothing was drawn."""
        return self.explanation.n_samples

    @cached_property
    def values(self) -> Array:
        """(r, d, d) second slopes, symmetric; NaN for features that do not move, and for pairs not asked for."""
        return self._matrices(self.by_pair)

    @cached_property
    def standard_error(self) -> Array:
        """(r, d, d)."""
        return self._matrices(self.error_by_pair)

    @cached_property
    def standardised(self) -> Array:
        """(r, d, d) times the neighbourhood standard deviations of both features."""
        return self.values * (self.explanation.std[:, None] * self.explanation.std)

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends (r, d, d) of intervals that each miss with probability 1 − confidence."""
        reach = self._matrices(self.half_width_by_pair(confidence))
        return self.values - reach, self.values + reach

    def half_width_by_pair(self, confidence: float = 0.95) -> Array:
        """(r, p) half-widths of intervals: Student's t times the standard error, wider where groups are skewed."""
        miss = 1 - check_fraction(confidence, "confidence")
        if self.is_exact:
            return np.where(np.isnan(self.by_pair), np.nan, 0.0)
        quantile = t_quantile(self.explanation.degrees_of_freedom, 1 - miss / 2)[:, None]
        return np.asarray(quantile * self.error_by_pair * (1 + widening(quantile) * self.skewness))

    @cached_property
    def shares(self) -> dict[str, Array]:
        """Of the variance of the model nearby, (r,) each: "linear", "bends", "interactions" and "beyond".

        Squares of estimates are too large by their squared errors, which are taken off; a share is at least 0, and what
        is left is "beyond". Where few draws make more of the others than there is, these are scaled to add up to 1.
        Where features are not perturbed independently of each other, bends and interactions cannot be told apart, and
        are "quadratic" together. Of pairs that were not asked for nothing is known: they are "beyond".
        """
        linear = self._share(self.linear, of_constant=1.0)
        if not self.explanation.factor.is_diagonal:
            found = {"linear": linear, "quadratic": self._share(self.quadratic)}
        else:
            by_pair, is_bend = self._share_by_pair, self.pairs[:, 0] == self.pairs[:, 1]
            sums = (np.clip(np.nansum(by_pair[:, each], axis=1), 0, 1) for each in (is_bend, ~is_bend))
            found = {"linear": linear, **dict(zip(("bends", "interactions"), sums, strict=True))}
        total = np.fmax(sum(found.values()), 1.0)
        found = {name: each / total for name, each in found.items()}
        return found | {"beyond": np.clip(1 - sum(found.values()), 0, 1)}

    def top(self, k: int = 5, *, row: int = 0, confidence: float = 0.95) -> tuple[Pair, ...]:
        """The k pairs of different features with the largest standardised second slopes at a row."""
        i = self.position(row)
        most = check_count(k, "k")
        std = self.explanation.std[self.pairs].prod(axis=1)
        size = np.abs(self.by_pair[i]) * std
        size[self.pairs[:, 0] == self.pairs[:, 1]] = np.nan
        order = np.argsort(-np.nan_to_num(size, nan=-1.0), kind="stable")[: min(most, int(np.isfinite(size).sum()))]
        reach = self.half_width_by_pair(confidence)[i]
        has_shares = self.explanation.factor.is_diagonal
        return tuple(
            Pair(
                features=(self.feature_names[self.pairs[p, 0]], self.feature_names[self.pairs[p, 1]]),
                value=float(self.by_pair[i, p]),
                standard_error=float(self.error_by_pair[i, p]),
                lower=float(self.by_pair[i, p] - reach[p]),
                upper=float(self.by_pair[i, p] + reach[p]),
                standardised=float(self.by_pair[i, p] * std[p]),
                share=float(np.clip(self._share_by_pair[i, p], 0, 1)) if has_shares else float("nan"),
            )
            for p in order
        )

    def to_frame(self, *, library: str | None = None, confidence: float = 0.95) -> Any:
        """Data frame with a line per row and pair, in the library that the rows came in unless `library` says."""
        from ..io.frames import frame_of_interactions

        return frame_of_interactions(self, library=library, confidence=confidence)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a .json or .parquet file, whole or not at all; `load` reads it back."""
        from ..io.files import save

        save(self, path)

    def to_json(self) -> str:
        """The contents of the .json file that `save` writes."""
        from ..io.as_json import to_json

        return to_json(self)

    def plot(self, row: int = 0, *, ax: Axes | None = None, confidence: float = 0.95, most: int = 10) -> Axes:
        """Standardised second slopes of a row as a map, of the features that matter most; grey: sign uncertain."""
        from ..plots.interactions import interactions

        return interactions(self, row, ax=ax, confidence=confidence, most=most)

    def __len__(self) -> int:
        """Count of rows."""
        return len(self.by_pair)

    def __str__(self) -> str:
        """Shares and the largest pairs of the first rows."""
        from ..plots.interactions import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        """Notebook form: a small picture and a table."""
        from ..plots.notebook import interactions

        return interactions(self)

    def __rich__(self) -> Any:
        """The same as tables for rich."""
        from ..plots.interactions import as_rich

        return as_rich(self)

    def __repr__(self) -> str:
        """One line: output, rows, pairs, how."""
        r, p = self.by_pair.shape
        how = "exact" if self.is_exact else f"{self.explanation.method}, {int(self.n_samples.max()):,} draws"
        return f"<Interactions in {self.output_name!r}: {r} row{'s' * (r != 1)} × {p} pair{'s' * (p != 1)}, {how}>"

    @cached_property
    def _share_by_pair(self) -> Array:
        """(r, p) of the variance, noise taken off; means something where Σ is diagonal."""
        std = self.explanation.std[self.pairs].prod(axis=1)
        weight = np.where(self.pairs[:, 0] == self.pairs[:, 1], 0.5, 1.0)
        squares = (self.by_pair**2 - self.error_by_pair**2) * std**2 * weight
        return np.divide(
            squares, self.variance[:, None], out=np.zeros_like(squares), where=self.variance[:, None] > 0
        )  # fmt: skip

    def _share(self, variance: Array, of_constant: float = 0.0) -> Array:
        found = np.divide(variance, self.variance, out=np.full(len(self), of_constant), where=self.variance > 0)
        return np.clip(found, 0.0, 1.0)

    def _matrices(self, by_pair: Array) -> Array:
        d = len(self.feature_names)
        found = np.full((len(by_pair), d, d), np.nan)
        found[:, self.pairs[:, 0], self.pairs[:, 1]] = by_pair
        found[:, self.pairs[:, 1], self.pairs[:, 0]] = by_pair
        return found

    def position(self, row: Any) -> int:
        """A row as a position from 0."""
        position = check_position(row, "row")
        if not -len(self) <= position < len(self):
            msg = f"row {position} is out of range; these are interactions around {len(self)} rows"
            raise InvalidArgument(msg, argument="row")
        return position % len(self)

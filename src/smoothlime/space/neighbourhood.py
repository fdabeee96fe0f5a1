"""The Gaussian neighbourhood N(x, Σ): what "near x" means, and its factor Σ = L Lᵀ."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .._core.types import Array, Flags, Indices, Points
from .._core.validate import as_names, check_rows, default_names
from ..errors import InvalidArgument
from .arguments import check_length, check_meaning, positive, refuse_words, several, short
from .background import Background, Spread, learn, read_scale, same_steps
from .covariance import symmetric
from .row_scales import RowScales
from .tables import agreed_columns, as_table


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Σ = L Lᵀ over the features that are perturbed, for rows of d features.

    `lower` is L: its diagonal (f,) where Σ is diagonal, else the Cholesky factor (f, f).
    """

    d: int
    free: Indices
    lower: Array

    @property
    def is_diagonal(self) -> bool:
        """Whether features are perturbed independently of each other."""
        return self.lower.ndim == 1

    @property
    def std(self) -> Array:
        """√Σ_jj of the perturbed features, (f,)."""
        return self.lower if self.is_diagonal else np.sqrt((self.lower**2).sum(axis=1))

    @property
    def inverse(self) -> Array:
        """L⁻¹: its diagonal (f,) where Σ is diagonal, else (f, f)."""
        if self.is_diagonal:
            return 1.0 / self.lower
        return np.asarray(np.linalg.solve(self.lower, np.eye(len(self.lower))), dtype=np.float64)

    @property
    def unwhitened_scale(self) -> Array:
        """√(Σ⁻¹)_jj, (f,): the most by which a slope changes when slopes per draw change by a vector of length 1."""
        return self.inverse if self.is_diagonal else np.linalg.norm(self.inverse, axis=0)

    def steps(self, z: Array) -> Array:
        """L z: standard normal draws (..., f) as steps away from x."""
        return z * self.lower if self.is_diagonal else z @ self.lower.T

    def draws(self, steps: Array) -> Array:
        """L⁻¹ s: steps (..., f) as the draws that lead to them."""
        return steps / self.lower if self.is_diagonal else steps @ self.inverse.T

    def write_steps(self, z: Array, out: Points) -> None:
        """L z, rounded once to the type of `out` and written there."""
        if self.is_diagonal:
            np.multiply(z, self.lower, out=out, casting="same_kind")
        else:
            out[...] = z @ self.lower.T

    def whiten(self, slopes: Array) -> Array:
        """Lᵀ w: slopes per feature as slopes per standard normal draw; its norm is √(wᵀΣw)."""
        return slopes * self.lower if self.is_diagonal else slopes @ self.lower

    def unwhiten(self, slopes: Array) -> Array:
        """L⁻ᵀ v: slopes per standard normal draw as slopes per feature."""
        return slopes * self.inverse if self.is_diagonal else slopes @ self.inverse


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Neighbourhood:
    """The Gaussian N(x, Σ) that says what "near x" means, with Σ = sigma²·C.

    C is `covariance` if given, else diag(scale²), else the identity.

    Parameters
    ----------
    sigma
        Standard deviation, never a variance: one positive number, or one per feature.
    scale
        One positive number per feature: the unit in which sigma counts.
    covariance
        Symmetric positive definite matrix; sigma must then be one number.
    fixed
        Features that are not perturbed and get no slope: positions, or feature names.
    columns
        Names of the features that sigma, scale or covariance belong to, if they have any; rows must have the same, in
        the same order. Labels of a pandas Series or data frame are found without this.
    background
        What is known of the columns from data, such as the scales of steps; `from_data` makes it.

    Examples
    --------
    >>> Neighbourhood(0.5, scale=[1.0, 10.0])
    Neighbourhood(sigma=0.5, scale=[1, 10])
    """

    sigma: Any = 1.0
    scale: Any = None
    covariance: Any = None
    fixed: Sequence[int | str] = ()
    columns: tuple[str, ...] | None = None
    background: Background | None = None

    def __init__(
        self,
        sigma: Any = 1.0,
        *,
        scale: Any = None,
        covariance: Any = None,
        fixed: Sequence[int | str] = (),
        columns: Sequence[str] | None = None,
        background: Background | None = None,
    ) -> None:
        """Check what can be checked before the number of features is known."""
        spread = positive(sigma, "sigma")
        refuse_words(scale)
        unit = None if scale is None else positive(scale, "scale", at_least_1d=True)
        matrix = None if covariance is None else symmetric(covariance)
        if matrix is not None and unit is not None:
            msg = "give scale or covariance, not both: each sets what one unit of sigma means"
            raise InvalidArgument(msg)
        if matrix is not None and spread.ndim:
            msg = "sigma must be one number when a covariance is given; scale the covariance instead"
            raise InvalidArgument(msg, argument="sigma")
        if spread.ndim and unit is not None and len(spread) != len(unit):
            msg = f"sigma has {len(spread)} entries but scale has {len(unit)}; both go by feature"
            raise InvalidArgument(msg, argument="sigma")
        with np.errstate(over="ignore", under="ignore"):
            if unit is not None:
                positive(spread * unit, "sigma times scale")
            if matrix is not None:
                positive(spread * np.sqrt(np.diagonal(matrix)), "sigma times √covariance")
        object.__setattr__(self, "sigma", spread if spread.ndim else float(spread))
        object.__setattr__(self, "scale", unit)
        object.__setattr__(self, "covariance", matrix)
        object.__setattr__(self, "fixed", several(fixed))
        named = {"scale": scale, "covariance": covariance, "sigma": sigma}
        known = None if columns is None else as_names(columns, "columns")
        object.__setattr__(self, "columns", agreed_columns(known, named))
        object.__setattr__(self, "background", background)
        lengths = [len(each) for each in (unit, matrix, spread) if each is not None and each.ndim]
        lengths += [] if background is None else [len(background.words)]
        if self.columns is not None and lengths and len(self.columns) != lengths[0]:
            msg = f"columns has {len(self.columns)} names for {lengths[0]} features"
            raise InvalidArgument(msg, argument="columns")

    @classmethod
    def from_data(
        cls,
        X: Any,
        sigma: Any = 1.0,
        *,
        full: bool = False,
        fixed: Sequence[int | str] = (),
        scale: str | Mapping[Any, str] = "linear",
    ) -> Neighbourhood:
        """Neighbourhood in the units of the data: sigma = 1 is one standard deviation of X.

        With `full=True` C has the variances of X, and its correlations shrunk towards none as Ledoit and Wolf (2004)
        do for standardised columns. A constant column has no unit of its own and becomes fixed, and so does a column
        of a data frame that holds no numbers. Missing values are left out, but for `full`, which cannot do without.

        Parameters
        ----------
        scale
            What a step is taken in: `"linear"` (the column itself), `"log"` (e-folds), `"ranks"` (normal scores of the
            ranks in X, so that draws never leave what X ever was), `"auto"` (linear where draws mostly stay within X,
            categories for columns of 0 and 1, else ranks), or a mapping from columns to these or to `"category"`, which
            are held. Steps of logarithms count in their standard deviation, those of ranks in normal scores;
            correlations are those of what steps are taken in.

        Examples
        --------
        >>> Neighbourhood.from_data([[0.0, 5.0], [2.0, 5.0]], sigma=0.5)
        Neighbourhood(sigma=0.5, scale=[1.41421, 1], fixed=(1,))
        >>> Neighbourhood.from_data([[0.0], [1.0], [7.0]], scale="ranks").scales
        ('ranks',)
        """
        table = as_table(X)
        if table is None:
            return cls._from_rows(check_rows(X, finite=False), None, sigma, full=full, fixed=fixed, scale=scale)
        return cls._from_rows(
            table.numbers(),
            table.names,
            sigma,
            full=full,
            fixed=fixed,
            scale=scale,
            categories=table.categories,
        )

    @classmethod
    def _from_rows(
        cls,
        rows: Array,
        columns: Any,
        sigma: Any,
        *,
        full: bool = False,
        fixed: Any = (),
        scale: Any = "linear",
        categories: Sequence[str] = (),
        codes: Collection[int] = (),
        called: str = "X",
        named: Sequence[str] | None = None,
        spread: Spread | None = None,
    ) -> Neighbourhood:
        """The same from numbers (n, d) and the names of their columns, or None; `called` is their name in messages.

        `categories` are columns that hold no numbers, but levels, `codes` positions of numbers that stand for some.
        `named` are the names that `fixed` and `scale` may
        use, where those are others than the data has. `spread` is that of a table of which the rows are some.
        """
        if len(rows) < 2:
            msg = f"{called} must have at least 2 rows to show how features vary; got {len(rows)}"
            raise InvalidArgument(msg, argument=called)
        d = rows.shape[1]
        names: Sequence[int | str] = columns or named or range(d)
        if np.isinf(rows).any():
            row, feature = np.argwhere(np.isinf(rows))[0]
            msg = f"{called} must be finite; got {rows[row, feature]} at row {row}, feature {names[int(feature)]!r}"
            raise InvalidArgument(msg, argument=called)
        fixed, stds = several(fixed), positive(sigma, "sigma")
        for each in fixed:
            check_meaning(each, names, "fixed")
        if stds.ndim:
            check_length(len(stds), d, "sigma")
        asked = set(fixed)
        is_fixed = np.array([j in asked or names[j] in asked for j in range(d)])
        words = read_scale(scale, names, d, categories)
        words = ["category" if word == "auto" and j in codes else word for j, word in enumerate(words)]
        found = learn(rows, names, words=words, fixed=is_fixed, sigma=stds, full=full, called=called, spread=spread)
        held = [*fixed, *(names[j] for j in map(int, np.flatnonzero(found.held & ~is_fixed)))]
        given: dict[str, Any] = {"fixed": held, "columns": columns, "background": found.background}
        if found.covariance is None:
            return cls(sigma, scale=found.unit, **given)
        return cls(sigma, covariance=found.covariance, **given)

    @property
    def scales(self) -> tuple[str, ...]:
        """(d,) what a step is taken in, feature by feature: "linear", "log", "ranks", "category" or "fixed".

        Empty where nobody said: all steps are taken in the features themselves.
        """
        return () if self.background is None else self.background.words

    @property
    def categories(self) -> tuple[int | str, ...]:
        """Features that are held because they are categories, by name, or by position where they have none."""
        names: Sequence[int | str] = range(len(self.scales)) if self.columns is None else self.columns
        return tuple(names[j] for j, word in enumerate(self.scales) if word == "category")

    def row_scales(self, x: Array, feature_names: Sequence[str] = ()) -> RowScales | None:
        """T around rows x (r, d), or None where all steps are taken in the features themselves."""
        if self.background is None or self.background.is_linear:
            return None
        d = x.shape[1]
        check_length(len(self.background.scales), d, "the background")
        held = self._fixed_positions(d, feature_names)
        scales = [None if j in held else scale for j, scale in enumerate(self.background.scales)]
        if all(scale is None for scale in scales):
            return None
        return RowScales.of(scales, x, feature_names or default_names(d))

    def holding(self, features: Sequence[str], feature_names: Sequence[str]) -> Neighbourhood:
        """The same neighbourhood with these features fixed as well."""
        if not len(features):  # the names of a picture's pixels take a while to look through
            return self
        already = set(self._fixed_positions(len(feature_names), feature_names))
        places = {name: j for j, name in enumerate(feature_names)}
        more = [name for name in features if places[name] not in already]
        if not more:
            return self
        return dataclasses.replace(self, fixed=(*self.fixed, *more))

    def holding_also(self, fixed: Any) -> Neighbourhood:
        """The same neighbourhood with these features fixed as well, by position or name."""
        more = [each for each in several(fixed) if each not in self.fixed]
        return dataclasses.replace(self, fixed=(*self.fixed, *more)) if more else self

    def factor(self, d: int, feature_names: Sequence[str] = ()) -> Factor:
        """L with Σ = L Lᵀ for rows of d features, over the features that are perturbed."""
        self._check_columns(feature_names)
        fixed = self._fixed_positions(d, feature_names)
        free = np.delete(_positions(d), fixed) if fixed else _positions(d)
        if not len(free):
            msg = (
                f"all {d} features are fixed; leave at least one to perturb. Columns that hold no numbers, and columns"
                " of a background that do not vary, are fixed by themselves"
            )
            raise InvalidArgument(msg, argument="fixed")
        if self.covariance is not None:
            check_length(len(self.covariance), d, "covariance")
            lower = np.linalg.cholesky(self.covariance[np.ix_(free, free)]) * self.sigma
            if np.count_nonzero(lower) == len(free):  # diagonal, and cheaper as such
                return Factor(d, free, np.diag(lower).copy())
            return Factor(d, free, lower)
        if self.scale is None and not np.ndim(self.sigma):
            return Factor(d, free, np.broadcast_to(float(self.sigma), len(free)))  # one number, whatever d
        std = np.ones(d)
        for name, given in (("sigma", self.sigma), ("scale", self.scale)):
            if given is not None:
                if np.ndim(given):
                    check_length(len(given), d, name)
                std = std * given
        return Factor(d, free, std if len(free) == d else std[free])

    def factor_without(self, missing: Flags, feature_names: Sequence[str] = ()) -> Factor:
        """The factor where some of d features have no value, (d,): they are held, and the others have their own law.

        Marginal, not conditional: Σ without their rows and columns.
        """
        held = (*self.fixed, *np.flatnonzero(missing).tolist())
        return dataclasses.replace(self, fixed=held).factor(len(missing), feature_names)

    def _check_columns(self, feature_names: Sequence[str]) -> None:
        given = tuple(feature_names)
        if self.columns is None or not given or given == self.columns:
            return
        msg = (
            f"the neighbourhood was made for columns {', '.join(map(repr, self.columns))}, but the rows have"
            f" {', '.join(map(repr, given))}; select the same ones in the same order"
        )
        raise InvalidArgument(msg)

    def _fixed_positions(self, d: int, feature_names: Sequence[str]) -> list[int]:
        if not self.fixed:
            return []
        places = {name: j for j, name in enumerate(feature_names)}
        positions = []
        for each in self.fixed:
            if isinstance(each, str):
                if each not in places:
                    msg = f"fixed names {each!r}, which is not a feature; the features are {list(places)}"
                    raise InvalidArgument(msg, argument="fixed")
                positions.append(places[each])
            elif 0 <= each < d:
                positions.append(int(each))
            else:
                msg = f"fixed names feature {each}, but positions go from 0 to {d - 1}"
                raise InvalidArgument(msg, argument="fixed")
        return positions

    def __eq__(self, other: object) -> bool:
        """Whether both describe the same Σ and hold the same features fixed."""
        if not isinstance(other, Neighbourhood):
            return NotImplemented
        pairs = ((self.sigma, other.sigma), (self.scale, other.scale), (self.covariance, other.covariance))
        alike = all((a is None) == (b is None) and (a is None or np.array_equal(a, b)) for a, b in pairs)
        same_scales = same_steps(self.background, other.background)
        return alike and same_scales and self.fixed == other.fixed and self.columns == other.columns

    __hash__ = None  # type: ignore[assignment]  # arrays inside

    def __repr__(self) -> str:
        """Arguments that differ from the defaults."""
        parts = [f"sigma={short(self.sigma)}"]
        parts += [f"scale={short(self.scale)}"] if self.scale is not None else []
        parts += [f"covariance={self.covariance.shape}"] if self.covariance is not None else []
        parts += [f"fixed={self.fixed}"] if self.fixed else []
        if self.background is not None and not self.background.is_linear:
            names = list(range(len(self.scales)) if self.columns is None else self.columns)
            parts += self.background.told(names)
        return f"Neighbourhood({', '.join(parts)})"


@lru_cache(maxsize=4)
def _positions(d: int) -> Indices:
    """0 to d − 1, cached: images have many features, and rows may be explained one by one."""
    positions = np.arange(d)
    positions.flags.writeable = False
    return positions

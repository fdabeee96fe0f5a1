"""The Gaussian neighbourhood N(x, Σ): what "near x" means, and its factor Σ = L Lᵀ."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .._core.types import Array, Flags, Indices, Points
from .._core.validate import as_names, as_own_array, check_rows, is_iterable
from ..errors import InvalidArgument, WrongType
from .covariance import correlations, symmetric
from .tables import agreed_columns, as_table

LEAST = float(np.finfo(np.float64).tiny)
"""Smallest width: smaller numbers have fewer digits, and the reciprocals of the smallest are infinite."""


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
        Names of the features that sigma, scale or covariance belong to, where they have any; rows must have the same,
        in the same order. Labels of a pandas Series or data frame are taken by themselves.

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

    def __init__(
        self,
        sigma: Any = 1.0,
        *,
        scale: Any = None,
        covariance: Any = None,
        fixed: Sequence[int | str] = (),
        columns: Sequence[str] | None = None,
    ) -> None:
        """Check what can be checked before the number of features is known."""
        spread = _positive(sigma, "sigma")
        unit = None if scale is None else _positive(scale, "scale", at_least_1d=True)
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
                _positive(spread * unit, "sigma times scale")
            if matrix is not None:
                _positive(spread * np.sqrt(np.diagonal(matrix)), "sigma times √covariance")
        object.__setattr__(self, "sigma", spread if spread.ndim else float(spread))
        object.__setattr__(self, "scale", unit)
        object.__setattr__(self, "covariance", matrix)
        object.__setattr__(self, "fixed", _several(fixed))
        named = {"scale": scale, "covariance": covariance, "sigma": sigma}
        known = None if columns is None else as_names(columns, "columns")
        object.__setattr__(self, "columns", agreed_columns(known, named))
        lengths = [len(each) for each in (unit, matrix, spread) if each is not None and each.ndim]
        if self.columns is not None and lengths and len(self.columns) != lengths[0]:
            msg = f"columns has {len(self.columns)} names for {lengths[0]} features"
            raise InvalidArgument(msg, argument="columns")

    @classmethod
    def from_data(
        cls, X: Any, sigma: Any = 1.0, *, full: bool = False, fixed: Sequence[int | str] = ()
    ) -> Neighbourhood:
        """Neighbourhood in the units of the data: sigma = 1 is one standard deviation of X.

        With `full=True` C has the variances of X, and its correlations shrunk towards none as Ledoit and Wolf (2004)
        do for standardised columns. A constant column has no unit of its own and becomes fixed, and so does a column
        of a data frame that holds no numbers. Missing values are left out, but for `full`, which cannot do without.

        Examples
        --------
        >>> Neighbourhood.from_data([[0.0, 5.0], [2.0, 5.0]], sigma=0.5)
        Neighbourhood(sigma=0.5, scale=[1.41421, 1], fixed=(1,))
        """
        table = as_table(X)
        if table is None:
            return cls._from_rows(check_rows(X, finite=False), None, sigma, full=full, fixed=fixed)
        return cls._from_rows(table.numbers(), table.names, sigma, full=full, fixed=fixed)

    @classmethod
    def _from_rows(
        cls, rows: Array, columns: Any, sigma: Any, *, full: bool = False, fixed: Any = (), called: str = "X"
    ) -> Neighbourhood:
        """The same from numbers (n, d) and the names of their columns, or None; `called` is their name in messages."""
        if len(rows) < 2:
            msg = f"{called} must have at least 2 rows to show how features vary; got {len(rows)}"
            raise InvalidArgument(msg, argument=called)
        names: Sequence[int | str] = range(rows.shape[1]) if columns is None else columns
        if np.isinf(rows).any():
            row, feature = np.argwhere(np.isinf(rows))[0]
            msg = f"{called} must be finite; got {rows[row, feature]} at row {row}, feature {names[int(feature)]!r}"
            raise InvalidArgument(msg, argument=called)
        fixed = _several(fixed)
        std, constant = _spread(rows)
        held = [*fixed, *(names[j] for j in map(int, np.flatnonzero(constant)) if not {j, names[j]} & set(fixed))]
        if not full:
            return cls(sigma, scale=std, fixed=held, columns=columns)
        varying = ~constant & ~np.array([bool({j, names[j]} & set(fixed)) for j in range(len(names))])
        gaps = np.argwhere(np.isnan(rows[:, varying]))
        if len(gaps):
            msg = (
                f"{called} has {len(gaps)} missing values, the first at row {gaps[0][0]}; correlations need whole rows."
                " Impute them, or use full=False"
            )
            raise InvalidArgument(msg, argument=called)
        cov = np.eye(rows.shape[1])
        if varying.any():
            cov[np.ix_(varying, varying)] = correlations(rows[:, varying], called) * np.outer(
                std[varying], std[varying]
            )
        return cls(sigma, covariance=cov, fixed=held, columns=columns)

    def holding(self, features: Sequence[str], feature_names: Sequence[str]) -> Neighbourhood:
        """The same neighbourhood with these features fixed as well."""
        already = set(self._fixed_positions(len(feature_names), feature_names))
        places = {name: j for j, name in enumerate(feature_names)}
        more = [name for name in features if places[name] not in already]
        if not more:
            return self
        return dataclasses.replace(self, fixed=(*self.fixed, *more))

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
            _check_length(len(self.covariance), d, "covariance")
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
                    _check_length(len(given), d, name)
                std = std * given
        return Factor(d, free, std if len(free) == d else std[free])

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
        return alike and self.fixed == other.fixed and self.columns == other.columns

    __hash__ = None  # type: ignore[assignment]  # arrays inside

    def __repr__(self) -> str:
        """Arguments that differ from the defaults."""
        parts = [f"sigma={_short(self.sigma)}"]
        parts += [f"scale={_short(self.scale)}"] if self.scale is not None else []
        parts += [f"covariance={self.covariance.shape}"] if self.covariance is not None else []
        parts += [f"fixed={self.fixed}"] if self.fixed else []
        return f"Neighbourhood({', '.join(parts)})"


def _spread(rows: Array) -> tuple[Array, Flags]:
    """Standard deviation of each column (d,), 1 where it has none, and which columns those are; NaN do not count."""
    known = np.isfinite(rows)
    count = known.sum(axis=0)
    filled = np.where(known, rows, 0.0)
    centred = np.where(known, rows - filled.sum(axis=0) / np.maximum(count, 1), 0.0)
    std = np.sqrt((centred**2).sum(axis=0) / np.maximum(count - 1, 1))
    constant = (count < 2) | (std <= 1e-12 * np.abs(filled).max(axis=0))
    return np.where(constant, 1.0, std), constant


def _several(fixed: Any) -> tuple[int | str, ...]:
    """One feature or several, by position or name."""
    if fixed is None:
        msg = "fixed takes positions or names; got None. Leave it out to hold nothing fixed"
        raise InvalidArgument(msg, argument="fixed")
    is_one = isinstance(fixed, str | bytes) or not is_iterable(fixed)
    several = (fixed[()] if isinstance(fixed, np.ndarray) else fixed,) if is_one else tuple(fixed)
    strange = [each for each in several if not isinstance(each, str | int | np.integer)]
    if strange and not isinstance(strange[0], bool | np.bool_):
        msg = f"fixed takes positions or names; got {strange[0]!r}"
        raise InvalidArgument(msg, argument="fixed")
    if any(isinstance(each, bool | np.bool_) for each in several):
        msg = f"fixed takes positions or names, not a mask; got {fixed!r}. np.flatnonzero turns a mask into positions"
        raise InvalidArgument(msg, argument="fixed")
    return several


@lru_cache(maxsize=4)
def _positions(d: int) -> Indices:
    """0 to d − 1, cached: images have many features, and rows may be explained one by one."""
    positions = np.arange(d)
    positions.flags.writeable = False
    return positions


def _positive(value: Any, name: str, *, at_least_1d: bool = False) -> Array:
    if value is None:
        msg = f"{name} must be one number, or one per feature; got None. Leave it out for 1.0"
        raise WrongType(msg, argument=name)
    array = as_own_array(value, name, allow_bools=False)
    if array.ndim > 1 or (at_least_1d and array.ndim == 0):
        wanted = "one number per feature" if at_least_1d else "one number, or one per feature"
        msg = f"{name} must be {wanted}; got shape {array.shape}"
        raise InvalidArgument(msg, argument=name)
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= LEAST)))
    if len(bad):
        where = f" at feature {bad[0]}" if array.ndim else ""
        hint = "; list a feature in `fixed` to leave it alone" if array.ndim else ""
        found = array.flat[bad[0]]
        wanted = f"{LEAST:.2g} or more" if 0 < found < LEAST else "finite and > 0"
        msg = f"{name} must be {wanted}; got {found:g}{where}{hint}"
        raise InvalidArgument(msg, argument=name)
    return array


def _check_length(given: int, d: int, name: str) -> None:
    if given != d:
        msg = f"{name} has {given} entries but the rows have {d} features"
        raise InvalidArgument(msg, argument=name)


def _short(value: Any) -> str:
    if np.ndim(value) == 0:
        return f"{float(value):g}"
    shown = ", ".join(f"{each:g}" for each in value[:6])
    return f"[{shown}{', ...' if len(value) > 6 else ''}]"

"""Functions whose explanation is known in closed form, and the checks to hold an estimator against them.

Every function is a model: give it to `explain` as it is. `slopes(x, neighbourhood)` is the true w(x),
`smoothed(x, neighbourhood)` the true F(x), `second_slopes(x, neighbourhood)` its Hessian. Most depend on one projection
s = v·a + c, which is normal with mean μ = v·x + c and variance τ² = vᵀΣv near x, so that w(x) = v·E[h'(s)] needs one
dimension only.

>>> from smoothlime import Neighbourhood
>>> Sine([2.0, 0.0]).slopes([[0.0, 0.0]], Neighbourhood(0.1)).round(4)
array([[1.9604, 0.    ]])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np

from ._core.types import Array, Points
from ._core.validate import as_float_array, check_rows
from .errors import InvalidArgument
from .space.neighbourhood import Neighbourhood

FAMILY_MISS = 1e-6
"""Chance that `assert_matches` fails on correct code, over all numbers compared at once."""


def covariance(neighbourhood: Neighbourhood, d: int) -> Array:
    """Σ (d, d) of a neighbourhood; zero for features held fixed."""
    factor = neighbourhood.factor(d)
    lower = np.diag(factor.lower) if factor.is_diagonal else factor.lower
    full = np.zeros((d, d))
    full[np.ix_(factor.free, factor.free)] = lower @ lower.T
    return full


class KnownFunction:
    """A model of one output with known gradient, slope and smoothed value."""

    outputs: tuple[str, ...] = ("output",)

    def values(self, points: Points) -> Array:
        """f at each point, (n, 1)."""
        return self._values(np.asarray(points, dtype=np.float64))[:, None]

    def values_and_gradients(self, points: Points, weights: Any) -> tuple[Array, Array]:
        """f (n, 1) and its weighted gradient (n, d) almost everywhere: what autodiff would give."""
        at = np.asarray(points, dtype=np.float64)
        return self._values(at)[:, None], np.asarray(weights) * self._gradients(at)

    def slopes(self, x: Any, neighbourhood: Neighbourhood) -> Array:
        """True w(x), (r, d)."""
        rows = check_rows(x, "x")
        return self._slopes(rows, covariance(neighbourhood, rows.shape[1]))

    def smoothed(self, x: Any, neighbourhood: Neighbourhood) -> Array:
        """True F(x), (r,)."""
        rows = check_rows(x, "x")
        return self._smoothed(rows, covariance(neighbourhood, rows.shape[1]))

    def second_slopes(self, x: Any, neighbourhood: Neighbourhood) -> Array:
        """True ∇²F(x), (r, d, d)."""
        rows = check_rows(x, "x")
        return self._second_slopes(rows, covariance(neighbourhood, rows.shape[1]))

    def _values(self, a: Array) -> Array:
        raise NotImplementedError

    def _gradients(self, a: Array) -> Array:
        raise NotImplementedError

    def _slopes(self, x: Array, cov: Array) -> Array:
        raise NotImplementedError

    def _smoothed(self, x: Array, cov: Array) -> Array:
        raise NotImplementedError

    def _second_slopes(self, x: Array, cov: Array) -> Array:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Profile:
    """A function h of one variable, its derivative, and the means of both over N(μ, τ²).

    `mean_bend` is the derivative of the latter in μ: the mean of the second derivative, kinks and jumps included.
    """

    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    mean: Callable[[Array, float], Array]
    mean_derivative: Callable[[Array, float], Array]
    mean_bend: Callable[[Array, float], Array] | None = None


class RidgeFunction(KnownFunction):
    """f(a) = h(v·a + c) for a profile h."""

    def __init__(self, profile: Profile, v: Any, c: float = 0.0) -> None:
        self.profile = profile
        self.v = as_float_array(v, "v")
        self.c = float(c)

    def _values(self, a: Array) -> Array:
        return self.profile.value(a @ self.v + self.c)

    def _gradients(self, a: Array) -> Array:
        return self.profile.derivative(a @ self.v + self.c)[:, None] * self.v

    def _slopes(self, x: Array, cov: Array) -> Array:
        tau = sqrt(self.v @ cov @ self.v)
        return self.profile.mean_derivative(x @ self.v + self.c, tau)[:, None] * self.v

    def _smoothed(self, x: Array, cov: Array) -> Array:
        return self.profile.mean(x @ self.v + self.c, sqrt(self.v @ cov @ self.v))

    def _second_slopes(self, x: Array, cov: Array) -> Array:
        assert self.profile.mean_bend is not None
        bend = self.profile.mean_bend(x @ self.v + self.c, sqrt(self.v @ cov @ self.v))
        return bend[:, None, None] * np.outer(self.v, self.v)


_LINE = Profile(lambda s: s, np.ones_like, lambda m, t: m, lambda m, t: np.ones_like(m), lambda m, t: np.zeros_like(m))

_COSINE = Profile(
    np.cos,
    lambda s: -np.sin(s),
    lambda m, t: np.cos(m) * np.exp(-(t**2) / 2),
    lambda m, t: -np.sin(m) * np.exp(-(t**2) / 2),
    lambda m, t: -np.cos(m) * np.exp(-(t**2) / 2),
)


class Quadratic(KnownFunction):
    """½ aᵀA a + b·a, with A made symmetric."""

    def __init__(self, A: Any, b: Any) -> None:
        matrix = as_float_array(A, "A")
        self.A = (matrix + matrix.T) / 2
        self.b = as_float_array(b, "b")

    def _values(self, a: Array) -> Array:
        return ((a @ self.A) * a).sum(axis=1) / 2 + a @ self.b

    def _gradients(self, a: Array) -> Array:
        return a @ self.A + self.b

    def _slopes(self, x: Array, cov: Array) -> Array:
        return x @ self.A + self.b

    def _smoothed(self, x: Array, cov: Array) -> Array:
        return self._values(x) + np.trace(self.A @ cov) / 2

    def _second_slopes(self, x: Array, cov: Array) -> Array:
        return np.tile(self.A, (len(x), 1, 1))


class RadialBasis(KnownFunction):
    """exp(−‖a − centre‖² / (2 width²))."""

    def __init__(self, centre: Any, width: float) -> None:
        self.centre = as_float_array(centre, "centre")
        self.width = float(width)

    def _values(self, a: Array) -> Array:
        return np.exp(-(((a - self.centre) / self.width) ** 2).sum(axis=1) / 2)

    def _gradients(self, a: Array) -> Array:
        return -(a - self.centre) / self.width**2 * self._values(a)[:, None]

    def _smoothed(self, x: Array, cov: Array) -> Array:
        widened = self.width**2 * np.eye(len(cov)) + cov
        away = x - self.centre
        distance = (away * np.linalg.solve(widened, away.T).T).sum(axis=1)
        return np.exp(-distance / 2) * self.width ** len(cov) / sqrt(np.linalg.det(widened))

    def _slopes(self, x: Array, cov: Array) -> Array:
        widened = self.width**2 * np.eye(len(cov)) + cov
        return -np.linalg.solve(widened, (x - self.centre).T).T * self._smoothed(x, cov)[:, None]

    def _second_slopes(self, x: Array, cov: Array) -> Array:
        inverse = np.linalg.inv(self.width**2 * np.eye(len(cov)) + cov)
        pull = (x - self.centre) @ inverse
        return (pull[:, :, None] * pull[:, None, :] - inverse) * self._smoothed(x, cov)[:, None, None]


class SineProduct(KnownFunction):
    """sin(u·a)·sin(v·a) = ½cos((u − v)·a) − ½cos((u + v)·a): what acts together, whatever Σ is."""

    def __init__(self, u: Any, v: Any) -> None:
        one, other = as_float_array(u, "u"), as_float_array(v, "v")
        self.parts = RidgeFunction(_COSINE, one - other), RidgeFunction(_COSINE, one + other)

    def _values(self, a: Array) -> Array:
        return self._half(lambda part: part._values(a))

    def _gradients(self, a: Array) -> Array:
        return self._half(lambda part: part._gradients(a))

    def _slopes(self, x: Array, cov: Array) -> Array:
        return self._half(lambda part: part._slopes(x, cov))

    def _smoothed(self, x: Array, cov: Array) -> Array:
        return self._half(lambda part: part._smoothed(x, cov))

    def _second_slopes(self, x: Array, cov: Array) -> Array:
        return self._half(lambda part: part._second_slopes(x, cov))

    def _half(self, of: Callable[[RidgeFunction], Array]) -> Array:
        return (of(self.parts[0]) - of(self.parts[1])) / 2


class Box(KnownFunction):
    """1 where low < a <= high in every feature, else 0: a leaf of a tree. For diagonal Σ."""

    def __init__(self, low: Any, high: Any) -> None:
        self.low = as_float_array(low, "low")
        self.high = as_float_array(high, "high")

    def _values(self, a: Array) -> Array:
        return np.asarray(((a > self.low) & (a <= self.high)).all(axis=1), dtype=np.float64)

    def _gradients(self, a: Array) -> Array:
        return np.zeros_like(a)

    def _smoothed(self, x: Array, cov: Array) -> Array:
        return np.asarray(self._sides(x, cov)[0].prod(axis=1))

    def _slopes(self, x: Array, cov: Array) -> Array:
        p, first, _ = self._sides(x, cov)
        return np.stack([first[:, j] * np.delete(p, j, axis=1).prod(axis=1) for j in range(x.shape[1])], axis=1)

    def _second_slopes(self, x: Array, cov: Array) -> Array:
        p, first, second = self._sides(x, cov)
        found = np.empty((len(x), *cov.shape))
        for i, j in np.ndindex(cov.shape):
            ends = second[:, i] if i == j else first[:, i] * first[:, j]
            found[:, i, j] = ends * np.delete(p, [i, j], axis=1).prod(axis=1)
        return found

    def _sides(self, x: Array, cov: Array) -> tuple[Array, Array, Array]:
        """Chance to lie between the two sides of each feature, and its derivatives in x, (r, d) each."""
        if (cov != np.diag(np.diag(cov))).any():
            msg = "the mean of a box is known where features are perturbed independently of each other"
            raise InvalidArgument(msg)
        std = np.sqrt(np.diag(cov))
        low, high = (self.low - x) / std, (self.high - x) / std
        finite = [np.where(np.isfinite(end), end, 0.0) * _phi(end) for end in (low, high)]
        return _Phi(high) - _Phi(low), (_phi(low) - _phi(high)) / std, (finite[0] - finite[1]) / std**2


def Linear(v: Any, c: float = 0.0) -> RidgeFunction:
    """v·a + c."""
    return RidgeFunction(_LINE, v, c)


def Cubic(v: Any, c: float = 0.0) -> RidgeFunction:
    """(v·a + c)³."""
    return RidgeFunction(
        Profile(
            lambda s: s**3,
            lambda s: 3 * s**2,
            lambda m, t: m**3 + 3 * m * t**2,
            lambda m, t: 3 * (m**2 + t**2),
            lambda m, t: 6 * m,
        ),
        v,
        c,
    )


def Sine(v: Any, c: float = 0.0) -> RidgeFunction:
    """sin(v·a + c)."""
    return RidgeFunction(
        Profile(
            np.sin,
            np.cos,
            lambda m, t: np.sin(m) * np.exp(-(t**2) / 2),
            lambda m, t: np.cos(m) * np.exp(-(t**2) / 2),
            lambda m, t: -np.sin(m) * np.exp(-(t**2) / 2),
        ),
        v,
        c,
    )


def Exponential(v: Any, c: float = 0.0) -> RidgeFunction:
    """exp(v·a + c)."""

    def mean(m: Array, t: float) -> Array:
        return np.exp(m + t**2 / 2)

    return RidgeFunction(Profile(np.exp, np.exp, mean, mean, mean), v, c)


def Probit(v: Any, c: float = 0.0) -> RidgeFunction:
    """Φ(v·a + c)."""
    return RidgeFunction(
        Profile(
            _Phi,
            _phi,
            lambda m, t: _Phi(m / sqrt(1 + t**2)),
            lambda m, t: _phi(m / sqrt(1 + t**2)) / sqrt(1 + t**2),
            lambda m, t: -m * _phi(m / sqrt(1 + t**2)) / sqrt(1 + t**2) ** 3,
        ),
        v,
        c,
    )


def Absolute(v: Any, c: float = 0.0) -> RidgeFunction:
    """|v·a + c|."""
    return RidgeFunction(
        Profile(
            np.abs,
            np.sign,
            lambda m, t: m * (2 * _Phi(m / t) - 1) + 2 * t * _phi(m / t),
            lambda m, t: 2 * _Phi(m / t) - 1,
            lambda m, t: 2 * _phi(m / t) / t,
        ),
        v,
        c,
    )


def Relu(v: Any, c: float = 0.0) -> RidgeFunction:
    """max(0, v·a + c)."""
    return RidgeFunction(
        Profile(
            lambda s: np.maximum(s, 0.0),
            lambda s: (s > 0).astype(np.float64),
            lambda m, t: m * _Phi(m / t) + t * _phi(m / t),
            lambda m, t: _Phi(m / t),
            lambda m, t: _phi(m / t) / t,
        ),
        v,
        c,
    )


def Step(v: Any, c: float = 0.0) -> RidgeFunction:
    """1 where v·a + c > 0, else 0. Its gradient is 0 almost everywhere, its explanation is not."""
    return RidgeFunction(
        Profile(
            lambda s: (s > 0).astype(np.float64),
            np.zeros_like,
            lambda m, t: _Phi(m / t),
            lambda m, t: _phi(m / t) / t,
            lambda m, t: -m * _phi(m / t) / t**3,
        ),
        v,
        c,
    )


def assert_matches(
    got: Any,
    truth: Any,
    standard_error: Any,
    *,
    sees: float,
    degrees_of_freedom: float = np.inf,
    rounding: float = 1e-12,
) -> None:
    """Fail unless `got` is within its error of `truth`, and the errors are small enough to mean something.

    The tolerance is t × standard error, with t set so that correct code fails once in a million times over all
    numbers together; `rounding`, relative to the largest truth, is added for exact cases. `sees` is the relative
    error, to the largest truth, that the check must be able to detect: it fails where its own tolerance is wider.
    """
    from scipy.special import stdtrit

    got, truth, error = (np.asarray(each, dtype=np.float64) for each in (got, truth, standard_error))
    size = max(float(np.abs(truth).max()), np.finfo(float).tiny)
    degrees = min(degrees_of_freedom, 1e9)
    tolerance = float(stdtrit(degrees, 1 - FAMILY_MISS / (2 * got.size))) * error + rounding * size
    widest = float(np.max(tolerance))
    if not widest <= sees * size:
        msg = f"this check cannot see errors of {sees:.1%}: its tolerance is {widest / size:.1%} of the truth"
        raise AssertionError(msg)
    off = np.abs(got - truth) - tolerance
    if not (off <= 0).all():
        where = np.unravel_index(np.argmax(np.where(np.isnan(off), np.inf, off)), off.shape)
        wanted, allowed = (np.broadcast_to(each, got.shape)[where] for each in (truth, tolerance))
        place = tuple(int(i) for i in where)
        msg = f"at {place}: got {got[where]:.6g}, truth {wanted:.6g}, allowed ±{allowed:.2g}"
        raise AssertionError(msg)


def _phi(s: Any) -> Any:
    return np.exp(-np.square(s) / 2) / sqrt(2 * pi)


def _Phi(s: Any) -> Any:
    from scipy.special import ndtr

    return ndtr(s)

"""Linear and generalised linear models: f = g(c·a + b), whose smoothed slope is E g'(u)·c with u ~ N(c·x + b, cᵀΣc)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np

from .._types import Array
from ..neighbourhood import Factor
from .base import Smoothed

ROUNDING = 64 * np.finfo(float).eps
"""Relative error allowed to sums and quadrature; measured errors are a few units in the last place."""

QUADRATURE = 1e-14
"""Absolute error allowed to a mean slope by quadrature: exp(−33), and what lies beyond the nodes."""

IDENTITY = (
    "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "Lars", "LassoLars",
    "OrthogonalMatchingPursuit", "BayesianRidge", "ARDRegression", "HuberRegressor", "TheilSenRegressor",
    "QuantileRegressor", "SGDRegressor", "PassiveAggressiveRegressor", "LinearSVR",
)  # fmt: skip
EXPONENTIAL = ("PoissonRegressor", "GammaRegressor")
LOGISTIC = ("LogisticRegression", "LogisticRegressionCV")
MARGINS = (*LOGISTIC, "SGDClassifier", "RidgeClassifier", "RidgeClassifierCV", "LinearSVC", "Perceptron",
           "PassiveAggressiveClassifier")  # fmt: skip
SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")


@dataclass(frozen=True, slots=True)
class Link:
    """g with its mean, mean slope and mean square over N(m, τ²), for arrays m and τ."""

    value: Callable[[Array], Array]
    mean: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    square: Callable[[Array, Array], Array]
    is_closed: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """Outputs (k,) = offset + turn · g(coef·a + intercept), with coef (m, d) and turn (k, m)."""

    coef: Array
    intercept: Array
    offset: Array
    turn: Array
    link: Link
    takes_gaps = False

    @property
    def size(self) -> float:
        """Nothing is lost in sums of a few terms: outputs are compared at their own size."""
        return 0.0

    def values(self, x: Array) -> Array:
        """Outputs (r, k)."""
        return self.offset + self.link.value(x @ self.coef.T + self.intercept) @ self.turn.T

    def smooth(self, x: Array, factor: Factor, weights: Array) -> Smoothed:
        """E f, Var f and slopes; Σ may be full."""
        middle = x @ self.coef.T + self.intercept  # (r, m)
        moved = self.coef[:, factor.free]
        tau = np.broadcast_to(np.linalg.norm(factor.whiten(moved), axis=1), middle.shape)
        parts = weights @ self.turn  # (r, m)
        slopes = (parts * self.link.slope(middle, tau)) @ moved
        mean = weights @ self.offset + (parts * self.link.mean(middle, tau)).sum(axis=1)
        if self.link is LINKS["identity"]:
            variance = (factor.whiten(parts @ moved) ** 2).sum(axis=1)
        elif parts.shape[1] == 1:
            spread = self.link.square(middle, tau) - self.link.mean(middle, tau) ** 2
            variance = (parts**2 * np.maximum(spread, 0.0))[:, 0]
        else:
            variance = np.full(len(x), np.nan)
        error = ROUNDING * np.abs(self.link.slope(middle, tau)) + (0.0 if self.link.is_closed else QUADRATURE)
        reach = (np.abs(parts) * error) @ np.abs(moved * factor.std)
        return Smoothed(slopes, mean, variance, np.linalg.norm(reach, axis=1))


def read_linear(estimator: Any, ask: str) -> LinearModel | None:
    """A linear or generalised linear estimator of scikit-learn, perhaps behind scalers; None for anything else.

    `ask` is the method its outputs come from: predict, predict_proba or decision_function.
    """
    scale, shift = _nothing()
    steps = getattr(estimator, "steps", None)
    if steps is not None and type(estimator).__name__ == "Pipeline" and _is_sklearn(estimator):
        for _, step in steps[:-1]:
            if step is None or step == "passthrough":
                continue
            found = _scaler(step)
            if found is None:
                return None
            scale, shift = scale * found[0], shift * found[0] + found[1]
        estimator = steps[-1][1]
    kind = _known(estimator)
    if kind is None or not hasattr(estimator, "coef_"):
        return None
    coef = np.atleast_2d(np.asarray(_dense(estimator.coef_), dtype=np.float64))
    intercept = np.broadcast_to(np.atleast_1d(np.asarray(estimator.intercept_, dtype=np.float64)), len(coef))
    coef, intercept = coef * scale, intercept + coef @ np.broadcast_to(shift, coef.shape[1])
    m = len(coef)
    if ask == "predict" and kind in IDENTITY:
        return LinearModel(coef, intercept, np.zeros(m), np.eye(m), LINKS["identity"])
    if ask == "predict" and kind in EXPONENTIAL:
        return LinearModel(coef, intercept, np.zeros(m), np.eye(m), LINKS["exponential"])
    if ask == "decision_function" and kind in MARGINS:
        return LinearModel(coef, intercept, np.zeros(m), np.eye(m), LINKS["identity"])
    is_logistic = kind in LOGISTIC or (kind == "SGDClassifier" and estimator.loss == "log_loss")
    if ask == "predict_proba" and is_logistic and m == 1:
        return LinearModel(coef, intercept, np.array([1.0, 0.0]), np.array([[-1.0], [1.0]]), LINKS["logistic"])
    return None


def _known(estimator: Any) -> str | None:
    """Name of its class if we know it; a subclass may predict as it likes, and is asked instead."""
    name = type(estimator).__name__
    return name if name in (*IDENTITY, *EXPONENTIAL, *MARGINS) and _is_sklearn(estimator) else None


def _is_sklearn(thing: Any) -> bool:
    return type(thing).__module__.partition(".")[0] == "sklearn"


def _nothing() -> tuple[Any, Any]:
    return 1.0, 0.0


def _scaler(step: Any) -> tuple[Any, Any] | None:
    """a -> scale·a + shift, of a scaler that has been fitted."""
    kind = type(step).__name__
    if kind not in SCALERS or not _is_sklearn(step) or getattr(step, "clip", False):
        return None
    if kind == "MinMaxScaler":
        return step.scale_, step.min_
    scale = getattr(step, "scale_", None)
    unit = 1.0 if scale is None else 1 / np.asarray(scale)
    middle = getattr(step, "mean_", None) if kind == "StandardScaler" else getattr(step, "center_", None)
    with_mean = getattr(step, "with_mean", True) if kind == "StandardScaler" else True
    return unit, 0.0 if middle is None or not with_mean else -np.asarray(middle) * unit


def _dense(coef: Any) -> Any:
    return coef.toarray() if hasattr(coef, "toarray") else coef


# ---- links


def _sigmoid(u: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(u), dtype=np.float64)


NODES = np.arange(-80, 81) / 2.0
"""Trapezoidal rule with steps of 1/2. The logistic slope is analytic in a strip of half-width π and falls off as
exp(−|u|), the Gaussian is entire: the error is below exp(−33) for every m and τ, where Gauss–Hermite rules converge
ever more slowly as τ grows."""


def _logistic_slope(m: Array, tau: Array) -> Array:
    """E g'(m + τz): over z where τ ≤ 1, over u where the Gaussian is the wider of the two."""
    m, tau = np.broadcast_arrays(np.asarray(m, float), np.asarray(tau, float))
    found = np.empty(m.shape)
    small = tau <= 1
    z = NODES[np.abs(NODES) <= 9.5]
    u = m[small][:, None] + tau[small][:, None] * z
    found[small] = (_sigmoid(u) * _sigmoid(-u)) @ (_phi(z) / 2)
    wide = ~small
    apart = (NODES - m[wide][:, None]) / tau[wide][:, None]
    found[wide] = (_phi(apart) / tau[wide][:, None]) @ (_sigmoid(NODES) * _sigmoid(-NODES) / 2)
    return found


def _logistic_mean(m: Array, tau: Array) -> Array:
    """E g(m + τz); for wide Gaussians E g(u) = ∫ g'(v) P(u > v) dv, whose integrand falls off on both sides."""
    from scipy.special import ndtr

    m, tau = np.broadcast_arrays(np.asarray(m, float), np.asarray(tau, float))
    found = np.empty(m.shape)
    small = tau <= 1
    z = NODES[np.abs(NODES) <= 9.5]
    found[small] = _sigmoid(m[small][:, None] + tau[small][:, None] * z) @ (_phi(z) / 2)
    wide = ~small
    above = ndtr((m[wide][:, None] - NODES) / tau[wide][:, None])
    found[wide] = above @ (_sigmoid(NODES) * _sigmoid(-NODES) / 2)
    return found


def _phi(z: Array) -> Array:
    return np.exp(-(z**2) / 2) / sqrt(2 * pi)


def _lognormal_mean(m: Array, tau: Array) -> Array:
    return np.exp(m + tau**2 / 2)


def _probit(u: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(ndtr(u), dtype=np.float64)


def _probit_square(m: Array, tau: Array) -> Array:
    """E Φ(u)² = P(two equally placed normals lie below): 2·(Φ(h)/2 − T(h, a)) with Owen's T, a = 1/√(1 + 2τ²)."""
    from scipy.special import ndtr, owens_t

    h = m / np.sqrt(1 + tau**2)
    return np.asarray(ndtr(h) - 2 * owens_t(h, 1 / np.sqrt(1 + 2 * tau**2)), dtype=np.float64)


LINKS = {
    "identity": Link(lambda u: u, lambda m, t: m, lambda m, t: np.ones_like(m), lambda m, t: m**2 + t**2),
    "exponential": Link(np.exp, _lognormal_mean, _lognormal_mean, lambda m, t: np.exp(2 * m + 2 * t**2)),
    # g' = g·(1 − g), hence g² = g − g'
    "logistic": Link(
        _sigmoid, _logistic_mean, _logistic_slope, lambda m, t: _logistic_mean(m, t) - _logistic_slope(m, t), False
    ),
    "probit": Link(
        _probit,
        lambda m, t: _probit(m / np.sqrt(1 + t**2)),
        lambda m, t: _phi(m / np.sqrt(1 + t**2)) / np.sqrt(1 + t**2),
        _probit_square,
    ),
}

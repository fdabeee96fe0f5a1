"""Linear and generalised linear models: f = g(c·a + b), whose smoothed slope is E g'(u)·c with u ~ N(c·x + b, cᵀΣc)."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np

from .._core.types import Array
from ..space.neighbourhood import Factor
from .closed_form import Smoothed
from .links import LINKS, Link

ROUNDING = 64 * np.finfo(float).eps
"""Relative error allowed to sums; measured errors are a few units in the last place."""

UNIT = np.finfo(float).eps / 2

LAST_DIGITS = 1e-8
"""Share of its terms that a line is compared at, at least; what is allowed of that comes to some hundred roundings."""

ROUNDINGS = 16
"""Of one term of c·x + b beside those of the sum: scalers multiply, divide and shift, up to five of them in a row."""

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


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """Outputs (k,) = offset + turn · g(coef·a + intercept), with coef (m, d) and turn (k, m)."""

    coef: Array
    intercept: Array
    offset: Array
    turn: Array
    link: Link
    terms: Array | None = None
    """(m,) size of what the intercept was summed from, where that is more than the intercept itself"""
    gap: Array | None = None
    """(m, d) what is added in the place of coef·a where a is missing, if anything is"""
    takes_gaps: bool = False

    def size(self, x: Array) -> float:
        """A line may come to 0, of which only last digits of its terms are left; curves keep a size of their own."""
        return LAST_DIGITS * float(self._terms(x).max()) if self.link is LINKS["identity"] else 0.0

    @property
    def spread(self) -> Array:
        """A line has no ends, and is computed in float64."""
        return np.full(len(self.offset), np.inf)

    def values(self, x: Array) -> Array:
        """Outputs (r, k)."""
        return self.offset + self.link.value(self.middle(x)) @ self.turn.T

    def middle(self, x: Array) -> Array:
        """(r, m) coef·x + intercept."""
        if self.gap is None:
            return np.asarray(x @ self.coef.T + self.intercept)
        gaps = np.isnan(x)
        return np.asarray(np.where(gaps, 0.0, x) @ self.coef.T + gaps @ self.gap.T + self.intercept)

    def smooth(self, x: Array, factor: Factor, weights: Array) -> Smoothed:
        """E f, its slopes and how much of f they explain; Σ may be full. A missing value is not perturbed."""
        gaps = np.isnan(x[:, factor.free]) if self.gap is not None else np.zeros((1, 1), dtype=np.bool_)
        if not gaps.any():
            return self._smooth(x, factor, weights, self.coef[:, factor.free])
        patterns, which = np.unique(gaps, axis=0, return_inverse=True)
        found: dict[str, Array] = {}
        for i, pattern in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == i)
            part = self._smooth(x[rows], factor, weights[rows], self.coef[:, factor.free] * ~pattern)
            for name in ("slopes", "mean", "fidelity", "radius"):
                of_rows = getattr(part, name)
                found.setdefault(name, np.empty((len(x), *of_rows.shape[1:])))[rows] = of_rows
        return Smoothed(**found)

    def _smooth(self, x: Array, factor: Factor, weights: Array, moved: Array) -> Smoothed:
        """The same for rows of which the same coefficients (m, f) are moved."""
        middle = self.middle(x)
        tau = np.broadcast_to(np.linalg.norm(factor.whiten(moved), axis=1), middle.shape)
        parts = weights @ self.turn  # (r, m)
        slopes = (parts * self.link.slope(middle, tau)) @ moved
        mean = weights @ self.offset + (parts * self.link.mean(middle, tau)).sum(axis=1)
        is_flat = (parts == 0) | (tau == 0)  # nothing that a line could miss
        if parts.shape[1] == 1 or self.link is LINKS["identity"]:
            fidelity = np.where(is_flat, 1.0, self.link.fidelity(middle, tau))[:, 0]
        else:
            fidelity = np.full(len(x), np.nan)
        error = self._slope_error(x, factor, middle, tau)
        reach = (np.abs(parts) * error) @ np.abs(moved * factor.std)
        return Smoothed(slopes, mean, fidelity, np.linalg.norm(reach, axis=1) + self.lost(x, factor, parts))

    def lost(self, x: Array, factor: Factor, parts: Array) -> Array:
        """(r,) how far standardised slopes of a line are off those of the line as the model rounds it: √(2/π) of that.

        An intercept of 1e14 leaves a step of 0.016 between one output and the next, whatever the line does between.
        """
        if self.link is not LINKS["identity"]:
            return np.zeros(len(x))
        to_standardised = 1.0 if factor.is_diagonal else float(np.linalg.norm(factor.inverse * factor.std, ord=2))
        rounded = UNIT * (x.shape[1] + ROUNDINGS) * (np.abs(parts) * self._terms(x)).sum(axis=1)
        return np.asarray(sqrt(2 / pi) * to_standardised * rounded)

    def _slope_error(self, x: Array, factor: Factor, middle: Array, tau: Array) -> Array:
        """(r, m) how far mean slopes may be off: by their own rounding, and by that of c·x + b and of τ.

        Far from 0 a feature such as a time stamp leaves few digits to c·x + b, whatever the intercept takes away.
        """
        slope = self.link.slope(middle, tau)
        size = self._terms(x)
        one = UNIT * (x.shape[1] + ROUNDINGS)
        moved = np.abs(self.coef[:, factor.free])
        lower = np.abs(factor.lower)
        widest = np.linalg.norm(moved * lower if factor.is_diagonal else moved @ lower, axis=1)
        return ROUNDING * np.abs(slope) + self.link.off(slope, tau, one * size, one * widest)

    def _terms(self, x: Array) -> Array:
        """(r, m) size of what c·x + b is summed from."""
        size = np.abs(np.nan_to_num(x)) @ np.abs(self.coef).T
        if self.gap is not None:
            size = size + np.isnan(x) @ np.abs(self.gap).T
        return np.asarray(size + (np.abs(self.intercept) if self.terms is None else self.terms))


def read_linear(estimator: Any, ask: str) -> LinearModel | None:
    """A linear or generalised linear estimator of scikit-learn, perhaps behind scalers; None for anything else.

    `ask` is the method its outputs come from: predict, predict_proba or decision_function.
    """
    scale, shift, shifted = _nothing()
    steps = getattr(estimator, "steps", None)
    if steps is not None and type(estimator).__name__ == "Pipeline" and is_sklearn(estimator):
        for _, step in steps[:-1]:
            if step is None or step == "passthrough":
                continue
            found = scaler(step)
            if found is None:
                return None
            scale, shift = scale * found[0], shift * found[0] + found[1]
            shifted = shifted * np.abs(found[0]) + np.abs(found[1])
        estimator = steps[-1][1]
    kind = _known(estimator)
    if kind is None or not hasattr(estimator, "coef_"):
        return None
    coef = np.atleast_2d(np.asarray(_dense(estimator.coef_), dtype=np.float64))
    intercept = np.broadcast_to(np.atleast_1d(np.asarray(estimator.intercept_, dtype=np.float64)), len(coef))
    terms = np.abs(intercept) + np.abs(coef) @ np.broadcast_to(shifted, coef.shape[1])
    coef, intercept = coef * scale, intercept + coef @ np.broadcast_to(shift, coef.shape[1])
    m = len(coef)
    if ask == "predict" and kind in IDENTITY:
        return LinearModel(coef, intercept, np.zeros(m), np.eye(m), LINKS["identity"], terms)
    if ask == "predict" and kind in EXPONENTIAL:
        return LinearModel(coef, intercept, np.zeros(m), np.eye(m), LINKS["exponential"], terms)
    if ask == "decision_function" and kind in MARGINS:
        return LinearModel(coef, intercept, np.zeros(m), np.eye(m), LINKS["identity"], terms)
    is_logistic = kind in LOGISTIC or (kind == "SGDClassifier" and estimator.loss == "log_loss")
    if ask == "predict_proba" and is_logistic and m == 1:
        turn = np.array([[-1.0], [1.0]])
        return LinearModel(coef, intercept, np.array([1.0, 0.0]), turn, LINKS["logistic"], terms)
    return None


def _known(estimator: Any) -> str | None:
    """Name of its class if we know it; a subclass may predict as it likes, and is asked instead."""
    name = type(estimator).__name__
    return name if name in (*IDENTITY, *EXPONENTIAL, *MARGINS) and is_sklearn(estimator) else None


def is_sklearn(thing: Any) -> bool:
    """Whether its class is scikit-learn's own."""
    return type(thing).__module__.partition(".")[0] == "sklearn"


def _nothing() -> tuple[Any, Any, Any]:
    return 1.0, 0.0, 0.0


def scaler(step: Any) -> tuple[Any, Any] | None:
    """a -> scale·a + shift, of a scaler that has been fitted."""
    kind = type(step).__name__
    if kind not in SCALERS or not is_sklearn(step) or getattr(step, "clip", False):
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

"""Curves: how the sum of trees, a margin, becomes an output, margin by margin or all of them together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._core.types import Array


def _logistic(u: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(u), dtype=np.float64)


def _softmax(u: Array) -> Array:
    odds = np.exp(u - u.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


CURVES: dict[str, Callable[[Array], Array]] = {
    "identity": lambda u: u,
    "logistic": _logistic,
    "exponential": np.exp,
    "softmax": _softmax,
}
"""By name, in the order of their numbers in `trees/jump_kernel.py`."""


_SLOPES: dict[str, Callable[[Array], Array]] = {
    "identity": np.ones_like,
    "logistic": lambda u: _logistic(u) * _logistic(-u),
    "exponential": np.exp,
}


@dataclass(frozen=True, slots=True)
class Curve:
    """Outputs as a known function of margins."""

    name: str
    sharpness: float = 1.0
    """What margins are multiplied by first"""
    mirrors: bool = False
    """Whether one margin gives two outputs, the probabilities of either class"""

    def outputs(self, margins: Array) -> Array:
        """Outputs (n, k) of margins (n, m)."""
        bent = CURVES[self.name](self.sharpness * margins)
        return np.concatenate([1 - bent, bent], axis=1) if self.mirrors else bent

    def of_margins(self, weights: Array) -> tuple[Array, Array]:
        """Weights (..., k) of outputs as weights (..., m) of what each margin becomes, and a constant (...)."""
        if not self.mirrors:
            return weights, np.zeros(weights.shape[:-1])
        return weights[..., 1:] - weights[..., :1], weights[..., 0]

    def gradient(self, margins: Array, weights: Array) -> Array:
        """Of outputs weighed by (r, t, k) in the margins (r, m): (r, t, m)."""
        weights, _ = self.of_margins(weights)
        u = self.sharpness * margins[:, None]
        if self.name == "softmax":
            p = _softmax(u)
            return np.asarray(self.sharpness * p * (weights - (weights * p).sum(axis=-1, keepdims=True)))
        return np.asarray(self.sharpness * weights * _SLOPES[self.name](u))

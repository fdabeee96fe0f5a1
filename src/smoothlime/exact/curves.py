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

    def direction(self, margins: Array, weights: Array) -> Array:
        """How margins (r, m) change outputs weighed by (r, t, k), to first order: (r, t, m), of length 1, or 0."""
        weights, _ = self.of_margins(weights)
        u = self.sharpness * margins[:, None]
        if self.name == "softmax":
            p = _softmax(u)
            found = p * (weights - (weights * p).sum(axis=-1, keepdims=True))
        elif self.name == "logistic":
            found = weights * np.exp(-np.abs(u) + np.abs(u).min(axis=-1, keepdims=True)) / (1 + np.exp(-np.abs(u))) ** 2
        elif self.name == "exponential":
            found = weights * np.exp(u - u.max(axis=-1, keepdims=True))
        else:
            found = np.broadcast_to(weights, np.broadcast_shapes(weights.shape, u.shape))
        length = np.linalg.norm(found, axis=-1, keepdims=True)
        return np.divide(found, length, out=np.zeros(found.shape), where=length > 0)

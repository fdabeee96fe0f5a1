"""Links: how a classifier turns margins into probabilities, one function of the margins at a point."""

from __future__ import annotations

import numpy as np

from .._core.types import Array


def probabilities(margins: Array) -> Array:
    """Class probabilities (..., k) from margins: logistic for a single one, which gives k = 2, else softmax."""
    if margins.shape[-1] > 1:
        odds = np.exp(margins - margins.max(axis=-1, keepdims=True))
        return odds / odds.sum(axis=-1, keepdims=True)
    from scipy.special import expit

    return np.concatenate([expit(-margins), expit(margins)], axis=-1)


def cotangent(margins: Array, weights: Array) -> Array:
    """Gradient of Σ_k weight_k·p_k in the margins, for margins (..., m) and weights (..., k); of length 1, or 0.

    The length says nothing that a fitted coefficient would not say better, and is tiny where a class is near certain.
    """
    if margins.shape[-1] == 1:
        return np.ones_like(margins)
    p = probabilities(margins)
    gradient = p * (weights - (weights * p).sum(axis=-1, keepdims=True))
    length = np.linalg.norm(gradient, axis=-1, keepdims=True)
    return np.divide(gradient, length, out=np.zeros_like(gradient), where=length > 0)

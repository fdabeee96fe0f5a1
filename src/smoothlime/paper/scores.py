"""How good a classifier with two classes is, in three numbers that need no library."""

from __future__ import annotations

import numpy as np

from .._core.types import Array, Indices


def accuracy(y: Indices, predicted: Indices) -> float:
    """Share of right answers; with rare classes, see `balanced_accuracy`."""
    return float(np.mean(y == predicted))


def balanced_accuracy(y: Indices, predicted: Indices) -> float:
    """Mean over the classes in y of the share found: 0.5 for a constant answer to two classes."""
    return float(np.mean([np.mean(predicted[y == label] == label) for label in np.unique(y)]))


def auc(y: Indices, score: Array) -> float:
    """Chance that a row of class 1 scores higher than one of class 0, ties counting half; NaN if a class is missing.

    From the mean rank R₁ of class 1, with equal scores sharing their rank: (R₁ − (n₁ + 1)/2) / n₀.

    >>> auc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.4, 0.9]))
    0.875
    """
    n_ones = int(np.sum(y == 1))
    n_zeros = len(y) - n_ones
    if not n_ones or not n_zeros:
        return float("nan")
    _, position, counts = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[position]
    return float((np.mean(ranks[y == 1]) - (n_ones + 1) / 2) / n_zeros)

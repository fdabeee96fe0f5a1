"""Splits, missing values and normalisation. All that is learned from data is learned from the training part."""

from __future__ import annotations

import numpy as np

from .._core.optional import require
from .._core.types import Array, Indices
from .._core.validate import check_choice

TEST_SHARE = 0.2
SPLIT_SEED = 0
NORMALISATIONS = ("rank", "zscore")


def split(y: Indices) -> tuple[Indices, Indices]:
    """Row numbers of the training and of the test part: 80/20, the classes in equal shares.

    scikit-learn draws it, as the features of `datasets.SELECTED_15` were chosen on the training part of exactly this
    split: with another one the test part would have had a say.
    """
    selection = require("sklearn.model_selection", extra="paper", to="split the data of the paper")
    train, test = selection.train_test_split(
        np.arange(len(y)), test_size=TEST_SHARE, stratify=y, random_state=SPLIT_SEED
    )
    return train, test


def prepare(train: Array, test: Array, normalise: str) -> tuple[Array, Array]:
    """Both parts (n, d) without gaps, and normalised column by column."""
    check_choice(normalise, "normalise", NORMALISATIONS)
    return (normal_ranks if normalise == "rank" else z_scores)(*fill(train, test))


def fill(train: Array, test: Array) -> tuple[Array, Array]:
    """Both parts with the training median of its column in place of each NaN."""
    median = np.nanmedian(train, axis=0)
    return np.where(np.isnan(train), median, train), np.where(np.isnan(test), median, test)


def z_scores(train: Array, test: Array) -> tuple[Array, Array]:
    """(x − mean) / standard deviation, both of the training part; a column that never varies becomes 0."""
    mean, std = train.mean(axis=0), train.std(axis=0)
    is_constant = np.ptp(train, axis=0) == 0  # asked of the values, since std may be off 0 by rounding
    slope = np.where(is_constant, 0.0, 1 / np.where(is_constant, 1.0, std))
    return (train - mean) * slope, (test - mean) * slope


def normal_ranks(train: Array, test: Array) -> tuple[Array, Array]:
    r"""Φ⁻¹ of the share of training values below, so that each training column is close to N(0, 1).

    $$ x \mapsto \Phi^{-1}\Bigl(\frac{\#\{x_i < x\} + \tfrac12 \#\{x_i = x\}}{n}\Bigr) $$

    at training values, linear in the share between them, constant beyond the extremes. Equal values stay equal. No
    value leaves ±Φ⁻¹(1 − 1/2n): ±3.9 for 8,402 rows. (scikit-learn's quantile transform puts the two extremes at ±5.2
    whatever n is, and takes 1,000 quantiles.)
    """
    from scipy.special import ndtri

    as_train, as_test = np.empty_like(train), np.empty_like(test)
    for j in range(train.shape[1]):
        values, counts = np.unique(train[:, j], return_counts=True)
        shares = (np.cumsum(counts) - counts / 2) / len(train)
        as_train[:, j], as_test[:, j] = (np.interp(part[:, j], values, shares) for part in (train, test))
    return ndtri(as_train), ndtri(as_test)

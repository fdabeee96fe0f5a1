"""Rows that miss some of the features: what they have in common, and numbers that are none where nothing was moved."""

from __future__ import annotations

import numpy as np

from .._core.types import Array, Flags, Indices


def patterns(missing: Flags) -> list[tuple[Flags, Indices]]:
    """What rows miss, (d,) each, and the rows that miss just that; those that miss nothing come first."""
    if not missing.any():
        return [(np.zeros(missing.shape[1], dtype=np.bool_), np.arange(len(missing)))]
    different, which = np.unique(missing, axis=0, return_inverse=True)
    return [(each, np.flatnonzero(which.reshape(-1) == i)) for i, each in enumerate(different)]


def without_slopes(numbers: Array, missing: Flags) -> Array:
    """Numbers (r, d) with NaN where features are missing."""
    return np.where(missing, np.nan, numbers) if missing.any() else numbers

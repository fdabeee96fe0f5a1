"""Draws that lie further out than normal ones: made to be looked at, not to be averaged over."""

from __future__ import annotations

import numpy as np

from .._core.types import Array
from .keys import FAR_PURPOSE, Key, mirrored

FAR = 64
"""How many they are, in pairs z, −z."""

STRETCH = 2.5
"""How many times longer than normal ones. Steps along single directions would not come near a plane three standard
deviations away in an unknown direction, once features are many; whole draws do, in any number of features."""


def far_draws(d: int, seed: int, row: int | None) -> Array:
    """Normal draws (FAR, d) in pairs z, −z, stretched. In one dimension one pair in each stratum of |z|."""
    generator = Key(seed, row).generator(FAR_PURPOSE)
    pairs = FAR // 2
    if d == 1:
        from scipy.special import ndtri

        half = ndtri(0.5 + (np.arange(pairs) + generator.random(pairs)) / FAR)[:, None]
    else:
        half = generator.standard_normal((pairs, d))
    return STRETCH * mirrored(half)

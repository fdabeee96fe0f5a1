"""What fixes draws: a seed, the position of a row that has draws of its own, and what they are for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .._core.types import Array

PILOT_PURPOSE, SPARE_PURPOSE, FAR_PURPOSE = 1_000, 1_001, 1_002
"""Far from the purposes that designs number from 0."""

Units = Callable[[int], Array]
"""Makes the next draws of a sequence: for m, at least m further units of one or more draws each."""


@dataclass(frozen=True, slots=True)
class Key:
    """What fixes a sequence of draws: the seed, and the position of a row that has draws of its own."""

    seed: int
    row: int | None

    def seed_for(self, purpose: int) -> np.random.SeedSequence:
        """A seed for one purpose, independent of all others."""
        key = (0,) if self.row is None else (1, self.row)
        return np.random.SeedSequence(self.seed, spawn_key=(*key, purpose))

    def generator(self, purpose: int) -> np.random.Generator:
        """A generator for one purpose."""
        return np.random.Generator(np.random.PCG64(self.seed_for(purpose)))


@lru_cache(maxsize=8)  # calls on the same data ask for the same few again
def spare_draws(n: int, d: int, seed: int, row: int | None) -> Array:
    """n draws that neither a design hands out nor a pilot takes; read-only."""
    z = Key(seed, row).generator(SPARE_PURPOSE).standard_normal((n, d))
    z.flags.writeable = False
    return z


@lru_cache(maxsize=8)
def pilot_draws(n: int, d: int, seed: int, row: int | None) -> Array:
    """n draws in pairs z, −z, that no design hands out; read-only."""
    z = mirrored(Key(seed, row).generator(PILOT_PURPOSE).standard_normal((n // 2, d)))
    z.flags.writeable = False
    return z


def mirrored(z: Array) -> Array:
    """z₀, −z₀, z₁, −z₁, ..."""
    return np.stack([z, -z], axis=1).reshape(-1, z.shape[1])

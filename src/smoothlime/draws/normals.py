"""Standard normal numbers by position: any run of an endless sequence, on any device.

Numbers 2i and 2i + 1 come from 64 bits, a hash of i (splitmix64: Steele, Lea and Flood, 2014), half of which give a
radius and half an angle (Box and Muller, 1958). Nothing is handed on from number to number, so that a graphics card
makes the same numbers where it needs them, but for the last digit of a logarithm or a cosine. A radius of 32 bits ends
at 6.8, which one number in 10¹¹ would exceed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core.types import Array

MIXES, LAST_SHIFT = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)), 31
"""Shifts and odd factors of the hash, round by round."""

GENERATOR = "splitmix64"
"""What files call it: draws of another generator cannot be repeated."""

HALF = 2**32

CACHED = 2**13
"""Pairs made together: what is made on the way stays in a processor's cache."""

FEWEST_CHANGES = 24


@dataclass(frozen=True, slots=True)
class Sequence:
    """What fixes an endless sequence: where its counter begins, and the odd step by which that goes on."""

    begin: int
    step: int

    @classmethod
    def of(cls, seed: np.random.SeedSequence) -> Sequence:
        """The sequence of a seed. Steps whose bits hardly change from one to the next mix badly, and are mended."""
        begin, step = (int(word) for word in seed.generate_state(2, np.uint64))
        step |= 1
        if (step ^ step >> 1).bit_count() < FEWEST_CHANGES:
            step ^= 0xAAAAAAAAAAAAAAAA
        return cls(begin, step)


@dataclass(frozen=True, slots=True)
class Run:
    """The numbers of a sequence from one position to another."""

    sequence: Sequence
    start: int
    stop: int

    @property
    def pairs(self) -> tuple[int, int]:
        """The hashes behind them: from the first to just beyond the last."""
        return self.start // 2, -(-self.stop // 2)

    @property
    def part(self) -> slice:
        """Where they are among the numbers that these hashes give."""
        offset = self.start % 2
        return slice(offset, offset + self.stop - self.start)


def normals(run: Run) -> Array:
    """The numbers of a run, (stop − start,)."""
    first, last = run.pairs
    made = np.empty((last - first, 2))

    for start in range(0, len(made), CACHED):
        _fill(made[start : start + CACHED], run.sequence, first + start)
    return made.reshape(-1)[run.part]


def hashes(sequence: Sequence, start: int, stop: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """64 bits each for the positions from start to stop."""
    bits = np.arange(start + 1, stop + 1, dtype=np.uint64)
    bits *= np.uint64(sequence.step)
    bits += np.uint64(sequence.begin)
    for shift, factor in MIXES:
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(LAST_SHIFT)
    return bits


def _fill(out: Array, sequence: Sequence, start: int) -> None:
    """Write pairs (n, 2) from a position on."""
    halves = hashes(sequence, start, start + len(out)).astype("<u8", copy=False).view("<u4").reshape(-1, 2)
    radius = halves[:, 0] * (1 / HALF)
    radius += 0.5 / HALF  # the middle of its cell: never 0
    np.log(radius, out=radius)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    angle = halves[:, 1] * (2 * np.pi / HALF)
    np.multiply(radius, np.cos(angle), out=out[:, 0])
    np.multiply(radius, np.sin(angle), out=out[:, 1])

"""Scrambled Sobol' sequences as normal draws.

Several sequences are independent of each other, as each is scrambled by itself. The runs of one sequence are not, and
errors are made of them (see `designs`): they tell its error where any two of its coordinates spread points no worse
than chance would. A Sobol' sequence does not always: some two of its coordinates fill few of their cells, in all runs
alike, so that all runs err alike and nobody sees it. Its first seven coordinates do not (`benchmarks/bench_nets.py`),
but in slices of one of them, across which they are rotated (`rotation`).

So points change places in the others, within blocks that runs are made of: sixteen points at first, later an eighth of
all before. What each coordinate holds stays the same, in each run and in all of them, and it is as even as it was. What
two coordinates have to do with each other is left to chance, anew for each block; so below 256 points, where a block is
more than a run, runs may still err alike, and intervals are called indicative. Up to the sixteenth coordinate a
block is shifted as a whole, which leaves it as even in two coordinates as it was; beyond, where that is little, places
are dealt out at random.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .._core.types import Array
from .keys import Key, Units

OPENING = 1_024
"""Draws of scrambled sequences that are kept for later calls, where CACHED_FEATURES are not exceeded."""

CACHED_FEATURES = 128

EVEN_TOGETHER = 7
"""Coordinates of which any two are even together, from 256 points on."""

SHIFTED = 16
"""Coordinates up to which blocks are shifted, and beyond which they are shuffled."""

FIRST_BLOCK, BLOCKS = 16, 8
"""Points of each of the first blocks, and blocks in each doubling of the sequence after sixteen of those."""


def sobol(scrambles: int) -> Callable[[int, Key], tuple[Units, int]]:
    """Units of one point of each of so many scrambled sequences."""

    def units(d: int, key: Key) -> tuple[Units, int]:
        if key.row is not None or d > CACHED_FEATURES:
            return _draws(_scrambled(d, key, scrambles), _places(d, key, scrambles)), scrambles
        opening = _opening(d, key, scrambles)
        return _after(opening, scrambles, lambda: _continued(d, key, scrambles)), scrambles

    return units


class _Places:
    """Which points change places, in the coordinates of one sequence that are not even together."""

    def __init__(self, d: int, shifts: np.random.Generator, orders: np.random.Generator) -> None:
        self._d = d
        self._shifts, self._orders = shifts, orders  # two, as blocks must not depend on how many are made at once
        self._position = 0

    def piece(self, m: int) -> int:
        """Points to make at once for m to come: whole blocks, of one size."""
        block, end = self._blocks
        return min(max(block, 2 ** (m - 1).bit_length()), end - self._position)

    @property
    def _blocks(self) -> tuple[int, int]:
        """Points of the next block, and where larger ones begin."""
        first = FIRST_BLOCK * 2 * BLOCKS
        if self._position < first:
            return FIRST_BLOCK, first
        begin = 2 ** (self._position.bit_length() - 1)
        return begin // BLOCKS, 2 * begin

    def change(self, uniform: Array) -> None:
        """In the next points (n, d), which are a piece."""
        block, _ = self._blocks
        self._position += len(uniform)
        if self._d <= EVEN_TOGETHER:
            return
        blocks = uniform.reshape(-1, block, self._d)[:, :, EVEN_TOGETHER:]
        # one point of a block lies in each of its cells
        cell, ordered = (blocks * block).astype(np.intp), np.sort(blocks, axis=1)
        near = SHIFTED - EVEN_TOGETHER
        shifted, others = cell[:, :, :near], cell[:, :, near:]
        shifted ^= self._shifts.integers(block, size=(len(cell), 1, shifted.shape[2]))
        if others.size:
            others[...] = self._orders.permuted(others.swapaxes(1, 2), axis=2).swapaxes(1, 2)
        blocks[...] = np.take_along_axis(ordered, cell, axis=1)

    def skip(self, n: int) -> None:
        """Go on n points, as if they had been changed."""
        end = self._position + n
        while self._position < end:
            self.change(np.zeros((self.piece(end - self._position), self._d)))


def _places(d: int, key: Key, scrambles: int) -> _Places | None:
    """Of one sequence; several are independent as they are."""
    return _Places(d, key.generator(1), key.generator(2)) if scrambles == 1 else None


def _draws(engines: list[Any], places: _Places | None) -> Units:
    """Normal draws from scrambled sequences, in turn."""
    from scipy.special import ndtri

    half_cell = 0.5**31  # coordinates are multiples of 2⁻³⁰: their midpoints avoid 0, and so −inf

    def piece(m: int) -> Array:
        # SciPy warns of anything but powers of two; the stream keeps what is left over
        whole = 2 ** (m - 1).bit_length() if places is None else places.piece(m)
        uniform = np.stack([engine.random(whole) for engine in engines], axis=1)
        if places is not None:
            places.change(uniform[:, 0])
        return ndtri(uniform.reshape(-1, uniform.shape[-1]) + half_cell)

    def draw(m: int) -> Array:
        made = [piece(m)]
        while (missing := m - sum(map(len, made)) // len(engines)) > 0:
            made.append(piece(missing))
        return made[0] if len(made) == 1 else np.concatenate(made)

    return draw


def _scrambled(d: int, key: Key, scrambles: int) -> list[Any]:
    """Scrambled Sobol' engines that nothing has been drawn from."""
    from scipy.stats import qmc

    return [qmc.Sobol(d, scramble=True, rng=key.generator(r)) for r in range(scrambles)]


# scrambling costs more than drawing, and the sequences that rows share are asked for again and again
_scrambled_once = lru_cache(maxsize=8)(_scrambled)


def _continued(d: int, key: Key, scrambles: int) -> Units:
    """What follows the opening."""
    engines = [copy.copy(engine) for engine in _scrambled_once(d, key, scrambles)]
    for engine in engines:
        engine.reset()  # the copy starts over with a state of its own; what it shares is never written
        engine.fast_forward(OPENING // scrambles)
    places = _places(d, key, scrambles)
    if places is not None:
        places.skip(OPENING)
    return _draws(engines, places)


@lru_cache(maxsize=8)
def _opening(d: int, key: Key, scrambles: int) -> Array:
    """The first draws of a sequence that rows share, ready to hand."""
    draws = _draws(_scrambled(d, key, scrambles), _places(d, key, scrambles))(OPENING // scrambles)
    draws.flags.writeable = False
    return draws


def _after(opening: Array, unit: int, rest: Callable[[], Units]) -> Units:
    """Units that hand out an opening first; what follows is made only when it is asked for."""
    ready: list[Array] = [opening]
    further: list[Units] = []

    def draw(m: int) -> Array:
        parts = [ready.pop()] if ready else []
        missing = m - sum(map(len, parts)) // unit
        if missing > 0:
            if not further:
                further.append(rest())
            parts.append(further[0](missing))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    return draw

"""Long runs of standard normal draws by several threads, equal to the bit to those that one would make.

NumPy's ziggurat takes one number of the bit generator for most draws and several for a few, so that nobody knows
beforehand where the draws of a second thread begin. But a reader who starts at the wrong number, inside a draw, is soon
in step with one who started right, since almost every number begins a draw. So each thread starts reading at a guess
and reads up to where the next one started; a guess that was wrong is made good by reading on from both sides until they
are in step.
"""

from __future__ import annotations

from ctypes import memmove
from functools import lru_cache
from math import prod, sqrt
from typing import Any

import numpy as np

from ._parallel import in_parts, threads
from ._types import Array

NUMBERS_PER_DRAW = 1.023
"""A little more than the ziggurat takes; a wrong value would cost time, and no more."""

WORD = 2**128


def standard_normal(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """What `generator.standard_normal(shape)` returns, and the generator left as that would leave it."""
    return by_threads(generator, shape, threads(prod(shape)))


def by_threads(generator: np.random.Generator, shape: tuple[int, ...], count: int) -> Array:
    """The same, by a given number of threads."""
    n = prod(shape)
    if min(count, n // count) <= 1 or not isinstance(generator.bit_generator, np.random.PCG64):
        return generator.standard_normal(shape)
    state: Any = generator.bit_generator.state
    draws = np.empty(n)  # n numbers hold at most n draws
    pieces = in_parts(lambda part: _Piece(state, part, draws[part]), n, count)
    parts, end = _joined(pieces, state)
    filled = 0
    for part in parts:
        if filled + len(part) > n:
            return generator.standard_normal(shape)
        # to the left, over what has been moved already; NumPy would copy it twice
        memmove(draws[filled:].ctypes.data, part.ctypes.data, part.nbytes)
        filled += len(part)
    rest = _Reader(state, end)
    rest.draw(draws[filled:])
    generator.bit_generator.state = rest.state
    return draws.reshape(shape)


class _Reader:
    """Reads draws from some position in the stream of numbers."""

    def __init__(self, state: Any, position: int) -> None:
        self._bits = np.random.PCG64(0)
        self._bits.state = state
        self._bits.advance(position)
        self._generator = np.random.Generator(self._bits)
        self.position = position

    @property
    def state(self) -> Any:
        """As NumPy keeps it."""
        return self._bits.state

    def draw(self, out: Array) -> None:
        """Fill `out`, and count the numbers that it took."""
        before = self.state["state"]
        self._generator.standard_normal(out=out)
        self.position += _numbers_between(before["state"], self.state["state"]["state"], before["inc"])


class _Piece:
    """Draws from the start of a part of the stream until one ends at its end or beyond."""

    def __init__(self, state: Any, part: slice, space: Array) -> None:
        self.start = part.start
        reader = _Reader(state, part.start)
        count = 0
        while reader.position < part.stop:
            left = part.stop - reader.position
            step = max(1, int(left / NUMBERS_PER_DRAW - sqrt(left)))  # short of the end by several deviations
            reader.draw(space[count : count + step])
            count += step
        self.draws = space[:count]
        self.stop = reader.position


def _joined(pieces: list[_Piece], state: Any) -> tuple[list[Array], int]:
    """The draws of all pieces in order, and the position behind the last of them."""
    parts: list[Array] = []
    position = 0
    for piece in pieces:
        true, guessed = _Reader(state, position), _Reader(state, piece.start)
        one, between, skipped = np.empty(1), [], 0
        while true.position != guessed.position:
            if guessed.position < true.position:
                guessed.draw(one)
                skipped += 1
            else:
                true.draw(one)
                between.append(one[0])
        parts += [np.array(between), piece.draws[skipped:]]
        position = max(piece.stop, true.position)
    return parts, position


def _numbers_between(before: int, after: int, increment: int) -> int:
    """Steps of the congruential generator from one state to a later one, found bit by bit (Brown, 1994)."""
    steps, bit, factor = 0, 1, _multiplier()
    while before != after:
        if (before ^ after) & bit:
            before = (before * factor + increment) % WORD
            steps |= bit
        bit <<= 1
        increment = (factor + 1) * increment % WORD
        factor = factor * factor % WORD
    return steps


@lru_cache(maxsize=1)
def _multiplier() -> int:
    """The generator's factor, seen in one step from 1 with an increment of 1."""
    bits = np.random.PCG64(0)
    bits.state = bits.state | {"state": {"state": 1, "inc": 1}}
    bits.advance(1)
    seen: Any = bits.state
    return int(seen["state"]["state"]) - 1

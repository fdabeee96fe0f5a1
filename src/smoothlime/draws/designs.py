"""Designs: endless, reproducible sequences of standard normal draws, in independent blocks.

A design is a sequence of points z₀, z₁, ... each exactly N(0, I), fixed by a seed. Consecutive draws form
blocks; draws of one block depend on each other, blocks do not. A `Layout` deals whole blocks in turn to
G groups, and groups are what standard errors are made of.

| design       | block | one block holds                                                              |
|--------------|-------|------------------------------------------------------------------------------|
| iid          | 1     | one draw                                                                     |
| antithetic   | 2     | z, −z                                                                        |
| orthogonal   | 2d    | ±r_j q_j for a random orthonormal basis q and radii r_j ~ χ_d                |
| sobol        | 1     | one point of one of 8 scrambled Sobol' sequences; each sequence is a group   |
| aligned      | n/16  | a run of points of one scrambled Sobol' sequence, rotated row by row (`rotation`) |
| aligned-pairs | n/16 | the same, each point z followed by −z                                          |
| differences  | 2d    | as orthogonal with r_j ~ χ_{d+2}: not normal, only for the method of the name |

Where C-LIME fits aligned draws, a third of them are made longer, and all are weighted (`long_draws`).

The sixteen runs of one sequence are not independent: together they are the better for it. Let V(m) be the variance of
a mean over m points of the sequence. Under a random shift the variance between runs, divided by their number, estimates
(V(n/16) − V(n))/15: it is V(n) where points are no better than independent ones, and larger where they are better. So
errors made of runs are not too small on average, and the estimate has all that one long sequence gives. Where points
are worse than independent ones errors would be too small: `sobol` sees to it that they are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._core.types import Array
from ..errors import InvalidArgument
from .blocks import PIECE, Layout
from .keys import Key, Units, mirrored
from .normals import Run, Sequence, normals
from .sobol import sobol

GROUPS = 32
"""Independent groups of draws behind a standard error."""

SCRAMBLES = 8
"""Independent scramblings of a Sobol' sequence; each is a group."""

PARTS = 16
"""Runs of one scrambled Sobol' sequence; each is a group. Fewer are less cautious, with fewer degrees of freedom."""

FEWEST_BLOCKS = 8
"""With fewer whole blocks than this, pairs are dealt to groups instead."""

SOBOL_FEATURES = 21_201
"""Dimensions for which direction numbers are tabulated."""


class Stream:
    """The draws of one design and seed, in order: `take(a)` then `take(b)` equals `take(a + b)`.

    `units(m)` makes at least m further units of `unit` draws each; what is not taken is kept. Where draws are paired it
    makes the first z of each pair, and −z follows by itself.
    """

    def __init__(self, units: Units, unit: int, d: int, *, is_paired: bool = False) -> None:
        self.is_paired = is_paired
        self._units = units
        self._unit = unit
        self._rest = np.empty((0, d))
        self._second = np.empty((0, d))  # of a pair that was cut in two

    def take(self, n: int) -> Array:
        """The next n draws, (n, d)."""
        if not self.is_paired:
            return self._next(n)
        pairs = mirrored(self._next((n - len(self._second) + 1) // 2))
        drawn = np.concatenate([self._second, pairs]) if len(self._second) else pairs
        self._second = drawn[n:]
        return drawn[:n]

    def take_firsts(self, n: int) -> Array:
        """The first of each of the next pairs, (n / 2, d); the second is its negative."""
        assert self.is_paired
        assert n % 2 == len(self._second) == 0
        return self._next(n // 2)

    @property
    def can_be_made_elsewhere(self) -> bool:
        """Whether `run` says what draws are."""
        return isinstance(self._units, Plain)

    def run(self, n: int) -> Run:
        """Which numbers the next n draws are, or the first of each pair, for somebody else to make."""
        assert isinstance(self._units, Plain)
        assert len(self._rest) == len(self._second) == 0
        return self._units.run(n // 2 if self.is_paired else n)

    def _next(self, n: int) -> Array:
        missing = n - len(self._rest)
        if missing > 0:
            fresh = self._units(-(-missing // self._unit))
            self._rest = np.concatenate([self._rest, fresh]) if len(self._rest) else fresh
        taken, self._rest = self._rest[:n], self._rest[n:]
        return taken


@dataclass(frozen=True, slots=True)
class Design:
    """One way to draw: how its sequence is made, and how its draws depend on each other."""

    name: str
    block: Callable[[int], int]
    """Draws of a block, for d features; nets are rounded and dealt by their groups, and do not ask"""
    units: Callable[[int, Key], tuple[Units, int]]
    is_paired: bool = False
    is_net: bool = False
    is_aligned: bool = False
    """Whether draws are rotated towards what a pilot finds, and groups are parts of one sequence"""
    pairs_below: int = FEWEST_BLOCKS
    """Whole blocks below which pairs are dealt to groups instead"""

    def stream(self, d: int, seed: int, row: int | None = None) -> Stream:
        """The sequence for a seed: shared by all rows, or keyed by the position of one row."""
        if self.is_net and d > SOBOL_FEATURES:
            msg = f"design={self.name!r} goes up to {SOBOL_FEATURES} features; got {d}. Use design='antithetic'"
            raise InvalidArgument(msg, argument="design")
        units, unit = self.units(d, Key(seed, row))
        return Stream(units, unit, d, is_paired=self.is_paired)

    def whole(self, n: int, d: int) -> int:
        """n rounded up to whole blocks; for nets to powers of two in each, where they are balanced."""
        if self.is_net:
            groups = PARTS if self.is_aligned else SCRAMBLES
            n = max(n, 2 * groups) if self.is_paired else n
            return groups * 2 ** max(0, int(np.ceil(np.log2(n / groups))))
        block = self.block(d)
        return block * -(-n // block)

    def below(self, n: int, d: int) -> int:
        """n rounded down to whole blocks; for nets to the same number of points in each, for one net to a whole one."""
        if self.is_aligned:
            least = 2 * PARTS if self.is_paired else PARTS
            return PARTS * 2 ** int(np.log2(n / PARTS)) if n >= least else 0
        block = SCRAMBLES if self.is_net else self.block(d)
        return block * (n // block)

    def across(self, z: Array) -> Array:
        """The coordinates (..., c) of draws (..., d) that steps may go across: of all features, or of each its own."""
        return z[..., :1] if self.is_aligned else z

    def layout(self, n: int, d: int) -> Layout:
        """Blocks and groups for n or more draws of d features; for n just, where groups are parts of one sequence."""
        if self.is_aligned:
            return Layout(max(1, n // PARTS), PARTS, piece=PIECE)
        if self.is_net:
            return Layout(1, SCRAMBLES, piece=PIECE)
        block = self.block(d)
        if n // block < self.pairs_below and block > 2:
            block = 2
        return Layout(block, GROUPS)


class Plain:
    """Units of independent draws, one after the other."""

    def __init__(self, d: int, key: Key) -> None:
        self._d = d
        self._sequence = Sequence.of(key.seed_for(0))
        self._position = 0

    def __call__(self, m: int) -> Array:
        """The next m draws, (m, d)."""
        return normals(self.run(m)).reshape(m, self._d)

    def run(self, m: int) -> Run:
        """Which numbers the next m draws are, for somebody else to make."""
        start, self._position = self._position, self._position + m * self._d
        return Run(self._sequence, start, self._position)


def _plain(d: int, key: Key) -> tuple[Units, int]:
    return Plain(d, key), 1


def _orthogonal(extra_degrees: int) -> Callable[[int, Key], tuple[Units, int]]:
    def units(d: int, key: Key) -> tuple[Units, int]:
        directions, radii = key.generator(0), key.generator(1)  # two streams: blocks then do not depend on batching

        def draw(m: int) -> Array:
            q, upper = np.linalg.qr(directions.standard_normal((m, d, d)))
            # QR leaves signs to the library; fixing them makes the basis uniform (Haar)
            q *= np.sign(np.diagonal(upper, axis1=1, axis2=2))[:, None, :]
            r = np.sqrt(radii.chisquare(d + extra_degrees, (m, d)))
            return (q.transpose(0, 2, 1) * r[:, :, None]).reshape(m * d, d)

        return draw, d

    return units


DESIGNS = {
    design.name: design
    for design in (
        Design("iid", lambda d: 1, _plain),
        Design("antithetic", lambda d: 2, _plain, is_paired=True),
        Design("orthogonal", lambda d: 2 * d, _orthogonal(0), is_paired=True),
        Design("sobol", lambda d: 1, sobol(SCRAMBLES), is_net=True),
        Design("aligned", lambda d: 1, sobol(1), is_net=True, is_aligned=True),
        Design("aligned-pairs", lambda d: 2, sobol(1), is_paired=True, is_net=True, is_aligned=True),
        # a block is one whole estimate here, and its residuals make pairs usable up to 32 blocks
        Design("differences", lambda d: 2 * d, _orthogonal(2), is_paired=True, pairs_below=GROUPS),
    )
}

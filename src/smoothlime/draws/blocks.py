"""How draws are dealt: whole blocks to groups in turn, and runs of them to the calls that evaluate them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Indices

PIECE = 256
"""Consecutive draws of a net that are compared among themselves, and so never parted."""

LOOKED_AT = 4
"""One in so many of those pieces is looked at closely."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How draws are dealt to groups: block i, of `block` draws, goes to group i mod `groups`."""

    block: int
    groups: int
    piece: int = 0
    """Draws that stay together, however few are evaluated at once, and that a block may be drawn in; 0 for nobody"""

    def sizes(self, n: int) -> Array:
        """Draws of each group among the first n: (g,) for the groups that have had any."""
        whole, rest = divmod(n // self.block, self.groups)
        sizes = self.block * (whole + (np.arange(self.groups) < rest)).astype(np.float64)
        return sizes[sizes > 0]

    def chunks(self, start: int, stop: int, limit: int) -> Iterator[Chunk]:
        """Cut the draws from start to stop into runs of about `limit`: whole rounds of all groups, or parts of one."""
        turn = self.block * self.groups
        if self.piece:
            limit = max(self.piece, limit - limit % self.piece)
        while start < stop:
            offset = start % turn
            if self.piece and self.block > limit:
                n = min(limit, self.block - start % self.block, stop - start)
                yield Chunk(n, slice(offset // self.block, offset // self.block + 1), n, start)
                start += n
                continue
            if offset == 0 and stop - start >= turn and turn <= limit:
                n = turn * (min(stop - start, limit) // turn)
                groups = slice(0, self.groups)
            else:
                n = self.block * max(1, min(turn - offset, stop - start, limit) // self.block)
                groups = slice(offset // self.block, (offset + n) // self.block)
            yield Chunk(n, groups, self.block, start)
            start += n


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of consecutive draws: how many, and the groups they belong to."""

    n: int
    groups: slice
    block: int
    start: int = 0
    """Draws of the sequence before it"""

    @property
    def count(self) -> int:
        """How many groups."""
        return self.groups.stop - self.groups.start

    def by_group(self, z: Array) -> Array:
        """Draws (n, d) in sequence order as (g, b, d), group by group."""
        by_group: Array = self._rounds(z).transpose(1, 0, 2, 3).reshape(self.count, -1, z.shape[-1])
        return by_group

    def by_turn(self, z: Any) -> Any:
        """Draws in sequence order as (rounds, block, g, d), the same draw of each group side by side: a view.

        Of all n draws, or of the first of each pair: blocks are then half as long. An array or a tensor.
        """
        return self._rounds(z).swapaxes(1, 2)

    def looked_at(self) -> Indices:
        """Pieces (p, PIECE) of the sequence that are looked at closely, or the first if it is shorter.

        As positions among the draws of the chunk in sequence order. Where runs of a net are long, a point of all of
        them lies in the same piece of each: digits see to it that all pieces of a run are looked at in some run.
        """
        whole = [first for first in range(0, self.n - PIECE + 1, PIECE) if _is_looked_at((self.start + first) // PIECE)]
        if self.start == 0 and self.n < PIECE:
            return np.arange(self.n)[None]
        return np.array(whole, dtype=np.intp)[:, None] + np.arange(PIECE)

    def neighbours(self, z: Array, *, by_turn: bool = False) -> Indices | None:
        """Draws of each piece that is looked at, (ρ, p, PIECE, c), in the order of each of their coordinates.

        Of draws (ρ, n, c), and as positions among them: by group, or by turn, flattened.
        """
        pieces = self.looked_at()
        if not len(pieces):
            return None
        dealt = (self.by_turn if by_turn else self.by_group)(np.arange(float(self.n))[:, None])
        where = np.argsort(dealt.reshape(-1))[pieces][None, :, :, None]
        return np.take_along_axis(where, np.argsort(z[:, where[0, :, :, 0]], axis=2), axis=2)

    def _rounds(self, z: Any) -> Any:
        return z.reshape(-1, self.count, self.block * len(z) // self.n, z.shape[-1])


def _is_looked_at(piece: int) -> bool:
    """One in LOOKED_AT: those whose digits to that base add up to a multiple of it."""
    total = 0
    while piece:
        piece, digit = divmod(piece, LOOKED_AT)
        total += digit
    return total % LOOKED_AT == 0

"""How draws are dealt: whole blocks to groups in turn, and runs of them to the calls that evaluate them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array


@dataclass(frozen=True, slots=True)
class Layout:
    """How draws are dealt to groups: block i, of `block` draws, goes to group i mod `groups`."""

    block: int
    groups: int
    piece: int = 0
    """Draws that a block may be drawn in pieces of, one or a pair; 0 where it may not"""

    def sizes(self, n: int) -> Array:
        """Draws of each group among the first n: (g,) for the groups that have had any."""
        whole, rest = divmod(n // self.block, self.groups)
        sizes = self.block * (whole + (np.arange(self.groups) < rest)).astype(np.float64)
        return sizes[sizes > 0]

    def chunks(self, start: int, stop: int, limit: int) -> Iterator[Chunk]:
        """Cut the draws from start to stop into runs of about `limit`: whole rounds of all groups, or parts of one."""
        turn = self.block * self.groups
        while start < stop:
            offset = start % turn
            if self.piece and self.block > limit:
                n = min(self.piece * max(1, limit // self.piece), self.block - start % self.block, stop - start)
                yield Chunk(n, slice(offset // self.block, offset // self.block + 1), n)
                start += n
                continue
            if offset == 0 and stop - start >= turn and turn <= limit:
                n = turn * (min(stop - start, limit) // turn)
                groups = slice(0, self.groups)
            else:
                n = self.block * max(1, min(turn - offset, stop - start, limit) // self.block)
                groups = slice(offset // self.block, (offset + n) // self.block)
            yield Chunk(n, groups, self.block)
            start += n


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of consecutive draws: how many, and the groups they belong to."""

    n: int
    groups: slice
    block: int

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

    def _rounds(self, z: Any) -> Any:
        return z.reshape(-1, self.count, self.block * len(z) // self.n, z.shape[-1])

"""What groups of draws say, kept on a torch device: only what is asked for travels.

With many features it is 32 times as large as the slopes themselves, and most callers never look at it. Results that
wait there may not fill a card in which networks are to run: beyond a share of its memory, the oldest are fetched.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.types import Array
from .._core.xp import beside, on_host
from ..space.neighbourhood import Factor
from ..uncertainty.jackknife import standard_error
from ..uncertainty.norms import RowNorms

SHARE = 32
"""A 32nd of a card's memory may hold what groups say."""

_waiting: list[weakref.ref[TorchPseudovalues]] = []


class TorchGroupSums:
    """Σ∇f (r, g, f) by group, in float64."""

    def __init__(self, torch: Any, sums: Any) -> None:
        self.torch = torch
        self.sums = sums
        self._means: tuple[Any, TorchPseudovalues] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows × targets, groups, features."""
        return tuple(self.sums.shape)

    def means(self, sizes: Array, factor: Factor, quantile: float | None = None) -> tuple[Any, TorchPseudovalues]:
        """The mean of all draws, (r, f), and those of the groups of sizes (g,), which are the same at each call.

        The first call may say of how many standard errors the radius will be.
        """
        if self._means is None:
            by_group = self.sums[:, : len(sizes)] / beside(self.sums, sizes[:, None])
            mean = self.sums.sum(dim=1).div_(float(sizes.sum()))
            spread = standard_error(by_group, sizes)
            lengths = RowNorms.of(mean, spread, by_group, sizes, factor, quantile) if factor.is_diagonal else None
            self._means = mean, keep(TorchPseudovalues(self.torch, by_group, spread, lengths))
        return self._means


class TorchPseudovalues:
    """What groups say, (r, g, f), the standard error of their mean, (r, f), and perhaps their lengths."""

    def __init__(self, torch: Any, by_group: Any, spread: Any, lengths: RowNorms | None = None) -> None:
        self.torch = torch
        self.spread = spread
        self._lengths = lengths
        self.shape: tuple[int, ...] = tuple(by_group.shape)
        self._by_group: Any = by_group  # None once it has been fetched
        self._fetched: Array | None = None

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Array]]:
        """Copied and sent elsewhere as an array."""
        return np.asarray, (self.fetch(),)

    @property
    def bytes_on(self) -> tuple[Any, int]:
        """The device, and the memory taken there."""
        if self._by_group is None:
            return None, 0
        taken = [self._by_group, self.spread]
        return self._by_group.device, sum(each.numel() * each.element_size() for each in taken)

    @property
    def wanted(self) -> tuple[Any, ...]:
        """Tensors that a look asks for."""
        made = self._lengths
        return () if made is None or made.length is None else (self.spread, made.squares, made.length)

    def take_norms(self, slopes: Any, factor: Factor) -> RowNorms | None:
        """Lengths of these slopes, where they were made ahead; nobody asks twice, so they are forgotten."""
        made, self._lengths = self._lengths, None
        return made if made is not None and made.slopes is slopes and made.factor is factor else None

    def fetch(self) -> Array:
        """All of it, on the host; the device forgets it."""
        if self._fetched is None:
            self._fetched, self.spread = on_host(self._by_group), on_host(self.spread)
            self._by_group = self._lengths = None
        return self._fetched

    @property
    def numbers(self) -> Any:
        """A tensor of it, where it is."""
        return self.torch.from_numpy(self._fetched) if self._by_group is None else self._by_group


def keep(pseudovalues: TorchPseudovalues) -> TorchPseudovalues:
    """Let it wait on its device, with the others that do; beyond their share of its memory the oldest are fetched."""
    device, _ = pseudovalues.bytes_on
    if device.type != "cuda":
        return pseudovalues
    allowed = pseudovalues.torch.cuda.get_device_properties(device).total_memory // SHARE
    make_room(pseudovalues, allowed)
    return pseudovalues


def make_room(pseudovalues: TorchPseudovalues, allowed: int) -> None:
    """Count the newest among those that wait, and fetch the oldest of its device until `allowed` bytes are left."""
    alive = [each for each in (reference() for reference in _waiting) if each is not None]
    alive = [each for each in alive if each.bytes_on[1]] + [pseudovalues]
    device = pseudovalues.bytes_on[0]
    taken = sum(size for where, size in (each.bytes_on for each in alive) if where == device)
    for each in alive[:-1]:
        where, size = each.bytes_on
        if taken <= allowed:
            break
        if where == device:
            each.fetch()
            taken -= size
    _waiting[:] = [weakref.ref(each) for each in alive if each.bytes_on[1]]

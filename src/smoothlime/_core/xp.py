"""NumPy arrays and torch tensors alike: statistics are made where the numbers are."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .types import Array

WORTH_WAITING = 2**12
"""Numbers from which on it takes longer to pin their memory than to wait until the device is free."""


def library(numbers: Any) -> Any:
    """NumPy for its arrays and torch for its tensors: they share the names of what statistics need."""
    return np if isinstance(numbers, np.ndarray) else sys.modules["torch"]


def beside(numbers: Any, given: Any) -> Any:
    """What can be combined with other numbers: an array, or a tensor on their device, if they are one.

    What little goes to a graphics card goes there behind all that it was given before, and nobody waits for it.
    """
    if isinstance(numbers, np.ndarray):
        return on_host(given)
    if not isinstance(given, np.ndarray):
        return given.to(numbers.device)  # it may have been fetched since, or the numbers have
    some = given[tuple(slice(None) if stride else slice(1) for stride in given.strides)]  # not what is only repeated
    if some.size and bool((some == some.flat[0]).all()):  # need not travel
        return numbers.new_full((1,) * given.ndim, float(some.flat[0])).expand(given.shape)
    safe = np.ascontiguousarray(some) if some.flags.writeable else some.copy()  # torch warns of what it may not write
    tensor = library(numbers).from_numpy(safe)
    if numbers.is_cuda and safe.size <= WORTH_WAITING:
        tensor = tensor.pin_memory()  # torch keeps it from being used again until it has arrived
    return tensor.to(numbers.device, non_blocking=True).expand(given.shape)


def merge_groups(sums: Any) -> None:
    """Sums (r, g, ...) of each two groups into the first half of them, in place; the others are emptied."""
    half = sums.shape[1] // 2
    sums[:, :half] = sums[:, 0::2] + sums[:, 1::2]
    sums[:, half:] = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """A tensor's numbers on their way to the host."""

    arriving: Any
    arrived: Any
    """What has happened once they are there"""

    def fetch(self) -> Array:
        """A copy: the memory they arrive in is pinned, and soon used again."""
        self.arrived.synchronize()
        return np.array(self.arriving.numpy())


def send(tensors: Sequence[Any]) -> None:
    """Have tensors of a graphics card travel to the host before all that it is given from now on.

    So `on_host`, which is to be asked for each of them once, need not wait for that.
    """
    torch = library(tensors[0])
    together = torch.cat([each.reshape(-1) for each in tensors])
    pinned = torch.empty(together.shape, dtype=together.dtype, pin_memory=True).copy_(together, non_blocking=True)
    arrived = torch.cuda.Event()
    arrived.record(torch.cuda.current_stream(together.device))  # of that card, whichever is the current one
    for each, part in zip(tensors, pinned.split([each.numel() for each in tensors]), strict=True):
        each.sent = Sent(part.view(each.shape), arrived)


def on_host(numbers: Any) -> Array:
    """The same numbers as an array, in room that NumPy makes: it asks for large pages, and torch does not."""
    if isinstance(numbers, np.ndarray):
        return numbers
    sent: Sent | None = vars(numbers).pop("sent", None)
    if sent is not None:
        return sent.fetch()
    if not numbers.is_cuda:
        return np.asarray(numbers.cpu().numpy())
    made: Array = np.empty(tuple(numbers.shape))
    library(numbers).from_numpy(made).copy_(numbers)
    return made

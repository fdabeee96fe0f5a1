"""NumPy arrays and torch tensors alike: statistics are made where the numbers are."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ._types import Array


def library(numbers: Any) -> Any:
    """NumPy for its arrays and torch for its tensors: they share the names of what statistics need."""
    return np if isinstance(numbers, np.ndarray) else sys.modules["torch"]


def beside(numbers: Any, array: Array) -> Any:
    """An array as something that can be combined with other numbers: a tensor on their device, if they are one."""
    if isinstance(numbers, np.ndarray):
        return array
    some = array[tuple(slice(None) if stride else slice(1) for stride in array.strides)]  # not what is only repeated
    safe = np.ascontiguousarray(some) if some.flags.writeable else some.copy()  # torch warns of what it may not write
    return library(numbers).from_numpy(safe).to(numbers.device).expand(array.shape)


def merge_groups(sums: Any) -> None:
    """Sums (r, g, ...) of each two groups into the first half of them, in place; the others are emptied."""
    half = sums.shape[1] // 2
    sums[:, :half] = sums[:, 0::2] + sums[:, 1::2]
    sums[:, half:] = 0.0


def on_host(numbers: Any) -> Array:
    """The same numbers as an array."""
    return numbers if isinstance(numbers, np.ndarray) else np.asarray(numbers.cpu().numpy())

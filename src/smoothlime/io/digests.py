"""Digests of what a file holds, by field: they notice accidents, not attackers, who would make them anew.

They are of the contents, not of the bytes: another layout, order of keys or compression leaves them what they are. Any
bit of a number counts, but all NaN are one, and whole numbers in a header are the same with and without a point.
"""

from __future__ import annotations

import json
import math
import zlib
from typing import Any

import numpy as np


def digests(header: dict[str, Any], arrays: dict[str, Any]) -> dict[str, str]:
    """The digest of each field of the header, and of each array: CRC-32 in hexadecimal."""
    contents = {name: _text(each) for name, each in header.items()}
    contents |= {f"arrays.{name}": _sums(each) for name, each in arrays.items()}
    return {name: f"{zlib.crc32(each):08x}" for name, each in contents.items()}


def _text(value: Any) -> bytes:
    return json.dumps(_without_points(value), sort_keys=True).encode()


def _without_points(value: Any) -> Any:
    """Plain values, with whole numbers as such: some writers of JSON leave out the point, and some do not."""
    if isinstance(value, dict):
        return {name: _without_points(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_points(each) for each in value]
    is_whole = isinstance(value, float) and value.is_integer() and str(value) != "-0.0"
    return int(value) if is_whole else value


def _sums(array: Any) -> bytes:
    """Kind and shape of an array, and sums of its numbers, taken as 64 bits each, by row and by column.

    Sums go as fast as memory is read, a CRC-32 of all bytes would not. No number can change without its row and its
    column, and no two can change places.
    """
    if not isinstance(array, np.ndarray) or array.dtype.kind == "O":
        return json.dumps(list(array)).encode()  # text
    kind = array.dtype.kind
    numbers: Any = np.ascontiguousarray(array, dtype="<f8" if kind == "f" else "<i8")
    with np.errstate(invalid="ignore"):
        if kind == "f" and np.isnan(numbers.min(initial=0)):  # quicker than to ask each
            numbers = np.where(np.isnan(numbers), np.nan, numbers)  # JSON knows neither their signs nor their payloads
    bits = numbers.view("<u8").reshape(len(array), math.prod(array.shape[1:]))
    sums = (bits.sum(axis=axis).astype("<u8").tobytes() for axis in (0, 1))
    return b"".join((f"{kind} {array.shape}".encode(), *sums))

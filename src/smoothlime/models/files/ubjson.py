"""UBJSON as XGBoost writes it, as plain values: numbers of one kind in a row become arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
"""Marks of numbers, all of them with their first byte first."""

CONSTANTS = {b"T": True, b"F": False, b"Z": None}

DEEPEST = 32
"""Levels of nesting; XGBoost writes about eight."""


def read_ubjson(data: bytes) -> Any:
    r"""What the bytes say; a ValueError where they are cut off, go on, or say nothing.

    >>> read_ubjson(b"{i\x01aSi\x02no}")
    {'a': 'no'}
    >>> read_ubjson(b"[$d#i\x02\x3f\x00\x00\x00\x40\x00\x00\x00").tolist()
    [0.5, 2.0]
    """
    reader = _Reader(data)
    value = reader.value(reader.take(1), 0)
    if reader.at != len(data):
        msg = f"{len(data) - reader.at} bytes follow its end"
        raise ValueError(msg)
    return value


class _Reader:
    """Bytes and a place in them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, n: int) -> bytes:
        """The next n bytes."""
        if n < 0 or n > len(self.data) - self.at:
            msg = f"it ends at byte {len(self.data)}, within what begins at byte {self.at}"
            raise ValueError(msg)
        self.at += n
        return self.data[self.at - n : self.at]

    def value(self, mark: bytes, depth: int) -> Any:
        """What follows a mark."""
        if depth > DEEPEST:
            msg = f"it is nested more than {DEEPEST} levels deep"
            raise ValueError(msg)
        if mark == b"{":
            return self._object(depth)
        if mark == b"[":
            return self._array(depth)
        if mark == b"S":
            return self._text()
        if mark in NUMBERS:
            kind = np.dtype(NUMBERS[mark])
            return np.frombuffer(self.take(kind.itemsize), kind)[0].item()
        if mark in CONSTANTS:
            return CONSTANTS[mark]
        msg = f"byte {self.at - 1} is {mark!r}, which begins no value"
        raise ValueError(msg)

    def _text(self) -> str:
        return self.take(self._length()).decode("utf-8")

    def _length(self) -> int:
        mark = self.take(1)
        if mark not in NUMBERS or mark in (b"d", b"D"):
            msg = f"byte {self.at - 1} is {mark!r}, which begins no length"
            raise ValueError(msg)
        return int(self.value(mark, 0))

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.data[self.at : self.at + 1] != b"}":
            name = self._text()
            found[name] = self.value(self.take(1), depth + 1)
        self.take(1)
        return found

    def _array(self, depth: int) -> Any:
        mark = self.data[self.at : self.at + 1]
        if mark == b"$":
            self.take(1)
            kind = self.take(1)
            if kind not in NUMBERS or self.take(1) != b"#":
                msg = f"byte {self.at} does not go on an array of numbers"
                raise ValueError(msg)
            dtype = np.dtype(NUMBERS[kind])
            return np.frombuffer(self.take(self._length() * dtype.itemsize), dtype)
        if mark == b"#":
            self.take(1)
            return [self.value(self.take(1), depth + 1) for _ in range(self._length())]
        found = []
        while self.data[self.at : self.at + 1] != b"]":
            found.append(self.value(self.take(1), depth + 1))
        self.take(1)
        return found

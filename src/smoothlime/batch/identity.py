"""What is known of a file without reading it whole, and checks of its header."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from ..errors import InvalidArgument, UnreadableFile

HEAD = 2**20
"""Bytes at the beginning and at the end of a text file that its identity is made of."""


def check_columns(names: list[str], path: str) -> None:
    """Refuse columns without a name, and two of one name."""
    if "" in [name.strip() for name in names]:
        msg = f"{path!r} has no name for column {[name.strip() for name in names].index('')}; name it"
        raise InvalidArgument(msg, argument="source")
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        msg = f"{path!r} has two columns named {twice!r}; rename one"
        raise InvalidArgument(msg, argument="source")


def identity_of(path: str, ends: Callable[[str], bytes]) -> dict[str, Any]:
    """Size, time of the last change, and a digest of the parts of a file that `ends` reads."""
    try:
        stat, read = os.stat(path), ends(path)
    except OSError as err:
        msg = f"{path!r} cannot be read: {err.strerror or err}"
        raise UnreadableFile(msg) from err
    return {
        "path": os.path.abspath(path),
        "bytes": stat.st_size,
        "changed": stat.st_mtime_ns,
        "digest": hashlib.sha256(read).hexdigest(),
    }


def ends_of_text(path: str) -> bytes:
    """The first and the last MiB of a file."""
    with open(path, "rb") as file:
        head = file.read(HEAD)
        file.seek(max(0, os.fstat(file.fileno()).st_size - HEAD))
        return head + file.read(HEAD)


def footer(path: str | os.PathLike[str]) -> bytes:
    """The footer of a Parquet file, which says where its pages are and how many rows they hold."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - 8))
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little") + 8
        file.seek(max(0, size - length))
        return file.read(length)

"""The journal of finished blocks, and the lock on the folder that it is in."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import InvalidArgument, UnreadableFile, UnwritableFile
from .identity import footer
from .layout import ERRORS, JOURNAL, LOCK, part_name


@dataclass(frozen=True, slots=True)
class Entry:
    """A finished block."""

    block: int
    rows: int
    """That were explained"""
    failed: int
    late: int
    """Rows that did not reach their tolerance"""
    bytes: int
    """Of its part"""
    error_bytes: int
    """Of the part with its errors, 0 where it has none"""
    seal: str
    """A digest of the footers of both, which hold counts and ends of all columns: no other part has the same"""
    warned: dict[str, str] = field(default_factory=dict)

    def is_whole(self, folder: Path) -> bool:
        """Whether its files are there, and are those that were written."""
        name = part_name(self.block)
        sizes = {folder / name: self.bytes, folder / ERRORS / name: self.error_bytes}
        files = [(path, size) for path, size in sizes.items() if size]
        try:
            is_there = all(path.is_file() and path.stat().st_size == size for path, size in files)
            return is_there and seal_of(footer(path) for path, _ in files) == self.seal
        except OSError:
            return False


def seal_of(footers: Iterable[bytes]) -> str:
    """A digest of the footers of Parquet files."""
    return hashlib.sha256(b"".join(footers)).hexdigest()[:16]


def read_journal(folder: Path) -> dict[int, Entry]:
    """Finished blocks by their number; a line that was cut short, or is damaged, does not count."""
    try:
        data = (folder / JOURNAL).read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as err:
        msg = f"{str(folder / JOURNAL)!r} cannot be read: {err.strerror or err}"
        raise UnreadableFile(msg) from err
    found = {}
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        packed, _, check = line.rpartition(b" ")
        if check == _check(packed):
            entry = Entry(**json.loads(packed))
            found[entry.block] = entry
    return found


def _check(packed: bytes) -> bytes:
    """What stands behind a line of the journal, and tells whether it is as it was written."""
    return b"%08x" % zlib.crc32(packed)


class Journal:
    """A file to which a line is added for each finished block."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / JOURNAL
        self._file: BinaryIO | None = None

    def __enter__(self) -> Journal:
        """Open it behind its last whole line."""
        try:
            self._file = open(self._path, "ab", buffering=0)
            end = self._path.read_bytes().rfind(b"\n") + 1
            self._file.truncate(end)
        except OSError as err:
            raise _unwritable(self._path, err) from err
        return self

    def __exit__(self, *_: Any) -> None:
        """Close it."""
        if self._file is not None:
            self._file.close()

    def add(self, entry: Entry) -> None:
        """A line, on the disk before this returns; or none of it."""
        assert self._file is not None
        end = self._file.seek(0, os.SEEK_END)
        packed = json.dumps(asdict(entry)).encode()
        line = packed + b" " + _check(packed) + b"\n"
        try:
            if self._file.write(line) < len(line):
                raise OSError(None, "no space is left for a line")
            os.fsync(self._file.fileno())
        except OSError as err:
            with contextlib.suppress(OSError):
                self._file.truncate(end)
            raise _unwritable(self._path, err) from err


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder: a second job on it is refused. The system lets go of the lock however a process ends."""
    path = folder / LOCK
    with _opened(path) as file:
        try:
            _lock(file)
        except OSError as err:
            file.seek(0)
            owner = file.read(100).decode(errors="replace") or "another process"
            msg = f"destination {str(folder)!r} is being written to by {owner}; wait for it, or choose another folder"
            raise InvalidArgument(msg, argument="destination") from err
        with contextlib.suppress(OSError):
            file.truncate(0)
            file.write(f"process {os.getpid()}".encode())
            file.flush()
        yield


def _opened(path: Path) -> BinaryIO:
    try:
        return open(path, "a+b")
    except OSError as err:
        raise _unwritable(path, err) from err


def _lock(file: BinaryIO) -> None:
    """Lock a file at once or not at all."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        file.seek(2**30)  # what lies there can be locked, and what lies before it read by others
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unwritable(path: Path, err: OSError) -> UnwritableFile:
    return UnwritableFile(f"{str(path)!r} cannot be written: {err.strerror or err}")

"""Parts on the disk: written whole or not at all, and counted in the journal once they are there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import UnwritableFile
from ..io.files import write_whole
from .journal import Entry, Journal
from .layout import ERRORS, LAST, part_name
from .work import Done


def record(folder: Path, journal: Journal, done: Done) -> Entry:
    """Write what came of a block, and then its line in the journal."""
    error_bytes = 0
    if len(done.errors):
        error_bytes = _write(folder / ERRORS / part_name(done.index), done.errors)
    size = _write(folder / part_name(done.index), done.results)
    entry = Entry(done.index, len(done.results), len(done.errors), done.late, size, error_bytes, done.warned)
    journal.add(entry)
    return entry


def to_parquet(table: Any) -> bytes:
    """A Parquet file in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    texts = [name for name in table.column_names if name in LAST or name == "reason"]
    pq.write_table(table, buffer, use_dictionary=texts, write_statistics=True)
    return bytes(buffer.getvalue())


def _write(path: Path, table: Any) -> int:
    data = to_parquet(table)
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as err:
        msg = f"{str(path.parent)!r} cannot be made: {err.strerror or err}"
        raise UnwritableFile(msg) from err
    write_whole(path, data, is_durable=True)
    return len(data)


def clear(folder: Path) -> None:
    """Remove what an earlier job wrote, and what was left under a passing name."""
    for here in (folder, folder / ERRORS):
        for path in here.glob("part-????????.parquet"):
            path.unlink()
        clear_passing(here)


def clear_passing(folder: Path) -> None:
    """Remove files that a job which was killed left under a passing name."""
    for path in folder.glob(".smoothlime-*.tmp"):
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Have the disk know the names in a folder, where the system can be told to."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

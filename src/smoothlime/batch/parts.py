"""Parts on the disk: written whole or not at all, and counted in the journal once they are there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import UnreadableFile, UnwritableFile
from ..io.files import write_whole
from .journal import Entry, Journal, seal_of
from .layout import ERRORS, LAST, part_name
from .work import Done


def record(folder: Path, journal: Journal, done: Done) -> Entry:
    """Write what came of a block, and then its line in the journal."""
    name = part_name(done.index)
    errors = _write(folder / ERRORS / name, done.errors) if len(done.errors) else b""
    results = _write(folder / name, done.results)
    seal = seal_of(map(_footer, filter(None, (results, errors))))
    counts = len(done.results), len(done.errors), done.late
    entry = Entry(done.index, *counts, len(results), len(errors), seal, done.warned)
    journal.add(entry)
    return entry


def to_parquet(table: Any) -> bytes:
    """A Parquet file in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    texts = [name for name in table.column_names if name in LAST or name == "reason"]
    pq.write_table(table, buffer, use_dictionary=texts, write_statistics=True, write_page_checksum=True)
    return bytes(buffer.getvalue())


def read_part(path: Path, columns: list[str] | None = None) -> Any:
    """A part as an Arrow table; an error where a bit of it is not what was written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, columns=columns, partitioning=None, page_checksum_verification=True)
    except (pa.ArrowException, OSError, KeyError) as err:
        msg = f"{str(path)!r} cannot be read: {err}. Remove it, and explain the table again to the same folder"
        raise UnreadableFile(msg) from err


def _footer(data: bytes) -> bytes:
    """What `identity.footer` reads of the same bytes in a file."""
    return data[len(data) - 8 - int.from_bytes(data[-8:-4], "little") :]


def _write(path: Path, table: Any) -> bytes:
    data = to_parquet(table)
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as err:
        msg = f"{str(path.parent)!r} cannot be made: {err.strerror or err}"
        raise UnwritableFile(msg) from err
    write_whole(path, data, is_durable=True)
    return data


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

"""The parts of a folder as one Parquet file, in the order of the table."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._core.optional import require
from ..errors import InvalidArgument, UnwritableFile
from ..io.files import check_writable
from .layout import ERRORS, FORMAT, part_name
from .load import finished_job
from .parts import read_part


@dataclass(frozen=True, slots=True)
class Merged:
    """What went into a file."""

    rows: int
    failed: int
    errors: str
    """The folder of those that failed"""


def merge(folder: str | os.PathLike[str], out: str | os.PathLike[str]) -> Merged:
    """Write all parts to one file, part by part; the manifest stands in the metadata of its schema."""
    require("pyarrow.parquet", extra="parquet", to="write Parquet files")
    here, target = Path(folder), check_writable(out)
    if target.suffix.lower() != ".parquet":
        msg = f"OUT must end in .parquet; got {str(target)!r}"
        raise InvalidArgument(msg)
    manifest, entries = finished_job(here)
    if target.resolve().is_relative_to(here.resolve()):
        msg = f"OUT must not lie in {str(here)!r}, whose parts are read; got {str(target)!r}"
        raise InvalidArgument(msg)
    content = {"format": FORMAT, **dataclasses.asdict(manifest)}
    passing = Path(os.path.realpath(target)).parent / f".smoothlime-{os.urandom(8).hex()}.tmp"
    try:
        _write(passing, [here / part_name(entry.block) for entry in entries], json.dumps(content).encode())
        os.replace(passing, os.path.realpath(target))
    except OSError as err:
        msg = f"{str(target)!r} cannot be written: {err.strerror or err}"
        raise UnwritableFile(msg) from err
    finally:
        with contextlib.suppress(OSError):
            passing.unlink(missing_ok=True)
    rows, failed = (sum(getattr(entry, name) for entry in entries) for name in ("rows", "failed"))
    return Merged(rows, failed, str(here / ERRORS))


def _write(path: Path, parts: list[Path], notes: bytes) -> None:
    """One part after the other; those that are small share a row group."""
    import pyarrow.parquet as pq

    writer: Any = None
    try:
        for part in parts:
            table = read_part(part)
            if writer is None:
                schema = table.schema.with_metadata({b"smoothlime": notes})
                writer = pq.ParquetWriter(path, schema)
            writer.write_table(table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()

"""Tables to read, whatever their size: Parquet files, folders, globs and datasets, and CSV files, run by run."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from .._core.optional import require
from ..errors import InvalidArgument, MissingFile, UnreadableFile, WrongType
from .blocks import Run
from .csv_source import CsvSource
from .parquet_source import ParquetSource

PARQUET = b"PAR1"
OTHERS = {
    b"\x1f\x8b": "compressed with gzip",
    b"PK\x03\x04": "a zip archive or an Excel sheet",
    b"ARROW1": "a Feather file",
    b"\x93NUMPY": "an array of NumPy",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
"""First bytes of files that cannot be read here."""


class Source(Protocol):
    """A table that is read in the order of its rows."""

    @property
    def names(self) -> tuple[str, ...]:
        """Columns, those of an index left out."""
        ...

    @property
    def dictionaries(self) -> tuple[str, ...]:
        """Columns whose levels are listed in the file."""
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        ...

    @property
    def count(self) -> int | None:
        """Rows; None where only reading tells."""
        ...

    def identity(self) -> list[dict[str, Any]]:
        """What is known of each file without reading it whole: size, time of the last change, a digest of its ends."""
        ...

    def spec(self) -> dict[str, Any]:
        """What `open_source` opens it again with, as JSON has it."""
        ...

    def runs(self, columns: tuple[str, ...], size: int, is_wanted: Callable[[int, int], bool]) -> Iterator[Run]:
        """Rows of some columns, about `size` at a time; runs from one row to another may be left out if not wanted."""
        ...


def open_source(source: Any, types: Any = None, *, guessed: Sequence[str] = (), key: str | None = None) -> Source:
    """A table by the path of a file or folder, a glob, a list of these, or as a dataset of pyarrow."""
    require("pyarrow.parquet", extra="parquet", to="read tables file by file")
    if type(source).__module__.startswith("pyarrow") and hasattr(source, "get_fragments"):
        return _only_parquet(ParquetSource.of_dataset(source), types)
    is_list = isinstance(source, list | tuple) and len(source) and all(isinstance(x, str | os.PathLike) for x in source)
    if not (is_list or isinstance(source, str | os.PathLike)):
        msg = (
            f"source must be the path of a file or folder, a glob or a dataset of pyarrow; got a"
            f" {type(source).__name__}. A data frame that is in memory goes to explain"
        )
        raise WrongType(msg, argument="source")
    roots = [os.fspath(each) for each in (source if is_list else [source])]
    paths = [path for root in roots for path in _files(root)]
    heads = [_head(path) for path in paths]
    are_parquet = [_is_parquet(path, head) for path, head in zip(paths, heads, strict=True)]
    if all(are_parquet):
        return _only_parquet(ParquetSource.of_files(paths, roots[0]), types)
    for path, head in zip(paths, heads, strict=True):
        other = next((what for mark, what in OTHERS.items() if head.startswith(mark)), None)
        if other is not None:
            msg = f"{path!r} is {other}; save it as Parquet, or as CSV in UTF-8, which are read"
            raise UnreadableFile(msg)
    if len(paths) > 1:
        other = paths[are_parquet.index(False)]
        msg = f"source names {len(paths)} files, and {other!r} is no Parquet file: several are read of Parquet only"
        raise InvalidArgument(msg, argument="source")
    return CsvSource.open(paths[0], types, guessed=guessed, key=key)


def _only_parquet(source: Source, types: Any) -> Source:
    if types:
        msg = "types is for CSV files; columns of Parquet have types of their own"
        raise InvalidArgument(msg, argument="types")
    return source


def _files(source: str) -> list[str]:
    """The files that a path, a folder or a glob stands for, in the order of their names."""
    try:
        is_folder, is_there = Path(source).is_dir(), Path(source).exists()
    except (OSError, ValueError) as err:  # a name that is too long, or holds a zero byte
        msg = f"source {source!r} cannot be read: {err}"
        raise MissingFile(msg, argument="source") from err
    if is_folder:
        found = sorted(_within(source))
        if not found:
            msg = f"source {source!r} is a folder without Parquet files"
            raise MissingFile(msg, argument="source")
        return found
    if not is_there and glob.has_magic(source):
        found = sorted(path for path in glob.glob(source, recursive=True) if Path(path).is_file())
        if not found:
            msg = f"there is no file that source {source!r} stands for"
            raise MissingFile(msg, argument="source")
        return found
    if not is_there:
        msg = f"there is no file {source!r}"
        raise MissingFile(msg, argument="source")
    return [source]


def _within(folder: str) -> Iterator[str]:
    """Parquet files of a folder and those in it, but hidden ones."""
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith((".", "_")))
        yield from (
            os.path.join(here, each)
            for each in files
            if each.lower().endswith((".parquet", ".pq")) and not each.startswith((".", "_"))
        )


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(max(map(len, OTHERS)))
    except OSError as err:
        msg = f"{path!r} cannot be read: {err.strerror or err}"
        raise UnreadableFile(msg) from err


def _is_parquet(path: str, head: bytes) -> bool:
    return head == PARQUET or head.startswith(PARQUET) or path.lower().endswith((".parquet", ".pq"))

"""Header and arrays as a Parquet table: a line per row, a column per array, and the header in its metadata."""

from __future__ import annotations

import io
import json
from typing import Any, BinaryIO

import numpy as np

from .._core.optional import require
from ..errors import InvalidArgument, UnreadableFile
from .fields import DTYPES, Kind, parsed, shaped, wrong_kind, wrong_shape
from .kinds import Result, check_format, pack, unpack

KEY = b"smoothlime"
"""Under which the header stands in the metadata of the schema."""

MOST = 2**31 - 1
"""Numbers in a column of lists: Arrow counts them in 32 bits."""


def to_parquet(found: Result) -> bytes:
    """A Parquet file in memory."""
    parquet: Any = require("pyarrow.parquet", extra="parquet", to="write Parquet files")
    arrow: Any = require("pyarrow", extra="parquet", to="write Parquet files")
    header, arrays = pack(found)
    _check_size(arrays)
    try:
        columns = [
            arrow.array(list(each), arrow.string()) if name == "row_outputs" else _column(arrow, each)
            for name, each in arrays.items()
        ]
    except UnicodeEncodeError as err:
        msg = f"a name of an output is no valid text for Parquet ({err}); save it as .json"
        raise InvalidArgument(msg) from err
    metadata = {KEY: json.dumps(header, allow_nan=False).encode()}
    buffer = io.BytesIO()
    table = arrow.table(columns, names=list(arrays), metadata=metadata)
    parquet.write_table(table, buffer, write_page_checksum=True)
    return buffer.getvalue()


def from_parquet(file: BinaryIO) -> tuple[Result, list[str]]:
    """The result in a Parquet file, and its fields that have changed."""
    parquet: Any = require("pyarrow.parquet", extra="parquet", to="read Parquet files")
    arrow: Any = require("pyarrow", extra="parquet", to="read Parquet files")
    try:
        opened = parquet.ParquetFile(file, page_checksum_verification=True)
        metadata = opened.schema_arrow.metadata or {}
        if KEY not in metadata:
            check_format(None)
        table = opened.read()
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as err:
        msg = f"it is not whole Parquet, and may have been cut short: {err}"
        raise UnreadableFile(msg) from err
    try:
        header = parsed(metadata[KEY])
    except UnreadableFile:
        raise
    except ValueError as err:
        msg = f"its metadata are not whole: {err}"
        raise UnreadableFile(msg) from err
    check_format(header)
    return unpack(header, _Columns(arrow, table))


class _Columns:
    """Arrays as columns of a table."""

    def __init__(self, arrow: Any, table: Any) -> None:
        self._arrow = arrow
        self._table = table

    def read(self, name: str, kind: Kind, shape: tuple[int, ...]) -> Any:
        """Lists of lists unwrapped, axis by axis; nothing may be null."""
        count = self._table.column_names.count(name)
        if count != 1:
            msg = f"the column {name!r} is {'there twice' if count else 'missing'}"
            raise UnreadableFile(msg)
        column = self._table[name].combine_chunks()
        if len(column) != shape[0]:
            raise wrong_shape(name, 0, len(column), shape)
        for axis, size in enumerate(shape[1:], start=1):
            if not self._arrow.types.is_list(column.type) or column.null_count:
                raise wrong_kind(name, kind, f"a column of type {column.type}, {column.null_count} of them null")
            lengths = np.diff(column.offsets.to_numpy(zero_copy_only=False))
            if (lengths != size).any():
                raise wrong_shape(name, axis, int(lengths[lengths != size][0]), shape)
            column = column.flatten()
        if column.type != _arrow_type(self._arrow, kind) or column.null_count:
            raise wrong_kind(name, kind, f"a column of type {column.type}, {column.null_count} of them null")
        if kind == "text":
            try:
                return column.to_pylist()
            except UnicodeDecodeError as err:  # Arrow does not look inside strings when it reads them
                raise wrong_kind(name, kind, str(err)) from err
        return shaped(np.array(column.to_numpy(zero_copy_only=False), dtype=DTYPES[kind]), shape, name)


def _check_size(arrays: dict[str, Any]) -> None:
    """Refuse what would not fit in a column."""
    size, name = max((getattr(each, "size", 0), name) for name, each in arrays.items())
    if size > MOST:
        msg = f"a column of Parquet holds up to {MOST:,} numbers, and {name!r} has {size:,}; save fewer rows at a time"
        raise InvalidArgument(msg)


def _column(arrow: Any, array: Any) -> Any:
    """An array (r, ...) as a column of plain values, or of lists for each further axis."""
    array = np.asarray(array)
    entries = array.ravel()
    column = arrow.array(entries.astype(np.int64) if entries.dtype.kind == "i" else entries)
    for axis in range(array.ndim - 1, 0, -1):
        count = int(np.prod(array.shape[:axis]))
        offsets = np.arange(count + 1, dtype=np.int32) * np.int32(array.shape[axis])
        column = arrow.ListArray.from_arrays(offsets, column)
    return column


def _arrow_type(arrow: Any, kind: Kind) -> Any:
    return {"float": arrow.float64(), "int": arrow.int64(), "bool": arrow.bool_(), "text": arrow.string()}[kind]

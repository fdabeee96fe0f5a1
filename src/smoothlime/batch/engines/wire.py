"""Blocks and what came of them as bytes: Arrow tables as Arrow writes them, which takes no more than their rows."""

from __future__ import annotations

import io
import pickle
from typing import Any


def pack(thing: Any) -> bytes:
    """Anything that blocks, answers and errors are made of."""
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, protocol=5).dump(thing)
    except Exception as err:  # an error of a user's model may hold anything
        if not isinstance(thing, BaseException):
            raise
        return pickle.dumps(RuntimeError(f"{type(thing).__name__}: {thing} ({err})"))
    return buffer.getvalue()


def unpack(data: bytes) -> Any:
    """What `pack` packed, in another process of the same job."""
    return pickle.loads(data)


class _Pickler(pickle.Pickler):
    def reducer_override(self, thing: Any) -> Any:
        """A slice of a table would bring all of the table with it."""
        if type(thing).__name__ == "Table" and type(thing).__module__.startswith("pyarrow"):
            return _read, (_written(thing),)
        return NotImplemented


def _written(table: Any) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _read(data: bytes) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(data).read_all()

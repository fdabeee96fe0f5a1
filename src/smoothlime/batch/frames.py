"""Arrow tables as the data frames that models get."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any


def frame_library() -> Any:
    """The data frame library that models get tables in: the first that is installed."""
    return next((each for each in ("pandas", "polars", "pyarrow") if find_spec(each)), None)


def as_frame(table: Any, levels: Mapping[str, Any] | None = None) -> Any:
    """An Arrow table as a data frame; columns of `levels` are categoricals with these, whatever the table lists.

    Decimals become floats: data frames would hold them as objects.
    """
    import narwhals as nw
    import pyarrow as pa

    for j, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            table = table.set_column(j, field.name, table.column(j).cast(pa.float64()))
    for name, known in (levels or {}).items():
        table = table.set_column(table.schema.get_field_index(name), name, _coded(table.column(name), known))
    return nw.from_arrow(table, backend=frame_library() or "pyarrow").to_native()


def _coded(column: Any, levels: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = column.cast(levels.type)
    is_ordered = bool(getattr(column.type, "ordered", False))
    codes = pc.index_in(plain, value_set=levels).combine_chunks()
    return pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), levels, ordered=is_ordered)

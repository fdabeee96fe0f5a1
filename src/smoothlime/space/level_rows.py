"""Tables with rows behind their own that hold other levels of categories, for points that switch to them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .tables import Table


def with_levels(table: Table, levels: Mapping[int, Sequence[Any]]) -> Table:
    """The table with more rows: column j holds its levels in the first of them, and all else repeats the first row.

    So the code of level k in such a column is len(table) + k, as `Table.to_frame` reads it. Types of columns stay, but
    where one cannot hold a level: categoricals get it as a further category, whole numbers become floats.
    """
    added = max((len(each) for each in levels.values()), default=0)
    if not added:
        return table
    rows = np.concatenate([np.arange(len(table)), np.zeros(added, dtype=np.intp)])
    padded = {j: [*each, *([each[0]] * (added - len(each)))] for j, each in levels.items() if len(each)}
    longer = _pandas(table, rows, padded) if table.backend == "pandas" else _others(table, rows, padded)
    return dataclasses.replace(table, frame=longer, added=added)


def _pandas(table: Table, rows: Any, levels: Mapping[int, Sequence[Any]]) -> Any:
    import narwhals as nw
    import pandas as pd

    native = table.frame.to_native()
    longer = native.take(rows).set_axis(pd.RangeIndex(len(rows)))
    for j, cells in levels.items():
        column = native.iloc[:, j]
        dtype = column.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            new = [each for each in dict.fromkeys(cells) if each not in dtype.categories]
            dtype = pd.CategoricalDtype(
                dtype.categories.append(pd.Index(new)) if new else dtype.categories, dtype.ordered
            )
            column = column.astype(dtype)
        try:
            added = pd.Series(cells, dtype=dtype)
        except (TypeError, ValueError):
            added = pd.Series(cells)
        longer.isetitem(j, pd.concat([column, added], ignore_index=True))
    return nw.from_native(longer, eager_only=True)


def _others(table: Table, rows: Any, levels: Mapping[int, Sequence[Any]]) -> Any:
    import narwhals as nw

    frame = table.frame
    longer = frame[rows]
    for j, cells in levels.items():
        column, name = frame[:, j], frame.columns[j]
        dtype = table.dtypes[j]
        if isinstance(dtype, nw.Enum):
            known = list(dtype.categories)
            dtype = nw.Enum([*known, *(each for each in dict.fromkeys(cells) if each not in known)])
        is_category = dtype in (nw.Categorical, nw.Enum)
        parts = column.cast(nw.String) if is_category else column
        kind = parts.dtype
        if kind.is_integer() and not all(float(each).is_integer() for each in cells):
            parts, kind = parts.cast(nw.Float64), nw.Float64()
        if kind.is_integer() or kind.is_float():
            cells = [float(each) if kind.is_float() else int(each) for each in cells]
        elif kind == nw.Boolean:
            cells = [bool(each) for each in cells]
        added = nw.new_series(name, list(cells), kind, backend=frame.implementation)
        if table.backend == "pyarrow":  # which has several types for text
            added = nw.from_native(added.to_native().cast(parts.to_native().type), series_only=True).alias(name)
        joined = nw.concat([parts.to_frame(), added.to_frame()])[name]
        longer = longer.with_columns(joined.cast(dtype) if is_category else joined)
    return longer

"""Tables: data frames as numbers that can be perturbed, and back as frames for models that want them.

Draws move numbers, so a table is explained through its columns as float64. Columns that are held fixed (text, dates,
categories, and numbers that the caller fixes) never move, but a model may want to see them as they are. In the rows
that the loop perturbs, such a column holds the position of its row in the table; a frame for the model takes the cells
of those rows, whatever their type, and puts the perturbed numbers beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Flags, Indices, Points
from ..errors import InvalidArgument, WrongType


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A data frame: its column names in order, and which of its columns hold numbers, by dtype alone."""

    frame: Any
    """As narwhals sees it"""
    names: tuple[str, ...]
    is_numeric: Flags

    def __len__(self) -> int:
        """Count of rows."""
        return len(self.frame)

    @property
    def backend(self) -> str:
        """`pandas`, `polars`, `pyarrow`, ..."""
        return str(self.frame.implementation.value)

    @property
    def not_numeric(self) -> tuple[str, ...]:
        """Names of the columns that hold something else than numbers."""
        return tuple(name for name, is_number in zip(self.names, self.is_numeric, strict=True) if not is_number)

    @property
    def is_of_objects(self) -> bool:
        """Whether no column has a type that says what it holds, as where rows of a mixed table were taken apart."""
        return all(str(dtype) == "Object" for dtype in self.frame.schema.dtypes())

    def numbers(self) -> Array:
        """The cells as float64 (r, d); NaN for what is missing or is no number."""
        import narwhals as nw

        cells = np.full((len(self), len(self.names)), np.nan)
        for j in np.flatnonzero(self.is_numeric):
            cells[:, j] = self._column(int(j)).cast(nw.Float64).to_numpy()
        return cells

    def select(self, names: tuple[str, ...]) -> Table:
        """Some of the columns, in the order given."""
        kept = [self.names.index(name) for name in names]
        frame = self.frame[:, kept]  # by position: names that are no text select nothing
        return Table(frame, names, self.is_numeric[kept])

    def coded(self, free: Indices) -> Array:
        """Rows (r, d) to perturb: numbers in the free columns, and in all others the position of the row."""
        rows = np.tile(np.arange(float(len(self)))[:, None], len(self.names))
        rows[:, free] = self.numbers()[:, free]
        return rows

    def around(self, points: Points, free: Indices) -> Any:
        """A frame like this one for coded points (n, d): floats in the free columns, in all others the row's cells."""
        import narwhals as nw

        held = np.setdiff1d(np.arange(len(self.names)), free)
        rows = points[:, held[0]].astype(np.intp) if len(held) else np.zeros(len(points), dtype=np.intp)
        frame = nw.maybe_reset_index(self.frame[rows])
        moved = frame.with_columns(*(self._moved(int(j), points[:, j]) for j in free)).to_native()
        return _noted_as_floats(moved, [self.names[j] for j in free]) if self.backend == "pyarrow" else moved

    def _moved(self, j: int, cells: Any) -> Any:
        """Cells for column j, in its own type if that is one for floats."""
        import narwhals as nw

        column = self._column(j)
        backend = column.implementation
        moved = nw.new_series(column.name, np.ascontiguousarray(cells), nw.Float64(), backend=backend)
        if not column.dtype.is_float():
            return moved
        if backend.is_pandas():  # it has several types for floats that differ only in how they store gaps
            return nw.from_native(moved.to_native().astype(column.to_native().dtype), series_only=True)
        return moved.cast(column.dtype)

    def spacing(self, free: Indices) -> Array:
        """(f,) relative spacing of the numbers that `around` puts into the free columns."""
        narrow = {"Float32": np.finfo(np.float32).eps, "Float16": np.finfo(np.float16).eps}
        found = [narrow.get(str(self._column(int(j)).dtype), np.finfo(np.float64).eps) for j in free]
        return np.array(found, dtype=np.float64)

    def _column(self, j: int) -> Any:
        return self.frame[:, j]


def as_table(X: Any, name: str = "X") -> Table | None:
    """X as a table if it is a data frame, or one row of one; None for arrays, tensors and lists."""
    if isinstance(X, np.ndarray | list | tuple) or hasattr(X, "detach"):
        return None
    if _is_pandas_series(X):
        if np.dtype(object) in (X.dtype, getattr(X.dtype, "subtype", None)):  # the latter of sparse ones
            msg = (
                f"{name} is one row of a table with columns of several types, which a Series forgets;"
                " take it as a table of one row, as in table.iloc[[0]]"
            )
            raise WrongType(msg)
        X = X.to_frame().T  # a row taken from a frame of numbers: its index holds the columns
    if type(X).__name__ == "RecordBatch" and hasattr(X, "schema"):
        X = _as_arrow_table(X)
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        msg = f"{name} is a lazy frame; its rows are not there yet. Call collect() on it first"
        raise WrongType(msg)
    if not (hasattr(X, "columns") or hasattr(X, "column_names")):
        return None
    import narwhals as nw

    try:
        frame = nw.from_native(X, eager_only=True)
    except nw.exceptions.DuplicateError as err:
        msg = f"{name} must have columns of different names: {err}"
        raise InvalidArgument(msg) from err
    except TypeError:
        return None
    names = tuple(str(each) for each in frame.columns)
    if len(set(names)) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        msg = f"{name} must have columns of different names; {twice!r} stands there {names.count(twice)} times"
        raise InvalidArgument(msg)
    if not (len(frame) and names):
        msg = f"{name} is empty: it has shape {frame.shape}; give at least one row and one column"
        raise InvalidArgument(msg)
    frame = _dense(frame)
    return Table(frame, names, np.array([dtype.is_numeric() for dtype in frame.schema.dtypes()], dtype=np.bool_))


def agreed_columns(columns: Sequence[str] | None, given: dict[str, Any]) -> tuple[str, ...] | None:
    """Names of the features, which all that has labels must have in the same order; None where nothing has any."""
    agreed, owner = None if columns is None else tuple(str(each) for each in columns), "the neighbourhood"
    for name, value in given.items():
        labels = _labels(value)
        if agreed is None:
            agreed, owner = labels, name
        elif labels is not None and labels != agreed:
            msg = (
                f"{name} is for features {', '.join(labels)}, but {owner} is for {', '.join(agreed)};"
                " give the same ones in the same order"
            )
            raise InvalidArgument(msg)
    return agreed


def check_numbered(value: Any, name: str, columns: Sequence[str]) -> None:
    """Refuse labels 0, 1, ... of a Series for columns of these names in another order: there they are no positions."""
    labels = tuple(map(str, _index(value, "index")))
    if labels == _numbered(len(columns)) and labels != tuple(columns) and set(labels) == set(columns):
        msg = (
            f"{name} is for features {', '.join(labels)}, but the rows have {', '.join(columns)};"
            " give the same ones in the same order"
        )
        raise InvalidArgument(msg)


def check_square(value: Any, name: str) -> None:
    """Refuse a data frame whose rows are labelled otherwise than its columns, as far as they have names."""
    rows, columns = (_names(_index(value, each)) for each in ("index", "columns"))
    if rows is not None and columns is not None and rows != columns:
        j = next((j for j, pair in enumerate(zip(rows, columns, strict=False)) if pair[0] != pair[1]), 0)
        msg = (
            f"{name} must have its rows in the order of its columns; at position {j} stand row {rows[j]!r} and column"
            f" {columns[j]!r}. Reorder it: {name}.loc[{name}.columns]"
        )
        raise InvalidArgument(msg)


def _labels(value: Any) -> tuple[str, ...] | None:
    """Names that a pandas Series or data frame gives to its entries; positions are no names."""
    return _names(_index(value, "columns" if hasattr(value, "columns") else "index"))


def _index(value: Any, axis: str) -> Any:
    """Labels of pandas along an axis, none where there are none: lists have a method of the name `index`."""
    labels = getattr(value, axis, None)
    return () if labels is None or callable(labels) else labels


def _names(labels: Any) -> tuple[str, ...] | None:
    """Labels that are text, or whole numbers that are not simply counted from 0."""
    is_text = all(isinstance(each, str) for each in labels)
    is_whole = all(isinstance(each, int | np.integer) and not isinstance(each, bool) for each in labels)
    names = tuple(map(str, labels)) if is_text or is_whole else ()
    return None if not names or (is_whole and names == _numbered(len(names))) else names


def _numbered(d: int) -> tuple[str, ...]:
    return tuple(map(str, range(d)))


def _dense(frame: Any) -> Any:
    """The frame with sparse columns of pandas in full, its decimals as floats: narwhals takes neither for numbers."""
    import narwhals as nw

    unknown = [name for name, dtype in frame.schema.items() if dtype in (nw.Unknown, nw.Object)]
    if not (unknown and frame.implementation.is_pandas()):
        return frame
    native = frame.to_native()
    full = {name: native[name].dtype.subtype for name in unknown if type(native[name].dtype).__name__ == "SparseDtype"}
    decimals = [name for name in unknown if name not in full and _holds_decimals(native[name])]
    if not (full or decimals):
        return frame
    native = native.fillna(dict.fromkeys(decimals, np.nan)) if decimals else native  # pandas.NA is no float
    return nw.from_native(native.astype(full | dict.fromkeys(decimals, np.float64)), eager_only=True)


def _holds_decimals(column: Any) -> bool:
    """Whether a column of pandas holds decimals alone, as those of a database do, and gaps."""
    from pandas.api.types import infer_dtype

    return str(infer_dtype(column, skipna=True)) == "decimal"


def _noted_as_floats(arrow: Any, moved: list[str]) -> Any:
    """An Arrow table that pandas can read: one made from pandas notes its types, and whole numbers have moved."""
    import json

    notes = arrow.schema.pandas_metadata
    if not notes:
        return arrow
    for column in notes["columns"]:
        if column["field_name"] in moved and "int" in column["numpy_type"].lower():
            column["numpy_type"] = "float64"
    return arrow.replace_schema_metadata({**arrow.schema.metadata, b"pandas": json.dumps(notes).encode()})


def _as_arrow_table(batch: Any) -> Any:
    import pyarrow

    return pyarrow.Table.from_batches([batch])


def _is_pandas_series(X: Any) -> bool:
    return any(cls.__module__.partition(".")[0] == "pandas" and cls.__name__ == "Series" for cls in type(X).__mro__)

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
    """A data frame with the names and types of its columns, read once."""

    frame: Any
    """A data frame of narwhals"""
    names: tuple[str, ...]
    dtypes: tuple[Any, ...]
    """Types of narwhals"""
    added: int = 0
    """Rows behind those of the caller, which hold other levels of categories: see `with_levels`"""

    def __len__(self) -> int:
        """Count of rows."""
        return len(self.frame)

    @property
    def backend(self) -> str:
        """`pandas`, `polars`, `pyarrow`, ..."""
        return str(self.frame.implementation.value)

    @property
    def is_numeric(self) -> Flags:
        """(d,) which columns hold numbers, by their type alone."""
        return np.array([dtype.is_numeric() for dtype in self.dtypes], dtype=np.bool_)

    @property
    def not_numeric(self) -> tuple[str, ...]:
        """Names of the columns that hold something else than numbers."""
        return tuple(name for name, dtype in zip(self.names, self.dtypes, strict=True) if not dtype.is_numeric())

    @property
    def categories(self) -> tuple[str, ...]:
        """Names of the columns that hold levels: text, categoricals, true and false; dates have an order."""
        return tuple(
            name
            for name, dtype in zip(self.names, self.dtypes, strict=True)
            if not (dtype.is_numeric() or dtype.is_temporal())
        )

    @property
    def is_of_objects(self) -> bool:
        """Whether all columns are of type object, as in a table built from single rows of mixed types."""
        return all(str(dtype) == "Object" for dtype in self.dtypes)

    def numbers(self, names: Sequence[str] | None = None) -> Array:
        """The cells of all columns, or of those named, as float64 (r, d); NaN for what is missing or is no number."""
        import narwhals as nw

        places = {name: j for j, name in enumerate(self.names)}
        kept = range(len(self.names)) if names is None else [places[name] for name in names]
        numeric = {i: j for i, j in enumerate(kept) if self.dtypes[j].is_numeric()}
        cells = np.full((len(self), len(kept)), np.nan)
        if self.backend == "pandas":
            native = self.frame.to_native().take(list(numeric.values()), axis=1)
            cells[:, list(numeric)] = native.to_numpy(np.float64, na_value=np.nan)
            return cells
        for i, j in numeric.items():
            cells[:, i] = self.frame[:, j].cast(nw.Float64).to_numpy()
        return cells

    def holds_others(self) -> Flags:
        """(r, d) which cells hold something else than numbers: those of other columns that are not missing."""
        found = np.zeros((len(self), len(self.names)), dtype=np.bool_)
        for j in np.flatnonzero(~self.is_numeric):
            found[:, j] = ~self.frame[:, int(j)].is_null().to_numpy()
        return found

    def cells(self, j: int) -> list[Any]:
        """What a column holds, as plain values; None for what is missing."""
        if self.backend == "pandas":  # narwhals takes a hundred times as long where columns are many
            native = self.frame.to_native().iloc[:, j]
            pairs = zip(native.tolist(), native.isna().tolist(), strict=True)
        else:
            column = self.frame[:, j]
            pairs = zip(column.to_list(), column.is_null().to_list(), strict=True)
        plain = (
            None if is_missing else each.item() if isinstance(each, np.generic) else each for each, is_missing in pairs
        )
        return [None if isinstance(each, float) and each != each else each for each in plain]  # NaN

    def coded(self, numbers: Array, free: Indices) -> Array:
        """Rows (r, d) to perturb: numbers in the free columns, and in all others the position of the row."""
        rows = np.tile(np.arange(float(len(self)))[:, None], len(self.names))
        rows[:, free] = numbers[:, free]
        return rows

    def to_frame(self, points: Points, free: Indices) -> Any:
        """A frame like this one for coded points (n, d): floats in the free columns, in all others the row's cells."""
        import narwhals as nw

        held = np.delete(np.arange(len(self.names)), free)
        rows, switched = self._coded_rows(points, held)
        if self.backend == "pandas":
            return self._to_pandas(points, free, held, rows, switched)
        names, backend = self.frame.columns, self.frame.implementation
        moved = [self.frame[:, j][codes] for j, codes in switched.items()]
        for j in free:
            cells = nw.new_series(names[j], np.ascontiguousarray(points[:, j]), nw.Float64(), backend=backend)
            if self.frame[:, int(j)].null_count():
                cells = cells.fill_nan(None)  # what is missing comes as it did
            moved.append(cells.cast(self.dtypes[j]) if self.dtypes[j].is_float() else cells)
        frame = nw.maybe_reset_index(self.frame[rows]).with_columns(*moved).to_native()
        return _noted_as_floats(frame, [self.names[j] for j in free]) if self.backend == "pyarrow" else frame

    def _coded_rows(self, points: Points, held: Indices) -> tuple[Indices, dict[int, Indices]]:
        """The row whose cells each point has; by column, where some points have another level, the row of each cell."""
        if not len(held):
            return np.zeros(len(points), dtype=np.intp), {}
        if not self.added or points[:, held].max(initial=0) < len(self) - self.added:
            return points[:, held[0]].astype(np.intp), {}
        codes = points[:, held].astype(np.intp)
        rows = codes.min(axis=1)  # levels stand behind all rows
        return rows, {int(j): codes[:, k] for k, j in enumerate(held) if (codes[:, k] != rows).any()}

    def _to_pandas(
        self, points: Points, free: Indices, held: Indices, rows: Indices, switched: dict[int, Indices]
    ) -> Any:
        """The same without narwhals, which takes up to a hundred times as long where columns are many."""
        import pandas as pd

        native = self.frame.to_native()
        dtypes = list(native.dtypes)
        moved: dict[int, Any] = {j: native.iloc[:, j].array.take(codes) for j, codes in switched.items()}
        if switched:
            held = held[~np.isin(held, list(switched))]
            free, given = np.concatenate([list(switched), free]), free
        else:
            given = free
        for j in map(int, given):
            dtype = dtypes[j] if self.dtypes[j].is_float() else np.dtype(np.float64)
            is_own = isinstance(dtype, np.dtype)  # pandas has types of its own for floats with gaps
            moved[j] = points[:, j].astype(dtype) if is_own else pd.array(points[:, j], dtype=dtype)
        # all at once: columns taken one by one cost more than the model where they are many
        kept = native.take(held, axis=1).take(rows)
        kept.index, kept.columns = pd.RangeIndex(len(rows)), held.tolist()
        frame = pd.concat([kept, native._constructor(moved, index=kept.index)], axis=1)
        frame = frame.take(np.argsort(np.concatenate([held, free])), axis=1)
        frame.columns = native.columns
        return frame

    def spacing(self, free: Indices) -> Array:
        """(f,) relative spacing of the numbers that `to_frame` puts into the free columns."""
        narrow = {"Float32": np.finfo(np.float32).eps, "Float16": np.finfo(np.float16).eps}
        found = [narrow.get(str(self.dtypes[j]), np.finfo(np.float64).eps) for j in free]
        return np.array(found, dtype=np.float64)


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
        import pyarrow

        X = pyarrow.Table.from_batches([X])
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
    frame, dtypes = _dense(frame)
    return Table(frame, names, tuple(dtypes))


def agreed_columns(columns: Sequence[str] | None, given: dict[str, Any]) -> tuple[str, ...] | None:
    """Names of the features, which labelled values must share, order included; None where no value is labelled."""
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
    """Refuse a Series labelled 0, 1, ... if columns have these names in another order: it could mean either."""
    labels = tuple(map(str, _index(value, "index")))
    if labels == _numbered(len(columns)) and labels != tuple(columns) and set(labels) == set(columns):
        msg = (
            f"{name} is for features {', '.join(labels)}, but the rows have {', '.join(columns)};"
            " give the same ones in the same order"
        )
        raise InvalidArgument(msg)


def check_square(value: Any, name: str) -> None:
    """Refuse a data frame whose rows have other names than its columns."""
    rows, columns = (_names(_index(value, each)) for each in ("index", "columns"))
    if rows is not None and columns is not None and rows != columns:
        j = next((j for j, pair in enumerate(zip(rows, columns, strict=False)) if pair[0] != pair[1]), 0)
        msg = (
            f"{name} must have its rows in the order of its columns; at position {j} stand row {rows[j]!r} and column"
            f" {columns[j]!r}. Reorder it: {name}.loc[{name}.columns]"
        )
        raise InvalidArgument(msg)


def _labels(value: Any) -> tuple[str, ...] | None:
    """Names of the entries of a pandas Series or of the columns of a data frame, unless they are mere positions."""
    return _names(_index(value, "columns" if hasattr(value, "columns") else "index"))


def _index(value: Any, axis: str) -> Any:
    """Labels of a pandas object along an axis, or none; lists have a method called `index`."""
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


def _dense(frame: Any) -> tuple[Any, list[Any]]:
    """The frame and its column types, with sparse columns of pandas made dense and decimals made floats."""
    import narwhals as nw

    schema, native = frame.schema, frame.to_native()
    is_pandas = frame.implementation.is_pandas()
    unknown = [name for name, dtype in schema.items() if is_pandas and dtype in (nw.Unknown, nw.Object)]
    full = {name: native[name].dtype.subtype for name in unknown if type(native[name].dtype).__name__ == "SparseDtype"}
    decimals = [name for name in unknown if name not in full and _holds_decimals(native[name])]
    if not (full or decimals):
        return frame, schema.dtypes()
    native = native.fillna(dict.fromkeys(decimals, np.nan)) if decimals else native  # pandas.NA is no float
    dense = nw.from_native(native.astype(full | dict.fromkeys(decimals, np.float64)), eager_only=True)
    return dense, dense.schema.dtypes()


def _holds_decimals(column: Any) -> bool:
    """Whether a column of pandas holds decimals alone, as those of a database do, and gaps."""
    from pandas.api.types import infer_dtype

    return str(infer_dtype(column, skipna=True)) == "decimal"


def _noted_as_floats(arrow: Any, moved: list[str]) -> Any:
    """An Arrow table that pandas can read: its notes of pandas types would call moved columns whole numbers."""
    import json

    notes = arrow.schema.pandas_metadata
    if not notes:
        return arrow
    for column in notes["columns"]:
        if column["field_name"] in moved and "int" in column["numpy_type"].lower():
            column["numpy_type"] = "float64"
    return arrow.replace_schema_metadata({**arrow.schema.metadata, b"pandas": json.dumps(notes).encode()})


def _is_pandas_series(X: Any) -> bool:
    return any(cls.__module__.partition(".")[0] == "pandas" and cls.__name__ == "Series" for cls in type(X).__mro__)

"""Parquet files, one or many, read row group by row group in the order of their names."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidArgument, UnreadableFile
from .blocks import Run
from .identity import check_columns, footer, identity_of


@dataclass(frozen=True, slots=True, eq=False)
class ParquetFile:
    """One file, and where its rows stand in the table."""

    path: str
    start: int
    groups: tuple[int, ...]
    """Rows of each row group"""
    keys: dict[str, Any]
    """Values of columns that stand in the names of folders"""


@dataclass(frozen=True, slots=True, eq=False)
class ParquetSource:
    """Files of the same columns."""

    files: tuple[ParquetFile, ...]
    schema: Any
    names: tuple[str, ...]
    root: str = ""
    """The folder below which names of folders are values; "" where none are"""

    @classmethod
    def of_files(cls, paths: list[str], root: str) -> ParquetSource:
        """Files by their paths; folders named x=1 below a folder are values of a column x."""
        import pyarrow.dataset as ds

        keys = [_keys(os.path.relpath(path, root) if os.path.isdir(root) else "") for path in paths]
        if any(set(each) != set(keys[0]) for each in keys):
            msg = f"{paths[0]!r} and {paths[-1]!r} stand in folders that name different columns"
            raise InvalidArgument(msg, argument="source")
        if keys[0]:  # pyarrow finds their types
            whole = cls.of_dataset(ds.dataset(root, format="parquet", partitioning="hive"))
            return dataclasses.replace(whole, root=root)
        return cls._of(paths, keys)

    @classmethod
    def of_dataset(cls, dataset: Any) -> ParquetSource:
        """A dataset of pyarrow, of Parquet files on this machine."""
        import pyarrow.dataset as ds

        fragments = list(dataset.get_fragments())
        paths = [getattr(each, "path", None) for each in fragments]
        is_here = type(getattr(dataset, "filesystem", None)).__name__ in ("LocalFileSystem", "SubTreeFileSystem")
        if not fragments or not all(paths) or not is_here or not isinstance(dataset.format, ds.ParquetFileFormat):
            msg = "source must be a dataset of Parquet files on this machine; write it as such, or give their paths"
            raise InvalidArgument(msg, argument="source")
        in_order = sorted(zip(paths, fragments, strict=True), key=lambda each: str(each[0]))
        keys = [ds.get_partition_keys(each.partition_expression) for _, each in in_order]
        return cls._of([str(path) for path, _ in in_order], keys, dataset.schema)

    @classmethod
    def _of(cls, paths: list[str], keys: list[dict[str, Any]], declared: Any = None) -> ParquetSource:
        import pyarrow as pa

        files, schemas, start, hidden = [], [], 0, set[str]()
        for path, own in zip(paths, keys, strict=True):
            with _opened(path) as file:
                groups = tuple(file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups))
                schema = file.schema_arrow
            check_columns(schema.names, path)
            notes = schema.pandas_metadata or {}
            hidden |= {each for each in notes.get("index_columns", []) if isinstance(each, str)}
            files.append(ParquetFile(path, start, groups, own))
            schemas.append(schema.remove_metadata())
            start += sum(groups)
        for path, schema in zip(paths, schemas, strict=True):
            other = sorted(set(schema.names) ^ set(schemas[0].names))
            if other:
                has, lacks = (path, paths[0]) if other[0] in schema.names else (paths[0], path)
                msg = f"{has!r} has a column {other[0]!r} that {lacks!r} lacks; give files with the same columns"
                raise InvalidArgument(msg, argument="source")
        try:
            schema = pa.unify_schemas(schemas, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as err:
            msg = f"the files of source hold different types: {err}"
            raise InvalidArgument(msg, argument="source") from err
        for name in files[0].keys if declared is not None else ():
            schema = schema.append(declared.field(name))
        return cls(tuple(files), schema, tuple(name for name in schema.names if name not in hidden))

    @property
    def dictionaries(self) -> tuple[str, ...]:
        """Columns whose levels are listed in the files."""
        import pyarrow as pa

        return tuple(field.name for field in self.schema if pa.types.is_dictionary(field.type))

    @property
    def paths(self) -> tuple[str, ...]:
        """The files in the order of their rows."""
        return tuple(file.path for file in self.files)

    @property
    def count(self) -> int:
        """Rows of all files, as their footers say."""
        return self.files[-1].start + sum(self.files[-1].groups)

    def identity(self) -> list[dict[str, Any]]:
        """Of each file."""
        return [identity_of(file.path, footer) for file in self.files]

    def spec(self) -> dict[str, Any]:
        """The paths of its files, or of the folder that they are in."""
        paths = [os.path.abspath(path) for path in self.paths]
        return {"source": os.path.abspath(self.root) if self.root else paths, "types": None}

    def runs(self, columns: tuple[str, ...], size: int, is_wanted: Callable[[int, int], bool]) -> Iterator[Run]:
        """Rows of the row groups that are wanted."""
        import pyarrow as pa

        for file in self.files:
            ends = np.cumsum((file.start, *file.groups))
            wanted = [i for i in range(len(file.groups)) if is_wanted(int(ends[i]), int(ends[i + 1]))]
            for together in _consecutive(wanted):
                start = int(ends[together[0]])
                inside = [name for name in columns if name not in file.keys]
                try:
                    with _opened(file.path) as opened:
                        for batch in opened.iter_batches(batch_size=size, row_groups=together, columns=inside):
                            rows = self._typed(batch, columns, file)
                            yield Run(start, len(rows), rows, np.arange(start, start + len(rows)))
                            start += len(rows)
                except (pa.ArrowException, OSError) as err:
                    msg = f"{file.path!r} cannot be read from row {start - file.start} on: {err}"
                    raise UnreadableFile(msg) from err
                if start != int(ends[together[-1] + 1]):
                    msg = f"{file.path!r} holds fewer rows than its footer says; take another copy of it"
                    raise UnreadableFile(msg)

    def _typed(self, batch: Any, columns: tuple[str, ...], file: ParquetFile) -> Any:
        """A batch in the columns and types of the table."""
        import pyarrow as pa

        found = {}
        for name in columns:
            kind = self.schema.field(name).type
            if name in file.keys:
                found[name] = pa.repeat(pa.scalar(file.keys[name]), len(batch)).cast(kind)
                continue
            column = batch.column(name)
            found[name] = column if column.type == kind or pa.types.is_dictionary(kind) else column.cast(kind)
        return pa.table(found)


def _opened(path: str) -> Any:
    """A file that is read page by page, whatever the size of its row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path, pre_buffer=False, buffer_size=2**20)
    except (pa.ArrowException, OSError) as err:
        msg = f"{path!r} cannot be read as Parquet: {err}"
        raise UnreadableFile(msg) from err


def _keys(path: str) -> dict[str, str]:
    """Names and values in a path such as year=2024/part.parquet."""
    pairs = [each.partition("=") for each in path.split(os.sep)[:-1]]
    return {name: value for name, is_key, value in pairs if is_key}


def _consecutive(numbers: list[int]) -> Iterator[list[int]]:
    """Runs of numbers that follow each other."""
    run: list[int] = []
    for number in numbers:
        if run and number != run[-1] + 1:
            yield run
            run = []
        run.append(number)
    if run:
        yield run

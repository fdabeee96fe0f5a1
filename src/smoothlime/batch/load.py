"""Results read back: the explanation in a file, or that of a folder which `explain_table` wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import io
from .._core.optional import require
from .._core.types import Array, Flags
from .._core.warn import warn
from ..errors import DamagedFile, InvalidArgument, SmoothlimeError, UnreadableFile, WrongType
from ..io.contents import unpack_provenance
from ..result.explanation import Explanation
from .blocks import cut
from .journal import Entry, read_journal
from .layout import COUNTS, ERRORS, LAST, NUMBERS, Columns, part_name
from .manifest import Manifest, read_manifest
from .parts import read_part
from .source import Source, open_source
from .survey import gaps_of, numbers_of

LARGE = 2 * 2**30
"""Bytes that are not read without being asked for."""

Rows = slice | range | Sequence[int] | None


def load(path: str | os.PathLike[str], *, check: bool = True, rows: Rows = None) -> Any:
    """Load an explanation, contributions or interactions from a file of `save`, or a folder of `explain_table`.

    What comes back is equal to the bit to what was saved.

    The first bytes tell JSON from Parquet, whatever the file is called. Loading runs no code from the file: every
    field is checked for its type and shape, and anything else is an `UnreadableFile`.

    A folder gives the lines of its parts in the order of the table; rows in its errors are not among them. It holds no
    sums of groups: errors of differences are added, not combined, and no perturbations are replayed. The rows `x` come
    from the table itself, where it is as it was; else they are NaN, and a warning says so.

    Parameters
    ----------
    check
        Whether a file whose contents have changed since they were saved is refused; without it, such a file loads as it
        is, with a `DamagedFile` warning that names the fields. Digests in the file tell. They are there against
        accidents: who changes a file on purpose can make them anew. Files of smoothlime before format version 5 have
        none.
    rows
        Of a folder: which of its lines, as a slice, a range or a list of positions. Needed above 2 GB.

    Examples
    --------
    >>> import tempfile, smoothlime as sl
    >>> e = sl.explain(lambda a: a.sum(axis=1), [1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     e.save(f"{folder}/sum.json")
    ...     again = sl.load(f"{folder}/sum.json")
    >>> (again.values == e.values).all(), (again.perturbations(0) == e.perturbations(0)).all()
    (np.True_, np.True_)
    """
    if isinstance(path, str | os.PathLike) and os.fspath(path) and os.path.isdir(path):
        return load_folder(path, rows=rows)
    if rows is not None:
        msg = "rows is for folders of explain_table; a file is loaded whole. Take rows of it: load(path)[10:20]"
        raise InvalidArgument(msg, argument="rows")
    return io.load(path, check=check)


def load_folder(path: str | os.PathLike[str], *, rows: Rows = None) -> Explanation:
    """The lines of all parts, or those that are asked for, as one explanation."""
    require("pyarrow.parquet", extra="parquet", to="read Parquet files")
    folder = Path(path)
    manifest, entries = finished_job(folder)
    chosen = _chosen(rows, sum(entry.rows for entry in entries), len(manifest.features))
    columns = Columns.of(manifest.features, manifest.key)
    lines = _lines(folder, entries, columns, chosen)
    return _explanation(manifest, columns, lines, _x(folder, manifest, entries, chosen))


def finished_job(folder: Path) -> tuple[Manifest, list[Entry]]:
    """The manifest of a job that is done, and its blocks in order; an error where it is not, or parts are gone."""
    manifest = read_manifest(folder)
    if manifest is None:
        msg = f"{str(folder)!r} is a folder, without results of explain_table; give the file in it"
        raise UnreadableFile(msg)
    journal = read_journal(folder)
    if manifest.finished is None:
        there = sum(entry.rows + entry.failed for entry in journal.values())
        msg = (
            f"the job in {str(folder)!r} is not finished: {there:,} of {manifest.count:,} rows are there. Run it again"
        )
        raise UnreadableFile(msg)
    entries = [journal[index] for index in range(manifest.blocks) if index in journal]
    gone = next((entry for entry in entries if not entry.is_whole(folder)), None)
    if gone is not None or len(entries) != manifest.blocks:
        what = "its journal is not whole" if gone is None else f"{part_name(gone.block)} is missing, or is another"
        msg = f"{str(folder)!r} is damaged: {what}. Explain the table again to the same folder, which mends it"
        raise UnreadableFile(msg)
    return manifest, entries


def _chosen(rows: Rows, count: int, d: int) -> Any:
    """Positions of the lines that are wanted, in order."""
    if rows is None:
        size = 8 * count * (3 * d + 10)
        if size > LARGE:
            msg = (
                f"these are {count:,} lines of {d:,} features, {size / 2**30:.1f} GB in memory; say which ones to load:"
                " rows=slice(0, 100_000)"
            )
            raise InvalidArgument(msg, argument="rows")
        return np.arange(count)
    if isinstance(rows, slice):
        found = np.arange(count)[rows]
    else:
        found = np.asarray(rows)
        if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
            msg = f"rows must be a slice, a range or a list of positions; got {rows!r}"
            raise WrongType(msg, argument="rows")
        found = found.astype(np.intp)
        if len(found) and not (-count <= found.min() and found.max() < count):
            msg = f"rows must lie within the {count:,} lines of the results; got {found.min()} to {found.max()}"
            raise InvalidArgument(msg, argument="rows")
        found = np.where(found < 0, found + count, found)
    if not len(found):
        msg = f"rows names no line; there are {count:,}"
        raise InvalidArgument(msg, argument="rows")
    return found


def _by_block(entries: Sequence[Entry], chosen: Any) -> Iterator[tuple[Entry, Any, Any]]:
    """Blocks that hold chosen lines, these lines by their place in the block, and their places among the chosen."""
    start = 0
    for entry in entries:
        there = np.flatnonzero((chosen >= start) & (chosen < start + entry.rows))
        if len(there):
            yield entry, chosen[there] - start, there
        start += entry.rows


def _lines(folder: Path, entries: Sequence[Entry], columns: Columns, chosen: Any) -> dict[str, Any]:
    """Arrays of the chosen lines by column."""
    import pyarrow as pa

    found: dict[str, Any] = {name: np.full(len(chosen), np.nan) for name in columns.numbers}
    found["converged"] = np.zeros(len(chosen), dtype=np.bool_)
    found |= {name: np.zeros(len(chosen), dtype=np.int64) for name in ("n_samples", "n_evaluations")}
    found |= {name: np.full(len(chosen), "", dtype=object) for name in LAST[2:]}
    for entry, inside, there in _by_block(entries, chosen):
        path = folder / part_name(entry.block)
        part = read_part(path, list(found)).take(pa.array(inside))
        for name, into in found.items():
            into[there] = part.column(name).to_numpy()
    return found


def _x(folder: Path, manifest: Manifest, entries: Sequence[Entry], chosen: Any) -> tuple[Array, Flags]:
    """The rows of the chosen lines as numbers, and which of their cells hold something else.

    They are read from the table, if it is as it was; else they are NaN, and a warning says so.
    """
    d = len(manifest.features)
    x, others = np.full((len(chosen), d), np.nan), np.zeros((len(chosen), d), dtype=np.bool_)
    try:
        source = _source_of(manifest)
    except SmoothlimeError as err:
        warn(f"the rows x of {str(folder)!r} are not known, and NaN: {err}", DamagedFile)
        return x, others
    size = manifest.block_rows
    wanted = {entry.block: (entry, inside, there) for entry, inside, there in _by_block(entries, chosen)}

    def is_wanted(start: int, stop: int) -> bool:
        return any(index in wanted for index in range(start // size, -(-stop // size)))

    for block in cut(source.runs(manifest.features, size, is_wanted), size, wanted.__contains__):
        entry, inside, there = wanted[block.index]
        kept = ~np.isin(block.run.positions, _failed(folder, entry))
        numbers = numbers_of(block.run.rows, manifest.features)
        x[there] = numbers[kept][inside]
        others[there] = (np.isnan(numbers) & ~gaps_of(block.run.rows, manifest.features))[kept][inside]
    return x, others


def _source_of(manifest: Manifest) -> Source:
    """The table that a job read, if it is as it was."""
    source = open_source(**manifest.table)
    plain = [each | {"path": ""} for each in source.identity()]
    if plain != [each | {"path": ""} for each in manifest.asked["source"]]:
        msg = f"{source.paths[0]!r} has changed since"
        raise UnreadableFile(msg)
    return source


def _failed(folder: Path, entry: Entry) -> Array:
    """Positions of the rows of a block that were not explained."""
    if not entry.failed:
        return np.zeros(0, dtype=np.int64)
    return np.asarray(read_part(folder / ERRORS / part_name(entry.block), ["row"]).column("row"))


def _explanation(manifest: Manifest, columns: Columns, lines: dict[str, Any], rows: tuple[Array, Flags]) -> Explanation:
    """The explanation of some lines; how it was made is what the manifest says of the first rows."""
    x, others = rows
    header, around = manifest.header, manifest.neighbourhood
    provenance = unpack_provenance(header["provenance"], header["version"])
    methods = sorted(set(lines["method"]))
    if methods != [provenance.method.name]:
        msg = (
            f"rows were explained by {' and '.join(methods)}; the explanation is called one of {provenance.method.name}"
        )
        warn(msg, DamagedFile)
    free = around.factor(len(manifest.features), manifest.features).free
    values = np.stack([lines[name] for name in columns.slopes], axis=1)
    missing = np.zeros(x.shape, dtype=np.bool_)
    missing[:, free] = np.isnan(values[:, free])
    return Explanation(
        x=x,
        values=values,
        standard_error=np.stack([lines[name] for name in columns.errors], axis=1),
        missing=missing,
        not_numeric=others,
        combined=np.asarray(np.isnan(x).all(axis=1)),
        feature_names=manifest.features,
        output_name=header["output_name"],
        row_outputs=tuple(lines["output"]),
        neighbourhood=around,
        provenance=provenance,
        **{name: lines[name] for name in (*NUMBERS, "converged", *COUNTS, *LAST[:2])},
    )

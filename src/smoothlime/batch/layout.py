"""What a folder of results looks like: names of its files, and columns of its parts.

    part-00000000.parquet            results, one line per row that was explained
    _errors/part-00000000.parquet    rows of the same block that could not be, with the reason
    _manifest.json                   what was asked, of which table and model; counts and times
    _journal.jsonl                   a line for each finished block
    _lock                            held while a job writes here

Names with a line in front are hidden from readers of Parquet folders, such as pandas, polars, pyarrow and DuckDB.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

MANIFEST, JOURNAL, LOCK, ERRORS = "_manifest.json", "_journal.jsonl", "_lock", "_errors"

FORMAT, VERSION = "smoothlime table", 1
"""What the manifest says it is of; the version is raised when older versions could not read what is written."""

NUMBERS = ("prediction", "smoothed", "radius")
COUNTS = ("n_samples", "n_evaluations")
LAST = ("fidelity", "degrees_of_freedom", "method", "output")


def part_name(index: int) -> str:
    """The file of a block, in either folder."""
    return f"part-{index:08d}.parquet"


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns of a part."""

    row: str
    """`row`, or the key"""
    features: tuple[str, ...]
    slopes: tuple[str, ...]
    errors: tuple[str, ...]

    @classmethod
    def of(cls, features: Sequence[str], key: str | None) -> Columns:
        """A feature is called what it is, unless something else is called so already: then it is a slope."""
        others = {*NUMBERS, "converged", *COUNTS, *LAST}
        row = _key_beside(others, key or "row")
        taken = {row, *others}
        slopes, errors = [], []
        for name in features:
            slope = name
            while slope in taken or f"{slope}_se" in taken or (slope != name and slope in features):
                slope += "_slope"
            taken |= {slope, f"{slope}_se"}
            slopes.append(slope)
            errors.append(f"{slope}_se")
        return cls(row, tuple(features), tuple(slopes), tuple(errors))

    @property
    def numbers(self) -> tuple[str, ...]:
        """All columns of floating-point numbers."""
        return (*NUMBERS, *self.slopes, *self.errors, *LAST[:2])

    def part(self, row: Any, fields: dict[str, Any]) -> Any:
        """A part as an Arrow table: a line per row, in the order of the table."""
        import pyarrow as pa

        found = {self.row: row}
        found |= {name: _number(fields[name]) for name in NUMBERS}
        found["converged"] = pa.array(fields["converged"])
        found |= {name: pa.array(fields[name], pa.int64()) for name in COUNTS}
        for j, (slope, error) in enumerate(zip(self.slopes, self.errors, strict=True)):
            found[slope] = _number(fields["values"][:, j])
            found[error] = _number(fields["standard_error"][:, j])
        found |= {name: _number(fields[name]) for name in LAST[:2]}
        found |= {name: pa.array(fields[name], pa.string()).dictionary_encode() for name in LAST[2:]}
        return pa.table(found)


def failures(failed: Sequence[tuple[int, str]], keys: Any = None, key: str | None = None) -> Any:
    """Rows that could not be explained, with the reason, as an Arrow table; `keys` are theirs, where they have any."""
    import pyarrow as pa

    found = {"row": pa.array([row for row, _ in failed], pa.int64())}
    if key is not None:
        found[_key_beside(("row", "reason"), key)] = keys
    found["reason"] = pa.array([reason for _, reason in failed], pa.string())
    return pa.table(found)


def _key_beside(others: Collection[str], key: str) -> str:
    """What a column of keys is called, beside others that are always there."""
    return f"{key}_key" if key in others else key


def _number(values: Any) -> Any:
    """Numbers, with null for NaN: what was held has no slope."""
    import pyarrow as pa

    return pa.array(values, pa.float64(), from_pandas=True)

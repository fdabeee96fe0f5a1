"""The manifest of a folder of results: what was asked, what the table said, counts and times."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InvalidArgument, UnreadableFile
from ..io.contents import pack_neighbourhood, unpack_neighbourhood
from ..io.files import write_whole
from ..io.settings import pack_method
from ..space.neighbourhood import Neighbourhood
from .layout import FORMAT, MANIFEST, VERSION

CHANGED = {
    "model predictions": "the model answers otherwise than it did",
    "model file": "the model file has changed",
    "neighbourhood": "scales are others than they were",
}
"""What to say where digests differ."""

TOLD = 4
"""Changes that an error names."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that a job which goes on must know, and that a reader of the results may want to."""

    asked: dict[str, Any]
    """Model, table, columns and settings: what must be the same for a job to go on"""
    count: int
    """Rows of the table"""
    header: dict[str, Any]
    """Of an explanation of the first rows: names, neighbourhood, provenance"""
    levels: dict[str, Any]
    """Of categoricals"""
    table: dict[str, Any] = field(default_factory=dict)
    """What opens the table again"""
    ignored: tuple[str, ...] = ()
    """Columns of the table that the model does not take"""
    runs: tuple[dict[str, Any], ...] = ()
    """When the job ran, how long, and with how many workers"""
    finished: dict[str, Any] | None = None
    """Counts of rows, once all blocks are there"""

    @property
    def features(self) -> tuple[str, ...]:
        """Columns that are explained."""
        return tuple(self.asked["features"])

    @property
    def key(self) -> str | None:
        """The column that names the rows, or None."""
        key: str | None = self.asked["key"]
        return key

    @property
    def block_rows(self) -> int:
        """Rows of a block."""
        return int(self.asked["block_rows"])

    @property
    def blocks(self) -> int:
        """How many there are."""
        return -(-self.count // self.block_rows)

    @property
    def neighbourhood(self) -> Neighbourhood:
        """In which all rows are explained."""
        return unpack_neighbourhood(self.header["neighbourhood"], self.features)

    def write(self, folder: Path) -> None:
        """Whole or not at all."""
        content = {"format": FORMAT, "version": VERSION} | {
            name: getattr(self, name) for name in self.__dataclass_fields__
        }
        content = json.loads(json.dumps(content))
        content["digest"] = digest(content)
        write_whole(folder / MANIFEST, json.dumps(content, indent=1).encode(), is_durable=True)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder, None where it has none."""
    path = folder / MANIFEST
    try:
        raw = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as err:
        msg = f"{str(path)!r} cannot be read: {err}"
        raise UnreadableFile(msg) from err
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        msg = f"{str(path)!r} is no manifest of smoothlime"
        raise UnreadableFile(msg)
    version = raw.get("version")
    if isinstance(version, int) and version > VERSION:
        msg = f"{str(path)!r} has format version {version}, and this smoothlime reads up to {VERSION}: upgrade it"
        raise UnreadableFile(msg)
    if raw.pop("digest", None) != digest(raw):
        msg = f"{str(path)!r} is damaged, or was edited: explain the table anew with resume=False (--no-resume)"
        raise UnreadableFile(msg)
    try:
        fields = {name: raw[name] for name in Manifest.__dataclass_fields__}
    except KeyError as err:
        msg = f"{str(path)!r} lacks the field {err}"
        raise UnreadableFile(msg) from err
    return Manifest(**fields | {"ignored": tuple(raw["ignored"]), "runs": tuple(raw["runs"])})


def plain(value: Any) -> Any:
    """A setting as JSON has it: the same again for the same setting."""
    if isinstance(value, Neighbourhood):
        return {"neighbourhood": digest(pack_neighbourhood(value))}
    if hasattr(value, "needs"):
        return pack_method(value)
    if hasattr(value, "items"):
        return {str(name): plain(each) for name, each in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    return value


def digest(packed: Any) -> str:
    """Of plain values."""
    return hashlib.sha256(json.dumps(packed, sort_keys=True).encode()).hexdigest()


def check_same(old: dict[str, Any], new: dict[str, Any], folder: Path) -> None:
    """Refuse to go on with a job that was asked something else; say what."""
    changed = list(_changes(json.loads(json.dumps(old)), json.loads(json.dumps(new))))
    if changed:
        more = f"; and {len(changed) - TOLD} more" if len(changed) > TOLD else ""
        msg = (
            f"destination {str(folder)!r} holds a job that was asked something else: {'; '.join(changed[:TOLD])}{more}."
            " Ask the same, choose another folder, or start anew with resume=False (--no-resume), which removes"
            " what is there"
        )
        raise InvalidArgument(msg, argument="destination")


def _changes(old: Any, new: Any, name: str = "") -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            if key == "path" and name.startswith("source"):  # a file may move
                continue
            yield from _changes(old.get(key), new.get(key), f"{name} {key}".strip().removeprefix("settings "))
    elif name == "source" and isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"source had {len(old)} files and has {len(new)}"
        for one, other in zip(old, new, strict=False):
            if any(_changes(one, other, name)):
                yield f"source: {other['path']!r} has changed since"
    elif old != new:
        if name in CHANGED:
            yield CHANGED[name]
        else:
            yield f"{name} was {old!r} and is {new!r}"


@dataclass(slots=True)
class Totals:
    """Counts over finished blocks."""

    blocks: int = 0
    rows: int = 0
    failed: int = 0
    late: int = 0
    warned: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The first message of each kind of warning, and in how many blocks it was given"""

    def add(self, entry: Any) -> None:
        """Count a block."""
        self.blocks += 1
        self.rows += entry.rows
        self.failed += entry.failed
        self.late += entry.late
        for kind, message in entry.warned.items():
            first, times = self.warned.get(kind, (message, 0))
            self.warned[kind] = (first, times + 1)

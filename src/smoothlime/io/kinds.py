"""Which results there are files of, told apart by the format that their header names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..contributions import Contributions
from ..errors import UnreadableFile
from ..result.explanation import Explanation
from ..result.interactions import Interactions
from . import contents, contributions, interactions
from .contents import Source
from .fields import take

Result = Explanation | Contributions | Interactions

Unpack = Callable[[dict[str, Any], Source], tuple[Result, list[str]]]

READERS: dict[str, Unpack] = {
    contents.FORMAT: contents.unpack,
    contributions.FORMAT: contributions.unpack,
    interactions.FORMAT: interactions.unpack,
}


def pack(found: Result) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header, in plain values, and the arrays by name."""
    if isinstance(found, Interactions):
        return interactions.pack(found)
    return contributions.pack(found) if isinstance(found, Contributions) else contents.pack(found)


def unpack(header: dict[str, Any], source: Source) -> tuple[Result, list[str]]:
    """The result, from parts that have all been checked, and the fields whose digests do not fit."""
    return READERS[header["format"]](header, source)


def check_format(header: Any) -> None:
    """Whether it is one of ours, and of a version that we can read."""
    kind = header.get("format") if type(header) is dict else None
    if type(kind) is str and kind in READERS:
        if kind == contents.FORMAT:
            contents.check_format(header)
        take(header, "version", int)
        return
    msg = "it holds no explanation; load reads what save has written"
    raise UnreadableFile(msg)

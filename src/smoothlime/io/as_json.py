"""Header and arrays as strict JSON: nested lists, strings for NaN and infinities, ASCII only, every digit kept."""

from __future__ import annotations

import json
from typing import Any

from ..errors import UnreadableFile
from .fields import Kind, from_nested, nested, parsed, take
from .kinds import Result, check_format, pack, unpack


def to_json(found: Result) -> str:
    """JSON text that `load` reads: a field per line."""
    header, arrays = pack(found)
    lines = _lines({name: list(each) if name == "row_outputs" else nested(each) for name, each in arrays.items()}, "  ")
    return f'{{\n{_lines(header, " ")},\n "arrays": {{\n{lines}\n }}\n}}\n'


def from_json(data: bytes) -> tuple[Result, list[str]]:
    """The result in JSON text, as UTF-8, and its fields that have changed."""
    try:
        header = parsed(data.decode("utf-8-sig"))
    except UnreadableFile:
        raise
    except ValueError as err:  # also bytes that are not UTF-8, and numbers of thousands of digits
        msg = f"it is not whole JSON, and may have been cut short: {err}"
        raise UnreadableFile(msg) from err
    check_format(header)
    arrays = _Lists(take(header, "arrays", dict))
    del header["arrays"]
    return unpack(header, arrays)


class _Lists:
    """Arrays as nested lists."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        self._arrays = arrays

    def read(self, name: str, kind: Kind, shape: tuple[int, ...]) -> Any:
        return from_nested(take(self._arrays, name), kind, shape, name)


def _lines(fields: dict[str, Any], indent: str) -> str:
    return ",\n".join(
        f"{indent}{json.dumps(name)}: {json.dumps(each, allow_nan=False)}" for name, each in fields.items()
    )

"""What a file holds of switches: their columns and levels in the header, and one array per field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import UnreadableFile
from ..result.switches import BY_ROW, SwitchedColumn, Switches
from .fields import Kind, shown, take

ARRAYS: dict[str, tuple[Kind, str]] = {
    "own": ("int", "rc"),
    "effect": ("float", "rs"),
    "standard_error": ("float", "rs"),
    "skewness": ("float", "rs"),
    "converged": ("bool", "rs"),
    "n_samples": ("int", "rs"),
}
"""Fields of switches by row: kind of entry, and axes: r rows, c columns, s switches; `switch_` before their name."""

assert set(ARRAYS) == set(BY_ROW)


def pack_switches(switches: Switches | None) -> tuple[Any, dict[str, Any]]:
    """What stands in the header, and the arrays by name."""
    if switches is None:
        return None, {}
    columns = [
        {"feature": each.feature, "levels": list(each.levels), "others": list(each.others)} for each in switches.columns
    ]
    return columns, {f"switch_{name}": getattr(switches, name) for name in ARRAYS}


def unpack_switches(
    header: Any, backend: str, read: Callable[[str, Kind, tuple[int, int]], Any], r: int
) -> Switches | None:
    """The switches, from parts that have all been checked; `read` reads an array by name, kind and shape."""
    if header is None:
        return None
    columns = tuple(_column(each) for each in _several(header, "switches"))
    size = {"r": r, "c": len(columns), "s": sum(len(each.levels) for each in columns)}
    if not size["s"]:
        msg = "the field 'switches' must hold columns with levels; it has none"
        raise UnreadableFile(msg)
    parts = {
        name: read(f"switch_{name}", kind, (size[axes[0]], size[axes[1]])) for name, (kind, axes) in ARRAYS.items()
    }
    most = np.array([len(each.levels) + len(each.others) for each in columns])
    if ((parts["own"] < 0) | (parts["own"] >= most)).any():
        msg = "the field 'switch_own' must hold positions of levels; one is beyond them"
        raise UnreadableFile(msg)
    switches = Switches(columns, **parts, backend=backend)
    is_own, error = switches.is_own, switches.standard_error
    wrong = {
        "effect": np.isfinite(switches.effect) == is_own,
        "standard_error": ~((error >= 0) & np.isfinite(error)) != is_own,
        "skewness": ~(switches.skewness >= 0),
        "n_samples": switches.n_samples < 0,
    }
    name = next((name for name, is_wrong in wrong.items() if is_wrong.any()), None)
    if name is not None:
        msg = f"the field 'switch_{name}' holds numbers that no run can have given; was the file changed?"
        raise UnreadableFile(msg)
    return switches


def _column(raw: Any) -> SwitchedColumn:
    if type(raw) is not dict:
        msg = f"the field 'switches' must hold objects; got {shown(raw)}"
        raise UnreadableFile(msg)
    levels, others = (_texts(raw, name) for name in ("levels", "others"))
    return SwitchedColumn(take(raw, "feature", str), levels, others)


def _texts(raw: dict[str, Any], name: str) -> tuple[str, ...]:
    found = _several(take(raw, name), name)
    for each in found:
        if type(each) is not str:
            msg = f"the field {name!r} must hold text; got {shown(each)}"
            raise UnreadableFile(msg)
    return tuple(found)


def _several(raw: Any, name: str) -> list[Any]:
    found: list[Any] = take({name: raw}, name, list)
    return found

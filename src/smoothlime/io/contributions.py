"""What a file holds of contributions: names, baselines and the neighbourhood in the header, and one array per field."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.types import Indices
from .._core.validate import check_names
from ..contributions import Contributions
from ..errors import UnreadableFile
from ..uncertainty.groups import Groups
from .contents import Source, changed, checked, pack_neighbourhood, unpack_neighbourhood
from .digests import digests
from .fields import Kind, check_version, from_nested, nested, shown, take

FORMAT = "smoothlime contributions"
VERSION = 1

ARRAYS: dict[str, tuple[Kind, str]] = {
    "row_outputs": ("text", "r"),
    "x": ("float", "rd"),
    "values": ("float", "rd"),
    "base": ("float", "r"),
    "total": ("float", "r"),
    "base_error": ("float", "r"),
    "total_error": ("float", "r"),
    "residual": ("float", "r"),
    "residual_error": ("float", "r"),
    "prediction": ("float", "r"),
    "base_prediction": ("float", "r"),
    "radius": ("float", "r"),
    "converged": ("bool", "r"),
    "n_samples": ("int", "r"),
}
"""Fields by row: kind of entry, and axes: r rows, d features, g groups."""

GROUP_ARRAYS: dict[str, tuple[Kind, str]] = {
    "pseudo": ("float", "rgd"),
    "sizes": ("float", "rg"),
    "resolution": ("float", "rd"),
}
"""Fields of its groups, likewise; written with `group_` before their name."""


def pack(found: Contributions) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header, in plain values, and the arrays by name."""
    groups, positions = found.groups, found.baseline_rows
    header = {
        "format": FORMAT,
        "version": VERSION,
        "rows": len(found),
        "groups": None if groups is None else groups.sizes.shape[1],
        "output_name": found.output_name,
        "feature_names": list(found.feature_names),
        "backend": found.backend,
        "baseline": nested(found.baseline),
        "baseline_rows": None if positions is None else positions.tolist(),
        "held_apart": list(found.held_apart),
        "held_alike": list(found.held_alike),
        "neighbourhood": pack_neighbourhood(found.neighbourhood),
    }
    arrays = {name: getattr(found, name) for name in ARRAYS}
    if groups is not None:
        arrays |= {f"group_{name}": np.asarray(getattr(groups, name), dtype=np.float64) for name in GROUP_ARRAYS}
    return header | {"digests": digests(header, arrays)}, arrays


def unpack(header: dict[str, Any], source: Source) -> tuple[Contributions, list[str]]:
    """The contributions, from parts that have all been checked, and the fields whose digests do not fit."""
    check_version(header, VERSION)
    given = take(header, "feature_names", list)
    d = len(given)
    names = checked(check_names, from_nested(given, "text", (d,), "feature_names"), d)
    neighbourhood = unpack_neighbourhood(take(header, "neighbourhood", dict), names)
    checked(neighbourhood.factor, d, names)
    r, g = _count(header, "rows", 1), None if take(header, "groups") is None else _count(header, "groups", 2)
    size: dict[str, Any] = {"r": r, "d": d, "g": g}
    arrays: dict[str, Any] = {}

    def read(name: str, kind: Kind, axes: str) -> Any:
        arrays[name] = source.read(name, kind, tuple(size[axis] for axis in axes))
        return arrays[name]

    fields = {name: read(name, *each) for name, each in ARRAYS.items()}
    groups = None
    if g is not None:
        groups = Groups(**_renamed({name: read(f"group_{name}", *each) for name, each in GROUP_ARRAYS.items()}))
    baseline = _baseline(take(header, "baseline", list), d)
    found = Contributions(
        **fields | {"row_outputs": tuple(fields["row_outputs"])},
        baseline=baseline,
        baseline_rows=_positions(take(header, "baseline_rows", list, type(None)), len(baseline)),
        held_apart=_features(header, "held_apart", names),
        held_alike=_features(header, "held_alike", names),
        feature_names=names,
        output_name=take(header, "output_name", str),
        neighbourhood=neighbourhood,
        backend=take(header, "backend", str),
        groups=groups,
    )
    _check_sense(found)
    return found, changed(header, arrays)


def _renamed(parts: dict[str, Any]) -> dict[str, Any]:
    return {"pseudovalues": parts["pseudo"], "sizes": parts["sizes"], "resolution": parts["resolution"],
            "row_keys": None}  # fmt: skip


def _count(header: dict[str, Any], name: str, least: int) -> int:
    value: int = take(header, name, int)
    if not least <= value < 2**63:
        msg = f"the field {name!r} must be a whole number from {least} on; got {shown(value)}"
        raise UnreadableFile(msg)
    return value


def _baseline(raw: list[Any], d: int) -> Any:
    if not raw:
        msg = "the field 'baseline' must hold rows; it is empty"
        raise UnreadableFile(msg)
    return from_nested(raw, "float", (len(raw), d), "baseline")


def _positions(raw: list[Any] | None, m: int) -> Indices | None:
    if raw is None:
        return None
    found = from_nested(raw, "int", (m,), "baseline_rows")
    if (found < 0).any():
        msg = "the field 'baseline_rows' must hold positions; a negative one is among them"
        raise UnreadableFile(msg)
    return found


def _features(header: dict[str, Any], field: str, names: tuple[str, ...]) -> tuple[str, ...]:
    raw: list[Any] = take(header, field, list)
    for each in raw:
        if each not in names:
            msg = f"the field {field!r} must hold names of features; got {shown(each)}"
            raise UnreadableFile(msg)
    return tuple(raw)


def _check_sense(found: Contributions) -> None:
    """Refuse numbers that no run can have given."""
    sizes = np.ones((1, 1)) if found.groups is None else found.groups.sizes
    wrong = {
        **{name: ~(getattr(found, name) >= 0) for name in ("base_error", "total_error", "residual_error", "radius")},
        "values": np.isnan(found.values),
        "n_samples": found.n_samples < (0 if found.is_exact else 1),
        "group_sizes": (sizes < 0).any(axis=1) | ~(sizes.sum(axis=1) > 0),
    }
    name = next((name for name, is_wrong in wrong.items() if is_wrong.any()), None)
    if name is not None:
        msg = f"the field {name!r} holds numbers that no run can have given; was the file changed?"
        raise UnreadableFile(msg)

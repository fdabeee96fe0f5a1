"""What a file holds of interactions: their explanation, the pairs in the header, and one array per field."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.types import Indices
from ..errors import UnreadableFile
from ..result.interactions import Interactions
from . import contents
from .contents import Source
from .digests import digests
from .fields import Kind, check_version, from_nested, take

FORMAT = "smoothlime interactions"
VERSION = 1
"""Of what stands beside the explanation, which has a version of its own."""

ARRAYS: dict[str, tuple[Kind, str]] = {
    "by_pair": ("float", "rp"),
    "error_by_pair": ("float", "rp"),
    "skewness": ("float", "rp"),
    "linear": ("float", "r"),
    "quadratic": ("float", "r"),
    "variance": ("float", "r"),
}
"""Fields by row: kind of entry, and axes: r rows, p pairs; `second_` before their name."""


def pack(found: Interactions) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header, in plain values, and the arrays by name."""
    header, arrays = contents.pack(found.explanation)
    own = {"version": VERSION, "pairs": found.pairs.tolist()}
    more = {f"second_{name}": getattr(found, name) for name in ARRAYS}
    return header | {"format": FORMAT, "interactions": own | {"digests": digests(own, more)}}, arrays | more


def unpack(header: dict[str, Any], source: Source) -> tuple[Interactions, list[str]]:
    """The interactions, from parts that have all been checked, and the fields whose digests do not fit."""
    own = take(header, "interactions", dict)
    check_version(own, VERSION)
    inner = {name: each for name, each in header.items() if name != "interactions"} | {"format": contents.FORMAT}
    e, changed = contents.unpack(inner, source)
    raw = take(own, "pairs", list)
    pairs = from_nested(raw, "int", (len(raw), 2), "pairs")
    _check_pairs(pairs, e.factor.free)
    size = {"r": len(e), "p": len(pairs)}
    arrays = {
        f"second_{name}": source.read(f"second_{name}", kind, tuple(size[axis] for axis in axes))
        for name, (kind, axes) in ARRAYS.items()
    }
    found = Interactions(explanation=e, pairs=pairs, **{name: arrays[f"second_{name}"] for name in ARRAYS})
    _check_sense(found)
    return found, [*changed, *contents.changed(own, arrays)]


def _check_pairs(pairs: Indices, free: Indices) -> None:
    """Pairs of features that move, the smaller first, each once."""
    is_sorted = bool((pairs[:, 0] <= pairs[:, 1]).all()) and len({tuple(each) for each in pairs.tolist()}) == len(pairs)
    if not (len(pairs) and is_sorted and np.isin(pairs, free).all()):
        msg = "the field 'pairs' must hold positions of two features that move each, the smaller first, no pair twice"
        raise UnreadableFile(msg)


def _check_sense(found: Interactions) -> None:
    """Refuse numbers that no run can have given."""
    is_none = found.explanation.missing[:, found.pairs].any(axis=2)
    wrong = {
        "by_pair": np.isnan(found.by_pair) != is_none,
        "error_by_pair": ~(found.error_by_pair >= 0) != is_none,
        "skewness": ~(found.skewness >= 0) != is_none,
        "linear": np.isnan(found.linear),
        "variance": ~(found.variance >= 0),
    }
    name = next((name for name, is_wrong in wrong.items() if is_wrong.any()), None)
    if name is not None:
        msg = f"the field 'second_{name}' holds numbers that no run can have given; was the file changed?"
        raise UnreadableFile(msg)

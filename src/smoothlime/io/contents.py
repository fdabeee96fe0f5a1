"""What a file holds: a header of names, settings and provenance, and one array per field of an explanation.

Both formats hold the same; they differ in how arrays are written down.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from math import prod
from typing import Any, Protocol

import numpy as np

from .._core.validate import check_choice, check_count, check_names, check_number, default_names
from ..draws.designs import DESIGNS
from ..draws.normals import GENERATOR
from ..errors import SmoothlimeError, UnreadableFile
from ..exact import Exact
from ..result.explanation import Explanation, Provenance
from ..space.neighbourhood import Neighbourhood
from ..uncertainty.groups import Groups
from ..uncertainty.jackknife import standard_error
from .backgrounds import pack_background, unpack_background
from .digests import digests
from .fields import Kind, check_version, dtype_of, from_nested, nested, newer, shown, take
from .marks import MARKS, check_marks, named_marks, unmarked
from .settings import pack_method, unpack_method
from .switches import pack_switches, unpack_switches

FORMAT = "smoothlime explanation"
VERSION = 6
"""Raised when older versions could not read what is written, or would misread it, and when a method gets a further
setting; what older versions wrote stays readable, and settings that it lacks have their defaults."""

DIGESTED = 5
"""The first version with digests."""

MARKED = 6
"""The first version that says what stands behind NaN in `x`: what is missing, is no number, or is of different rows."""

RAISED = 4
"""The last version in which errors of nets that agreed were raised when they were read."""

WITHOUT_DATA = 5
"""The last version that kept nothing of a background but units."""
UNSWITCHED = 5
"""The last version without switches."""

UNTOLD = 4
"""The last version without tolerances."""

SHAPED = 6
"""The first version with shapes of inputs."""

LARGEST = 2**63 - 1
"""Of whole numbers that count something."""

ARRAYS: dict[str, tuple[Kind, str]] = {
    "row_outputs": ("text", "r"),
    "prediction": ("float", "r"),
    "smoothed": ("float", "r"),
    "fidelity": ("float", "r"),
    "radius": ("float", "r"),
    "converged": ("bool", "r"),
    "n_samples": ("int", "r"),
    "n_evaluations": ("int", "r"),
    "degrees_of_freedom": ("float", "r"),
    "x": ("float", "rd"),
    "values": ("float", "rd"),
    "standard_error": ("float", "rd"),
}
"""Fields of an explanation by row: kind of entry, and axes: r rows, d features, f perturbed features, g groups,
k directions."""

GROUP_ARRAYS: dict[str, tuple[Kind, str]] = {
    "pseudo": ("float", "rgf"),
    "sizes": ("float", "rg"),
    "resolution": ("float", "rf"),
}
"""Fields of its groups, likewise; written with `group_` before their name."""


class Source(Protocol):
    """Where arrays are read from."""

    def read(self, name: str, kind: Kind, shape: tuple[int, ...]) -> Any:
        """The array of that name, of that kind and shape, or an error that says how it differs."""
        ...


def pack(e: Explanation) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header, in plain values, and the arrays by name."""
    given = e.provenance
    marks = [name for name in MARKS if getattr(e, name).any()]
    switches, switched = pack_switches(e.switches)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "rows": len(e),
        "groups": None if e.groups is None else e.groups.sizes.shape[1],
        "has_row_keys": e.groups is not None and e.groups.row_keys is not None,
        "has_selected": e.selected is not None,
        "marks": marks,
        "directions": None if e.directions is None else e.directions.shape[1],
        "switches": switches,
        "output_name": e.output_name,
        "feature_names": list(e.feature_names),
        "input_shape": list(e.input_shape),
        "neighbourhood": pack_neighbourhood(e.neighbourhood),
        "provenance": {
            name: pack_method(given.method) if name == "method" else _plain(getattr(given, name)) for name in PROVENANCE
        },
    }
    arrays = {name: getattr(e, name) for name in (*ARRAYS, *marks)} | switched
    if e.selected is not None:
        arrays["selected"] = e.selected
    if e.directions is not None:
        arrays["directions"] = e.directions
    if e.groups is not None:
        arrays |= {f"group_{name}": getattr(e.groups, name) for name in GROUP_ARRAYS}
        if e.groups.row_keys is not None:
            arrays["row_keys"] = e.groups.row_keys
    return header | {"digests": digests(header, arrays)}, arrays


def unpack(header: dict[str, Any], source: Source) -> tuple[Explanation, list[str]]:
    """The explanation, from parts that have all been checked, and the fields whose digests do not fit."""
    check_format(header)
    version = header["version"]
    given = take(header, "feature_names", list)
    d = len(given)
    names = checked(check_names, from_nested(given, "text", (d,), "feature_names"), d)
    raw = take(header, "neighbourhood", dict)
    neighbourhood = unpack_neighbourhood(raw if version > WITHOUT_DATA else raw | {"background": None}, names)
    moved = checked(neighbourhood.factor, d, names).free
    free = len(moved)
    r = _count("rows", 0)(take(header, "rows"))
    if version < DIGESTED:
        header = {"directions": None} | header  # the oldest files have none
    g, k = (None if take(header, name) is None else _count(name, 1)(header[name]) for name in ("groups", "directions"))
    size: dict[str, Any] = {"r": r, "d": d, "f": free, "g": g, "k": k}
    arrays: dict[str, Any] = {}

    def read_as(name: str, kind: Kind, shape: tuple[int, ...]) -> Any:
        arrays[name] = source.read(name, kind, shape)
        return arrays[name]

    def read(name: str, kind: Kind, axes: str) -> Any:
        return read_as(name, kind, tuple(size[axis] for axis in axes))

    switches = take(header, "switches") if version > UNSWITCHED else None
    fields = {name: read(name, *each) for name, each in ARRAYS.items()}
    groups = None if g is None else _groups(header, read, fields["degrees_of_freedom"])
    if version < MARKED:
        marks = unmarked(fields, moved)
        groups = None if marks["missing"].any() else groups  # draws of all features, which are now drawn without
    else:
        marks = {name: read(name, "bool", MARKS[name]) for name in named_marks(header)}
        check_marks(fields["x"], marks, moved)
    provenance = unpack_provenance(take(header, "provenance", dict), version)
    is_exact = isinstance(provenance.method, Exact)
    if (provenance.design in Exact.designs) != is_exact:
        msg = f"the design {provenance.design!r} does not go with the method {provenance.method.name!r}"
        raise UnreadableFile(msg)
    _check_sense(fields, None if groups is None else groups.sizes, is_exact=is_exact)
    e = Explanation(
        **fields | {"row_outputs": tuple(fields["row_outputs"])},
        feature_names=names,
        output_name=take(header, "output_name", str),
        neighbourhood=neighbourhood,
        provenance=provenance,
        groups=groups,
        selected=read("selected", "float", "rd") if take(header, "has_selected", bool) else None,
        directions=None if k is None else read("directions", "float", "rkf"),
        input_shape=() if version < SHAPED else _input_shape(take(header, "input_shape", list), d),
        **marks,
        switches=unpack_switches(switches, provenance.backend, read_as, r),
    )
    return e, changed(header, arrays)


def _groups(header: dict[str, Any], read: Callable[[str, Kind, str], Any], freedom: Any) -> Groups:
    parts = {name: read(f"group_{name}", *each) for name, each in GROUP_ARRAYS.items()}
    keys = read("row_keys", "int", "r") if take(header, "has_row_keys", bool) else None
    if keys is not None and (keys < 0).any():
        msg = "the field 'row_keys' must hold positions; a negative one is among them"
        raise UnreadableFile(msg)
    groups = Groups(parts["pseudo"], parts["sizes"], parts["resolution"], keys, freedom)
    return _raised(groups) if header["version"] <= RAISED else groups


def changed(header: dict[str, Any], arrays: dict[str, Any]) -> list[str]:
    """Fields that are not what their digests say; of older files, which have none, nothing is known."""
    if header["version"] < DIGESTED and "digests" not in header:
        return []
    saved = header.get("digests")
    if type(saved) is not dict:
        return ["digests"]
    found = digests({name: each for name, each in header.items() if name != "digests"}, arrays)
    return [name for name in found | saved if found.get(name) != saved.get(name)]


def _raised(groups: Groups) -> Groups:
    """Versions up to 4 took two and a half resolutions where groups agreed to within a quarter of one."""
    with np.errstate(all="ignore"):  # sizes that cannot be are refused later
        error, resolution = standard_error(groups.pseudo, groups.sizes), groups.resolution
    return dataclasses.replace(groups, resolution=np.where(error < resolution / 4, 2.5 * resolution, resolution))


def _check_sense(fields: dict[str, Any], sizes: Any, *, is_exact: bool) -> None:
    """Refuse numbers that no run can have given."""
    share = fields["fidelity"]
    wrong = {
        "n_samples": fields["n_samples"] < (0 if is_exact else 1),
        "n_evaluations": fields["n_evaluations"] < 1,
        "standard_error": fields["standard_error"] < 0,
        "radius": fields["radius"] < 0,
        "degrees_of_freedom": fields["degrees_of_freedom"] < 0,
        "fidelity": (share < 0) | (share > 1),
        "group_sizes": np.zeros(0) if sizes is None else (sizes < 0).any(axis=1) | ~(sizes.sum(axis=1) > 0),
    }
    name = next((name for name, is_wrong in wrong.items() if np.any(is_wrong)), None)
    if name is not None:
        msg = f"the field {name!r} holds numbers that no run can have given; was the file changed?"
        raise UnreadableFile(msg)


def check_format(header: Any) -> None:
    """Whether it is ours, and of a version that we can read."""
    if type(header) is not dict or header.get("format") != FORMAT:
        msg = "it holds no explanation; load reads what save has written"
        raise UnreadableFile(msg)
    check_version(header, VERSION)


def _input_shape(raw: list[Any], d: int) -> tuple[int, ...]:
    """Sizes of at least two axes that hold d numbers, or none."""
    shape = tuple(_count("input_shape", 1)(each) for each in raw)
    if shape and (len(shape) < 2 or prod(shape) != d):
        msg = f"the field 'input_shape' must hold two sizes or more of {d} numbers in all, or none; got {shown(raw)}"
        raise UnreadableFile(msg)
    return shape


def pack_neighbourhood(around: Neighbourhood) -> dict[str, Any]:
    """Plain values."""
    return {
        "sigma": nested(around.sigma),
        "scale": None if around.scale is None else nested(around.scale),
        "covariance": None if around.covariance is None else nested(around.covariance),
        "fixed": [each if isinstance(each, str) else int(each) for each in around.fixed],
        "columns": None if around.columns is None else list(around.columns),
        "background": pack_background(around.background),
    }


def unpack_neighbourhood(raw: dict[str, Any], names: tuple[str, ...]) -> Neighbourhood:
    """What `pack_neighbourhood` made, around rows with features of these names, checked."""
    d = len(names)
    fixed = take(raw, "fixed", list)
    for each in fixed:
        if type(each) not in (int, str):
            msg = f"the field 'fixed' must hold positions or names of features; got {shown(each)}"
            raise UnreadableFile(msg)
    given = {}
    for name, dimensions in (("sigma", 1), ("scale", 1), ("covariance", 2)):
        value = take(raw, name)
        if value is not None:
            is_number = name == "sigma" and type(value) is not list
            given[name] = from_nested(value, "float", () if is_number else (d,) * dimensions, name)
    if "sigma" not in given:
        msg = "the field 'sigma' must be a number, or one per feature; got null"
        raise UnreadableFile(msg)
    columns = take(raw, "columns", list, type(None))
    if columns is not None:
        columns = from_nested(columns, "text", (d,), "columns")
        if names == default_names(d) != tuple(columns):  # earlier versions then took scales by position: they were none
            columns = None
    background = unpack_background(take(raw, "background"), d)
    return checked(Neighbourhood, **given, fixed=fixed, columns=columns, background=background)


def unpack_provenance(raw: dict[str, Any], version: int) -> Provenance:
    """How an explanation was made, from plain values, checked."""
    if version == 1:  # NumPy's, for independent draws; all others are what they were
        raw = raw | {"generator": "PCG64" if raw.get("design") in ("iid", "antithetic") else GENERATOR}
    if version <= 2:
        raw = raw | {"longer": 0.0}
    elif version == 3:
        raw = raw | {"longer": float(take(raw, "is_lengthened", bool))}
    if version <= UNTOLD:
        raw = raw | {"rtol": None, "atol": None}
    method = unpack_method(take(raw, "method"), is_older=version < VERSION)
    return Provenance(method, **{name: read(take(raw, name)) for name, read in PROVENANCE.items() if name != "method"})


def _text(name: str) -> Callable[[Any], str]:
    return lambda raw: take({name: raw}, name, str)


def _word(name: str, choices: tuple[str, ...]) -> Callable[[Any], str]:
    return lambda raw: checked(check_choice, raw, name, choices)


def _count(name: str, at_least: int, at_most: float = LARGEST) -> Callable[[Any], int]:
    """What reads a whole number between the two."""

    def read(raw: Any) -> int:
        value: int = checked(check_count, take({name: raw}, name, int), name, at_least=at_least)
        if value > at_most:
            msg = f"the field {name!r} must be at most {at_most:,}; got {shown(raw)}"
            raise UnreadableFile(msg)
        return value

    return read


def _design(raw: Any) -> str:
    if take({"design": raw}, "design", str) not in (*DESIGNS, *Exact.designs):
        raise newer(f"the design {shown(raw)}")
    return str(raw)


def _share(name: str) -> Callable[[Any], float]:
    def read(raw: Any) -> float:
        if not 0 <= take({name: raw}, name, float, int) <= 1:
            msg = f"the field {name!r} must lie between 0 and 1; got {shown(raw)}"
            raise UnreadableFile(msg)
        return float(raw)

    return read


def _tolerance(name: str) -> Callable[[Any], float | None]:
    def read(raw: Any) -> float | None:
        value = take({name: raw}, name, float, int, type(None))
        return value if value is None else checked(check_number, value, name)

    return read


def _dtype(raw: Any) -> str:
    if dtype_of(take({"dtype": raw}, "dtype", str), "f") is None:
        msg = f"the field 'dtype' must name a floating type; got {shown(raw)}"
        raise UnreadableFile(msg)
    return str(raw)


def _versions(raw: Any) -> dict[str, str]:
    for name in take({"versions": raw}, "versions", dict):
        take(raw, name, str)
    return dict(raw)


PROVENANCE: dict[str, Callable[[Any], Any]] = {
    "method": unpack_method,
    "design": _design,
    "seed": _count("seed", 0, at_most=np.inf),
    "draws": _word("draws", ("shared", "independent")),
    "confidence": _share("confidence"),
    "guarantee": _word("guarantee", ("approximate", "certified")),
    "assumes": _text("assumes"),
    "block": _count("block", 1),
    "dtype": _dtype,
    "batch_size": _count("batch_size", 1),
    "versions": _versions,
    "backend": _text("backend"),
    "generator": _text("generator"),
    "longer": _share("longer"),
    "rtol": _tolerance("rtol"),
    "atol": _tolerance("atol"),
}
"""Fields of the provenance, and how each is read."""


def _plain(value: Any) -> Any:
    """Mappings and NumPy numbers as JSON has them."""
    if isinstance(value, np.generic):
        return value.item()
    return dict(value) if hasattr(value, "keys") else value


def checked(make: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What `make` makes; its complaint, where it has one, is about the file."""
    try:
        return make(*given, **named)
    except UnreadableFile:
        raise
    except (SmoothlimeError, ValueError, TypeError, ArithmeticError) as err:
        raise UnreadableFile(str(err)) from err

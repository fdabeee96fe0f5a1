"""Reading fields that anyone may have written: each is there, of its type and shape, or an error says so."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping
from itertools import chain
from typing import Any, Literal

import numpy as np

from .._core.version import __version__
from ..errors import UnreadableFile

Kind = Literal["float", "int", "bool", "text"]

DTYPES: dict[Kind, Any] = {"float": np.float64, "int": np.intp, "bool": np.bool_, "text": object}
"""What the entries of an array are in memory, by their kind."""

NOT_FINITE = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
"""Numbers that JSON has no token for, and the strings that stand for them."""

_TYPES: dict[Kind, set[type]] = {"float": {float, int, str}, "int": {int}, "bool": {bool}, "text": {str}}
_WORDS: dict[Kind, str] = {"float": "numbers", "int": "whole numbers", "bool": "true or false", "text": "text"}


def take(record: Mapping[str, Any], name: str, *types: type) -> Any:
    """The field of that name, which must be of one of the types."""
    if name not in record:
        msg = f"the field {name!r} is missing"
        raise UnreadableFile(msg)
    value = record[name]
    if types and type(value) not in types:
        wanted = " or ".join(_name(each) for each in types)
        msg = f"the field {name!r} must be {wanted}; got {shown(value)}"
        raise UnreadableFile(msg)
    return value


def nested(array: Any) -> Any:
    """An array as nested lists, with strings for numbers that JSON has no token for."""
    array = np.asarray(array)
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return array.tolist()
    entries = array.astype(object)
    for word, number in NOT_FINITE.items():
        entries[np.isnan(array) if word == "NaN" else array == number] = word
    return entries.tolist()


def from_nested(raw: Any, kind: Kind, shape: tuple[int, ...], name: str) -> np.ndarray[Any, Any]:
    """Nested lists as an array of the given kind and shape."""
    level = [raw]
    for axis, size in enumerate(shape):
        for each in level:
            if type(each) is not list:
                msg = f"the field {name!r} must be lists, {len(shape)} deep; got {shown(each)}"
                raise UnreadableFile(msg)
            if len(each) != size:
                raise wrong_shape(name, axis, len(each), shape)
        level = list(chain.from_iterable(level))
    strange = set(map(type, level)) - _TYPES[kind]
    if strange:
        bad = next(each for each in level if type(each) in strange)
        raise wrong_kind(name, kind, shown(bad))
    try:
        array = np.array([_number(each, name) for each in level] if kind == "float" else level, dtype=DTYPES[kind])
    except OverflowError as err:
        msg = f"the field {name!r} holds a number that is too large"
        raise UnreadableFile(msg) from err
    return shaped(array, shape, name)


def shaped(array: np.ndarray[Any, Any], shape: tuple[int, ...], name: str) -> np.ndarray[Any, Any]:
    """Entries in their shape; where there are none, no length of theirs has been checked yet."""
    try:
        return array.reshape(shape)
    except (OverflowError, ValueError) as err:
        msg = f"the field {name!r} cannot have shape {shown(shape)}"
        raise UnreadableFile(msg) from err


def parsed(text: str | bytes) -> Any:
    """Plain values in JSON text, without the numbers that JSON does not have."""
    return json.loads(text, parse_constant=_refuse)


def dtype_of(name: str, kinds: str) -> np.dtype[Any] | None:
    """The NumPy type of that name, if it is of one of the kinds; None for all else that NumPy reads as types."""
    try:
        dtype = np.dtype(name) if re.fullmatch("[<>=|]?[a-z]+[0-9]*", name) else None
    except TypeError:
        return None
    return dtype if dtype is not None and dtype.kind in kinds else None


def check_version(header: Mapping[str, Any], newest: int) -> None:
    """Whether a version is one that we can read."""
    version = take(header, "version", int)
    if version > newest:
        msg = (
            f"it has format version {shown(version)}, and this smoothlime ({__version__}) reads up to version"
            f" {newest}: upgrade smoothlime to read it"
        )
        raise UnreadableFile(msg)
    if version < 1:
        msg = f"the field 'version' must be at least 1; got {shown(version)}"
        raise UnreadableFile(msg)


def wrong_shape(name: str, axis: int, found: int, shape: tuple[int, ...]) -> UnreadableFile:
    """The complaint that an array does not have the shape that the others give it."""
    return UnreadableFile(
        f"its parts do not fit together: {name!r} has length {found} along axis {axis},"
        f" where the rest calls for shape {shown(shape)}"
    )


def wrong_kind(name: str, kind: Kind, found: str) -> UnreadableFile:
    """The complaint that an array holds entries of another type."""
    return UnreadableFile(f"the field {name!r} must hold {_WORDS[kind]}; got {found}")


def newer(what: str) -> UnreadableFile:
    """The complaint about something that we do not know, but that a later version may."""
    return UnreadableFile(
        f"{what} is unknown to this version of smoothlime, {__version__};"
        " a newer one may have written the file: upgrade smoothlime to read it"
    )


def shown(value: Any) -> str:
    """A value, cut short where it is long."""
    return reprlib.repr(value)


def _number(entry: Any, name: str) -> float:
    if type(entry) is str:
        if entry not in NOT_FINITE:
            raise wrong_kind(name, "float", shown(entry))
        return NOT_FINITE[entry]
    number = float(entry)
    if number in (np.inf, -np.inf):  # 1e999: a number that no float64 can hold
        msg = f"the field {name!r} holds a number that is too large"
        raise UnreadableFile(msg)
    return number


def _refuse(token: str) -> Any:
    msg = f"it holds {token}, which is not JSON; such numbers are written as text, {token!r}"
    raise UnreadableFile(msg)


def _name(kind: type) -> str:
    words = {
        dict: "an object",
        list: "a list",
        str: "text",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
    }
    return "null" if kind is type(None) else words.get(kind, kind.__name__)

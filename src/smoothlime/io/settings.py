"""A method and its settings as plain values, and back through its own constructor."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from ..errors import InvalidArgument, SmoothlimeError, UnreadableFile, WrongType
from ..estimators.certified import Certifying
from ..exact import Exact
from ..sampling.defaults import METHODS
from .fields import NOT_FINITE, dtype_of, nested, newer, shown, take

MARKERS = ("number", "tuple", "mapping", "array", "method", "not saved")
"""Keys of the objects that stand for settings of which JSON has no kind."""


@dataclass(frozen=True, slots=True, repr=False)
class NotSaved:
    """Stands where a setting was that no file can hold, such as a function: its name, and no more."""

    what: str

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Nothing to call: say what is missing."""
        msg = f"{self.what} was not saved with the explanation: files hold no code. Give the function itself again"
        raise InvalidArgument(msg)

    @property
    def __name__(self) -> str:
        """What messages that name a function show."""
        return f"<not saved: {self.what}>"

    def __repr__(self) -> str:
        """Unlike anything that could be typed in its place."""
        return self.__name__


def kinds() -> dict[str, type]:
    """Classes of settings that files may name."""
    known: tuple[Any, ...] = (*METHODS.values(), Exact, *get_args(Certifying))
    return {kind.__name__: kind for kind in known}


def pack_method(method: Any) -> dict[str, Any]:
    """The class of the settings, and each of them."""
    kind = type(method)
    if kinds().get(kind.__name__) is not kind:
        msg = f"only the methods of smoothlime can be saved; {kind.__qualname__} is not one, and could not be loaded"
        raise WrongType(msg)
    settings = {each.name: _pack(getattr(method, each.name)) for each in dataclasses.fields(kind) if each.init}
    return {"kind": kind.__name__, "settings": settings}


def unpack_method(raw: Any, *, is_older: bool = False) -> Any:
    """The settings, made and checked by their own constructor; those that older files lack have their defaults."""
    if type(raw) is not dict:
        msg = f"the field 'method' must be an object; got {shown(raw)}"
        raise UnreadableFile(msg)
    name = take(raw, "kind", str)
    kind: Any = kinds().get(name)
    if kind is None:
        raise newer(f"the method {shown(name)}")
    settings = take(raw, "settings", dict)
    known = [each.name for each in dataclasses.fields(kind) if each.init]
    for each in settings:
        if each not in known:
            raise newer(f"the setting {shown(each)} of {name}")
    missing = [each for each in known if each not in settings]
    if missing and not is_older:
        msg = f"the setting {missing[0]!r} of {name} is missing"
        raise UnreadableFile(msg)
    if is_older and name == "Lime" and settings.get("features") is None:  # it could say how to select nothing
        settings = {each: value for each, value in settings.items() if each != "select"}
    try:
        method = kind(**{each: _unpack(value, each, is_older=is_older) for each, value in settings.items()})
        _ = f"{method.name}{getattr(method, 'assumes', '')}"  # settings of settings are asked for here
    except UnreadableFile:
        raise
    except (SmoothlimeError, TypeError, ValueError, AttributeError, ArithmeticError) as err:
        msg = f"{name} does not take the settings in it: {err}"
        raise UnreadableFile(msg) from err
    return method


def _pack(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"number": nested(value)}
    if isinstance(value, list):
        return [_pack(each) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [_pack(each) for each in value]}
    if isinstance(value, dict):
        return {"mapping": [[_pack(key), _pack(each)] for key, each in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return {"array": _pack(value.tolist()), "dtype": value.dtype.str}
    if type(value) in kinds().values():
        return {"method": pack_method(value)}
    if isinstance(value, NotSaved):
        return {"not saved": value.what}
    named = value if callable(value) and hasattr(value, "__qualname__") else type(value)
    return {"not saved": f"{named.__module__}.{named.__qualname__}"}


def _unpack(raw: Any, name: str, *, is_older: bool) -> Any:
    """The setting of that name, or a part of it."""

    def inner(part: Any) -> Any:
        return _unpack(part, name, is_older=is_older)

    if isinstance(raw, list):
        return [inner(each) for each in raw]
    if not isinstance(raw, dict):
        return raw
    marker = next((each for each in MARKERS if each in raw), "")
    if marker == "number":
        return NOT_FINITE[raw[marker]] if raw[marker] in NOT_FINITE else _unknown(raw, name)
    if marker == "tuple":
        return tuple(inner(each) for each in take(raw, marker, list))
    if marker == "mapping":
        return {inner(key): inner(each) for key, each in take(raw, marker, list)}
    if marker == "array":
        dtype = dtype_of(take(raw, "dtype", str), "biuf")
        return _unknown(raw, name) if dtype is None else np.array(inner(take(raw, marker, list)), dtype=dtype)
    if marker == "method":
        return unpack_method(raw[marker], is_older=is_older)
    if marker == "not saved":
        return NotSaved(take(raw, marker, str))
    return _unknown(raw, name)


def _unknown(raw: Any, name: str) -> Any:
    raise newer(f"the setting {name!r}, written as {shown(raw)},")

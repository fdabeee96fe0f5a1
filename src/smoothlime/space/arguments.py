"""Arguments that say how wide a neighbourhood is, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._core.types import Array
from .._core.validate import as_own_array, is_iterable
from ..errors import InvalidArgument, WrongType

LEAST = float(np.finfo(np.float64).tiny)
"""Smallest width: smaller numbers have fewer digits, and the reciprocals of the smallest are infinite."""


def several(fixed: Any) -> tuple[int | str, ...]:
    """One feature or several, by position or name."""
    if fixed is None:
        msg = "fixed takes positions or names; got None. Leave it out to hold nothing fixed"
        raise InvalidArgument(msg, argument="fixed")
    is_one = isinstance(fixed, str | bytes) or not is_iterable(fixed)
    given = (fixed[()] if isinstance(fixed, np.ndarray) else fixed,) if is_one else tuple(fixed)
    strange = [each for each in given if not isinstance(each, str | int | np.integer)]
    if strange and not isinstance(strange[0], bool | np.bool_):
        msg = f"fixed takes positions or names; got {strange[0]!r}"
        raise InvalidArgument(msg, argument="fixed")
    if any(isinstance(each, bool | np.bool_) for each in given):
        msg = f"fixed takes positions or names, not a mask; got {fixed!r}. np.flatnonzero turns a mask into positions"
        raise InvalidArgument(msg, argument="fixed")
    return given


def check_meaning(given: Any, names: Sequence[Any], argument: str) -> None:
    """Refuse a number that may be a position, or the name of another column, as pandas takes it."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        return
    name = str(given)
    position = int(given) if 0 <= given < len(names) else None
    if name not in names or (position is not None and names[position] == name):
        return
    other = "" if position is None else f", and {names[position]!r} for the one at position {position}"
    msg = f"{argument} names {given}, a number, and there is a column {name!r}: write {name!r} for it{other}"
    raise InvalidArgument(msg, argument=argument)


def refuse_words(scale: Any) -> None:
    """Refuse what steps can be taken in where their units are asked for."""
    if isinstance(scale, str | Mapping):
        msg = (
            f"scale of a Neighbourhood is one number per feature, the unit in which sigma counts; got {scale!r}. What"
            " steps are taken in goes to Neighbourhood.from_data(X, scale=...), or with background= to explain"
        )
        raise WrongType(msg, argument="scale")


def positive(value: Any, name: str, *, at_least_1d: bool = False) -> Array:
    """One positive number, or one per feature, as an array of its own."""
    if value is None:
        msg = f"{name} must be one number, or one per feature; got None. Leave it out for 1.0"
        raise WrongType(msg, argument=name)
    array = as_own_array(value, name, allow_bools=False)
    if array.ndim > 1 or (at_least_1d and array.ndim == 0):
        wanted = "one number per feature" if at_least_1d else "one number, or one per feature"
        msg = f"{name} must be {wanted}; got shape {array.shape}"
        raise InvalidArgument(msg, argument=name)
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= LEAST)))
    if len(bad):
        where = f" at feature {bad[0]}" if array.ndim else ""
        hint = "; list a feature in `fixed` to leave it alone" if array.ndim else ""
        found = array.flat[bad[0]]
        wanted = f"{LEAST:.2g} or more" if 0 < found < LEAST else "finite and > 0"
        msg = f"{name} must be {wanted}; got {found:g}{where}{hint}"
        raise InvalidArgument(msg, argument=name)
    return array


def check_length(given: int, d: int, name: str) -> None:
    """Refuse other than one entry per feature."""
    if given != d:
        msg = f"{name} has {given} entries but the rows have {d} features"
        raise InvalidArgument(msg, argument=name)


def short(value: Any) -> str:
    """A number, or the first few of several."""
    if np.ndim(value) == 0:
        return f"{float(value):g}"
    shown = ", ".join(f"{each:g}" for each in value[:6])
    return f"[{shown}{', ...' if len(value) > 6 else ''}]"

"""The one place that words complaints about arguments: what must hold, what came, what to do."""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import InvalidArgument, SmoothlimeError, WrongType
from .types import Array, Indices

TEXT, DATES, SPANS = (
    ("text", "np.asarray({name}, dtype=float)"),
    ("dates", "({name} - date) / np.timedelta64(1, 'D')"),
    ("spans of time", "{name} / np.timedelta64(1, 'D')"),
)
NO_NUMBERS = {"U": TEXT, "T": TEXT, "S": TEXT, "M": DATES, "m": SPANS}
"""Kinds of arrays that NumPy would turn into numbers if asked to: what is in them, and how to say what it means."""


def as_float_array(value: Any, name: str, *, allow_bools: bool = True) -> Array:
    """Any array, tensor or nested list as float64, NaN for what is masked; or an error that names the argument."""
    if hasattr(value, "detach"):  # a torch tensor, perhaps on a device or inside a graph
        value = value.detach().cpu()
        value = value.double() if value.is_floating_point() else value  # NumPy has no bfloat16
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        msg = f"{name} is a sparse {type(value).__name__}; give it in full: {name}.toarray()"
        raise WrongType(msg, argument=name)
    try:
        found = np.asarray(value)
        _check_kind(found, name)
        if not allow_bools:
            _refuse_bools(value, found, name)
        if is_masked(value):  # asarray takes what lies beneath the mask
            return np.asarray(value.astype(np.float64).filled(np.nan))
        # objects are asked again: columns of nullable numbers have their own way to write gaps as NaN
        return np.asarray(value if found.dtype.kind == "O" else found, dtype=np.float64)
    except SmoothlimeError:
        raise
    except (TypeError, ValueError, RuntimeError, OverflowError) as err:
        lengths = _lengths(value)
        if len(lengths) > 1:
            msg = f"{name} must have rows of one length; got rows of {lengths[0]} and of {lengths[1]} numbers"
            raise WrongType(msg, argument=name) from err
        msg = f"{name} must hold numbers; a {type(value).__name__} came that cannot be read as such: {err}"
        raise WrongType(msg, argument=name) from err


def as_own_array(value: Any, name: str, *, allow_bools: bool = True) -> Array:
    """The same as `as_float_array`, in memory of its own: what the caller does to `value` later does not reach it."""
    array = as_float_array(value, name, allow_bools=allow_bools)
    return array.copy() if _may_share(value, array) else array


def _may_share(value: Any, array: Array) -> bool:
    """Whether reading `value` as an array has not copied it; of what is neither array nor tensor nobody knows."""
    if isinstance(value, np.ndarray):
        return np.may_share_memory(value, array)
    if hasattr(value, "detach"):
        return bool(value.data_ptr() == array.ctypes.data)
    return not isinstance(value, list | tuple | int | float)


def is_masked(value: Any) -> bool:
    """Whether it is a masked array, without loading `numpy.ma` to ask."""
    return isinstance(value, np.ndarray) and hasattr(value, "mask")


def _refuse_bools(value: Any, found: Any, name: str) -> None:
    """Refuse true and false, also in a list beside numbers, where NumPy takes them for such."""
    is_beside = isinstance(value, list | tuple) and any(isinstance(each, bool | np.bool_) for each in value)
    if is_beside or found.dtype.kind == "b":
        given = list(value) if is_beside else found.tolist()
        msg = f"{name} must hold numbers; got {_shown(given)}. Write 1.0 if that is what is meant"
        raise WrongType(msg, argument=name)


def _check_kind(found: Any, name: str) -> None:
    """Refuse arrays that hold no numbers, though NumPy may read them as such."""
    kind = found.dtype.kind
    if kind == "c":
        msg = f"{name} must hold real numbers; got complex ones"
        raise WrongType(msg, argument=name)
    what = what_instead_of_numbers(found)
    if what:
        way = next(way for kind, way in NO_NUMBERS.values() if what.startswith(kind)).format(name=name)
        msg = f"{name} must hold numbers; got {what}. Make numbers of it first: {way}"
        raise WrongType(msg, argument=name)


def what_instead_of_numbers(found: Any) -> str:
    """What an array holds that NumPy would make numbers of though it means none, with an example; or nothing."""
    if found.dtype.kind == "O":
        strange = (each for each in found.flat if isinstance(each, str | bytes | np.datetime64 | np.timedelta64))
        found = np.asarray(next(strange, 0.0))
    if found.dtype.kind not in NO_NUMBERS:
        return ""
    shown = next((str(each) for each in found.flat), "")
    return f"{NO_NUMBERS[found.dtype.kind][0]} such as {shown!r}"


def _lengths(value: Any) -> list[int]:
    """The different lengths of rows in a list, in the order they come in."""
    rows = value if isinstance(value, list | tuple) else ()
    return list(dict.fromkeys(len(each) for each in rows if isinstance(each, list | tuple)))


def check_rows(X: Any, name: str = "X", *, finite: bool = True, own: bool = False) -> Array:
    """One row (d,) or rows (r, d) as a float64 array (r, d), finite unless that is looked at later.

    `own` is for rows that are kept: they are copied once.
    """
    rows = as_own_array(X, name) if own else as_float_array(X, name)
    if rows.ndim == 1:
        rows = rows[None, :]
    if rows.ndim != 2:
        way = f". Flatten each, {name}.reshape(len({name}), -1), and let the model undo it, as torch.nn.Unflatten does"
        msg = f"{name} must be one row (d,) or rows (r, d); got shape {rows.shape}{way if rows.ndim > 2 else ''}"
        raise InvalidArgument(msg, argument=name)
    if rows.size == 0:
        msg = f"{name} is empty: it has shape {rows.shape}; give at least one row and one feature"
        raise InvalidArgument(msg, argument=name)
    if finite:
        check_finite(rows, np.arange(rows.shape[1]), (), name)
    return rows


def check_finite(
    rows: Array, free: Indices, feature_names: Sequence[str], name: str = "X", *, takes_gaps: bool = False
) -> None:
    """Refuse ±inf, and NaN where it is no gap, in perturbed features; in all others they are the model's business."""
    some = rows if len(free) == rows.shape[1] else rows[:, free]
    with np.errstate(all="ignore"):
        if np.isfinite(some.sum()):  # cheaper than looking at each; look only when something is off
            return
    bad = np.argwhere(np.isinf(some) if takes_gaps else ~np.isfinite(some))
    if len(bad):
        row, feature = bad[0][0], free[bad[0][1]]
        called = f" ({feature_names[feature]!r})" if feature_names else ""
        msg = (
            f"{name} must be finite; got {rows[row, feature]} at row {row}, feature {feature}{called}"
            f" ({len(bad)} such value{'s' * (len(bad) > 1)} in all). Impute it, or list the feature in `fixed`"
        )
        raise InvalidArgument(msg, argument=name)


def check_count(value: Any, name: str, *, at_least: int = 1) -> int:
    """A whole number, at least `at_least`."""
    try:
        count = operator.index(value)
    except TypeError:
        if isinstance(value, float) and value.is_integer():
            count = int(value)
        else:
            msg = f"{name} must be a whole number; got {_shown(value)}"
            raise WrongType(msg, argument=name) from None
    if isinstance(value, bool) or count < at_least:
        msg = f"{name} must be a whole number >= {at_least}; got {_shown(value)}"
        raise InvalidArgument(msg, argument=name)
    return count


def check_position(value: Any, name: str) -> int:
    """A whole number, negative to count from the end; 1.5, 1.0, "1" and True are no positions."""
    try:
        position = operator.index(value)
    except TypeError:
        position = None
    if position is None or isinstance(value, bool):
        msg = f"{name} must be a position, which is a whole number; got {_shown(value)}"
        raise WrongType(msg, argument=name)
    return position


def check_fraction(value: Any, name: str) -> float:
    """A number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < 1:
        msg = f"{name} must lie strictly between 0 and 1; got {_shown(value)}"
        raise InvalidArgument(msg, argument=name)
    return float(value)


def as_float(value: Any) -> float:
    """The same number as a float; infinite if it has more than 308 digits."""
    try:
        return float(value)
    except OverflowError:
        return float(np.inf)


def check_number(value: Any, name: str) -> float:
    """A finite number that is not negative."""
    if isinstance(value, bool | np.complexfloating) or not isinstance(value, int | float | np.number):
        msg = f"{name} must be a number; got {_shown(value)}"
        raise WrongType(msg, argument=name)
    number = as_float(value)
    if not (np.isfinite(number) and number >= 0):
        msg = f"{name} must be finite and >= 0; got {_shown(value)}"
        raise InvalidArgument(msg, argument=name)
    return number


def check_range(value: Any) -> tuple[float, float]:
    """An output_range: two finite numbers, the smaller first."""
    try:
        low, high = (float(each) for each in value)
    except (TypeError, ValueError, OverflowError):
        msg = f"output_range must be two numbers (lowest, highest); got {_shown(value)}"
        raise WrongType(msg, argument="output_range") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        msg = f"output_range must be finite, lowest first; got ({low:g}, {high:g})"
        raise InvalidArgument(msg, argument="output_range")
    return low, high


def check_choice(value: Any, name: str, choices: Collection[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        msg = f"{name} must be one of {listed}; got {_shown(value)}"
        raise InvalidArgument(msg, argument=name)
    return str(value)


@lru_cache(maxsize=4)  # a picture has more features than an explanation of it has milliseconds to spare
def default_names(d: int) -> tuple[str, ...]:
    """Names for features that have none."""
    return tuple(f"x{j}" for j in range(d))


def is_iterable(given: Any) -> bool:
    """Whether there may be several of something; of arrays and tensors without dimensions there are not."""
    try:
        iter(given)
    except TypeError:
        return False
    return True


def as_names(names: Sequence[str], name: str) -> tuple[str, ...]:
    """Names one by one; a single text would be taken letter by letter."""
    if isinstance(names, str | bytes):
        msg = f"{name} must be a list of names; got the text {_shown(names)}. Write [{_shown(names)}]"
        raise WrongType(msg, argument=name)
    if not is_iterable(names):
        msg = f"{name} must be a list of names; got {_shown(names)}"
        raise WrongType(msg, argument=name)
    return tuple(str(each) for each in names)


def check_names(names: Sequence[str] | None, d: int) -> tuple[str, ...]:
    """d different feature_names; x0, x1, ... where none are given."""
    if names is None:
        return default_names(d)
    found = as_names(names, "feature_names")
    if len(found) != d:
        msg = f"feature_names has {len(found)} names for {d} features"
        raise InvalidArgument(msg, argument="feature_names")
    if len(set(found)) != d:
        twice = sorted({each for each in found if found.count(each) > 1})
        msg = f"feature_names must differ; {twice[0]!r} stands there {found.count(twice[0])} times"
        raise InvalidArgument(msg, argument="feature_names")
    return found


def _shown(value: Any) -> str:
    """What was given, in so many letters that a message stays one: values may come from files of others."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."

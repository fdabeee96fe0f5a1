"""Outputs that are several things at once: tuples, dictionaries, dataclasses, of which one part is explained."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.validate import check_position
from ..errors import ModelError, WrongType


def check_key(key: Any) -> None:
    """A name or a position, or None."""
    if key is not None and not isinstance(key, str):
        try:
            check_position(key, "output_key")
        except WrongType:
            msg = f"output_key must be the name or the position of an output; got {key!r}"
            raise WrongType(msg, argument="output_key") from None


def part_of(out: Any, key: str | int | None) -> Any:
    """The part of what a model returned that `key` names; all of it without a key."""
    if key is None:
        return out
    names = _names(out)
    if names is None and not _is_sequence(out):
        msg = f"output_key={key!r} picks a part of several outputs, but the model returned a {type(out).__name__}"
        raise ModelError(msg)
    try:
        if names is None:
            return out[key]
        name = key if isinstance(key, str) or (isinstance(out, Mapping) and key in out) else names[key]
        return out[name] if isinstance(out, Mapping) else getattr(out, str(name))
    except (LookupError, AttributeError, TypeError):
        msg = f"the model returned no part {key!r}, but {listed(out)}"
        raise ModelError(msg) from None


def several(out: Any) -> str:
    """How to pick one of several outputs; empty where there is nothing to pick from."""
    names = _names(out)
    if not len(names if names is not None else out if _is_sequence(out) else ()):
        return ""
    usual = 0 if names is None else "logits" if "logits" in names else names[0]
    return f"{listed(out)}. Say which part is explained: as_model(model, output_key={usual!r})"


def _names(out: Any) -> Sequence[Any] | None:
    """Names of the parts, in order; None for what has none."""
    if isinstance(out, Mapping):
        return list(out)
    if dataclasses.is_dataclass(out) and not isinstance(out, type):
        return [each.name for each in dataclasses.fields(out)]
    return list(getattr(out, "_fields", ())) or None


def _is_sequence(out: Any) -> bool:
    return isinstance(out, tuple | list)


def listed(out: Any) -> str:
    """What came, with the keys of its parts."""
    names = _names(out)
    kind = type(out).__name__
    if names is None:
        return f"a {kind} of {len(out)} parts, with positions 0 to {len(out) - 1}"
    shown = ", ".join(map(repr, names[:12])) + ", ..." * (len(names) > 12)
    return f"a {kind} with parts {shown}"

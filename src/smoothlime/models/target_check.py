"""Targets, as far as they can be checked before a model was asked for anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from .targets import output_names, resolve_target


def check_target(target: Any, model: Any) -> None:
    """Refuse a target that the model cannot be asked for, in the words of those who ask it.

    A model that names no outputs calls a single one 'output' and several by their positions; without a model any name
    may be meant. Without a target any single output is.
    """
    if target is None:
        return
    names = output_names(model.outputs, len(model.outputs)) if getattr(model, "outputs", ()) else ()
    if not names:
        target, names = _stand_in(target, any_name=model is None)
    resolve_target(target, names, 1, lambda: np.zeros((1, len(names))))


def _stand_in(target: Any, *, any_name: bool) -> tuple[Any, tuple[str, ...]]:
    """The target by names alone, and names that a model may have."""
    if isinstance(target, Mapping):
        target = {_by_name(key): weight for key, weight in target.items()}
        keys = list(target)
    else:
        target = _by_name(target)
        keys = [target]
    for key in keys:
        _check_possible(key, any_name=any_name)
    texts = [key for key in keys if isinstance(key, str) and (any_name or key.isdecimal())]
    return target, tuple(dict.fromkeys(["output", "0", *(key for key in texts if key != "predicted")]))


def _check_possible(key: Any, *, any_name: bool) -> None:
    """Refuse what no output without a name can be called; stand-ins would be named otherwise."""
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and key < 0:
        msg = f"target {key!r} is out of range; positions begin at 0"
        raise InvalidArgument(msg, argument="target")
    if isinstance(key, str) and not (any_name or key.isdecimal() or key in ("output", "predicted")):
        msg = f"target {key!r} is not an output; the model gives them no names: give a position, such as target=0"
        raise InvalidArgument(msg, argument="target")


def _by_name(key: Any) -> Any:
    """A position by its name."""
    is_position = isinstance(key, int | np.integer) and not isinstance(key, bool) and key >= 0
    return str(int(key)) if is_position else key

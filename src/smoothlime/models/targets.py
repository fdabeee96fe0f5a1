"""Targets as weights on outputs: one output, one for each row, each row's own top class, a contrast, or all at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array
from .._core.validate import as_names, is_iterable
from ..errors import InvalidArgument, WrongType

BY_ROW = "by row"
"""Name of what is explained where targets differ from row to row; `row_outputs` has their names."""

LARGEST = 1e100
"""Weight of an output: errors are made of squares, which must stay numbers."""


class Score(tuple[str, ...]):
    """The one output of a margin of two classes: the score of the second, by its name.

    Positions count the classes, so that `target=0` never means one class by probability and the other by margin.
    """

    against: str
    """Name of the first class"""

    def __new__(cls, against: str, favoured: str) -> Score:
        """Names of the two classes, in their order."""
        score = super().__new__(cls, (favoured,))
        score.against = against
        return score

    def __getnewargs__(self) -> tuple[str, str]:
        """What a copy is made of."""
        return self.against, self[0]

    def position(self, target: int | str) -> int:
        """0 for the second class by position or name; an error for the first, which has no score of its own."""
        if target in (1, self[0]):
            return 0
        if target in (0, self.against):
            msg = (
                f"target {target!r} is class {self.against!r}, but the margin of two classes is one score, that of"
                f" {self[0]!r}: leave target out, or give target={self[0]!r}. For {self.against!r} take it times -1"
            )
            raise InvalidArgument(msg, argument="target")
        msg = f"target {target!r} is not an output; the margin of two classes is the score of {self[0]!r} alone"
        raise InvalidArgument(msg, argument="target")


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Weights (r, t, k) that turn k outputs into the t scalars to explain, and what to call them."""

    weights: Array
    names: tuple[str, ...]
    row_names: tuple[tuple[str, ...], ...]

    def of(self, values: Array) -> Array:
        """The scalars (r, t) behind outputs (r, k)."""
        return np.einsum("rtk,rk->rt", self.weights, values)

    def held(self, size: int) -> Target:
        """The target of the first of every `size` rows, for all of them."""
        firsts = np.arange(0, len(self.weights), size).repeat(size)
        return Target(self.weights[firsts], self.names, tuple(self.row_names[first] for first in firsts))


def output_names(declared: tuple[str, ...], k: int) -> tuple[str, ...]:
    """Names for k outputs: those the model declares, else 'output' or their positions."""
    if not isinstance(declared, tuple):  # a model of one's own may declare anything
        declared = as_names(declared, "outputs")
    if len(set(declared)) < len(declared):
        twice = next(name for name in declared if declared.count(name) > 1)
        msg = f"outputs must have different names; {twice!r} stands there {declared.count(twice)} times"
        raise InvalidArgument(msg)
    if len(declared) == k:
        return declared
    if declared:
        way = ". If that is a raw score, as of an objective of one's own, give output='margin'" if k == 1 else ""
        msg = f"the model names {len(declared)} outputs {declared} but returned {k}{way}"
        raise InvalidArgument(msg)
    return ("output",) if k == 1 else tuple(str(j) for j in range(k))


def resolve_target(target: Any, names: tuple[str, ...], r: int, predictions: Callable[[], Array]) -> Target:
    """The one scalar that `target` asks for at each of r rows; only `"predicted"` looks at predictions (r, k)."""
    k = len(names)
    if isinstance(target, Mapping):
        return _contrast(target, names, r)
    if is_by_row(target):
        return _by_row(each_target(target, r), names)
    if isinstance(target, str) and target == "predicted" and "predicted" not in names:
        if k == 1:
            msg = "target='predicted' needs several outputs to choose from; this model has one"
            raise InvalidArgument(msg, argument="target")
        chosen = predictions().argmax(axis=1)
        weights = np.eye(k)[chosen][:, None, :]
        return Target(weights, ("predicted",), tuple((names[j],) for j in chosen))
    if target is None and k > 1:
        msg = f"the model has {k} outputs; say which to explain with target=: {_listed(names)}, or 'predicted'"
        raise InvalidArgument(msg, argument="target")
    j = 0 if target is None else _position(target, names)
    weights = np.zeros(k)
    weights[j] = 1.0
    return Target(np.broadcast_to(weights, (r, 1, k)), (names[j],), ((names[j],),) * r)


def is_by_row(target: Any) -> bool:
    """Whether there is a target for each row: a sequence, not a name and no contrast."""
    return not isinstance(target, str | bytes | Mapping) and is_iterable(target)


def each_target(target: Any, r: int | None = None) -> list[Any]:
    """The targets of all rows, one for each; an error where they are not as many as r rows."""
    if isinstance(target, set | frozenset) or not hasattr(target, "__len__") or getattr(target, "ndim", 1) != 1:
        shape = f" of shape {tuple(target.shape)}" if hasattr(target, "shape") else ""
        msg = f"target must be one output, or a list of them, one for each row; got a {type(target).__name__}{shape}"
        raise WrongType(msg, argument="target")
    as_list = getattr(target, "to_pylist", None) or getattr(target, "tolist", None)  # of arrays, series and tensors
    each = list(target) if as_list is None else as_list()
    for row, one in enumerate(each):
        if not (isinstance(one, str) or hasattr(one, "__index__")):
            msg = f"at row {row}, target must be an output's position or name; got {one!r}"
            raise WrongType(msg, argument="target")
    if r is not None and len(each) != r:
        msg = (
            f"target has {len(each)} entries for {r} row{'s' * (r != 1)}; a list is one output for each row."
            " For a sum or a difference of outputs give weights: {'a': 1, 'b': -1}"
        )
        raise InvalidArgument(msg, argument="target")
    return each


def _by_row(each: list[Any], names: tuple[str, ...]) -> Target:
    chosen = [_position_at(row, target, names) for row, target in enumerate(each)]
    found = tuple(names[j] for j in chosen)
    name = found[0] if found and len(set(found)) == 1 else BY_ROW
    return Target(np.eye(len(names))[chosen][:, None, :], (name,), tuple((one,) for one in found))


def _position_at(row: int, target: Any, names: tuple[str, ...]) -> int:
    """The position of an output, or an error that names the row it was for."""
    try:
        return _position(target, names)
    except (InvalidArgument, WrongType) as err:
        msg = f"at row {row}, {err}"
        raise type(err)(msg, argument="target") from None


def check_target(target: Any, model: Any) -> None:
    """Refuse what is known to be no target of a model, before the model is asked for anything.

    A model that names no outputs calls a single one 'output' and several by their positions; without a model any name
    may be meant. Without a target any single output is.
    """
    if target is None:
        return
    if is_by_row(target):
        for each in set(each_target(target)):
            check_target(each, model)
        return
    names = output_names(model.outputs, len(model.outputs)) if getattr(model, "outputs", ()) else ()
    if not names:
        target, names = _stand_in(target, any_name=model is None)
    resolve_target(target, names, 1, lambda: np.zeros((1, len(names))))


def implied_range(model: Any, target: Any) -> tuple[float, float] | None:
    """Range of what `target` asks for, where the model says by itself where its outputs lie: probabilities do."""
    known = getattr(model, "output_range", None)
    if known is None:
        return None
    check_target(target, model)
    weights = [float(each) for each in target.values()] if isinstance(target, Mapping) else [1.0]
    ends = [sorted((weight * known[0], weight * known[1])) for weight in weights]
    return sum(low for low, _ in ends), sum(high for _, high in ends)


def is_narrow(target: Any, known: tuple[float, float] | None) -> bool:
    """Whether what `target` asks for, of that range, moves no more than a probability, or than a contrast of two."""
    most = min(2, len(target)) if isinstance(target, Mapping) else 1
    return known is not None and known[1] - known[0] <= most


def stretch_of(target: Any) -> float:
    """How many times longer than that of any single output the gradient of what `target` asks for may be.

    Never less than 1: a bound may have been given for the contrast itself.
    """
    return max(1.0, sum(abs(float(each)) for each in target.values())) if isinstance(target, Mapping) else 1.0


def every_output(names: tuple[str, ...], r: int) -> Target:
    """Each output on its own."""
    k = len(names)
    return Target(np.broadcast_to(np.eye(k), (r, k, k)), names, (names,) * r)


def _contrast(target: Mapping[Any, Any], names: tuple[str, ...], r: int) -> Target:
    weights = np.zeros(len(names))
    parts = []
    for key, weight in target.items():
        if (
            isinstance(weight, bool)
            or not isinstance(weight, int | float | np.number)
            or not -LARGEST <= weight <= LARGEST
        ):
            msg = f"target weighs {key!r} with {weight!r}; weights must be finite numbers, and {LARGEST:g} at most"
            raise InvalidArgument(msg, argument="target")
        j = _position(key, names)
        weights[j] += float(weight)
        size = "" if abs(weight) == 1 else f"{abs(weight):g}·"
        parts.append(f"{'−' if weight < 0 else '+'} {size}{names[j]}")
    if not weights.any():
        msg = f"target must give some output a weight other than 0; got {dict(target)!r}"
        raise InvalidArgument(msg, argument="target")
    name = " ".join(parts).removeprefix("+ ")
    return Target(np.broadcast_to(weights, (r, 1, len(names))), (name,), ((name,),) * r)


def _position(target: Any, names: tuple[str, ...]) -> int:
    if isinstance(target, str):
        if isinstance(names, Score):
            return names.position(target)
        if target not in names:
            naming = "; name them by as_model(model, outputs=[...])" if all(name.isdecimal() for name in names) else ""
            msg = f"target {target!r} is not an output; the outputs are {_listed(names)}{naming}"
            raise InvalidArgument(msg, argument="target")
        return names.index(target)
    if isinstance(target, bool | np.bool_):
        way = repr(str(target)) if str(target) in names else int(target)
        msg = f"target must be an output's position or name, which {target} is not; write target={way} if that is meant"
        raise InvalidArgument(msg, argument="target")
    try:
        j = operator.index(target)
    except TypeError:
        msg = f"target must be an output's position or name, 'predicted', or a contrast; got {target!r}"
        raise WrongType(msg, argument="target") from None
    if isinstance(names, Score):
        return names.position(j)
    if not 0 <= j < len(names):
        msg = f"target {target!r} is out of range; positions go from 0 to {len(names) - 1} ({_listed(names)})"
        raise InvalidArgument(msg, argument="target")
    return j


def _stand_in(target: Any, *, any_name: bool) -> tuple[Any, tuple[str, ...]]:
    """The target with names for positions, and names that the outputs may have."""
    keys = [_by_name(key, any_name=any_name) for key in (target if isinstance(target, Mapping) else [target])]
    names = [key for key in keys if isinstance(key, str) and key != "predicted" and (any_name or key.isdecimal())]
    named = dict(zip(keys, target.values(), strict=True)) if isinstance(target, Mapping) else keys[0]
    return named, tuple(dict.fromkeys(["output", "0", *names]))


def _by_name(key: Any, *, any_name: bool) -> Any:
    """A position by its name; or an error for what no output without a name can be called."""
    is_position = isinstance(key, int | np.integer) and not isinstance(key, bool)
    if is_position and key < 0:
        msg = f"target {key!r} is out of range; positions begin at 0"
        raise InvalidArgument(msg, argument="target")
    if isinstance(key, str) and not (any_name or key.isdecimal() or key in ("output", "predicted")):
        msg = f"target {key!r} is not an output; the model gives them no names: give a position, such as target=0"
        raise InvalidArgument(msg, argument="target")
    return str(int(key)) if is_position else key


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return f"{shown}, ... ({len(names)} in all)" if len(names) > 8 else shown

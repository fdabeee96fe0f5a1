"""Who takes part in a benchmark: methods and designs that suit a model, its features and the numbers of draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._core.validate import check_choice
from ..draws.designs import DESIGNS
from ..errors import InvalidArgument, NoGradients, TooFewDraws
from ..estimators import CLime, Differences, Estimator, SmoothGrad
from ..sampling import defaults as choices

CONTENDERS = ("smoothgrad", "both", "clime", "curves", "differences", "controlled")
"""Methods that are tried unless others are named: `stein` needs more draws for the same, `lime` may mean another."""

_DRAWING: dict[str, Estimator] = {name: make() for name, make in choices.METHODS.items()}

METHODS: dict[str, Estimator] = {name: method for name, method in _DRAWING.items() if method.needs != "trees"} | {
    "both": SmoothGrad(control="values"),
    "curves": CLime(curves=True),
    "controlled": Differences(control="margin"),
}
"""By name, with those that `explain` takes by itself: `both` is SmoothGrad combined with the values at the same draws,
`curves` C-LIME with curves besides the line, `controlled` differences with the exact margin of a boosted classifier as
control variate. What asks the model for nothing, such as jumps, has no place where evaluations are compared."""

Pair = tuple[str, str]
"""A method and a design."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A method and a design for which every number of draws is too small."""

    method: str
    design: str
    fewest: int
    """Draws that it needs"""


def usable(methods: Sequence[str], *, has_gradients: bool) -> list[str]:
    """The methods asked for, or all that are usually tried, with gradients or without."""
    for name in methods:
        check_choice(name, "methods", METHODS)
        if METHODS[name].needs == "gradients" and not has_gradients:
            msg = f"{name} needs gradients, and this model gives only values. Leave it out, or use clime or differences"
            raise NoGradients(msg, argument="methods")
    return [name for name in methods or CONTENDERS if METHODS[name].needs == "values" or has_gradients]


def pairs(methods: Sequence[str], designs: Sequence[str]) -> list[Pair]:
    """The methods, each with those of the designs that it can use; no designs stand for all."""
    known = dict.fromkeys(design for method in METHODS.values() for design in method.designs)
    for name in designs:
        check_choice(name, "designs", known)
    found = [(name, design) for name in methods for design in _designs(name) if not designs or design in designs]
    if not found:
        msg = f"none of the methods {', '.join(methods)} can use the designs {', '.join(designs)}"
        raise InvalidArgument(msg, argument="designs")
    return found


def with_enough_draws(
    field: Sequence[Pair], counts: Sequence[int], d: int
) -> tuple[dict[Pair, list[int]], tuple[LeftOut, ...]]:
    """The numbers of draws that each pair can use on d features, and the pairs that can use none of them."""
    fewest = {pair: _fewest(pair, d) for pair in field}
    enough = {pair: [n for n in counts if DESIGNS[pair[1]].whole(n, d) >= fewest[pair]] for pair in field}
    if not any(enough.values()):
        (method, design), least = min(fewest.items(), key=lambda each: each[1])
        drawn = "" if design == method else f" with {design} draws"
        msg = (
            f"draws must go up to at least {least} on {d} features, which is what {method}{drawn} needs for slopes with"
            f" error bars, and nothing else needs fewer; got {', '.join(map(str, counts))}"
        )
        raise TooFewDraws(msg, argument="draws")
    left_out = tuple(LeftOut(*pair, fewest[pair]) for pair in field if not enough[pair])
    return {pair: found for pair, found in enough.items() if found}, left_out


def needs_of(pair: Pair) -> str:
    """What a pair asks of the model: 'values' or 'gradients'."""
    return METHODS[pair[0]].needs


def settings_of(pair: Pair) -> dict[str, Any]:
    """What `explain` is told; a design that belongs to its method alone goes without saying."""
    name, design = pair
    return {"method": METHODS[name]} | ({} if _designs(name) == (design,) else {"design": design})


def _designs(name: str) -> tuple[str, ...]:
    return {"both": ("aligned",), "curves": ("aligned", "aligned-pairs")}.get(name, METHODS[name].designs)


def _fewest(pair: Pair, d: int) -> int:
    """Draws that `explain` takes at least, in whole blocks."""
    design = DESIGNS[pair[1]]
    return design.whole(METHODS[pair[0]].fewest(d, is_paired=design.is_paired), d)

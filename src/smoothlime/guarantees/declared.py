"""What was declared of a model, held against what it was seen to do: a promise on a false premise is void."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from ..errors import InvalidArgument, ModelError

SLACK = 1e-6
"""Of the width of a range or of a slope: rounding is no contradiction."""


def is_certifiable(method: Any) -> bool:
    """Whether certificates hold for a method: a kernel smooths less than Σ, so that slopes may move more."""
    return getattr(method, "name", method) != "lime"


def check_certifiable(method: Any) -> None:
    """Refuse explanations by a method that certificates do not hold for."""
    if not is_certifiable(method):
        msg = (
            "certify does not hold for explanations by lime: a kernel smooths less than sigma, and a selection of"
            " features jumps, so that slopes may move more. Explain with method='clime'"
        )
        raise InvalidArgument(msg)


def check_outputs(values: Array, known: tuple[float, float], where: str, *, is_implied: bool = False) -> None:
    """Refuse a range that some of the outputs (n,) leave; `where` may name the first by its position {i}.

    `is_implied`: nobody gave it, the model's outputs are taken for probabilities.
    """
    low, high = known
    slack = SLACK * (high - low)
    outside = np.flatnonzero((values < low - slack) | (values > high + slack))
    if len(outside):
        first = int(outside[0])
        seen = f"the model returned {values[first]:.6g} {where.format(i=first)}"
        msg = (
            f"{seen}, though what it calls probabilities should lie between {low:g} and {high:g}: the promise would be"
            " void. Give output_range=(lowest, highest) that no output leaves"
            if is_implied
            else f"{seen}, outside output_range=({low:g}, {high:g}): the promise would be void. Give a range that no"
            " output leaves"
        )
        raise ModelError(msg)


def check_slopes(lengths: Array, bound: float, where: str) -> None:
    """Refuse a bound on gradients that slopes of lengths (n,) exceed: a mean of gradients is no longer than they."""
    steep = np.flatnonzero(lengths > bound * (1 + SLACK))
    if len(steep):
        first = int(steep[0])
        msg = (
            f"the model has a slope of at least {lengths[first]:.6g} {where.format(i=first)}, beyond"
            f" gradient_bound={bound:g}: the promise would be void. Give a bound that holds everywhere;"
            " gradient_bound(model) computes one"
        )
        raise ModelError(msg)

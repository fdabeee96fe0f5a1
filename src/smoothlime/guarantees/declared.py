"""What was declared of a model, held against what it was seen to do: a promise on a false premise is void."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.types import Array
from ..errors import InvalidArgument, ModelError
from ..exact.trees.read.recognise import has_trees
from ..models import Model, Target, model_epsilon
from ..result.explanation import Explanation

SLACK = 1e-6
"""Of the width of a range or of a slope: rounding is no contradiction."""

ROUNDINGS = 64
"""Spacings of a model's numbers that its answers to the same rows may differ by, from one batch to the next."""


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


def check_has_gradients(model: Any) -> None:
    """Refuse a bound on the gradients of trees, which jump: between jumps any bound holds, and says nothing."""
    estimator = getattr(getattr(model, "model", model), "estimator", None)
    if has_trees(estimator):
        msg = (
            f"gradient_bound is for models without jumps, and a {type(estimator).__name__} is made of trees, which"
            " jump. Give output_range=(lowest, highest) instead"
        )
        raise InvalidArgument(msg, argument="gradient_bound")


def check_same_question(
    e: Explanation, model: Model, asked: Target, predictions: Array, known: tuple[float, float]
) -> None:
    """Refuse a model and target that are not what was explained, by their names and by predictions (r, k) at its rows.

    A model that names no outputs may be a part of the one explained; its answers speak for it.
    """
    names = [each[0] for each in asked.row_names]
    answers = asked.of(predictions)[:, 0]
    sizes = np.einsum("rk,rk->r", np.abs(asked.weights[:, 0]), np.abs(predictions))
    share = max(SLACK, ROUNDINGS * float(np.max(model_epsilon(model))))
    is_asynchronous = ~(np.abs(answers - e.prediction) <= share * (sizes + known[1] - known[0]))
    is_plain = not model.outputs and not any(sign in "".join(e.row_outputs) for sign in ("·", " + ", " − "))
    is_renamed = np.array([not is_plain and one != other for one, other in zip(names, e.row_outputs, strict=True)])
    wrong = np.flatnonzero(is_asynchronous | is_renamed)
    if len(wrong):
        row = int(wrong[0])
        msg = (
            f"model and target are not what was explained: at row {row} they say {names[row]!r} ="
            f" {answers[row]:.6g}, and the explanation {e.row_outputs[row]!r} = {e.prediction[row]:.6g}. Ask the same"
            " question: sl.as_model(model, output='margin') for a margin, target= as in explain, a contrast such as"
            " target={'a': 10} for a multiple or a sum; or give the rows themselves as X"
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
        raise ModelError(msg, argument="output_range")


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
        raise ModelError(msg, argument="gradient_bound")

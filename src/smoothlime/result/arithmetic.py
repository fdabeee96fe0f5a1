"""Sums, differences and multiples of explanations: exact where they share their draws, else with errors that add up."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .._core.types import Array
from .._core.validate import as_float
from .._core.warn import warn
from ..errors import ErrorsAdded, IncompatibleExplanations, InvalidArgument, WrongType
from ..space.background import same_steps
from ..uncertainty.groups import Groups
from ..uncertainty.jackknife import t_quantile
from .explanation import Explanation, Provenance, bracketed, columns
from .gaps import without_slopes
from .switches import combine_switches, scale_switches

LEAST_CERTAIN = ("lime", "smoothgrad")
"""Methods that certificates do not hold for at all, or not where a model jumps: a sum has the name of the first."""

MISS = 0.05
"""Of the simultaneous intervals that are kept as wide as they were where errors are added."""


def combine(one: Explanation, sign: float, other: Explanation) -> Explanation:
    """One + sign·other: group by group where both stand on the same draws, else the errors are added.

    Those of switches are always added; the result has none where the two do not have the same ones.
    """
    if not isinstance(other, Explanation):
        return NotImplemented
    _check_combinable(one, other)
    groups = _joint_groups(one, sign, other)
    if groups is None and not (one.is_exact or other.is_exact):  # what has no error adds none
        is_turned = one.directions is not None
        how = (
            "design='orthogonal', whose draws are not turned to each row, and the same"
            if is_turned
            else "the same method, design,"
        )
        msg = (
            "these explanations come from different draws; their errors are added, not combined."
            f" Explain both with {how} seed and n_samples to combine them exactly"
        )
        warn(msg, ErrorsAdded)
    word = "−" if sign < 0 else "+"
    missing = one.missing | other.missing
    is_other_row = ((one.x != other.x) & ~(np.isnan(one.x) & np.isnan(other.x))).any(axis=1)
    combined = one.combined | other.combined | is_other_row
    return dataclasses.replace(
        one,
        values=one.values + sign * other.values,
        # sums of errors are valid whatever the dependence between the two
        standard_error=(
            without_slopes(columns(groups.standard_error, one.factor.free, one.factor.d), missing)
            if groups
            else _widened_error(one) + _widened_error(other)
        ),
        radius=one.radius + other.radius,
        converged=one.converged & other.converged,
        prediction=one.prediction + sign * other.prediction,
        smoothed=one.smoothed + sign * other.smoothed,
        fidelity=np.full(len(one), np.nan),
        n_samples=(np.maximum if one.is_exact or other.is_exact else np.minimum)(one.n_samples, other.n_samples),
        n_evaluations=one.n_evaluations + other.n_evaluations,
        degrees_of_freedom=np.minimum(one.degrees_of_freedom, other.degrees_of_freedom),
        provenance=_joint(*((other, one) if one.is_exact else (one, other))),
        x=np.where(combined[:, None], np.nan, one.x),
        output_name=f"{one.output_name} {word} {bracketed(other.output_name)}",
        row_outputs=tuple(
            f"{a} {word} {bracketed(b)}" for a, b in zip(one.row_outputs, other.row_outputs, strict=True)
        ),
        groups=groups,
        selected=None,
        directions=(other if one.is_exact else one).directions,
        missing=missing,
        not_numeric=(one.not_numeric | other.not_numeric) & ~combined[:, None],
        combined=combined,
        switches=combine_switches(one.switches, sign, other.switches),
    )


def _joint_groups(one: Explanation, sign: float, other: Explanation) -> Groups | None:
    """What groups say of both, where they stand on the same draws, or of the one where the other needed none.

    Rows that miss other features have draws of their own.
    """
    if not np.array_equal(one.missing, other.missing):
        return None
    if other.is_exact:
        return one.groups
    if one.is_exact:
        return other.groups and other.groups.times(sign)
    if one.groups is None or other.groups is None or not _share_sequence(one, other):
        return None
    return one.groups.plus(other.groups.times(sign))


def _widened_error(e: Explanation) -> Array:
    """Standard errors (r, d) that give intervals without groups as wide as theirs, 95% for all features together."""
    miss = MISS / np.isfinite(e.std).sum()
    return e.half_width(miss) / t_quantile(e.degrees_of_freedom, 1 - miss / 2)[:, None]


def scale(one: Explanation, factor: Any) -> Explanation:
    """A multiple of the explanation, errors included."""
    if not _is_number(factor):
        return NotImplemented
    times = _real(factor, "multiplied")
    return dataclasses.replace(
        one,
        values=times * one.values,
        standard_error=abs(times) * one.standard_error,
        radius=abs(times) * one.radius,
        prediction=times * one.prediction,
        smoothed=times * one.smoothed,
        provenance=_held_to(one.provenance, abs(times)),
        output_name=f"{times:g}·{bracketed(one.output_name)}",
        row_outputs=tuple(f"{times:g}·{bracketed(name)}" for name in one.row_outputs),
        groups=one.groups and one.groups.times(times),
        switches=scale_switches(one.switches, times),
    )


def _held_to(made: Provenance, times: float) -> Provenance:
    """The same, with the tolerance of a multiple of the model."""
    return made if made.atol is None else dataclasses.replace(made, atol=times * made.atol)


def divide(one: Explanation, divisor: Any) -> Explanation:
    """The explanation divided by a number, errors included."""
    if not _is_number(divisor):
        return NotImplemented
    number = _real(divisor, "divided")
    times = 1 / number
    if not np.isfinite(times):
        msg = f"an explanation can be divided by numbers of 5.6e-309 or more, or less than 0 by as much; got {number:g}"
        raise InvalidArgument(msg)
    return scale(one, times)


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float | np.number) and not isinstance(given, bool)


def _real(given: Any, done: str) -> float:
    """A number as a finite float."""
    wanted = f"an explanation can be {done} by a finite real number"
    if isinstance(given, np.complexfloating | np.timedelta64):
        msg = f"{wanted}; got {given!r}"
        raise WrongType(msg)
    number = as_float(given)
    if not np.isfinite(number):
        msg = f"{wanted}; got {number:g}"
        raise InvalidArgument(msg)
    return number


def _joint(sampled: Explanation, either: Explanation) -> Provenance:
    """What can be said of two explanations at once: certified only if both are, and both may miss."""
    one, other = sampled.provenance, either.provenance
    both = one.guarantee == other.guarantee == "certified"
    named = {each.method.name: each.method for each in (other, one)}
    return dataclasses.replace(
        one,
        method=next((named[name] for name in LEAST_CERTAIN if name in named), one.method),
        rtol=None,
        atol=None,
        confidence=one.confidence if either.is_exact else max(0.0, one.confidence + other.confidence - 1),
        guarantee="certified" if both else "approximate",
        assumes="; ".join(dict.fromkeys((one.assumes, other.assumes))) if both else "",
    )


def _check_combinable(one: Explanation, other: Explanation) -> None:
    if one.feature_names != other.feature_names:
        msg = f"these explanations have different features: {one.feature_names} and {other.feature_names}"
        raise IncompatibleExplanations(msg)
    if len(one) != len(other):
        msg = f"these explanations have {len(one)} and {len(other)} rows; pick rows first, e.g. e[0] - e[1]"
        raise IncompatibleExplanations(msg)
    if not same_steps(one.neighbourhood.background, other.neighbourhood.background):
        msg = (
            "these explanations take steps on different scales, or on those of different backgrounds, so their slopes"
            " are per different units; explain both with the same scale and background"
        )
        raise IncompatibleExplanations(msg)
    same = np.array_equal(one.factor.free, other.factor.free) and np.array_equal(one.factor.lower, other.factor.lower)
    if not same:
        msg = (
            f"these explanations have different neighbourhoods, {one.neighbourhood} and {other.neighbourhood},"
            " so their slopes are of differently smoothed models; explain both with the same sigma"
        )
        raise IncompatibleExplanations(msg)


def _share_sequence(one: Explanation, other: Explanation) -> bool:
    """Whether both were made by the same method from the same sequence of draws, dealt to groups alike."""
    made = [
        (each.method, each.design, each.seed, each.block, each.generator, each.longer)
        for each in (one.provenance, other.provenance)
    ]
    return made[0] == made[1] and _turned_alike(one.directions, other.directions)


def _turned_alike(one: Array | None, other: Array | None) -> bool:
    """Whether aligned draws were turned to the same directions: those of another model, or row, are not."""
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)

"""Weighted sums of closed forms: averages and votes, whose smoothed slopes are those of their members, weighed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._core.types import Array
from ..space.neighbourhood import Factor
from .closed_form import ClosedForm, Smoothed
from .linear import LinearModel
from .links import LINKS


@dataclass(frozen=True, slots=True, eq=False)
class FormSum:
    """Outputs (k,) = offset + Σ turn · outputs of a form, for forms with their turn (k, k of the form)."""

    parts: tuple[tuple[ClosedForm, Array], ...]
    offset: Array

    @property
    def takes_gaps(self) -> bool:
        """Whether missing values are part of all of them."""
        return all(form.takes_gaps for form, _ in self.parts)

    def size(self, x: Array) -> float:
        """What the sizes of its parts add up to."""
        return float(sum(np.abs(turn).sum(axis=1).max() * form.size(x) for form, turn in self.parts))

    @property
    def spread(self) -> Array:
        """(k,) how much outputs can vary at all."""
        return sum((spread_of(form.spread, turn) for form, turn in self.parts), np.zeros(len(self.offset)))

    def values(self, x: Array) -> Array:
        """Outputs (r, k)."""
        start = np.tile(self.offset, (len(x), 1))
        return sum((form.values(x) @ turn.T for form, turn in self.parts), start)

    def smooth(self, x: Array, factor: Factor, weights: Array) -> Smoothed:
        """E f, its slopes, and how much of f they explain where there is one part alone."""
        found = [form.smooth(x, factor, np.ascontiguousarray(weights @ turn)) for form, turn in self.parts]
        r = len(x)
        return Smoothed(
            slopes=sum((each.slopes for each in found), np.zeros((r, len(factor.free)))),
            mean=sum((each.mean for each in found), weights @ self.offset),
            fidelity=found[0].fidelity if len(found) == 1 else np.full(r, np.nan),
            radius=sum((each.radius for each in found), np.zeros(r)),
        )


def spread_of(spread: Array, turn: Array) -> Array:
    """(k,) what outputs weighed by turn can vary by; a weight of 0 takes off infinity."""
    with np.errstate(invalid="ignore"):
        reach = np.where(turn == 0, 0.0, np.abs(turn) * spread)
    return np.asarray(reach.sum(axis=1))


def join_lines(parts: Sequence[tuple[LinearModel, Array]]) -> LinearModel:
    """One line from several: coefficients of a weighted sum, so that what they explain is known too."""
    (k, _), links = parts[0][1].shape, {id(line.link) for line, _ in parts}
    assert links == {id(LINKS["identity"])}
    turns = [turn @ line.turn for line, turn in parts]
    terms = [np.abs(line.intercept) if line.terms is None else line.terms for line, _ in parts]
    gaps = [line.gap if line.gap is not None else np.zeros_like(line.coef) for line, _ in parts]
    return LinearModel(
        coef=sum((turn @ line.coef for turn, (line, _) in zip(turns, parts, strict=True)), np.zeros(1)),
        intercept=sum((turn @ line.intercept for turn, (line, _) in zip(turns, parts, strict=True)), np.zeros(k))
        + sum((turn @ line.offset for line, turn in parts), np.zeros(k)),
        offset=np.zeros(k),
        turn=np.eye(k),
        link=LINKS["identity"],
        terms=sum((np.abs(turn) @ each for turn, each in zip(turns, terms, strict=True)), np.zeros(k)),
        gap=sum((turn @ gap for turn, gap in zip(turns, gaps, strict=True)), np.zeros(1)),
        takes_gaps=all(line.takes_gaps for line, _ in parts),
    )

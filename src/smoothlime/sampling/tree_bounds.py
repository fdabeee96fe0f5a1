"""How large the jumps of known trees can be whatever is drawn, and how far their mean may be from the slopes.

`docs/theory/bounds.md` has the statements and their proofs.
"""

from __future__ import annotations

import dataclasses
from math import pi, sqrt

import numpy as np

from .._core.types import Array
from ..errors import NoClosedForm
from ..exact.bent_trees import BentTrees
from ..exact.curves import AGREES, Curve
from ..exact.known import KnownSum
from ..exact.trees.form import TreesForm
from ..exact.trees.jump_bounds import AxisBounds, bound_axes
from ..space.neighbourhood import Factor
from ..uncertainty.bounds import JumpBounds, density

CUT = 7.0
"""Standard deviations beyond which the kernel looks at no threshold."""

BENDING = 1e-12
"""What an output is off by when margins are bent."""

COARSEST = 0.005
"""Share of how outputs vary that rounding may move them by, where jumps are taken without being asked for."""

EPSILON = float(np.finfo(np.float64).eps)

BOUNDED = ("identity", "logistic", "softmax")
"""Curves along which it is known how far outputs move with margins."""


def bound_jumps(
    trees: BentTrees, x: Array, factor: Factor, weights: Array, controls: Array, known: Array | None, same: float
) -> JumpBounds:
    """Bounds on jumps of outputs weighed by (r, t, k), and of margins weighed by (r, t, m) with known mean (r, t, f).

    Of what is within `same` of that mean, nothing is left.
    """
    r, t, f = *weights.shape[:2], len(factor.free)
    found = JumpBounds(*np.empty((3, r, t, f)), *np.empty((2, r, t)))
    for part, form, rows, compared in trees.parts(x):
        of_rows = None if known is None else known[rows]
        bounds = _bound_part(part, form, compared, factor, weights[rows], controls[rows], of_rows, same)
        for each in dataclasses.fields(bounds):
            getattr(found, each.name)[rows] = getattr(bounds, each.name)
    return found


def bound_sum(
    known: KnownSum, x: Array, factor: Factor, weights: Array, controls: Array, slopes: Array | None, same: float
) -> JumpBounds:
    """The same for a sum of trees behind curves: bounds of its parts add up, but for the largest density.

    `slopes` are the known means of the margins of all parts together.
    """
    found: JumpBounds | None = None
    for (part, turn), own in known.split(controls):
        of_part = None if slopes is None else part.margin_slopes(x, factor, own)
        one = bound_jumps(part, x, factor, weights @ turn, own, of_part, same)
        if found is not None:
            peaks = np.maximum(one.peaks, found.peaks)
            one = JumpBounds(*(getattr(one, each) + getattr(found, each) for each in one.__slots__))
            one = dataclasses.replace(one, peaks=peaks)
        found = one
    assert found is not None
    off = sqrt(2 / pi) * AGREES * known.size(x) * np.abs(weights).sum(axis=2) * largest_stretch(factor)
    return dataclasses.replace(found, off=found.off + off)


def _bound_part(
    trees: BentTrees,
    form: TreesForm,
    x: Array,
    factor: Factor,
    weights: Array,
    controls: Array,
    known: Array | None,
    same: float,
) -> JumpBounds:
    """The same around rows whose splits lie alike."""
    std = factor.std
    axes = bound_axes(form.trees, form.jump_plan, x, factor, controls)
    mixed, _ = trees.curve.of_margins(weights)
    slopes = axes.peaks[:, None] * oscillation(trees.curve, mixed, axes.ranges)
    whole = oscillation(trees.curve, mixed, form.spread[None, :, None])[..., 0]
    beyond = tail(len(std)) * largest_stretch(factor)
    lost = misplaced(axes, x, factor)
    bent = steepness(trees.curve, mixed)[..., None] * axes.rounding[:, None]
    bent = bent + BENDING * np.abs(mixed).sum(axis=2)[..., None]
    rounding = 2 * axes.peaks[:, None] * bent + slopes * EPSILON * (axes.thresholds**2)[:, None]
    off = _length(rounding, std) + beyond * whole + lost[:, None] * _length(slopes, std)
    off += sqrt(2 / pi) * AGREES * trees.size(x) * np.abs(weights).sum(axis=2) * largest_stretch(factor)
    away, off_of_control = np.zeros_like(slopes), np.zeros_like(off)
    if known is not None:
        away = np.maximum(axes.high - known, known - axes.low)
        share = np.abs(controls)
        off_of_control = (
            _length(2 * (axes.peaks * axes.rounding)[:, None] * share.sum(axis=2)[..., None], std)
            + beyond * (share @ form.spread)
            + lost[:, None] * _length(away, std)
            + same * _length(known, std)
            + np.stack([form.smooth(x, factor, each).radius for each in np.moveaxis(controls, 1, 0)], axis=1)
        )
    return JumpBounds(slopes, np.broadcast_to(axes.peaks[:, None], slopes.shape), away, off, off_of_control)


def is_certifiable(trees: BentTrees | KnownSum, x: Array) -> bool:
    """Whether enough is known of curves, and rounding leaves room for an error bound, whatever is drawn."""
    return not _unbounded(trees) and bool(AGREES * trees.size(x) <= COARSEST * trees.spread.max())


def check_bounded(trees: BentTrees | KnownSum) -> None:
    """Refuse curves that are not known well enough for a certificate."""
    if what := _unbounded(trees):
        msg = f"guarantee='certified' has no bound for jumps of trees {what}; method='clime' has one, from output_range"
        raise NoClosedForm(msg, argument="method")


def _unbounded(trees: BentTrees | KnownSum) -> str:
    """What there is no bound for; "" where there is one."""
    if isinstance(trees, KnownSum):
        beside = "beside which stand closed forms" if trees.rest.parts else ""
        return beside or next((what for part, _ in trees.bent if (what := _unbounded(part))), "")
    if trees.curve.then is not None:
        return "behind a curve of a curve"
    return "" if trees.curve.name in BOUNDED else f"behind the curve {trees.curve.name!r}"


def oscillation(curve: Curve, weights: Array, ranges: Array) -> Array:
    """How far outputs weighed by (r, t, m) can be apart where margins are by at most ranges (r, m, f): (r, t, f).

    Two probabilities by softmax whose log odds are apart by at most R differ by at most tanh(R/4) in total variation.
    """
    if curve.name == "identity":
        return np.abs(curve.sharpness * weights) @ ranges
    if curve.name == "logistic":
        return np.abs(weights) @ np.tanh(curve.sharpness * ranges / 4)
    two = np.sort(ranges, axis=1)[:, -2:].sum(axis=1)
    width = weights.max(axis=2) - weights.min(axis=2)
    return np.asarray(width[..., None] * np.tanh(curve.sharpness * two / 4)[:, None])


def steepness(curve: Curve, weights: Array) -> Array:
    """By how much outputs weighed by (r, t, m) move at most, if no margin moves by more than 1: (r, t)."""
    if curve.name == "softmax":
        return np.asarray(curve.sharpness * (weights.max(axis=2) - weights.min(axis=2)) / 2)
    return np.asarray(curve.sharpness * np.abs(weights).sum(axis=2) * (0.25 if curve.name == "logistic" else 1.0))


def tail(d: int) -> float:
    """How long E[z·y] can be for |y| ≤ 1 that is 0 where none of d normal numbers is beyond CUT."""
    from scipy.special import ndtr, ndtri

    chance = min(1.0, 2 * d * float(ndtr(-CUT)))
    return float(2 * density(ndtri(chance / 2)))


def largest_stretch(factor: Factor) -> float:
    """‖D^½ L⁻ᵀ‖: what carries slopes per draw over to standardised ones; 1 for diagonal Σ."""
    return 1.0 if factor.is_diagonal else float(np.linalg.norm(factor.inverse * factor.std, ord=2))


def misplaced(axes: AxisBounds, x: Array, factor: Factor) -> Array:
    """By which share of the largest jumps means may be off (r,), as draws and conditional means are rounded numbers.

    A draw is on the wrong side of a threshold with a chance of at most its rounding, in standard deviations, times the
    density; and a density whose middle is off by δ standard deviations is off by less than 2·δ of its peak in all.
    """
    there = np.nan_to_num(np.abs(x[:, factor.free])) / factor.std + CUT
    found = 2 * (EPSILON * there * (axes.thresholds + 2)).sum(axis=1)
    if not factor.is_diagonal:
        correlation = factor.lower @ factor.lower.T / np.outer(factor.std, factor.std)
        longest = 1 / max(float(np.linalg.eigvalsh(correlation)[0]), EPSILON)
        found = found + 200 * len(factor.std) ** 1.5 * EPSILON * longest**2
    return np.asarray(found)


def _length(slopes: Array, std: Array) -> Array:
    return np.asarray(np.linalg.norm(slopes * std, axis=-1))

"""Jumps, which gradients do not see: suspected where values at the same draws say otherwise, made sure of, and told."""

from __future__ import annotations

import numpy as np

from .._core.types import Array, Flags, Indices
from .._core.warn import warn
from ..draws.keys import pilot_draws
from ..errors import JumpsUnseen, ModelError
from ..estimators import GroupedDraws
from ..models import Target, model_epsilon
from ..result.explanation import Explanation
from .diagnostics import MADE_SURE, contradiction, disagreement
from .plan import Plan, evaluate_outputs

LOOKED_AT = 4
"""Gradients that are asked for where a slope of 0 may be that of a model that jumps."""

CHECKED_SHARE, CHECKED_NUMBERS = 4, 2**22
"""Gradients that a certificate rests on are checked by a quarter of its draws or more, if so many numbers hold them."""

COARSE = 100.0
"""Spacings of a model's values within which no jump can be told from rounding."""


def warn_of_jumps(plan: Plan, target: Target, explanations: list[Explanation], inconsistent: Flags) -> None:
    """Say where a model changes but has no slope at all, or has been `torn` (r·t,), and gradients are not its slopes.

    Whoever is suspected is asked a little more; the first one stands for all.
    """
    if plan.method.name != "smoothgrad":
        return
    for i, e in enumerate(explanations):
        flat = _flat(e, plan.factor.free)
        if len(flat) and not _has_slope(plan, int(flat[0]), target.weights[flat[0], i]):
            msg = (
                f"the gradients of {e.output_name!r} are 0 around row {flat[0]}{_more(len(flat))}, though the model"
                " changes there: it jumps (rounding, argmax, trees inside?), which gradients do not see."
                " Use method='clime'"
            )
            warn(msg, JumpsUnseen)
            return
    _warn_of_disagreement(plan, target, explanations, np.flatnonzero(inconsistent))


def _flat(e: Explanation, free: Indices) -> Indices:
    """Rows without any slope, and no scatter in it, though the model varies: else nothing is left to explain."""
    rows = np.flatnonzero((e.values[:, free[0]] == 0) & (e.fidelity < 1))  # almost always none, and soon seen
    where = np.ix_(rows, free)
    return rows[~(e.values[where].any(axis=1) | e.standard_error[where].any(axis=1))]


def refuse_false_gradients(plan: Plan, target: Target, explanations: list[Explanation]) -> None:
    """Refuse certificates that values contradict: of gradients that are not the slopes of the model around a row."""
    free = plan.factor.free
    for i, e in enumerate(explanations):
        for row in range(len(e)):
            weights = target.weights[row, i]
            if _loses_digits(plan, e, weights, row):
                continue
            n = min(int(e.n_samples[row]) // CHECKED_SHARE, CHECKED_NUMBERS // len(free))
            reason = contradiction(
                plan, weights, row, e.standardised[row, free], float(e.radius[row]), max(MADE_SURE, n)
            )
            if reason:
                msg = (
                    f"the gradients of {e.output_name!r} are not the slopes of the model around row {row}: {reason}."
                    " No certificate from them holds. Use method='clime' with output_range=(lowest, highest), which"
                    " needs only predictions; `agreement` says more"
                )
                raise ModelError(msg)


def _warn_of_disagreement(plan: Plan, target: Target, explanations: list[Explanation], inconsistent: Indices) -> None:
    if not len(inconsistent):
        return
    row, i = divmod(int(inconsistent[0]), len(explanations))
    if _loses_digits(plan, explanations[i], target.weights[row, i], row):
        return
    reason = disagreement(plan, target.weights[row, i], row)
    if reason:
        rows = len(np.unique(inconsistent // len(explanations)))
        msg = (
            f"the gradients of {explanations[i].output_name!r} are not its slopes around row {row}{_more(rows)}:"
            f" {reason}. Use method='clime', which needs only predictions; `agreement` says more"
        )
        warn(msg, JumpsUnseen)


def _loses_digits(plan: Plan, e: Explanation, weights: Array, row: int) -> bool:
    """Whether outputs are so large that slopes are lost between them, and gradients know better."""
    epsilon = np.max(model_epsilon(plan.evaluation.model))
    size = float(np.linalg.norm(np.nan_to_num(e.standardised[row])))
    return bool(0 < size < COARSE * epsilon * (np.abs(weights) @ np.abs(plan.predictions[row])))


def _more(rows: int) -> str:
    return f" and {rows - 1} more" if rows > 1 else ""


def _has_slope(plan: Plan, row: int, weights: Array) -> bool:
    """Whether a model has a gradient at a few draws that are no pairs, whose gradients might cancel."""
    z = pilot_draws(2 * LOOKED_AT, len(plan.factor.free), plan.seed, None)[::2]
    _, gradients = evaluate_outputs(plan, weights, row, GroupedDraws(z[None, None], is_shared=True))
    return bool(gradients.any())

"""Whether the neighbourhood is wide enough for the numbers that a model computes with."""

from __future__ import annotations

import numpy as np

from .._core.warn import warn
from ..errors import InvalidArgument, LostPrecision
from ..models import model_epsilon
from ..models.problem import Problem

BLURRED = 1e-3
"""Spacing of a model's numbers, in neighbourhood standard deviations, from which on slopes lose digits."""

BLIND = 2.0
"""And from which on steps get lost between them, so that slopes are no longer blurred but wrong: by 1.5% here, and soon
by all of it."""


def check_spacing(problem: Problem) -> None:
    """A model in few digits cannot tell x from x + step when the step is below the spacing of numbers near x."""
    model, factor, names = problem.model, problem.factor, problem.feature_names
    epsilon = model_epsilon(model)
    x = problem.x if len(factor.free) == problem.x.shape[1] else problem.x[:, factor.free]
    if np.max(epsilon) * max(x.max(), -x.min()) <= BLURRED * factor.std.min():  # fine everywhere, seen by one number
        return
    _, exponent = np.frexp(np.abs(x).max(axis=0))
    spacing = epsilon * np.ldexp(0.5, exponent)
    j = int(np.argmax(spacing / factor.std))
    if spacing[j] > BLURRED * factor.std[j]:
        is_blind = spacing[j] > BLIND * factor.std[j]
        msg = (
            f"sigma is {factor.std[j]:.3g} for feature {names[factor.free[j]]!r}, but the model's numbers are"
            f" {spacing[j]:.2g} apart at row {np.abs(x[:, j]).argmax()}:"
            f" {'steps get lost between them' if is_blind else 'slopes lose digits'}."
            " Raise sigma, centre the feature, or use float64"
        )
        if is_blind:
            raise InvalidArgument(msg)
        warn(msg, LostPrecision)

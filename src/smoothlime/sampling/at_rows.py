"""f(x), what a model says at the rows themselves: asked for twice, as a model that is random cannot be explained.

And once more for the first row beside two other points, as one whose answers depend on the rest of a batch cannot
either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core.types import Array, Indices
from ..draws.designs import spare_draws
from ..models import Evaluation
from ..models.problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class AtRows:
    """The answers at the rows."""

    values: Array
    """(r, k)"""
    evaluations: Indices
    """(r,) model rows that were asked for each row"""


def ask_at_rows(evaluation: Evaluation, problem: Problem, dtype: str, seed: int) -> AtRows:
    """Ask for f(x), and make sure that the answers are those of the rows alone."""
    points = problem.rows.astype(dtype)
    values = evaluation.check_size(evaluation.values(points.copy(), row_name))  # a model may write into its points
    evaluation.check_repeatable(points, values, row_name)
    evaluations = np.full(len(points), 2)
    # on either side of the first row, so that ranks change, but no mirror images
    one, other = spare_draws(2, len(problem.factor.free), seed, None)
    probes = points[:1].repeat(2, axis=0)
    steps = problem.factor.steps(np.stack([one, -np.copysign(other, one)]))
    probes[:, problem.factor.free] += steps.astype(dtype, copy=False)
    evaluations[0] += evaluation.check_independent(points, values, probes, row_name)
    return AtRows(values, evaluations)


def row_name(position: int) -> str:
    """How complaints name a row of the caller's table."""
    return f"row {position}"

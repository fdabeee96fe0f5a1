"""What the best local line leaves of a model: bounded from draws, it sharpens certificates near each row."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np

from .._core.types import Array
from ..draws.designs import DESIGNS
from ..errors import InvalidArgument
from ..models import Evaluation, model_dtype, resolve_target
from ..models.evaluation import Where, automatic_batch_size
from ..models.targets import output_names
from ..result.explanation import Explanation, around
from ..space.neighbourhood import Factor
from ..uncertainty import bounds
from .declared import check_outputs, check_same_question

PILOT_SHARE = 0.15
"""Of the draws: behind the line and the tilt, which must be settled before the others are seen."""

LEAST_LEVEL = 1e-12
"""Of ln(1/δ): a chance of failing that rounds to 1 is taken for slightly less, as there is no λ for it."""


def residuals(
    model: Any,
    rows: Array,
    factor: Factor,
    known: tuple[float, float],
    target: Any,
    n: int,
    delta: float,
    seed: int,
    *,
    is_implied: bool,
    explained: Explanation | None,
) -> Array:
    """Upper bounds (r,) on √(Var f − wᵀΣw), each failing with probability delta; draws are shared between rows.

    Where the rows are those of an explanation, what is asked must be what was `explained`.
    """
    d = len(factor.free)
    pilot = max(int(PILOT_SHARE * n), 4 * (d + 1))
    if n < 2 * pilot:
        msg = f"n_samples={n} is too few for {d} features: at least {8 * (d + 1)} are needed"
        raise InvalidArgument(msg)
    z = DESIGNS["iid"].stream(d, seed).take(n)
    dtype = model_dtype(model)
    evaluation = Evaluation(model, automatic_batch_size(rows.shape[1], dtype))
    predictions = evaluation.values(rows.astype(dtype), lambda row: f"row {row}")
    names = output_names(model.outputs, predictions.shape[1])
    resolved = resolve_target(target, names, len(predictions), lambda: predictions)
    if explained is not None:
        check_same_question(explained, model, resolved, predictions, known)
    steps = factor.steps(z)[None]
    found = np.empty(len(rows))
    for row in range(len(rows)):
        points = around(rows[row : row + 1], factor.free, steps, dtype.name)[0]
        values = evaluation.values(points, _around(row)) @ resolved.weights[row, 0]
        check_outputs(values, known, f"around row {row}", is_implied=is_implied)
        found[row] = residual_bound(z, values, known, pilot, delta)
    return found


def _around(row: int) -> Where:
    return lambda position: f"a draw around row {row}"


def residual_bound(z: Array, values: Array, known: tuple[float, float], pilot: int, delta: float) -> float:
    """Upper bound on the standard deviation that the best line leaves of a model in `known`, from iid draws z (n, d).

    Residuals from a line fitted on the pilot have mean square at least that of the best line. Their squares are
    clipped, bounded by empirical Bernstein with λ tuned on the pilot, and what clipping takes off is added back.
    """
    from scipy.special import ndtr

    low, high = known
    with_one = np.column_stack([np.ones(len(z)), z])
    line = np.linalg.lstsq(with_one[:pilot], values[:pilot], rcond=None)[0]
    line[0] = np.clip(line[0], low, high)
    offset, slope = max(high - line[0], line[0] - low), float(np.linalg.norm(line[1:]))
    squares = (values - with_one @ line) ** 2
    main = squares[pilot:]
    m = len(main)
    q = sqrt(2 * log(m))
    limit = (offset + slope * q) ** 2
    expected = float(np.minimum(squares[:pilot], limit).mean())
    variance = float(np.minimum(squares[:pilot], limit).var())
    terms = np.minimum(main, limit)
    level = max(log(1 / delta), LEAST_LEVEL)
    tilt = float(bounds.best_tilt(level, np.array(limit), m, np.array(max(variance, 1e-12 * limit**2))))
    spread = float(bounds.scalar_tilt(np.array(tilt)) * ((terms - expected) ** 2).sum())
    density, tail = bounds.density(q), float(ndtr(-q))
    beyond = 2 * (offset**2 * tail + 2 * offset * slope * density + slope**2 * (q * density + tail)) - 2 * limit * tail
    return sqrt(terms.mean() + limit * level / (tilt * m) + spread / (limit * tilt * m) + beyond)

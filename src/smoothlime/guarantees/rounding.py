r"""What rounding of the points and of a model's own numbers adds to a certificate.

A model that is G-Lipschitz by its weights is not so as it is computed: its outputs lie on a grid, and jump. They are
within r of those without rounding, and slopes of what is within r of each other differ by at most E|u·z|·r = √(2/π)·r.
For networks whose layers are known, r is bounded from the weights as in any book on rounding: sums of n terms by
γ = nu/(1 − nu) of the sum of their sizes, in whatever order they are made. `docs/theory/robustness.md` has the proof.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import log, pi, sqrt
from typing import Any

import numpy as np

from .._core.types import Array
from ..errors import InvalidArgument, WrongType
from ..estimators.certified import standardising_factor
from ..models import Model, model_epsilon
from ..models.adapt import is_torch_module
from ..models.estimator import EstimatorModel
from ..models.on_tables import TableModel
from ..result.explanation import Explanation
from ..space.neighbourhood import Factor
from .gradient_bound import (
    LINEAR_CLASSIFIERS,
    LINEAR_REGRESSORS,
    check_own,
    check_unchanged,
    layers_of,
    slope_of,
)

UNIT = 2.0**-53
"""Half the relative spacing of float64."""

FLOAT32 = 2.0**-24

COARSE_UNIT = 2.0**-8
"""Half that of bfloat16, in which torch may multiply matrices of float32 if it is let."""

CURVE = 16
"""Roundings of a curve that a library computes, of its input or output, whichever is larger. Most make one or two."""

LEAST = 2.0**-126
"""What is lost of a number that is too small for its type: float32, though float64 has smaller ones."""

HALF = 2.0**-11
"""Half the relative spacing of float16."""

FAR_FROM_OVERFLOW = 1e30
"""Sizes from which float32 may be left within a neighbourhood."""

EXACT = ("ReLU", "ReLU6", "Identity", "Flatten", "Dropout")
"""Layers that pick a number, and round none."""

BOUNDED = ("Tanh", "Sigmoid", "Softsign", "Hardsigmoid")
"""Layers whose outputs are no larger than 1."""

SLOPE = sqrt(2 / pi)
"""E|N(0, 1)|: what slopes per draw move by where outputs move by at most 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """Bounds on the numbers of a layer without rounding, and on what rounding moved them by.

    Each is an array (r + 1, units): what holds at the r rows, and what each unit of a step's length adds to it.
    """

    size: Array
    error: Array

    def dense(self, weights: Array, bias: Array | float, unit: float) -> Reach:
        """After a layer weights (m, n) · numbers + bias (m,)."""
        n, matrix = weights.shape[1], np.abs(weights).T
        more = 2 if unit > FLOAT32 else 0  # where numbers are rounded on the way in
        size = self.size @ matrix
        error = self.error @ matrix
        error += growth(n + 1 + more, unit) * (size + error) + (n + 1) * LEAST
        size[:-1] += np.abs(bias)
        error[:-1] += growth(n + more, unit) * np.abs(bias)
        return Reach(size, error)

    def batch_norm(self, scale: Array, shift: Array, unit: float) -> Reach:
        """After scale · numbers, and a shift that is a sum of terms of this size."""
        size, error = self.size * scale, self.error * scale
        made = size + error
        for each in (size, made):
            each[:-1] += shift
        return Reach(size, error + CURVE * unit * made + LEAST)

    def curve(self, slope: float, at_zero: float, unit: float, limit: float = np.inf) -> Reach:
        """After a function of each number, with a largest slope, a value at 0, and perhaps a largest value."""
        size, made = slope * self.size, max(slope, 1.0) * (self.size + self.error)
        for each in (size, made):
            each[:-1] += at_zero
        if limit < np.inf:
            size[:-1], size[-1], made[:-1], made[-1] = limit, 0.0, limit, 0.0
        return Reach(size, slope * self.error + CURVE * unit * made + LEAST)

    def softmax(self, unit: float) -> Reach:
        """After a softmax, whose slopes |∂p/∂x| add up to 2p(1 − p) ≤ 1/2 and whose values to 1."""
        error = np.broadcast_to(self.error.max(axis=1, keepdims=True) / 2, self.error.shape).copy()
        error[:-1] += (CURVE + error.shape[1]) * unit
        size = np.ones_like(error)
        size[-1] = 0.0
        return Reach(size, error)


def growth(n: int, unit: float) -> float:
    """γ = nu/(1 − nu): what n roundings, one after another, move a number by, relative to its size."""
    if n * unit >= 1:
        msg = f"after {n} roundings no digit may be left"
        raise WrongType(msg)
    return n * unit / (1 - n * unit)


def row_rounding(rows: Array, factor: Factor, epsilon: Any) -> Array:
    """(r,) by how much two rows are farther apart than they were, once they and sums with steps are rounded: in ρ."""
    moved = np.abs(np.nan_to_num(rows[:, factor.free])) * epsilon
    if factor.is_diagonal:
        return np.asarray(2 * np.linalg.norm(moved / factor.lower, axis=1))
    return np.asarray(2 * moved @ np.linalg.norm(factor.inverse, axis=0))


def slope_rounding(
    model: Model | None, explanation: Explanation | None, rows: Array, factor: Factor, stretch: float
) -> tuple[Array, float, str]:
    """(r,) by how much slopes of two rows may differ by rounding alone, standardised, and what that assumes.

    What comes on top for each unit of ρ, as numbers are larger where the other row is, stands between the two.

    Refused where a model is known to round coarsely, and nobody knows how much it loses.
    """
    epsilon = float(np.max(spacing_of(model, explanation)))
    found = None if model is None else output_rounding(model, rows, factor, epsilon)
    to_standardised = standardising_factor(factor)
    if found is not None:
        largest = sqrt(2 * log(len(factor.free)) + 2) if factor.is_diagonal else sqrt(len(factor.free))
        fixed, growing = to_standardised * stretch * found[:-1], to_standardised * stretch * float(found[-1])
        return 2 * (SLOPE * fixed + largest * growing), SLOPE * growing, ""
    if epsilon > 2 * UNIT:
        way = "Give the model in float64, such as module.double()" if model is not None else "Give the model, too"
        if explanation is not None and model is not None and np.max(model_epsilon(model)) <= 2 * UNIT:
            way = "Explain it again with the model in float64"
        msg = (
            f"gradient_bound says nothing of rounding, and the model computes with {epsilon:.1g} between"
            f" 1 and the next number: its outputs jump, by nobody knows how much. {way};"
            " or leave gradient_bound out and give output_range=(lowest, highest), which rounding does not matter to"
        )
        raise InvalidArgument(msg, argument="gradient_bound")
    return np.zeros(len(rows)), 0.0, "outputs that are not rounded"


def spacing_of(model: Model | None, explanation: Explanation | None) -> Any:
    """Relative spacing of the numbers that points are or were made of, or (f,) of their columns."""
    explained = np.finfo(np.float64 if explanation is None else explanation.provenance.dtype).eps
    return explained if model is None else np.maximum(model_epsilon(model), explained)


def output_rounding(model: Model, rows: Array, factor: Factor, epsilon: float) -> Array | None:
    """(r + 1,) what no output of a model moves by when it is rounded: at rows, and more for each unit of step length.

    Its numbers are spaced by `epsilon`. The unit is the largest standardised step, or for a full Σ the length of the
    draw. None where layers are not known.
    """
    unit = max(epsilon / 2, UNIT)
    inner = model.model if isinstance(model, TableModel) else model
    if np.isnan(rows).any():
        return None
    size = np.abs(np.concatenate([rows, np.zeros((1, rows.shape[1]))]))
    size[-1, factor.free] = factor.std
    error = 3 * unit * size + LEAST  # rows, steps and their sums are rounded
    if not factor.is_diagonal:
        error[-1, factor.free] += 2 * UNIT * factor.std * len(factor.free)
    start = Reach(size, error)
    from ..models.torch import TorchModel

    with np.errstate(over="ignore", invalid="ignore"):
        try:
            if isinstance(inner, TorchModel) and is_torch_module(inner.module):  # others have layers of Keras
                end = _through_network(start, inner, unit)
            elif isinstance(inner, EstimatorModel):
                end = _through_linear(start, inner, unit)
            else:
                return None
        except WrongType:  # something in it is not known, and named where a bound on its gradient is asked for
            return None
    worst = np.asarray(end.error.max(axis=1))
    return worst if np.isfinite(worst).all() else None


def _through_network(reach: Reach, model: Any, unit: float) -> Reach:
    check_unchanged(model.module)
    unit = _coarsest(model, unit)
    if unit == HALF:
        raise WrongType("float16 ends at 65,504, and what leaves its range may come back as any number")
    for layer in layers_of(model.module):
        reach = through_layer(reach, layer, unit)
        if not (reach.size + reach.error).max() < (np.inf if unit == UNIT else FAR_FROM_OVERFLOW):
            raise WrongType("numbers may leave the range of their type")
    if not model.is_probability:
        return reach
    return reach.curve(0.25, 0.5, unit, 1.0) if reach.size.shape[1] == 1 else reach.softmax(unit)


def _coarsest(model: Any, unit: float) -> float:
    """Half the spacing of the coarsest numbers that torch may multiply in, as it is set."""
    torch = sys.modules["torch"]
    backends = torch.backends.cuda, torch.backends.mkldnn
    asked = [getattr(getattr(each, "matmul", None), "fp32_precision", None) for each in backends]
    if None in asked:  # before torch 2.9
        is_let = torch.get_float32_matmul_precision() != "highest" or torch.backends.cuda.matmul.allow_tf32
    else:
        is_let = any(each not in ("none", "ieee") for each in asked)
    return max(unit, COARSE_UNIT) if is_let and model.dtype == np.float32 else unit


def through_layer(reach: Reach, layer: Any, unit: float) -> Reach:
    """What comes out of one of torch's layers."""
    kind, slope = type(layer).__name__, slope_of(layer, 2 * unit)
    if kind == "Linear":
        return reach.dense(_numbers(layer.weight), 0.0 if layer.bias is None else _numbers(layer.bias), unit)
    if kind == "BatchNorm1d":
        scale = 1.0 if layer.weight is None else np.abs(_numbers(layer.weight))
        scale = scale / np.sqrt(_numbers(layer.running_var) + layer.eps)
        bias = 0.0 if layer.bias is None else np.abs(_numbers(layer.bias))
        return reach.batch_norm(scale, scale * np.abs(_numbers(layer.running_mean)) + bias, unit)
    if kind == "Softmax":
        return reach.softmax(unit)
    if kind == "Hardtanh":  # between its ends, which need not hold 0
        size = np.append(np.full(len(reach.size) - 1, max(abs(layer.min_val), abs(layer.max_val))), 0.0)
        return Reach(np.repeat(size[:, None], reach.size.shape[1], axis=1), reach.error)
    if kind in EXACT:
        return Reach(reach.size, reach.error)
    torch = sys.modules["torch"]
    at_zero = float(layer(torch.zeros(1, 1, dtype=torch.float64)).abs().max())
    return reach.curve(slope, at_zero, unit, 1.0 if kind in BOUNDED else np.inf)


def _numbers(tensor: Any) -> Array:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _through_linear(reach: Reach, model: Any, unit: float) -> Reach:
    """Of scikit-learn's linear models, without scalers before them."""
    estimator, kind = model.estimator, type(model.estimator).__name__
    is_known = kind in (*LINEAR_REGRESSORS, *LINEAR_CLASSIFIERS) and type(estimator).__module__.startswith("sklearn.")
    is_logistic = model.ask == "predict_proba" and kind.startswith("LogisticRegression")
    if not is_known or not (is_logistic or model.is_margin or kind in LINEAR_REGRESSORS):
        raise WrongType(f"the sums of a {kind} are not known")
    coefficients = estimator.coef_.toarray() if hasattr(estimator.coef_, "toarray") else estimator.coef_
    weights = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
    check_own(estimator, weights)
    sums = reach.dense(weights, np.asarray(estimator.intercept_, dtype=np.float64), unit)
    if not is_logistic:
        return sums
    return sums.curve(0.5, 0.5, unit, 1.0) if len(weights) == 1 else sums.softmax(unit)

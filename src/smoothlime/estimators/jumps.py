"""Jumps: the mean gradient of trees that are known, with their jumps in the place of derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .._core.types import Array, Indices
from .._core.validate import check_choice
from .._core.xp import merge_groups
from .protocol import AxisJumps, Batch, Drawn, Estimate, Estimator, Rows, Setup, ValueSums, leave_one_out

CONTROLS = ("none", "margin")

ROUNDING = 1e-13
"""Share of a mean square below which a variance is rounding: a difference of sums is no more precise."""


class _State:
    def __init__(self, rows: int, groups: int, d: int) -> None:
        self.values = ValueSums(rows, groups)
        self.first = np.zeros((rows, groups, d))  # Σ J
        self.squares = np.zeros((rows, groups, d))
        self.control = np.zeros((rows, groups, d))  # Σ h
        self.products = np.zeros((rows, groups, d))
        self.control_squares = np.zeros((rows, groups, d))

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.values.keep(rows)
        for name in _SUMS:
            setattr(self, name, getattr(self, name)[rows])

    def merge(self) -> None:
        """Make one group of each two."""
        self.values.merge()
        for name in _SUMS:
            merge_groups(getattr(self, name))


_SUMS = ("first", "squares", "control", "products", "control_squares")


@dataclass(frozen=True, slots=True)
class Jumps(Estimator):
    r"""Mean jump of known trees along every axis through each draw, each weighed by the density of its threshold.

    $$ \hat w_j = \frac1n \sum_i \sum_t p_j(t \mid a_{i,-j})\,\bigl(f(t^+, a_{i,-j}) - f(t^-, a_{i,-j})\bigr) $$

    over the thresholds t of feature j. It is the mean of the gradient in the sense of distributions: unbiased, whatever
    the curve behind the trees and for every Σ, and far less noisy than what predictions at the same draws say. Draws
    ask the model for nothing. For trees of scikit-learn, XGBoost, LightGBM and CatBoost, which are read and compared
    with the model's own predictions.

    Parameters
    ----------
    control
        `"margin"`: what the jumps of the margin, the plain sum of the trees, have in common with those of the output is
        taken off, feature by feature, as their mean is known exactly; the coefficient for each group of draws is fitted
        on all the others. Where Σ is full nothing is known of the margin, and this does nothing. `"none"`: the plain
        mean, linear in the model.
    """

    control: str = "margin"

    name: ClassVar[str] = "jumps"
    needs: ClassVar[Literal["values", "gradients", "trees"]] = "trees"
    designs: ClassVar[tuple[str, ...]] = ("iid", "antithetic", "sobol", "aligned")
    evaluations_per_draw: ClassVar[int] = 0

    def __post_init__(self) -> None:
        """Refuse a control we do not know."""
        check_choice(self.control, "control", CONTROLS)

    @property
    def wants_control(self) -> bool:
        """Whether it compares the model with its margin."""
        return self.control == "margin"

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """Two blocks: a mean and its error."""
        return 4 if is_paired else 2

    def numbers(self, setup: Setup) -> int:
        """Jumps, those of the margin, and their products."""
        return setup.groups * setup.d * len(_SUMS)

    def start(self, setup: Setup) -> _State:
        """Empty sums."""
        return _State(setup.rows, setup.groups, setup.d)

    def update(self, state: _State, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the jumps of a batch."""
        state.values.add(rows, groups, batch.values)
        found: AxisJumps = batch.samples
        state.first[rows, groups] += found.slopes.sum(axis=2)
        state.squares[rows, groups] += _products(found.slopes, found.slopes)
        if found.controls is not None:
            state.control[rows, groups] += found.controls.sum(axis=2)
            state.products[rows, groups] += _products(found.slopes, found.controls)
            state.control_squares[rows, groups] += _products(found.controls, found.controls)

    def finish(self, state: _State, drawn: Drawn) -> Estimate:
        """Mean jumps of all draws and of each group, less what the margin's explain."""
        n, sizes = drawn.n, drawn.sizes
        first, squares, control, products, control_squares = (getattr(state, name)[:, : len(sizes)] for name in _SUMS)
        each = sizes[:, None]
        by_group = (first - _coefficients(first, control, products, control_squares, sizes) * control) / each
        whole = _slopes(first.sum(axis=1), control.sum(axis=1), products.sum(axis=1), control_squares.sum(axis=1), n)
        left = squares.sum(axis=1) - 2 * whole * products.sum(axis=1) + whole**2 * control_squares.sum(axis=1)
        mean = (first.sum(axis=1) - whole * control.sum(axis=1)) / n
        scatter = np.where(left > ROUNDING * squares.sum(axis=1), left / n - mean**2, 0.0)
        variance = state.values.variance(sizes)
        return Estimate(
            values=(by_group * each).sum(axis=1) / n,
            pseudo=by_group,
            resolution=np.sqrt(np.maximum(scatter, 0.0)) / n,
            smoothed=state.values.mean(sizes),
            variance=variance,
            spread=np.sqrt(variance),
        )


def _products(one: Array, other: Array) -> Array:
    """Σ over draws of products (r, g, b, d): (r, g, d)."""
    return np.einsum("rgbd,rgbd->rgd", one, other)


def _coefficients(first: Array, control: Array, products: Array, squares: Array, sizes: Array) -> Array:
    """Of the control in each group (r, g, d), fitted on all the others; 0 where there are too few of them."""
    if len(sizes) < 3:
        return np.zeros_like(first)
    others = leave_one_out
    n = (sizes.sum() - sizes)[:, None]
    return _slopes(others(first), others(control), others(products), others(squares), n)


def _slopes(first: Array, control: Array, products: Array, squares: Array, n: float | Array) -> Array:
    """Slope of jumps on the control's, feature by feature, from sums over n draws; 0 where the control is constant."""
    scatter = squares - control**2 / n
    is_there = scatter > ROUNDING * squares
    return np.divide(products - first * control / n, scatter, out=np.zeros_like(first), where=is_there)

"""Jumps: the mean gradient of trees that are known, with their jumps in the place of derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .._core.types import Array, Indices
from .._core.validate import check_choice
from .._core.xp import merge_groups
from ..uncertainty.jackknife import mean_of_groups, standard_error
from .protocol import AxisJumps, Batch, Drawn, Estimate, Estimator, Rows, Setup, ValueSums

CONTROLS = ("none", "margin")

ROUNDING = 1e-13
"""Share of a mean square below which a variance is rounding: a difference of sums is no more precise."""


SUMS = 5
"""Kinds of sums that are kept of each group and feature."""

UNSEEN = 3.0
"""Draws that jump as they do further out, and may yet come: with 95% chance those that n have not met are a share below
3/n."""

TOLD = 2.0
"""Standard errors by which the control may be off its known mean, and nothing is taken for unseen."""


class _State:
    def __init__(self, rows: int, groups: int, d: int) -> None:
        self.values = ValueSums(rows, groups)
        self.sums = np.zeros((SUMS, rows, groups, d))  # of J, J², h, J·h and h², J the jumps and h their control
        self.far = np.full((2, rows, d), np.nan)  # J and J² further out, where no control says what is not met

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.values.keep(rows)
        self.sums, self.far = self.sums[:, rows], self.far[:, rows]

    def merge(self) -> None:
        """Make one group of each two."""
        self.values.merge()
        for each in self.sums:
            merge_groups(each)


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

    @property
    def looks_far(self) -> bool:
        """Trees are known all over, and errors hold what the margin says that no draw has met."""
        return False

    @property
    def note(self) -> str:
        """What a reader of the result should know."""
        return "draws were answered by the trees, which were read and give the model's own outputs"

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """Two blocks: a mean and its error."""
        return 4 if is_paired else 2

    def numbers(self, setup: Setup) -> int:
        """Jumps, those of the margin, and their products."""
        return setup.groups * setup.d * SUMS

    def start(self, setup: Setup) -> _State:
        """Empty sums."""
        return _State(setup.rows, setup.groups, setup.d)

    def update(self, state: _State, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the jumps of a batch."""
        state.values.add(rows, groups, batch.values)
        found: AxisJumps = batch.samples
        terms = [(found.slopes,), (found.slopes, found.slopes)]
        if found.controls is not None:
            terms += [(found.controls,), (found.slopes, found.controls), (found.controls, found.controls)]
        if found.far is not None:
            state.far[:, rows] = found.far
        for sums, factors in zip(state.sums, terms, strict=False):
            sums[rows, groups] += _sum_over_draws(*factors)

    def finish(self, state: _State, drawn: Drawn) -> Estimate:
        """Mean jumps of all draws and of each group, less what the margin's explain."""
        n, sizes, std = drawn.n, drawn.sizes, drawn.factor.std
        sums = state.sums[:, :, : len(sizes)]
        first, _, control, _, _ = sums
        by_group = (first - _coefficients(sums, sizes, std)[..., None] * control) / sizes[:, None]
        whole = _coefficient(sums.sum(axis=2), n, std)[:, None]
        variance = state.values.variance(sizes)
        told = by_group + _told(control / sizes[:, None], whole, sizes)
        values = (by_group * sizes[:, None]).sum(axis=1) / n
        return Estimate(
            values=values,
            pseudo=told + _at_least(UNSEEN / n * _away(state.far, values), told, sizes),
            resolution=_scatter(sums.sum(axis=2), whole, n) / n,
            smoothed=state.values.mean(sizes),
            variance=variance,
            spread=np.sqrt(variance),
        )


def _sum_over_draws(one: Array, other: Array | None = None) -> Array:
    """Σ over draws of numbers (r, g, b, d), or of products of two: (r, g, d)."""
    return one.sum(axis=2) if other is None else np.einsum("rgbd,rgbd->rgd", one, other)


def _coefficients(sums: Array, sizes: Array, std: Array) -> Array:
    """Of the control in each group (r, g), fitted on all the others; 0 where there are too few of them."""
    if len(sizes) < 3:
        return np.zeros(sums.shape[1:3])
    return _coefficient(sums.sum(axis=2, keepdims=True) - sums, (sizes.sum() - sizes)[:, None], std)


def _coefficient(sums: Array, n: float | Array, std: Array) -> Array:
    """Slope of jumps on their control, from sums (5, ..., d) over n draws; 1 where the control is constant.

    That is what it would be if the curve were its tangent at x. One for all features: a feature whose rare jumps few
    draws meet would fit its own to nearly nothing.
    """
    first, _, control, products, squares = sums
    scatter = (squares - control**2 / n) @ std**2
    common = (products - first * control / n) @ std**2
    return np.divide(common, scatter, out=np.ones_like(common), where=scatter > ROUNDING * (squares @ std**2))


def _scatter(sums: Array, coefficient: Array, n: float) -> Array:
    """Standard deviation (r, d) over draws of jumps less what their control explains."""
    first, squares, control, products, control_squares = sums
    left = squares - 2 * coefficient * products + coefficient**2 * control_squares
    variance = left / n - ((first - coefficient * control) / n) ** 2
    return np.sqrt(np.where(variance > ROUNDING * squares / n, variance, 0.0))


def _told(control: Array, coefficient: Array, sizes: Array) -> Array:
    """What is added to groups (r, g, d) so that errors hold what the control tells that no draw has shown.

    The mean of the control is known to be 0. Where that of all draws lies further off than its groups can tell, they
    have not met something rare. Of the outputs the coefficient takes most of it off; as much again may be left.
    """
    mean = mean_of_groups(control, sizes)
    beyond = np.maximum(np.abs(mean) - TOLD * standard_error(control, sizes), 0.0)
    return _by_turns(coefficient * np.copysign(beyond, mean), sizes)


def _away(far: Array, slopes: Array) -> Array:
    """Root mean square distance (r, d) of jumps further out from the slopes, on the side where their mean is; or 0.

    So it turns round with the target, as what is added to groups for it does.
    """
    mean, square = far
    distance = np.sqrt(np.maximum(square - 2 * mean * slopes + slopes**2, 0.0))
    return np.nan_to_num(np.copysign(distance, mean - slopes))


def _at_least(least: Array, groups: Array, sizes: Array) -> Array:
    """What is added to groups (r, g, d) so that no standard error is less than |`least`| (r, d)."""
    missing = np.sqrt(np.maximum(least**2 - standard_error(groups, sizes) ** 2, 0.0))
    return _by_turns(np.copysign(missing, least), sizes)


def _by_turns(error: Array, sizes: Array) -> Array:
    """Standard errors (r, d) for groups (r, g, d) to have besides their own: by turns more and less."""
    turns = np.where(np.arange(len(sizes)) % 2, -1.0, 1.0)
    turns -= (turns * sizes).sum() / sizes.sum()
    return np.asarray(np.sqrt(len(sizes)) * turns[:, None] * error[:, None])

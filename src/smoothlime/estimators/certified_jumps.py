"""Jumps of known trees with a finite-sample bound on their error: they are bounded, and so is what their mean leaves.

The first draws are a pilot. It sets how much of the control is taken off and where terms are measured from, and is left
out of what is bounded and reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar, Literal

import numpy as np

from .._core.types import Array, Indices
from .._core.validate import check_choice
from ..errors import ModelError
from ..uncertainty import bounds
from .jumps import CONTROLS
from .protocol import AxisJumps, Batch, Drawn, Estimate, Estimator, Rows, Setup, ValueSums

PILOT = 64
"""Enough to see a mean, a variance and what the control has in common with them."""

SHARES = np.array([1.0, 0.75, 0.5, 0.25, 0.0])
"""Of the coefficient that leaves the least variance: less of the control has a smaller largest term."""

EXPECTED = 2_048
"""Draws for which the share is chosen, if so many may be made."""


class _State:
    def __init__(self, rows: int, groups: int, std: Array) -> None:
        d = len(std)
        self.values = ValueSums(rows, groups)
        self.std = std
        self.known: bounds.JumpBounds | None = None
        self.reach = np.zeros((2, rows, d))  # largest jumps, and controls, standardised
        self.off = np.zeros((2, rows))
        self.n_pilot = 0  # 0 while the pilot lasts
        self.pilot = np.zeros((2, rows, d))  # sums of jumps and of controls, standardised
        self.products = np.zeros((3, rows))  # of J·J, J·h and h·h
        # fixed by the pilot
        self.coefficient = np.zeros(rows)
        self.middle = np.zeros((rows, d))
        self.variance = np.zeros(rows)
        # sums after it
        self.count = np.zeros((rows, groups))
        self.first = np.zeros((rows, groups, d))
        self.squares = np.zeros(rows)

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.values.keep(rows)
        for name in ("reach", "off", "pilot", "products"):
            setattr(self, name, getattr(self, name)[:, rows])
        for name in ("coefficient", "middle", "variance", "count", "first", "squares"):
            setattr(self, name, getattr(self, name)[rows])


@dataclass(frozen=True, slots=True)
class CertifiedJumps(Estimator):
    """Mean jumps of known trees with a bound on their error, from how far the outputs can vary."""

    low: float
    high: float
    control: str = "margin"

    name: ClassVar[str] = "jumps"
    needs: ClassVar[Literal["values", "gradients", "trees"]] = "trees"
    designs: ClassVar[tuple[str, ...]] = ("iid",)
    evaluations_per_draw: ClassVar[int] = 0

    def __post_init__(self) -> None:
        """Refuse a control we do not know."""
        check_choice(self.control, "control", CONTROLS)

    @property
    def wants_control(self) -> bool:
        """Whether it compares the model with its margin."""
        return self.control == "margin"

    @property
    def assumes(self) -> str:
        """What must be true of the model."""
        return (
            f"outputs between {self.low:g} and {self.high:g}, and trees that are the model's own, which reproduce its"
            " outputs but for rounding"
        )

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """A pilot and as much again."""
        return 2 * PILOT

    def pilot(self, d: int) -> int:
        """Enough to tune the bound."""
        return PILOT

    def numbers(self, setup: Setup) -> int:
        """Jumps by group, and their bounds."""
        return (setup.groups + 6) * setup.d

    def start(self, setup: Setup) -> _State:
        """Empty sums."""
        return _State(setup.rows, setup.groups, setup.factor.std)

    def check_values(self, values: Array) -> None:
        """Refuse values that leave the range."""
        check_in_range(values, self.low, self.high)

    def update(self, state: _State, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add jumps and their control to the pilot while it lasts, and then what the control leaves of them."""
        self.check_values(batch.values)
        state.values.add(rows, groups, batch.values)
        found: AxisJumps = batch.samples
        jumps = found.slopes * state.std
        control = None if found.controls is None else found.controls * state.std
        if state.n_pilot:
            if control is not None:
                jumps = jumps - state.coefficient[rows, None, None, None] * control
            state.count[rows, groups] += batch.values.shape[2]
            state.first[rows, groups] += jumps.sum(axis=2)
            away = jumps - state.middle[rows, None, None]
            state.squares[rows] += np.einsum("rgbd,rgbd->r", away, away)
            return
        known = found.bounds
        assert known is not None
        state.reach[0, rows] = np.minimum(known.slopes, known.peaks * (self.high - self.low)) * state.std
        state.reach[1, rows] = known.controls * state.std
        state.off[:, rows] = known.off, known.off_of_control
        state.pilot[0, rows] += jumps.sum(axis=(1, 2))
        state.products[0, rows] += np.einsum("rgbd,rgbd->r", jumps, jumps)
        if control is not None:
            state.pilot[1, rows] += control.sum(axis=(1, 2))
            state.products[1, rows] += np.einsum("rgbd,rgbd->r", jumps, control)
            state.products[2, rows] += np.einsum("rgbd,rgbd->r", control, control)

    def end_pilot(self, state: _State, n: int, cap: int) -> None:
        """Fix how much of the control is taken off, where terms are measured from, and the variance that tunes λ."""
        state.n_pilot = n
        jumps, control = state.pilot / n
        own = np.maximum(state.products[0] / n - (jumps**2).sum(axis=1), 0.0)
        common = state.products[1] / n - (jumps * control).sum(axis=1)
        scatter = np.maximum(state.products[2] / n - (control**2).sum(axis=1), 0.0)
        best = np.divide(common, scatter, out=np.zeros_like(common), where=scatter > 0)
        tried = best[:, None] * SHARES
        variance = np.maximum(own[:, None] - 2 * tried * common[:, None] + tried**2 * scatter[:, None], 0.0)
        middle = jumps[:, None] - tried[..., None] * control[:, None]
        farthest = _farthest(state.reach, tried, middle)
        main, level = min(cap, EXPECTED) - n, log(40.0)
        chosen = (np.sqrt(2 * variance * level / main) + farthest * level / main).argmin(axis=1)
        each = np.arange(len(best)), chosen
        state.coefficient, state.middle, state.variance = tried[each], middle[each], variance[each]

    def finish(self, state: _State, drawn: Drawn) -> Estimate:
        """The mean of what the control leaves, after the pilot, and its empirical Bernstein bound."""
        sizes, factor, seen = drawn.sizes, drawn.factor, len(drawn.sizes)
        main = drawn.n - state.n_pilot
        farthest = _farthest(state.reach, state.coefficient[:, None], state.middle[:, None])[:, 0]
        radius = bounds.vector_radius(farthest, state.variance, state.squares, main, drawn.miss)
        variance = state.values.variance(sizes)
        return Estimate(
            values=state.first.sum(axis=1) / main / factor.std,
            pseudo=state.first[:, :seen] / np.maximum(state.count[:, :seen], 1.0)[:, :, None] / factor.std,
            resolution=np.broadcast_to(0.0, (len(radius), drawn.d)),
            smoothed=state.values.mean(sizes),
            variance=variance,
            spread=np.sqrt(variance),
            radius=radius + state.off[0] + np.abs(state.coefficient) * state.off[1],
        )


def _farthest(reach: Array, coefficient: Array, middle: Array) -> Array:
    """Largest distance (r, s) of a term from the middle (r, s, d), for coefficients (r, s) of the control."""
    jumps, control = reach
    return np.linalg.norm(jumps[:, None] + np.abs(coefficient)[..., None] * control[:, None] + np.abs(middle), axis=2)


def check_in_range(values: Array, low: float, high: float) -> None:
    """Refuse values that leave a range."""
    least, most = float(values.min()), float(values.max())
    slack = 1e-6 * (high - low)  # a float32 softmax may exceed 1 by its rounding
    if least < low - slack or most > high + slack:
        worst = least if least < low - slack else most
        msg = (
            f"the model returned {worst:.6g}, outside output_range=({low:g}, {high:g}):"
            " the promise would be void. Give a range that no output leaves"
        )
        raise ModelError(msg)

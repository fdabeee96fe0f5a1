"""Estimators with finite-sample error bounds: the same sums, and beside them what a bound needs.

The first draws are a pilot: they set where terms are measured from and how bounds are tuned, and are then left out
of what is bounded, because tuning must not depend on the draws it is used on. Two bounds compete at each look, one
fixed beforehand and one that adapts to the variance seen; each may spend half of the chance to miss.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from math import log, pi, sqrt
from typing import Any, ClassVar, Literal

import numpy as np

from .._core.types import Array, Indices
from .._core.validate import check_number, check_range
from ..errors import InvalidArgument, ModelError
from ..space.neighbourhood import Factor
from ..uncertainty import bounds
from .certified_jumps import CertifiedJumps, check_in_range
from .clime import CLime
from .differences import Differences
from .jumps import Jumps
from .protocol import Batch, Drawn, Estimate, Estimator, GroupedDraws, Rows, Setup
from .smoothgrad import SmoothGrad
from .stein import Stein

ROUNDINGS = 64
"""Spacings of its output that rounding may move a model by, where only gradients are bounded."""


class _GradientState:
    def __init__(self, base: Any, rows: int, std: Array) -> None:
        self.base = base
        self.std = std
        self.n_pilot = 0  # 0 while the pilot lasts
        self.pilot = np.zeros((rows, len(std)))
        self.pilot_squares = np.zeros(rows)
        self.first = np.zeros((rows, len(std)))
        self.squares = np.zeros(rows)
        self.rounding = np.zeros(rows)  # ROUNDINGS spacings of the largest output seen

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.base.keep(rows)
        self.pilot, self.pilot_squares = self.pilot[rows], self.pilot_squares[rows]
        self.first, self.squares, self.rounding = self.first[rows], self.squares[rows], self.rounding[rows]


@dataclass(frozen=True, slots=True)
class CertifiedSmoothGrad(Estimator):
    """Mean gradient with a bound on its error, from a bound on the length of every gradient."""

    gradient_bound: float
    base: SmoothGrad = field(default_factory=SmoothGrad)

    name: ClassVar[str] = "smoothgrad"
    needs: ClassVar[Literal["values", "gradients"]] = "gradients"
    designs: ClassVar[tuple[str, ...]] = ("iid",)

    @property
    def assumes(self) -> str:
        """What must be true of the model."""
        return (
            f"gradients no longer than {self.gradient_bound:g} that are the model's own, and a model without jumps"
            f" that rounding moves by at most {ROUNDINGS} spacings of its output"
        )

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """A pilot and as much again."""
        return 2 * self.pilot(d)

    def pilot(self, d: int) -> int:
        """Enough to see a mean and a variance."""
        return 64

    def numbers(self, setup: Setup) -> int:
        """As without a certificate, and the pilot's."""
        return self.base.numbers(setup) + (setup.d + 1) ** 2

    def start(self, setup: Setup) -> _GradientState:
        """Empty sums."""
        return _GradientState(self.base.start(setup), setup.rows, setup.factor.std)

    def update(self, state: _GradientState, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add gradients, standardised, to the pilot while it lasts and then to what is bounded."""
        self.base.update(state.base, rows, groups, batch)
        raw = batch.gradients.reshape(len(batch.values), -1, len(state.std)).astype(np.float64)
        longest = sqrt((raw**2).sum(axis=2).max())
        if longest > self.gradient_bound * (1 + 1e-6):
            msg = (
                f"the model has a gradient of length {longest:.6g}, beyond gradient_bound={self.gradient_bound:g}:"
                " the promise would be void. Give a bound that holds everywhere; gradient_bound(model) computes one"
            )
            raise ModelError(msg)
        largest = np.abs(batch.values).reshape(len(raw), -1).max(axis=1)
        state.rounding[rows] = np.maximum(state.rounding[rows], ROUNDINGS * spacing_of(batch.gradients) * largest)
        terms = raw * state.std
        if state.n_pilot:
            away = terms - state.pilot[rows, None, :]
            state.first[rows] += away.sum(axis=1)
            state.squares[rows] += (away**2).sum(axis=(1, 2))
        else:
            state.pilot[rows] += terms.sum(axis=1)
            state.pilot_squares[rows] += (terms**2).sum(axis=(1, 2))

    def update_shared(self, state: _GradientState, groups: slice, draws: GroupedDraws) -> None:
        """Pass on."""
        self.base.update_shared(state.base, groups, draws)

    def end_pilot(self, state: _GradientState, n: int, cap: int) -> None:
        """Fix the centre from which gradients are measured and the variance that tunes λ."""
        state.n_pilot = n
        state.pilot = state.pilot / n
        state.pilot_squares = np.maximum(state.pilot_squares / n - (state.pilot**2).sum(axis=1), 0.0)

    def finish(self, state: _GradientState, drawn: Drawn) -> Estimate:
        """The mean of all gradients; the smaller of the ball bound and the empirical Bernstein bound."""
        estimate, n, miss = self.base.finish(state.base, drawn), drawn.n, drawn.miss
        length = self.gradient_bound * float(state.std.max())
        fixed = bounds.ball_radius(length, n, miss / 2)
        main = n - state.n_pilot
        level = log(2 / (miss / 2))
        farthest = length + np.linalg.norm(state.pilot, axis=1)
        tilt = bounds.best_tilt(level, farthest, main, state.pilot_squares)
        adaptive = farthest * level / (tilt * main)
        adaptive += bounds.vector_tilt(tilt) * state.squares / (farthest * tilt * main)
        # the bound is for the mean without the pilot; what is reported may lie a little apart from it
        apart = np.linalg.norm(estimate.values * state.std - state.pilot - state.first / main, axis=1)
        # slopes of outputs that are rounded are this far from those that gradients are averages of
        rounded = sqrt(2 / pi) * state.rounding * standardising_factor(drawn.factor)
        return dataclasses.replace(estimate, radius=np.minimum(fixed, adaptive + apart) + rounded)


def spacing_of(numbers: Any) -> float:
    """Relative spacing of numbers, by their type."""
    return float(np.finfo(numbers.dtype if numbers.dtype.kind == "f" else np.float64).eps)


class _ValueState:
    def __init__(self, base: Any, rows: int, groups: int, d: int) -> None:
        self.base = base
        self.count = np.zeros((rows, groups))
        self.cross = np.zeros((rows, groups, d))  # Σ z (f − middle), all draws: Stein's estimate
        self.n_pilot = 0
        # sums of the pilot's least squares
        self.gram = np.zeros((rows, d + 1, d + 1))
        self.moments = np.zeros((rows, d + 1))
        # fixed by the pilot
        self.line = np.zeros((rows, d + 1))
        self.clip = np.zeros(rows)
        self.bias = np.zeros(rows)
        self.variance = np.zeros(rows)
        # sums of clipped terms after the pilot
        self.main = np.zeros((rows, groups))
        self.first = np.zeros((rows, groups, d))
        self.squares = np.zeros((rows, d))

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.base.keep(rows)
        for name in _BY_ROW:
            setattr(self, name, getattr(self, name)[rows])


_BY_ROW = (
    "count",
    "cross",
    "gram",
    "moments",
    "line",
    "clip",
    "bias",
    "variance",
    "main",
    "first",
    "squares",
)


@dataclass(frozen=True, slots=True)
class CertifiedValues(Estimator):
    """Stein or C-LIME with a bound on its error, from the range of the model's output."""

    base: CLime | Stein
    low: float
    high: float

    needs: ClassVar[Literal["values", "gradients"]] = "values"
    designs: ClassVar[tuple[str, ...]] = ("iid",)

    @property
    def name(self) -> str:
        """Name of the estimator."""
        return self.base.name

    @property
    def assumes(self) -> str:
        """What must be true of the model."""
        return f"outputs between {self.low:g} and {self.high:g}"

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """A pilot and as much again."""
        return 2 * self.pilot(d)

    def pilot(self, d: int) -> int:
        """Enough for a least-squares line."""
        return max(64, 8 * (d + 1))

    def numbers(self, setup: Setup) -> int:
        """As without a certificate, and the pilot's least squares."""
        return self.base.numbers(setup) + (setup.d + 1) ** 2

    def start(self, setup: Setup) -> _ValueState:
        """Empty sums."""
        return _ValueState(self.base.start(setup), setup.rows, setup.groups, setup.d)

    def update(self, state: _ValueState, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add values to the pilot's line while it lasts, and then residuals from it, clipped."""
        self.base.update(state.base, rows, groups, batch)
        self.check_values(batch.values)
        r = len(batch.values)
        z = batch.draws.z.reshape(len(batch.draws.z), -1, batch.draws.z.shape[-1])
        f = batch.values.reshape(r, -1) - (self.low + self.high) / 2
        state.count[rows, groups] += batch.values.shape[2]
        state.cross[rows, groups] += batch.draws.times(f.reshape(batch.values.shape))
        if state.n_pilot:
            line = state.line[rows]
            residual = f - line[:, :1] - np.matmul(z, line[:, 1:, None])[..., 0]
            limit = state.clip[rows, None, None]
            terms = np.clip(z * residual[:, :, None], -limit, limit)
            state.main[rows, groups] += batch.values.shape[2]
            state.first[rows, groups] += terms.reshape(*batch.values.shape, -1).sum(axis=2)
            state.squares[rows] += (terms**2).sum(axis=1)
        else:
            with_one = np.concatenate([np.ones((*z.shape[:2], 1)), z], axis=2)
            state.gram[rows] += with_one.swapaxes(1, 2) @ with_one
            state.moments[rows] += np.matmul(f[:, None, :], with_one)[:, 0]
            state.variance[rows] += (f**2).sum(axis=1)

    def check_values(self, values: Array) -> None:
        """Refuse values that leave the range."""
        check_in_range(values, self.low, self.high)

    def update_shared(self, state: _ValueState, groups: slice, draws: GroupedDraws) -> None:
        """Pass on."""
        self.base.update_shared(state.base, groups, draws)

    def end_pilot(self, state: _ValueState, n: int, cap: int) -> None:
        """Fix the line from which residuals are measured, and where terms are clipped."""
        state.n_pilot = n
        half = (self.high - self.low) / 2
        line: Array = np.linalg.solve(state.gram, state.moments[..., None])[..., 0].astype(np.float64)
        state.variance = np.maximum(state.variance - (line * state.moments).sum(axis=1), 0.0) / n
        line[:, 0] = np.clip(line[:, 0], -half, half)
        state.line = line
        offset, slope = half + np.abs(line[:, 0]), np.linalg.norm(line[:, 1:], axis=1)
        q = sqrt(2 * log(cap))
        state.clip = offset * q + slope * q**2
        state.bias = bounds.clipping_bias(q, offset, slope)

    def finish(self, state: _ValueState, drawn: Drawn) -> Estimate:
        """Stein: the better bounded of two estimates. C-LIME: least squares, by its distance to the nearer of them."""
        estimate, factor, n, miss = self.base.finish(state.base, drawn), drawn.factor, drawn.n, drawn.miss
        stein = state.cross.sum(axis=1) / n
        d = stein.shape[1]
        fixed = np.full(len(stein), bounds.stein_radius(self.high - self.low, d, n, miss / 2))
        adjusted, adaptive = self._adjusted(state, n - state.n_pilot, miss / 2)
        if isinstance(self.base, Stein):
            better = (adaptive < fixed)[:, None]
            radius = np.where(better[:, 0], adaptive, fixed)
            # what each group says of the slope that is reported, so that its errors are its own
            seen = estimate.pseudo.shape[1]
            by_group = np.where(
                better[:, :, None],
                state.line[:, None, 1:] + _mean(state.first, state.main)[:, :seen],
                _mean(state.cross, state.count)[:, :seen],
            )
            estimate = dataclasses.replace(
                estimate,
                values=factor.unwhiten(np.where(better, adjusted, stein)),
                pseudo=factor.unwhiten(by_group),
            )
        else:
            slopes = factor.whiten(estimate.values)
            radius = np.minimum(
                fixed + np.linalg.norm(slopes - stein, axis=1), adaptive + np.linalg.norm(slopes - adjusted, axis=1)
            )
        return dataclasses.replace(estimate, radius=radius * standardising_factor(factor))

    def _adjusted(self, state: _ValueState, main: int, delta: float) -> tuple[Array, Array]:
        """Stein's estimate of what the pilot's line leaves, and its empirical Bernstein radius."""
        d = state.first.shape[2]
        level = log(2 * d / delta)
        limit = state.clip[:, None]
        # Var of z·residual is about that of the residual: enough to tune λ
        tilt = bounds.best_tilt(level, limit, main, state.variance[:, None])
        by_feature = limit * level / (tilt * main) + bounds.scalar_tilt(tilt) * state.squares / (limit * tilt * main)
        radius = np.linalg.norm(by_feature + state.bias[:, None], axis=1)
        return state.line[:, 1:] + state.first.sum(axis=1) / main, radius


def _mean(sums: Array, count: Array) -> Array:
    """Means (r, g, d) of groups; 0 for those that have had no draw yet."""
    return sums / np.maximum(count, 1.0)[:, :, None]


def standardising_factor(factor: Factor) -> float:
    """‖D^½ L⁻ᵀ‖, D = diag Σ: carries an L2 bound per draw over to standardised slopes; 1 for diagonal Σ."""
    if factor.is_diagonal:
        return 1.0
    return float(np.linalg.norm(factor.inverse * factor.std, ord=2))


Certifying = CertifiedSmoothGrad | CertifiedValues | CertifiedJumps
"""Estimators that also bound their own error."""


def with_bound(
    method: Estimator, *, output_range: tuple[float, float] | None, gradient_bound: float | None
) -> Certifying:
    """The same method with finite-sample bounds, from what is known of the model."""
    if isinstance(method, SmoothGrad | Differences) and method.control != "none":
        msg = f"guarantee='certified' has no bound for a control; use method={method.name!r}, without one"
        raise InvalidArgument(msg)
    if isinstance(method, SmoothGrad):
        if gradient_bound is None:
            msg = (
                "guarantee='certified' needs gradient_bound for smoothgrad: the largest length of the gradient,"
                " anywhere. gradient_bound(model) computes one for linear models and torch networks"
            )
            raise InvalidArgument(msg)
        length = check_number(gradient_bound, "gradient_bound")
        if length == 0:
            msg = "gradient_bound must be > 0; got 0"
            raise InvalidArgument(msg)
        return CertifiedSmoothGrad(length)
    is_plain = not isinstance(method, CLime) or not (method.ridge or method.curves)
    if not isinstance(method, CLime | Stein | Jumps) or not is_plain:
        what = f"method {method.name!r}"
        if isinstance(method, CLime):
            what = "curves" if method.curves else "a ridge penalty"
        msg = f"guarantee='certified' has no bound for {what}; use method='clime', 'stein', 'jumps' or 'smoothgrad'"
        raise InvalidArgument(msg)
    if output_range is None:
        msg = (
            f"guarantee='certified' needs output_range=(lowest, highest) for {method.name}: the range that no output"
            " leaves. It is known by itself only for probabilities"
        )
        raise InvalidArgument(msg)
    low, high = check_range(output_range)
    if isinstance(method, Jumps):
        return CertifiedJumps(low, high, method.control)
    return CertifiedValues(method, low, high)

"""robustness: how much explanations of neighbouring rows differ, and how much of that is sampling noise."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._core.forks import survives_fork
from .._core.types import Array
from .._core.validate import check_choice, check_count, check_number, check_range
from ..errors import InvalidArgument
from ..estimators import Estimator
from ..models import Model, model_epsilon
from ..models.on_scales import ModelOnScales, OnlyAsked, refuse_gradient_bound, refuse_raw_units
from ..models.problem import Problem, build_problem
from ..models.targets import each_target, implied_range, is_by_row, stretch_of
from ..result.explanation import Explanation
from ..sampling.loop import run
from ..sampling.options import Options
from ..sampling.plan import resolve
from ..sampling.route import prepare
from ..space.neighbourhood import Neighbourhood
from .declared import check_has_gradients, check_outputs, check_slopes, is_certifiable
from .lipschitz import certify

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MORE_DRAWS = 16
"""Draws behind the population part, as a multiple of those behind the measure."""

ROUNDING = 1e-6
"""Share of an output that two outputs may differ by without any slope: a function may compute in float32."""


@dataclass(frozen=True, slots=True, eq=False)
class Robustness:
    """The largest difference between the explanations of a row and of its neighbours."""

    per_row: Array
    """(r,) largest distance over the neighbours"""
    mean: float
    standard_error: float
    """Of the mean, from the scatter over rows; NaN for one row"""
    population: float
    """Mean of the same with 16 times the draws, shared: the part that is not sampling noise"""
    ceiling: Array | None
    """(r,) what the certificate allows the model's part at the farthest neighbour, if what it assumes is true; None
    where nothing is known of the model"""
    norm: int
    units: str
    neighbours: int
    spread: float
    assumes: str = ""
    """What the certificate assumes of the model"""

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Distances of all rows, their mean with its interval, and what the certificate allows."""
        from ..plots.robustness import robustness

        return robustness(self, ax=ax)

    def __str__(self) -> str:
        """The measure in a sentence."""
        error = f"standard error {self.standard_error:.2g}; " if np.isfinite(self.standard_error) else ""
        lines = [
            f"The explanation of a row and of {self.neighbours} neighbours (spread {self.spread:g}) differ by at most"
            f" {self.mean:.4g} on average ({error}L{self.norm}, {self.units}; approximate).",
            f"With {MORE_DRAWS} times the draws, shared, it is {self.population:.4g}: that part is the model.",
        ]
        if self.ceiling is not None:
            most = f"{float(self.ceiling.mean()):.4g}"
            lines.append(f"The model's part cannot exceed {most} (certified; assumes {self.assumes}).")
        return "\n".join(lines)


@survives_fork
def robustness(
    model: Any,
    X: Any,
    *,
    sigma: Any = 1.0,
    background: Any = None,
    scale: Any = "linear",
    fixed: Any = (),
    method: str | Estimator = "auto",
    target: Any = None,
    neighbours: int = 10,
    spread: float = 0.1,
    norm: Literal[1, 2] = 1,
    units: Literal["standardised", "raw"] = "standardised",
    n_samples: int = 1_000,
    design: str = "auto",
    draws: Literal["shared", "independent"] = "shared",
    output_range: tuple[float, float] | None = None,
    gradient_bound: float | None = None,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    progress: Any = "auto",
) -> Robustness:
    """Mean over rows of the largest distance between a row's explanation and those of its neighbours.

    The measure of Agarwal et al. (2021): neighbours are drawn from N(x, spread²·Σ), or N(x, spread²·I) in raw units,
    where spread=0.1 is the paper's 0.01·I. With `draws="independent"` the measure includes sampling noise, as in the
    paper; with shared draws most of it cancels. With `target="predicted"` neighbours are explained for the output that
    is predicted at their row. On other scales than linear neighbours are drawn in logarithms or scores, so they stay
    within the background as draws do.

    Examples
    --------
    >>> from smoothlime.testing import Quadratic
    >>> found = robustness(Quadratic([[1.0]], [0.0]), [[0.0], [1.0]], sigma=1.0, n_samples=64)
    >>> bool(abs(found.mean - found.population) < 1e-9)
    True
    """
    settings = Options(n_samples=n_samples, draws=draws, seed=seed, batch_size=batch_size)
    problem = build_problem(model, X, sigma=sigma, background=background, scale=scale, fixed=fixed, output=None)
    problem.check_rows()
    rows, factor, adapted = problem.rows, problem.factor, problem.model
    around = _around(problem)
    asked = OnlyAsked(adapted) if isinstance(adapted, ModelOnScales) else adapted  # neighbours are other rows
    check_choice(units, "units", ("standardised", "raw"))
    refuse_raw_units(adapted, units)
    if gradient_bound is not None:
        refuse_gradient_bound(adapted)
    if norm not in (1, 2):
        msg = f"norm must be 1 or 2; got {norm!r}"
        raise InvalidArgument(msg)
    k = check_count(neighbours, "neighbours")
    width = check_number(spread, "spread")
    r, d = rows.shape
    steps = np.zeros((r, k, d))
    z = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(2,))).standard_normal(
        (r, k, len(factor.free))
    )
    steps[:, :, factor.free] = width * (factor.steps(z) if units == "standardised" else z)
    steps[:, :, : problem.x.shape[1]][np.repeat(problem.missing[:, None], k, axis=1)] = 0.0
    everyone = np.concatenate([rows[:, None], rows[:, None] + steps], axis=1).reshape(-1, d)
    of_everyone = np.repeat(each_target(target, r), k + 1).tolist() if is_by_row(target) else target

    def explained(settings: Options) -> Explanation:
        # draws that are turned to each row would not be shared
        problem = prepare(asked, everyone, sigma=around)
        plan = resolve(problem, settings, method=method, target=of_everyone, design=design, may_rotate=False)
        # across a decision boundary "predicted" would be another output, whose slopes are no neighbours
        (e,) = run(plan, plan.resolve(of_everyone).held(k + 1), progress)
        return e

    def largest(e: Explanation) -> Array:
        slopes = np.where(e.held, 0.0, e.values if units == "raw" else e.standardised).reshape(r, k + 1, -1)
        apart = slopes[:, 1:] - slopes[:, :1]
        return np.linalg.norm(apart, ord=norm, axis=2).max(axis=1)

    first = explained(settings)
    outputs = first.prediction.reshape(r, k + 1)
    known = implied_range(adapted, target) if output_range is None else check_range(output_range)
    if known is not None:
        for row, seen in enumerate(outputs):
            check_outputs(seen, known, f"at row {row} or next to it", is_implied=output_range is None)
    if gradient_bound is not None:
        check_has_gradients(adapted)
        longest = check_number(gradient_bound, "gradient_bound") * stretch_of(target)
        check_slopes(_slopes(adapted, rows, steps, outputs, longest), longest, "next to row {i}")
    per_row = largest(first)
    more = dataclasses.replace(settings, n_samples=MORE_DRAWS * n_samples, draws="shared")
    population = largest(explained(more))
    ceiling, assumes = None, ""
    is_known = (known is not None or gradient_bound is not None) and is_certifiable(method)
    if is_known and (units == "standardised" or (factor.is_diagonal and not np.ptp(factor.lower))):
        certificate = certify(
            adapted,
            rows,
            sigma=around,
            target=target,
            output_range=output_range,
            gradient_bound=gradient_bound,
            units=units,
        )
        farthest = np.linalg.norm(z, axis=2).max(axis=1) * width
        assumes = certificate.assumes
        ceiling = certificate.bound(farthest) * (1.0 if norm == 2 else np.sqrt(len(factor.free)))
    return Robustness(
        per_row=per_row,
        mean=float(per_row.mean()),
        standard_error=float(per_row.std(ddof=1) / np.sqrt(r)) if r > 1 else float("nan"),
        population=float(population.mean()),
        ceiling=ceiling,
        norm=norm,
        units=units,
        neighbours=k,
        spread=width,
        assumes=assumes,
    )


def _around(problem: Problem) -> Neighbourhood:
    """The neighbourhood of rows as the model is asked: on their scales, and by position, as an array has no names."""
    factor, width = problem.factor, problem.rows.shape[1]
    held = tuple(np.setdiff1d(np.arange(width), factor.free).tolist())
    if problem.scales is None and width == problem.x.shape[1]:
        return dataclasses.replace(problem.neighbourhood, fixed=held)
    if factor.is_diagonal:
        std = np.ones(width)
        std[factor.free] = factor.std
        return Neighbourhood(1.0, scale=std, fixed=held)
    covariance = np.eye(width)
    covariance[np.ix_(factor.free, factor.free)] = factor.lower @ factor.lower.T
    return Neighbourhood(1.0, covariance=covariance, fixed=held)


def _slopes(model: Model, rows: Array, steps: Array, outputs: Array, longest: float) -> Array:
    """Largest slope (r,) between rows and their neighbours that outputs (r, 1 + k) show for certain.

    What rounding of points and of outputs may have made of a gradient of length `longest` is taken off.
    """
    epsilon = float(np.max(model_epsilon(model)))
    size = np.abs(outputs).max(axis=1)
    length = np.linalg.norm(np.nan_to_num(rows), axis=1)
    rounding = ROUNDING * size + 8 * epsilon * (size + longest * length)
    away, length = np.abs(outputs[:, 1:] - outputs[:, :1]) - rounding[:, None], np.linalg.norm(steps, axis=2)
    return np.divide(away, length, out=np.zeros_like(away), where=length > 0).max(axis=1)

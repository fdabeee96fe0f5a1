"""curve: the smoothed model along one feature, with a band; over many rows their mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ._core.forks import survives_fork
from ._core.progress import Progress
from ._core.types import Array, Indices
from ._core.validate import check_fraction
from ._core.warn import warn
from .draws.designs import DESIGNS
from .errors import InvalidArgument, NotConverged
from .models import Evaluation, Target, model_dtype, resolve_target
from .models.evaluation import automatic_batch_size, row_name
from .models.inputs import holds_others
from .models.on_scales import as_given
from .models.problem import Problem
from .models.targets import output_names
from .result.explanation import around
from .sampling.curve_points import at_levels, category_of, check_numbers, grid_of, position_of, rows_at
from .sampling.exact_route import ExactRoute, find_exact_route
from .sampling.options import Options
from .sampling.route import prepare
from .space.tables import as_table
from .uncertainty.jackknife import standard_error, t_quantile
from .uncertainty.stopping import AUTOMATIC_ATOL, AUTOMATIC_FLOOR, FIRST_LOOK, plan_looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DESIGN = DESIGNS["antithetic"]
"""Normal draws, all of the same weight, for any number of features."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Curve:
    """F along one feature, (g,) each, the other features at their rows: means over the rows, with errors."""

    feature: str
    grid: Array
    """(g,) values of the feature, increasing; of a category 0, 1, ..., which count its `levels`"""
    values: Array
    """(g,) F, the mean over the rows"""
    standard_error: Array
    """(g,) of drawing; points of a curve share their draws, so that it is smooth, and errs as a whole"""
    by_row: Array
    """(r, g) F of each row"""
    x: Array
    """(r,) the feature at the rows; of a category the position of their level, NaN where it is none of `levels`"""
    degrees_of_freedom: float
    output_name: str
    converged: bool
    n_samples: int
    """Draws at each point; 0 where it is exact"""
    levels: tuple[str, ...] = ()
    """(g,) of a category"""

    @property
    def is_exact(self) -> bool:
        """Whether no sampling was needed."""
        return self.n_samples == 0

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends (g,) of the band; it holds point by point."""
        miss = 1 - check_fraction(confidence, "confidence")
        reach = t_quantile(self.degrees_of_freedom, 1 - miss / 2) * self.standard_error
        return self.values - reach, self.values + reach

    def to_frame(self, *, library: str | None = None, confidence: float = 0.95) -> Any:
        """Data frame with a line per value of the feature; pandas unless `library` says else."""
        from .io.frames import frame_of_curve

        return frame_of_curve(self, library=library, confidence=confidence)

    def plot(self, *, ax: Axes | None = None, confidence: float = 0.95) -> Axes:
        """The curve with its band, and faint ones of single rows; ticks show where the rows are."""
        from .plots.curve import curve as draw

        return draw(self, ax=ax, confidence=confidence)

    def __repr__(self) -> str:
        """One line: output, feature, points, rows."""
        how = "exact" if self.is_exact else f"{self.n_samples:,} draws"
        rows = f"{len(self.by_row)} row{'s' * (len(self.by_row) != 1)}"
        return f"<Curve of {self.output_name!r} along {self.feature!r}: {len(self.grid)} points, {rows}, {how}>"


@survives_fork
def curve(
    model: Any,
    x: Any,
    feature: int | str,
    *,
    grid: int | Sequence[Any] = 41,
    sigma: Any = 1.0,
    background: Any = None,
    scale: str | Mapping[Any, str] = "linear",
    fixed: Sequence[int | str] = (),
    target: Any = None,
    output: Literal["probability", "margin"] = "probability",
    n_samples: int | None = None,
    rtol: float = 0.05,
    atol: float | Literal["auto"] = "auto",
    confidence: float = 0.95,
    max_samples: int = 16_384,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    progress: Any = "auto",
) -> Curve:
    r"""The smoothed model F along one feature, with a band of errors.

    $$ t \mapsto F(x_1, \dots, t, \dots, x_d), \qquad F(x) = \mathbb{E}\,f(a), \quad a \sim N(x, \Sigma) $$

    Its slope at x is the slope that `explain` gives. Over many rows it is the mean of their curves, a smoothed partial
    dependence. All points of a curve share their draws. Arguments not listed here are those of `explain`.

    Parameters
    ----------
    x
        One row or several.
    feature
        Position or name of a feature; it may be one that is held fixed. Of a category (a column of text, of true and
        false, or a categorical) the curve has a point for each level: what F would be if all rows had it.
    grid
        Number of values, or the values; of a category its levels, by default those of the background. A number of
        values spans the background, from its smallest to its largest value (evenly in ranks or logarithms on those
        scales); without a background it spans two standard deviations on either side of the rows.
    n_samples
        A fixed number of draws. Without it, draws are made until the half-width of the band is at most `rtol` of the
        height of the curve, or `atol`.

    Examples
    --------
    >>> import numpy as np
    >>> import smoothlime as sl
    >>> found = sl.curve(lambda a: np.sin(a[:, 0]) + a[:, 1], [0.0, 1.0], 0, grid=[0.0, 1.0], sigma=0.5)
    >>> np.round(found.values, 1)
    array([1. , 1.7])
    """
    options = Options(
        n_samples=n_samples, rtol=rtol, atol=atol, confidence=confidence, max_samples=max_samples, seed=seed,
        batch_size=batch_size,
    )  # fmt: skip
    asked: dict[str, Any] = {"sigma": sigma, "background": background, "scale": scale, "fixed": fixed, "output": output}
    problem = prepare(model, x, **asked)
    if holds_others(as_given(problem.model)):
        msg = (
            "a curve puts rows at other values, and held inputs have no lines for those; bind them to the model"
            " for one row, as in lambda a: net(a, mask.expand(len(a), -1))"
        )
        raise InvalidArgument(msg, argument="model")
    j = position_of(feature, problem)
    table = as_table(x, "x")
    category = None
    if table is not None and table.names[j] in table.categories:
        category = category_of(model, x, asked, problem.feature_names[j], grid)
        values = np.arange(float(len(category.category.levels)))
        moved = at_levels(table, j, [cell for (cell,) in category.category.cells])
    else:
        check_numbers(problem, j)
        values = grid_of(grid, problem, j)
        moved = rows_at(x, j, values)
    at_grid = prepare(model, moved, **asked)
    target_there = _repeated(_target(problem, target, options), len(values))
    route = find_exact_route(at_grid, is_asked_for=False) if n_samples is None else None
    if isinstance(route, ExactRoute):
        found = _exact(route, target_there, len(values), progress)
    else:
        found = _sampled(at_grid, target_there, len(values), options, progress)
    name = problem.feature_names[j]
    if n_samples is None and not found.converged:
        msg = (
            f"the curve along {name!r} did not reach its tolerance within {found.n_samples:,} draws: its band is"
            f" {float((found.upper - found.lower).max()) / 2:.2g} wide on either side. It holds all the same."
            " Raise max_samples, rtol or atol"
        )
        warn(msg, NotConverged)
    return Curve(
        feature=name,
        grid=values,
        values=found.by_row.mean(axis=0),
        standard_error=found.error,
        by_row=found.by_row,
        x=problem.x[:, j] if category is None else np.where(category.own < len(values), category.own, np.nan),
        degrees_of_freedom=found.freedom,
        output_name=target_there.names[0],
        converged=found.converged,
        n_samples=found.n_samples,
        levels=() if category is None else category.category.levels,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Means (r, g) of each row, and errors (g,) of their means."""

    by_row: Array
    error: Array
    freedom: float
    n_samples: int
    converged: bool

    @property
    def lower(self) -> Array:
        """Lower end of the 95% band."""
        return -t_quantile(self.freedom, 0.975) * self.error

    @property
    def upper(self) -> Array:
        """Upper end."""
        return -self.lower


def _exact(route: ExactRoute, target: Target, g: int, progress: Any) -> _Found:
    (e,) = route.run(target, 0.95, progress)
    return _Found(e.smoothed.reshape(-1, g), np.zeros(g), np.inf, 0, converged=True)


def _sampled(problem: Problem, target: Target, g: int, options: Options, progress: Any) -> _Found:
    """Draw until the band is narrow enough; all rows and points at the same draws."""
    d = len(problem.factor.free)
    dtype = model_dtype(problem.model)
    size = (
        options.batch_size
        if isinstance(options.batch_size, int)
        else automatic_batch_size(problem.rows.shape[1], dtype)
    )
    evaluation = Evaluation(problem.model, size)
    evaluation.ask_at_rows(problem.rows.astype(dtype), problem.rows[-1:].astype(dtype))
    if options.n_samples is None:
        looks = plan_looks(FIRST_LOOK, max(FIRST_LOOK, DESIGN.below(options.max_samples, d)))
    else:
        looks = (DESIGN.whole(max(16, options.n_samples), d),)
    layout = DESIGN.layout(looks[0], d)
    stream = DESIGN.stream(d, options.seed)
    totals, squares = np.zeros(len(problem.rows)), np.zeros(len(problem.rows))
    groups = np.zeros((g, layout.groups))
    shift = np.zeros(0)
    drawn = 0
    with Progress(progress, len(problem.rows) * looks[0]) as watch:
        for n in looks:
            for chunk in layout.chunks(drawn, n, size):
                steps = problem.factor.steps(chunk.by_group(stream.take(chunk.n)).reshape(1, chunk.n, d))
                block = max(1, size // chunk.n)
                for start in range(0, len(problem.rows), block):
                    rows = np.arange(start, min(len(problem.rows), start + block))
                    seen = _ask(problem, evaluation, target, rows, steps, dtype.name)
                    shift = seen[0, :1] if not len(shift) else shift  # so that squares keep their digits
                    seen = seen - shift
                    totals[rows] += seen.sum(axis=1)
                    squares[rows] += (seen**2).sum(axis=1)
                    by_group = seen.reshape(len(rows), chunk.count, -1).sum(axis=2)
                    np.add.at(groups[:, chunk.groups], rows % g, by_group)
                    watch.advance(seen.size)
            drawn = n
            found, height = _look(problem, totals, groups, layout.sizes(n), shift, n)
            spread = float(np.sqrt(np.maximum(squares / n - (totals / n) ** 2, 0.0).max()))
            is_narrow = _is_narrow(found, height, spread, problem, options, len(looks))
            if is_narrow or n == looks[-1]:
                return dataclasses.replace(found, converged=is_narrow)
            watch.expect(len(problem.rows) * n)
    raise AssertionError  # the last look returns


def _look(problem: Problem, totals: Array, groups: Array, sizes: Array, shift: Array, n: int) -> tuple[_Found, float]:
    """Means and errors after n draws, and the height of the curve."""
    g = len(groups)
    by_row = totals.reshape(-1, g) / n + shift
    said = groups[:, : len(sizes)] / (sizes * len(by_row))
    error = standard_error(said.T[None], sizes)[0]
    return _Found(by_row, error, len(sizes) - 1.0, n, converged=False), float(np.ptp(by_row.mean(axis=0)))


def _is_narrow(found: _Found, height: float, spread: float, problem: Problem, options: Options, looks: int) -> bool:
    """Whether the band, with a confidence that all looks share, is within the tolerance everywhere."""
    quantile = t_quantile(found.freedom, 1 - (1 - options.confidence) / (2 * looks))
    atol = options.absolute
    if atol is None:
        known = getattr(problem.model, "output_range", None)
        atol = AUTOMATIC_FLOOR * (known[1] - known[0]) if known is not None else AUTOMATIC_ATOL * spread
    return bool((quantile * found.error).max() <= max(atol, options.rtol * height))


def _ask(problem: Problem, evaluation: Evaluation, target: Target, rows: Indices, steps: Array, dtype: str) -> Array:
    """What is explained, (r, n), around some rows."""
    n = steps.shape[1]
    points = around(problem.rows[rows], problem.factor.free, steps, dtype)
    values = evaluation.values(
        points.reshape(len(rows) * n, -1), lambda position: f"a draw around {row_name(int(rows[position // n]))}"
    )
    return np.einsum("rnk,rk->rn", values.reshape(len(rows), n, -1), target.weights[rows, 0])


def _target(problem: Problem, target: Any, options: Options) -> Target:
    """What is asked for at the rows themselves: "predicted" is what is predicted there, not along the curve."""
    dtype = model_dtype(problem.model)
    values = Evaluation(problem.model, automatic_batch_size(problem.rows.shape[1], dtype)).values(
        problem.rows.astype(dtype), row_name
    )
    names = output_names(problem.model.outputs, values.shape[1])
    return resolve_target(target, names, len(values), lambda: values)


def _repeated(target: Target, g: int) -> Target:
    """The same at each of g points of a curve, row by row."""
    names = tuple(each for each in target.row_names for _ in range(g))
    return Target(np.repeat(target.weights, g, axis=0), target.names, names)

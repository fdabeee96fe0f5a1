"""contributions: what each feature adds to the smoothed model on the way from a baseline to a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ._core.forks import survives_fork
from ._core.types import Array, Flags, Indices
from ._core.validate import check_choice, check_fraction
from ._core.warn import warn
from .errors import InvalidArgument, NotConverged
from .models.against_data import warn_against_data
from .models.baselines import Baselines, read_baselines
from .models.problem import Problem
from .sampling.contributions import Found, exact, sampled
from .sampling.exact_route import find_exact_route
from .sampling.line_draws import plain_factor
from .sampling.options import Options
from .sampling.route import prepare
from .space.neighbourhood import Neighbourhood
from .uncertainty.groups import Groups

if TYPE_CHECKING:
    import os

    from matplotlib.axes import Axes

    from .result.effects import Effects

METHODS = ("auto", "exact", "gradients", "predictions")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Contributions:
    """What each feature adds to F from a baseline to each row, in units of the output: `base` + Σ `values` = `total`.

    It is the smoothed model F that is taken apart. The gaps to what the model itself says, `prediction` − `total` at
    the row and `base_prediction` − `base` at the baseline, are no feature's, and stand beside them.
    """

    x: Array
    """(r, d) the rows as numbers; NaN for cells that hold none"""
    values: Array
    """(r, d) contributions; 0 for features that are missing, and for held ones that are as in the baselines"""
    base: Array
    """(r,) F(b), the mean over the baselines"""
    total: Array
    """(r,) F(x)"""
    base_error: Array
    """(r,) standard error of `base`"""
    total_error: Array
    """(r,) standard error of `total`"""
    residual: Array
    """(r,) F(x) − F(b) − Σc: 0 but for errors of drawing"""
    residual_error: Array
    """(r,) its standard error"""
    prediction: Array
    """(r,) f(x)"""
    base_prediction: Array
    """(r,) f(b), the mean over the baselines"""
    radius: Array
    """(r,) bound on the numerical error of exact contributions, L2; 0 for drawn ones"""
    converged: Flags
    """(r,) whether the tolerance was reached, and gradients, where they were asked for, add up"""
    n_samples: Indices
    """(r,) draws; 0 where it is exact"""
    baseline: Array
    """(m, d) the rows measured from; NaN in columns in which they have the value of the row, or hold no number"""
    baseline_rows: Indices | None
    """(m,) their positions in the background, where they come from there"""
    held_apart: tuple[str, ...]
    """Columns that are held, such as categories, and differ between some row and its baselines: they add their part"""
    held_alike: tuple[str, ...]
    """Columns that vary in the background, but are held at the row's own value in its baselines, too"""
    feature_names: tuple[str, ...]
    row_outputs: tuple[str, ...]
    """(r,) the output that is explained"""
    output_name: str
    neighbourhood: Neighbourhood
    backend: str = ""
    """Library of the data frame that the rows came in, or none"""
    groups: Groups | None = None
    """What groups of draws say"""

    @property
    def is_exact(self) -> bool:
        """Whether nothing was drawn."""
        return self.groups is None

    @property
    def standard_error(self) -> Array:
        """(r, d) of the contributions."""
        return np.zeros(self.values.shape) if self.groups is None else self.groups.standard_error

    def half_width(self, confidence: float = 0.95) -> Array:
        """(r, d) of intervals, each of which misses with probability 1 − confidence."""
        miss = 1 - check_fraction(confidence, "confidence")
        if self.groups is None:
            return np.where(self.values == 0, 0.0, self.radius[:, None])
        return self.groups.half_width(self.values, plain_factor(self.values.shape[1]), miss)

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends (r, d), feature by feature."""
        reach = self.half_width(confidence)
        return self.values - reach, self.values + reach

    def effects(self, weights: Any = None, by: Any = None, rows: Literal["these", "sample"] = "these") -> Effects:
        """Means over all rows: what features add on average, mean |contribution|, the share of positive ones, errors.

        The arguments are those of `Explanation.effects`. Features that add nothing to any row, as they are held alike,
        are NaN.
        """
        from .result.effects import Averaged, effects, numbers_of

        d = len(self.feature_names)
        adds = np.isin(np.arange(d), self.neighbourhood.factor(d, self.feature_names).free)
        adds |= np.isin(np.array(self.feature_names, dtype=object), self.held_apart)
        alone = self.groups is None
        freedom = np.full(len(self), np.inf) if self.groups is None else self.groups.degrees_of_freedom
        averaged = Averaged(
            "contribution", np.where(adds, self.values, np.nan), self.standard_error, freedom, alone, self.groups,
            np.arange(d), self.n_samples, np.zeros(self.values.shape, dtype=np.bool_), np.ones(d), self.feature_names,
            self.output_name, (), lambda name: numbers_of(self.x, self.feature_names, name),
        )  # fmt: skip
        return effects(averaged, weights, by, rows)

    def to_frame(self, *, library: str | None = None, confidence: float = 0.95) -> Any:
        """Data frame with a line per row and feature, in the library that the rows came in unless `library` says."""
        from .io.frames import frame_of_contributions

        return frame_of_contributions(self, library=library, confidence=confidence)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a .json or .parquet file, whole or not at all; `load` reads it back."""
        from .io.files import save

        save(self, path)

    def to_json(self) -> str:
        """The contents of the .json file that `save` writes."""
        from .io.as_json import to_json

        return to_json(self)

    def to_shap(self) -> Any:
        """`shap.Explanation` for shap's waterfall, beeswarm and bars: `base_values` are F(b), and f(x) there is F(x).

        These are not Shapley values.
        """
        from .io.shap_view import contributions_to_shap

        return contributions_to_shap(self)

    def plot(self, row: int = 0, *, ax: Axes | None = None, confidence: float = 0.95, most: int = 10) -> Axes:
        """Waterfall of a row with error bars, from f(b) to f(x), the two gaps as bars of their own."""
        from .plots.waterfall import waterfall

        return waterfall(self, row, ax=ax, confidence=confidence, most=most)

    def __len__(self) -> int:
        """Count of rows."""
        return len(self.values)

    def __str__(self) -> str:
        """The first row, largest contributions first."""
        from .plots.waterfall import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        """Notebook form: a small picture and a table."""
        from .plots.notebook import contributions

        return contributions(self)

    def __repr__(self) -> str:
        """One line: output, rows, features, how."""
        r, d = self.values.shape
        how = "exact" if self.is_exact else f"{int(self.n_samples.max()):,} draws"
        rows, baselines = f"{r} row{'s' * (r != 1)}", len(self.baseline)
        return (
            f"<Contributions to {self.output_name!r}: {rows} × {d} features, {baselines}"
            f" baseline{'s' * (baselines != 1)}, {how}>"
        )


@survives_fork
def contributions(
    model: Any,
    X: Any,
    *,
    baseline: Any = None,
    background: Any = None,
    method: Literal["auto", "exact", "gradients", "predictions"] = "auto",
    sigma: Any = 1.0,
    scale: str | Mapping[Any, str] = "linear",
    fixed: Sequence[int | str] = (),
    target: Any = None,
    output: Literal["probability", "margin"] = "probability",
    n_samples: int | None = None,
    rtol: float = 0.05,
    atol: float | Literal["auto"] = "auto",
    confidence: float = 0.95,
    max_samples: int = 16_384,
    draws: Literal["shared", "independent"] = "shared",
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    progress: Any = "auto",
) -> Contributions:
    r"""What each feature adds to the smoothed model on the straight line from a baseline to each row.

    $$ c_j = \delta_j \int_0^1 \partial_j F(b + t\delta)\,dt, \quad \delta = x - b, \qquad
    \sum_j c_j = F(x) - F(b), \qquad F(x) = \mathbb{E}\,f(a), \; a \sim N(x, \Sigma) $$

    These are integrated gradients of F, and exist for any model: a forest, a rounded score, a service. For linear
    models, most generalised linear ones and sums of trees they are exact. For all others they are estimated from draws,
    with gradients or predictions, until the error is within the tolerance. Arguments not listed here are those of
    `explain`.

    Parameters
    ----------
    baseline
        One row, or one for each row of X; as an array, a table, or a mapping or series by feature name. Columns that
        are held (categories, `fixed`) and differ have the value of the row with probability t at the fraction t of the
        line, independently of each other; their contribution is the mean change from one value to the other. A table or
        mapping may leave them out: then they have the value of the row.
    background
        Data that gives the feature scales, as in `explain`. Without a baseline 100 of its rows are baselines, chosen by
        the seed (all, if they are fewer), and contributions are means over them. If sigma is a `Neighbourhood`, the
        background is used only for baselines.
    method
        "gradients" is right for models without jumps; "predictions" for any.
    n_samples
        A fixed number of draws. Without it, draws are made until the L2 error of the contributions of a row is at most
        max(`atol`, `rtol` of their length), in units of the output. `atol="auto"`: 0.005 for probabilities, else 1% of
        the standard deviation of the model along the line.

    Examples
    --------
    >>> import numpy as np
    >>> import smoothlime as sl
    >>> found = sl.contributions(lambda a: a[:, 0] * a[:, 1], [1.0, 2.0], baseline=[0.0, 0.0], sigma=0.1)
    >>> np.round(found.values, 1)
    array([[1., 1.]])
    """
    check_choice(method, "method", METHODS)
    options = Options(
        n_samples=n_samples, rtol=rtol, atol=atol, confidence=confidence, max_samples=max_samples, draws=draws,
        seed=seed, batch_size=batch_size,
    )  # fmt: skip
    if method == "exact" and n_samples is not None:
        msg = "method='exact' draws nothing; leave n_samples out"
        raise InvalidArgument(msg, argument="method")
    units = None if isinstance(sigma, Neighbourhood) else background
    asked = {"sigma": sigma, "background": units, "scale": scale, "fixed": fixed, "output": output}
    problem = prepare(model, X, **asked)
    baselines = read_baselines(baseline, background, problem, X, options.seed)
    if len(baselines.held.columns):  # whose values in the baselines its rows must be able to hold
        problem = prepare(model, X, **asked, switches=baselines.held.levels(problem.feature_names))
        baselines = dataclasses.replace(baselines, held=baselines.held.coded(problem))
    warn_against_data(problem)
    found = _find(problem, baselines, method, target, options, progress)
    if n_samples is None:
        _warn_of_tolerance(found, options)
    return _result(problem, baselines, found)


def _find(problem: Problem, baselines: Baselines, method: str, target: Any, options: Options, progress: Any) -> Found:
    """In closed form where there is one and nothing else is asked for."""
    if method == "exact" or (method == "auto" and options.n_samples is None):
        route = find_exact_route(problem, is_asked_for=method == "exact")
        if route is not None:
            found = exact(route, baselines, target, progress, is_asked_for=method == "exact")
            if found is not None:
                return found
    by_gradients = None if method == "auto" else method == "gradients"
    return sampled(problem, baselines, target, options, progress, by_gradients=by_gradients)


def _warn_of_tolerance(found: Found, options: Options) -> None:
    """Name the rows that did not get there with all draws; others have had a warning of their own."""
    late = np.flatnonzero(~found.converged & (found.n_samples > options.max_samples // 2))
    if len(late):
        rows = f"row {late[0]}" if len(late) == 1 else f"{len(late)} rows (the first is row {late[0]})"
        msg = (
            f"{rows} did not reach the tolerance within {int(found.n_samples[late].max()):,} draws; the errors hold all"
            " the same. Raise max_samples, sigma, rtol or atol"
        )
        warn(msg, NotConverged)


def _result(problem: Problem, baselines: Baselines, found: Found) -> Contributions:
    shared = {name: getattr(found, name) for name in Found.__slots__ if name != "target"}
    return Contributions(
        x=problem.x,
        **shared,
        baseline=baselines.x,
        baseline_rows=baselines.positions,
        held_apart=tuple(problem.feature_names[j] for j in baselines.held.columns),
        held_alike=baselines.alike,
        feature_names=problem.feature_names,
        row_outputs=tuple(names[0] for names in found.target.row_names),
        output_name=found.target.names[0],
        neighbourhood=problem.neighbourhood,
        backend=problem.backend,
    )

"""sigma_path: the slopes of one row, their bands and fidelity against σ, all from one set of draws."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ._core.forks import survives_fork
from ._core.progress import Progress
from ._core.types import Array
from ._core.validate import as_float_array, check_count
from .errors import InvalidArgument, WrongType
from .estimators import Estimator
from .models import Target
from .models.problem import Problem
from .result.explanation import Explanation
from .sampling import plan as plans
from .sampling.exact_route import ExactRoute
from .sampling.options import Options
from .sampling.plan import Plan
from .sampling.route import prepare, resolve, run
from .space.neighbourhood import Neighbourhood

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWS = 1_024
"""At each σ, where nothing else is asked for."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SigmaPath:
    """Explanations of one row at s values of σ, smallest first, from the same standard normal draws.

    `path[2]` is the `Explanation` at the third σ, `path[2:5]` a shorter path. Errors of different σ are correlated:
    the curves are smooth in σ, and a difference between two of their points has a smaller error than its ends suggest.
    """

    sigmas: Array
    """(s,) increasing; multiples of the neighbourhood's own sigma where one was given"""
    explanations: tuple[Explanation, ...]
    """One of a single row for each σ"""

    @property
    def values(self) -> Array:
        """(s, d) slopes per unit of each feature; NaN for features held fixed."""
        return np.concatenate([e.values for e in self.explanations])

    @property
    def standardised(self) -> Array:
        """(s, d) slopes times √Σ_jj. They grow with σ even where the slope stays the same."""
        return np.concatenate([e.standardised for e in self.explanations])

    @property
    def standard_error(self) -> Array:
        """(s, d) of the slopes."""
        return np.concatenate([e.standard_error for e in self.explanations])

    def interval(self, confidence: float = 0.95, *, simultaneous: bool = False) -> tuple[Array, Array]:
        """Lower and upper ends (s, d) of intervals for the slopes.

        They hold σ by σ, with `simultaneous=True` for all features of a σ together; not for all σ together.
        """
        ends = [e.interval(confidence, simultaneous=simultaneous) for e in self.explanations]
        return np.concatenate([lower for lower, _ in ends]), np.concatenate([upper for _, upper in ends])

    @property
    def smoothed(self) -> Array:
        """(s,) F(x), the mean of the model over each neighbourhood; NaN where the method does not see it."""
        return np.concatenate([e.smoothed for e in self.explanations])

    @property
    def fidelity(self) -> Array:
        """(s,) share of the model's variation in each neighbourhood that is linear; NaN likewise."""
        return np.concatenate([e.fidelity for e in self.explanations])

    @property
    def prediction(self) -> float:
        """f(x), which does not depend on σ."""
        return float(self.explanations[0].prediction[0])

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the d features."""
        return self.explanations[0].feature_names

    @property
    def output_name(self) -> str:
        """The output explained; for `target="predicted"`, the one that is largest at the row."""
        return self.explanations[0].row_outputs[0]

    def __len__(self) -> int:
        """Count of σ."""
        return len(self.explanations)

    def __iter__(self) -> Iterator[Explanation]:
        """Explanations, smallest σ first."""
        return iter(self.explanations)

    def __getitem__(self, which: Any) -> Any:
        """The explanation at one σ, by position; a slice gives a path."""
        if isinstance(which, slice):
            if which.step is not None and operator.index(which.step) < 0:
                msg = f"a path has its σ smallest first; got a slice with step {which.step}. Use list(path)[::-1]"
                raise IndexError(msg)
            kept = self.explanations[which]
            if not kept:
                msg = f"no σ is left of this path of {len(self)}; a path has at least one"
                raise IndexError(msg)
            return SigmaPath(self.sigmas[which], kept)
        position = operator.index(which)
        if not -len(self) <= position < len(self):
            msg = f"position {position} is out of range; this path has {len(self)} σ"
            raise IndexError(msg)
        return self.explanations[position]

    def __str__(self) -> str:
        """A line per σ: F(x), fidelity and the largest slopes with error bars."""
        from .plots.path import as_text

        return as_text(self)

    def __repr__(self) -> str:
        """One line: shape, range of σ, method."""
        s, d = self.values.shape
        span = f"{self.sigmas[0]:g}" if s == 1 else f"{self.sigmas[0]:g} to {self.sigmas[-1]:g}"
        return f"<SigmaPath of {self.output_name!r}: {s} σ ({span}) × {d} slopes, {self.explanations[0].method}>"

    def _repr_html_(self) -> str:
        """Notebook form."""
        from .plots.path import as_html

        return as_html(self)

    def __rich__(self) -> Any:
        """Form that rich prints."""
        from .plots.path import as_rich

        return as_rich(self)

    def plot(
        self,
        features: Sequence[int | str] | int | str | None = None,
        *,
        most: int = 6,
        confidence: float = 0.95,
        ax: Sequence[Axes] | None = None,
    ) -> np.ndarray[Any, np.dtype[Any]]:
        """Slopes with bands above, fidelity below, against σ: an array of the two Axes.

        Shows the `features` asked for, else `most` of them: those that are the largest share of the standardised slopes
        at any σ. `ax` takes two Axes to draw in, as `plt.subplots(2, sharex=True)` makes them.
        """
        from .plots.path import path

        return path(self, features, most=most, confidence=confidence, ax=ax)


@survives_fork
def sigma_path(
    model: Any,
    x: Any,
    sigmas: Any,
    *,
    method: str | Estimator = "auto",
    neighbourhood: Neighbourhood | None = None,
    background: Any = None,
    scale: str | Mapping[Any, str] = "linear",
    fixed: Sequence[int | str] = (),
    target: int | str | Sequence[int | str] | Mapping[Any, float] | None = None,
    output: Literal["probability", "margin"] = "probability",
    n_samples: int | Literal["auto"] = "auto",
    confidence: float = 0.95,
    design: str = "auto",
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    progress: Any = "auto",
) -> SigmaPath:
    r"""Slopes of a model around one row for several σ, from one set of draws.

    $$ w_\sigma(x) = \nabla\,\mathbb{E}\,f(x + \sigma L z), \qquad z \sim N(0, I), \quad L L^\top = C $$

    Every σ stretches the same z, so the curves are smooth in σ, and their changes come from the model, not from noise.
    At each σ the result equals that of `explain` with this `sigma` and `n_samples` and the path's method and design.
    These are not the defaults of `explain`, because draws that are turned to the model differ from σ to σ. Arguments
    not listed here are those of `explain`.

    Parameters
    ----------
    x
        One row: (d,), (1, d), or a table of one row.
    sigmas
        Standard deviations, one or more, in any order; the result has them smallest first.
    neighbourhood
        Scales, covariance or fixed features. Its own sigma is multiplied by each of `sigmas`; with 1 they are used as
        given.
    background
        Data that gives the feature scales; `sigmas` then count in their standard deviations.
    scale, fixed
        As in `explain`. `scale="auto"` chooses for the largest of `sigmas`, and takes the same scales for all.
    n_samples
        Draws at each σ, rounded up to whole blocks of the design; 1,024 unless given. The number is fixed, because
        drawing until a tolerance is reached would give each σ other draws. As in `explain`, models with a closed form
        need no draws, unless this, `design` or a method that draws is given.

    Examples
    --------
    >>> import numpy as np
    >>> import smoothlime as sl
    >>> path = sl.sigma_path(lambda a: np.sin(2 * a[:, 0]), [0.0], [0.1, 0.5, 1.0])
    >>> np.round(path.values[:, 0], 1)  # 2·exp(−2σ²): the wider the neighbourhood, the more of the wave averages out
    array([2. , 1.2, 0.3])
    """
    wanted = _check_sigmas(sigmas)
    around = _check_neighbourhood(neighbourhood, background)
    _check_one_row(getattr(x, "shape", ()))  # before the model is asked about them all
    is_free = isinstance(n_samples, str) and n_samples == "auto"
    options = Options(
        n_samples=DRAWS if is_free else check_count(n_samples, "n_samples"), confidence=confidence, seed=seed,
        batch_size=batch_size,
    )  # fmt: skip
    spreads = [float(each) if around is None else _times(around, around, each) for each in wanted]
    is_drawn = not is_free or design != "auto"
    problem = prepare(model, x, sigma=spreads[-1], background=background, scale=scale, fixed=fixed, output=output)
    _check_one_row(problem.x.shape)
    problems = [problem.within(_times(around or Neighbourhood(), problem.neighbourhood, each)) for each in wanted]
    routes = _routes(problems, options, is_drawn=is_drawn, method=method, target=target, design=design)
    resolved = routes[0].resolve(target)
    each = routes[0].stopping.looks[-1] if isinstance(routes[0], Plan) else 1
    with Progress(progress, len(wanted) * each) as watch:
        return SigmaPath(wanted, tuple(_explain(each, resolved, options.confidence, watch) for each in routes))


def _routes(
    problems: Sequence[Problem], options: Options, *, is_drawn: bool, **choices: Any
) -> Sequence[ExactRoute] | Sequence[Plan]:
    """The closed form at each σ, which needs no draws; where the model has none at some, plans of the same draws."""
    exact: list[ExactRoute] = []
    for problem in problems:
        route = resolve(problem, options, is_drawn=is_drawn, may_rotate=False, **choices)
        if isinstance(route, Plan):
            # draws that are rotated to the model would not be the same at all σ
            first = plans.resolve(problems[0], options, may_rotate=False, **choices) if exact else route
            return [first.within(each) for each in problems]
        exact.append(route)
    return exact


def _times(unit: Neighbourhood, shape: Neighbourhood, sigma: float) -> Neighbourhood:
    """Sigma of `unit`, times σ; scales, covariance, fixed features and columns of `shape`."""
    return dataclasses.replace(shape, sigma=unit.sigma * float(sigma))


def _explain(route: ExactRoute | Plan, target: Target, confidence: float, watch: Progress) -> Explanation:
    """One σ, counted on the bar of the whole path."""
    before = watch.done
    (explanation,) = run(route, target, confidence, lambda done, _: watch.advance(before + done - watch.done))
    return explanation


def _check_sigmas(sigmas: Any) -> Array:
    given = as_float_array(sigmas, "sigmas", allow_bools=False)
    if given.ndim != 1 or not given.size:
        msg = f"sigmas must be a list of one standard deviation or more, as in [0.1, 0.3, 1]; got shape {given.shape}"
        raise InvalidArgument(msg)
    bad = np.flatnonzero(~(np.isfinite(given) & (given > 0)))
    if len(bad):
        msg = f"sigmas must be finite and > 0; got {given[bad[0]]:g} at position {bad[0]}"
        raise InvalidArgument(msg)
    ordered, counts = np.unique(given, return_counts=True)
    if (counts > 1).any():
        twice = int(np.argmax(counts > 1))
        msg = f"sigmas must differ; {ordered[twice]:g} stands there {counts[twice]} times"
        raise InvalidArgument(msg)
    return ordered


def _check_neighbourhood(neighbourhood: Any, background: Any) -> Neighbourhood | None:
    if neighbourhood is None:
        return None
    if not isinstance(neighbourhood, Neighbourhood):
        msg = (
            f"neighbourhood must be a Neighbourhood, such as Neighbourhood(scale=[1.0, 10.0]);"
            f" got a {type(neighbourhood).__name__}"
        )
        raise WrongType(msg)
    if background is not None:
        msg = "give background or neighbourhood, not both; Neighbourhood.from_data(background) makes one"
        raise InvalidArgument(msg)
    return neighbourhood


def _check_one_row(shape: tuple[int, ...]) -> None:
    if len(shape) == 2 and shape[0] > 1:
        msg = f"x must be one row; got {shape[0]:,}. A path belongs to a row: call sigma_path for each of them"
        raise InvalidArgument(msg)

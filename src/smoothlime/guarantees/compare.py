"""Two models on the same rows: has what they say changed, beyond noise and beyond what matters.

Both models are asked at the same points, by one method, with draws that are turned to neither, so that most of the
noise cancels in the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._core.forks import survives_fork
from .._core.types import Array
from .._core.validate import check_count, check_fraction, check_number
from ..errors import InvalidArgument
from ..estimators import Estimator
from ..models.problem import Problem
from ..models.targets import implied_range, is_narrow
from ..result.explanation import Explanation
from ..sampling.defaults import choose_method
from ..sampling.diagnostics import holm
from ..sampling.exact_route import ExactRoute
from ..sampling.options import Options
from ..sampling.plan import Plan
from ..sampling.route import prepare, resolve, run
from ..uncertainty.stopping import AUTOMATIC_FLOOR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIRST, GROWTH = 1_024, 4
"""Draws at the first look, and how many times as many at each further one."""

LEVELS = np.geomspace(1e-9, 0.5, 28)
"""Levels at which differences are tested; p-values are one of them, rounded up."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Whether the slopes around each row have changed from one model to another."""

    old: Explanation
    new: Explanation
    explanation: Explanation
    """Of the difference new − old, with its errors"""
    p_value: Array
    """(r,) of the hypothesis that the change is within the margin, adjusted over rows (Holm) and looks"""
    changed: tuple[bool | None, ...]
    """True: by more than the margin. False: by no more than it. None: too few draws to tell"""
    size: Array
    """(r,) L2 norm of the difference, standardised"""
    allowed: Array
    """(r,) the margin in the same units"""
    margin: float
    alpha: float

    @property
    def difference(self) -> Array:
        """(r, d) new slopes less old ones, per unit of each feature."""
        return self.explanation.values

    @property
    def standard_error(self) -> Array:
        """(r, d) of the differences."""
        return self.explanation.standard_error

    @property
    def verdict(self) -> Literal["changed", "unchanged", "cannot tell"]:
        """Over all rows: "changed" if any row has, "unchanged" if none has."""
        if True in self.changed:
            return "changed"
        return "unchanged" if all(each is False for each in self.changed) else "cannot tell"

    def to_frame(self, *, library: str | None = None) -> Any:
        """Data frame with a line per row and feature, as `Explanation.to_frame` of the difference."""
        return self.explanation.to_frame(library=library)

    def plot(self, row: int | None = None, *, ax: Axes | None = None, confidence: float = 0.95, most: int = 12) -> Axes:
        """Old slopes and new ones of a row beside the margin; without `row`, of several rows how far each has moved."""
        from ..plots.comparison import comparison

        return comparison(self, row, ax=ax, confidence=confidence, most=most)

    def __len__(self) -> int:
        """Count of rows."""
        return len(self.p_value)

    def _repr_html_(self) -> str:
        """Notebook form: a small picture and a table."""
        from ..plots.notebook import comparison

        return comparison(self)

    def __str__(self) -> str:
        """The verdict, how many rows, and what changed most."""
        r, moved = len(self), [row for row, each in enumerate(self.changed) if each]
        undecided = sum(each is None for each in self.changed)
        share = f"{100 * self.margin:.10g}%"
        lines = {
            "changed": f"Changed around {len(moved)} of {r} rows, by more than {share} of the old slopes.",
            "unchanged": f"Unchanged around all {r} rows, within {share} of the old slopes.",
            "cannot tell": f"Cannot tell for {undecided} of {r} rows; raise max_samples or margin.",
        }
        told = [lines[self.verdict]]
        if moved:
            change = np.nan_to_num(np.abs(self.explanation.standardised[moved])).mean(axis=0)
            most = [j for j in np.argsort(-change)[:3] if change[j] > 0]
            names = ", ".join(f"{self.explanation.feature_names[j]} ({change[j]:.2g})" for j in most)
            told.append(f"Largest mean change per neighbourhood standard deviation: {names}.")
            if undecided:
                told.append(f"Cannot tell for {undecided} rows.")
        how = (
            "exact"
            if self.explanation.is_exact
            else f"{self.old.method}, {int(self.old.n_samples.max()):,} shared draws"
        )
        told.append(f"{how}; level {self.alpha:g}, smallest p-value {max(float(self.p_value.min()), 1e-300):.2g}.")
        return "\n".join(told)


@survives_fork
def compare(
    old: Any,
    new: Any,
    X: Any,
    *,
    margin: float = 0.05,
    alpha: float = 0.05,
    method: str | Estimator = "auto",
    sigma: Any = 1.0,
    background: Any = None,
    scale: str | Mapping[Any, str] = "linear",
    fixed: Sequence[int | str] = (),
    target: Any = None,
    output: Literal["probability", "margin"] = "probability",
    n_samples: int | None = None,
    max_samples: int = 16_384,
    design: str = "auto",
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    progress: Any = "auto",
) -> Comparison:
    """Test whether the slopes of two models differ around each row, by more than a margin.

    A row has changed if the L2 norm of the difference of standardised slopes is significantly larger than `margin`
    times that of the old slopes (and, for probabilities, than 0.005). It is unchanged if the norm is significantly
    smaller. The margin is there because a retrained model always differs a little. With `target="predicted"` both
    models are explained for the output that the old one predicts.

    Parameters
    ----------
    old, new
        Two models of the same features; anything that `explain` takes.
    margin
        Change to ignore, as a share of the old slopes' length.
    alpha
        Chance that any row is called changed though none is.
    n_samples
        A fixed number of draws. Without it, draws are made fourfold, up to `max_samples`, while a row is undecided.

    Examples
    --------
    >>> import numpy as np
    >>> import smoothlime as sl
    >>> old = lambda a: np.tanh(a[:, 0] + a[:, 1])
    >>> new = lambda a: np.tanh(a[:, 0] + 0.5 * a[:, 1])
    >>> print(sl.compare(old, new, [[0.2, 0.1], [0.0, 0.3]], sigma=0.5).verdict)
    changed
    """
    share, level = check_number(margin, "margin"), check_fraction(alpha, "alpha")
    most = check_count(max_samples, "max_samples")
    asked: dict[str, Any] = {"sigma": sigma, "background": background, "scale": scale, "fixed": fixed, "output": output}
    problems = prepare(old, X, **asked), prepare(new, X, **asked)
    _check_same(*problems)
    looks = _looks(n_samples, most)
    for n in looks:
        options = Options(n_samples=n, seed=seed, batch_size=batch_size)
        is_drawn = n_samples is not None or design != "auto"
        routes = _routes(problems, options, is_drawn=is_drawn, method=method, target=target, design=design)
        resolved = routes[0].resolve(target)
        wanted = [names[0] for names in resolved.row_names] if target == "predicted" else target
        one, other = (
            run(route, each, options.confidence, progress)[0]
            for route, each in zip(routes, (resolved, routes[1].resolve(wanted)), strict=True)
        )
        is_small = is_narrow(target, implied_range(problems[0].model, target))
        found = _judge(one, other, share, level, floor=AUTOMATIC_FLOOR * is_small, looks=len(looks))
        if None not in found.changed or found.explanation.is_exact:
            break
    return found


def _looks(n_samples: int | None, most: int) -> list[int]:
    """Numbers of draws, each to be tried while something is undecided."""
    if n_samples is not None:
        return [n_samples]
    looks = [min(FIRST, most)]
    while looks[-1] * GROWTH <= most:
        looks.append(looks[-1] * GROWTH)
    return looks


def _check_same(old: Problem, new: Problem) -> None:
    """Refuse models of other features: position by position they would be compared all the same."""
    if old.feature_names != new.feature_names:
        msg = (
            f"old and new have different features: {', '.join(old.feature_names)} and {', '.join(new.feature_names)}."
            " Give both as functions of the same columns"
        )
        raise InvalidArgument(msg, argument="new")


def _routes(
    problems: tuple[Problem, Problem], options: Options, *, is_drawn: bool, method: Any, target: Any, design: str
) -> tuple[ExactRoute | Plan, ExactRoute | Plan]:
    """One way for both: in closed form where both have one, else by one estimator at the same draws."""

    def settled(method: Any, *, is_drawn: bool) -> list[ExactRoute | Plan]:
        return [
            resolve(each, options, is_drawn=is_drawn, method=method, target=target, design=design, may_rotate=False)
            for each in problems
        ]

    one, other = settled(method, is_drawn=is_drawn)
    if isinstance(one, ExactRoute) and isinstance(other, ExactRoute):
        return one, other
    if isinstance(one, Plan) and isinstance(other, Plan) and one.method == other.method:
        return one, other
    has_gradients = all(hasattr(each.model, "values_and_gradients") for each in problems)
    common = choose_method(
        "auto", has_gradients=has_gradients, d=len(problems[0].factor.free), n=options.n_samples, design=design,
        may_rotate=False,
    )  # fmt: skip
    one, other = settled(common, is_drawn=True)
    return one, other


def _judge(old: Explanation, new: Explanation, margin: float, alpha: float, *, floor: float, looks: int) -> Comparison:
    """What the difference says, with all chances divided among the looks."""
    difference = new - old
    size = np.sqrt(np.nansum(difference.standardised**2, axis=1))
    allowed = np.maximum(margin * np.sqrt(np.nansum(old.standardised**2, axis=1)), floor)
    raw = np.ones(len(size))
    if difference.is_exact:
        raw[size - difference.radius > allowed] = 0.0
    for level in () if difference.is_exact else LEVELS[::-1]:
        is_beyond = _is_beyond(difference, size, allowed, level)
        raw[is_beyond] = level
    p_value = np.minimum(1.0, looks * holm(np.minimum(1.0, 2 * raw)))  # two tests, of which the better one counts
    is_within = size + _radius(difference, alpha / looks) <= allowed
    changed = tuple(
        True if p <= alpha else False if inside else None for p, inside in zip(p_value, is_within, strict=True)
    )
    return Comparison(old, new, difference, p_value, changed, size, allowed, margin, alpha)


def _is_beyond(difference: Explanation, size: Array, allowed: Array, level: float) -> Any:
    """(r,) whether a change is larger than allowed, at a level: all features together, or one of them alone."""
    together = size - _radius(difference, level) > allowed
    free = max(1, int(np.isfinite(difference.std).sum()))
    reach = difference.half_width(level / free) * difference.std
    return together | (np.abs(difference.standardised) - reach > allowed[:, None]).any(axis=1)


def _radius(difference: Explanation, miss: float) -> Array:
    """(r,) L2 bound on the error of a difference, standardised, that is exceeded with probability `miss`."""
    groups, factor = difference.groups, difference.factor
    if groups is None:
        return difference.radius  # of rounding: both are exact
    values = np.nan_to_num(difference.values[:, factor.free])
    return groups.measure(values, np.full(len(values), np.nan), factor, miss).radius

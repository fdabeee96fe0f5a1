"""agreement: do the model's gradients describe its behaviour? The tests in `diagnostics`, row by row, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._core.forks import survives_fork
from .._core.types import Array
from .._core.validate import check_count, check_fraction, check_number
from ..errors import InvalidArgument, NoGradients
from ..estimators import GroupedDraws
from ..models import Differentiable, as_asked
from ..sampling.diagnostics import BEYOND_DOUBT, Comparison, compare_row, holm
from ..sampling.options import Options
from ..sampling.plan import resolve
from ..sampling.route import prepare

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Whether gradients and predictions tell the same story around each row."""

    p_value: Array
    """(r,) of the hypothesis that they do, adjusted over rows (Holm)"""
    agrees: tuple[bool | None, ...]
    """True: equal within the margin. False: they differ, and by more than the margin. None: too few draws to tell,
    also where a few of them carry all the scatter, or fewer than 4,096 saw nothing change at all"""
    distance: Array
    """(r,) L2 distance between SmoothGrad and C-LIME, standardised"""
    relative: Array
    """(r,) the same over the length of C-LIME's slopes"""
    within: Array
    """(r,) relative difference that is ruled out at level alpha"""
    features: tuple[tuple[str, ...], ...]
    """Features that differ, for each row (Holm over features)"""
    diagnosis: tuple[str, ...]
    """What is wrong with the gradients, for each row; empty where nothing is"""
    margin: float
    alpha: float
    n_samples: int

    @property
    def verdict(self) -> str:
        """One line over all rows."""
        bad = [row for row, each in enumerate(self.agrees) if each is False]
        if bad:
            reasons = sorted({self.diagnosis[row] for row in bad})
            where = "" if len(self.agrees) == 1 else f" around {len(bad)} of {len(self.agrees)} rows"
            return f"disagree{where}: {reasons[0]}; use predictions (method='differences' or 'clime')"
        sure = np.array([each is True for each in self.agrees])
        if sure.all():
            return f"agree within {_percent(float(self.within.max()))}"
        widest = _percent(float(self.within.max()))
        if not sure.any():
            return f"not enough samples to tell: they may differ by {widest}"
        return (
            f"agree within {_percent(float(self.within[sure].max()))} around {sure.sum()} of {len(sure)} rows;"
            f" not enough samples to tell around the others, where they may differ by {widest}"
        )

    def plot(self, *, ax: Axes | None = None, most: int = 25) -> Axes:
        """The difference at each row, and what is ruled out, beside the margin."""
        from ..plots.agreement import agreement

        return agreement(self, ax=ax, most=most)

    def __len__(self) -> int:
        """Count of rows."""
        return len(self.p_value)

    def __str__(self) -> str:
        """The verdict, and how it was reached."""
        verdict = self.verdict
        is_known = verdict.startswith(("agree", "disagree"))
        sentence = f"Gradients and predictions {verdict}" if is_known else f"{verdict[0].upper()}{verdict[1:]}"
        return (
            f"{sentence}.\n"
            f"Paired test on {self.n_samples:,} shared draws per row, level {self.alpha:g}, margin"
            f" {100 * self.margin:.10g}% of the slope;"
            f" smallest p-value {max(float(self.p_value.min()), 1e-300):.2g} (approximate)."
        )


@survives_fork
def agreement(
    model: Any,
    X: Any,
    *,
    sigma: Any = 1.0,
    background: Any = None,
    scale: Any = "linear",
    fixed: Any = (),
    target: Any = None,
    output: Literal["probability", "margin"] = "probability",
    n_samples: int = 2_000,
    margin: float = 0.05,
    alpha: float = 0.05,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
) -> Agreement:
    """Test whether the model's gradients agree with its predictions around each row.

    The result is one of three: they agree within `margin` (relative to ‖w‖), they disagree, or there are too few draws
    to tell. Disagreement is shown by Hotelling's test with at least 200 draws and five per feature, else by the largest
    |t|; agreement by a one-sided test of its own. Agreement does not rule out a rare, large jump that one draw in
    thousands meets. `background`, `scale` and `fixed` are those of `explain`; scales with steps have no gradients to
    compare.

    Examples
    --------
    >>> from smoothlime.testing import Sine, Step
    >>> print(agreement(Sine([1.0, 0.5]), [0.3, 0.1], sigma=0.5, n_samples=4_000).verdict)
    agree within 2.1%
    >>> print(agreement(Step([1.0, 0.5]), [0.3, 0.1], sigma=0.5).verdict)
    disagree: the output is piecewise constant, so its gradients are zero; use predictions ...
    """
    n = check_count(n_samples, "n_samples")
    level = check_fraction(alpha, "alpha")
    share = check_number(margin, "margin")
    adapted = as_asked(model, output)
    if not isinstance(adapted, Differentiable):
        msg = f"agreement compares gradients with predictions; a {type(model).__name__} has no gradients to compare"
        raise NoGradients(msg)
    settings = Options(n_samples=n, seed=seed, batch_size=batch_size)
    problem = prepare(adapted, X, sigma=sigma, background=background, scale=scale, fixed=fixed)
    plan = resolve(problem, settings, method="smoothgrad", design="iid")
    d = len(plan.factor.free)
    if n < d + 3:
        msg = f"n_samples={n} is too few for {d} features: least squares needs at least {d + 3} draws"
        raise InvalidArgument(msg, argument="n_samples")
    resolved = plan.resolve(target)
    by_row: dict[int, tuple[Comparison, tuple[str, ...]]] = {}
    for part in plan.by_gaps():
        z = part.plan.streams(np.arange(1))[0].take(n)
        draws, free = GroupedDraws(z[None, None], is_shared=True), part.plan.factor.free
        for row in map(int, part.rows):
            compared = compare_row(part.plan, resolved.weights[row, 0], row, draws, level, share)
            by_row[row] = compared, tuple(plan.problem.feature_names[j] for j in free[compared.differs])
    found, differing = zip(*(by_row[row] for row in range(len(plan.rows))), strict=True)
    p_value = holm(np.array([each.p_value for each in found]))
    agrees = tuple(
        True
        if each.is_affirmed
        else False
        if p <= (BEYOND_DOUBT if each.is_heavy else level) and each.relative > share
        else None
        for each, p in zip(found, p_value, strict=True)
    )
    return Agreement(
        p_value=p_value,
        agrees=agrees,
        distance=np.array([each.distance for each in found]),
        relative=np.array([each.relative for each in found]),
        within=np.array([each.within for each in found]),
        features=tuple(names if agree is False else () for names, agree in zip(differing, agrees, strict=True)),
        diagnosis=tuple(each.diagnosis if agree is False else "" for each, agree in zip(found, agrees, strict=True)),
        margin=share,
        alpha=level,
        n_samples=n,
    )


def _percent(share: float) -> str:
    return f"{max(share, 0.001):.1%}" if share < 10 else "any amount"

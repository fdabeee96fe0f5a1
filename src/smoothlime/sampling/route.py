"""The way that all front doors share: prepare → resolve → run."""

from __future__ import annotations

from typing import Any

from .._core.validate import check_choice
from ..errors import InvalidArgument
from ..estimators import Estimator
from ..exact import Exact
from ..models import Target
from ..models.problem import Problem, build_problem
from ..result.explanation import Explanation
from . import loop, plan
from .exact_route import ExactRoute, find_exact_route
from .options import Options
from .plan import Plan


def prepare(
    model: Any,
    X: Any,
    *,
    sigma: Any,
    background: Any = None,
    scale: Any = "linear",
    fixed: Any = (),
    output: str = "probability",
    switches: Any = False,
    one_hot: Any = None,
) -> Problem:
    """What is explained: the model, the rows and the neighbourhood, checked."""
    check_choice(output, "output", ("probability", "margin"))
    return build_problem(
        model, X, sigma=sigma, background=background, scale=scale, fixed=fixed, output=output, switches=switches,
        one_hot=one_hot,
    )  # fmt: skip


def resolve(
    problem: Problem,
    options: Options,
    *,
    is_drawn: bool,
    method: str | Estimator = "auto",
    target: Any = None,
    design: str = "auto",
    may_rotate: bool = True,
) -> ExactRoute | Plan:
    """The closed form, where it is asked for; or where nothing else is, `is_drawn` included, and the model has one.

    Else a plan of how to draw.
    """
    is_asked_for = method == "exact" or isinstance(method, Exact)
    if is_asked_for and is_drawn:
        msg = "method='exact' draws nothing; leave n_samples and design out"
        raise InvalidArgument(msg, argument="method")
    if is_asked_for or (method == "auto" and not is_drawn):
        known = find_exact_route(problem, is_asked_for=is_asked_for)
        if known is not None:
            return known
    return plan.resolve(problem, options, method=method, target=target, design=design, may_rotate=may_rotate)


def run(route: ExactRoute | Plan, target: Target, confidence: float, progress: Any) -> list[Explanation]:
    """One explanation per target."""
    if isinstance(route, ExactRoute):
        return route.run(target, confidence, progress)
    return loop.run(route, target, progress, tells_jumps=True)

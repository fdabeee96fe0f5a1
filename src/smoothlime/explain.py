"""The front doors `explain` and `explain_outputs`: every argument checked, every choice settled."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ._core.validate import check_choice
from ._core.warn import warn
from .draws.designs import DESIGNS, Design
from .errors import InvalidArgument, LostPrecision, NoGradients, NotConverged, TooFewDraws
from .estimators import Estimator, Lime
from .exact import Exact
from .models import Evaluation, model_dtype, model_epsilon
from .models.evaluation import automatic_batch_size
from .models.problem import Problem, build_problem
from .models.target_check import check_target
from .models.targets import every_output, implied_range, stretch_of
from .result.explanation import Explanation
from .sampling.at_rows import ask_at_rows
from .sampling.defaults import certify_method, choose_design, choose_method
from .sampling.exact_route import ExactRoute, find_exact_route
from .sampling.loop import run
from .sampling.margin_control import settle_control
from .sampling.options import Options
from .sampling.plan import Plan
from .space.neighbourhood import Neighbourhood
from .uncertainty.stopping import FIRST_LOOK, Stopping, plan_looks

BLURRED = 1e-3
"""Spacing of a model's numbers, in neighbourhood standard deviations, from which on slopes lose digits."""

BLIND = 2.0
"""And from which on steps get lost between them, so that slopes are no longer blurred but wrong: by 1.5% here, and soon
by all of it."""


def explain(
    model: Any,
    X: Any,
    *,
    method: str | Estimator = "auto",
    sigma: float | Any | Neighbourhood = 1.0,
    background: Any = None,
    target: int | str | Mapping[Any, float] | None = None,
    output: Literal["probability", "margin"] = "probability",
    n_samples: int | None = None,
    rtol: float = 0.05,
    atol: float | Literal["auto"] = "auto",
    confidence: float = 0.95,
    guarantee: Literal["approximate", "certified"] = "approximate",
    output_range: tuple[float, float] | None = None,
    gradient_bound: float | None = None,
    max_samples: int = 100_000,
    design: str = "auto",
    draws: Literal["shared", "independent"] = "shared",
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    progress: Any = "auto",
) -> Explanation:
    r"""Slopes of a model around each row, with standard errors.

    $$ w(x) = \mathbb{E}[\nabla f(a)] = \Sigma^{-1}\,\mathrm{Cov}(a, f(a)), \qquad a \sim N(x, \Sigma) $$

    A slope says how fast the smoothed output changes per unit of a feature. It is not an additive contribution.

    Parameters
    ----------
    model
        A torch module, an estimator with `predict`, a function of points (n, d), or the result of `as_model`.
    X
        One row (d,) or rows (r, d): an array, a tensor, or a data frame (pandas, polars, pyarrow), whose columns give
        the feature names. Columns that hold no numbers are fixed; a model fitted on a data frame is asked with one.
    method
        `"exact"` (structure: linear models and trees), `"smoothgrad"` (gradients), `"clime"`, `"stein"`,
        `"differences"`, `"lime"` (predictions only), or settings such as `CLime(ridge=0.1)`. `"auto"` is exact where
        the model has a closed form and neither n_samples nor design is given; else it takes gradients where the model
        has them, together with the values at the same draws, else C-LIME with curves (differences where draws are few
        or features many); for probabilities of boosted trees differences with their exact margin as control variate.
    sigma
        Standard deviation of the neighbourhood, not a variance: a number, one per feature, or a `Neighbourhood`.
    background
        Data that gives the feature scales; sigma then counts in their standard deviations. Missing values are left
        out; columns of a data frame are found by name.
    target
        Output position or name; `"predicted"` for each row's own top class; `{"a": 1, "b": -1}` for a contrast. The
        one margin of two classes is that of the second, so position 1; it needs no target.
    output
        For classifiers: explain the probability or the margin. The margin of an outlier detector is its score, without
        which its predictions are explained. Functions and torch modules are taken as they are.
    n_samples
        A fixed number of draws per row, rounded up to whole blocks of the design: for `"aligned"`, which `"auto"`
        mostly takes from 64 or 256 on, and `"sobol"` to a power of two (257 to 512), from 16 and 8 on. The result's
        `n_samples` is the number used. Without it, each row is drawn until its error is good enough:
    rtol, atol
        The L2 error of the standardised slopes is at most max(atol, rtol·‖w‖). `atol="auto"` is 1% of the standard
        deviation of the model over the neighbourhood.
    confidence
        Of the error bound, for each row, although the data decided when to stop.
    guarantee
        `"approximate"`: errors from groups of draws. `"certified"`: finite-sample bounds, which need iid draws and
        `output_range` (known for probabilities) or, for smoothgrad, `gradient_bound`; expect thousands of draws.
    output_range, gradient_bound
        What is known of the model: the least and largest value of what is explained; a bound on the length of the
        gradient of any single output, which for a contrast is taken Σ|weight| times.
    max_samples
        Draws after which a row gives up: `converged` is then False, and a warning names the row.
    design
        `"iid"`, `"antithetic"`, `"orthogonal"`, `"sobol"`, `"aligned"` (one Sobol' sequence, turned around each row
        to where a small pilot sees the model vary most), `"aligned-pairs"` (the same, in pairs ±z; for C-LIME);
        `"auto"` takes what measured best at this d and n.
    draws
        `"shared"`: all rows are perturbed alike, so answers do not depend on which rows are explained together.
        `"independent"`: each row has draws of its own, keyed by its position.
    batch_size
        Points per model call; bounds memory.
    progress
        `"auto"`, `True`, `False`, or a callable (done, total).

    Examples
    --------
    >>> import numpy as np
    >>> import smoothlime as sl
    >>> e = sl.explain(lambda a: np.sin(2 * a[:, 0]), [0.0, 0.0], sigma=0.1)
    >>> np.round(np.abs(e.values), 2), e.converged
    (array([[1.96, 0.  ]]), array([ True]))
    """
    settings = Options(
        n_samples=n_samples, rtol=rtol, atol=atol, confidence=confidence, guarantee=guarantee,
        output_range=output_range, gradient_bound=gradient_bound, max_samples=max_samples, draws=draws, seed=seed,
        batch_size=batch_size,
    )  # fmt: skip
    problem = prepare(model, X, sigma=sigma, background=background, output=output)
    known = exact_route_unless_drawn(problem, method, draws=n_samples is not None or design != "auto")
    if known is not None:
        return known.run(known.resolve(target), settings.confidence, progress)[0]
    plan = resolve(problem, settings, method=method, target=target, design=design, may_open=True)
    resolved = plan.resolve(target)
    (explanation,) = run(plan, resolved, progress, tells_jumps=True)
    if n_samples is None:
        warn_not_converged({explanation.output_name: explanation})
    return explanation


def explain_outputs(
    model: Any,
    X: Any,
    *,
    method: str | Estimator = "auto",
    sigma: float | Any | Neighbourhood = 1.0,
    background: Any = None,
    output: Literal["probability", "margin"] = "probability",
    n_samples: int | None = None,
    rtol: float = 0.05,
    atol: float | Literal["auto"] = "auto",
    confidence: float = 0.95,
    guarantee: Literal["approximate", "certified"] = "approximate",
    output_range: tuple[float, float] | None = None,
    gradient_bound: float | None = None,
    max_samples: int = 100_000,
    design: str = "auto",
    draws: Literal["shared", "independent"] = "shared",
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    progress: Any = "auto",
) -> dict[str, Explanation]:
    """Explanations of every output of a model, by name, all from the same draws.

    So sums and differences of them are made draw by draw, and have no more error than they need:
    `2 * each["a"] - each["b"]`. The arguments are those of `explain`.

    Examples
    --------
    >>> import numpy as np
    >>> import smoothlime as sl
    >>> both = sl.explain_outputs(lambda a: np.column_stack([a[:, 0], -a[:, 0]]), [1.0])
    >>> np.round((both["0"] + both["1"]).values, 12)
    array([[0.]])
    """
    settings = Options(
        n_samples=n_samples, rtol=rtol, atol=atol, confidence=confidence, guarantee=guarantee,
        output_range=output_range, gradient_bound=gradient_bound, max_samples=max_samples, draws=draws, seed=seed,
        batch_size=batch_size,
    )  # fmt: skip
    problem = prepare(model, X, sigma=sigma, background=background, output=output)
    known = exact_route_unless_drawn(problem, method, draws=n_samples is not None or design != "auto")
    if known is not None:
        every = every_output(known.outputs, len(known.predictions))
        return dict(zip(every.names, known.run(every, settings.confidence, progress), strict=True))
    plan = resolve(problem, settings, method=method, design=design, may_open=True)
    resolved = every_output(plan.outputs, len(plan.rows))
    explanations = dict(zip(resolved.names, run(plan, resolved, progress, tells_jumps=True), strict=True))
    if n_samples is None:
        warn_not_converged(explanations)
    return explanations


def prepare(model: Any, X: Any, *, sigma: Any, background: Any = None, output: str = "probability") -> Problem:
    """What is explained: the model, the rows and the neighbourhood, checked."""
    check_choice(output, "output", ("probability", "margin"))
    return build_problem(model, X, sigma=sigma, background=background, output=output)


def resolve(
    problem: Problem,
    settings: Options,
    *,
    method: str | Estimator = "auto",
    target: Any = None,
    design: str = "auto",
    may_turn: bool = True,
    may_open: bool = False,
) -> Plan:
    """Settle every choice, and ask the model for f(x).

    That may come behind the draws, the first of which are then under way: see `at_rows`.
    """
    problem.check_rows()
    adapted, rows, factor = problem.model, problem.rows, problem.factor
    d = len(factor.free)
    has_gradients = hasattr(adapted, "values_and_gradients")  # it is Differentiable: asking a protocol takes longer
    estimator: Estimator
    if settings.is_certified:
        check_target(target, adapted)
        known = implied_range(adapted, target) if settings.output_range is None else settings.output_range
        estimator = certify_method(
            method, has_gradients=has_gradients, output_range=known,
            gradient_bound=None if settings.gradient_bound is None else settings.gradient_bound * stretch_of(target),
        )  # fmt: skip
    else:
        estimator = choose_method(
            method, has_gradients=has_gradients, d=d, n=settings.n_samples, most=settings.max_samples, design=design,
            may_turn=may_turn,
        )  # fmt: skip
    if estimator.needs == "gradients" and not has_gradients:
        msg = (
            f"{estimator.name} needs gradients; a {problem.kind} gives only values."
            " Use method='clime' or 'differences', or from_functions(values=..., gradients=...)"
        )
        raise NoGradients(msg)
    dtype = model_dtype(adapted)
    if isinstance(settings.batch_size, int):
        size = settings.batch_size
    else:
        # points that are made on the host stay there, in its cache, whatever the device would like
        size = automatic_batch_size(rows.shape[1], dtype, adapted if hasattr(estimator, "gather") else None)
    is_chosen = not settings.is_certified and method == design == "auto"
    estimator, controlled = settle_control(estimator, problem, size, is_chosen=is_chosen)
    chosen, looks = _budget(estimator, design, d, settings.n_samples, settings.max_samples, may_turn=may_turn)
    stopping = Stopping(looks, settings.rtol, settings.absolute, settings.confidence)
    evaluation = Evaluation(adapted if controlled is None else controlled.margins.model, size)
    plan = Plan(
        problem=problem,
        evaluation=evaluation,
        method=estimator,
        design=chosen,
        stopping=stopping,
        is_shared=settings.draws == "shared",
        seed=settings.seed,
        dtype=dtype.name,
        controlled=controlled,
    )
    asked = dataclasses.replace(plan, at_rows=ask_at_rows(plan, may_open=may_open))
    _check_spacing(problem)  # a device is busy meanwhile
    return asked


def exact_route_unless_drawn(problem: Problem, method: Any, *, draws: bool) -> ExactRoute | None:
    """The closed form, where it is asked for; or where nothing else is, draws included, and the model has one."""
    is_asked_for = method == "exact" or isinstance(method, Exact)
    if is_asked_for and draws:
        msg = "method='exact' draws nothing; leave n_samples and design out"
        raise InvalidArgument(msg)
    if not is_asked_for and (method != "auto" or draws):
        return None
    return find_exact_route(problem, is_asked_for=is_asked_for)


def _budget(
    method: Estimator, design: str, d: int, asked: int | None, cap: int, *, may_turn: bool
) -> tuple[Design, tuple[int, ...]]:
    """The design and the numbers of draws at which to look, in whole blocks.

    Too few draws are an error that names the fewest.
    """
    name = choose_design(design, method, d=d, n=asked or cap, may_turn=may_turn)
    chosen = DESIGNS[name]
    fewest = method.fewest(d, is_paired=chosen.is_paired)
    if asked is not None:
        n = chosen.whole(asked, d)
        if n < fewest:
            msg = (
                f"n_samples={asked} is too few for {method.name}{_drawn(name, method)} on {d} features:"
                f" at least {chosen.whole(fewest, d)} are needed for slopes with error bars{_wider(method)}"
            )
            raise TooFewDraws(msg)
        return chosen, (n,)
    first = chosen.whole(max(FIRST_LOOK, fewest), d)
    last = chosen.below(cap, d)
    if last < first:
        msg = (
            f"max_samples={cap} is below the first look, at {first} draws for {method.name}{_drawn(name, method)}"
            f" on {d} features. Raise it, or give n_samples{_wider(method)}"
        )
        raise TooFewDraws(msg)
    return chosen, plan_looks(first, last)


def _wider(method: Estimator) -> str:
    """What else helps where a kernel leaves few of the draws."""
    return "; a wider kernel needs fewer" if isinstance(method, Lime) and method.kernel is not None else ""


def _drawn(design: str, method: Estimator) -> str:
    return "" if design == method.name else f" with {design} draws"


def warn_not_converged(explanations: Mapping[str, Explanation]) -> None:
    """Say loudly which rows did not reach their tolerance, and how far they came."""
    for name, e in explanations.items():
        late = np.flatnonzero(~e.converged)
        if not len(late):
            continue
        shown = ", ".join(f"{row} (radius {e.radius[row]:.2g})" for row in late[:5])
        more = f" and {len(late) - 5} more" if len(late) > 5 else ""
        msg = (
            f"{len(late)} of {len(e)} rows did not reach the tolerance for {name!r} within"
            f" {int(e.n_samples[late].max()):,} draws: row {shown}{more}."
            " Their error bars hold all the same. Raise max_samples, rtol or atol"
        )
        warn(msg, NotConverged)


def _check_spacing(problem: Problem) -> None:
    """A model in few digits cannot tell x from x + step when the step is below the spacing of numbers near x."""
    model, factor, names = problem.model, problem.factor, problem.feature_names
    epsilon = model_epsilon(model)
    x = problem.x if len(factor.free) == problem.x.shape[1] else problem.x[:, factor.free]
    if np.max(epsilon) * max(x.max(), -x.min()) <= BLURRED * factor.std.min():  # fine everywhere, seen by one number
        return
    _, exponent = np.frexp(np.abs(x).max(axis=0))
    spacing = epsilon * np.ldexp(0.5, exponent)
    j = int(np.argmax(spacing / factor.std))
    if spacing[j] > BLURRED * factor.std[j]:
        is_blind = spacing[j] > BLIND * factor.std[j]
        msg = (
            f"sigma is {factor.std[j]:.3g} for feature {names[factor.free[j]]!r}, but the model's numbers are"
            f" {spacing[j]:.2g} apart at row {np.abs(x[:, j]).argmax()}:"
            f" {'steps get lost between them' if is_blind else 'slopes lose digits'}."
            " Raise sigma, centre the feature, or use float64"
        )
        if is_blind:
            raise InvalidArgument(msg)
        warn(msg, LostPrecision)

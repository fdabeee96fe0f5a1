"""The front doors `explain` and `explain_outputs`: every argument checked, every choice settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ._core.forks import survives_fork
from ._core.warn import warn
from .errors import NotConverged
from .estimators import Estimator
from .models.against_data import warn_against_data
from .models.targets import every_output
from .result.explanation import Explanation
from .result.switches import Switches
from .sampling.options import Options
from .sampling.route import prepare, resolve, run
from .sampling.switches import add_switches
from .space.neighbourhood import Neighbourhood


@survives_fork
def explain(
    model: Any,
    X: Any,
    *,
    method: str | Estimator = "auto",
    sigma: float | Any | Neighbourhood = 1.0,
    background: Any = None,
    scale: str | Mapping[Any, str] = "linear",
    fixed: Sequence[int | str] = (),
    switches: bool | Sequence[str] | Mapping[str, Sequence[Any]] = True,
    one_hot: Literal["auto"] | Sequence[Sequence[str]] | None = "auto",
    target: int | str | Sequence[int | str] | Mapping[Any, float] | None = None,
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
        With more than two axes, such as images (r, 3, 224, 224), the model is given that shape; see `e.shaped()`.
    method
        `"exact"` (structure: linear models and trees), `"jumps"` (structure: trees behind a curve, or in a full Σ),
        `"smoothgrad"` (gradients), `"clime"`, `"stein"`, `"differences"`, `"lime"` (predictions only), or settings such
        as `CLime(ridge=0.1)`. `"auto"` is exact where the model has a closed form and neither n_samples nor design is
        given. Otherwise it takes the first that applies: jumps where trees are known, as for probabilities of boosted
        ones; gradients together with the values at the same draws; differences where draws are few or features many;
        C-LIME with curves.
    sigma
        Standard deviation of the neighbourhood, not a variance: a number, one per feature, or a `Neighbourhood`.
    background
        Data that gives the feature scales; sigma then counts in their standard deviations. Missing values are left
        out; columns of a data frame are found by name.
    scale
        Scale on which steps are taken: `"linear"`, the features themselves; `"log"`, their logarithms; `"ranks"`,
        normal scores of their ranks in the background, so that draws stay within its range; `"auto"`, linear where
        draws mostly stay within the background, else ranks; or a mapping from features to these. Slopes, steps and
        errors are then per unit of the logarithm or score: f∘T is explained; f(x) and E f stay in the output's units.
    fixed
        Features that are not perturbed, by name or position; they have no slope. Joined with those of a
        `Neighbourhood`.
    target
        Output position or name, or a list of them, one for each row; `"predicted"` for each row's own top class;
        `{"a": 1, "b": -1}` for a contrast. The one margin of two classes is that of the second, so position 1; it needs
        no target.
    output
        For classifiers: explain the probability or the margin. `"margin"` is also the score of an outlier detector and
        the raw score of boosted models. Outputs of functions and torch modules are explained as they come.
    n_samples
        A fixed number of draws per row, rounded up to whole blocks of the design: for `"aligned"`, which `"auto"`
        mostly takes from 64 or 256 on, and `"sobol"` to a power of two (257 to 512), from 16 and 8 on. The result's
        `n_samples` is the number used. Without it, each row is drawn until its error is within the tolerance:
    rtol, atol
        The L2 error of the standardised slopes is at most max(atol, rtol·‖w‖). `atol="auto"` is 1% of the standard
        deviation of the model over the neighbourhood; for probabilities, contrasts of two, and outputs whose
        `output_range` is as narrow, 0.005 if that is more.
    confidence
        Confidence of the error bound, for each row; stopping is allowed for.
    guarantee
        `"approximate"`: errors from groups of draws. `"certified"`: finite-sample bounds, which need iid draws and
        `output_range` (known for probabilities) or, for smoothgrad, `gradient_bound`; expect thousands of draws. Draws
        of known trees do not ask the model.
    output_range, gradient_bound
        The least and largest value of what is explained, for certificates and for `atol="auto"`; and a bound on the
        length of the gradient of any single output, multiplied by Σ|weight| for a contrast.
    max_samples
        Most draws per row. A row that has not reached its tolerance then has `converged` False, and a warning names it.
    design
        `"iid"`, `"antithetic"`, `"orthogonal"`, `"sobol"`, `"aligned"` (one Sobol' sequence, turned around each row
        to where a small pilot sees the model vary most), `"aligned-pairs"` (the same, in pairs ±z; for C-LIME);
        `"auto"` takes the one with the smallest measured errors at this d and n.
    draws
        `"shared"`: all rows use the same draws, so answers do not depend on which rows are explained together.
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
    options = Options(
        n_samples=n_samples, rtol=rtol, atol=atol, confidence=confidence, guarantee=guarantee,
        output_range=output_range, gradient_bound=gradient_bound, max_samples=max_samples, draws=draws, seed=seed,
        batch_size=batch_size,
    )  # fmt: skip
    problem = prepare(
        model, X, sigma=sigma, background=background, scale=scale, fixed=fixed, output=output, switches=switches,
        one_hot=one_hot,
    )  # fmt: skip
    is_drawn = n_samples is not None or design != "auto"
    route = resolve(problem, options, is_drawn=is_drawn, method=method, target=target, design=design)
    asked = route.resolve(target)
    warn_against_data(problem)
    found = run(route, asked, options.confidence, progress)
    (explanation,) = add_switches(route, asked, found, options, progress, is_asked_for=switches is not True)
    if n_samples is None:
        warn_not_converged({explanation.output_name: explanation})
    return explanation


@survives_fork
def explain_outputs(
    model: Any,
    X: Any,
    *,
    method: str | Estimator = "auto",
    sigma: float | Any | Neighbourhood = 1.0,
    background: Any = None,
    scale: str | Mapping[Any, str] = "linear",
    fixed: Sequence[int | str] = (),
    switches: bool | Sequence[str] | Mapping[str, Sequence[Any]] = True,
    one_hot: Literal["auto"] | Sequence[Sequence[str]] | None = "auto",
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

    So sums and differences are computed draw by draw, and common errors cancel:
    `2 * each["a"] - each["b"]`. The arguments are those of `explain`.

    Examples
    --------
    >>> import numpy as np
    >>> import smoothlime as sl
    >>> both = sl.explain_outputs(lambda a: np.column_stack([a[:, 0], -a[:, 0]]), [1.0])
    >>> np.round((both["0"] + both["1"]).values, 12)
    array([[0.]])
    """
    options = Options(
        n_samples=n_samples, rtol=rtol, atol=atol, confidence=confidence, guarantee=guarantee,
        output_range=output_range, gradient_bound=gradient_bound, max_samples=max_samples, draws=draws, seed=seed,
        batch_size=batch_size,
    )  # fmt: skip
    problem = prepare(
        model, X, sigma=sigma, background=background, scale=scale, fixed=fixed, output=output, switches=switches,
        one_hot=one_hot,
    )  # fmt: skip
    is_drawn = n_samples is not None or design != "auto"
    route = resolve(problem, options, is_drawn=is_drawn, method=method, design=design)
    every = every_output(route.outputs, len(problem.rows))
    warn_against_data(problem)
    found = run(route, every, options.confidence, progress)
    found = add_switches(route, every, found, options, progress, is_asked_for=switches is not True)
    explanations = dict(zip(every.names, found, strict=True))
    if n_samples is None:
        warn_not_converged(explanations)
    return explanations


def warn_not_converged(explanations: Mapping[str, Explanation]) -> None:
    """Say loudly which rows did not reach their tolerance, and how far they came."""
    for name, e in explanations.items():
        late = np.flatnonzero(~e.converged)
        if not len(late):
            continue
        shown = ", ".join(f"{row} (radius {e.radius[row]:.2g})" for row in late[:5])
        more = f" and {len(late) - 5} more" if len(late) > 5 else ""
        tolerance = f" of {e.provenance.tolerance}" if e.provenance.tolerance else ""
        msg = (
            f"{len(late)} of {len(e)} rows did not reach the tolerance{tolerance} for {name!r} within"
            f" {int(e.n_samples[late].max()):,} draws: row {shown}{more}."
            " Their error bars hold all the same. Raise max_samples, rtol or atol"
        )
        warn(msg, NotConverged)
    for name, e in explanations.items():
        if e.switches is not None and not e.switches.converged.all():
            _warn_of_switches(name, e.switches)


def _warn_of_switches(name: str, switches: Switches) -> None:
    row, s = np.argwhere(~switches.converged)[0]
    msg = (
        f"{int((~switches.converged).sum())} switches did not reach the tolerance for {name!r} within"
        f" {int(switches.n_samples.max()):,} draws: the first is {switches.features[s]!r} to {switches.levels[s]!r} at"
        f" row {row} ({switches.effect[row, s]:.2g} ± {switches.standard_error[row, s]:.2g}). Their error bars hold all"
        " the same. Raise max_samples, rtol or atol"
    )
    warn(msg, NotConverged)

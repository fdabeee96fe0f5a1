"""The front doors `explain` and `explain_outputs`: every argument checked, every choice settled."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ._types import Array
from ._validate import check_choice, check_count, check_fraction, check_names, check_rows
from .choices import DEFAULT_DRAWS, choose_design, choose_method
from .designs import DESIGNS, Design
from .errors import InvalidArgument, LostPrecision, NoGradients, TooFewDraws
from .estimators import Estimator
from .explanation import Explanation
from .models import Differentiable, Evaluation, Model, as_model, knows_both_outputs, model_dtype, resolve_target
from .models.evaluation import automatic_batch_size
from .models.targets import every_output, output_names
from .neighbourhood import Factor, Neighbourhood
from .sampling import Job, run


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
    confidence: float = 0.95,
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
        One row (d,) or rows (r, d).
    method
        `"smoothgrad"` (gradients), `"clime"`, `"stein"`, `"differences"` (predictions only), or settings such as
        `CLime(ridge=0.1)`. `"auto"` takes gradients where the model has them, else differences.
    sigma
        Standard deviation of the neighbourhood, not a variance: a number, one per feature, or a `Neighbourhood`.
    background
        Data that gives the feature scales; sigma then counts in their standard deviations.
    target
        Output position or name; `"predicted"` for each row's own top class; `{"a": 1, "b": -1}` for a contrast.
    output
        For classifiers: explain the probability or the margin. Functions and torch modules are taken as they are.
    n_samples
        Draws per row, rounded up to whole blocks of the design.
    design
        `"iid"`, `"antithetic"`, `"orthogonal"`, `"sobol"`; `"auto"` takes what measured best at this d and n.
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
    >>> np.round(e.values, 2), np.round(e.standard_error, 4)
    (array([[ 1.96, -0.  ]]), array([[0.0016, 0.0007]]))
    """
    job = _prepare(
        model, X, method=method, sigma=sigma, background=background, output=output, n_samples=n_samples,
        confidence=confidence, design=design, draws=draws, seed=seed, batch_size=batch_size,
    )  # fmt: skip
    resolved = resolve_target(target, job.outputs, job.predictions)
    (explanation,) = run(job, resolved, progress)
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
    confidence: float = 0.95,
    design: str = "auto",
    draws: Literal["shared", "independent"] = "shared",
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    progress: Any = "auto",
) -> dict[str, Explanation]:
    """Explanations of every output of a model, by name, all from the same draws.

    Differences between outputs are then exact: `2 * each["a"] - each["b"]`. The arguments are those of `explain`.

    Examples
    --------
    >>> import numpy as np
    >>> import smoothlime as sl
    >>> both = sl.explain_outputs(lambda a: np.column_stack([a[:, 0], -a[:, 0]]), [1.0])
    >>> np.round((both["0"] + both["1"]).values, 12)
    array([[0.]])
    """
    job = _prepare(
        model, X, method=method, sigma=sigma, background=background, output=output, n_samples=n_samples,
        confidence=confidence, design=design, draws=draws, seed=seed, batch_size=batch_size,
    )  # fmt: skip
    resolved = every_output(job.outputs, len(job.rows))
    return dict(zip(resolved.names, run(job, resolved, progress), strict=True))


def _prepare(
    model: Any,
    X: Any,
    *,
    method: str | Estimator,
    sigma: Any,
    background: Any,
    output: str,
    n_samples: int | None,
    confidence: float,
    design: str,
    draws: str,
    seed: int,
    batch_size: int | str,
) -> Job:
    """Check every argument, settle every choice, and ask the model for f(x), twice."""
    rows = check_rows(X)
    adapted = as_model(model, output=output) if knows_both_outputs(model) else as_model(model)
    names = check_names(getattr(adapted, "feature_names", None), rows.shape[1])
    neighbourhood = _neighbourhood(sigma, background)
    factor = neighbourhood.factor(rows.shape[1], names)
    d = len(factor.free)
    estimator = choose_method(method, has_gradients=isinstance(adapted, Differentiable), d=d)
    if estimator.needs == "gradients" and not isinstance(adapted, Differentiable):
        msg = (
            f"{estimator.name} needs gradients; a {type(model).__name__} gives only values."
            " Use method='clime' or 'differences', or from_functions(values=..., gradients=...)"
        )
        raise NoGradients(msg)
    chosen, n = _budget(estimator, design, d, n_samples)
    check_choice(draws, "draws", ("shared", "independent"))
    dtype = model_dtype(adapted)
    size = automatic_batch_size(rows.shape[1], dtype) if batch_size == "auto" else check_count(batch_size, "batch_size")
    evaluation = Evaluation(adapted, size)
    at_rows = rows.astype(dtype)
    predictions = evaluation.values(at_rows, _row_name)
    evaluation.check_repeatable(at_rows, predictions, _row_name)
    _warn_if_blurred(rows, factor, adapted, names)
    return Job(
        rows=rows,
        predictions=predictions,
        outputs=output_names(adapted.outputs, predictions.shape[1]),
        feature_names=names,
        neighbourhood=neighbourhood,
        factor=factor,
        evaluation=evaluation,
        method=estimator,
        design=chosen,
        n=n,
        is_shared=draws == "shared",
        seed=check_count(seed, "seed", at_least=0),
        confidence=check_fraction(confidence, "confidence"),
        dtype=dtype.name,
    )


def _neighbourhood(sigma: Any, background: Any) -> Neighbourhood:
    if isinstance(sigma, Neighbourhood):
        if background is not None:
            msg = "give background or a Neighbourhood as sigma, not both; Neighbourhood.from_data(background) makes one"
            raise InvalidArgument(msg)
        return sigma
    return Neighbourhood(sigma) if background is None else Neighbourhood.from_data(background, sigma)


def _budget(method: Estimator, design: str, d: int, n_samples: int | None) -> tuple[Design, int]:
    """The design and the number of draws, in whole blocks; too few draws are an error that names the fewest."""
    asked = None if n_samples is None else check_count(n_samples, "n_samples")
    name = choose_design(design, method, d=d, n=asked or DEFAULT_DRAWS)
    chosen = DESIGNS[name]
    fewest = method.fewest(d, is_paired=chosen.is_paired)
    n = chosen.whole(asked or max(DEFAULT_DRAWS, fewest), d)
    if n < fewest:
        msg = (
            f"n_samples={asked} is too few for {method.name} with {name} draws on {d} features:"
            f" at least {chosen.whole(fewest, d)} are needed for slopes with error bars"
        )
        raise TooFewDraws(msg)
    return chosen, n


def _warn_if_blurred(rows: Array, factor: Factor, model: Model, names: tuple[str, ...]) -> None:
    """A model in few digits cannot tell x from x + step when the step is below the spacing of numbers near x."""
    epsilon = getattr(model, "epsilon", np.finfo(model_dtype(model)).eps)
    spacing = epsilon * np.abs(rows[:, factor.free]).max(axis=0)
    blurred = np.flatnonzero(spacing > 1e-3 * factor.std)
    if len(blurred):
        j = blurred[0]
        msg = (
            f"sigma is {factor.std[j]:.3g} for feature {names[factor.free[j]]!r}, but the model's numbers are"
            f" {spacing[j]:.2g} apart there: slopes lose digits. Raise sigma, centre the feature, or use float64"
        )
        warnings.warn(msg, LostPrecision, stacklevel=4)


def _row_name(position: int) -> str:
    return f"row {position}"

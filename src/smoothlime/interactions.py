"""interactions: what acts together around each row, as the Hessian of the smoothed model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ._core.forks import survives_fork
from ._core.types import Indices
from ._core.validate import check_position
from .errors import InvalidArgument, WrongType
from .estimators import Estimator
from .explain import warn_not_converged
from .models.against_data import warn_against_data
from .models.problem import Problem
from .result.interactions import Interactions
from .sampling.interactions import drawn, exact
from .sampling.options import Options
from .sampling.route import prepare


@survives_fork
def interactions(
    model: Any,
    X: Any,
    *,
    pairs: Sequence[tuple[int | str, int | str]] | None = None,
    method: str | Estimator = "auto",
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
    max_samples: int = 100_000,
    design: str = "auto",
    draws: Literal["shared", "independent"] = "shared",
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    progress: Any = "auto",
) -> Interactions:
    r"""Second slopes of a model around each row: what acts together, and what bends.

    $$ H(x) = \nabla^2 F(x) = \mathrm{Cov}(\Sigma^{-1} a, \nabla f(a)), \qquad a \sim N(x, \Sigma), \qquad
    F(x) = \mathbb{E}\,f(a) $$

    Linear models, most generalised linear ones and trees have them in closed form. All others are drawn for, together
    with slopes: from gradients at the very same draws, or by a fit of degree 2 to predictions. Arguments not listed
    here are those of `explain`.

    Parameters
    ----------
    pairs
        Pairs of features, by name or position, such as `[("age", "income")]`; the same twice is a bend. All of them by
        default. Predictions alone are asked for all pairs of up to 30 features; with more, name those that matter.
    method
        `"exact"`, `"smoothgrad"` (gradients; for models without jumps) or `"clime"` (predictions); `"auto"` takes the
        first that applies.
    n_samples
        A fixed number of draws. Without it draws are made until the error of the *slopes* is within `rtol` or `atol`;
        second slopes mostly have larger errors then, which stand beside them. Give more draws for smaller ones.
    design
        `"iid"`, `"antithetic"`, `"orthogonal"` or `"sobol"`.

    Examples
    --------
    >>> import numpy as np
    >>> import smoothlime as sl
    >>> found = sl.interactions(lambda a: a[:, 0] * a[:, 1], [1.0, 2.0], sigma=0.5)
    >>> print(np.round(np.abs(found.values[0]), 6))
    [[0. 1.]
     [1. 0.]]
    >>> [pair.features for pair in found.top(1)]
    [('x0', 'x1')]
    """
    options = Options(
        n_samples=n_samples, rtol=rtol, atol=atol, confidence=confidence, max_samples=max_samples, draws=draws,
        seed=seed, batch_size=batch_size,
    )  # fmt: skip
    problem = prepare(model, X, sigma=sigma, background=background, scale=scale, fixed=fixed, output=output)
    chosen = _pairs(pairs, problem)
    is_drawn = n_samples is not None or design != "auto"
    if method == "exact" and is_drawn:
        msg = "method='exact' draws nothing; leave n_samples and design out"
        raise InvalidArgument(msg, argument="method")
    warn_against_data(problem)
    found = None
    if method == "exact" or (method == "auto" and not is_drawn):
        found = exact(problem, chosen, target, options, progress, is_asked_for=method == "exact")
    if found is None:
        found = drawn(problem, chosen, target, options, progress, method=method, design=design)
        if n_samples is None:
            warn_not_converged({found.output_name: found.explanation})
    return found


def _pairs(pairs: Any, problem: Problem) -> Indices:
    """(p, 2) positions, the smaller first, in order; all pairs of the features that move by default."""
    free = problem.factor.free
    if pairs is None:
        i, j = np.triu_indices(len(free))
        return np.column_stack([free[i], free[j]])
    if isinstance(pairs, str | Mapping) or not hasattr(pairs, "__iter__"):
        msg = f"pairs must be a list of pairs of features, such as [(0, 1)]; got {pairs!r}"
        raise WrongType(msg, argument="pairs")
    found = sorted({_pair(each, problem) for each in pairs})
    if not found:
        msg = "pairs is empty; name a pair, such as [(0, 1)], or leave it out for all"
        raise InvalidArgument(msg, argument="pairs")
    return np.array(found, dtype=np.intp)


def _pair(given: Any, problem: Problem) -> tuple[int, int]:
    two = list(given) if isinstance(given, tuple | list | np.ndarray) else []
    if len(two) != 2:
        msg = f"pairs must hold two features each, such as (0, 1); got {given!r}"
        raise InvalidArgument(msg, argument="pairs")
    one, other = sorted(_position(each, problem) for each in two)
    return one, other


def _position(feature: Any, problem: Problem) -> int:
    names = problem.feature_names
    if isinstance(feature, str):
        if feature not in names:
            msg = f"pairs names {feature!r}, which is not a feature; the features are {', '.join(names)}"
            raise InvalidArgument(msg, argument="pairs")
        j = names.index(feature)
    else:
        j = check_position(feature, "pairs")
        if not -len(names) <= j < len(names):
            msg = f"pairs must hold names, or positions from 0 to {len(names) - 1}; got {feature!r}"
            raise InvalidArgument(msg, argument="pairs")
        j %= len(names)
    if j not in problem.factor.free:
        msg = f"pairs names feature {names[j]!r}, which is held fixed and has no slope; leave it out"
        raise InvalidArgument(msg, argument="pairs")
    return j

"""certify: how far an explanation can move when its row moves.

Three certificates, all in the Mahalanobis distance ρ between rows and, per standard normal draw, in L2 norms of
slopes; `docs/theory/robustness.md` has the proofs.

| from                  | Lipschitz constant      | at distance ρ                          | holds              |
|-----------------------|-------------------------|----------------------------------------|--------------------|
| output range B        | 4φ(1)/2·B = 0.48394·B   | D(ρ)·B, D(ρ) = 2(φ(t−h) − φ(t+h))      | always             |
| gradient bound G      | √(2/π)·G·√Σ             | 2G·(2Φ(ρ/2) − 1)·√Σ                    | without jumps      |
| residual of local fit | √(2·residual variance)  | ρ·√(2·residual variance) + 0.755·B·ρ²/2 | with a confidence  |

The first is of any function, the one that a model computes in few digits included. The second is of the function that
it would compute without rounding: what rounding adds comes on top, see `rounding.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, isfinite, pi, sqrt
from typing import Any, Literal

import numpy as np

from .._core.forks import survives_fork
from .._core.types import Array
from .._core.validate import (
    as_float_array,
    check_choice,
    check_count,
    check_fraction,
    check_number,
    check_range,
)
from ..errors import InvalidArgument, WrongType
from ..estimators.certified import standardising_factor
from ..models import Differentiable
from ..models.targets import BY_ROW, check_target, implied_range, is_by_row, stretch_of
from ..result.explanation import Explanation
from ..space.neighbourhood import Factor
from .asked_about import of_explanation, of_rows
from .declared import check_certifiable, check_has_gradients, check_outputs, check_slopes
from .distances import ENDLESS, farthest_within, gradient_distance, range_distance
from .residual import residuals
from .rounding import row_rounding, slope_rounding, spacing_of

RANGE_SLOPE = sqrt(2 / (pi * exp(1)))
"""2φ(1) = 0.48394: Lipschitz constant for outputs of range 1; attained by 1{|v·z| > 1}."""

RANGE_CURVE = 0.7550072
"""φ(0) + 4φ(√3): largest third derivative of the smoothed model for outputs of range 1, rounded up."""

GRADIENT_SLOPE = sqrt(2 / pi)
"""E|N(0, 1)|: Lipschitz constant for gradients of length at most 1; attained by |v·z|."""

GRADIENT_CURVE = 4 * exp(-0.5) / sqrt(2 * pi)
"""4φ(1): largest second derivative of the mean gradient, for gradients of length at most 1."""

LARGEST_UNIT = 1e150
"""Of raw distances: its square is a number yet."""

FARTHEST = 1e6
"""Distances beyond this are as far as any: bounds are long flat by then, but for rounding."""

HIDDEN = 1e-4
"""Rounding goes without saying where it is less than this share of what a move by one deviation may bring about."""


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """How far each row's explanation can move: ‖E(x) − E(x')‖ ≤ bound(distance between x and x')."""

    kind: str
    """What it rests on: `range`, `gradient`, or either with `residual`"""
    lipschitz: Array
    """(r,) change per unit of distance that no pair of rows exceeds, but for `noise` and `rounding`"""
    assumes: str
    confidence: float
    """1 for what is certain; less where a residual was sampled, or an explanation brought its own error"""
    guarantee: str
    """`certified`, or `approximate` where the error of an explanation is"""
    units: str
    paper_lipschitz: float | None
    """The constant G/(2σ) of the paper, which is too small by 1.6; None without a gradient bound"""
    output_width: float | None
    gradient_length: float | None
    """Bound on standardised gradients"""
    residual: Array | None
    """(r,) upper bound on the standard deviation that the best local line leaves"""
    noise: Array
    """(r,) twice the Monte Carlo radius, where an explanation was given; else 0"""
    factor: float
    """Carries a bound per draw over to standardised slopes; 1 for diagonal Σ"""
    sigma: float
    """Unit of distance and slopes in raw units; 1 in standardised ones"""
    rounding: Array
    """(r,) by how much standardised slopes of two rows may differ because the model rounds its numbers: part of what
    gradients promise, and 0 where that assumes none"""
    rounding_growth: float
    """What a unit of Mahalanobis distance adds to it"""
    row_rounding: Array
    """(r,) by how much farther apart two rows may be once they are rounded to the model's numbers, in units of ρ"""

    def bound(self, distance: Any) -> Array:
        """(r,) largest change of the explanation of each row when it moves by `distance`.

        √(sᵀΣ⁻¹s) for a step s of the features that are perturbed, or its Euclidean length in raw units.
        """
        rho = self._by_row(distance, "distance") / self.sigma
        if not (rho >= 0).all():
            msg = f"distance must be >= 0; got {distance!r}"
            raise InvalidArgument(msg)
        change = np.where(rho > 0, self._population(rho + self.row_rounding), 0.0)  # the same row rounds the same way
        return change / self.sigma + self.noise

    def radius(self, change: Any) -> Array:
        """(r,) distance that each row may move before its explanation can change by more than `change`."""
        given = self._by_row(change, "change")
        if not (given >= 0).all():
            msg = f"change must be >= 0; got {change!r}"
            raise InvalidArgument(msg)
        allowed = (given - self.noise) * self.sigma
        found = farthest_within(self._population, allowed, self.rounding_growth)
        return np.maximum(found - self.row_rounding, 0.0) * self.sigma

    def _by_row(self, given: Any, name: str) -> Array:
        if given is None:
            msg = f"{name} must be one number, or one for each of {len(self)} rows; got None"
            raise WrongType(msg)
        array = as_float_array(given, name, allow_bools=False)
        if array.shape not in ((), self.lipschitz.shape):
            msg = f"{name} must be one number, or one for each of {len(self)} rows; got shape {array.shape}"
            raise InvalidArgument(msg)
        return np.broadcast_to(array, self.lipschitz.shape)

    def __len__(self) -> int:
        """Count of rows."""
        return len(self.lipschitz)

    def __str__(self) -> str:
        """The promise in a sentence, and what it rests on."""
        worst = float(self.lipschitz.max())
        surely = "always" if self.confidence == 1 else f"with {self.confidence:.4g} confidence for each row"
        is_full = self.factor > 1  # of correlated features one may move by its own deviation, and the row by many
        unit = "unit of Mahalanobis distance" if is_full else "neighbourhood standard deviation"
        how = (
            f"per {unit} that its row moves"
            if self.units == "standardised"
            else "per unit of Euclidean distance that its row moves, in raw slopes"
        )
        extra = {"sampling error": float(self.noise.max()), "rounding": float(self.rounding.max()) / self.sigma}
        if "range" in self.kind or extra["rounding"] < HIDDEN * worst * self.sigma:
            extra["rounding"] = 0.0
        noise = "".join(f" plus {size:.3g} of {what}" for what, size in extra.items() if size)
        promise = f"An explanation changes by at most {worst:.4g} {how}{noise}"
        lines = [f"{promise} ({surely}; {self.guarantee}, from {self.kind})."]
        near = self.bound(0.1 * self.sigma)
        where = "that distance" if is_full else "a standard deviation"
        lines.append(f"At a tenth of {where}: at most {float(near.max()):.4g}.")
        lines.append(f"Assumes {self.assumes}.")
        if self.paper_lipschitz is not None and self.paper_lipschitz < worst:  # else the range promises more than it
            lines.append(f"The paper's constant, {self.paper_lipschitz:.4g}, is too small and can be exceeded.")
        return "\n".join(lines)

    def _population(self, rho: Array) -> Array:
        """Smallest of the certificates at Mahalanobis distances (r,), standardised."""
        found = np.full(rho.shape, inf)
        rounding = self.rounding + self.rounding_growth * np.minimum(rho, ENDLESS)
        rho = np.minimum(rho, FARTHEST)
        if self.output_width is not None:
            found = np.minimum(found, self.factor * self.output_width * range_distance(rho))
        if self.gradient_length is not None:
            found = np.minimum(found, self.gradient_length * gradient_distance(rho) + rounding)
        if self.residual is not None:
            assert self.output_width is not None
            local = self.factor * sqrt(2) * self.residual * rho
            found = np.minimum(found, local + self.factor * RANGE_CURVE * self.output_width / 2 * rho**2)
            if self.gradient_length is not None:
                found = np.minimum(
                    found, local + GRADIENT_CURVE * self.gradient_length / 2 * rho**2 + rounding + self.rounding * rho
                )
        return found


@survives_fork
def certify(
    model: Any,
    X: Any,
    *,
    sigma: Any = None,
    background: Any = None,
    scale: Any = "linear",
    fixed: Any = (),
    output_range: tuple[float, float] | None = None,
    gradient_bound: float | None = None,
    target: Any = None,
    confidence: float = 0.95,
    n_samples: int = 0,
    units: Literal["standardised", "raw"] = "standardised",
    seed: int = 0,
) -> Certificate:
    """Bound on the change of each row's explanation when the row moves.

    With `n_samples=0` no model call is made: the range of the output or a bound on the gradient is enough. With
    draws, the residual of the local fit gives a sharper bound near each row, at a confidence.

    Parameters
    ----------
    X
        Rows, or an `Explanation`: then sigma is its own, and twice its Monte Carlo radius is added (one for each end),
        so that the bound is about numbers reported at equal error and not only about their limit. An `Explanation` does
        not record whether it is of a margin or a contrast: give output_range or gradient_bound. With n_samples the
        model and target must be those explained; predictions and names are checked.
    background, scale, fixed
        As in `explain`. Distances are measured on the scale of the steps: on other scales than linear, in logarithms
        or scores. A gradient bound is not valid there.
    output_range
        Least and largest value of what is explained; known for probabilities, if X has rows.
    gradient_bound
        Largest length of the gradient of any single output, anywhere; multiplied by Σ|weight| for a contrast. Only for
        models without jumps, except for rounding: that is added for networks and linear models whose layers are known.
        Other models that compute with fewer digits than float64 are an error.
    target
        As in `explain`; without it the bound holds for any single output. With `"predicted"` it holds for the output
        predicted at each row, held fixed while the row moves. Explanations of another class, beyond a decision
        boundary, are not covered.
    units
        `"raw"`: Euclidean distances and slopes per unit; for isotropic neighbourhoods.

    Examples
    --------
    >>> certificate = certify(None, [[0.0, 0.0]], sigma=0.5, output_range=(0, 1))
    >>> certificate.lipschitz.round(5), certificate.bound(0.1).round(5)
    (array([0.48394]), array([0.04835]))
    """
    explanation = X if isinstance(X, Explanation) else None
    described = {"background": background, "scale": scale, "fixed": fixed}
    n = check_count(n_samples, "n_samples", at_least=0)
    if explanation is not None:
        check_certifiable(explanation.method)
        asked = of_explanation(model, explanation, n, sigma, described)
    else:
        asked = of_rows(model, X, sigma, described)
    adapted, rows, factor = asked.model, asked.rows, asked.factor
    check_target(target, adapted)
    check_choice(units, "units", ("standardised", "raw"))
    asked.check(units, gradient_bound)
    unit = 1.0 if units == "standardised" else _isotropic(factor)
    known = None if output_range is None else check_range(output_range)
    if known is None and explanation is None:
        known = implied_range(adapted, target)
    if gradient_bound is not None:
        gradient_bound = check_number(gradient_bound, "gradient_bound") * stretch_of(target)
        check_has_gradients(adapted)
    length = None if gradient_bound is None else gradient_bound * float(factor.std.max())
    if known is None and length is None:
        msg = (
            "certify needs output_range=(lowest, highest) or gradient_bound: without a bound on the model there is none"
            " on its explanations. A probability has output_range=(0, 1)"
        )
        raise InvalidArgument(msg)
    level = check_fraction(confidence, "confidence")
    # on scales the model's own rounding comes after T: it is part of what is bounded
    spacing = np.finfo(np.float64).eps if asked.is_on_scales else spacing_of(adapted, explanation)
    blur = row_rounding(rows, factor, spacing)
    rounding, rounding_growth, unrounded = np.zeros(len(rows)), 0.0, ""
    if length is not None:
        rounding, rounding_growth, unrounded = slope_rounding(adapted, explanation, rows, factor, stretch_of(target))
    if explanation is not None:
        _hold_against(explanation, known, gradient_bound, rounding)
    residual = None
    if n:
        if known is None or adapted is None:
            msg = "n_samples draws the residual of the local fit, which needs the model and output_range"
            raise InvalidArgument(msg)
        residual = residuals(
            adapted, rows, factor, known, target, n, 1 - level, check_count(seed, "seed", at_least=0),
            is_implied=output_range is None, explained=explanation,
        )  # fmt: skip
    width = None if known is None else known[1] - known[0]
    convert = standardising_factor(factor)
    constants = []
    if width is not None:
        constants.append(("range", convert * RANGE_SLOPE * width))
    if length is not None:
        constants.append(("gradient", GRADIENT_SLOPE * length))
    if not all(isfinite(10 * each) for _, each in constants):
        msg = (
            "the certificate is too large for a number. Check the units of sigma, output_range and gradient_bound; got"
            f" output_range={output_range!r}, gradient_bound={gradient_bound!r} and sigma up to {factor.std.max():g}"
        )
        raise InvalidArgument(msg)
    kind, lipschitz = min(constants, key=lambda each: each[1])
    assumes = [] if known is None else [f"outputs between {known[0]:g} and {known[1]:g}"]
    assumes += [] if length is None else [f"gradients no longer than {gradient_bound:g}"]
    if length is not None or (explanation is not None and explanation.method == "smoothgrad"):
        assumes += ["no jumps", *([unrounded] if unrounded else [])]
        if explanation is not None and explanation.method == "smoothgrad":
            assumes.append("gradients that are the model's own")
    elif explanation is None and (adapted is None or isinstance(adapted, Differentiable)):
        assumes.append("no jumps where gradients are averaged")
    if len(factor.free) < factor.d:
        assumes.append("fixed features that stay as they are")
    if (np.isnan(rows[:, factor.free]) if explanation is None else explanation.missing).any():
        assumes.append("gaps that stay gaps")
    if _is_predicted(explanation, adapted, target):
        assumes.append("that the output predicted at a row is explained where the row moves, too")
    elif is_by_row(target) or (explanation is not None and BY_ROW in explanation.output_name):
        assumes.append("that the output asked for at a row is explained where the row moves, too")
    missed = 0.0 if residual is None else 1 - level
    noise, guarantee = np.zeros(len(rows)), "certified"
    if explanation is not None and not explanation.is_exact:
        noise, guarantee = 2 * explanation.radius / unit, explanation.provenance.guarantee
        missed += 2 * (1 - explanation.provenance.confidence)
    return Certificate(
        kind=kind if residual is None else f"{kind} and residual",
        lipschitz=np.full(len(rows), lipschitz / unit**2),
        assumes=", ".join(assumes),
        confidence=max(0.0, 1 - missed),
        guarantee=guarantee,
        units=units,
        paper_lipschitz=None if length is None else length / 2 / unit**2,
        output_width=width,
        gradient_length=length,
        residual=residual,
        noise=noise,
        factor=convert,
        sigma=unit,
        rounding=rounding,
        rounding_growth=rounding_growth,
        row_rounding=blur,
    )


def _is_predicted(explanation: Explanation | None, model: Any, target: Any) -> bool:
    """Whether each row's own top class is explained, which another row may not share."""
    if explanation is not None:
        is_asked_for = BY_ROW in explanation.output_name
        return not is_asked_for and any(name != explanation.output_name for name in explanation.row_outputs)
    return isinstance(target, str) and target == "predicted" and "predicted" not in getattr(model, "outputs", ())


def _hold_against(
    e: Explanation, known: tuple[float, float] | None, gradient_bound: float | None, rounding: Array
) -> None:
    """Refuse what the explanation itself speaks against, beyond twice its error and what rounding adds to one slope."""
    if known is not None:
        check_outputs(e.prediction, known, "at row {i}")
    if gradient_bound is not None:
        standardised = np.where(e.held, 0.0, e.standardised)
        shortest = np.linalg.norm(standardised, axis=1) - 2 * e.radius - rounding / 2
        check_slopes(shortest / e.factor.std.max(), gradient_bound, "around row {i}")


def _isotropic(factor: Factor) -> float:
    if not factor.is_diagonal or np.ptp(factor.lower) > 1e-12 * factor.lower.max():
        msg = "units='raw' needs the same sigma in every feature; use units='standardised'"
        raise InvalidArgument(msg)
    sigma = float(factor.lower[0])
    if not 1 / LARGEST_UNIT < sigma < LARGEST_UNIT:
        msg = (
            f"units='raw' needs a sigma between {1 / LARGEST_UNIT:g} and {LARGEST_UNIT:g}, as bounds are divided by its"
            f" square; got {sigma:g}. Use units='standardised'"
        )
        raise InvalidArgument(msg)
    return sigma

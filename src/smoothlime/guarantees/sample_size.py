"""plan: how many draws an error takes, or which error a number of draws reaches, before any is made."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, log
from typing import Any

from .._core.forks import survives_fork
from .._core.validate import check_choice, check_count, check_fraction, check_number, check_range
from ..errors import InvalidArgument
from ..uncertainty import bounds

PAPER_FAILS = {
    "smoothgrad": "its constant C is not given (taken as 1 here), and its proof loses a factor d it does not state",
    "predictions": (
        "its constant C is not given (taken as 1 here), and no C is right: a change of units changes its n, but not"
        " the problem"
    ),
}


CENTRED = ", values counted from the middle of the range, as guarantee='certified' does"
"""Without it Stein's estimate is centred on means of other draws, which the bound does not know."""

SMALLEST_EPS = 1e-8
"""Below this, plans exceed what any computer draws."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A number of draws and the L2 error, of standardised slopes, that it guarantees."""

    method: str
    n_samples: int
    eps: float
    confidence: float
    formula: str
    assumes: str
    paper_n_samples: int | None
    """What the paper's own bound asks for, its unknown constant taken as 1; None where it needs more to be known"""
    paper_note: str

    @property
    def kind(self) -> str:
        """Always `certified`: every formula here is a finite-sample bound."""
        return "certified"

    def __str__(self) -> str:
        """The promise in a sentence, what it assumes, and the paper's number beside it."""
        draws = "draw keeps" if self.n_samples == 1 else "draws keep"
        lines = [
            f"{self.n_samples:,} iid {draws} the L2 error of {self.method}, in standardised slopes, within"
            f" {self.eps:.4g} with {self.confidence:.10g} confidence ({self.kind}).",
            f"Formula: {self.formula}",
            f"Assumes {self.assumes}.",
        ]
        if self.paper_n_samples is not None:
            lines.append(f"The paper would ask for {self.paper_n_samples:,}: {self.paper_note}.")
        return "\n".join(lines)


@survives_fork
def plan(
    method: str,
    *,
    eps: float | None = None,
    n_samples: int | None = None,
    confidence: float = 0.95,
    d: int | None = None,
    sigma: float | None = None,
    output_range: tuple[float, float] | None = None,
    gradient_bound: float | None = None,
    gradient_lipschitz: float | None = None,
    x_norm: float = 1.0,
) -> Plan:
    """Number of iid draws that guarantees an error, or, given `n_samples`, the error that it guarantees.

    Errors are L2 norms of standardised slopes (slope × neighbourhood standard deviation). These are worst cases over
    all models that satisfy the assumption; `explain` usually stops after far fewer draws.

    Parameters
    ----------
    method
        `"smoothgrad"` (give gradient_bound, or gradient_lipschitz and d), `"stein"` or `"clime"` (give output_range and
        d). `explain(method="stein", guarantee="certified")` carries out the plan for Stein: it counts values from the
        middle of the range. (Without a guarantee values are centred on other draws, and the plan does not hold for few
        draws.) It uses the smaller of two bounds, each with half of δ: plan with confidence 0.975 to certify with 0.95.
    sigma
        Standard deviation of an isotropic neighbourhood; smoothgrad needs it to standardise gradients.
    gradient_bound
        Largest length of the gradient, anywhere, per unit of the features.
    gradient_lipschitz
        Largest change of the gradient per unit of distance.
    x_norm
        ‖x‖, needed only for the paper's own bound.

    Examples
    --------
    >>> plan("stein", eps=0.05, d=10, output_range=(0, 1)).n_samples
    4338
    >>> round(plan("stein", n_samples=4338, d=10, output_range=(0, 1)).eps, 4)
    0.05
    """
    if method == "jumps":
        msg = (
            "plan has no number for jumps before draws are made: their bound goes by the jumps that draws show. Certify"
            " one row, explain(..., method='jumps', guarantee='certified', n_samples=1024), and see its radius; with"
            " four times as many draws it is about half"
        )
        raise InvalidArgument(msg, argument="method")
    check_choice(method, "method", ("smoothgrad", "stein", "clime"))
    delta = 1 - check_fraction(confidence, "confidence")
    if (eps is None) == (n_samples is None):
        msg = "give either eps, the error wanted, or n_samples, to learn the error it reaches"
        raise InvalidArgument(msg, argument="eps")
    wanted = None if eps is None else _positive(eps, "eps")
    if wanted is not None and wanted < SMALLEST_EPS:
        msg = f"eps must be at least {SMALLEST_EPS:g}; got {eps!r}"
        raise InvalidArgument(msg, argument="eps")
    n = None if n_samples is None else check_count(n_samples, "n_samples")
    features = None if d is None else check_count(d, "d")
    width = None if sigma is None else _positive(sigma, "sigma")
    paper: int | None
    try:
        if method == "smoothgrad":
            samples, error, formula, assumes = _gradients(
                wanted, n, delta, features, width, gradient_bound, gradient_lipschitz
            )
            length = None if gradient_bound is None or width is None else gradient_bound * width
            paper = _proposition_1(length, error, delta, features)
        else:
            low, high = _known_range(output_range, method)
            if features is None:
                msg = f"d, the number of features, is needed to plan {method}: its error grows with it"
                raise InvalidArgument(msg, argument="d")
            samples, error, formula = _predictions(method, wanted, n, delta, features, _finite(high - low))
            assumes = (
                f"outputs between {low:g} and {high:g}, {features} perturbed features{CENTRED * (method == 'stein')}"
            )
            paper = _theorem_3(high - low, error, delta, features, width, _positive(x_norm, "x_norm"))
    except OverflowError:
        msg = (
            "the plan is too large for a number: no computer draws that many. Check the units of sigma, output_range,"
            " gradient_bound or gradient_lipschitz, and n_samples and d; or raise eps"
        )
        raise InvalidArgument(msg) from None
    if not error < float("inf"):
        msg = f"n_samples={samples} is too few to promise anything of {method} with {features} features"
        raise InvalidArgument(msg, argument="n_samples")
    note = PAPER_FAILS["smoothgrad" if method == "smoothgrad" else "predictions"]
    return Plan(method, samples, error, float(confidence), formula, assumes, paper, note)


def _gradients(
    eps: float | None,
    n: int | None,
    delta: float,
    d: int | None,
    sigma: float | None,
    bound: float | None,
    lipschitz: float | None,
) -> tuple[int, float, str, str]:
    if (bound is None) == (lipschitz is None):
        msg = (
            "plan('smoothgrad') needs one of gradient_bound, the largest length of the gradient, and"
            " gradient_lipschitz, its largest change per unit of distance. gradient_bound(model) computes the former"
        )
        raise InvalidArgument(msg, argument="gradient_bound")
    if sigma is None:
        msg = "sigma is needed to plan smoothgrad: errors are of slopes × sigma"
        raise InvalidArgument(msg, argument="sigma")
    if bound is not None:
        length = _finite(_positive(bound, "gradient_bound") * sigma)
        samples = n if eps is None else bounds.ball_samples(length, eps, delta)
        assert samples is not None
        formula = "n = ⌈2 (sigma·gradient_bound/eps)² ln(2/delta)⌉, in any number of features"
        return (
            samples,
            bounds.ball_radius(length, samples, delta) if eps is None else eps,
            formula,
            f"gradients no longer than {bound:g}, a model without jumps or rounding, sigma = {sigma:g}",
        )
    if d is None:
        msg = "d, the number of features, is needed to plan smoothgrad from gradient_lipschitz"
        raise InvalidArgument(msg, argument="d")
    assert lipschitz is not None
    steepness = _finite(_positive(lipschitz, "gradient_lipschitz") * sigma**2)
    samples = n if eps is None else bounds.lipschitz_samples(steepness, d, eps, delta)
    assert samples is not None
    return (
        samples,
        bounds.lipschitz_radius(steepness, d, samples, delta) if eps is None else eps,
        "n = ⌈(sigma²·gradient_lipschitz/eps)² (√d + √(2 ln(1/delta)))²⌉",
        f"a gradient that changes by at most {lipschitz:g} per unit of distance, {d} features, sigma = {sigma:g}",
    )


def _predictions(
    method: str, eps: float | None, n: int | None, delta: float, d: int, width: float
) -> tuple[int, float, str]:
    stein = method == "stein"
    radius = bounds.stein_radius if stein else bounds.least_squares_radius
    samples_for = bounds.stein_samples if stein else bounds.least_squares_samples
    formula = (
        f"n = ⌈{bounds.KAPPA:g} (range/(2 eps))² (d + 2√(d t) + 2t)⌉, t = ln(1/delta)"
        if stein
        else "least squares before any draw, by bisection of docs/theory/bounds.md; method='stein' plans far less"
    )
    if n is not None:
        return n, radius(width, d, n, delta), formula
    assert eps is not None
    return samples_for(width, d, eps, delta), eps, formula


def _proposition_1(length: float | None, eps: float, delta: float, d: int | None) -> int | None:
    """The paper's C (G/ε)² ln(d/δ) with C = 1."""
    if length is None or d is None or eps == 0:
        return None
    return _whole((length / eps) * (length / eps) * log(d / delta))


def _theorem_3(width: float, eps: float, delta: float, d: int, sigma: float | None, x_norm: float) -> int | None:
    """The paper's C d ln(d/δ) / min(εσ², εσ³/‖x‖, ‖x‖, 1/σ²)² with C = 1, for outputs in [−1, 1]."""
    if sigma is None or eps in (0.0, float("inf")):
        return None
    raw = eps / sigma * 2 / width
    squared = sigma * sigma
    least = min(raw * squared, raw * squared * sigma / x_norm, x_norm, 1 / squared if squared else inf)
    return _whole(d * log(d / delta) / (least * least)) if least * least else None


def _whole(needed: float) -> int | None:
    """A number of draws, at least 1, where there is a number for it."""
    return max(1, ceil(needed)) if needed < inf else None


def _known_range(output_range: Any, method: str) -> tuple[float, float]:
    if output_range is None:
        msg = f"output_range, the lowest and highest output, is needed to plan {method}: (0, 1) for a probability"
        raise InvalidArgument(msg, argument="output_range")
    return check_range(output_range)


def _positive(value: Any, name: str) -> float:
    number = check_number(value, name)
    if number == 0:
        msg = f"{name} must be > 0; got {value!r}"
        raise InvalidArgument(msg, argument=name)
    return number


def _finite(product: float) -> float:
    """Products of floats overflow without a word, unlike powers."""
    if product == inf:
        raise OverflowError
    return product

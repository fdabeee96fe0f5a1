"""What `auto` means: the method and the design for a model, d and a budget, in one place."""

from __future__ import annotations

from collections.abc import Callable

from .._core.validate import check_choice
from ..draws.designs import DESIGNS, SOBOL_FEATURES
from ..errors import InvalidArgument, WrongType
from ..estimators import CLime, Differences, Estimator, Jumps, Lime, SmoothGrad, Stein
from ..estimators.certified import CertifiedValues, with_bound
from ..estimators.certified_jumps import CertifiedJumps
from ..estimators.hermite import MANY_DRAWS
from ..uncertainty.stopping import FIRST_LOOK

METHODS: dict[str, Callable[[], Estimator]] = {
    method.name: method for method in (SmoothGrad, CLime, Stein, Differences, Lime, Jumps)
}

BASIS_FEATURES = 1_024
"""Up to here a random orthonormal basis costs less than the model calls along it."""

WIDEST_BASIS = 4_096
"""Up to here it costs less than least squares, all that there is besides for predictions alone."""

ALIGNED_FEATURES = {"gradients": 1_024, "values": 128, "trees": 0}
"""Up to here draws are turned to where the model varies most. A pilot of values costs two points a feature or more;
jumps of trees reached the same error with as many draws in eight nets, and no pilot."""

ALIGNED_DRAWS = {"gradients": 64, "values": 256, "trees": 64}
"""From here on they are turned: with fewer, a pilot costs more than it gains."""

ALIGNED_SHARE = 12
"""And from as many for each feature, where a pilot asks for values: with fewer, differences reached the same error on
30 features for less."""

UNPAIRED_FEATURES = 16
"""Up to here curves are fitted to points of one net, of which curves of even degree take up most of what is even in a
model; with more features they do not, and pairs z, −z do."""

NET_FEATURES = {"gradients": 10, "values": 16, "trees": 64}
"""Where draws are not turned, eight scrambled nets are taken up to here, and pairs in orthonormal bases beyond: with
more features nets gain less, and pairs have 32 groups behind their radius (`benchmarks/bench_designs.py`)."""


def choose_method(
    method: str | Estimator,
    *,
    has_gradients: bool,
    d: int,
    n: int | None = None,
    most: int | None = None,
    design: str = "auto",
    may_rotate: bool = True,
) -> Estimator:
    """The estimator asked for; `auto` takes gradients where there are any, else what n draws are best used for."""
    if not isinstance(method, str):
        if not isinstance(method, Estimator):
            msg = f"method must be one of {_listed()}, or settings such as CLime(ridge=0.1); got {method!r}"
            raise WrongType(msg, argument="method")
        return method
    if method == "auto":
        can_rotate = may_rotate and design in ("auto", "aligned", "aligned-pairs")
        if has_gradients:
            with_values = SmoothGrad(control="values")
            return with_values if can_rotate and _can_align(with_values, d, n, most) else SmoothGrad()
        with_curves = CLime(curves=True)
        if can_rotate and _can_align(with_curves, d, n, most):
            return with_curves
        if design != "auto":
            return CLime()
        return Differences() if d <= WIDEST_BASIS else CLime()
    if method == "exact":
        msg = "method='exact' draws nothing, and this needs draws; choose from " + ", ".join(map(repr, METHODS))
        raise InvalidArgument(msg, argument="method")
    if method not in METHODS:
        msg = f"method must be one of {_listed()}; got {method!r}"
        raise InvalidArgument(msg, argument="method")
    return METHODS[method]()


def choose_for_trees(chosen: Estimator, design: str) -> Estimator | None:
    """What `auto` takes in the place of what it chose, where the model turns out to be made of trees."""
    if isinstance(chosen, CertifiedValues):
        return CertifiedJumps(chosen.low, chosen.high)
    return Jumps() if design in ("auto", *Jumps.designs) and not chosen.assumes else None


def certify_method(
    method: str | Estimator,
    *,
    has_gradients: bool,
    output_range: tuple[float, float] | None,
    gradient_bound: float | None,
) -> Estimator:
    """The estimator asked for, with finite-sample bounds; `auto` takes what is known of the model."""
    if method == "auto":
        method = SmoothGrad() if has_gradients and gradient_bound is not None else CLime()
    chosen = choose_method(method, has_gradients=has_gradients, d=1)
    return with_bound(chosen, output_range=output_range, gradient_bound=gradient_bound)


def choose_design(design: str, method: Estimator, *, d: int, n: int, may_rotate: bool = True) -> str:
    """The design asked for, if the method can use it; `auto` takes what measured best at this d and n.

    `may_rotate=False` leaves out draws that are turned to the model, where answers must stand on the same draws.
    """
    if design != "auto":
        if method.assumes and design != "iid":
            msg = f"guarantee='certified' needs iid draws, its bounds know no other; got design={design!r}"
            raise InvalidArgument(msg)
        if design not in DESIGNS:
            check_choice(design, "design", ("auto", *(name for name in DESIGNS if name != "differences")))
        if design not in method.designs:
            usable = ", ".join(repr(each) for each in method.designs if each != "differences") or "only its own"
            msg = f"method {method.name!r} cannot use design {design!r}; it can use {usable}"
            msg += "; leave design out" if len(method.designs) == 1 else ""
            raise InvalidArgument(msg, argument="design")
        method.check_design(DESIGNS[design])
        return design
    if len(method.designs) == 1:
        return method.designs[0]
    if method.rotation == "required":
        return "aligned-pairs" if method.needs == "values" and d > UNPAIRED_FEATURES else "aligned"
    small = "orthogonal" if "orthogonal" in method.designs and d <= BASIS_FEATURES else "antithetic"
    is_plain_fit = method.needs == "values"
    if may_rotate and not (is_plain_fit and n < 2_048) and _can_align(method, d, n):
        return "aligned"
    if d > SOBOL_FEATURES or n < 256:
        return small
    if d < 3 or d > NET_FEATURES[method.needs]:
        # eight nets in one or two dimensions show too little of the tails: where f grows like exp(s), 95% radii
        # of sobol held 87%, those of pairs 95%
        return small
    if method.is_regression and n < 2_048:
        return small
    return "sobol"


def _can_align(method: Estimator, d: int, n: int | None, most: int | None = None) -> bool:
    """Whether n draws, or as many as it takes up to `most`, are enough for a pilot to be worth its price."""
    is_possible = "aligned" in method.designs and method.rotation != "never"
    if not is_possible or d > ALIGNED_FEATURES[method.needs]:
        return False
    fewest = method.fewest(d, is_paired=False)
    if method.needs == "values" and method.rotation == "required" and d > UNPAIRED_FEATURES:
        fewest = MANY_DRAWS  # before curves are fitted to them, pairs are no better than those of differences
    if n is None:
        return most is None or most >= max(FIRST_LOOK, fewest)
    share = ALIGNED_SHARE * (d + 1) if method.needs == "values" else 0
    return n >= max(ALIGNED_DRAWS[method.needs], share, fewest)


def _listed() -> str:
    return ", ".join(repr(name) for name in ("auto", "exact", *METHODS))

"""What `auto` means: the method and the design for a model, d and a budget, in one place."""

from __future__ import annotations

from .designs import SOBOL_FEATURES
from .errors import InvalidArgument, WrongType
from .estimators import CLime, Differences, Estimator, SmoothGrad, Stein

METHODS: dict[str, type[Estimator]] = {method.name: method for method in (SmoothGrad, CLime, Stein, Differences)}

DEFAULT_DRAWS = 1_024

BASIS_FEATURES = 1_024
"""Up to here a random orthonormal basis costs less than the model calls along it."""


def choose_method(method: str | Estimator, *, has_gradients: bool, d: int) -> Estimator:
    """The estimator asked for; `auto` takes gradients where there are any, else differences."""
    if not isinstance(method, str):
        if getattr(method, "name", None) not in METHODS or isinstance(method, type):
            msg = f"method must be one of {_listed()}, or settings such as CLime(ridge=0.1); got {method!r}"
            raise WrongType(msg)
        return method
    if method == "auto":
        if has_gradients:
            return SmoothGrad()
        return Differences() if d <= BASIS_FEATURES else CLime()
    if method not in METHODS:
        msg = f"method must be one of {_listed()}; got {method!r}"
        raise InvalidArgument(msg)
    return METHODS[method]()


def choose_design(design: str, method: Estimator, *, d: int, n: int) -> str:
    """The design asked for, if the method can use it; `auto` takes what measured best at this d and n."""
    if design != "auto":
        if design not in method.designs:
            usable = ", ".join(repr(each) for each in method.designs if each != "differences") or "only its own"
            msg = f"method {method.name!r} cannot use design {design!r}; it can use {usable}"
            msg += "; leave design out" if method.name == "differences" else ""
            raise InvalidArgument(msg)
        return design
    if len(method.designs) == 1:
        return method.designs[0]
    small = "orthogonal" if "orthogonal" in method.designs and d <= BASIS_FEATURES else "antithetic"
    if d > SOBOL_FEATURES or n < 256:
        return small
    if method.needs == "values" and not 3 <= d <= 16:
        # below, eight nets show too little of the tails for honest errors; above, nets gain nothing
        return small
    if method.name == "clime" and n < 2_048:
        return small
    return "sobol"


def _listed() -> str:
    return ", ".join(repr(name) for name in ("auto", *METHODS))

r"""Second slopes beside slopes, from the same draws: the Hessian of the smoothed model.

$$ H(x) = \nabla^2 F(x) = \mathrm{Cov}(\Sigma^{-1} a, \nabla f(a)) $$

From gradients it is their regression on the draws. From values it is the part of degree 2 of a least-squares fit, on
z_i·z_j, whose coefficient is h_ij = (LᵀHL)_ij, and (z_i² − 1)/√2, whose coefficient is h_ii/√2. Never the mean of
second derivatives, which are 0 for networks of ReLUs and for trees. Sums of all groups are there while a panel of rows
is drawn for; what is kept of them are second slopes and their errors.
"""

from __future__ import annotations

from .._core.types import Indices
from ..errors import InvalidArgument
from ..space.neighbourhood import Factor
from .clime import CLime
from .protocol import Estimator
from .second_gradients import SmoothGradTwice
from .second_values import CLimeTwice
from .smoothgrad import SmoothGrad

WIDEST = 30
"""Features of which values alone are asked for all pairs: 496 unknowns, and four draws for each."""


def with_second_slopes(method: Estimator, pairs: Indices, factor: Factor) -> Estimator:
    """The same method, which finds second slopes of pairs of features (p, 2), too."""
    if method == SmoothGrad():
        return SmoothGradTwice(pairs)
    if method != CLime():
        msg = f"second slopes come with method='exact', 'smoothgrad' or 'clime', without settings; got {method!r}"
        raise InvalidArgument(msg, argument="method")
    f = len(factor.free)
    if f > WIDEST and (len(pairs) == f * (f + 1) // 2 or not factor.is_diagonal):
        msg = (
            f"second slopes of all pairs of {f} features are too many to fit to predictions (up to {WIDEST} features"
            " are possible). Name the pairs that matter: pairs=[(0, 1), ...]"
        )
        if not factor.is_diagonal:
            msg += ", in a neighbourhood without covariance"
        raise InvalidArgument(msg, argument="pairs")
    return CLimeTwice(pairs, not factor.is_diagonal)

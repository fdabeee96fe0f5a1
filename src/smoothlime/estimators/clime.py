"""C-LIME: least squares with intercept on Gaussian perturbations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from .._core.types import Array
from .._core.validate import check_number
from ..errors import InvalidArgument
from ..space.neighbourhood import Factor
from .least_squares import Sums, estimate, fit_all, over_neighbourhood, ridge_fit
from .protocol import Batch, Estimate, GroupedDraws, Rows


@dataclass(frozen=True, slots=True)
class CLime:
    r"""Least-squares slope with intercept on draws from the neighbourhood.

    $$ (\hat\Sigma + \lambda I)^{-1}\,\widehat{\mathrm{Cov}}(a, f(a)) $$

    Needs predictions only, and is right for discontinuous models too. Of aligned draws a third are made longer
    than those from the neighbourhood, and all are weighed in turn: the same limit, and mostly less noise.

    Parameters
    ----------
    ridge
        λ in units of Σ, per draw: the limit is (Σ + λI)⁻¹ Cov(a, f(a)) whatever the number of draws. A solver
        that penalises the sum of squares, such as scikit-learn's Ridge, takes alpha = n·λ.
    curves
        Fit curves along the leading directions of aligned draws besides the line: of degree 2, and from 1,024 draws on
        of higher degrees (with up to seven features only where groups of draws agree better with them); of odd degrees
        alone, from 1,024 draws on, where draws come in pairs. They are uncorrelated with every line over the
        neighbourhood, so that the slope has the same limit, and less noise where the model is curved.
    """

    name: ClassVar[str] = "clime"
    needs: ClassVar[Literal["values", "gradients"]] = "values"
    designs: ClassVar[tuple[str, ...]] = ("iid", "antithetic", "orthogonal", "sobol", "aligned", "aligned-pairs")

    ridge: float = 0.0
    curves: bool = False

    def __post_init__(self) -> None:
        """Refuse a penalty that is not one."""
        if not isinstance(self.curves, bool):
            msg = f"curves must be True or False; got {self.curves!r}"
            raise InvalidArgument(msg)
        if check_number(self.ridge, "ridge") and self.curves:
            msg = f"curves are fitted without a penalty; got ridge={self.ridge!r}. Leave one of the two out"
            raise InvalidArgument(msg)

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """Twice the unknowns; the two halves of a pair tell a slope only one thing."""
        return (4 if is_paired else 2) * (d + 1)

    def start(self, rows: int, groups: int, factor: Factor, *, is_shared: bool) -> Sums:
        """Empty sums."""
        return Sums(rows, groups, len(factor.free), is_shared=is_shared)

    def update(self, state: Sums, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the products of draws and values."""
        weights = batch.draws.weights
        state.add_values(rows, groups, batch, weights)
        if not batch.draws.is_shared:
            state.add_draws(rows, groups, batch.draws, weights)

    def update_shared(self, state: Sums, groups: slice, draws: GroupedDraws) -> None:
        """Add the products of draws among themselves."""
        state.add_draws(slice(None), groups, draws, draws.weights)

    def finish(self, state: Sums, sizes: Array, factor: Factor) -> Estimate:
        """Slopes of all draws, and of all but each group."""
        fitted = fit_all(state, sizes, factor, ridge_fit(factor, self.ridge, sizes.sum()))
        if state.weights is not None:  # aligned draws, in units of which the fit is made
            return over_neighbourhood(state, sizes, fitted)
        return estimate(state, sizes, factor, fitted)

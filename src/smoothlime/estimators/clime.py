"""C-LIME: least squares with intercept on Gaussian perturbations."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .._core.types import Array, Flags, Indices
from .._core.validate import check_number
from ..draws.designs import Design
from ..draws.long_draws import SHARE
from ..draws.sobol import EVEN_TOGETHER
from ..errors import InvalidArgument
from ..space.neighbourhood import Factor
from ..uncertainty.jackknife import standard_error
from .hermite import HermiteBasis
from .least_squares import PilotResiduals, Sums, estimate, fit_all, over_neighbourhood, ridge_fit
from .protocol import Batch, Drawn, Estimate, Estimator, GroupedDraws, Rows, Setup


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    sums: Sums
    basis: HermiteBasis | None
    """Curves that are fitted besides the line, to aligned draws"""

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.sums.keep(rows)

    def merge(self) -> None:
        """Make one group of each two."""
        self.sums.merge()

    def seen(self, draws: GroupedDraws) -> GroupedDraws:
        """Draws with all terms that are fitted to them."""
        return draws if self.basis is None else draws.extended(self.basis.extend)

    def curved(self, drawn: Drawn) -> Estimate:
        """The fit to aligned draws, in their own units and axes: of the first terms, where draws are too few for all.

        Rows in which few draws carry what a line leaves are too few for all in any case: curves would follow them.
        And where draws lie evenly in all coordinates, rows that jump or bend sharply are better off without most of the
        curves: what groups say shows it. Each output of a row is fitted as suits it best.
        """
        d, n, basis = drawn.d, drawn.n, self.basis
        if basis is None:
            return self._fit(drawn.sizes, d)
        terms = basis.fitted(d, n)
        full, few = self._fit(drawn.sizes, terms), min(terms, basis.bent(d))
        if few == terms:
            return full
        residual_ess = self.sums.residual_ess(drawn.sizes)
        assert residual_ess is not None
        is_too_few = residual_ess < basis.fewest_effective
        is_even = d <= EVEN_TOGETHER and not basis.of_pairs
        if not (is_even or is_too_few.any()):
            return full
        plainer = self._fit(drawn.sizes, few)
        is_plain = is_too_few | (_is_surer(plainer, full, drawn.sizes, d) if is_even else False)
        return full.where(is_plain, plainer, d)

    def _fit(self, sizes: Array, terms: int) -> Estimate:
        sums = self.sums.leading(terms)
        plain = Factor(terms, np.arange(terms), np.ones(terms))
        return over_neighbourhood(sums, sizes, fit_all(sums, sizes, plain, ridge_fit(plain, 0.0, sizes.sum())))


def _is_surer(one: Estimate, other: Estimate, sizes: Array, d: int) -> Flags:
    """(r,) where groups agree better on the first d slopes of one estimate than of another."""
    first, second = (np.square(standard_error(each.pseudo[:, :, :d], sizes)).sum(axis=1) for each in (one, other))
    return np.asarray(first < second)


@dataclass(frozen=True, slots=True)
class CLime(Estimator):
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
    is_regression: ClassVar[bool] = True

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

    @property
    def rotation(self) -> Literal["never", "allowed", "required"]:
        """A penalty is not one along rotated axes; curves follow the leading directions."""
        return "never" if self.ridge else "required" if self.curves else "allowed"

    def check_design(self, design: Design) -> None:
        """Refuse what the penalty or the curves do not go with."""
        if design.is_aligned and self.ridge:
            msg = f"design={design.name!r} fits without a penalty; leave ridge out, or use design='sobol'"
            raise InvalidArgument(msg)
        if not design.is_aligned and self.curves:
            msg = (
                f"curves follow the leading directions of aligned draws; got design={design.name!r}."
                " Use design='aligned'"
            )
            raise InvalidArgument(msg)

    def longer(self, design: Design) -> float:
        """A third of aligned ones."""
        return SHARE if design.is_aligned else 0.0

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """Twice the unknowns; the two halves of a pair tell a slope only one thing."""
        return (4 if is_paired else 2) * (d + 1)

    def numbers(self, setup: Setup) -> int:
        """Slopes of all terms, and their products where rows do not share them."""
        terms = self._terms(setup)
        return setup.groups * terms * (1 if setup.is_shared else terms + 1)

    def start(self, setup: Setup) -> _State:
        """Empty sums."""
        d, terms = setup.d, self._terms(setup)
        basis = HermiteBasis(of_pairs=setup.design.is_paired) if terms > d else None
        sums = Sums(setup.rows, setup.groups, terms, is_shared=setup.is_shared)
        if basis is not None and setup.pilot_slopes is not None and basis.fitted(d, setup.looks[-1]) > basis.bent(d):
            sums.pilot_residuals = PilotResiduals(setup.pilot_slopes, setup.groups, of_pairs=basis.of_pairs)
        return _State(sums, basis)

    def _terms(self, setup: Setup) -> int:
        """The line, and all curves where enough draws may come for any of them."""
        basis = HermiteBasis(of_pairs=setup.design.is_paired)
        return basis.count(setup.d) if self.curves and basis.fitted(setup.d, setup.looks[-1]) > setup.d else setup.d

    def update(self, state: _State, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the products of draws and values."""
        seen = dataclasses.replace(batch, draws=state.seen(batch.draws))
        state.sums.add_values(rows, groups, seen, seen.draws.weights)
        if not batch.draws.is_shared:
            state.sums.add_draws(rows, groups, seen.draws, seen.draws.weights)

    def update_shared(self, state: _State, groups: slice, draws: GroupedDraws) -> None:
        """Add the products of draws among themselves."""
        state.sums.add_draws(slice(None), groups, state.seen(draws), draws.weights)

    def finish(self, state: _State, drawn: Drawn) -> Estimate:
        """Slopes of all draws, and of all but each group."""
        if not drawn.design.is_aligned:
            fit = ridge_fit(drawn.factor, self.ridge, drawn.sizes.sum())
            return estimate(state.sums, drawn.sizes, drawn.factor, fit_all(state.sums, drawn.sizes, drawn.factor, fit))
        return drawn.to_features(state.curved(drawn))

"""C-LIME: least squares with intercept on Gaussian perturbations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .._types import Array, Indices
from ..errors import InvalidArgument, SingularFit
from ..neighbourhood import Factor
from ..uncertainty.jackknife import pseudo_values
from .base import Batch, Estimate, GroupedDraws, Rows, ValueSums, leave_one_out


class _State:
    def __init__(self, rows: int, groups: int, d: int, *, is_shared: bool) -> None:
        copies = 1 if is_shared else rows
        self.values = ValueSums(rows, groups)
        self.cross = np.zeros((rows, groups, d))
        self.total = np.zeros((copies, groups, d))
        self.gram = np.zeros((copies, groups, d, d))
        self.is_shared = is_shared

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self.values.keep(rows)
        self.cross = self.cross[rows]
        if not self.is_shared:
            self.total, self.gram = self.total[rows], self.gram[rows]


@dataclass(frozen=True, slots=True)
class CLime:
    r"""Least-squares slope with intercept on draws from the neighbourhood.

    $$ (\hat\Sigma + \lambda I)^{-1}\,\widehat{\mathrm{Cov}}(a, f(a)) $$

    Needs predictions only, and is right for discontinuous models too.

    Parameters
    ----------
    ridge
        λ in units of Σ, per draw: the limit is (Σ + λI)⁻¹ Cov(a, f(a)) whatever the number of draws. A solver
        that penalises the sum of squares, such as scikit-learn's Ridge, takes alpha = n·λ.
    """

    name: ClassVar[str] = "clime"
    needs: ClassVar[Literal["values", "gradients"]] = "values"
    designs: ClassVar[tuple[str, ...]] = ("iid", "antithetic", "orthogonal", "sobol")

    ridge: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a penalty that is not one."""
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            msg = f"ridge must be finite and >= 0; got {self.ridge!r}"
            raise InvalidArgument(msg)

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """Twice the unknowns; the two halves of a pair tell a slope only one thing."""
        return (4 if is_paired else 2) * (d + 1)

    def start(self, rows: int, groups: int, factor: Factor, *, is_shared: bool) -> _State:
        """Empty sums."""
        return _State(rows, groups, len(factor.free), is_shared=is_shared)

    def update(self, state: _State, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the products of draws and values."""
        centred = state.values.add(rows, groups, batch.values)
        state.cross[rows, groups] += batch.draws.times(centred)
        if not batch.draws.is_shared:
            state.total[rows, groups] += batch.draws.total
            state.gram[rows, groups] += batch.draws.gram

    def update_shared(self, state: _State, groups: slice, draws: GroupedDraws) -> None:
        """Add the products of draws among themselves."""
        state.total[:, groups] += draws.total
        state.gram[:, groups] += draws.gram

    def finish(self, state: _State, sizes: Array, factor: Factor) -> Estimate:
        """Slopes of all draws, and of all but each group."""
        n = sizes.sum()
        penalty = self._penalty(factor)
        sums = [each[:, : len(sizes)] for each in (state.gram, state.total, state.cross, state.values.first)]
        spread, with_values = _covariances(np.array([n]), *(each.sum(axis=1, keepdims=True) for each in sums))
        fit = _solve(spread + penalty, with_values, n)[:, 0]
        spread_without, with_values_without = _covariances(n - sizes, *(leave_one_out(each) for each in sums))
        fit_without = _solve(spread_without + penalty, with_values_without, n)
        variance = state.values.variance(sizes)
        explained = 2 * (fit * with_values[:, 0]).sum(axis=1) - np.einsum(
            "...i,...ij,...j->...", fit, spread[:, 0], fit
        )
        residual = np.maximum(variance * (n - 1) / n - explained, 0.0)
        slopes = factor.unwhiten(fit)
        return Estimate(
            values=slopes,
            pseudo=pseudo_values(slopes, factor.unwhiten(fit_without), sizes),
            resolution=np.sqrt(residual)[:, None] * factor.unwhitened_scale / n,
            smoothed=state.values.mean(sizes),
            # what the line explains of the population and what it leaves: exact for linear models at any n
            variance=(fit**2).sum(axis=1) + residual * n / (n - 1 - len(factor.free)),
            spread=np.sqrt(variance),
        )

    def _penalty(self, factor: Factor) -> Array:
        """λ(LᵀL)⁻¹: in units of draws, where w = L⁻ᵀv, the penalty λ‖w‖² reads vᵀ λ L⁻¹L⁻ᵀ v."""
        inverse = np.diag(factor.inverse) if factor.is_diagonal else factor.inverse
        return self.ridge * inverse @ inverse.T


def _covariances(n: Array, gram: Array, total: Array, cross: Array, first: Array) -> tuple[Array, Array]:
    """Cov z (ρ, g, d, d) and Cov(z, f) (r, g, d) from sums over n (g,) draws."""
    count = n[:, None]
    mean = total / count
    spread = gram / count[:, :, None] - mean[..., :, None] * mean[..., None, :]
    return spread, cross / count - mean * (first[..., None] / count)


def _solve(spread: Array, with_values: Array, n: float) -> Array:
    """Slopes (r, g, d) with spread · slope = with_values; one factorisation where rows share their draws."""
    try:
        pivots = np.diagonal(np.linalg.cholesky(spread), axis1=-2, axis2=-1)
        is_singular = bool((pivots.min(axis=-1) < 1e-5 * pivots.max(axis=-1)).any())
    except np.linalg.LinAlgError:
        is_singular = True
    if is_singular:
        msg = (
            f"the local fit is singular: {int(n)} draws do not span {spread.shape[-1]} features."
            " Raise n_samples, or use method='differences'"
        )
        raise SingularFit(msg)
    if len(spread) == 1:
        return np.linalg.solve(spread[0], with_values.transpose(1, 2, 0)).transpose(2, 0, 1)
    return np.asarray(np.linalg.solve(spread, with_values[..., None])[..., 0], dtype=np.float64)

r"""Control variates for `differences`: functions of the draws whose smoothed slope is known to be zero.

Let a pair have draw z, half difference y of the model and half differences h of such functions, and weight ω = d/‖z‖²,
so that slopes are means of ω z y. A mean of ω z (y − c·h) has the same expectation for every c that does not depend on
the pair. So c is fitted for each group of draws on all the *other* groups: over whole bases Σ ω z zᵀ = m I, and the
least-squares fit of y by z and h together is

$$ c = \Bigl(\sum \omega\,h h^\top - \tfrac1m S_h S_h^\top + \lambda I\Bigr)^{-1}
   \Bigl(\sum \omega\,h y - \tfrac1m S_h S_y\Bigr), \qquad S_h = \sum \omega\,h z^\top, \quad S_y = \sum \omega\,z y, $$

which minimises the variance of the slopes in units of draws, all features together. Sums per group are enough for it.
Where groups hold whole bases they are independent, and the adjusted slope is unbiased; where they hold pairs it is
nearly so.

Three things keep it honest, each found necessary on real models:

- λ: a control that hardly moved over the draws would get a huge coefficient, and with it all that it does where
  nothing was drawn. No coefficient can sensibly exceed the steepest the model can be in the control, so that is its
  prior standard deviation, and λ the ridge which follows from it.
- Controls are kept for a row only where they leave clearly less unexplained, each group judged by the coefficients of
  the others. The choice is made on the same draws, but where it is a close one both answers are nearly the same.
- Part of what controls take out stays in the error: a tenth, or as much as makes up for one pair that was never drawn
  and changes the output by all it can. Else a row whose draws happen to miss a rare jump would be too sure of itself.
"""

from __future__ import annotations

import numpy as np

from .._core.types import Array, Flags, Indices
from .protocol import GroupedDraws, Rows, leave_one_out

WORTH = 0.9
"""Share of the unexplained variance that may be left for controls to be kept."""

PAIRS_PER_CONTROL = 16
"""Pairs beyond the d that slopes use up, for each coefficient to be fitted."""

LEFT_IN = 0.1
"""Least share of what controls take out, as a standard deviation, that stays in the error."""


class ControlSums:
    """Sums of controls and of their products with the model, per row and group."""

    def __init__(self, rows: int, controls: int, groups: int, d: int) -> None:
        self.slopes = np.zeros((rows, groups, controls, d))  # Σ ω h zᵀ
        self.with_values = np.zeros((rows, groups, controls))  # Σ ω h y
        self.products = np.zeros((rows, groups, controls, controls))  # Σ ω h hᵀ
        self.squares = np.zeros((rows, groups))  # Σ ω y²
        self.max_abs_change = np.zeros(rows)

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        for name in ("slopes", "with_values", "products", "squares", "max_abs_change"):
            setattr(self, name, getattr(self, name)[rows])

    def add(
        self, rows: Rows, groups: slice, draws: GroupedDraws, values: Array, controls: Array, max_abs_change: Array
    ) -> None:
        """Add half differences of the model (r, g, p), none above `reach` (r,), and of the controls (r, c, g, p)."""
        weights = draws.pair_weights
        weighted = controls * weights[:, None]
        r, c, g, p = controls.shape
        _, along = draws.pairs
        if draws.is_shared:
            slopes = along.times(controls.reshape(r * c, g, p)).reshape(r, c, g, -1).swapaxes(1, 2)
        else:
            slopes = np.einsum("rcgp,rgpd->rgcd", controls, along.z)
        self.slopes[rows, groups] += slopes
        self.with_values[rows, groups] += np.einsum("rcgp,rgp->rgc", weighted, values)
        self.products[rows, groups] += np.einsum("rcgp,rkgp->rgck", weighted, controls)
        self.squares[rows, groups] += np.einsum("rgp,rgp->rg", weights * values, values)
        self.max_abs_change[rows] = max_abs_change

    def explained(self, slopes: Array, pairs: Array) -> Array:
        """What controls explain of Σ ω z y (r, g, d) in groups of so many pairs (g,); 0 where they are not worth it."""
        g, m = len(pairs), pairs.sum()
        if g < 3 or m - slopes.shape[2] < PAIRS_PER_CONTROL * self.slopes.shape[2]:
            return np.zeros_like(slopes)
        coefficients = self._coefficients(slopes, m)
        found = np.einsum("rgc,rgcd->rgd", coefficients, self.slopes[:, :g])
        return found * self._are_worth_it(slopes, slopes - found, coefficients, m)[:, None, None]

    def left_in(self, error: Array, m: float) -> Array:
        """(r,) share of what was explained that stays in the error, given the L2 error (r,) without controls."""
        unseen = self.max_abs_change / m  # a mean over m pairs, one of which was never drawn
        return np.clip(np.divide(unseen, error, out=np.ones_like(error), where=error > 0), LEFT_IN, 1.0)

    def _coefficients(self, slopes: Array, m: float) -> Array:
        """The fit (r, g, c) without each group."""
        g, c = slopes.shape[1], self.slopes.shape[2]
        controls, values = leave_one_out(self.slopes[:, :g]), leave_one_out(slopes)
        left = leave_one_out(self.products[:, :g]) - controls @ controls.swapaxes(2, 3) / m
        right = leave_one_out(self.with_values[:, :g]) - np.einsum("rgcd,rgd->rgc", controls, values) / m
        noise = np.maximum(leave_one_out(self.squares[:, :g]) - (values**2).sum(axis=2) / m, 0.0) / m
        ridge = np.divide(noise, (self.max_abs_change[:, None] / 2) ** 2, out=np.zeros_like(noise), where=noise > 0)
        is_still = ridge == 0  # nothing to explain: any matrix will do, as long as it can be solved
        left += (ridge + is_still)[:, :, None, None] * np.eye(c)
        return np.asarray(np.linalg.solve(left, right[..., None])[..., 0])

    def _are_worth_it(self, slopes: Array, adjusted: Array, coefficients: Array, m: float) -> Flags:
        """(r,) whether controls leave clearly less of the half differences unexplained."""
        g = slopes.shape[1]
        whole = self.squares[:, :g].sum(axis=1)
        taken = 2 * np.einsum("rgc,rgc->r", coefficients, self.with_values[:, :g])
        taken -= np.einsum("rgc,rgck,rgk->r", coefficients, self.products[:, :g], coefficients)
        before = whole - (slopes.sum(axis=1) ** 2).sum(axis=1) / m
        after = whole - taken - (adjusted.sum(axis=1) ** 2).sum(axis=1) / m
        return np.asarray(after < WORTH * before)

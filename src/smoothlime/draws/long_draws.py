"""Longer draws, for slopes from predictions: they lie where slopes are learnt from, and weights make up for it.

A value close to x tells a slope next to nothing, and one far away much: in the mean of z·f(x + Lz) it counts by its
length. So draws keep their directions, and a share s of the lengths is of χ with d + 2 degrees of freedom, which has
‖z‖²/d times the density of χ_d. All together then have 1 − s + s‖z‖²/d times the density of normal draws, and with one
over that as weights, means over them are means over the neighbourhood, whatever is averaged. What a fit leaves
unexplained of a model, r, enters the variance of slopes as E[zzᵀr²/(1 − s + s‖z‖²/d)] in place of E[zzᵀr²]: less where
r grows with ‖z‖.

The other way round, a model that varies close to x alone, and is flat beyond, is seen more rarely. No weight exceeds
1/(1 − s), which bounds what is lost: at worst independent draws are worth 1 − s times as many.
"""

from __future__ import annotations

import numpy as np

from .._core.types import Array

SHARE = 1 / 3
"""Of lengths that are longer ones. With all of them weights would have no bound, and what lies close to x could go
unseen by thousands of draws."""

STEPS = 16
"""In which the share grows from 0 to what it is."""


def long_draws(z: Array, share: float = SHARE) -> tuple[Array, Array]:
    """Normal draws (..., d) of which a share is made longer, and their weights (...), of mean 1.

    Each length goes to the quantile that it was among those of normal draws: draws that fill space evenly still do.
    """
    relative = np.einsum("...d,...d->...", z, z) / z.shape[-1]
    longer = _same_quantile(relative, share, z.shape[-1])
    return z * np.sqrt(longer / relative)[..., None], 1 / (1 - share + share * longer)


def _same_quantile(relative: Array, share: float, d: int) -> Array:
    """‖z‖²/d of the lengths whose quantile is that of `relative` among normal ones.

    As the share s grows from 0, the mass that moves out beyond t = ‖z‖²/d is t/(d/2) times the density of normal draws
    there, and so a quantile t goes outwards by dt/ds = t / (d/2·(1 − s + s·t)): this is followed by the classical rule
    of Runge and Kutta. With one feature tails are met within 10⁻⁵ of themselves down to 10⁻³, and 10⁻⁴ down to 10⁻⁶;
    with more features closer.
    """
    step, t = share / STEPS, relative
    for at in np.arange(STEPS) * step:
        first = _outwards(at, t, d)
        second = _outwards(at + step / 2, t + step / 2 * first, d)
        third = _outwards(at + step / 2, t + step / 2 * second, d)
        fourth = _outwards(at + step, t + step * third, d)
        t = t + step / 6 * (first + 2 * (second + third) + fourth)
    return t


def _outwards(share: float, t: Array, d: int) -> Array:
    return t / (d / 2 * (1 - share) + d / 2 * share * t)

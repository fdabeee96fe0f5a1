"""Longer draws, for slopes from predictions: they lie where slopes are learnt from, and weights make up for it.

A value close to x tells a slope next to nothing, and one far away much: in the mean of z·f(x + Lz) it counts by its
length. So draws keep their directions and get lengths by χ of d + 2 degrees of freedom, whose density is r²/d times
that of χ_d, in place of d. With weights d/‖z‖² means over them are means over the neighbourhood, whatever is averaged,
and every draw then tells a slope about as much. What a fit leaves unexplained of a model, r, enters the variance of
slopes as d·E[uuᵀr²], u = z/‖z‖, in place of E[zzᵀr²]: less by (d + 2k)/d where r grows like ‖z‖ᵏ.

The other way round, a model that varies close to x alone, and is flat beyond, is seen more rarely. So it is done for
pairs of many features, of which few normal draws lie close to x either, and for many draws.
"""

from __future__ import annotations

import numpy as np

from ._types import Array

FEWEST_FEATURES = 8
"""With fewer, much of the neighbourhood lies close to x, and longer draws would hardly see it: a box of three features
that normal draws find once in 250 times was missed by all of 4,096, and 0 ± 0 called certain."""


def lengthened(z: Array) -> tuple[Array, Array]:
    """Normal draws (..., d) made longer, and their weights (...), of mean 1.

    Each length goes to the quantile of χ_{d+2} that it is of χ_d: draws that fill space evenly still do.
    """
    from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv

    d = z.shape[-1]
    squares = np.einsum("...d,...d->...", z, z)
    longer, is_far = np.empty_like(squares), squares > d
    far, near = squares[is_far], squares[~is_far]
    # by whichever tail is the smaller: the other is 1 to the last digit far out
    longer[is_far] = 2 * gammainccinv(d / 2 + 1, gammaincc(d / 2, far / 2))
    longer[~is_far] = 2 * gammaincinv(d / 2 + 1, gammainc(d / 2, near / 2))
    return z * np.sqrt(longer / squares)[..., None], d / longer

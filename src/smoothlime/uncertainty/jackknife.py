"""One mechanism for all standard errors: the delete-one-group jackknife.

Groups of draws are independent. θ̂ is the estimate from all of them, θ̂₋g the one without group g, which
holds n_g of the n draws. The pseudo-value of a group is what it alone says,

    θ̃_g = h_g θ̂ − (h_g − 1) θ̂₋g,        h_g = n / n_g,

and for a mean it is the group's own mean. Their scatter gives the standard error; the form for unequal
groups is that of Busing, Meijer and van der Leeden (1999). Pseudo-values are linear wherever the estimator
is, so they, not standard errors, are what arithmetic on explanations combines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.types import Array
from .._core.xp import beside, library

CLEAR = 2.0
"""Standard errors, √(6/g) for g groups, beyond which the skewness of what they say of a feature is taken for real."""

BLOCK = 2**16
"""Numbers that skewness is made of together: what is made on the way stays in a processor's cache, too."""

COLUMNS = 4_096
"""Features looked at together: what is made on the way stays in a processor's cache."""


def pseudo_values(together: Array, without: Array, sizes: Array) -> Array:
    """θ̃ (r, g, d) from the estimate (r, d) and the leave-one-group-out estimates (r, g, d)."""
    share = _shares(sizes)
    return together[:, None, :] + (1 / share - 1) * (together[:, None, :] - without)


def standard_error(pseudo: Any, sizes: Array) -> Any:
    """√Var of the estimate (r, d) from its pseudo-values (r, g, d) and group sizes (g,) or (r, g).

    An array, or a tensor where pseudo-values are one. Groups of size 0 have not been drawn yet and do not count.
    """
    xp = library(pseudo)
    share = _shares(sizes)
    if xp is not np and share.size and bool((share == share.flat[0]).all()):  # one pass over a device's memory
        return xp.sqrt(xp.var(pseudo, dim=1, correction=1) / share.shape[1])
    filled = beside(pseudo, (share > 0).sum(axis=1).astype(np.float64))
    mean_of, sum_of = (beside(pseudo, each.swapaxes(1, 2)) for each in (share, share / (1 - share)))
    width = COLUMNS if xp is np else max(1, pseudo.shape[2])
    squares = []
    for start in range(0, pseudo.shape[2], width):
        part = pseudo[:, :, start : start + width]
        away = part - mean_of @ part
        away *= away
        squares.append((sum_of @ away)[:, 0])
    together = squares[0] if len(squares) == 1 else xp.concatenate(squares, axis=1)
    return xp.sqrt(together / filled)


def mean_of_groups(pseudo: Any, sizes: Array) -> Any:
    """Mean (r, d) of what groups of sizes (g,) or (r, g) say, each with its share of the draws."""
    return (beside(pseudo, _shares(sizes).swapaxes(1, 2)) @ pseudo)[:, 0]


def covariance_norms(pseudo: Any, centre: Any, std: Any, sizes: Array) -> tuple[Any, Any]:
    """Trace and Frobenius norm (r,) of the covariance of the estimate, by what groups (r, g, d) say around it, (r, d).

    In units of std (d,). Groups count alike, as they are of about equal size.
    """
    xp, scatter = library(pseudo), 0.0
    filled = (unbroadcast(np.atleast_2d(sizes)) > 0).astype(np.float64)
    count, filled = beside(pseudo, filled.sum(axis=1)), beside(pseudo, filled)[:, :, None]
    width = COLUMNS if xp is np else max(1, pseudo.shape[2])
    for start in range(0, pseudo.shape[2], width):
        part = slice(start, start + width)
        away = (pseudo[:, :, part] - centre[:, None, part]) * (filled * std[part])
        scatter = scatter + away @ away.swapaxes(1, 2)
    trace = xp.einsum("rgg->r", scatter)
    shares = ratio(scatter, trace[:, None, None])  # powers of tiny numbers vanish
    trace = trace / (count * (count - 1))
    return trace, trace * xp.sqrt((shares * shares).sum(axis=(1, 2)))


def skewness(pseudo: Any, sizes: Array) -> Any:
    """Skewness (r, d) of what groups of sizes (g,) or (r, g) say, (r, g, d)."""
    by_row = unbroadcast(np.atleast_2d(sizes))
    if library(pseudo) is not np or pseudo.size <= BLOCK:
        return _skewness(pseudo, by_row)
    rows = max(1, BLOCK // max(1, pseudo[0].size))
    return np.concatenate([
        _skewness(pseudo[start : start + rows], by_row if len(by_row) == 1 else by_row[start : start + rows])
        for start in range(0, len(pseudo), rows)
    ])  # fmt: skip


def _skewness(pseudo: Any, sizes: Array) -> Any:
    xp, is_filled = library(pseudo), sizes > 0
    count: Any = float(pseudo.shape[1])
    if is_filled.all():
        centred = pseudo - over_groups(pseudo)[:, None] / count
    else:
        filled = beside(pseudo, is_filled.astype(np.float64))[:, :, None]
        count = filled.sum(axis=1)
        centred = (pseudo - over_groups(pseudo * filled)[:, None] / count[:, None]) * filled
    powers = centred * centred
    spread = xp.sqrt(over_groups(powers) / count)
    centred *= ratio(xp.ones_like(spread), spread)[:, None]  # powers of tiny numbers vanish
    xp.multiply(centred, centred, out=powers)
    powers *= centred
    return over_groups(powers) / count


def over_groups(terms: Any) -> Any:
    """Σ (r, d) of terms (r, g, d): for arrays a matrix product, several times as fast as a sum over short stretches."""
    return (np.ones((1, terms.shape[1])) @ terms)[:, 0] if library(terms) is np else terms.sum(dim=1)


def ratio(numerator: Any, denominator: Any) -> Any:
    """Their ratio, of finite numbers; 0 where the denominator is."""
    return numerator / library(numerator).where(denominator > 0, denominator, np.inf)


def clear_skewness(pseudo: Any, sizes: Array) -> Any:
    """Squares (r, f) of the skewness of what groups (r, g, f) say of each feature; 0 where it may well be chance.

    Along the slope all of it counts, but of many features some are always skewed.
    """
    squares = skewness(pseudo, sizes) ** 2
    count = beside(squares, (unbroadcast(np.atleast_2d(sizes)) > 0).sum(axis=1, keepdims=True).astype(np.float64))
    return library(squares).where(squares > CLEAR**2 * 6 / count, squares, 0.0)


def widening(quantile: Any) -> Any:
    """Share by which an interval of so many standard errors must be wider, for each unit of squared skewness.

    Rare large terms make an estimate and its standard error small together, so that plain t intervals miss
    too often. To second order in the skewness γ of g groups the quantile q should be
    q·(1 + γ²(q⁴ + 2q² − 3) / (18 g)) (Hall, 1992, The Bootstrap and Edgeworth Expansion). The term is weighted by
    g/16: twice with 32 groups, since γ comes from the same draws and is itself too small where the tail has not
    shown; half with 8 nets, whose γ is mostly noise. The weights were chosen by measured coverage.
    """
    # below a confidence of two thirds the term would narrow: leave such intervals as they are
    return (quantile**4 + 2 * quantile**2 - 3).clip(0.0) / (18 * 16)


def _shares(sizes: Array) -> Array:
    """n_g / n, shaped to go with pseudo-values: (1 or r, g, 1)."""
    by_row = unbroadcast(np.atleast_2d(sizes))
    return (by_row / by_row.sum(axis=1, keepdims=True))[:, :, None]


def unbroadcast(sizes: Array) -> Array:
    """Numbers (1, ...) of one row where all rows have the same by construction, else (r, ...) as they are."""
    return sizes if sizes.strides[0] else sizes[:1]


def t_quantile(degrees_of_freedom: Array | float, probability: Array | float) -> Array:
    """Quantile of Student's t."""
    from scipy.special import stdtrit

    freedom = np.asarray(degrees_of_freedom)
    if freedom.size > 1 and np.ndim(probability) == 0:
        # most rows have the same number of groups, and a quantile takes longer than all else in an interval
        if (unbroadcast(freedom) == freedom.flat[0]).all():
            return np.broadcast_to(stdtrit(freedom.flat[0], probability), freedom.shape)
        different, which = np.unique(freedom, return_inverse=True)
        return np.asarray(stdtrit(different, probability), dtype=np.float64)[which].reshape(freedom.shape)
    return np.asarray(stdtrit(freedom, probability), dtype=np.float64)


def f_quantile(directions: Array, degrees_of_freedom: Array, probability: float) -> Array:
    """Quantile (r,) of F for errors along so many directions, each with so many degrees of freedom."""
    from scipy.special import betaincinv  # a quarter of the time that its own quantile of F takes

    beyond = betaincinv(directions * degrees_of_freedom / 2, directions / 2, 1 - probability)
    return np.asarray(degrees_of_freedom * (1 / beyond - 1), dtype=np.float64)

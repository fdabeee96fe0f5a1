"""Least squares that leaves features out: selection and lasso on Gram matrices, many problems at once.

A problem is a covariance matrix S (d, d) and a covariance with the values c (d,). Problems are stacked along a first
axis m, and every step below is taken by all of them together. The work is done on a tableau [S | c | ...] by
exchanging one feature at a time (Gauss-Jordan, known to statisticians as the sweep operator): with the features A
exchanged, its column c holds S_AA⁻¹ c_A in the rows A, the slopes, and c_B − S_BA S_AA⁻¹ c_A in the others, their
covariances with the residual. To exchange a feature again takes it out.
"""

from __future__ import annotations

import numpy as np

from .._core.types import Array, Flags, Indices
from ..errors import SingularFit

ROUNDING = 1e-12
"""Relative to the largest: below this a covariance or a slope is taken for 0."""

ACCURACY = 1e-10
"""Relative to the largest covariance: how closely a lasso must meet its optimality conditions."""


def solve_kept(gram: Array, cross: Array, kept: Flags) -> Array:
    """Slopes (m, d) of the features kept (m, d), exactly 0 for the others."""
    both = kept[:, :, None] & kept[:, None, :]
    # a one on the diagonal of what is left out makes its slope 0 and touches nothing else
    reduced = np.where(both, gram, np.eye(gram.shape[-1]))
    return np.asarray(np.linalg.solve(reduced, np.where(kept, cross, 0.0)[..., None])[..., 0], dtype=np.float64)


def forward(gram: Array, cross: Array, most: int) -> Flags:
    """Features (m, d) chosen one by one, each time the one that lowers the residual most; at most `most`."""
    tableau = np.concatenate([gram, cross[..., None]], axis=2)
    kept = np.zeros(cross.shape, dtype=np.bool_)
    least = ROUNDING**2 * _gains(tableau, kept).max(axis=1)
    for _ in range(most):
        gains = _gains(tableau, kept)
        best = gains.argmax(axis=1)
        going = np.flatnonzero(gains.max(axis=1) > least)
        if not len(going):
            break
        kept[going, best[going]] = True
        _exchange(tableau, going, best[going])
    return kept


def highest(slopes: Array, most: int) -> Flags:
    """Features (m, d) with the largest slopes in size; at most `most`, and none that is 0."""
    size = np.abs(slopes)
    kept = np.zeros(slopes.shape, dtype=np.bool_)
    np.put_along_axis(kept, np.argsort(-size, axis=1, kind="stable")[:, :most], True, axis=1)
    return kept & (size > ROUNDING * size.max(axis=1, keepdims=True))


def first_in_path(gram: Array, cross: Array, most: int) -> Flags:
    """Features (m, d) that stand in the lasso path when it first holds `most` of them."""
    signs = _follow_path(gram, cross, np.ones(cross.shape[1]), stop=0.0, most=most)
    return signs != 0


def lasso(gram: Array, cross: Array, prices: Array) -> Array:
    """Slopes u (m, d) that minimise uᵀSu − 2c·u + 2 Σ prices·|u|, for prices (d,) > 0."""
    everyone = cross.shape[1]  # may stand before the penalty is down, and some leave again
    signs = _follow_path(gram, cross, prices, stop=1.0, most=everyone + 1)
    slopes = solve_kept(gram, cross - prices * signs, signs != 0)
    residual = cross - np.einsum("mij,mj->mi", gram, slopes)
    scale = np.maximum(np.abs(cross).max(axis=1, keepdims=True), prices.max())
    # the path carries rounding from step to step, this solution does not: check it by what makes it optimal
    beyond = np.where(signs != 0, np.abs(residual - prices * signs), np.abs(residual) - prices)
    wrong = (slopes * signs < -ACCURACY * np.abs(slopes).max(axis=1, keepdims=True)) | (beyond > ACCURACY * scale)
    if wrong.any():
        msg = (
            f"the lasso did not converge: {int(wrong.any(axis=1).sum())} of {len(wrong)} fits miss their optimality"
            " conditions. Features may be all but collinear; raise n_samples, or use ridge"
        )
        raise SingularFit(msg)
    return slopes


def _follow_path(gram: Array, cross: Array, prices: Array, *, stop: float, most: int) -> Array:
    """Signs (m, d) of the lasso path, 0 for features that do not stand, once its penalty has fallen to `stop`.

    Or once `most` features stand. The penalty μ·Σ prices·|u| falls from where no feature stands. Between two events
    slopes are linear in μ, u_A = S_AA⁻¹c_A − μ S_AA⁻¹(prices·signs)_A, which the last two columns of the tableau
    hold; an event is a feature whose covariance with the residual reaches its price, or a slope that reaches 0.
    """
    m, d = cross.shape
    found = np.zeros((m, d))
    live = np.arange(m)
    tableau = np.concatenate([gram, cross[..., None], np.zeros((m, d, 1))], axis=2)
    signs = np.zeros((m, d))
    penalty = np.full(m, np.inf)
    floor = np.maximum(stop, ROUNDING * (np.abs(cross) / prices).max(axis=1))
    for _ in range(8 * d + 8):  # paths of d features take little more than d steps
        at, side = _events(tableau, signs, prices, penalty)
        feature = at.argmax(axis=1)
        rows = np.arange(len(live))
        penalty = at[rows, feature]
        done = (penalty <= floor) | ((signs != 0).sum(axis=1) >= most)
        found[live[done]] = signs[done]
        go = np.flatnonzero(~done)
        if not len(go):
            return found
        live, tableau, signs, floor, penalty = live[go], tableau[go], signs[go], floor[go], penalty[go]
        _step(tableau, signs, prices, feature[go], side[go, feature[go]])
    msg = f"the lasso did not converge: its path took more than {8 * d + 8} steps for {d} features; use ridge instead"
    raise SingularFit(msg)


def _events(tableau: Array, signs: Array, prices: Array, penalty: Array) -> tuple[Array, Array]:
    """The penalty (m, d) at which each feature would join or leave next, and its sign if it joins; −inf if never."""
    plain, tilt = tableau[:, :, -2], tableau[:, :, -1]
    stands = signs != 0
    # Outside: covariance plain − μ·tilt meets ±μ·price on its own side; inside: slope plain − μ·tilt meets 0. Both
    # only on the way there as μ falls: what has just joined or left stands exactly at its event, and moves away
    side = np.where(plain < 0, -1.0, 1.0)
    slope = np.where(stands, tilt, prices + side * tilt)
    height = np.where(stands, plain, np.abs(plain))
    possible = np.where(stands, (signs * tilt < 0) & (plain * tilt > 0), slope > 0)
    at = np.divide(height, slope, out=np.full_like(plain, -np.inf), where=possible)
    return np.minimum(at, penalty[:, None]), side  # events lie ahead but for rounding


def _step(tableau: Array, signs: Array, prices: Array, feature: Indices, side: Array) -> None:
    """Let one feature of each problem join or leave the path."""
    rows = np.arange(len(feature))
    before = signs[rows, feature]
    joins = before == 0
    tableau[rows, feature, -1] += np.where(joins, prices[feature] * side, 0.0)
    _exchange(tableau, rows, feature)
    tableau[rows, feature, -1] -= np.where(joins, 0.0, prices[feature] * before)
    signs[rows, feature] = np.where(joins, side, 0.0)


def _gains(tableau: Array, kept: Flags) -> Array:
    """What each feature would take off the residual variance; 0 for those already in."""
    pivots = np.diagonal(tableau[:, :, :-1], axis1=1, axis2=2)
    return np.where(kept, 0.0, tableau[:, :, -1] ** 2 / np.abs(pivots))


def _exchange(tableau: Array, rows: Indices, pivot: Indices) -> None:
    """Exchange one feature of each problem in `rows`, in place."""
    part = tableau[rows]
    at = np.arange(len(rows))
    size = part[at, pivot, pivot][:, None]
    row, column = part[at, pivot] / size, part[at, :, pivot]
    part -= column[:, :, None] * row[:, None, :]
    part[at, :, pivot] = -column / size
    row[at, pivot] = 1 / size[:, 0]
    part[at, pivot] = row
    tableau[rows] = part

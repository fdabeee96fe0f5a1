"""Closed forms along straight lines: what each feature adds to F from one end to the other, without drawing.

c_j = δ_j ∫₀¹ ∂_jF(b + tδ) dt by Gauss–Legendre nodes. t ↦ F(b + tδ) is entire, and grows off the real line no faster
than a normal density does, so that the number of nodes follows from the distance alone: see `nodes_needed`.

Columns that are held and differ have x's value with probability t, each by itself. The mean over them is a sum over the
ways to set them, a line each, weighed by polynomials in t: see `Setting`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import log, pi, sqrt

import numpy as np

from .._core.types import Array, Flags, Indices
from ..errors import InvalidArgument
from ..space.neighbourhood import Factor
from .closed_form import ClosedForm
from .linear import LinearModel
from .links import LINKS
from .on_scales import LineOnScales, TreesOnScales
from .sums import FormSum, spread_of

PRECISION = 1e-12
"""Largest error of the nodes, as a share of the range of f."""

MOST_NODES = 10_000
"""On one line; it is then more than 4,000 standard deviations long."""

BLOCK = 2**14
"""Points between two steps of the progress bar."""

ELLIPSES: Array = 1 + np.geomspace(1e-4, 1e3, 600)
"""ρ, half the sum of the axes of ellipses around the line, of which the best is taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """How the held columns that differ are set on n lines."""

    differs: Flags
    """(n, h) which of them differ between the two ends"""
    is_end: Flags
    """(n, h) which are set as at the end of the line, the others as at its start"""

    def weigh(self, rows: Indices, t: Array, but: int | None = None) -> Array:
        """(., k) chance of this setting at places t (k,), of one column's being set regardless."""
        chance = np.ones((len(rows), len(t)))
        for i in range(self.differs.shape[1]):
            if i != but:
                as_set = np.where(self.is_end[rows, i, None], t, 1 - t)
                chance *= np.where(self.differs[rows, i, None], as_set, 1.0)
        return chance

    @property
    def count(self) -> Indices:
        """(n,) columns that differ."""
        return np.asarray(self.differs.sum(axis=1))

    @property
    def sign(self) -> Array:
        """(n, h) with which F on a line counts for a column."""
        return np.where(self.differs, np.where(self.is_end, 1.0, -1.0), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class OnLines:
    """What a closed form says of n lines."""

    parts: Array
    """(n, f) what each perturbed feature adds"""
    held: Array
    """(n, h) what each held column that differs adds; (n, 0) where lines have no setting"""
    start: Array
    """(n,) F where the lines begin"""
    end: Array
    """(n,) and where they end"""
    radius: Array
    """(n,) bound on the numerical error of the parts, L2"""
    nodes: Indices
    """(n,) on each line"""

    def __add__(self, other: OnLines) -> OnLines:
        """Of a sum of two closed forms."""
        return OnLines(
            self.parts + other.parts,
            self.held + other.held,
            self.start + other.start,
            self.end + other.end,
            self.radius + other.radius,
            np.maximum(self.nodes, other.nodes),
        )


def along_lines(
    form: ClosedForm,
    x: Array,
    starts: Array,
    ends: Array,
    factor: Factor,
    weights: Array,
    advance: Callable[[int], None],
    setting: Setting | None = None,
) -> OnLines:
    """Around rows x (n, D), in coordinates of the form, from starts to ends (n, f) in scores; NaN for what is missing.

    Outputs are weighed by (n, k). With a setting, lines count as often as they are likely to be set so.
    """
    n = len(x)
    if setting is None:
        setting = Setting(np.zeros((n, 0), dtype=np.bool_), np.zeros((n, 0), dtype=np.bool_))
    if isinstance(form, FormSum):
        offset, none = weights @ form.offset, np.zeros(n)
        held = np.zeros(setting.differs.shape)  # an offset is the same however columns are set
        total = OnLines(np.zeros(starts.shape), held, offset, offset, none, none.astype(np.intp))
        for part, turn in form.parts:
            own = np.ascontiguousarray(weights @ turn)
            total = total + along_lines(part, x, starts, ends, factor, own, lambda _: None, setting)
        advance(n)
        return total
    if isinstance(form, LineOnScales):
        return _of_features(form, x, starts, ends, factor, weights, advance, setting)
    if isinstance(form, TreesOnScales):
        return _in_scores(form, x, starts, ends, factor, weights, advance, setting)
    return _by_nodes(form, x, starts, ends, factor, weights, advance, setting)


def nodes_needed(length: Array, lead: Array, held: Indices | None = None) -> Indices:
    """Nodes (n,) with which contributions err by at most PRECISION of the range of f.

    `length` ℓ is that of the line in standard deviations, √(δᵀΣ⁻¹δ); where f depends on one direction only, along it.
    Within |Im t| ≤ y the integrand is at most ½ of the range times lead·(√(2/π) + yℓ)·exp(y²ℓ²/2), where `lead` is ℓ,
    too, but where parts of opposite signs cancel. k nodes err by (32/15)·M·ρ^(−2k)/(1 − ρ⁻²) of an integrand that is
    at most M in the ellipse of ρ around the line, whose height is y = (ρ − 1/ρ)/4. There |t| + |1 − t| is at most
    (ρ + 1/ρ)/2, by which each of the `held` columns that differ makes M larger.
    """
    rho = ELLIPSES
    reach = (rho - 1 / rho) / 4 * length[:, None]
    with np.errstate(divide="ignore"):
        size = np.log(lead / 2)[:, None] + np.log(sqrt(2 / pi) + reach) + reach**2 / 2
    if held is not None and held.any():
        of_held = np.where(held[:, None] > 0, reach**2 / 2, -np.inf)  # F with x's value less F with the baseline's
        size = np.maximum(size, of_held) + held[:, None] * np.log((rho + 1 / rho) / 2)
    return _least(size)


def _nodes_of_exponential(length: Array, held: Indices) -> Indices:
    """Nodes for exp(st), |s| = length, times a polynomial of degree `held`: errors of PRECISION of its larger end."""
    size = length[:, None] * (ELLIPSES + 1 / ELLIPSES - 2) / 4
    return _least(size + held[:, None] * np.log((ELLIPSES + 1 / ELLIPSES) / 2))


def _least(size: Array) -> Indices:
    """Nodes (n,) for integrands whose largest value is exp(size), (n, ρ)."""
    rho = ELLIPSES
    wanted = (log(32 / 15) + size - np.log1p(-(rho**-2)) - log(PRECISION)) / (2 * np.log(rho))
    found = np.maximum(2, np.ceil(wanted.min(axis=1)))
    if not found.max() <= MOST_NODES:
        msg = (
            f"a row lies so far from its baseline, for its sigma, that {found.max():,.0f} points on the line between"
            " them would be needed for an exact answer. Raise sigma, or give a baseline that is nearer"
        )
        raise InvalidArgument(msg, argument="sigma")
    return found.astype(np.intp)


def _by_nodes(
    form: ClosedForm,
    x: Array,
    starts: Array,
    ends: Array,
    factor: Factor,
    weights: Array,
    advance: Callable[[int], None],
    setting: Setting,
) -> OnLines:
    steps = np.nan_to_num(ends - starts)
    nodes, error = _planned(form, steps, x, factor, weights, setting.count)
    n = len(x)
    parts, radius = np.zeros(starts.shape), np.zeros(n)
    held: Array = np.zeros(setting.differs.shape)
    edges = np.zeros((2, n))
    for k in np.unique(nodes):
        t, share = _legendre(int(k))
        same = np.flatnonzero(nodes == k)
        size = max(1, BLOCK // (int(k) + 2))
        for start in range(0, len(same), size):
            rows = same[start : start + size]
            points = np.repeat(x[rows][:, None, :], k + 2, axis=1)
            line = starts[rows][:, None, :] + t[:, None] * (ends - starts)[rows][:, None, :]
            points[:, :, factor.free] = np.concatenate([starts[rows][:, None], line, ends[rows][:, None]], axis=1)
            with np.errstate(over="ignore", invalid="ignore"):  # said below, in our own words
                found = form.smooth(
                    points.reshape(-1, x.shape[1]),
                    factor,
                    np.ascontiguousarray(np.repeat(weights[rows], k + 2, axis=0)),
                )
            slopes = np.nan_to_num(found.slopes.reshape(len(rows), k + 2, -1)[:, 1:-1], nan=np.inf)
            mean: Array = found.mean.reshape(len(rows), k + 2)
            if not (np.isfinite(slopes).all() and np.isfinite(mean).all()):
                msg = "the smoothed model is too large for a number; lower sigma"
                raise InvalidArgument(msg, argument="sigma")
            chance = setting.weigh(rows, t) * share
            parts[rows] = np.einsum("nk,nkf->nf", chance, slopes) * steps[rows]
            for i in range(held.shape[1]):
                held[rows, i] = np.einsum("k,nk,nk->n", share, setting.weigh(rows, t, but=i), mean[:, 1:-1])
            edges[:, rows] = mean[:, [0, -1]].T
            longest = np.abs(steps[rows] / factor.std).max(axis=1)
            radius[rows] = np.einsum("nk,nk->n", found.radius.reshape(len(rows), k + 2)[:, 1:-1], chance) * longest
            advance(len(rows))
    shared = error * (1 + setting.count) / 2.0**setting.count  # of all lines together, and of each column that differs
    return OnLines(parts, held * setting.sign, edges[0], edges[1], radius + shared, nodes)


def _planned(
    form: ClosedForm, steps: Array, x: Array, factor: Factor, weights: Array, held: Indices
) -> tuple[Indices, Array]:
    """Nodes (n,) on each line, and a bound (n,) on the error that they leave; so many columns `held` (n,) differ."""
    if not isinstance(form, LinearModel):
        spread = spread_of(form.spread, weights)
        length = np.linalg.norm(factor.draws(steps), axis=1)
        return nodes_needed(length, length, held), PRECISION * spread
    coef, parts = form.coef[:, factor.free], weights @ form.turn  # (m, f), (n, m)
    if form.link is LINKS["identity"]:
        return 2 + held // 2, np.zeros(len(steps))  # polynomials of degree `held`
    along = np.abs(steps @ coef.T) * (parts != 0)  # (n, m)
    if form.link is LINKS["exponential"]:
        far = x.copy()
        far[:, factor.free] -= np.nan_to_num(steps)
        largest = np.maximum(form.smooth(x, factor, weights).mean, form.smooth(far, factor, weights).mean)
        reach = np.linalg.norm(steps[:, None, :] * coef, axis=2).max(axis=1)
        both = (reach + (held > 0)) * 2.0**held  # `largest` is this line's own, and so is its error
        return _nodes_of_exponential(along.max(axis=1), held), PRECISION * both * np.abs(largest)
    tau = np.linalg.norm(factor.whiten(coef), axis=1)
    tau = np.where(tau > 0, tau, np.inf)
    lead = np.linalg.norm(steps[:, None, :] * coef, axis=2) * (parts != 0)
    length = (along / tau).max(axis=1)
    nodes = nodes_needed(length, np.maximum(length, (lead / tau).max(axis=1)), held)
    return nodes, PRECISION * np.abs(parts).sum(axis=1)


def _in_scores(
    form: TreesOnScales,
    x: Array,
    starts: Array,
    ends: Array,
    factor: Factor,
    weights: Array,
    advance: Callable[[int], None],
    setting: Setting,
) -> OnLines:
    """Trees whose thresholds are scores: for all rows, and for those beyond the background their own."""
    none = np.zeros(len(x))
    held = np.zeros(setting.differs.shape)
    found = OnLines(np.zeros(starts.shape), held, none.copy(), none.copy(), none.copy(), none.astype(np.intp))
    for trees, rows, u in form.parts(x):
        own = Setting(setting.differs[rows], setting.is_end[rows])
        part = _by_nodes(trees, u, starts[rows], ends[rows], factor, weights[rows], advance, own)
        for name in ("parts", "held", "start", "end", "radius", "nodes"):
            getattr(found, name)[rows] = getattr(part, name)
    return found


def _of_features(
    form: LineOnScales,
    x: Array,
    starts: Array,
    ends: Array,
    factor: Factor,
    weights: Array,
    advance: Callable[[int], None],
    setting: Setting,
) -> OnLines:
    """A sum of functions of one feature each: each adds what its own mean changes by, however others are set."""
    free = factor.free
    at_ends = form.moments_at(x, ends, factor)
    at_starts = form.moments_at(x, starts, factor)
    coef = ((weights @ form.line.turn) @ form.line.coef)[:, free]
    parts = coef * (at_ends.mean - at_starts.mean)
    end = form.smooth(x, factor, weights).mean
    off = np.linalg.norm(coef * factor.std * (at_ends.error + at_starts.error), axis=1)
    advance(len(x))
    # what a column adds is the line with all set as at the end, less that with this one set as at the start
    is_start = setting.differs & ~setting.is_end
    is_last: Flags = np.asarray(~is_start.any(axis=1))
    counted = np.where(is_last[:, None] & setting.differs, 1.0, 0.0)
    counted[(is_start.sum(axis=1) == 1)[:, None] & is_start] = -1.0
    start = end - parts.sum(axis=1)
    return OnLines(
        parts * is_last[:, None], counted * end[:, None], start, end, off * is_last, np.zeros(len(x), dtype=np.intp)
    )


@lru_cache(maxsize=256)
def _legendre(k: int) -> tuple[Array, Array]:
    """Nodes and weights on [0, 1]."""
    from scipy.special import roots_legendre

    nodes, weights = roots_legendre(k)
    return (1 + nodes) / 2, weights / 2

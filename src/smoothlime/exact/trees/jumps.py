r"""The mean gradient of trees behind a curve, draw by draw: jumps where others have derivatives.

Let f = g(m(a)) with m a sum of trees. f is constant on boxes, and its gradient is a measure on their faces. Along axis
j, the other coordinates of a draw a held,

$$ J_j(a) = \sum_t p_j(t \mid a_{-j})\,\bigl(f(t^+, a_{-j}) - f(t^-, a_{-j})\bigr), $$

over the thresholds t of feature j, with p_j the density of a_j given the others: N(x_j, σ_j²) for diagonal Σ, else
N(a_j − (Q(a − x))_j / Q_jj, 1 / Q_jj) with Q = Σ⁻¹. Its mean is the slope, Σ⁻¹Cov(a, f(a)); `docs/theory` has the
proof.

Thresholds beyond CUT standard deviations are left out, as if f went on there as it is: where f varies by M at all,
standardised slopes change by less than 2·M·(φ(CUT) + d·P(|z| > CUT)), a few times 10⁻¹¹ of M.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..._core.types import Array, Flags
from ...space.neighbourhood import Factor
from ..curves import Curve
from .format import Ints, Longs, TreeEnsemble
from .smoothing import processors, share

WORD = 64
"""Leaves up to which trees are worked out in bits; larger ones are walked through."""

PIECE = 128
"""Draws that are worth a thread of their own, where rows are fewer than processors."""


@dataclass(frozen=True, slots=True, eq=False)
class JumpPlan:
    """Trees as the kernel of jumps takes them: nodes in preorder, thresholds by their rank among those of a feature."""

    deepest: int
    base: Array
    threshold: Array
    feature_first: Longs
    feature: Ints
    rank: Ints
    cut: Array
    lo: Ints
    hi: Ints
    right: Ints
    nan_left: Flags
    choice_first: Longs
    choice_stop: Longs
    category: Longs
    tree_first: Longs
    target: Ints
    value: Array


def plan_jumps(trees: TreeEnsemble) -> JumpPlan:
    """The plan of an ensemble."""
    from .jump_layout import lay_out  # numba, and only where it is needed

    size, d = len(trees.feature), trees.n_features
    finite = (trees.feature >= 0) & ~trees.is_categorical & np.isfinite(trees.threshold)
    at = np.flatnonzero(finite)
    at = at[np.lexsort((trees.threshold[at], trees.feature[at]))]
    j, t = trees.feature[at], trees.threshold[at]
    is_new = np.ones(len(at), dtype=np.bool_)
    is_new[1:] = (j[1:] != j[:-1]) | (t[1:] != t[:-1])
    first = np.searchsorted(j[is_new], np.arange(d + 1)).astype(np.int64)
    count = np.diff(first)
    rank = np.zeros(size, dtype=np.int32)
    rank[at] = np.cumsum(is_new) - 1 - first[j]
    above = (trees.feature >= 0) & (trees.threshold == np.inf)
    rank[above] = count[trees.feature[above]]
    rank[(trees.feature >= 0) & (trees.threshold == -np.inf)] = -1
    order, right, lo, hi, leaf_node = np.zeros((5, size), dtype=np.int32)
    tree_first = np.zeros(trees.n_trees + 1, dtype=np.int64)
    used, leaves, deepest = lay_out(
        trees.feature, trees.left, trees.right, rank, count, trees.roots, order, right, lo, hi, leaf_node, tree_first
    )
    order = order[:used]
    has_choices = bool(len(trees.category_first))
    choices = trees.category_first if has_choices else np.zeros(size + 1, dtype=np.int64)
    return JumpPlan(
        deepest=int(deepest),
        base=np.array(trees.base, dtype=np.float64),
        threshold=t[is_new],
        feature_first=first,
        feature=trees.feature[order],
        rank=rank[order],
        cut=trees.threshold[order],
        lo=lo[:used].copy(),
        hi=hi[:used].copy(),
        right=right[:used].copy(),
        nan_left=trees.nan_left[order],
        choice_first=choices[order],
        choice_stop=choices[order + 1],
        category=trees.category,
        tree_first=tree_first,
        target=trees.target,
        value=trees.value[leaf_node[:leaves]] * trees.scale,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Jumps:
    """What draws say: outputs (r, t, n), and jumps per unit of each feature, of them and of a margin: (r, t, n, f)."""

    outputs: Array
    slopes: Array
    of_margin: Array


def find_jumps(
    trees: TreeEnsemble,
    plan: JumpPlan,
    curve: Curve,
    x: Array,
    steps: Array,
    factor: Factor,
    weights: Array,
    controls: Array,
    *,
    word: int = WORD,
    threads: int | None = None,
) -> Jumps:
    """Jumps around rows x (r, d) along every axis through x + steps (1 or r, n, f).

    Of outputs weighed by (r, t, k), and beside them of margins weighed by (r, t, m). A missing value is not perturbed.
    """
    from . import jump_kernel, jump_layout  # numba, and only where it is needed

    (r, _), n, f, t = x.shape, steps.shape[1], len(factor.free), weights.shape[1]
    std = np.zeros(x.shape[1])  # rows may have more than the features: what is made of fixed ones
    std[factor.free] = factor.std
    rows = np.array(trees.with_missing(x, std == 0), order="C")
    mixed, constant = curve.of_margins(weights)
    mixed, controls = np.array(mixed, order="C"), np.array(controls, order="C")
    moved = np.array(steps, dtype=np.float64, order="C")
    place = factor.free.copy()  # numba compiles anew for arrays that cannot be written to
    common = precision(factor, np.zeros(f, dtype=np.bool_))
    found = Jumps(np.zeros((r, t, n)), np.zeros((r, t, n, f)), np.zeros((r, t, n, f)))
    arrays = tuple(getattr(plan, name) for name in plan.__slots__)
    number, then = curve.number, curve.bend(len(trees.base))

    def work(task: tuple[int, int, int]) -> None:
        i, start, stop = task
        gaps = np.isnan(rows[i, factor.free])
        own = precision(factor, gaps) if gaps.any() else common
        row = jump_layout.lay_row(rows[i], std, word, *arrays)
        jump_kernel.find_jumps(
            rows[i], moved[i % len(moved)], start, stop, place, own, not factor.is_diagonal, word, plan.deepest,
            number, curve.sharpness, then, mixed[i], controls[i], plan.threshold, plan.feature_first, plan.target,
            plan.value, *row, found.outputs[i], found.slopes[i], found.of_margin[i],
        )  # fmt: skip

    pieces = max(1, min(n // PIECE, processors() if threads is None else threads))
    ends = [n * piece // pieces for piece in range(pieces + 1)] if r < pieces else [0, n]
    share(work, [(i, start, stop) for i in range(r) for start, stop in pairwise(ends)], threads)
    return Jumps(found.outputs + constant[:, :, None], found.slopes, found.of_margin)


def precision(factor: Factor, gaps: Flags) -> Array:
    """Σ⁻¹ (f, f) where Σ is full, of the features that are there: 0 for the others, but 1 on the diagonal."""
    if factor.is_diagonal:
        return np.zeros((0, 0))
    there = np.flatnonzero(~gaps)
    found = np.eye(len(gaps))
    covariance = (factor.lower @ factor.lower.T)[np.ix_(there, there)]
    found[np.ix_(there, there)] = np.linalg.inv(covariance)
    return found

r"""Smoothed trees, exactly: E f(a) and its gradient for a ~ N(x, diag(σ²)), without a single draw.

A tree is constant on boxes, so its mean is a sum of products of differences of Φ; `_kernel` has the formulas and sums
them in one pass down and one up each tree. Two things are not exact, and `radius` bounds both. Branches reached with
probability below 5e-16 are left out: where f is changed by at most M on a set of probability p, Stein's identity
gives

$$ |\Delta w_j| \le \frac{M}{\sigma_j} \mathbb{E}\,|z_j| 1_A \le \frac{M}{\sigma_j}\,2\varphi(\Phi^{-1}(p/2))
\le \frac{9 M}{\sigma_j} (p + 10^{-17}). $$

And numbers are rounded, Φ and φ from a table of polynomials right to 1e-15: `rounding` says what that comes to.

The loops are compiled by numba, as NumPy cannot follow branches row by row. Importing it takes 0.2 s, the first call
on a machine 6 s while it compiles, and 0.3 s in later processes, which find the compiled code on disk. Per row and in
one thread: 0.05 to 0.1 ms for XGBoost with 500 trees of depth 6, 0.5 to 1.2 ms for a forest of 300 trees grown out
(`benchmarks/bench_trees.py`). Threads are Python's own and take blocks of rows: the kernel lets go of the
interpreter's lock, and numba's parallel loops would add a thread pool that other libraries' settings reach into.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..._core.types import Array
from ..._core.validate import as_float_array, check_rows
from ...errors import InvalidArgument, NoClosedForm
from .format import TreeEnsemble
from .plan import Plan, make_plan

BLOCK = 64
"""Rows that one thread takes at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Smoothed:
    """E f and its gradient at each row; with weights there is one output, Σ_o weight_o·f_o."""

    values: Array  # (r, k)
    gradients: Array  # (r, d, k)
    radius: Array  # (r, d): what no gradient is off by, in any output


def smooth(
    trees: TreeEnsemble,
    X: Any,
    std: Any,
    *,
    weights: Any = None,
    plan: Plan | None = None,
    threads: int | None = None,
) -> Smoothed:
    """Mean of the trees over N(x, diag(std²)) and its gradient in x, for every row.

    Parameters
    ----------
    X
        (r, d). NaN is missing: it follows each node's own direction and is not perturbed, its gradient is 0.
    std
        (d,); 0 for a feature that is fixed, whose own value decides its splits.
    weights
        (r, k) or (k,): explain the sum of outputs with these weights, in one pass, instead of each output.
    plan
        What `make_plan` made of the trees, where it is at hand.
    threads
        At most so many at once; None for as many as there are processors.

    Examples
    --------
    >>> from smoothlime.exact.trees.format import join_trees
    >>> step = {"feature": [0, -1, -1], "threshold": [0.0, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0],
    ...         "nan_left": [True, False, False], "value": [0.0, -1.0, 1.0]}
    >>> smoothed = smooth(join_trees([step], base=0.0, n_features=1), [[0.0]], [0.5])
    >>> print(smoothed.gradients[0, 0, 0].round(6))  # 2 φ(0) / σ
    1.595769
    """  # fmt: skip
    rows, inverse = checked(trees, X, std)
    mixed = _weights(trees, weights, len(rows))
    k = trees.k if mixed is None else 1
    values, gradients, lost = np.zeros((len(rows), k)), np.zeros((len(rows), k * rows.shape[1])), np.zeros(len(rows))
    from .kernel import smooth_rows  # numba, and only where it is needed

    plan = make_plan(trees) if plan is None else plan
    arrays = plan.arrays

    def work(start: int) -> None:
        part = slice(start, start + BLOCK)
        some = np.zeros((0, 0)) if mixed is None else mixed[part]
        smooth_rows(rows[part], inverse, some, *arrays, _bell(), values[part], gradients[part], lost[part])

    share(work, range(0, len(rows) if trees.n_trees else 0, BLOCK), threads)
    return _finished(trees, plan, mixed, values, gradients, lost, inverse)


def _finished(
    trees: TreeEnsemble, plan: Plan, mixed: Array | None, values: Array, gradients: Array, lost: Array, inverse: Array
) -> Smoothed:
    """Sums of trees as means where they are, base scores, axes in order, and the bound on the error."""
    r, k = values.shape
    by_feature = mixed is None and trees.value.shape[1] > 1  # how the kernel lays out several outputs of one tree
    shaped = gradients.reshape(r, -1, k) if by_feature else gradients.reshape(r, k, -1).swapaxes(1, 2)
    constant = trees.base + trees.scale * plan.middle
    base = constant[None, :] if mixed is None else (mixed @ constant)[:, None]
    size = np.ones(r) if mixed is None else np.abs(mixed).sum(axis=1)
    left_out = lost * (size if trees.value.shape[1] > 1 else 1.0)
    rounding = np.outer(size, plan.rounding)
    radius = (9 * (left_out + 1e-17 * plan.total * size)[:, None] + rounding) * inverse * trees.scale
    return Smoothed(values * trees.scale + base, np.ascontiguousarray(shaped * trees.scale), radius)


def checked(trees: TreeEnsemble, X: Any, std: Any) -> tuple[Array, Array]:
    """Rows with everything missing as NaN, and 1/σ with 0 for what is fixed."""
    rows = check_rows(X, finite=False)
    sigma = as_float_array(std, "std")
    d = trees.n_features
    if rows.shape[1] != d:
        msg = f"X has {rows.shape[1]} features but the trees were fitted with {d}"
        raise InvalidArgument(msg)
    if sigma.shape != (d,) or not (np.isfinite(sigma) & (sigma >= 0)).all():
        msg = f"std must hold {d} finite numbers >= 0, one per feature; got {np.array2string(sigma, threshold=8)}"
        raise InvalidArgument(msg)
    perturbed = [j for j in trees.categorical_features if sigma[j] > 0]
    if perturbed:
        msg = (
            f"the trees split on categories of feature {perturbed[0]}, which cannot be perturbed by a Gaussian."
            f" List it in `fixed`, or use method='clime'"
        )
        raise NoClosedForm(msg)
    inverse = np.divide(1.0, sigma, out=np.zeros(d), where=sigma > 0)
    return np.require(trees.with_missing(rows, sigma == 0), requirements=("C", "W")), inverse


def _weights(trees: TreeEnsemble, weights: Any, r: int) -> Array | None:
    if weights is None:
        return None
    given = as_float_array(weights, "weights")
    if given.shape not in ((trees.k,), (r, trees.k)):
        msg = f"weights must have one number per output, ({trees.k},) or ({r}, {trees.k}); got shape {given.shape}"
        raise InvalidArgument(msg)
    return np.broadcast_to(given, (r, trees.k)).copy()  # numba compiles anew for arrays that cannot be written to


@cache
def _bell() -> Any:
    from .kernel import bell_table

    return bell_table()


def share(work: Callable[[Any], None], tasks: Sequence[Any], threads: int | None) -> None:
    """Do all tasks, by so many threads at once; None for as many as there are processors."""
    most = min(len(tasks), threads if threads is not None else processors())
    if most > 1:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(most) as pool:
            list(pool.map(work, tasks))
    else:
        for task in tasks:
            work(task)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

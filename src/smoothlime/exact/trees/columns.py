"""Trees in other coordinates: thresholds of what a column becomes as thresholds of the column, and trees joined.

A function that never falls takes x <= t to h(x) <= t, and back: some number is the largest with h(x) <= t. It is found
among the float64 numbers themselves, so that ties go where the library sends them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from ..._core.types import Array, Flags, Indices
from ...errors import NoClosedForm
from .format import Longs, TreeEnsemble

LARGEST = 3e38
"""No number that is tried is larger, as float32 knows no larger ones and libraries refuse them."""

SIGN = np.int64(2**63 - 1)

AROUND = 64 * np.finfo(float).eps
"""Share of its terms by which a line's own inverse may be off, and is looked for around it."""

Rising = Callable[[Array], Array]
"""Of points (n, c) what becomes of them, (n, c): each column a function of itself that never falls."""


def last_below(
    rising: Rising, limits: Array, guess: Array | None = None, off: Array | None = None, *, largest: float = LARGEST
) -> Array:
    """The largest number of each entry whose value is at most its limit, (n, c); NaN where there is no limit.

    −∞ where all numbers down to −`largest` have a larger value, ∞ where none up to `largest` has.

    Parameters
    ----------
    rising
        Is asked for some rows of an array as wide as `limits`, in which each column holds numbers of its own.
    guess, off
        Where it is expected, and how far it may be from there; NaN where nothing is.

    Examples
    --------
    >>> import numpy as np
    >>> float(last_below(lambda a: (a - 1) / 2, np.array([[1.0]]))[0, 0])
    3.0
    """
    low, high = np.full(limits.shape, -largest), np.full(limits.shape, largest)
    none, every = (_at_most(rising, each, limits) for each in (low, high))
    open_ = ~np.isnan(limits) & none & ~every
    if guess is not None and off is not None and open_.any():
        for wide in (1.0, 1e3):
            below, above = (np.clip(guess + side * wide * off, -largest, largest) for side in (-1, 1))
            fits_low, fits_high = _at_most(rising, below, limits), ~_at_most(rising, above, limits)
            low = np.where(open_ & fits_low & (below > low), below, low)
            high = np.where(open_ & fits_high & (above < high), above, high)
    found = _bisect(rising, limits, low, high, open_)
    return np.where(np.isnan(limits), np.nan, np.where(~none, -np.inf, np.where(every, np.inf, found)))


def is_last_below(rising: Rising, limits: Array, found: Array, *, largest: float = LARGEST) -> bool:
    """Whether `found` is what `last_below` would give."""
    low = np.where(np.isposinf(found), largest, found)
    high = np.where(np.isneginf(found), -largest, np.nextafter(found, np.inf))
    is_in = np.isneginf(found) | _at_most(rising, low, limits)
    is_out = np.isposinf(found) | ~_at_most(rising, high, limits)
    return bool((np.isnan(limits) | (is_in & is_out)).all())


def _at_most(rising: Rising, points: Array, limits: Array) -> Flags:
    with np.errstate(all="ignore"):
        return np.asarray(rising(np.where(np.isfinite(points), points, 0.0)) <= limits)


def _bisect(rising: Rising, limits: Array, low: Array, high: Array, open_: Flags) -> Array:
    """The last number at or above low that is within its limit, where one below high is not."""
    low_key, high_key = _key(low), _key(high)
    while (rows := np.flatnonzero((open_ & (low_key + 1 < high_key)).any(axis=1))).size:
        one, other = low_key[rows], high_key[rows]
        middle = (one >> 1) + (other >> 1) + (one & other & 1)  # their difference may be too large for an integer
        is_in = _at_most(rising, _number(middle), limits[rows])
        is_open = open_[rows] & (one + 1 < other)
        low_key[rows] = np.where(is_open & is_in, middle, one)
        high_key[rows] = np.where(is_open & ~is_in, middle, other)
    return _number(low_key)


def _key(x: Array) -> Longs:
    """Integers in the order of float64 numbers, without gaps."""
    bits = np.ascontiguousarray(x).view(np.int64)
    return np.where(bits < 0, bits ^ SIGN, bits)


def _number(key: Longs) -> Array:
    return np.where(key < 0, key ^ SIGN, key).view(np.float64)


def moved(trees: TreeEnsemble, source: Indices, threshold: Array, nan_left: Flags, n_features: int) -> TreeEnsemble:
    """Trees whose feature i is column source[i] of rows that have `n_features`, with thresholds of those columns."""
    is_leaf = trees.feature < 0
    zero_is_missing = np.zeros(n_features, dtype=bool)
    if trees.zero_is_missing.any():
        zero_is_missing[source[trees.zero_is_missing]] = True
    return dataclasses.replace(
        trees,
        feature=np.where(is_leaf, -1, source[trees.feature]).astype(np.int32),
        threshold=np.where(is_leaf, 0.0, threshold),
        nan_left=nan_left & ~is_leaf,
        n_features=n_features,
        zero_is_missing=zero_is_missing,
    )


def widened(trees: TreeEnsemble, n_features: int) -> TreeEnsemble:
    """The same trees for rows that have more columns."""
    zero_is_missing = np.zeros(n_features, dtype=bool)
    zero_is_missing[: len(trees.zero_is_missing)] = trees.zero_is_missing
    return dataclasses.replace(trees, n_features=n_features, zero_is_missing=zero_is_missing)


def join_ensembles(parts: Sequence[tuple[TreeEnsemble, Array]], offset: Array, n_features: int) -> TreeEnsemble:
    """One ensemble whose outputs (k,) are offset + Σ turn·outputs, for parts with their turn (k, k of the part)."""
    sizes = np.array([len(trees.feature) for trees, _ in parts])
    first = np.concatenate([[0], np.cumsum(sizes)])
    is_narrow = len(offset) == 1 or all(_serves_one(trees, turn) for trees, turn in parts)
    turned = [_turned(trees, turn, is_narrow=is_narrow) for trees, turn in parts]

    def shifted(name: str) -> list[Array]:
        found = [getattr(trees, name) for trees, _ in parts]
        return [np.where(each < 0, -1, each + start) for each, start in zip(found, first, strict=False)]

    joined = {name: np.concatenate([getattr(trees, name) for trees, _ in parts]) for name in ("feature", "threshold")}
    base = offset + sum((turn @ trees.base for trees, turn in parts), np.zeros(len(offset)))
    category_first, category = _join_categories([trees for trees, _ in parts])
    return TreeEnsemble(
        feature=joined["feature"].astype(np.int32),
        threshold=joined["threshold"],
        left=np.concatenate(shifted("left")).astype(np.int32),
        right=np.concatenate(shifted("right")).astype(np.int32),
        nan_left=np.concatenate([trees.nan_left for trees, _ in parts]),
        value=np.concatenate([value for value, _ in turned]),
        roots=np.concatenate(shifted("roots")).astype(np.int32),
        target=np.concatenate([target for _, target in turned]).astype(np.int32),
        base=base,
        n_features=n_features,
        zero_is_missing=_join_zeros([trees for trees, _ in parts], n_features),
        category_first=category_first,
        category=category,
    )


def _serves_one(trees: TreeEnsemble, turn: Array) -> bool:
    """Whether each tree serves one output, and still does when that is turned."""
    return trees.value.shape[1] == 1 and bool(((turn != 0).sum(axis=0) <= 1).all())


def _turned(trees: TreeEnsemble, turn: Array, *, is_narrow: bool) -> tuple[Array, Array]:
    """Values of leaves and targets of trees, with what trees are multiplied by taken in."""
    value, (k, k_own) = trees.value * trees.scale, turn.shape
    if value.shape[1] == k_own and not (is_narrow and k_own == 1 and k > 1):
        return value @ turn.T, np.zeros(trees.n_trees)
    of_node = np.repeat(trees.target, np.diff(np.append(trees.roots, len(trees.feature))))
    if is_narrow:
        to = np.abs(turn).argmax(axis=0)
        return value * turn[to, np.arange(k_own)][of_node][:, None], to[trees.target]
    return value * turn.T[of_node], np.zeros(trees.n_trees)


def _join_zeros(ensembles: Sequence[TreeEnsemble], n_features: int) -> Flags:
    """Features in which 0 is missing, which must be so for all that ask for them."""
    found = np.zeros(n_features, dtype=bool)
    for trees in ensembles:
        found[: len(trees.zero_is_missing)] |= trees.zero_is_missing
    for trees in ensembles:
        used = np.unique(trees.feature[trees.feature >= 0])
        own = np.zeros(n_features, dtype=bool)
        own[: len(trees.zero_is_missing)] = trees.zero_is_missing
        if (found & ~own)[used].any():
            msg = "some of its trees take 0 for a missing value, and others do not"
            raise NoClosedForm(msg)
    return found


def _join_categories(ensembles: Sequence[TreeEnsemble]) -> tuple[Longs, Longs]:
    """Lists of categories of all nodes, one after another."""
    if not any(len(trees.category_first) for trees in ensembles):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    length = [
        np.diff(trees.category_first) if len(trees.category_first) else np.zeros(len(trees.feature), dtype=np.int64)
        for trees in ensembles
    ]
    return np.concatenate([[0], np.cumsum(np.concatenate(length))]), np.concatenate(
        [each.category for each in ensembles]
    )

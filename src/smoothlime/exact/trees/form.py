"""Tree ensembles as closed forms: E f and its slopes under diagonal Σ, by one pass through each tree.

A model is read and proved once. What came of it is kept until the model goes, and used again only while all that its
predictions are made of is the same: a model that was fitted anew, trained further or changed in place is read anew.
(Linear models are read in 0.03 ms, so nothing is kept of those.)
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..._core.optional import require
from ..._core.types import Array, Indices
from ...errors import NoClosedForm
from ...space.neighbourhood import Factor
from ..closed_form import Smoothed
from ..curves import AGREES, Curve, find_curve
from .format import TreeEnsemble
from .jumps import JumpPlan, Jumps, find_jumps, plan_jumps
from .plan import Plan, make_plan
from .read.recognise import Access, probe_rows, recognise
from .read.sklearn import ask_sklearn
from .smoothing import smooth

LIBRARIES = ("catboost", "lightgbm", "sklearn", "xgboost")


class TreesForm:
    """Trees whose outputs are those of the model, and what smoothing them needs."""

    takes_gaps = True

    def __init__(self, trees: TreeEnsemble) -> None:
        self.trees = trees
        self.categorical_features = trees.categorical_features
        self._largest, self.spread = _extent(trees)

    @cached_property
    def _plan(self) -> Plan:
        return make_plan(self.trees)

    @cached_property
    def jump_plan(self) -> JumpPlan:
        """What finding their jumps needs; made when first asked for."""
        return plan_jumps(self.trees)

    def size(self, x: Array) -> float:
        """Sum of the largest leaves: XGBoost adds up in float32, and its errors go by the terms."""
        return self._largest * max(1.0, self.trees.n_trees / 64)  # rounding adds up

    def values(self, x: Array) -> Array:
        """Outputs (r, k)."""
        return self.trees.predict(x)

    def smooth(self, x: Array, factor: Factor, weights: Array) -> Smoothed:
        """E f and its slopes; a missing value is not perturbed, and its slope is 0."""
        std = np.zeros(x.shape[1])  # rows may have more than the features: what is made of fixed ones
        std[factor.free] = factor.std
        found = smooth(self.trees, x, std, weights=weights, plan=self._plan)
        free = factor.free
        return Smoothed(
            slopes=found.gradients[:, free, 0],
            mean=found.values[:, 0],
            fidelity=np.full(len(x), np.nan),
            radius=np.linalg.norm(found.radius[:, free] * factor.std, axis=1),
        )

    def parts(self, x: Array) -> Iterator[tuple[TreesForm, Indices, Array]]:
        """Trees, the rows that they serve, and these as they are compared with thresholds."""
        yield self, np.arange(len(x)), x

    def jumps(self, curve: Curve, x: Array, steps: Array, factor: Factor, weights: Array, controls: Array) -> Jumps:
        """Jumps of a curve of them around rows x (r, d), along every axis through x + steps (1 or r, n, f)."""
        return find_jumps(self.trees, self.jump_plan, curve, x, steps, factor, weights, controls)


def _extent(trees: TreeEnsemble) -> tuple[float, Array]:
    """The sum of the largest leaves, and (k,) the range of the leaves of each tree, added up."""
    total = np.zeros(trees.k)
    if not trees.n_trees:
        return 0.0, total
    is_leaf, starts = (trees.feature < 0)[:, None], np.sort(trees.roots)
    largest = np.maximum.reduceat(np.abs(trees.value).max(axis=1), starts).sum()
    highest = np.maximum.reduceat(np.where(is_leaf, trees.value, -np.inf), starts)
    lowest = np.minimum.reduceat(np.where(is_leaf, trees.value, np.inf), starts)
    if trees.value.shape[1] == trees.k:
        total += (highest - lowest).sum(axis=0)
    else:
        np.add.at(total, trees.target[np.argsort(trees.roots)], (highest - lowest)[:, 0])
    return float(trees.scale * largest), total * trees.scale


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What was read of a model."""

    contents: Any
    form: TreesForm
    why_no_sum: str | None = None
    """Why its everyday output has no closed form, "" where it has one; None as long as nobody asked"""
    curves: tuple[tuple[str, Curve | None], ...] = ()
    """By the methods that were asked, what they make of the sum of the trees, if it is a curve of ours"""


METHODS = ("predict", "predict_proba", "decision_function", "_raw_predict", "transform", "inverse_transform")
"""What models and their parts answer with."""

_READ: dict[int, tuple[weakref.ref[Any], Reading]] = {}
"""By the id of the model. No lock, which a fork could leave locked: threads that ask at once each read the model."""


def read_ensemble(estimator: Any, *, is_margin: bool) -> TreesForm | None:
    """The trees of an estimator, if it is made of trees and its output is a sum of theirs."""
    if type(estimator).__module__.partition(".")[0] not in LIBRARIES:
        return None  # a subclass may predict as it likes: it is asked instead
    access = recognise(estimator)
    if access is None:
        return None
    require("numba", extra="trees", to="explain trees exactly")
    reading = _read(estimator, access)
    if reading.why_no_sum is None and not is_margin:
        reading = dataclasses.replace(reading, why_no_sum=access.why_no_sum(reading.form.trees))
        _keep_if_same(estimator, access, reading)
    if not is_margin and reading.why_no_sum:
        raise NoClosedForm(reading.why_no_sum)
    return reading.form


def read_curve(estimator: Any, method: str) -> tuple[TreesForm, Curve | None] | None:
    """The trees of an estimator, and what its prediction method makes of their sum; None if it is not made of trees.

    Of the curve, None where it is none of ours. It is found at the rows at which the trees were proved.
    """
    access = recognise(estimator) if type(estimator).__module__.partition(".")[0] in LIBRARIES else None
    if access is None:
        return None
    require("numba", extra="trees", to="explain trees exactly")
    reading = _read(estimator, access)
    known = dict(reading.curves)
    if method not in known:
        rows = probe_rows(reading.form.trees)
        answers = ask_sklearn(estimator, method)(rows)
        known[method] = find_curve(reading.form.values(rows), answers, AGREES)
        _keep_if_same(estimator, access, dataclasses.replace(reading, curves=tuple(known.items())))
    return reading.form, known[method]


def _read(estimator: Any, access: Access) -> Reading:
    """What was read of an estimator before, or now."""
    contents = access.contents(), _answering(estimator)
    reading = _recall(estimator, contents)
    if reading is None:
        reading = Reading(contents, TreesForm(access.prove()))
        _keep_if_same(estimator, access, reading)
    return reading


def _keep_if_same(estimator: Any, access: Access, reading: Reading) -> None:
    """Keep what was read, unless another thread has changed the estimator meanwhile."""
    if reading.contents == (access.contents(), _answering(estimator)):
        _keep(estimator, reading)


def _recall(estimator: Any, contents: Any) -> Reading | None:
    """What was read of the estimator, if it holds now what it held then."""
    known = _READ.get(id(estimator))
    if known is None or known[0]() is not estimator or known[1].contents != contents or contents[1] is None:
        return None
    return known[1]


def _answering(estimator: Any) -> frozenset[Any] | None:
    """The classes of a model and its parts, and the functions that answer for them.

    None where others were put in their place, which may do anything: the model is proved each time.
    """
    parts = [estimator, getattr(estimator, "booster_", None), getattr(estimator, "_Booster", None)]
    return answering([*parts, *np.ravel(getattr(estimator, "estimators_", [])).tolist()])


def answering(parts: Sequence[Any]) -> frozenset[Any] | None:
    """The classes of some objects, and the functions that answer for them; None where others took their place."""
    if any(not getattr(each, "__dict__", {}).keys().isdisjoint(METHODS) for each in parts):
        return None
    return frozenset(
        (kind, *(inspect.getattr_static(kind, name, None) for name in METHODS))
        for kind in {type(each) for each in parts}
    )


def _keep(estimator: Any, reading: Reading) -> None:
    """Keep it as long as the estimator lives, unless that takes no weak references."""
    at = id(estimator)
    with contextlib.suppress(TypeError):
        _READ[at] = weakref.ref(estimator, partial(_READ.pop, at)), reading

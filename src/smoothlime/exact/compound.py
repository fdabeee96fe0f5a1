"""Estimators made of others: pipelines, votes, averages, calibrated classifiers, transformed targets.

Each is taken apart into terms, known trees behind a curve and lines, which it adds up with weights. Every part that is
not known is named in the reason why there is no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core.types import Array
from ..errors import NoClosedForm
from ..models.fitted import attribute
from .bend_links import as_link
from .curves import IDENTITY, Bend, Curve
from .fronts import Front, Picked, steps_within
from .linear import LinearModel, is_sklearn, read_linear
from .links import LINKS
from .on_rows import Rows
from .sums import join_lines
from .trees.columns import join_ensembles
from .trees.form import TreesForm, read_curve, read_ensemble
from .trees.format import TreeEnsemble

INNER = {
    "GridSearchCV": "best_estimator_", "RandomizedSearchCV": "best_estimator_",
    "HalvingGridSearchCV": "best_estimator_", "HalvingRandomSearchCV": "best_estimator_",
    "FrozenEstimator": "estimator", "TunedThresholdClassifierCV": "estimator_",
    "FixedThresholdClassifier": "estimator_",
}  # fmt: skip
"""Estimators that hand their rows on as they are, and the attribute that holds to whom."""

INVERSES = {"exp": (1.0, 0.0), "exp2": (np.log(2.0), 0.0), "expm1": (1.0, -1.0)}
"""Inverses of numpy that are exp(scale·u) + shift."""

FAR = 2.0**100
"""Where the mean of a target takes no digits from its scale, in the units of what its regressor predicts."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """Trees behind a curve, or a line (which has a link of its own, and no curve); turn (k, k of its outputs)."""

    form: TreeEnsemble | LinearModel
    curve: Curve | None
    turn: Array

    @property
    def is_sum(self) -> bool:
        """Whether its outputs are the plain sums of trees, or plain lines."""
        if isinstance(self.form, LinearModel):
            return self.form.link is LINKS["identity"]
        return self.curve is not None and self.curve.name == "identity" and self.curve.then is None


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """Outputs (k,) = offset + Σ turn · outputs of the terms."""

    terms: tuple[Term, ...]
    offset: Array

    def turned(self, turn: Array, offset: Array | float = 0.0) -> Mix:
        """What comes of outputs that are turned by (k', k) and shifted."""
        terms = tuple(replace(term, turn=turn @ term.turn) for term in self.terms)
        return Mix(terms, turn @ self.offset + offset)


def is_compound(estimator: Any) -> bool:
    """Whether an estimator is made of others in a way that is known."""
    return is_sklearn(estimator) and type(estimator).__name__ in READERS


def read_mix(estimator: Any, ask: str, front: Front, rows: Rows) -> Mix:
    """What an estimator answers to `ask`: predict, predict_proba, decision_function or margin, behind a front."""
    rows.parts.append(estimator)
    if is_compound(estimator):
        return READERS[type(estimator).__name__](estimator, ask, front, rows)
    line = read_linear(estimator, "decision_function" if ask == "margin" else ask)
    if line is not None:
        line = rows.line(line, front)
        return Mix((Term(line, None, np.eye(len(line.offset))),), np.zeros(len(line.offset)))
    found = _trees_behind(estimator, ask)
    if found is None:
        what = "probabilities of three classes or more of the " if _is_softmax_line(estimator, ask) else "its "
        msg = f"{what}{type(estimator).__name__} {'have' if what != 'its ' else 'has'} no structure that is known here"
        raise NoClosedForm(msg)
    form, curve = found
    if curve is None:
        msg = f"what its {type(estimator).__name__} makes of the sum of its trees is none of the curves that we know"
        raise NoClosedForm(msg)
    return _of_trees(rows.trees(form, front.before(estimator)), curve)


def _trees_behind(estimator: Any, ask: str) -> tuple[TreesForm, Curve | None] | None:
    if ask != "margin":
        return read_curve(estimator, ask)
    form = read_ensemble(estimator, is_margin=True)
    return None if form is None else (form, IDENTITY)


def _is_softmax_line(estimator: Any, ask: str) -> bool:
    return ask == "predict_proba" and read_linear(estimator, "decision_function") is not None


def _of_trees(trees: TreeEnsemble, curve: Curve) -> Mix:
    """Trees behind a curve; of one that gives both classes, the second is the curve."""
    if not curve.mirrors:
        k = trees.k
        return Mix((Term(trees, curve, np.eye(k)),), np.zeros(k))
    turn = np.array([[-1.0], [1.0]])
    return Mix((Term(trees, replace(curve, mirrors=False), turn),), np.array([1.0, 0.0]))


def average(mixes: Sequence[Mix], weights: Sequence[float] | None = None) -> Mix:
    """The mean, or the weighted mean, of the outputs of several."""
    share = np.ones(len(mixes)) if weights is None else np.asarray(weights, dtype=np.float64)
    share = share / share.sum()
    k = len(mixes[0].offset)
    parts = [mix.turned(each * np.eye(k)) for mix, each in zip(mixes, share, strict=True)]
    terms = tuple(term for part in parts for term in part.terms)
    return Mix(terms, sum((part.offset for part in parts), np.zeros(k)))


def joined(mix: Mix, n_features: int) -> Mix:
    """The same with all plain trees in one ensemble, and all plain lines in one."""
    k = len(mix.offset)
    plain = [term for term in mix.terms if term.is_sum]
    others = [term for term in mix.terms if not term.is_sum]
    trees = [(term.form, term.turn) for term in plain if isinstance(term.form, TreeEnsemble)]
    lines = [(term.form, term.turn) for term in plain if isinstance(term.form, LinearModel)]
    found = list(others)
    if len(trees) == 1 and np.array_equal(trees[0][1], np.eye(k)):
        found.insert(0, plain[[isinstance(term.form, TreeEnsemble) for term in plain].index(True)])
    elif trees:
        found.insert(0, Term(join_ensembles(trees, np.zeros(k), n_features), IDENTITY, np.eye(k)))
    if lines:
        found.insert(0, Term(join_lines(lines), None, np.eye(k)))
    return Mix(tuple(found), mix.offset)


def bent(mix: Mix, bend: Bend, what: str) -> Mix:
    """What a bend makes of outputs that are a curve of one sum of trees, or one line."""
    k = len(mix.offset)
    if len(mix.terms) > 1:
        mix = joined(mix, max(_width(term.form) for term in mix.terms))
    term = mix.terms[0]
    if len(mix.terms) > 1:
        msg = f"{what} bends a sum of several curves, which we know no more of"
        raise NoClosedForm(msg)
    if isinstance(term.form, LinearModel):
        return _bent_line(term.form, term.turn, mix.offset, bend, what)
    if term.is_sum:  # a sum of trees takes in what it is multiplied by
        trees = join_ensembles([(term.form, term.turn)], mix.offset, term.form.n_features)
        return Mix((Term(trees, Curve("identity", then=bend), np.eye(k)),), np.zeros(k))
    own = np.diag(term.turn) if term.turn.shape == (k, k) else np.zeros(k)
    if term.curve is None or term.curve.then is not None or not (np.diag(own) == term.turn).all():
        msg = f"{what} bends a mixture of curves, which we know no more of"
        raise NoClosedForm(msg)
    bend = replace(bend, scale=bend.scale * own, shift=bend.shift + bend.scale * mix.offset)
    return Mix((Term(term.form, replace(term.curve, then=bend), np.eye(k)),), np.zeros(k))


def _width(form: TreeEnsemble | LinearModel) -> int:
    return form.n_features if isinstance(form, TreeEnsemble) else form.coef.shape[1]


def _bent_line(line: LinearModel, turn: Array, offset: Array, bend: Bend, what: str) -> Mix:
    plain = line.link is LINKS["identity"]
    link = as_link(bend)
    if not plain or link is None:
        msg = f"{what} bends {'several lines together' if plain else 'a curve of a line'}, which has no closed form"
        raise NoClosedForm(msg)
    line, k = join_lines([(line, turn)]), len(offset)
    scale, terms = bend.scale, np.abs(line.intercept) if line.terms is None else line.terms
    found = replace(
        line,
        coef=scale[:, None] * line.coef,
        intercept=scale * (line.intercept + offset) + bend.shift,
        terms=np.abs(scale) * (terms + np.abs(offset)) + np.abs(bend.shift),
        gap=None if line.gap is None else scale[:, None] * line.gap,
        link=link,
    )
    return Mix((Term(found, None, np.eye(k)),), np.zeros(k))


def _fitted(estimator: Any, name: str) -> Any:
    """What an estimator holds once it is fitted."""
    found = attribute(estimator, name)
    if found is None:
        msg = f"its {type(estimator).__name__} is not fitted"
        raise NoClosedForm(msg)
    return found


# ---- one reader for each kind


def _pipeline(estimator: Any, ask: str, front: Front, rows: Rows) -> Mix:
    for _, step in estimator.steps[:-1]:
        rows.parts += steps_within(step)
        front = front.after(step)
    return read_mix(estimator.steps[-1][1], ask, front, rows)


def _handed_on(estimator: Any, ask: str, front: Front, rows: Rows) -> Mix:
    return read_mix(_fitted(estimator, INNER[type(estimator).__name__]), ask, front, rows)


def _voting(estimator: Any, ask: str, front: Front, rows: Rows) -> Mix:
    members = [read_mix(each, ask, front, rows) for each in _fitted(estimator, "estimators_")]
    weights = estimator.weights
    if weights is not None:
        weights = [weight for (_, each), weight in zip(estimator.estimators, weights, strict=True) if each != "drop"]
    return average(members, weights)


def _bagging(estimator: Any, ask: str, front: Front, rows: Rows) -> Mix:
    members, classes = [], getattr(estimator, "classes_", None)
    for each, places in zip(_fitted(estimator, "estimators_"), estimator.estimators_features_, strict=True):
        if ask == "predict_proba" and not hasattr(each, "predict_proba"):
            msg = f"its {type(each).__name__} members vote by labels, which are no sum that is known"
            raise NoClosedForm(msg)
        mix = read_mix(each, ask, front.after(Picked(np.asarray(places))), rows)
        if classes is not None and ask == "predict_proba" and len(each.classes_) < len(classes):
            mix = mix.turned(np.eye(len(classes))[:, np.asarray(each.classes_, dtype=int)])
        members.append(mix)
    return average(members)


def _calibrated(estimator: Any, ask: str, front: Front, rows: Rows) -> Mix:
    return average([_one_calibrated(each, front, rows) for each in _fitted(estimator, "calibrated_classifiers_")])


def _one_calibrated(member: Any, front: Front, rows: Rows) -> Mix:
    """A classifier and its calibrators: one for two classes, else one for each, whose shares are taken."""
    inner, what = member.estimator, "its calibration"
    rows.parts += [member, *member.calibrators]
    if member.method not in ("sigmoid", "isotonic"):
        msg = f"{what} by {member.method!r} is not known here"
        raise NoClosedForm(msg)
    ask = "decision_function" if hasattr(inner, "decision_function") else "predict_proba"
    mix = read_mix(inner, ask, front, rows)
    is_binary = len(member.classes) == 2
    if is_binary and len(mix.offset) == 2:
        mix = mix.turned(np.array([[0.0, 1.0]]))
    k = 1 if is_binary else len(member.classes)
    if not (len(mix.offset) == len(member.calibrators) == k and list(inner.classes_) == list(member.classes)):
        msg = f"a {type(inner).__name__} within it has not seen all of its classes"
        raise NoClosedForm(msg)
    found = bent(mix, replace(_calibrator(member.calibrators), shares=not is_binary), what)
    return found.turned(np.array([[-1.0], [1.0]]), np.array([1.0, 0.0])) if is_binary else found


def _calibrator(calibrators: Sequence[Any]) -> Bend:
    """Logistic curves of −(a·u + b), or straight lines between the points of isotonic regressions."""
    if all(hasattr(each, "a_") for each in calibrators):
        a, b = (np.array([float(getattr(each, name)) for each in calibrators]) for name in ("a_", "b_"))
        return Bend("logistic", -a, -b)
    tables = tuple(
        (np.asarray(each.X_thresholds_, dtype=np.float64), np.asarray(each.y_thresholds_, dtype=np.float64))
        for each in calibrators
    )
    return Bend("table", np.ones(len(tables)), np.zeros(len(tables)), tables)


def _target(estimator: Any, ask: str, front: Front, rows: Rows) -> Mix:
    rows.parts.append(_fitted(estimator, "transformer_"))
    mix = read_mix(_fitted(estimator, "regressor_"), "predict", front, rows)
    return _inverse(mix, estimator.transformer_)


def _inverse(mix: Mix, transformer: Any) -> Mix:
    """What the inverse of a target's transformation makes of predictions."""
    kind, k = type(transformer).__name__ if is_sklearn(transformer) else "", len(mix.offset)
    what = "the inverse of its target's transformation"
    if kind == "FunctionTransformer":
        function = transformer.inverse_func
        if function is None:
            return mix
        name = function.__name__ if isinstance(function, np.ufunc) and not transformer.inv_kw_args else ""
        if name in INVERSES:
            scale, shift = INVERSES[name]
            return bent(mix, Bend("exponential", np.full(k, scale), np.zeros(k)), what).turned(np.eye(k), shift)
        if name == "square":
            return bent(mix, Bend("square", np.ones(k), np.zeros(k)), what)
        msg = f"{what} is {getattr(function, '__name__', function)!r}, which is none of exp, exp2, expm1 and square"
        raise NoClosedForm(msg)
    if kind in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"):
        zero, low, high = (transformer.inverse_transform(np.full((1, k), each))[0] for each in (0.0, -FAR, FAR))
        return mix.turned(np.diag((high - low) / (2 * FAR)), zero)
    msg = f"{what}, a {type(transformer).__name__}, is not known here"
    raise NoClosedForm(msg)


READERS: dict[str, Callable[[Any, str, Front, Rows], Mix]] = {
    "Pipeline": _pipeline,
    **dict.fromkeys(INNER, _handed_on),
    "VotingRegressor": _voting,
    "VotingClassifier": _voting,
    "BaggingRegressor": _bagging,
    "BaggingClassifier": _bagging,
    "CalibratedClassifierCV": _calibrated,
    "TransformedTargetRegressor": _target,
}

"""Models made of others, once they were taken apart: sums of closed forms, and of trees behind curves.

A model is taken apart at each call, as its parts may have changed; what takes time is kept as long as it lives.
"""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._core.types import Array, Points
from ..errors import MissingExtra, NoClosedForm
from ..models.on_scales import ModelOnScales
from ..models.on_tables import TableModel
from ..models.problem import Problem
from ..space.neighbourhood import Factor
from ..space.row_scales import Scales
from .bent_trees import BentTrees
from .closed_form import ClosedForm
from .compound import Mix, is_compound, joined, read_mix
from .curves import IDENTITY, Curve
from .fronts import View
from .linear import LinearModel
from .on_rows import Rows
from .on_scales import TreesOnScales, put_on_scales
from .sums import FormSum, spread_of
from .trees.columns import widened
from .trees.form import TreesForm, answering
from .trees.format import TreeEnsemble
from .trees.jumps import Jumps
from .trees.read.recognise import probe_rows

_KEPT: dict[int, tuple[weakref.ref[Any], dict[Any, Any]]] = {}
"""By the id of the model: thresholds that were moved back to features, and forms of its trees."""

FORMS, MOST_KEPT = 16, 4_096
"""Forms of trees that are kept of one model, and other things before all are forgotten: it was changed that often."""


@dataclass(frozen=True, slots=True, eq=False)
class Proofs:
    """Which readings of a model were seen to be the model, at the thresholds of all of its trees."""

    known: dict[Any, Any]
    reading: Any
    """All that was read, and what answers for it; None where that was replaced, and may do anything"""
    forms: tuple[Any, ...]
    """Which the reading names by their ids"""

    @property
    def is_proved(self) -> bool:
        """Whether this reading was."""
        return self.reading is not None and self.reading in self.known

    def note(self) -> None:
        """That it was."""
        if self.reading is not None:
            if len(self.known) >= FORMS:
                self.known.clear()
            self.known[self.reading] = self.forms


@dataclass(frozen=True, slots=True, eq=False)
class KnownSum:
    """A sum of trees behind curves, and of closed forms; outputs (k,), for parts with their turn (k, k of the part)."""

    bent: tuple[tuple[BentTrees, Array], ...]
    rest: FormSum
    x: Array
    """(r, D) the rows, and beside them what the model makes of held columns"""
    place: Callable[[Array, Array], Array]
    """The same for points with other held columns, as the model is asked and as numbers (n, d)"""
    proofs: Proofs
    is_by_column: bool
    """Whether what the model makes of held columns is made of one of them each"""

    def has_closed_form(self, factor: Factor) -> bool:
        """Whether nothing needs to be drawn."""
        return not self.bent

    def closed_form(self, factor: Factor) -> tuple[FormSum | None, str]:
        """Itself where all of it has a closed form, or None and the reason why it has none."""
        if not self.bent:
            return self.rest, ""
        if not factor.is_diagonal:
            return None, "trees have one only where features are perturbed independently of each other, and Σ is full"
        return None, "it puts sums of trees through a curve, and what comes out has no closed form"

    def size(self, x: Array) -> float:
        """What the sizes of its parts add up to."""
        return self.rest.size(x) + sum(np.abs(turn).sum(axis=1).max() * part.size(x) for part, turn in self.bent)

    @property
    def spread(self) -> Array:
        """(k,) how much outputs can vary at all."""
        return sum((spread_of(part.spread, turn) for part, turn in self.bent), self.rest.spread)

    @property
    def is_tabled(self) -> bool:
        """Whether a table bends the outputs of any part."""
        return any(part.is_tabled for part, _ in self.bent)

    def values(self, x: Array) -> Array:
        """Outputs (r, k)."""
        return sum((part.values(x) @ turn.T for part, turn in self.bent), self.rest.values(x))

    def known_slopes(self, x: Array, factor: Factor, weights: Array) -> Array | None:
        """Exact slopes (r, t, f) of its closed forms, for outputs weighed by (r, t, k); None if there are none."""
        if not self.rest.parts:
            return None
        found = [self.rest.smooth(x, factor, weights[:, i]).slopes for i in range(weights.shape[1])]
        return np.stack(found, axis=1)

    def tangents(self, x: Array, weights: Array) -> Array:
        """Weights (r, t, m) on the margins of all parts, one after another: see `BentTrees.tangents`."""
        return np.concatenate([part.tangents(x, weights @ turn) for part, turn in self.bent], axis=-1)

    def margin_slopes(self, x: Array, factor: Factor, weights: Array) -> Array:
        """Exact smoothed slopes (r, t, f) of margins weighed by (r, t, m)."""
        parts = self.split(weights)
        return np.sum([part.margin_slopes(x, factor, own) for (part, _), own in parts], axis=0)

    def jumps(self, x: Array, steps: Array, factor: Factor, weights: Array, controls: Array) -> Jumps:
        """Jumps of the trees in it, at the same draws for all; outputs (r, t, n) hold the closed forms as well."""
        found = [part.jumps(x, steps, factor, weights @ turn, own) for (part, turn), own in self.split(controls)]
        outputs = np.sum([each.outputs for each in found], axis=0) + self._rest_at(x, steps, factor, weights)
        slopes, of_margin = (
            np.sum([getattr(each, name) for each in found], axis=0) for name in ("slopes", "of_margin")
        )
        return Jumps(outputs, slopes, of_margin)

    def split(self, weights: Array) -> list[tuple[tuple[BentTrees, Array], Array]]:
        """Parts with their own weights on margins."""
        ends = np.cumsum([len(part.form.spread) for part, _ in self.bent])
        return list(zip(self.bent, np.split(weights, ends[:-1], axis=-1), strict=True))

    def _rest_at(self, x: Array, steps: Array, factor: Factor, weights: Array) -> Array:
        """(r, t, n) what the closed forms are at the draws."""
        if not self.rest.parts:
            return np.asarray((weights @ self.rest.offset)[:, :, None])
        n = steps.shape[1]
        points = np.repeat(x[:, None, :], n, axis=1)
        points[:, :, factor.free] += steps
        values = self.rest.values(points.reshape(-1, x.shape[1])).reshape(len(x), n, -1)
        return np.einsum("rtk,rnk->rtn", weights, values)


def find_known(problem: Problem, *, is_drawn: bool = False) -> tuple[KnownSum | None, str]:
    """What a model is made of, around the rows, or None and the reason why it is not known; "" if it is one piece.

    Where it `is_drawn`, plain sums of trees are among those that are, though they have a closed form for diagonal Σ.
    """
    view = view_of(problem)
    asked: Any = view.model.model if isinstance(view.model, TableModel) else view.model
    estimator = getattr(asked, "estimator", None)
    if estimator is None or not is_compound(estimator):
        return None, ""
    kept = _kept_of(estimator)
    rows = Rows(view, kept)
    try:
        mix = read_mix(estimator, "margin" if asked.switch is not None else asked.ask, view.front(), rows)
        mix, scales = joined(mix, rows.width), _scales_of(problem.model, rows.width)
        has_forms = problem.factor.is_diagonal and not is_drawn
        if scales is not None and not all(term.is_sum for term in mix.terms):
            has_forms = False  # what stands beside trees that are drawn is asked at draws, which are scores
        return _put_together(mix, rows, kept, scales, has_forms=has_forms), ""
    except (NoClosedForm, MissingExtra) as err:
        return None, f"this {type(estimator).__name__} is not known throughout: {err}"
    except (
        AttributeError,
        IndexError,
        KeyError,
        TypeError,
        ValueError,
    ) as err:  # parts that were taken out, or changed
        why_not = f"its parts do not fit together ({type(err).__name__}: {err})"
        return None, f"this {type(estimator).__name__} is not known throughout: {why_not}"


def view_of(problem: Problem) -> View:
    """How the model itself is asked, whatever scales steps are taken on."""
    model: Any = problem.model
    rows = problem.rows
    if isinstance(model, ModelOnScales):
        model, rows = model.model, model.curves.rows
    return View(model, rows, problem.x, problem.factor)


def _scales_of(model: Any, width: int) -> Scales | None:
    """The scales that steps are taken on, none of them for held columns; None where all are plain."""
    if not isinstance(model, ModelOnScales):
        return None
    scales = model.curves.scales.scales
    return (*scales, *[None] * (width - len(scales)))


def _put_together(mix: Mix, rows: Rows, kept: dict[Any, Any], scales: Scales | None, *, has_forms: bool) -> KnownSum:
    """`has_forms` says whether plain sums of trees are taken for closed forms."""
    bent: list[tuple[BentTrees, Array]] = []
    rest: list[tuple[ClosedForm, Array]] = []
    plain: list[LinearModel | TreesForm] = []
    for term in mix.terms:
        own = term.form
        is_line = isinstance(own, LinearModel)
        plain.append(
            _widened(own, rows.width) if isinstance(own, LinearModel) else _form_of(widened(own, rows.width), kept)
        )
        form = _on(plain[-1], scales)
        if is_line or (term.is_sum and has_forms):
            rest.append((form, term.turn))
        else:
            assert isinstance(form, TreesForm | TreesOnScales)
            bent.append((BentTrees(form, term.curve or IDENTITY), term.turn))
    if bent and rest and scales is not None:
        msg = "lines stand beside trees in it, and steps are taken in logarithms or ranks"
        raise NoClosedForm(msg)
    proofs = _proofs(mix, plain, rows, kept)
    return KnownSum(tuple(bent), FormSum(tuple(rest), mix.offset), rows.x, rows.place, proofs, rows.is_by_column)


def _proofs(mix: Mix, forms: list[LinearModel | TreesForm], rows: Rows, kept: dict[Any, Any]) -> Proofs:
    who = answering(rows.parts)
    what = tuple(
        (_named(form), _written(term.curve), term.turn.tobytes()) for term, form in zip(mix.terms, forms, strict=True)
    )
    reading = None if who is None else (who, what, mix.offset.tobytes())
    return Proofs(kept.setdefault("proofs", {}), reading, tuple(forms))


def _named(form: LinearModel | TreesForm) -> Any:
    """Trees by their id, as they are kept; a line by its numbers."""
    return id(form) if isinstance(form, TreesForm) else (form.coef.tobytes(), form.intercept.tobytes(), id(form.link))


def _written(curve: Curve | None) -> Any:
    """All that a curve is."""
    if curve is None or curve.then is None:
        return curve
    then = curve.then
    numbers = (then.scale, then.shift, *(each for table in then.tables for each in table))
    return dataclasses.replace(curve, then=None), then.name, then.shares, *(each.tobytes() for each in numbers)


def _on(form: LinearModel | TreesForm, scales: Scales | None) -> ClosedForm:
    """A form of f∘T for that of f."""
    if scales is None:
        return form
    if isinstance(form, LinearModel) and form.gap is not None:
        form = dataclasses.replace(form, gap=None)
    found, why_not = put_on_scales(form, scales)
    if found is None:
        raise NoClosedForm(why_not)
    return found


def _widened(line: LinearModel, width: int) -> LinearModel:
    more = ((0, 0), (0, width - line.coef.shape[1]))
    gap = None if line.gap is None else np.pad(line.gap, more)
    return dataclasses.replace(line, coef=np.pad(line.coef, more), gap=gap)


def _form_of(trees: TreeEnsemble, kept: dict[Any, Any]) -> TreesForm:
    """The form of trees, the one of an earlier call where that had the same."""
    forms: list[TreesForm] = kept.setdefault("forms", [])
    for form in forms:
        if _is_same(form.trees, trees):
            return form
    found = TreesForm(trees)
    forms[FORMS - 1 :] = []
    forms.insert(0, found)
    return found


def _is_same(one: TreeEnsemble, other: TreeEnsemble) -> bool:
    """Whether two ensembles are the same numbers."""
    if (one.n_features, one.averaged) != (other.n_features, other.averaged):
        return False
    names = [each.name for each in dataclasses.fields(one) if each.name not in ("n_features", "averaged")]
    pairs = ((getattr(one, name), getattr(other, name)) for name in names)
    return all(a is b or np.array_equal(a, b) for a, b in pairs)


def _kept_of(estimator: Any) -> dict[Any, Any]:
    """What was kept of an estimator, to be added to."""
    known = _KEPT.get(id(estimator))
    if known is not None and known[0]() is estimator and len(known[1]) < MOST_KEPT:
        return known[1]
    found: dict[Any, Any] = {}
    with contextlib.suppress(TypeError):
        _KEPT[id(estimator)] = weakref.ref(estimator, partial(_KEPT.pop, id(estimator))), found
    return found


def threshold_points(known: KnownSum, view: View) -> tuple[Points, Array]:
    """Points on, next to and away from the thresholds of the trees, as the model is asked and as known numbers.

    There are none where there are no trees.
    """
    forms = [part.form for part, _ in known.bent] + [form for form, _ in known.rest.parts]
    rows, x = [view.rows[:0]], [known.x[:0]]
    for form in forms:
        plain = form.form if isinstance(form, TreesOnScales) else form
        if not isinstance(plain, TreesForm):
            continue
        probes = probe_rows(plain.trees)
        at = np.arange(len(probes)) % len(view.rows)
        used = np.intersect1d(plain.trees.feature, view.factor.free)
        for source, points in ((view.rows, rows), (known.x, x)):
            moved = source[at].copy()
            moved[:, used] = probes[:, used]
            points.append(moved)
    return np.concatenate(rows), np.concatenate(x)

"""What was read of a model's parts, in coordinates that all of them share: the features of the rows, and more.

What pipelines make of held columns stands beside the features, one column for each; it never moves. Thresholds and
coefficients of what they make of perturbed ones are moved back to the features themselves.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .._core.types import Array
from ..errors import NoClosedForm
from .fronts import Column, Front, Picked, View, is_by_column
from .linear import LinearModel
from .trees.columns import AROUND, LARGEST, Rising, is_last_below, last_below, moved
from .trees.form import TreesForm
from .trees.format import TreeEnsemble

BOUNDS = (LARGEST, 1e20, 1e10, 1e5)
"""Largest numbers that steps are asked for, the first that none of them refuses."""


class Rows:
    """Collects held columns and parts while a model is read; `kept` is what earlier calls found, and may find again."""

    def __init__(self, view: View, kept: dict[Any, Any]) -> None:
        self.view, self.kept = view, kept
        self.parts: list[Any] = []
        self._held: list[tuple[Front, list[int]]] = []
        self.width = view.x.shape[1]

    @property
    def x(self) -> Array:
        """(r, D) the rows, and the held columns beside them."""
        held = [front.held()[:, inner] for front, inner in self._held]
        return np.concatenate([self._numbers(self.view.x), *held], axis=1)

    def place(self, points: Array, x: Array) -> Array:
        """The same for points (n, d) with other held columns, as the model is asked and as numbers."""
        given = self.view.given(points) if self._held else None
        held = [front.held(given)[:, inner] for front, inner in self._held]
        return np.concatenate([self._numbers(x), *held], axis=1)

    @property
    def is_by_column(self) -> bool:
        """Whether each held column beside the features is made of one column alone."""
        steps = [getattr(step, "__self__", None) for front, _ in self._held for step in front.steps]
        return all(step is not None and is_by_column(step) for step in steps)

    def _numbers(self, x: Array) -> Array:
        """Columns that hold no numbers are NaN, which would be missing values; nothing asks for them."""
        table = getattr(self.view.model, "table", None)
        return x if table is None else np.where(table.is_numeric, x, 0.0)

    def _hold(self, front: Front, inner: list[int]) -> dict[int, int]:
        """Positions that inner columns get beside the features."""
        if not inner:
            return {}
        self._held.append((front, inner))
        start, self.width = self.width, self.width + len(inner)
        return {i: start + n for n, i in enumerate(inner)}

    def line(self, line: LinearModel, front: Front) -> LinearModel:
        """A line of inner columns as a line of the features."""
        columns, d = _checked(front, line.coef.shape[1]), line.coef.shape[1]
        used = [i for i in range(d) if line.coef[:, i].any()]
        held = self._hold(front, [i for i in used if not (columns[i].moves or columns[i].is_same)])
        fills = self._fills(front)
        coef, gap = np.zeros((2, len(line.coef), self.width))
        terms = np.abs(line.intercept) if line.terms is None else line.terms
        intercept = line.intercept.copy()
        for i in used:
            column, c = columns[i], line.coef[:, i]
            if not column.is_line:
                msg = f"its steps bend feature {column.source} before it reaches a linear model"
                raise NoClosedForm(msg)
            coef[:, held.get(i, column.source)] += c * column.scale
            intercept, terms = intercept + c * column.shift, terms + np.abs(c) * column.added
            if column.moves and not np.isnan(fills[i]):
                gap[:, column.source] += c * (fills[i] - column.shift)
        takes_gaps = not np.isnan(fills[[i for i in used if columns[i].moves]]).any()
        return dataclasses.replace(line, coef=coef, intercept=intercept, terms=terms, gap=gap, takes_gaps=takes_gaps)

    def trees(self, form: TreesForm, front: Front) -> TreeEnsemble:
        """Trees of inner columns as trees of the features."""
        trees = form.trees
        columns = _checked(front, trees.n_features)
        own = self._thresholds_of(form)
        used = list(own)
        _refuse(trees, columns)
        held = self._hold(front, [i for i in used if not (columns[i].moves or columns[i].is_same)])
        fills = self._fills(front)
        thresholds = self._thresholds(form, front, [i for i in used if columns[i].moves and not columns[i].is_same])
        key = id(form), columns, tuple(held.items()), fills.tobytes(), self.width
        form_then, found_then, known = self.kept.get(key, (None, {}, None))
        if form_then is form and all(found_then[i][1] is outer for i, (_, outer) in thresholds.items()):
            return known
        source = np.array([held.get(i, max(column.source, 0)) for i, column in enumerate(columns)], dtype=np.intp)
        threshold, nan_left = trees.threshold.copy(), trees.nan_left.copy()
        numeric = (trees.feature >= 0) & ~trees.is_categorical
        for i in used:
            if columns[i].moves and not np.isnan(fills[i]):
                at = numeric & (trees.feature == i)
                nan_left[at] = fills[i] <= trees.threshold[at]
        for i, (inner, outer) in thresholds.items():
            nodes = np.flatnonzero(numeric & (trees.feature == i) & np.isfinite(trees.threshold))
            threshold[nodes] = outer[np.searchsorted(inner, trees.threshold[nodes])]
        found = moved(trees, source, threshold, nan_left, self.width)
        self.kept[key] = form, thresholds, found
        return found

    def _fills(self, front: Front) -> Array:
        """What inner columns are where all that is perturbed is missing; NaN where that is missing, too, or refused."""
        nothing = np.full(len(front.columns), np.nan)
        if all(isinstance(getattr(step, "__self__", None), Picked) for step in front.steps):
            return nothing
        row = self.view.rows[:1].copy()
        row[:, self.view.factor.free] = np.nan
        try:
            with np.errstate(all="ignore"):
                return front.held(self.view.given(row))[0]
        except NoClosedForm:
            return nothing

    def _thresholds(self, form: TreesForm, front: Front, inner: list[int]) -> dict[int, tuple[Array, Array]]:
        """Of inner columns, their thresholds and the same of the features that they are made of."""
        found: dict[int, tuple[Array, Array]] = {}
        left = list(inner)
        while left:  # two inner columns of one feature cannot both be looked for in one row
            now: dict[int, int] = {}
            for i in left:
                now.setdefault(front.columns[i].source, i)
            some = list(now.values())
            found |= self._moved_back(form, front, some)
            left = [i for i in left if i not in some]
        return found

    def _moved_back(self, form: TreesForm, front: Front, inner: list[int]) -> dict[int, tuple[Array, Array]]:
        own = self._thresholds_of(form)
        limits = np.full((max(len(own[i]) for i in inner), len(inner)), np.nan)
        for n, i in enumerate(inner):
            limits[: len(own[i]), n] = own[i]
        rising = self._rising(front, inner)
        key = id(form), front.columns, tuple(inner)
        form_then, known, largest, columns = self.kept.get(key, (None, None, 0.0, {}))
        if form_then is not form or not is_last_below(rising, limits, known, largest=largest):
            largest = _bound(rising, len(inner))
            guess, off = _guess([front.columns[i] for i in inner], limits)
            known = last_below(rising, limits, guess, off, largest=largest)
            columns = {i: (own[i], known[: len(own[i]), n]) for n, i in enumerate(inner)}
            self.kept[key] = form, known, largest, columns
        return dict(columns)

    def _thresholds_of(self, form: TreesForm) -> dict[int, Array]:
        """Features that trees ask for, and where they split them by number."""
        form_then, found = self.kept.get(id(form), (None, {}))
        if form_then is not form:
            trees = form.trees
            numeric = (trees.feature >= 0) & ~trees.is_categorical & np.isfinite(trees.threshold)
            used = np.unique(trees.feature[trees.feature >= 0])
            found = {int(i): np.unique(trees.threshold[numeric & (trees.feature == i)]) for i in used}
            self.kept[id(form)] = form, found
        return dict(found)

    def _rising(self, front: Front, inner: list[int]) -> Rising:
        """What some inner columns are at points that differ from the first row in the features these are made of."""
        sources = [front.columns[i].source for i in inner]

        def rising(points: Array) -> Array:
            rows = np.repeat(self.view.rows[:1], len(points), axis=0)
            rows[:, sources] = np.where(np.isnan(points), 0.0, points)
            return front.of(self.view.given(rows))[:, inner]

        return rising


def _checked(front: Front, d: int) -> tuple[Column, ...]:
    if len(front.columns) != d:
        msg = f"a part of it takes {d} columns, and {len(front.columns)} were read"
        raise NoClosedForm(msg)
    return front.columns


def _refuse(trees: TreeEnsemble, columns: tuple[Column, ...]) -> None:
    for i in trees.categorical_features:
        if columns[i].moves:
            msg = (
                f"the trees split on categories of feature {columns[i].source}, which is perturbed; list it in `fixed`"
            )
            raise NoClosedForm(msg)
    for i in map(int, np.flatnonzero(trees.zero_is_missing)):
        if columns[i].moves and not columns[i].is_same:
            msg = f"the trees take 0 for a missing value of what its steps make of feature {columns[i].source}"
            raise NoClosedForm(msg)


def _bound(rising: Rising, width: int) -> float:
    """The largest number of `BOUNDS` that the steps take."""
    for bound in BOUNDS[:-1]:
        try:
            with np.errstate(all="ignore"):
                ends = rising(np.outer([-bound, bound], np.ones(width)))
        except NoClosedForm:
            continue
        if not np.isnan(ends).any():
            return bound
    return BOUNDS[-1]


def _guess(columns: list[Column], limits: Array) -> tuple[Array, Array]:
    """Where the thresholds of lines are, but for rounding; NaN for what is none."""
    scale, shift, added = (np.array([getattr(each, name) for each in columns]) for name in ("scale", "shift", "added"))
    guess = np.where([each.is_line for each in columns], (limits - shift) / scale, np.nan)
    return guess, AROUND * (np.abs(guess) + (np.abs(limits) + added) / np.abs(scale))

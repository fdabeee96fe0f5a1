"""Fronts: the steps of a pipeline before its model, as what each column that comes out of them is of one that goes in.

Only steps that act column by column are known. What is made of columns that are held is not looked into: the pipeline
itself says what it is at each row. Classes are recognised by name, and nothing is imported to ask.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Points
from ..errors import NoClosedForm
from ..models import Model
from ..models.estimator import NAMES_UNSAID
from ..models.on_tables import TableModel
from ..space.neighbourhood import Factor
from .linear import SCALERS, is_sklearn, scaler

RISING = ("PowerTransformer", "QuantileTransformer", "KBinsDiscretizer", "Binarizer")
"""Never fall along a column; of the third if it gives numbers of bins."""

BY_COLUMN = (
    "Pipeline", "ColumnTransformer", "OneHotEncoder", "OrdinalEncoder", "TargetEncoder", "SimpleImputer",
    *SCALERS, *RISING,
)  # fmt: skip
"""Make each column of one alone, whether it is perturbed or held."""

RISING_FUNCTIONS = ("exp", "expm1", "exp2", "cbrt", "arcsinh", "arctan", "sinh", "tanh")
"""Of numpy, that are defined for every number."""


@dataclass(frozen=True, slots=True)
class Column:
    """An inner column: scale·a + shift of an outer one, or something of it that never falls, or what is held."""

    source: int
    """Position of the outer column; −1 where nothing that is perturbed comes in"""
    moves: bool = True
    """Whether the outer column is perturbed"""
    scale: float = 1.0
    shift: float = 0.0
    added: float = 0.0
    """Size of what the shift was summed from"""
    is_line: bool = True

    @property
    def is_same(self) -> bool:
        """Whether it is the outer column."""
        return self.source >= 0 and self.is_line and self.scale == 1.0 and self.shift == 0.0

    def then(self, scale: float, shift: float) -> Column:
        """scale·column + shift."""
        if not self.moves:
            return HELD
        added = self.added * abs(scale) + abs(shift)
        return dataclasses.replace(self, scale=self.scale * scale, shift=self.shift * scale + shift, added=added)

    def rising(self) -> Column:
        """Something of it that never falls."""
        return dataclasses.replace(self, is_line=False) if self.moves else HELD


HELD = Column(-1, moves=False)


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The rows, and how points around them reach the estimator: as arrays, or as frames like the caller's."""

    model: Model
    rows: Array
    """(r, d) what is perturbed, as the model is asked"""
    x: Array
    """(r, d) as numbers"""
    factor: Factor

    def given(self, points: Points) -> Any:
        """Points (n, d), coded like the rows, as the estimator is given them."""
        return self.model.framed(points) if isinstance(self.model, TableModel) else points

    def front(self) -> Front:
        """No steps at all."""
        free, table = set(map(int, self.factor.free)), getattr(self.model, "table", None)
        is_number = np.ones(self.x.shape[1], dtype=np.bool_) if table is None else table.is_numeric
        columns = [Column(j, moves=j in free) if is_number[j] else HELD for j in range(self.x.shape[1])]
        return Front((), tuple(columns), self.given(self.rows))


@dataclass(frozen=True, slots=True, eq=False)
class Front:
    """Steps that have been read, and what comes out of them."""

    steps: tuple[Callable[[Any], Any], ...]
    columns: tuple[Column, ...]
    at_rows: Any
    """What comes out at the rows"""
    blank: float = 0.0
    """What the model takes entries for that a sparse matrix leaves out; columns that move leave out none"""

    def after(self, step: Any) -> Front:
        """With one more step."""
        if step is None or isinstance(step, str):
            return self
        at_rows = _ask(step.transform, self.at_rows)
        columns = through(step, self.columns, getattr(self.at_rows, "columns", None))
        if columns is None:
            columns = [HELD] * at_rows.shape[1]
        if len(columns) != at_rows.shape[1]:
            msg = f"its {_name(step)} gives {at_rows.shape[1]} columns, where {len(columns)} were read"
            raise NoClosedForm(msg)
        return Front((*self.steps, step.transform), tuple(columns), at_rows)

    def of(self, given: Any) -> Array:
        """The inner columns (n, c) of points as the estimator is given them."""
        return as_numbers(self._through(given))

    def held(self, given: Any = None) -> Array:
        """The same as the model takes what does not move; of the rows if nothing is given."""
        return as_numbers(self.at_rows if given is None else self._through(given), self.blank)

    def before(self, estimator: Any) -> Front:
        """The same before an estimator: XGBoost takes what a sparse matrix leaves out for missing."""
        is_left_out = hasattr(self.at_rows, "tocoo") and type(estimator).__module__.partition(".")[0] == "xgboost"
        return dataclasses.replace(self, blank=np.nan) if is_left_out else self

    def _through(self, given: Any) -> Any:
        for step in self.steps:
            given = _ask(step, given)
        return given

    @property
    def is_plain(self) -> bool:
        """Whether columns are only picked."""
        return all(column.is_same for column in self.columns)


def _ask(step: Callable[[Any], Any], given: Any) -> Any:
    """What a step makes of what it is given."""
    try:
        with NAMES_UNSAID:
            return step(given)
    except Exception as err:  # of the model's own step, perhaps not fitted: the model will say it itself
        msg = f"its {_name(getattr(step, '__self__', step))} raised {type(err).__name__}: {err}"
        raise NoClosedForm(msg) from err


def steps_within(step: Any) -> list[Any]:
    """A step, and the steps that it is made of."""
    if step is None or isinstance(step, str):
        return []
    parts = [each[1] for each in getattr(step, "transformers_", getattr(step, "steps", []))]
    return [step, *(within for part in parts for within in steps_within(part))]


def is_by_column(step: Any) -> bool:
    """Whether a step makes each column that comes out of it of one that goes in, whatever these hold."""
    for each in steps_within(step):
        is_known = is_sklearn(each) and (type(each).__name__ in BY_COLUMN or hasattr(each, "get_support"))
        is_nothing = type(each).__name__ == "FunctionTransformer" and is_sklearn(each) and each.func is None
        if not (is_known or is_nothing or isinstance(each, Picked)):
            return False
    return True


def as_numbers(given: Any, blank: float = 0.0) -> Array:
    """What came out of the steps, as numbers; `blank` where a sparse matrix holds none."""
    if hasattr(given, "tocoo"):
        found, entries = np.full(given.shape, blank), given.tocoo()
        found[entries.row, entries.col] = entries.data
        return found
    dense = given.toarray() if hasattr(given, "toarray") else given
    try:
        return np.asarray(dense, dtype=np.float64)
    except (ValueError, TypeError) as err:
        msg = "columns that hold no numbers reach its model"
        raise NoClosedForm(msg) from err


@dataclass(frozen=True, slots=True, eq=False)
class Picked:
    """A step that picks columns, as ensembles do for their members."""

    places: Array

    def transform(self, X: Any) -> Any:
        """These columns of X."""
        return np.asarray(X)[:, self.places]


def through(step: Any, columns: Sequence[Column], names: Any) -> list[Column] | None:
    """The columns that come out of a step; None where nothing that is perturbed comes in and their number is not known.

    `names` are those of the columns that go in, if they have any.
    """
    if isinstance(step, Picked):
        return [columns[int(j)] for j in step.places]
    if step is None or step == "passthrough":
        return list(columns)
    kind = type(step).__name__ if is_sklearn(step) else ""
    if kind == "Pipeline":
        found: list[Column] | None = list(columns)
        for _, inner in step.steps:
            found = None if found is None else through(inner, found, None)
        return found
    if kind == "ColumnTransformer":
        return _through_parts(step, columns, names)
    if not any(column.moves for column in columns) and kind != "FunctionTransformer":
        return None
    if kind in SCALERS:
        return _scaled(step, columns)
    if hasattr(step, "get_support") and kind:
        return [column for column, kept in zip(columns, step.get_support(), strict=True) if kept]
    if kind == "SimpleImputer":
        return _imputed(step, columns)
    if kind in RISING and (kind != "KBinsDiscretizer" or step.encode == "ordinal"):
        return [column.rising() for column in columns]
    if kind == "FunctionTransformer":
        return _function(step, columns)
    msg = f"its {_name(step)} takes columns that are perturbed, and is none of the steps known to act column by column"
    raise NoClosedForm(msg)


def _name(step: Any) -> str:
    return type(step).__name__


def _scaled(step: Any, columns: Sequence[Column]) -> list[Column]:
    found = scaler(step)
    if found is None:  # it clips
        return [column.rising() for column in columns]
    scale, shift = (np.broadcast_to(np.asarray(each, dtype=np.float64), len(columns)) for each in found)
    return [each.then(float(a), float(b)) for each, a, b in zip(columns, scale, shift, strict=True)]


def _imputed(step: Any, columns: Sequence[Column]) -> list[Column]:
    """An imputer changes nothing that is there, and leaves out columns that it never saw a value of."""
    if getattr(step, "indicator_", None) is not None:
        msg = "its SimpleImputer adds columns that say what was missing (add_indicator=True)"
        raise NoClosedForm(msg)
    missing = step.missing_values
    if not (isinstance(missing, float) and np.isnan(missing)):
        msg = f"its SimpleImputer takes {missing!r} for a missing value of columns that are perturbed"
        raise NoClosedForm(msg)
    is_empty = np.array([bool(each != each) for each in step.statistics_])  # texts are among them, where columns are
    is_kept = ~is_empty | bool(getattr(step, "keep_empty_features", False))
    kept = [(column, bool(keep)) for column, keep in zip(columns, is_kept, strict=True)]
    return [column if column.moves else HELD for column, keep in kept if keep]


def _function(step: Any, columns: Sequence[Column]) -> list[Column] | None:
    if step.func is None:
        return list(columns)
    if not any(column.moves for column in columns):
        return None
    function = step.func
    if isinstance(function, np.ufunc) and function.__name__ in RISING_FUNCTIONS and not step.kw_args:
        return [column.rising() for column in columns]
    called = getattr(function, "__name__", type(function).__name__)
    msg = f"its FunctionTransformer puts perturbed columns through {called}, which is not known to rise everywhere"
    raise NoClosedForm(msg)


def _through_parts(step: Any, columns: Sequence[Column], names: Any) -> list[Column]:
    """The parts of a ColumnTransformer, side by side; what is made of held columns only is held."""
    found: list[tuple[int, list[Column]]] = []
    for name, part, picked in step.transformers_:
        place = step.output_indices_.get(name)
        if place is None or place.stop == place.start or (isinstance(part, str) and part == "drop"):
            continue
        inner = [columns[j] for j in _places(picked, step, names, len(columns))]
        made = through(part, inner, None) if any(column.moves for column in inner) else None
        width = place.stop - place.start
        if made is None and isinstance(part, str):
            made = inner
        made = [HELD] * width if made is None else made
        if len(made) != width:
            msg = f"its {_name(part)} gives {width} columns, where {len(made)} were read"
            raise NoClosedForm(msg)
        found.append((place.start, made))
    return [column for _, made in sorted(found, key=lambda each: each[0]) for column in made]


def _places(picked: Any, step: Any, names: Any, d: int) -> list[int]:
    """Positions of the columns that a part of a ColumnTransformer takes."""
    known = getattr(step, "feature_names_in_", names)
    places = {} if known is None else {str(name): j for j, name in enumerate(known)}
    if isinstance(picked, slice):
        ends = [places[each] if isinstance(each, str) else each for each in (picked.start, picked.stop)]
        if isinstance(picked.stop, str):
            ends[1] += 1  # the last one belongs to it
        return list(range(d))[slice(ends[0], ends[1], picked.step)]
    listed = [picked] if isinstance(picked, str | int | np.integer) else list(picked)
    if listed and all(isinstance(each, bool | np.bool_) for each in listed):
        return [j for j, is_picked in enumerate(listed) if is_picked]
    return [places[each] if isinstance(each, str) else range(d)[int(each)] for each in listed]

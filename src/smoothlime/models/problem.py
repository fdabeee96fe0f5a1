"""What is explained: a model, rows and a neighbourhood, checked against each other and in one form."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Flags
from .._core.validate import check_finite, check_names, check_rows
from .._core.warn import warn
from ..errors import CategoriesPerturbed, InvalidArgument, LostPrecision, ModelError, WrongType
from ..space.arguments import check_meaning, several
from ..space.background import Chosen, Spread, without_data
from ..space.categories import listed_groups
from ..space.neighbourhood import Factor, Neighbourhood
from ..space.row_scales import RowScales
from ..space.tables import Table, agreed_columns, as_table, check_numbered
from . import Model, as_asked
from .codes import warn_of_codes
from .estimator import EstimatorModel
from .evaluation import Evaluation, row_name
from .fitted import categorical_features, whole_categories
from .function import FunctionModel
from .inputs import bind, names_in_shape, read_shaped, spread_over
from .on_scales import ModelOnScales, as_given, on_scales
from .on_tables import TableModel
from .protocol import model_epsilon
from .switchable import Switchable, categories_among, make_switchable

BLURRED = 1e-3
"""Spacing of a model's numbers, in neighbourhood standard deviations, from which on slopes lose digits."""

BLIND = 2.0
"""And from which on steps get lost between them, so that slopes are no longer blurred but wrong: by 1.5% here, and soon
by all of it."""


ASKED_AGAIN = 1_024
"""Rows of a call that finds out whether gaps are what a model minds."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is explained, as everything after it takes it."""

    model: Model
    rows: Array
    """(r, d) what is perturbed; for a model that is given frames, fixed columns hold the position of their row; on
    scales other than linear (r, d + 1), scores and the position of their row; with other inputs that are held beside,
    likewise"""
    x: Array
    """(r, d) the rows as numbers; NaN for cells that hold none: see `missing`"""
    feature_names: tuple[str, ...]
    neighbourhood: Neighbourhood
    factor: Factor
    backend: str
    """Library of the data frame that the rows came in, or none"""
    kind: str
    """Type of the model as it was given, for messages"""
    not_numeric: Flags
    """(r, d) which cells hold something else than numbers, such as text"""
    input_shape: tuple[int, ...] = ()
    """Of each row, where rows came with more axes than one"""
    switchable: tuple[Switchable, ...] = ()
    """Held columns whose levels are known"""

    def within(self, neighbourhood: Neighbourhood) -> Problem:
        """The same model and rows in another neighbourhood."""
        factor = neighbourhood.factor(self.x.shape[1], self.feature_names)
        return dataclasses.replace(self, neighbourhood=neighbourhood, factor=factor)

    @property
    def scales(self) -> RowScales | None:
        """T around the rows; None where all steps are taken in the features themselves."""
        return self.model.curves.scales if isinstance(self.model, ModelOnScales) else None

    @property
    def missing(self) -> Flags:
        """(r, d) which features are held at a row because they have no value there, though others perturb them."""
        missing = np.zeros(self.x.shape, dtype=np.bool_)
        missing[:, self.factor.free] = np.isnan(self.x[:, self.factor.free])
        return missing

    def without(self, missing: Flags) -> Problem:
        """The same model and rows, as seen from rows in which these features (d,) have no value."""
        factor = self.neighbourhood.factor_without(missing, self.feature_names)
        return dataclasses.replace(self, factor=factor)

    def check_gaps(self) -> None:
        """Refuse rows that have no value in any of the features that are perturbed."""
        empty = np.flatnonzero(np.isnan(self.x[:, self.factor.free]).all(axis=1))
        if len(empty):
            more = f" (and {len(empty) - 1} more)" if len(empty) > 1 else ""
            msg = (
                f"row {empty[0]} of X{more} has no value in any of the {len(self.factor.free)} features that are"
                " perturbed: nothing is left to explain there. Leave such rows out"
            )
            raise InvalidArgument(msg, argument="X")

    def check_rows(self, *, takes_infinite: bool = False) -> None:
        """Refuse rows of gaps alone, ±inf, and steps too small for the model's numbers; warn of moved categories."""
        self.check_gaps()
        if not takes_infinite:
            check_finite(self.x, self.factor.free, self.feature_names, takes_gaps=True)
        given = as_given(self.model)
        model = given.model if isinstance(given, TableModel) else given
        _warn_of_categories(model, self.factor, self.feature_names)
        _check_spacing(self)


@contextmanager
def telling_of_gaps(problem: Problem) -> Iterator[None]:
    """Where the model fails at rows with gaps, and not at others, say so, and what to do about it."""
    try:
        yield
    except ModelError as err:
        hint = _about_gaps(problem) if type(err) is ModelError else ""
        if not hint:
            raise
        msg = f"{err}. {hint}"
        raise ModelError(msg) from err


def _about_gaps(problem: Problem) -> str:
    """Which features a row misses, fixed ones too, if the model answers at the rows that miss none; else nothing."""
    missing = np.isnan(problem.x) & ~problem.not_numeric
    gaps, whole = np.flatnonzero(missing.any(axis=1)), np.flatnonzero(~missing.any(axis=1))
    if not len(gaps):
        return ""
    if len(whole):
        try:
            Evaluation(problem.model, ASKED_AGAIN).values(problem.rows[whole], row_name)
        except ModelError:
            return ""  # gaps are not what it minds
    names = [repr(problem.feature_names[j]) for j in np.flatnonzero(missing[gaps[0]])]
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    others = {1: "", 2: ", and another row has some"}.get(len(gaps), f", and {len(gaps) - 1} other rows have some")
    return (
        f"Row {gaps[0]} has gaps in {listed}{others}."
        " If the model takes no missing values, impute them, best in a pipeline with the model, such as"
        " make_pipeline(SimpleImputer(), model), or leave such rows out"
    )


def build_problem(
    model: Any,
    X: Any,
    *,
    sigma: Any = 1.0,
    background: Any = None,
    scale: Any = "linear",
    fixed: Any = (),
    output: str | None = "probability",
    switches: Any = False,
    one_hot: Any = None,
) -> Problem:
    """Adapt the model, read the rows, settle names and neighbourhood; rows may have gaps: see `Problem.check_rows`."""
    X, shape = read_shaped(X)
    table, x = _read(X)
    d = x.shape[1]
    adapted = as_asked(model, output)
    if table is not None and isinstance(adapted, FunctionModel | EstimatorModel) and adapted is not model:
        adapted = adapted.for_rows_of_a_table()
    sigma = spread_over(sigma, shape)
    spread = background.spread if isinstance(background, Chosen) else None
    background = _of_shape(background.rows if isinstance(background, Chosen) else background, shape)
    data = as_table(background, "background")
    columns = agreed_columns(None, {"sigma": sigma}) if data is None else data.names
    given = _given_names(getattr(adapted, "feature_names", None), table, columns, d)
    _check_width(adapted, d)
    names = names_in_shape(shape) if shape and given is None else check_names(given, d)
    neighbourhood = choose_neighbourhood(
        sigma, background if data is None else data, given, d, scale=scale, fixed=fixed, codes=_codes(adapted),
        spread=spread,
    )  # fmt: skip
    neighbourhood = neighbourhood.holding([names[j] for j in getattr(adapted, "constants", ())], names)
    if table is not None:
        neighbourhood = neighbourhood.holding(table.not_numeric, names)
    for group in listed_groups(one_hot, names):
        neighbourhood = neighbourhood.holding(group, names)
    factor = neighbourhood.factor(d, names)
    if table is None and getattr(adapted, "takes", "") == "table":
        msg = f"the model takes tables, but X is a {type(X).__name__}; give the rows as a data frame"
        raise WrongType(msg)
    _refuse_moved_categories(adapted, factor, names)
    categories = categories_among(
        names,
        factor.free,
        table=table,
        background=background if data is None else data,
        declared=neighbourhood.categories,
        switches=switches,
        one_hot=one_hot,
    )
    in_table = table is not None and bool(table.not_numeric or getattr(adapted, "wants_table", False))
    if not in_table:
        warn_of_codes(X, table, x, factor.free, names)
    switchable, longer = make_switchable(categories, x, table, in_table=in_table)
    adapted, rows = bind(adapted, x, shape)
    if table is not None and longer is not None and in_table:
        if rows is not x:
            msg = "held goes with rows of numbers; X is a table whose columns the model is given by name"
            raise InvalidArgument(msg, argument="X")
        adapted, rows = TableModel.of(adapted, longer, factor.free), table.coded(x, factor.free)
    scales = neighbourhood.row_scales(x, names)
    if scales is not None:
        adapted, rows = on_scales(adapted, scales, rows, x)
    backend = "" if table is None else table.backend
    kind = os.path.basename(model) if isinstance(model, str | os.PathLike) else type(model).__name__
    not_numeric = np.zeros(x.shape, dtype=np.bool_) if table is None else table.holds_others()
    return Problem(adapted, rows, x, names, neighbourhood, factor, backend, kind, not_numeric, shape, switchable)


def _of_shape(background: Any, shape: tuple[int, ...]) -> Any:
    """A background of many rows of a shape as a table of numbers; any other as it came."""
    rows, found = read_shaped(background, "background")
    if found and found != shape:
        msg = f"background has rows of shape {found} and X of shape {shape or 'one axis'}; give both alike"
        raise InvalidArgument(msg, argument="background")
    return rows


def _read(X: Any) -> tuple[Table | None, Array]:
    """The rows as a table, if they are one, and as numbers."""
    table = as_table(X)
    if table is None:
        return None, check_rows(X, finite=False, own=True)
    if table.is_of_objects:
        msg = (
            "all columns of X are of type object, which does not say that they hold numbers;"
            " give X.infer_objects(), or X.astype(float) where all of them do"
        )
        raise WrongType(msg)
    return table, table.numbers()


def _check_width(model: Model, d: int) -> None:
    """Refuse rows of another width than the model says it takes; most models refuse them themselves."""
    wanted = getattr(model, "n_features", None)
    if wanted is not None and wanted != d:
        what = "lose a column" if d < wanted else "gain a column, the label perhaps"
        msg = f"X has {d} features but the model takes {wanted}; did the rows {what}?"
        raise InvalidArgument(msg, argument="X")


def _codes(model: Model) -> tuple[int, ...]:
    """Positions of the features that are no numbers to the model, though they may come as such."""
    return tuple(categorical_features(model.estimator)) if isinstance(model, EstimatorModel) else ()


def _refuse_moved_categories(model: Model, factor: Factor, names: tuple[str, ...]) -> None:
    """Refuse to perturb categories that the model takes as whole numbers or text only."""
    if not isinstance(model, EstimatorModel):
        return
    moved = [names[j] for j in whole_categories(model.estimator) if j in factor.free]
    if moved:
        listed = ", ".join(map(repr, moved[:3])) + ", ..." * (len(moved) > 3)
        msg = (
            f"sigma perturbs {listed}: to the {type(model.estimator).__name__} a category, which no number lies"
            f" between. Hold such features: fixed=[{listed}]"
        )
        raise InvalidArgument(msg, argument="sigma")


def _warn_of_categories(model: Model, factor: Factor, names: tuple[str, ...]) -> None:
    """Say which of the perturbed features are no numbers to the model, though they came as such."""
    if not isinstance(model, EstimatorModel):
        return
    moved = sorted(set(categorical_features(model.estimator)) & set(map(int, factor.free)))
    if moved:
        listed = ", ".join(repr(names[j]) for j in moved[:3]) + ", ..." * (len(moved) > 3)
        are, them = ("is a category", "it") if len(moved) == 1 else ("are categories", "them")
        msg = (
            f"{listed} {are} to the {type(model.estimator).__name__}, but perturbed like numbers, so that slopes mean"
            f" little; hold {them}: fixed=[{listed}]"
        )
        warn(msg, CategoriesPerturbed)


def _check_spacing(problem: Problem) -> None:
    """A model in few digits cannot tell x from x + step when the step is below the spacing of numbers near x."""
    model, factor, names = problem.model, problem.factor, problem.feature_names
    epsilon = model_epsilon(model)
    x = problem.x if len(factor.free) == problem.x.shape[1] else problem.x[:, factor.free]
    x = np.nan_to_num(x) if np.isnan(x).any() else x  # gaps are not perturbed
    std = factor.std if not isinstance(model, ModelOnScales) else model.curves.steps(factor)
    if np.max(epsilon) * max(x.max(), -x.min()) <= BLURRED * std.min():  # fine everywhere, seen by one number
        return
    _, exponent = np.frexp(np.abs(x).max(axis=0))
    spacing = epsilon * np.ldexp(0.5, exponent)
    j = int(np.argmax(spacing / std))
    if spacing[j] > BLURRED * std[j]:
        is_blind = spacing[j] > BLIND * std[j]
        msg = (
            f"sigma is {std[j]:.3g} for feature {names[factor.free[j]]!r}, but the model's numbers are"
            f" {spacing[j]:.2g} apart at row {np.abs(x[:, j]).argmax()}:"
            f" {'steps get lost between them' if is_blind else 'slopes lose digits'}."
            " Raise sigma, centre the feature, or use float64"
        )
        if is_blind:
            raise InvalidArgument(msg, argument="sigma")
        warn(msg, LostPrecision)


def choose_neighbourhood(
    sigma: Any,
    background: Any,
    names: tuple[str, ...] | None,
    d: int,
    *,
    scale: Any = "linear",
    fixed: Any = (),
    codes: Collection[int] = (),
    spread: Spread | None = None,
) -> Neighbourhood:
    """The neighbourhood given, or sigma in units of one or of the columns of a background, on scales.

    `codes` are positions of numbers that the model takes for categories: so does scale="auto".
    The background is a `Table`, whose columns are found by name where the rows have names, an array, or None.
    """
    for each in several(fixed):
        check_meaning(each, names or (), "fixed")
    if isinstance(sigma, Neighbourhood):
        for name, is_given in (("background", background is not None), ("scale", scale != "linear")):
            if is_given:
                msg = (
                    f"give {name} or a Neighbourhood as sigma, not both; Neighbourhood.from_data(background, scale=...)"
                    " makes one"
                )
                raise InvalidArgument(msg, argument=name)
        return sigma.holding_also(fixed)
    if names is not None:
        check_numbered(sigma, "sigma", names)
    if background is None:
        known = without_data(scale, range(d) if names is None else names, d)
        return Neighbourhood(sigma, fixed=fixed, background=known)
    categories: tuple[str, ...] = ()
    if not isinstance(background, Table):
        rows, columns = check_rows(background, "background", finite=False), None
    else:
        columns = background.names if names is None else names
        there = set(background.names)
        missing = [name for name in columns if name not in there]
        if missing:
            msg = f"background has no column {missing[0]!r}; its columns are {', '.join(map(repr, background.names))}"
            raise InvalidArgument(msg, argument="background")
        rows, categories = background.numbers(columns), background.categories
    if rows.shape[1] != d:
        msg = f"background has {rows.shape[1]} columns but the rows have {d} features"
        raise InvalidArgument(msg, argument="background")
    return Neighbourhood._from_rows(
        rows,
        columns,
        sigma,
        fixed=fixed,
        scale=scale,
        categories=categories,
        codes=codes,
        called="background",
        named=names if columns is None else columns,
        spread=None if spread is None or columns is None else spread.of(columns),
    )


def as_written(of_model: tuple[str, ...], columns: tuple[str, ...]) -> tuple[str, ...]:
    """The model's names as the columns have them: LightGBM writes underscores for the spaces in its own."""
    written = {name.replace(" ", "_"): name for name in columns} | {name: name for name in columns}
    return tuple(written.get(name, name) for name in of_model)


def _given_names(
    of_model: tuple[str, ...] | None, rows: Table | None, of_spread: tuple[str, ...] | None, d: int
) -> tuple[str, ...] | None:
    """Names from the model or from the columns of X, which must agree, order included; else from what gives scales.

    None where nothing has names: only then do scales go by position.
    """
    of_rows = None if rows is None else rows.names
    if of_model is not None and len(of_model) != d:
        what = "lose a column" if d < len(of_model) else "gain a column, the label perhaps"
        msg = f"X has {d} features but the model has names for {len(of_model)}; did the rows {what}?"
        raise InvalidArgument(msg)
    if of_model is not None:
        of_model = as_written(of_model, of_rows or of_spread or ())
    if of_model is not None and of_rows is not None and of_model != of_rows:
        first = next(j for j in range(d) if of_model[j] != of_rows[j])
        msg = (
            f"X and the model have different columns: at position {first} X has {of_rows[first]!r} and the model"
            f" {of_model[first]!r}. Select the model's columns in its order: X[{list(of_model)[:3]}...]"
        )
        raise InvalidArgument(msg)
    if of_model is None and of_rows is None:
        return of_spread if of_spread is not None and len(of_spread) == d else None
    return of_rows if of_model is None else of_model

"""Explanations in the form that shap's plots take: slopes as they are, or contributions from a reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.optional import require
from .._core.types import Array
from .._core.validate import as_float_array, check_choice
from ..contributions import Contributions
from ..errors import InvalidArgument, WrongType
from ..result.explanation import Explanation


def to_shap(e: Explanation, kind: str, *, reference: Any) -> Any:
    """`shap.Explanation` of standardised slopes, or of slope·(x − reference)."""
    check_choice(kind, "kind", ("slopes", "contributions"))
    if kind == "slopes" and reference is not None:
        msg = "reference is for kind='contributions'; slopes are not measured from anywhere"
        raise InvalidArgument(msg)
    scale = _std(e) if kind == "slopes" else _steps(e, reference)
    values = _none_for_fixed(e, e.values * scale)
    base = np.zeros(len(e)) if kind == "slopes" else _at_row(e) - values.sum(axis=1)
    reach = _none_for_fixed(e, e.half_width(0.05) * np.abs(scale))
    shap: Any = require("shap", extra="shap", to="make a shap.Explanation")
    return shap.Explanation(
        values=values,
        base_values=base,
        data=e.x.copy(),
        feature_names=list(e.feature_names),
        output_names=e.output_name,
        error_std=_none_for_fixed(e, e.standard_error * np.abs(scale)),
        lower_bounds=values - reach,
        upper_bounds=values + reach,
    )


def contributions_to_shap(c: Contributions) -> Any:
    """`shap.Explanation` of contributions along a line, from F(b)."""
    lower, upper = c.interval()
    shap: Any = require("shap", extra="shap", to="make a shap.Explanation")
    return shap.Explanation(
        values=c.values.copy(),
        base_values=c.base.copy(),
        data=c.x.copy(),
        feature_names=list(c.feature_names),
        output_names=c.output_name,
        error_std=c.standard_error,
        lower_bounds=lower,
        upper_bounds=upper,
    )


def _std(e: Explanation) -> Array:
    return np.broadcast_to(e.std, e.values.shape)


def _steps(e: Explanation, reference: Any) -> Array:
    """x − reference (r, d), of the perturbed features, on their scales; of no meaning elsewhere."""
    if reference is None:
        msg = (
            "kind='contributions' needs a reference to measure from: one number per feature, a table of one row,"
            " or a mapping from names to numbers; the mean of the data, or a typical row, are common"
        )
        raise InvalidArgument(msg)
    free = e.factor.free
    if e.combined.any():
        msg = "this explanation combines different rows, so there is no x to measure from; ask its parts"
        raise InvalidArgument(msg)
    at = _reference(e, reference)
    bad = [j for j in free if not np.isfinite(at[j])]
    if bad:
        msg = f"reference must be finite; got {at[bad[0]]} for {e.feature_names[bad[0]]!r}"
        raise InvalidArgument(msg)
    try:
        return _in_scores(e, e.x) - _in_scores(e, at[None])
    except InvalidArgument as err:  # the rows are what they were when they were explained
        msg = f"reference does not go with the scales of the rows: {err}"
        raise InvalidArgument(msg, argument="reference") from err


def _in_scores(e: Explanation, x: Array) -> Array:
    """Rows (n, d) in what slopes are per unit of: logarithms or ranks of features on such scales."""
    scales = e.neighbourhood.row_scales(x, e.feature_names)
    return x if scales is None else scales.scores(x)


def _at_row(e: Explanation) -> Array:
    """F(x), or f(x) where the method does not see it."""
    return np.where(np.isnan(e.smoothed), e.prediction, e.smoothed)


def _none_for_fixed(e: Explanation, by_feature: Array) -> Array:
    """0 for features that were held fixed, or are missing: shap's plots do not draw NaN."""
    return np.where(e.held, 0.0, by_feature)


def _reference(e: Explanation, given: Any) -> Array:
    """The reference by feature (d,), NaN where it says nothing."""
    by_name = _by_name(given)
    if by_name is not None:
        return _from_names(e, by_name)
    at = as_float_array(given, "reference")
    d = len(e.feature_names)
    shape = e.input_shape or (d,)
    if at.shape not in ((d,), (1, d), shape, (1, *shape)):
        msg = f"reference must have one number for each of {d} features; got shape {at.shape}"
        raise InvalidArgument(msg)
    return at.reshape(d)


def _by_name(given: Any) -> dict[str, Any] | None:
    """Entries by name of a mapping, a series or a table of one row; None for arrays."""
    import narwhals as nw

    table = nw.from_native(given, eager_only=True, pass_through=True)
    if isinstance(table, nw.DataFrame):
        if len(table) != 1:
            msg = f"reference must be a table of one row; got {len(table)}. Take one, or their mean"
            raise InvalidArgument(msg)
        # by position: a whole number as a name would take a row
        return {str(name): table[:, j][0] for j, name in enumerate(table.columns)}
    if callable(getattr(given, "items", None)):  # a mapping, or a pandas series such as the mean of a table
        return {str(name): each for name, each in given.items()}
    return None


def _from_names(e: Explanation, by_name: dict[str, Any]) -> Array:
    unknown = [name for name in by_name if name not in e.feature_names]
    if unknown:
        msg = f"reference names {unknown[0]!r}, which is not a feature; the features are {list(e.feature_names)}"
        raise InvalidArgument(msg)
    at = np.full(len(e.feature_names), np.nan)
    for j in e.factor.free:
        name = e.feature_names[j]
        if name not in by_name:
            msg = f"reference has no {name!r}; it must cover every feature that was perturbed"
            raise InvalidArgument(msg)
        try:
            at[j] = as_float_array(by_name[name], "reference")
        except (TypeError, ValueError):  # ours are among them
            msg = f"reference must hold numbers; got {by_name[name]!r} for {name!r}"
            raise WrongType(msg) from None
    return at

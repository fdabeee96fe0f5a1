"""Explanations as data frames, in the caller's library."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from .._core.validate import check_choice
from ..contributions import Contributions
from ..curve import Curve
from ..errors import InvalidArgument, MissingExtra
from ..result.effects import Effects
from ..result.explanation import Explanation
from ..result.interactions import Interactions
from ..result.switches import Switches

LIBRARIES = ("pandas", "polars", "pyarrow")

WIDE = ("prediction", "smoothed", "fidelity", "radius", "converged", "n_samples")
"""Fields by row that come before the slopes of a wide frame."""

Columns = dict[str, Any]


def to_frame(e: Explanation, kind: str, *, library: str | None, confidence: float) -> Any:
    """A native data frame of the library asked for, of the one the rows came in, or of pandas."""
    check_choice(kind, "kind", ("tidy", "wide"))
    columns = _tidy(e, confidence) if kind == "tidy" else _wide(e)
    return _native(columns, _library(e.provenance.backend, library))


def frame_of_effects(found: Effects, *, library: str | None, confidence: float) -> Any:
    """The same of effects: a line per group and feature."""
    parts: Columns = {}
    for label, each in (found.groups or {None: found}).items():
        for name, column in _effects(each, label, confidence).items():
            parts.setdefault(name, []).append(column)
    columns = {name: np.concatenate(each) for name, each in parts.items()}
    return _native(columns, _library("", library))


def frame_of_curve(found: Curve, *, library: str | None, confidence: float) -> Any:
    """A line per value of the feature."""
    lower, upper = found.interval(confidence)
    columns = {
        "value": np.array(found.levels, dtype=object) if found.levels else found.grid,
        "smoothed": found.values,
        "standard_error": found.standard_error,
        "lower": lower,
        "upper": upper,
    }
    return _native(columns, _library("", library))


def frame_of_contributions(found: Contributions, *, library: str | None, confidence: float) -> Any:
    """A line per row and feature that moves or is switched; F at both ends of the line stands beside each."""
    lower, upper = found.interval(confidence)
    d = len(found.feature_names)
    apart = [found.feature_names.index(name) for name in found.held_apart]
    free = np.union1d(found.neighbourhood.factor(d, found.feature_names).free, np.array(apart, dtype=np.intp))
    by_feature = {
        "x": found.x,
        "contribution": found.values,
        "standard_error": found.standard_error,
        "lower": lower,
        "upper": upper,
    }
    columns = {
        "row": np.repeat(np.arange(len(found)), len(free)),
        "output": np.repeat(np.array(found.row_outputs, dtype=object), len(free)),
        "feature": np.tile(np.array(found.feature_names, dtype=object)[free], len(found)),
        **{name: each[:, free].ravel() for name, each in by_feature.items()},
        "base": np.repeat(found.base, len(free)),
        "total": np.repeat(found.total, len(free)),
    }
    return _native(columns, _library(found.backend, library))


def frame_of_interactions(found: Interactions, *, library: str | None, confidence: float) -> Any:
    """A line per row and pair, each pair once; a feature with itself is a bend."""
    r, p = found.by_pair.shape
    reach = found.half_width_by_pair(confidence)
    e, names = found.explanation, np.array(found.feature_names, dtype=object)
    by_pair = {
        "second_slope": found.by_pair,
        "standardised": found.by_pair * e.std[found.pairs].prod(axis=1),
        "standard_error": found.error_by_pair,
        "lower": found.by_pair - reach,
        "upper": found.by_pair + reach,
    }
    columns = {
        "row": np.repeat(np.arange(r), p),
        "output": np.repeat(np.array(e.row_outputs, dtype=object), p),
        "feature": np.tile(names[found.pairs[:, 0]], r),
        "other": np.tile(names[found.pairs[:, 1]], r),
        **{name: each.ravel() for name, each in by_pair.items()},
    }
    return _native(columns, _library(e.provenance.backend, library))


def _effects(found: Effects, label: Any, confidence: float) -> Columns:
    """A line per feature that has a slope; `group` only where there are groups."""
    lower, upper = found.interval(confidence)
    kept = np.flatnonzero(np.isfinite(found.values))
    numbers = {
        "effect": found.values,
        "standardised": found.standardised,
        "standard_error": found.standard_error,
        "lower": lower,
        "upper": upper,
        "absolute": found.absolute,
        "absolute_bias": found.absolute_bias,
        "positive": found.positive,
        "rows": found.count,
    }
    group = {} if label is None else {"group": np.full(len(kept), str(label), dtype=object)}
    features = np.array(found.feature_names, dtype=object)[kept]
    return {**group, "feature": features, **{name: each[kept] for name, each in numbers.items()}}


def frame_of_switches(switches: Switches, *, library: str | None, confidence: float) -> Any:
    """A line per row and switch, likewise."""
    lower, upper = switches.interval(confidence)
    row, s = np.nonzero(~switches.is_own)
    columns = [switches.column_of(i) for i in range(switches.effect.shape[1])]
    names, levels = (np.array(each, dtype=object) for each in (switches.features, switches.levels))
    own = [switches.own_level(i, columns[j]) for i, j in zip(row.tolist(), s.tolist(), strict=True)]
    by_switch = {
        "effect": switches.effect,
        "standard_error": switches.standard_error,
        "lower": lower,
        "upper": upper,
        "converged": switches.converged,
    }
    found: Columns = {
        "row": row,
        "feature": names[s],
        "from": np.array(own, dtype=object),
        "to": levels[s],
        **{name: each[row, s] for name, each in by_switch.items()},
    }
    return _native(found, _library(switches.backend, library))


def _native(columns: Columns, library: str) -> Any:
    """A native data frame of a library that is there."""
    import narwhals as nw

    backend: Any = library

    kinds: dict[str, Any] = {"i": nw.Int64, "f": nw.Float64, "b": nw.Boolean, "O": nw.String}
    schema = {name: kinds[each.dtype.kind] for name, each in columns.items()}
    data = {name: each.tolist() if each.dtype.kind == "O" else each for name, each in columns.items()}
    return nw.from_dict(data, schema, backend=backend).to_native()


def _tidy(e: Explanation, confidence: float) -> Columns:
    """A line per row and perturbed feature."""
    lower, upper = e.interval(confidence)
    free = e.factor.free
    features = np.array(e.feature_names, dtype=object)[free]
    by_feature = {
        "x": e.x,
        "slope": e.values,
        "standardised": e.standardised,
        "standard_error": e.standard_error,
        "lower": lower,
        "upper": upper,
        **({} if e.selected is None else {"selected": e.selected}),
        **({} if e.row_scales is None else dict(zip(("step_down", "step_up"), e.step_ends, strict=True))),
    }
    return {
        "row": np.repeat(np.arange(len(e)), len(free)),
        "output": np.repeat(np.array(e.row_outputs, dtype=object), len(free)),
        "feature": np.tile(features, len(e)),
        **{name: each[:, free].ravel() for name, each in by_feature.items()},
    }


def _wide(e: Explanation) -> Columns:
    """A line per row, two columns per perturbed feature."""
    columns: Columns = {
        "row": np.arange(len(e)),
        "output": np.array(e.row_outputs, dtype=object),
        **{name: getattr(e, name) for name in WIDE},
    }
    for j in e.factor.free:
        feature = e.feature_names[j]
        for name, each in ((feature, e.values), (f"{feature}_se", e.standard_error)):
            if name in columns:
                msg = (
                    f"a wide frame would have two columns {name!r}, one of them for feature {feature!r}."
                    " Use kind='tidy', where names of features are in a column of their own"
                )
                raise InvalidArgument(msg)
            columns[name] = each[:, j]
    return columns


def _library(came_in: str, asked: str | None) -> str:
    """Name of a library that is there: the one asked for, the one that rows came in, or pandas."""
    name = check_choice(asked, "library", LIBRARIES) if asked is not None else came_in
    if name not in LIBRARIES:
        name = "pandas"
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as err:
        if err.name != name:
            raise  # installed but broken: its own error says more than ours
        others = " or ".join(f"library={each!r}" for each in LIBRARIES if each != name)
        msg = f"{name} is needed to make this data frame. Install it with: pip install {name}; or ask for {others}"
        raise MissingExtra(msg) from err
    return name

"""Which columns of a table the model takes, and which are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidArgument
from ..models.fitted import attribute
from ..models.problem import as_written


@dataclass(frozen=True, slots=True)
class Chosen:
    """Columns of a table."""

    features: tuple[str, ...]
    ignored: tuple[str, ...]
    key: str | None

    @property
    def read(self) -> tuple[str, ...]:
        """Those that are read."""
        return self.features if self.key is None else (*self.features, self.key)


def choose_features(model: Any, names: tuple[str, ...], key: Any, columns: Sequence[str] | None) -> Chosen:
    """The columns that the caller names, else those that the model was fitted on, else all but the key."""
    if key is not None and key not in names:
        msg = f"key must be a column of the table; got {key!r}, and its columns are {_listed(names)}"
        raise InvalidArgument(msg, argument="key")
    known = getattr(model, "feature_names", None)
    if columns is not None:
        wanted = tuple(map(str, columns))
        twice = next((name for name, times in Counter(wanted).items() if times > 1), None)
        if twice is not None or not wanted:
            msg = f"columns must name each column once, and one at least; got {list(columns)}"
            raise InvalidArgument(msg, argument="columns")
    elif known is not None:
        wanted = as_written(tuple(known), names)
    else:
        wanted = tuple(name for name in names if name != key)
    there = set(names)
    missing = [name for name in wanted if name not in there]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        who = "columns names" if columns is not None else "the model takes"
        msg = f"the table has no column {missing[0]!r}{more}, which {who}; its columns are {_listed(names)}"
        raise InvalidArgument(msg, argument="columns" if columns is not None else "source")
    if not wanted:
        msg = f"the table has no column but the key {key!r}; there is nothing to explain"
        raise InvalidArgument(msg, argument="source")
    if key in wanted:
        msg = f"key names {key!r}, which is a feature of the model; name another column, or none"
        raise InvalidArgument(msg, argument="key")
    _check_width(model, wanted)
    left = set(wanted) | {key}
    return Chosen(wanted, tuple(name for name in names if name not in left), key)


def _check_width(model: Any, wanted: tuple[str, ...]) -> None:
    fitted = attribute(getattr(model, "estimator", None), "n_features_in_")
    takes = getattr(model, "n_features", None) or fitted
    if takes is not None and takes != len(wanted):
        msg = (
            f"the model takes {takes} features, whose names it does not know, and the table has {len(wanted)} columns:"
            f" {_listed(wanted)}. Name those that it takes, in its order: columns=[...]"
        )
        raise InvalidArgument(msg, argument="columns")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return f"{shown}, ... ({len(names)} in all)" if len(names) > 8 else shown

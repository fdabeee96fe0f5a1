"""What stands behind NaN in the rows of a file: what is missing, is no number, or was made of different rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import UnreadableFile
from .fields import shown, take

MARKS = {"missing": "rd", "not_numeric": "rd", "combined": "r"}
"""Flags of cells or rows, and their axes; written where there are any."""


def named_marks(header: dict[str, Any]) -> list[str]:
    """Names of the flags that are there."""
    names = take(header, "marks", list)
    strange = [each for each in names if type(each) is not str or each not in MARKS]
    if strange or len(set(names)) < len(names):
        msg = f"the field 'marks' must name some of {', '.join(MARKS)}, each once; got {shown(names)}"
        raise UnreadableFile(msg)
    return names


def unmarked(fields: dict[str, Any], moved: Any) -> dict[str, Any]:
    """What stood behind NaN in `x` before there were marks: text, or gaps, and whole rows that were combined.

    Trees had slopes of 0 for what was missing, which is now none.
    """
    nothing = np.isnan(fields["x"])
    combined = nothing.all(axis=1)
    missing = np.zeros_like(nothing)
    missing[:, moved] = nothing[:, moved] & ~combined[:, None]
    for name in ("values", "standard_error"):
        fields[name] = np.where(missing, np.nan, fields[name])
    return {"missing": missing, "not_numeric": nothing & ~missing & ~combined[:, None], "combined": combined}


def check_marks(x: Any, marks: dict[str, Any], moved: Any) -> None:
    """Refuse marks that no run can have made."""
    none = np.zeros(x.shape, dtype=np.bool_)
    missing, other = marks.get("missing", none), marks.get("not_numeric", none)
    combined = marks.get("combined", none[:, 0])
    is_moved = np.isin(np.arange(x.shape[1]), moved)
    wrong = {
        "missing": (missing & ~is_moved).any() or missing[~combined][:, is_moved].all(axis=1).any(),
        "not_numeric": (other & (is_moved | ~np.isnan(x))).any(),
        "combined": not np.isnan(x[combined]).all(),
        "x": (is_moved & (np.isnan(x) != (missing | combined[:, None]))).any(),
    }
    name = next((name for name, is_wrong in wrong.items() if is_wrong), None)
    if name is not None:
        msg = f"the field {name!r} does not fit to what is missing, fixed or combined; was the file changed?"
        raise UnreadableFile(msg)

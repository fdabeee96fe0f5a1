"""What data said of columns, written down whole: an explanation on scales can be replayed without the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import UnreadableFile
from ..space.background import WORDS, Background
from ..space.scales import KNOTS, LogScale, RankScale, Scale
from .fields import from_nested, nested, newer, shown, take

CURVE = ("known", "middle", "lower", "upper")
"""Arrays of a scale of ranks."""

MOST = 2**53
"""Rows that are counted without error."""


def pack_background(background: Background | None) -> Any:
    """Plain values."""
    if background is None:
        return None
    return {
        "words": list(background.words),
        "least": nested(background.least),
        "largest": nested(background.largest),
        "count": background.count,
        "scales": [_packed(each) for each in background.scales],
    }


def _packed(scale: Scale | None) -> Any:
    if isinstance(scale, LogScale):
        return {"shift": scale.shift}
    if isinstance(scale, RankScale):
        curve = {name: nested(getattr(scale, name)) for name in CURVE}
        return curve | {"is_step": scale.is_step, "count": scale.count}
    return None


def unpack_background(raw: Any, d: int) -> Background | None:
    """What `pack_background` made, of d columns, checked."""
    if raw is None:
        return None
    fields = take({"background": raw}, "background", dict)
    words = tuple(map(str, from_nested(take(fields, "words"), "text", (d,), "words")))
    strange = [word for word in words if word not in WORDS]
    if strange:
        raise newer(f"the scale {shown(strange[0])}")
    given = take(fields, "scales", list)
    if len(given) != d:
        msg = f"the field 'scales' must have {d} entries, one per feature; got {len(given)}"
        raise UnreadableFile(msg)
    scales = tuple(_scale(word, each) for word, each in zip(words, given, strict=True))
    least, largest = (from_nested(take(fields, name), "float", (d,), name) for name in ("least", "largest"))
    if (least > largest).any() or (np.isnan(least) != np.isnan(largest)).any():
        msg = "the fields 'least' and 'largest' must be the ends of columns, in this order"
        raise UnreadableFile(msg)
    return Background(words, scales, least, largest, _count(fields, 0))


def _scale(word: str, raw: Any) -> Scale | None:
    """The scale of a column that is taken as a word says."""
    if word not in ("log", "ranks"):
        if raw is not None:
            msg = f"the field 'scales' must be null for a column that is {word!r}; got {shown(raw)}"
            raise UnreadableFile(msg)
        return None
    fields = take({"scales": raw}, "scales", dict)
    if word == "log":
        shift = float(from_nested(take(fields, "shift"), "float", (), "shift"))
        if not 0 <= shift < np.inf:
            msg = f"the field 'shift' must be a finite number >= 0; got {shift}"
            raise UnreadableFile(msg)
        return LogScale(shift)
    known = take(fields, "known", list)
    curve = {name: from_nested(take(fields, name), "float", (len(known),), name) for name in CURVE}
    scale = RankScale(**curve, is_step=take(fields, "is_step", bool), count=_count(fields, 2))
    _check_curve(scale)
    return scale


def _count(fields: dict[str, Any], at_least: int) -> int:
    """How many rows of data there were."""
    count = int(take(fields, "count", int))
    if not at_least <= count <= MOST:
        msg = f"the field 'count' must lie between {at_least} and {MOST}; got {shown(count)}"
        raise UnreadableFile(msg)
    return count


def _check_curve(scale: RankScale) -> None:
    """Refuse what no data can have given."""
    known, middle, lower, upper = (getattr(scale, name) for name in CURVE)
    is_ordered = (
        2 <= len(known) <= KNOTS
        and np.isfinite(known).all()
        and np.isfinite(middle).all()
        and (known[1:] > known[:-1]).all()
        and (middle[1:] > middle[:-1]).all()
        and ((lower <= middle) & (middle <= upper)).all()
        and (upper[:-1] <= lower[1:]).all()
        and np.isfinite(upper[:-1]).all()
        and np.isfinite(lower[1:]).all()
    )
    is_whole = not scale.is_step or (upper[:-1] == lower[1:]).all()
    if not (is_ordered and is_whole):
        msg = "the field 'scales' holds a scale of ranks that no data can have given; was the file changed?"
        raise UnreadableFile(msg)

"""The picture that suits an explanation, where nobody chose one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core.validate import check_choice, check_position
from ..errors import InvalidArgument
from .bars import bars
from .beeswarm import beeswarm
from .heat import heat
from .image import image, is_drawn_as_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..result.explanation import Explanation

OF_ALL = {"heat": heat, "beeswarm": beeswarm}
"""Pictures of several rows"""


def draw(e: Explanation, row: int | None, *, kind: str | None, **look: Any) -> Axes:
    """Bars of one row, a map of several; of inputs that are pictures or sequences, one as a map."""
    if kind is None:
        is_one = row is not None or len(e) == 1
        kind = "image" if is_drawn_as_map(e.input_shape) else "bars" if is_one else "heat"
    check_choice(kind, "kind", ("bars", "image", *OF_ALL))
    given = {name: value for name, value in look.items() if not (name == "most" and value is None)}
    if kind in OF_ALL:
        if row is not None:
            msg = f"kind={kind!r} shows all rows; leave row out, or take some with e[{row!r}:]"
            raise InvalidArgument(msg, argument="row")
        return OF_ALL[kind](e, **given)
    i = 0 if row is None else check_position(row, "row")
    if kind == "image":
        given.pop("most", None)
        return image(e, i, **given)
    return bars(e, i, **given)

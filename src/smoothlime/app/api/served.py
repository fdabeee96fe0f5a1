"""Served: a model with the background that says how its features vary, ready to be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..._core.types import Array
from ...errors import InvalidArgument
from ...explain import explain
from ...models import as_asked
from ...models.estimator import Unsaid
from ...result.explanation import Explanation
from ...space.neighbourhood import Neighbourhood
from ...space.tables import Table, as_table
from .refusals import Refused
from .requests import is_number, shown

QUIET = Unsaid("")
"""Warnings would go to the log of the server; what they say stands in the answer."""

KINDS = {"number": "a number or null", "text": "text or null", "boolean": "true, false or null"}


class Served:
    """A model, its background, and what a request that says nothing gets.

    Parameters
    ----------
    model
        As `explain` takes it.
    background
        Rows that say how the features vary: a data frame with the columns that the model takes, or an array.
    sigma, output, target
        What a request gets that does not choose: sigma in standard deviations of the background.
    fixed, scale
        Features that are held, and what a step is taken in, as in `explain`: for all requests.
    """

    def __init__(
        self,
        model: Any,
        background: Any,
        *,
        sigma: float = 0.5,
        output: str = "probability",
        target: Any = None,
        fixed: Sequence[int | str] = (),
        scale: str | Mapping[Any, str] = "linear",
    ) -> None:
        self.model = model
        self.fixed = fixed
        self.scale = scale
        self.defaults = {"sigma": sigma, "output": output, "target": target}
        names = getattr(as_asked(model, output), "feature_names", None)
        table = as_table(background, "background")
        self.table = None if table is None else _selected(table, names)
        self.background = background if self.table is None else self.table.frame.to_native()
        width = np.shape(self.background)[1] if self.table is None else len(self.table.names)
        self.names = tuple(names or [f"x{j}" for j in range(width)]) if self.table is None else self.table.names
        self.kinds = (
            ("number",) * width if self.table is None else tuple(map(_kind, self.table.names, self.table.dtypes))
        )
        self._around = lru_cache(maxsize=64)(self._neighbourhood)
        self._around(sigma)

    def _neighbourhood(self, sigma: float) -> Neighbourhood:
        return Neighbourhood.from_data(self.background, sigma, fixed=self.fixed, scale=self.scale)

    def rows(self, instances: list[Any]) -> Any:
        """Instances as rows like the background's; a refusal where one has other columns, or other kinds of values."""
        lines = [self._line(each, i) for i, each in enumerate(instances)]
        columns = [[line[j] for line in lines] for j in range(len(self.names))]
        if self.table is None:
            return np.array([[np.nan if each is None else each for each in line] for line in lines], dtype=np.float64)
        import narwhals as nw

        backend = self.table.frame.implementation
        made = [
            _column(name, cells, kind, dtype, backend)
            for name, cells, kind, dtype in zip(self.names, columns, self.kinds, self.table.dtypes, strict=True)
        ]
        return nw.from_dict({each.name: each for each in made}).to_native()

    def _line(self, given: Any, i: int) -> list[Any]:
        """The values of one instance in the order of the columns."""
        names = self.names
        if isinstance(given, dict):
            wrong = [name for name in names if name not in given] or [name for name in given if name not in names]
            if wrong:
                what = "has no" if wrong[0] not in given else "has an unknown"
                msg = f"instances[{i}] {what} {shown(wrong[0])}; the columns are {', '.join(names)}"
                raise Refused(422, msg)
            given = [given[name] for name in names]
        if not isinstance(given, list) or len(given) != len(names):
            what = f"{len(given)} values" if isinstance(given, list) else shown(given)
            msg = f"instances[{i}] has {what}; it must be a list or an object of {len(names)}: {', '.join(names)}"
            raise Refused(422, msg)
        for name, kind, value in zip(names, self.kinds, given, strict=True):
            if not _is_of(kind, value):
                msg = f"{name} of instances[{i}] must be {KINDS[kind]}; got {shown(value)}"
                raise Refused(422, msg)
        return given

    def explain(self, rows: Any, chosen: dict[str, Any], **fixed: Any) -> Explanation:
        """The explanation of rows, with what a request chose."""
        asked = {**self.defaults, **chosen}
        sigma = self._around(asked.pop("sigma"))
        with QUIET:
            return explain(self.model, rows, sigma=sigma, switches=False, **asked, **fixed)


def as_answer(e: Explanation) -> dict[str, Any]:
    """An explanation as KServe answers: predictions, and explanations by row."""
    low, high = e.interval()
    values, errors, steps = e.values, e.standard_error, e.standardised
    explained = []
    for i in range(len(e)):
        explained.append({
            "smoothed": _plain(e.smoothed[i]),
            "values": _named(e.feature_names, values[i]),
            "standard_error": _named(e.feature_names, errors[i]),
            "lower": _named(e.feature_names, low[i]),
            "upper": _named(e.feature_names, high[i]),
            "standardised": _named(e.feature_names, steps[i]),
            "radius": _plain(e.radius[i]),
            "converged": bool(e.converged[i]),
            "n_samples": int(e.n_samples[i]),
        })  # fmt: skip
    told = {"output": e.output_name, "method": e.method, "design": e.design, "seed": e.seed, "is_exact": e.is_exact}
    return {"predictions": [_plain(each) for each in e.prediction], "explanations": explained, "about": told}


def _plain(value: Any) -> float | None:
    """A number, or None where there is none."""
    return float(value) if np.isfinite(value) else None


def _named(names: tuple[str, ...], numbers: Array) -> dict[str, float | None]:
    return {name: _plain(each) for name, each in zip(names, numbers, strict=True)}


def _selected(table: Table, names: tuple[str, ...] | None) -> Table:
    """The columns that the model takes, in its order."""
    missing = [name for name in names or () if name not in table.names]
    if missing:
        msg = (
            f"background has no column {missing[0]!r}, which the model takes; its columns are {', '.join(table.names)}"
        )
        raise InvalidArgument(msg, argument="background")
    found = as_table(table.frame.select(list(names or table.names)).to_native(), "background")
    assert found is not None
    return found


def _kind(name: str, dtype: Any) -> str:
    """What JSON holds for a column of a type."""
    kind = str(dtype)
    if dtype.is_numeric():
        return "number"
    if kind == "Boolean":
        return "boolean"
    if kind in ("String", "Object") or kind.startswith(("Categorical", "Enum")):
        return "text"
    msg = f"column {name!r} of the background holds {kind}, which requests of JSON do not; leave it out"
    raise InvalidArgument(msg, argument="background")


def _is_of(kind: str, value: Any) -> bool:
    if value is None:
        return True
    if kind == "number":
        return is_number(value)
    if kind == "boolean":
        return isinstance(value, bool)
    return isinstance(value, str) and value.isprintable()


def _column(name: str, cells: list[Any], kind: str, dtype: Any, backend: Any) -> Any:
    """A column as the background has it; whole numbers stay whole where all are."""
    import narwhals as nw

    if kind != "number":
        made = nw.new_series(name, cells, nw.Boolean() if kind == "boolean" else nw.String(), backend=backend)
        return made.cast(dtype) if str(dtype).startswith(("Categorical", "Enum")) else made
    numbers = np.array([np.nan if each is None else each for each in cells], dtype=np.float64)
    made = nw.new_series(name, numbers, nw.Float64(), backend=backend)
    is_whole = dtype.is_integer() and bool((numbers == np.rint(numbers)).all()) and np.abs(numbers).max() < 2**31
    return made.cast(nw.Int64) if is_whole else made

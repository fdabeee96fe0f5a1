"""Models that are given data frames: points reach them in frames like the caller's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Indices, Points
from ..errors import WrongType
from ..space.tables import Table
from .protocol import Model


@dataclass(frozen=True, slots=True, eq=False)
class TableModel:
    """A model that is given frames with the columns and types of a table; points are coded as `space.tables` says."""

    model: Model
    table: Table
    free: Indices
    as_pandas: bool

    @classmethod
    def of(cls, model: Model, table: Table, free: Indices) -> TableModel:
        """The model behind a table, if it takes frames at all."""
        if not hasattr(model, "wants_table"):
            text = table.not_numeric
            msg = (
                f"X has columns that hold no numbers ({', '.join(map(repr, text[:3]))}{', ...' * (len(text) > 3)}), but"
                " this model is asked with arrays. Drop or encode them, or give a function of a data frame that does"
            )
            raise WrongType(msg)
        # scikit-learn and its kin know pandas and polars by their columns, but not Arrow
        as_pandas = table.backend == "pyarrow" and hasattr(model, "estimator")
        return cls(model, table, free, as_pandas)

    @property
    def hint(self) -> str:
        """Why it is given frames, in case it cannot do with them."""
        text = ", ".join(map(repr, self.table.not_numeric[:3]))
        reason = f", since X has columns that hold no numbers: {text}" if text else ""
        return f" (the model was given a {self.table.backend} data frame{reason})"

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.model.outputs

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Columns of the table."""
        return self.table.names

    @property
    def output_range(self) -> tuple[float, float] | None:
        """Range that no output leaves, where it is known."""
        return getattr(self.model, "output_range", None)

    @property
    def epsilon(self) -> Array:
        """(f,) relative spacing of the numbers that the model computes with, by the type of each perturbed column.

        It may turn them into coarser ones of its own.
        """
        return np.maximum(self.table.spacing(self.free), getattr(self.model, "epsilon", 0.0))

    def values(self, points: Points) -> Any:
        """Outputs at each point, (n, k)."""
        return self.model.values(self.framed(points))

    def framed(self, points: Points) -> Any:
        """Points as the model is given them."""
        frame: Any = self.table.to_frame(points, self.free)
        return frame.to_pandas() if self.as_pandas else frame

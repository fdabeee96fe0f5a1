"""Models on scales: f∘T, asked at points whose columns are scores u. All that draws sees no more than this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Indices, Points
from ..errors import InvalidArgument
from ..space.neighbourhood import Factor
from ..space.row_scales import RowScales
from .protocol import Model, model_dtype, model_epsilon


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """T around rows, and the rows themselves: points (n, d + 1) in scores become points (n, d) for the model.

    The last column holds the position of the row that a point belongs to, as T may be a row's own. Where a score is
    that of the row itself, the cell is the row's to the last bit.
    """

    scales: RowScales
    rows: Array
    """(r, d) as the model is asked"""
    scores: Array
    """(r, d + 1) the same in scores, and their position"""
    inexact: tuple[int, ...]
    """Columns in which T(u(x)) differs from x at some row: by last digits, or as T takes other values only"""

    @classmethod
    def of(cls, scales: RowScales, rows: Array, x: Array) -> Curves:
        """The curves around rows, which hold positions in columns that are no numbers, unlike x."""
        place = np.arange(len(rows))
        moved = scales.columns
        u = np.column_stack([rows, place]).astype(np.float64)
        u[:, moved] = scales.scores(x)[:, moved]
        back = scales.values(u, place)
        differs = (back[:, moved] != x[:, moved]) & ~np.isnan(x[:, moved])
        return cls(scales, rows, u, tuple(np.array(moved)[differs.any(axis=0)].tolist()))

    def steps(self, factor: Factor) -> Array:
        """(f,) about how far one standard deviation leads in the features themselves, at the row where it is most.

        Infinite where it leads nowhere: what stays as it is loses no digits.
        """
        place, there = np.arange(len(self.rows)), []
        for sign in (-1.0, 1.0):
            moved = self.scores.copy()
            moved[:, factor.free] += sign * factor.std
            there.append(self.scales.values(moved, place)[:, factor.free])
        with np.errstate(invalid="ignore"):
            found = np.nan_to_num((there[1] - there[0]) / 2).max(axis=0)
        return np.where(found > 0, found, np.inf)

    def points(self, u: Points) -> tuple[Points, Indices]:
        """Points (n, d) for the model, and the row that each belongs to."""
        place = u[:, -1].astype(np.intp)
        found = self.scales.values(u.astype(np.float64, copy=False), place)[:, :-1]
        for j in self.inexact:
            is_row = u[:, j] == self.scores[place, j]
            found[is_row, j] = self.rows[place[is_row], j]
        return found, place


@dataclass(frozen=True, slots=True, eq=False)
class ModelOnScales:
    """f∘T, of which values are all that is asked: where T has jumps, gradients of f do not show them."""

    model: Model
    curves: Curves

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.model.outputs

    @property
    def output_range(self) -> tuple[float, float] | None:
        """Range that no output leaves, where it is known: T does not change it."""
        return getattr(self.model, "output_range", None)

    @property
    def epsilon(self) -> Any:
        """Relative spacing of the model's numbers; scores are float64."""
        return model_epsilon(self.model)

    @property
    def hint(self) -> str:
        """What the model has to add to an error."""
        return str(getattr(self.model, "hint", ""))

    @property
    def is_pure(self) -> bool:
        """Whether it does not use one array for all answers; points of its own it may write into."""
        return bool(getattr(self.model, "is_pure", False))

    def values(self, points: Points) -> Any:
        """Outputs at each point, (n, k)."""
        found, _ = self.curves.points(points)
        return self.model.values(found.astype(model_dtype(self.model), copy=False))


@dataclass(frozen=True, slots=True, eq=False)
class DifferentiableOnScales(ModelOnScales):
    """The same for a model with gradients, where T has no jumps: ∇(f∘T) = T′ ∘ ∇f."""

    def values_and_gradients(self, points: Points, weights: Any) -> tuple[Any, Any]:
        """Outputs (n, k) and the gradient of their weighted sum in scores, (n, d + 1)."""
        found, place = self.curves.points(points)
        dtype = model_dtype(self.model)
        model: Any = self.model
        values, gradients = model.values_and_gradients(
            found.astype(dtype, copy=False), weights.astype(dtype, copy=False)
        )
        steep = self.curves.scales.slopes(points.astype(np.float64, copy=False), place)
        steep[:, -1] = 0.0
        steep[np.isnan(steep)] = 0.0  # of what is missing there is no slope
        steep[:, :-1] *= gradients
        return values, steep


def on_scales(model: Model, scales: RowScales, rows: Array, x: Array) -> tuple[ModelOnScales, Array]:
    """The model on scales, and the rows (r, d + 1) around which it is asked; with gradients where they mean something.

    Only where T is continuous in all columns does the gradient of the model show all that f∘T does.
    """
    curves = Curves.of(scales, rows, x)
    is_smooth = hasattr(model, "values_and_gradients") and all(
        scale is None or scale.is_continuous for scale in scales.scales
    )
    return (DifferentiableOnScales if is_smooth else ModelOnScales)(model, curves), curves.scores


class OnlyAsked:
    """A model on scales of which nothing is known but what it answers, at rows anywhere in scores.

    What is read of trees and lines belongs to the rows that the scales were made around.
    """

    def __init__(self, model: ModelOnScales) -> None:
        self._asked = model

    def __getattr__(self, name: str) -> Any:
        """What it is to who asks it: its outputs, values, and gradients where it has them."""
        return getattr(self._asked, name)


def as_given(model: Model) -> Model:
    """The model that is asked in its own columns."""
    return model.model if isinstance(model, ModelOnScales) else model


GRADIENT_BOUND = (
    "a gradient bound does not carry over to scales other than 'linear': steps in logarithms or ranks make slopes of"
    " any size. Give output_range instead, or scale='linear'"
)
"""What is said where one is given; a bound on the gradient of f says nothing of f∘T."""


def refuse_gradient_bound(model: Model) -> None:
    """Refuse a bound on the gradient for a model on scales."""
    if isinstance(model, ModelOnScales):
        raise InvalidArgument(GRADIENT_BOUND, argument="gradient_bound")


def refuse_raw_units(model: Model, units: str) -> None:
    """Slopes per unit and Euclidean distances mean nothing where a step is one of a logarithm or a rank."""
    if units == "raw" and isinstance(model, ModelOnScales):
        raise InvalidArgument(RAW_UNITS, argument="units")


RAW_UNITS = "units='raw' is for steps in the features themselves; with logarithms or ranks leave it out"
"""What is said where they are asked for."""

"""When to stop drawing: planned looks at the data, and the tolerance that each look is held against.

Stopping as soon as an error bar looks small enough is a bet that one wins too often: the smallest of many noisy
error bars is too small. So looks are planned beforehand, at 256, 512, 1024, ... draws and at the cap, and each
of the K looks may miss with probability δ/K only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core.types import Array, Flags

FIRST_LOOK = 256
"""Draws before the first look. A model whose gradient lives in 2% of the draws is missed by 28% of runs at 64."""

BELIEVED_CONSTANT = 4_096
"""Normal draws before a model that has not changed at all is taken for constant. Of 256 draws, 0.6% of runs see nothing
of a model that lives in 2% of the neighbourhood, and their error bars are zero. The same for one whose standard
deviation is below AUTOMATIC_FLOOR, where that decides: draws that have met nothing leave a share of 3/n at most (95%),
and a probability that is 1 there and 0 elsewhere has a slope of φ(Φ⁻¹(1 − 3/n)) at most, 0.0025 for so many draws."""

AUTOMATIC_ATOL = 0.01
"""Absolute tolerance, as a share of the model's standard deviation over the neighbourhood."""

AUTOMATIC_FLOOR = 0.005
"""And no less than this for what is known to lie in a range of length 1. A standard deviation in [0, 1] is 0.5 at most,
so that this is 1% of the largest: a probability that hardly moves is not drawn for until its last digit is known."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """The looks that are planned, and the L2 error, in standardised units, that ends the drawing of a row."""

    looks: tuple[int, ...]
    rtol: float
    atol: float | None
    """None: AUTOMATIC_ATOL of the model's standard deviation nearby, or `floor`, whichever is larger"""
    confidence: float
    floor: float = 0.0
    """AUTOMATIC_FLOOR or nothing"""
    is_fixed: bool = False
    """Whether the number of draws was given, so that they are all there is to be spent"""

    @property
    def told(self) -> float | None:
        """The absolute tolerance, where it is a number that is known beforehand."""
        return self.atol if self.atol is not None else (self.floor or None)

    @property
    def miss(self) -> float:
        """Chance of a miss that each look may spend."""
        return (1 - self.confidence) / len(self.looks)

    def tolerance(self, size: Array, radius: Array, spread: Array) -> Array:
        """Largest error (r,) that is good enough: atol, or rtol of a slope that is at least ‖ŵ‖ − radius."""
        return np.maximum(self._without_floor(size, radius, spread), self.floor)

    def _without_floor(self, size: Array, radius: Array, spread: Array) -> Array:
        absolute = AUTOMATIC_ATOL * spread if self.atol is None else self.atol
        return np.maximum(absolute, self.rtol * (size - radius))

    def is_reached(self, n: int, size: Array, radius: Array, spread: Array, *, longer: float = 0.0) -> Flags:
        """Whether each row's error bound (r,) after n draws, a share of them longer, is within its tolerance."""
        # a probability that was near 0 at all draws is within the floor whatever it is elsewhere
        nothing = np.where(radius <= self._without_floor(size, radius, spread), 0.0, self.floor)
        is_believed = (spread > nothing) | self.is_many(n, longer)
        return np.asarray((radius <= self.tolerance(size, radius, spread)) & is_believed)

    def is_many(self, n: int, longer: float) -> bool:
        """Whether draws of which none has shown a change are enough to believe that there is none, or the last."""
        return (1 - longer) * n >= BELIEVED_CONSTANT or n >= self.looks[-1]  # longer ones may miss what is close to x

    def forecast(self, n: int, radius: Array, tolerance: Array) -> Array:
        """Draws (r,) at which rows will probably stop, errors falling as one over the root of n."""
        looks = np.array(self.looks)
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = n * (radius / tolerance) ** 2
        later = np.searchsorted(looks, np.minimum(np.nan_to_num(needed, nan=looks[-1]), looks[-1]))
        return looks[np.maximum(later, np.searchsorted(looks, n))]


def plan_looks(first: int, cap: int) -> tuple[int, ...]:
    """first, 2·first, 4·first, ... below the cap, and the cap."""
    looks = []
    while first < cap:
        looks.append(first)
        first *= 2
    return (*looks, cap)

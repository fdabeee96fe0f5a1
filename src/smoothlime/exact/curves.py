"""Curves: how the sum of trees, a margin, becomes an output, margin by margin or all of them together.

A curve of a curve, as a calibration or the inverse of a target's transformation puts on top, is a `Bend`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._core.types import Array

Longs = npt.NDArray[np.int64]


def _logistic(u: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(u), dtype=np.float64)


def _softmax(u: Array) -> Array:
    odds = np.exp(u - u.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


WELL_MEASURED = 1e-3
"""Probabilities less than this from 0 or 1 do not say how sharp a logistic curve is."""

AGREES = 4e-6
"""Outputs that what was read must reproduce, relative to their size; libraries that add in float32 differ by 1e-6."""

CURVES: dict[str, Callable[[Array], Array]] = {
    "identity": lambda u: u,
    "logistic": _logistic,
    "exponential": np.exp,
    "softmax": _softmax,
}
"""By name, in the order of their numbers in `trees/jump_kernel.py`."""


_SLOPES: dict[str, Callable[[Array], Array]] = {
    "identity": np.ones_like,
    "logistic": lambda u: _logistic(u) * _logistic(-u),
    "exponential": np.exp,
}


@dataclass(frozen=True, slots=True, eq=False)
class Bend:
    """What becomes of the outputs u of a curve, one by one: h(scale·u + shift); and perhaps their shares of the sum."""

    name: str
    scale: Array
    """(k,)"""
    shift: Array
    """(k,)"""
    tables: tuple[tuple[Array, Array], ...] = ()
    """Of "table": numbers that rise, and what becomes of them, for each output; straight lines between, flat beyond"""
    shares: bool = False

    def outputs(self, u: Array) -> Array:
        """What becomes of u (n, k)."""
        bent = self._each(self.scale * u + self.shift)
        if not self.shares:
            return bent
        total = bent.sum(axis=-1, keepdims=True)
        return np.divide(bent, total, out=np.full_like(bent, 1 / bent.shape[-1]), where=total > 0)

    def _each(self, v: Array) -> Array:
        if self.name == "table":
            return np.stack([np.interp(v[..., c], *self.tables[c]) for c in range(v.shape[-1])], axis=-1)
        return np.asarray(BENDS[self.name][0](v))

    def gradient(self, u: Array, weights: Array) -> Array:
        """Of what becomes of u (r, 1, k), weighed by (r, t, k), in u: (r, t, k)."""
        v = self.scale * u + self.shift
        if self.shares:
            bent = self._each(v)
            total = bent.sum(axis=-1, keepdims=True)
            p = np.divide(bent, total, out=np.full_like(bent, 1 / bent.shape[-1]), where=total > 0)
            weights = (weights - (weights * p).sum(axis=-1, keepdims=True)) / np.where(total > 0, total, np.inf)
        return np.asarray(weights * self.scale * self._slopes(v))

    def _slopes(self, v: Array) -> Array:
        """h'; of a table how it rises over a tenth of its length, as it may be all steps."""
        if self.name != "table":
            return np.asarray(BENDS[self.name][1](v))
        wide = np.array([max(0.1 * np.ptp(knots), np.finfo(float).tiny) for knots, _ in self.tables])
        return (self._each(v + wide / 2) - self._each(v - wide / 2)) / wide

    def steepest(self, highest: float) -> float:
        """The most by which outputs change where u changes by 1, as long as no output is above `highest`."""
        if self.name == "table":
            rises = [np.divide(np.diff(y), np.diff(x)).max(initial=0.0) for x, y in self.tables]
            slope = float(max(rises))
        else:
            slope = {"logistic": 0.25, "exponential": highest, "square": 2 * highest**0.5}[self.name]
        return slope * float(np.abs(self.scale).max())


BENDS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "logistic": (_logistic, lambda v: _logistic(v) * _logistic(-v)),
    "exponential": (np.exp, np.exp),
    "square": (np.square, lambda v: 2 * v),
}
"""h and its slope."""

BEND_NUMBERS = (*BENDS, "table")
"""Names in the order of their numbers in `trees/jump_kernel.py`."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Outputs as a known function of margins."""

    name: str
    sharpness: float = 1.0
    """What margins are multiplied by first"""
    mirrors: bool = False
    """Whether one margin gives two outputs, the probabilities of either class"""
    then: Bend | None = None
    """What becomes of that; of curves that do not mirror"""

    def outputs(self, margins: Array) -> Array:
        """Outputs (n, k) of margins (n, m)."""
        bent = CURVES[self.name](self.sharpness * margins)
        if self.then is not None:
            bent = self.then.outputs(bent)
        return np.concatenate([1 - bent, bent], axis=1) if self.mirrors else bent

    def of_margins(self, weights: Array) -> tuple[Array, Array]:
        """Weights (..., k) of outputs as weights (..., m) of what each margin becomes, and a constant (...)."""
        if not self.mirrors:
            return weights, np.zeros(weights.shape[:-1])
        return weights[..., 1:] - weights[..., :1], weights[..., 0]

    def gradient(self, margins: Array, weights: Array) -> Array:
        """Of outputs weighed by (r, t, k) in the margins (r, m): (r, t, m)."""
        weights, _ = self.of_margins(weights)
        u = self.sharpness * margins[:, None]
        if self.then is not None:
            weights = self.then.gradient(CURVES[self.name](u), weights)
        if self.name == "softmax":
            p = _softmax(u)
            return np.asarray(self.sharpness * p * (weights - (weights * p).sum(axis=-1, keepdims=True)))
        return np.asarray(self.sharpness * weights * _SLOPES[self.name](u))

    @property
    def number(self) -> int:
        """Which it is to the kernel of jumps."""
        return list(CURVES).index(self.name)

    def bend(self, k: int) -> tuple[int, Array, Array, Longs, Array, Array, bool] | None:
        """What comes after it, as the kernel of jumps takes it: number, scale, shift, tables, shares."""
        if self.then is None:
            return None
        then, tables = self.then, self.then.tables
        first = np.concatenate([[0], np.cumsum([len(knots) for knots, _ in tables])]).astype(np.int64)
        knots, heights = (
            np.concatenate([np.asarray(each[i], dtype=np.float64) for each in tables]) if tables else np.zeros(0)
            for i in range(2)
        )
        scale, shift = (np.array(np.broadcast_to(each, k), dtype=np.float64) for each in (then.scale, then.shift))
        return BEND_NUMBERS.index(then.name), scale, shift, first, knots, heights, then.shares


IDENTITY = Curve("identity")


def find_curve(margins: Array, answers: Array, tolerance: float) -> Curve | None:
    """The curve that takes margins (n, m) to what the model answers (n, k), or None where it is none of ours."""
    for curve in _candidates(margins, answers):
        with np.errstate(over="ignore"):
            found = curve.outputs(margins)
        if found.shape == answers.shape and np.abs(found - answers).max() <= tolerance * _size(margins, answers):
            return curve
    return None


def _size(margins: Array, answers: Array) -> float:
    """What a difference is compared with: float32 margins are off by a share of themselves."""
    return float(max(1.0, np.abs(margins).max()) * max(1.0, np.abs(answers).max()))


def _candidates(margins: Array, answers: Array) -> list[Curve]:
    """Curves that would have as many outputs, plain ones first."""
    if margins.shape[1] == 1 and answers.shape[1] == 2:
        positive = answers[:, 1:]
        return [Curve("logistic", s, mirrors=True) for s in (1.0, 2.0, *_sharpness(margins, positive))]
    if margins.shape != answers.shape:
        return []
    found = [Curve("identity"), *(Curve("logistic", s) for s in (1.0, *_sharpness(margins, answers)))]
    if margins.shape[1] > 1:
        return [*found, Curve("softmax")]
    return [*found, Curve("exponential")]


def _sharpness(margins: Array, probabilities: Array) -> list[float]:
    """What a margin is multiplied by, if outputs are logistic curves of margins: LightGBM has a parameter for it."""
    p = probabilities.ravel()
    use = (p > WELL_MEASURED) & (p < 1 - WELL_MEASURED) & (np.abs(margins.ravel()) > WELL_MEASURED)
    if not use.any():
        return []
    ratio = np.log(p[use] / (1 - p[use])) / margins.ravel()[use]
    return [float(ratio[np.abs(margins.ravel()[use]).argmax()])]

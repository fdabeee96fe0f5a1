"""Alignment: draws turned, row by row, so that their first coordinates lie where the model varies most.

A scrambled net fills its first coordinates best, and the gradients of a trained model vary along few directions. A
small pilot finds them: its gradients span them, or quotients of differences where a model has no gradients. The pilot
only turns the draws and is not averaged in, so that turned draws are as normal, and estimates as unbiased, as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Indices
from ..space.neighbourhood import Factor
from .sobol import EVEN_TOGETHER

PILOTS = (12, 16)
"""Draws of a pilot that asks for gradients, in pairs z, −z: below 128 draws, and else."""

VALUE_PILOTS = (2, 8, 16)
"""Draws of a pilot that asks for values, in pairs, each with a step along every axis: fewest, where nobody knows how
many draws will follow, and most."""

STEP = 0.5
"""Length of those steps, in units of draws: long enough to see the jumps of trees."""

DIRECTIONS = EVEN_TOGETHER
"""Directions that are put first: as many as there are coordinates that are even two by two."""

NOISE = 1e-3
"""Directions in which gradients vary less than this share of their size are left alone: rounding may have made them."""


def leading_directions(gradients: Array) -> Array:
    """Directions (r, k, d) that gradients (r, p, d) in units of draws vary along most; 0 where there are fewer.

    Orthonormal, by subspace iteration on the p × p products: as good as singular vectors here, for a tenth of the time.
    """
    k = min(DIRECTIONS, *gradients.shape[1:])
    products = gradients @ gradients.swapaxes(1, 2)
    largest = np.argsort(-np.diagonal(products, axis1=1, axis2=2), axis=1, kind="stable")[:, None, :k]
    basis = np.take_along_axis(products, largest, axis=2)
    for _ in range(2):
        basis = products @ np.linalg.qr(basis).Q
    spanned = gradients.swapaxes(1, 2) @ np.linalg.qr(basis).Q
    length = np.linalg.norm(spanned, axis=1)
    is_real = (length > NOISE * length[:, :1]) & (length > 0)
    directions = np.linalg.qr(spanned).Q.swapaxes(1, 2)
    return np.where(np.logical_and.accumulate(is_real, axis=1)[:, :, None], directions, 0.0)


def filled_up(directions: Array, spare: Array) -> Array:
    """The same with spare directions (1 or r, k, d) where there are fewer, orthonormal: (r, k, d).

    The axes of a table are no better directions than others, and worse if a model has its steps across them.
    """
    r, few, d = directions.shape
    found = np.zeros((r, min(spare.shape[1], d), d))
    found[:, :few] = directions
    is_missing = np.asarray(~found.any(axis=2))
    rows = is_missing.any(axis=1)
    if rows.any():
        found[is_missing] = np.broadcast_to(spare[:, : found.shape[1]], found.shape)[is_missing]
        q, upper = np.linalg.qr(found[rows].swapaxes(1, 2))
        found[rows] = (q * np.copysign(1.0, np.diagonal(upper, axis1=1, axis2=2))[:, None]).swapaxes(1, 2)
    return found


def pilot_count(needs: str, d: int, n: int | None) -> int:
    """Draws of the pilot for n draws, or for as many as it takes.

    Jumps of trees are gradients, too. Asking for values costs d + 1 points each, of which about an eighth of the draws
    are spent, within limits.
    """
    if needs != "values":
        return PILOTS[n is None or n >= 128]
    few, middle, many = VALUE_PILOTS
    if n is None:
        return middle
    return int(np.clip(2 ** np.round(np.log2(n / (8 * (d + 1)))), few, many))


def pilot_size(needs: str, d: int, n: int | None) -> int:
    """Points around a row that the pilot asks the model for."""
    return pilot_count(needs, d, n) * {"gradients": 1, "values": d + 1, "trees": 0}[needs]


def with_steps(z: Array) -> Array:
    """Each draw (p, d), and a step from it along each axis: (p·(d + 1), d)."""
    d = z.shape[1]
    return (z[:, None] + np.concatenate([np.zeros((1, d)), STEP * np.eye(d)])).reshape(-1, d)


def quotients(values: Array, d: int) -> Array:
    """Slopes (..., p, d) between draws and the steps from them, from values (..., p·(d + 1)) at both."""
    by_draw = values.reshape(*values.shape[:-1], -1, d + 1)
    return (by_draw[..., 1:] - by_draw[..., :1]) / STEP


@dataclass(frozen=True, slots=True, eq=False)
class Rotation:
    """Orthogonal maps of draws, one per row: z ↦ z + (z·inward)·outward."""

    inward: Any
    """(r, d, k)"""
    outward: Any
    """(r, k, d)"""

    @classmethod
    def onto(cls, directions: Array) -> Rotation:
        """The maps that take the first k axes to ± the directions (r, k, d), as products of k reflections."""
        r, k, d = directions.shape
        rest = directions.swapaxes(1, 2).copy()
        mirrors, joint = np.zeros((r, d, k)), np.zeros((r, k, k))
        for j in range(k):
            mirror = rest[:, :, j].copy()
            mirror[:, :j] = 0.0
            # away from the axis, never towards it: the difference of two nearly equal vectors would be all rounding
            mirror[:, j] += np.copysign(np.linalg.norm(mirror, axis=1), mirror[:, j])
            length = np.linalg.norm(mirror, axis=1, keepdims=True)
            mirror = np.divide(mirror, length, out=np.zeros_like(mirror), where=length > 0)
            rest -= 2 * mirror[:, :, None] * (mirror[:, None, :] @ rest)
            before = mirrors[:, :, :j].swapaxes(1, 2) @ mirror[:, :, None]
            joint[:, :j, j] = -2 * (joint[:, :j, :j] @ before)[..., 0]
            joint[:, j, j] = 2.0
            mirrors[:, :, j] = mirror
        # H₁⋯H_k = I − Y T Yᵀ; draws are rows, so it acts from the right, transposed
        return cls(-mirrors @ joint.swapaxes(1, 2), mirrors.swapaxes(1, 2))

    def of(self, z: Any) -> Any:
        """Draws (1 or r, n, d), turned: (r, n, d)."""
        return z + (z @ self.inward) @ self.outward

    def back(self, slopes: Any) -> Any:
        """Slopes (r, n, d) along the axes of draws, as they are along those before the turn: the map's inverse."""
        return slopes + (slopes @ self.outward.swapaxes(1, 2)) @ self.inward.swapaxes(1, 2)

    def of_steps(self, factor: Factor, dtype: str) -> Rotation:
        """The same maps for steps Lz in place of draws z, in a model's floating type."""
        inward = factor.unwhiten(self.inward.swapaxes(1, 2)).swapaxes(1, 2)
        return Rotation(inward.astype(dtype), factor.steps(self.outward).astype(dtype))

    def rows(self, kept: Indices | slice) -> Rotation:
        """The maps of some of the rows."""
        return Rotation(self.inward[kept], self.outward[kept])

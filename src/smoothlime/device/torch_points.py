"""Points around rows, made where a torch module is: steps that come from the host or are drawn there, and x + step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .._core.types import Array, Indices, Points
from .._core.xp import beside
from ..draws.blocks import Chunk
from ..draws.normals import Run
from ..draws.rotation import Rotation
from ..models.torch import TorchModel
from .torch_normals import scaled_normals

NARROW = 64
"""Rows of fewer features are repeated before steps are added: loops over long stretches of memory are faster."""

WORTH_PINNING = 2**20
"""Numbers from which on memory is pinned: that takes milliseconds by itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """One piece of memory on the host, as an array to be filled and as the tensor that is moved."""

    array: Any
    tensor: Any


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """Steps (s, b, g, f) that are each the first of a pair, whose second is its negative."""

    firsts: Any


class TorchPoints:
    """Rows on the device, and the points around them."""

    def __init__(self, model: TorchModel, rows: Points, free: Indices) -> None:
        self.model = model
        self.torch = torch = model.torch
        self.native = torch.float64 if model.dtype == np.float64 else torch.float32
        self.rows = torch.from_numpy(np.ascontiguousarray(rows)).to(model.device)
        self.free = self.positions(free) if len(free) < rows.shape[1] else None
        self._scale: Any = None
        self._space = self.rows.new_empty(0)

    def positions(self, positions: Indices) -> Any:
        """Positions on the device."""
        return self.torch.from_numpy(positions.astype(np.int64)).to(self.model.device)

    def keep(self, rows: Indices) -> Any:
        """Forget all other rows; positions of those that stay."""
        kept = self.positions(rows)
        self.rows = self.rows[kept]
        return kept

    def draw(self, runs: Sequence[Run], chunk: Chunk, scale: Array, *, is_paired: bool = False) -> Any:
        """Steps (s, b, g, f) on the device, one run of draws for each stream."""
        if self._scale is None:
            self._scale = beside(self.torch.empty(0, dtype=self.torch.float64, device=self.model.device), scale)
        steps = [scaled_normals(self.torch, run, chunk, self._scale, self.native) for run in runs]
        made = steps[0][None] if len(steps) == 1 else self.torch.stack(steps)
        return Halves(made) if is_paired else made

    def stage(self, shape: tuple[int, ...]) -> Staged:
        """Space on the host, pinned where a graphics card is to fetch much from it while others work."""
        is_pinned = self.model.device.type == "cuda" and prod(shape) >= WORTH_PINNING
        tensor = self.torch.empty(shape, dtype=self.native, pin_memory=is_pinned)
        return Staged(tensor.numpy(), tensor)

    def move(self, staged: Staged, *, is_paired: bool = False) -> Any:
        """Steps on the device; torch keeps pinned memory from being used again until they have arrived."""
        steps = staged.tensor.to(self.model.device, non_blocking=True)
        return self.paired(steps) if is_paired else steps

    def paired(self, steps: Any) -> Any:
        """Pairs, the second step of each its negative, behind the first."""
        return self.torch.stack([steps, -steps], dim=2).flatten(1, 2)

    def around(self, rows: slice, steps: Any, rotation: Rotation | None = None) -> Any:
        """Points (r·b·g, d) around rows, x + step, each perhaps rotated, written over those of the batch before.

        Fresh memory for each batch would have to be fetched from the system again and again, which on a processor takes
        as long as filling it.
        """
        if isinstance(steps, Halves):
            if self.free is None and rotation is None:
                return self._mirrored(rows, steps.firsts)
            steps = self.paired(steps.firsts)
        x = self.rows[rows]
        r, d = x.shape
        _, b, g, f = steps.shape
        shift = None if rotation is None else self._shift(steps.reshape(-1, b * g, f), rotation)
        if self.free is not None:
            if shift is not None:
                steps, shift = steps.reshape(-1, b * g, f) + shift[0] @ shift[1], None
            narrow, steps = steps, x.new_zeros((*steps.shape[:-1], d))
            steps[..., self.free] = narrow
        points = self._room(x, b * g)
        wide = g if d < NARROW and b > 4 else 1
        x = x.view(r, 1, 1, d).expand(r, 1, wide, d).reshape(r, 1, wide * d)
        self.torch.add(x, steps.reshape(-1, b * g // wide, wide * d), out=points.view(r, b * g // wide, wide * d))
        if shift is not None:
            points.view(r, b * g, d).baddbmm_(*shift)
        return points.view(r * b * g, d)

    def _mirrored(self, rows: slice, firsts: Any) -> Any:
        """The same for pairs of steps, of which the second need not be made."""
        x, (_, b, g, d) = self.rows[rows], firsts.shape
        points = self._room(x, 2 * b * g)
        pairs, centre = points.view(len(x), b, 2, g, d), x.view(-1, 1, 1, d)
        self.torch.add(centre, firsts, out=pairs[:, :, 0])
        self.torch.sub(centre, firsts, out=pairs[:, :, 1])
        return points.view(-1, d)

    def _room(self, x: Any, draws: int) -> Any:
        """Space for the points of a batch, as one line."""
        size = draws * x.numel()
        if len(self._space) < size:
            self._space = x.new_empty(size)
        return self._space[:size]

    def _shift(self, steps: Any, rotation: Rotation) -> tuple[Any, Any]:
        """What a rotation adds to steps (1 or r, n, f), as a product of (r, n, k) and (r, k, f)."""
        inward, outward = (
            self.torch.from_numpy(np.ascontiguousarray(each)).to(self.model.device, self.native)
            for each in (rotation.inward, rotation.outward)
        )
        if len(steps) > 1:
            return steps @ inward, outward
        r, f, k = inward.shape  # one product for all rows: many small ones take longer
        along = steps[0] @ inward.transpose(0, 1).reshape(f, r * k)
        return along.view(-1, r, k).transpose(0, 1), outward

"""Sums of gradients of a torch module, kept on its device: see `protocol`.

Nothing here waits for the device but `is_finite` and `totals`. Sums are tensors of float64; gradients are added up in
their own type over at most SHORT draws before they join them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isfinite
from typing import Any

import numpy as np

from .._core.types import Array, Indices, Points
from .._core.xp import merge_groups, on_host, send
from ..draws.blocks import Chunk
from ..draws.normals import Run
from ..draws.rotation import Rotation
from ..models.torch import TorchModel
from ..space.neighbourhood import Factor
from ..uncertainty.jackknife import t_quantile
from ..uncertainty.resolution import join, look
from .protocol import SHORT, Totals
from .torch_batches import TorchBatch
from .torch_groups import TorchGroupSums
from .torch_points import Halves, Staged, TorchPoints

WORTH_KEEPING = 2**16
"""Sums by group from which on statistics are made on the device: fewer are fetched sooner than looked at there."""

WORTH_SENDING = 2**20
"""Slopes up to which what a look needs is sent ahead: torch keeps the pinned memory that it arrives in."""


class TorchSums:
    """Sums of the gradients of outputs by weights (r, t, k), over groups of draws around rows (r, d).

    Perhaps with what is seen at some draws, and with products of values and steps, that rows share or not.
    """

    def __init__(
        self,
        model: TorchModel,
        rows: Points,
        free: Indices,
        groups: int,
        weights: Array,
        *,
        looks_closely: bool,
        slopes: bool = False,
        is_shared: bool = True,
    ) -> None:
        torch = model.torch
        self.model, self.is_shared = model, is_shared
        self.has_gaps = bool(np.isnan(rows).any())
        self.points = TorchPoints(model, rows, free)
        # Apple's graphics cards know no float64: there sums are kept on the host
        self.home = torch.device("cpu") if model.device.type == "mps" else model.device
        r, t, f = len(rows), weights.shape[1], len(free)
        zeros = partial(torch.zeros, dtype=torch.float64, device=self.home)
        different = weights[:1] if (weights == weights[:1]).all() else weights
        self.weights = torch.as_tensor(different.copy(), dtype=self.points.native, device=model.device)
        self.unseen = zeros(())  # sums that nobody wants, but must be finite: other outputs, features held fixed
        self.some = np.zeros(r, dtype=np.intp)  # draws that were looked at closely
        self.has_pivot = np.zeros(r, dtype=bool)
        self.values = zeros((3, r, t))  # pivot, Σ(f − pivot), Σ(f − pivot)²
        self.first = zeros((r, t, groups, f))
        self.seen = zeros((4, r, t, f)) if looks_closely else None
        self.cross = zeros((r, t, groups, f)) if slopes else None
        self.total = zeros((1 if is_shared else r, groups, f)) if slopes else None
        self._ahead: TorchGroupSums | None = None
        self._values: Any = None
        self._checksum: Any = None

    @property
    def is_asynchronous(self) -> bool:
        """Whether the device works by itself."""
        return self.model.is_asynchronous

    @property
    def keeps_groups(self) -> bool:
        """Whether what groups say stays on the device."""
        return self.can_draw and self.cross is None  # what is made of products is made on the host

    @property
    def can_draw(self) -> bool:
        """Whether the device makes draws in float64, as the host does."""
        return self.is_asynchronous and self.home == self.model.device

    def draw(self, runs: Sequence[Run], chunk: Chunk, scale: Array, *, is_paired: bool = False) -> Any:
        """Steps (s, b, g, f) on the device, one run of draws for each stream."""
        return self.points.draw(runs, chunk, scale, is_paired=is_paired)

    def stage(self, shape: tuple[int, ...]) -> Staged:
        """Space on the host for steps on their way."""
        return self.points.stage(shape)

    def move(self, staged: Staged, *, is_paired: bool = False) -> Any:
        """Steps on the device."""
        return self.points.move(staged, is_paired=is_paired)

    def positions(self, positions: Indices) -> Any:
        """Positions where the sums are."""
        return self._at_home(self.points.positions(positions))

    def batch(
        self, rows: slice, groups: slice, steps: Any, rotation: Rotation | None = None, order: Any = None
    ) -> TorchBatch:
        """Points around rows, x + step, each perhaps rotated, written over those of the batch before."""
        if isinstance(steps, Halves) and (self.cross is not None or rotation is not None):
            steps = self.points.paired(steps.firsts)
        points = self.points.around(rows, steps, rotation)
        return TorchBatch(self.model, points, self._weights(rows), partial(self._add, rows, groups, steps, order))

    def _weights(self, rows: slice) -> Any:
        return self.weights if len(self.weights) == 1 else self.weights[rows]

    def _add(self, rows: slice, groups: slice, steps: Any, order: Any, out: Any, gradients: list[Any]) -> None:
        """Add outputs (r·b·g, k) and, for each target, gradients (r·b·g, d) at the points of a batch."""
        r, g, d = rows.stop - rows.start, groups.stop - groups.start, self.points.rows.shape[1]
        b = len(out) // (r * g)
        self._add_values(rows, groups, steps, out.reshape(r, b, g, -1))
        for i, each in enumerate(gradients):
            by_draw = each.reshape(r, b, g * d)
            total = over_draws(by_draw).view(r, g, d)
            if self.points.free is not None:
                others = total
                if self.has_gaps:  # by what is missing there is no gradient, and it may be anything
                    others = total.masked_fill(self.points.rows[rows].isnan()[:, None], 0.0)
                self.unseen.add_(self._at_home(others.sum(dtype=self.first.dtype)))
            self.first[rows, i, groups].add_(self._wanted(total))
            if self.seen is not None and order is not None:
                join(self.seen[:, :, i], rows, look(self._wanted(each.reshape(r, b * g, d)), order))
        self.some[rows] += 0 if order is None else order.shape[1] * order.shape[2]

    def _add_values(self, rows: slice, groups: slice, steps: Any, out: Any) -> None:
        """Σ(f − pivot) and Σ(f − pivot)², where f are sums of outputs (r, b, g, k) by the weights of targets.

        And Σ step and Σ step·(f − pivot) by group, where they are wanted, of steps (1 or r, b, g, f).
        """
        self.unseen.add_(self._at_home(out.sum()))  # a product with weight 0 may or may not see what is not finite
        r, b, g, k = out.shape
        weights = self._weights(rows).to(out.dtype).swapaxes(1, 2)
        scalars = (out.reshape(len(weights), -1, k) @ weights).view(r, b, g, -1)
        pivot = self.values[0, rows]
        if not self.has_pivot[rows].all():
            pivot.copy_(scalars.mean(dim=(1, 2)))
            self.has_pivot[rows] = True
        centred = scalars - pivot.to(scalars.device, scalars.dtype)[:, None, None]
        self.values[1, rows].add_(self._at_home(over_draws(centred)).double().sum(dim=1))
        self.values[2, rows].add_(self._at_home(over_draws(centred.square())).double().sum(dim=1))
        if self.cross is None or self.total is None:
            return
        self.cross[rows, :, groups].add_(self._at_home(self._products(centred, steps)))
        if not self.is_shared:
            self.total[rows, groups].add_(self._at_home(over_draws(steps)))
        elif rows.start == 0:  # those that rows share count once
            self.total[:, groups].add_(self._at_home(over_draws(steps)))

    def _products(self, centred: Any, steps: Any) -> Any:
        """Σ step·value over b, (r, t, g, f), for values (r, b, g, t) and steps (1 or r, b, g, f)."""
        einsum = self.model.torch.einsum
        if len(steps) == 1:
            return einsum("rbgt,bgf->rtgf", centred, steps[0].to(centred.dtype))
        return einsum("rbgt,rbgf->rtgf", centred, steps.to(centred.dtype))

    def _wanted(self, gradients: Any) -> Any:
        """Gradients of the features that are perturbed, where the sums are."""
        free = self.points.free
        return self._at_home(gradients if free is None else gradients[..., free])

    def _at_home(self, tensor: Any) -> Any:
        """A tensor where the sums are: almost always where it is."""
        return tensor.to(self.home)

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        kept = self.points.keep(rows)
        self.weights = self.weights if len(self.weights) == 1 else self.weights[kept]
        kept = self._at_home(kept)
        self.some, self.has_pivot = self.some[rows], self.has_pivot[rows]
        self.values, self.first = self.values[:, kept], self.first[kept]
        self.seen = None if self.seen is None else self.seen[:, kept]
        self.cross = None if self.cross is None else self.cross[kept]
        self.total = self.total if self.total is None or self.is_shared else self.total[kept]

    def merge(self) -> None:
        """Make one group of each two."""
        merge_groups(self.first.flatten(0, 1))
        if self.cross is not None:
            merge_groups(self.cross.flatten(0, 1))
            merge_groups(self.total)

    def is_finite(self) -> bool:
        """Whether nothing that was added was infinite or NaN, by one sum over all of it; squares show no more."""
        ahead, self._checksum = self._checksum, None
        together = on_host(self._sum_of_all() if ahead is None else ahead)
        seen = self.unseen, self.values[1], self.first
        return isfinite(float(together)) or all(bool(each.isfinite().all()) for each in seen)

    def _sum_of_all(self) -> Any:
        return self.unseen + self.values[1].sum() + self.first.sum()

    def look_ahead(self, sizes: Array, factor: Factor, miss: float) -> None:
        """Have the device go on to what will be asked of groups of sizes (g,), before it is waited for."""
        if self.keeps_groups and self.first.numel() >= WORTH_KEEPING:
            self._ahead = TorchGroupSums(self.model.torch, self.first.flatten(0, 1))
            mean, pseudovalues = self._ahead.means(sizes, factor, float(t_quantile(len(sizes) - 1.0, 1 - miss / 2)))
            self._values, self._checksum = self.values.flatten(1), self._sum_of_all()
            if mean.is_cuda and mean.numel() <= WORTH_SENDING and self.seen is None:  # else errors may be raised
                send([self._values, self._checksum, mean, *pseudovalues.wanted])

    def totals(self, rows: slice) -> Totals:
        """The sums of some rows, rows × targets: on the host, but those by group where they can stay."""
        ahead, self._ahead = self._ahead, None
        pivot, value_first, value_second = on_host(self.values[:, rows].flatten(1) if ahead is None else self._values)
        total = self.total
        if total is not None and not self.is_shared:
            total = total[rows].repeat_interleave(self.first.shape[1], dim=0)
        return Totals(
            pivot=pivot,
            value_first=value_first[:, None],
            value_second=value_second,
            first=ahead or on_host(self.first[rows].flatten(0, 1)),
            some=int(self.some[rows].max()),
            seen=None if self.seen is None else on_host(self.seen[:, rows].flatten(1, 2)),
            cross=None if self.cross is None else on_host(self.cross[rows].flatten(0, 1)),
            total=None if total is None else on_host(total),
        )


def over_draws(terms: Any) -> Any:
    """Sums of terms (r, b, ...) over b: in their own type over short runs, in float64 from run to run."""
    if terms.shape[1] <= SHORT:
        return terms.sum(dim=1)
    return sum(run.sum(dim=1).double() for run in terms.split(SHORT, dim=1))

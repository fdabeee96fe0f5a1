"""Sums of gradients of a torch module, kept on its device: see `protocol`.

Nothing here waits for the device but `is_finite` and `totals`. Sums are tensors of float64; gradients are added up in
their own type over at most SHORT draws before they join them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.types import Array, Indices, Points
from .._core.xp import beside, merge_groups, on_host, send
from ..draws.blocks import Chunk
from ..draws.normals import Run
from ..draws.rotation import Rotation
from ..space.neighbourhood import Factor
from ..uncertainty.jackknife import t_quantile
from .protocol import Totals, common_rows, first_few
from .torch_batches import Answer, Place, TorchBatch, over_draws
from .torch_groups import TorchGroupSums
from .torch_points import Halves, Staged, TorchPoints

if TYPE_CHECKING:
    from ..models.torch import TorchModel

WORTH_KEEPING = 2**16
"""Sums by group from which on statistics are made on the device: fewer are fetched sooner than looked at there."""

WORTH_SENDING = 2**20
"""Slopes up to which what a look needs is sent ahead: torch keeps the pinned memory that it arrives in."""

WAITING = 2**19
"""Outputs that may wait to be added up together with those of further rows: few large operations beat many small, until
what waits keeps memory from being used again."""


class TorchSums:
    """Sums of the gradients of outputs by weights (r, t, k), over groups of draws around rows (r, d).

    Perhaps with second moments of gradients, and with products of values and steps, that rows share or not.
    """

    def __init__(
        self,
        model: TorchModel,
        rows: Points,
        free: Indices,
        groups: int,
        weights: Array,
        *,
        moments: bool,
        slopes: bool = False,
        is_shared: bool = True,
    ) -> None:
        self.model = model
        self.is_shared = is_shared
        self.torch = torch = model.torch
        self.points = TorchPoints(model, rows, free)
        # Apple's graphics cards know no float64: there sums are kept on the host
        self.home = torch.device("cpu") if model.device.type == "mps" else model.device
        self.free, self.held = self.points.free, None
        if self.free is not None:
            self.held = self.points.positions(np.setdiff1d(np.arange(rows.shape[1]), free))
        self.unseen = self._zeros()  # sums that nobody wants, but must be finite: other outputs, features held fixed
        self.is_begun = np.zeros(len(rows), dtype=np.bool_)
        self.some = np.zeros(len(rows), dtype=np.intp)
        self._ahead: TorchGroupSums | None = None
        self._values: Any = None
        self._checksum: Any = None
        self._cotangents: list[Any] = []
        self._waiting: list[Answer] = []
        self._outputs_waiting = 0
        r, t, f = len(rows), weights.shape[1], len(free)
        self.weights = beside(self.unseen, np.array(common_rows(weights), dtype=np.float64))
        self.common = list(self.weights[0].to(self.model.device, self.points.native)) if len(self.weights) == 1 else []
        self.columns = [_only(each) if self.common else None for each in weights[0]]
        # a tensor for each target: most have one, and shorter indices are found faster
        self.pivot = [self._zeros(r) for _ in range(t)]
        self.value_first, self.value_second = ([self._zeros(r, groups) for _ in range(t)] for _ in range(2))
        self.first = [self._zeros(r, groups, f) for _ in range(t)]
        self.moments = [self._zeros(2, r, f) for _ in range(t)] if moments else []
        self.cross = [self._zeros(r, groups, f) for _ in range(t)] if slopes else []
        self.total = self._zeros(1 if is_shared else r, groups, f) if slopes else None

    def _zeros(self, *shape: int) -> Any:
        return self.torch.zeros(shape, dtype=self.torch.float64, device=self.home)

    @property
    def is_asynchronous(self) -> bool:
        """Whether the device works by itself."""
        return self.model.is_asynchronous

    @property
    def keeps_groups(self) -> bool:
        """Whether what groups say stays on the device."""
        return self.can_draw and not self.cross  # what is made of products is made on the host

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

    def batch(self, rows: slice, groups: slice, steps: Any, turns: Rotation | None = None) -> TorchBatch:
        """Points around rows, x + step, each perhaps turned, written over those of the batch before."""
        if isinstance(steps, Halves) and (self.cross or turns is not None):
            steps = self.points.paired(steps.firsts)
        points = self.points.around(rows, steps, turns)
        draws = len(points) // (rows.stop - rows.start)
        place = Place(rows, groups, draws // (groups.stop - groups.start))
        return TorchBatch(self, place, points, steps if self.cross else None)

    def cotangents(self, rows: slice, draws: int, part: slice) -> list[Any]:
        """For each target, the weights (n, k) of the outputs at some of the points of rows × draws."""
        n = part.stop - part.start
        if self._cotangents and len(self._cotangents[0]) >= n:
            return [cotangent[:n] for cotangent in self._cotangents]
        is_common = len(self.weights) == 1
        weights = (self.weights if is_common else self.weights[rows]).to(self.model.device, self.model.tensor_dtype)
        made = weights.expand(n, -1, -1) if is_common else weights.repeat_interleave(draws, dim=0)[part]
        cotangents = [made[:, i].contiguous() for i in range(made.shape[1])]
        if is_common:
            self._cotangents = cotangents
        return cotangents

    def keep(self, rows: Indices) -> None:
        """Forget all other rows."""
        self._add_waiting()
        at_home = self.points.keep(rows).to(self.home)
        if len(self.weights) > 1:
            self.weights = self.weights[at_home]
        for kept_by_row in (self.pivot, self.value_first, self.value_second, self.first, self.cross):
            kept_by_row[:] = [each[at_home] for each in kept_by_row]
        if self.total is not None and not self.is_shared:
            self.total = self.total[at_home]
        self.moments = [each[:, at_home] for each in self.moments]
        self.is_begun, self.some = self.is_begun[rows], self.some[rows]

    def merge(self) -> None:
        """Make one group of each two."""
        self._add_waiting()
        totals = () if self.total is None else (self.total,)
        for sums in (*self.value_first, *self.value_second, *self.first, *self.cross, *totals):
            merge_groups(sums)

    def is_finite(self) -> bool:
        """Whether nothing that was added was infinite or NaN, by one sum over all of it; squares show no more."""
        self._add_waiting()
        ahead, self._checksum = self._checksum, None
        together = on_host(self._sum_of_all() if ahead is None else ahead)
        return isfinite(float(together)) or all(
            bool(each.isfinite().all()) for each in (self.unseen, *self.value_first, *self.first)
        )

    def _sum_of_all(self) -> Any:
        return sum((each.sum() for each in (*self.value_first, *self.first)), start=self.unseen)

    def look_ahead(self, sizes: Array, factor: Factor, miss: float) -> None:
        """Have the device go on to what will be asked of groups of sizes (g,), before it is waited for."""
        self._add_waiting()
        first = self._rows(self.first, slice(None)) if self.keeps_groups else None
        if first is not None and first.numel() >= WORTH_KEEPING:
            self._ahead = TorchGroupSums(self.torch, first)
            mean, pseudovalues = self._ahead.means(sizes, factor, float(t_quantile(len(sizes) - 1.0, 1 - miss / 2)))
            self._values, self._checksum = self._value_sums(slice(None)), self._sum_of_all()
            if mean.is_cuda and mean.numel() <= WORTH_SENDING and not self.moments:  # else errors may be raised
                send([self._values, self._checksum, mean, *pseudovalues.wanted])

    def totals(self, rows: slice) -> Totals:
        """The sums of some rows, rows × targets: on the host, but those by group where they can stay."""
        self._add_waiting()
        ahead, self._ahead = self._ahead, None
        pivot, values, squares = on_host(self._value_sums(rows) if ahead is None else self._values)
        return Totals(
            pivot=pivot,
            value_first=values[:, None],
            value_second=squares,
            first=ahead or self._rows(self.first, rows).cpu().numpy(),
            some=int(self.some[rows].max()),
            moments=self._moments(rows),
            cross=self._rows(self.cross, rows).cpu().numpy() if self.cross else None,
            total=self._total(rows),
        )

    def _value_sums(self, rows: slice) -> Any:
        """(3, r): pivots, and sums of all groups together."""
        sums = (self._rows(each, rows).sum(dim=1) for each in (self.value_first, self.value_second))
        return self.torch.stack([self._rows(self.pivot, rows), *sums])

    def _total(self, rows: slice) -> Array | None:
        """Σ step, for rows × targets where rows have steps of their own."""
        if self.total is None:
            return None
        total = self.total if self.is_shared else self.total[rows].repeat_interleave(len(self.first), dim=0)
        return np.asarray(total.cpu().numpy())

    def _moments(self, rows: slice) -> Array | None:
        if not self.moments:
            return None
        both = [self._rows([each[i] for each in self.moments], rows) for i in range(2)]
        return np.asarray(self.torch.stack(both).cpu().numpy())

    def _rows(self, by_target: list[Any], rows: slice) -> Any:
        """Rows × targets of a tensor for each target."""
        parts = [each[rows] for each in by_target]
        return parts[0] if len(parts) == 1 else self.torch.stack(parts, dim=1).flatten(0, 1)

    def add(self, answer: Answer) -> None:
        """Add an answer, or have it wait for those of the rows that follow."""
        if self._waiting and not self._waiting[-1].place.is_followed_by(answer.place):
            self._add_waiting()
        self._waiting.append(answer)
        self._outputs_waiting += answer.out.numel()
        if self._outputs_waiting > WAITING:
            self._add_waiting()

    def _add_waiting(self) -> None:
        """Add what has come in for some draws of consecutive rows."""
        if not self._waiting:
            return
        first, last = self._waiting[0], self._waiting[-1]
        rows, groups = slice(first.place.rows.start, last.place.rows.stop), first.place.groups
        steps = None
        if first.steps is not None:
            steps = first.steps if self.is_shared else self.together([each.steps for each in self._waiting])
            self._add_steps(rows, groups, steps)
        self._add_values(rows, groups, first.place.b, self.together([each.out for each in self._waiting]), steps)
        for i in range(len(self.first)):
            total = self.at_home(self.together([each.sums[i] for each in self._waiting]))
            if self.free is not None:
                self.unseen.add_(total[..., self.at_home(self.held)].sum())
                total = total[..., self.at_home(self.free)]
            self.first[i][rows, groups].add_(total)
            if self.moments:
                self.moments[i][:, rows].add_(self.together([each.moments[i] for each in self._waiting], axis=1))
        self.is_begun[rows] = True
        self.some[rows] += first_few(first.place.b) * first.place.g
        self._waiting.clear()
        self._outputs_waiting = 0

    def _add_steps(self, rows: slice, groups: slice, steps: Any) -> None:
        """Σ step by group, of steps (1 or r, b, g, f); those that rows share count with the first of the rows."""
        assert self.total is not None
        if not self.is_shared or rows.start == 0:
            self.total[slice(1) if self.is_shared else rows, groups].add_(self.at_home(over_draws(steps)))

    def _add_values(self, rows: slice, groups: slice, b: int, out: Any, steps: Any = None) -> None:
        """Σ(f − pivot) and Σ(f − pivot)² by group, where f is a target's sum of outputs (n, k) by weight.

        And Σ step·(f − pivot), where steps (1 or r, b, g, f) are given.
        """
        self.unseen.add_(self.at_home(out.sum()))  # a product with weight 0 may or may not see what is not finite
        r, g = rows.stop - rows.start, groups.stop - groups.start
        for i in range(len(self.first)):
            if self.columns[i] is not None:
                scalars = out[:, self.columns[i]].view(r, b, g)
            elif self.common:
                scalars = self.torch.mv(out, self.common[i].to(out.dtype)).view(r, b, g)
            else:
                weights = self.weights[rows, i, None].to(out.device, out.dtype)
                scalars = (out.view(r, b * g, -1) * weights).sum(dim=2).view(r, b, g)
            pivot = self.pivot[i][rows]
            if not self.is_begun[rows].all():
                pivot.copy_(scalars.mean(dim=(1, 2)))
            centred = scalars - pivot.to(scalars.device, scalars.dtype).view(r, 1, 1)
            self.value_first[i][rows, groups].add_(self.at_home(over_draws(centred)))
            self.value_second[i][rows, groups].add_(self.at_home(over_draws(centred.square())))
            if steps is not None:
                self.cross[i][rows, groups].add_(self.at_home(_products(centred, steps)))

    def at_home(self, tensor: Any) -> Any:
        """A tensor where the sums are: almost always where it is."""
        return tensor if self.home == tensor.device else tensor.to(self.home)

    def together(self, tensors: list[Any], axis: int = 0) -> Any:
        """Tensors one behind the other."""
        return tensors[0] if len(tensors) == 1 else self.torch.cat(tensors, dim=axis)


def _only(weights: Array) -> int | None:
    """The output that is wanted as it is, where weights (k,) want no other."""
    wanted = np.flatnonzero(weights)
    return int(wanted[0]) if len(wanted) == 1 and weights[wanted[0]] == 1 else None


def _products(centred: Any, steps: Any) -> Any:
    """Σ step·value over b, (r, g, f), for values (r, b, g) and steps (1 or r, b, g, f)."""
    if len(steps) == 1:  # one matrix product for each group
        return (centred.permute(2, 0, 1) @ steps[0].transpose(0, 1).to(centred.dtype)).transpose(0, 1)
    return (centred[..., None] * steps).sum(dim=1)

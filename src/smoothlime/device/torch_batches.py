"""One batch of points of a torch module: asked, and added up to what `torch_sums` keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import ModelError
from .protocol import SHORT, first_few

if TYPE_CHECKING:
    from .torch_sums import TorchSums

SPOILT = (
    "the model wrote into its input, and then memory ran out, so the points are lost. Let it work on a copy:"
    " x = x.clone(), or give smaller batches with batch_size="
)


@dataclass(slots=True, eq=False)
class TorchBatch:
    """Points (r·b·g, d) on the device, and where their gradients belong."""

    sums: TorchSums
    place: Place
    points: Any
    steps: Any
    """(1 or r, b, g, f) before they were turned, where products with them are wanted"""
    _spoilt: int = 0
    """Points that the module has written into before it was known to"""

    def __len__(self) -> int:
        """Count of points."""
        return len(self.points)

    def ask(self, part: slice) -> tuple[Any, list[Any]]:
        """Outputs (n, k) at some of the points, and their gradients (n, d) for each target."""
        sums, place = self.sums, self.place
        if part.start < self._spoilt:  # memory ran out since
            raise ModelError(SPOILT)
        cotangents = sums.cotangents(place.rows, place.b * place.g, part)
        leaf, out = self._followed(self.points[part], part.stop)
        gradients = sums.model.gradients(leaf, out, cotangents)
        out = sums.model.native(out.detach().clone())  # the next batch, or its answer, may be written over it
        return (out if out.ndim == 2 else out[:, None]), gradients

    def _followed(self, points: Any, stop: int) -> tuple[Any, Any]:
        """Points as torch follows them, and outputs; a module that writes into points spoils them up to `stop`."""
        model = self.sums.model
        known = len(model.habits)
        found = model.followed(points)
        if len(model.habits) > known:
            self._spoilt = stop
        return found

    def add(self, answers: Sequence[tuple[Any, list[Any]]]) -> None:
        """Add up the gradients at all points over the draws of each group, and pass the sums on."""
        sums, place = self.sums, self.place
        out = sums.together([each for each, _ in answers])
        found = [sums.together(list(parts)) for parts in zip(*(each for _, each in answers), strict=True)]
        r, d = place.rows.stop - place.rows.start, self.points.shape[1]
        by_draw = [each.reshape(r, place.b, place.g * d) for each in found]
        totals = [over_draws(each).view(r, place.g, d) for each in by_draw]
        few = [each[:, : first_few(place.b)].reshape(r, -1, d) for each in by_draw] if sums.moments else []
        sums.add(Answer(place, out, totals, [self._moments(each) for each in few], self.steps))

    def _moments(self, gradients: Any) -> Any:
        """Σ∇f and Σ(∇f)² over some draws, (2, r, f), in float64."""
        sums = self.sums
        some = sums.at_home(gradients if sums.free is None else gradients[..., sums.free]).double()
        return sums.torch.stack([some.sum(dim=1), some.square_().sum(dim=1)])


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """The rows and groups that a batch belongs to, with b draws for each of g groups."""

    rows: slice
    groups: slice
    b: int

    @property
    def g(self) -> int:
        """How many groups."""
        return self.groups.stop - self.groups.start

    def is_followed_by(self, other: Place) -> bool:
        """Whether the other holds the same draws of the rows that come next."""
        return (self.groups, self.b, self.rows.stop) == (other.groups, other.b, other.rows.start)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What is kept of a batch: outputs (n, k), and for each target sums (r, g, d) and perhaps moments (2, r, f)."""

    place: Place
    out: Any
    sums: list[Any]
    moments: list[Any]
    steps: Any


def over_draws(terms: Any) -> Any:
    """Sums of terms (r, b, ...) over b: in their own type over short runs, in float64 from run to run."""
    if terms.shape[1] <= SHORT:
        return terms.sum(dim=1)
    return sum(run.sum(dim=1).double() for run in terms.split(SHORT, dim=1))

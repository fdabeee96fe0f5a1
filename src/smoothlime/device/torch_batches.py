"""One batch of points of a torch module: asked, in parts where memory is short, and handed on whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ModelError
from ..models.torch import TorchModel

SPOILT = (
    "the model wrote into its input, and then memory ran out, so the points are lost. Let it work on a copy:"
    " x = x.clone(), or give smaller batches with batch_size="
)

Answer = tuple[Any, list[Any]]
"""Outputs (n, k), and gradients (n, d) for each target"""


@dataclass(slots=True, eq=False)
class TorchBatch:
    """Points on the device, and what their answers are for."""

    model: TorchModel
    points: Any
    """(n, d)"""
    weights: Any
    """(w, t, k) of outputs: one for each of w runs of n / w points"""
    take: Callable[[Any, list[Any]], None]
    """Is given the answer for all points"""
    _spoilt: int = 0
    """Points that the module has written into before it was known to"""

    def __len__(self) -> int:
        """Count of points."""
        return len(self.points)

    def ask(self, part: slice) -> Answer:
        """The answer for some of the points."""
        if part.start < self._spoilt:  # memory ran out since
            raise ModelError(SPOILT)
        known = len(self.model.habits)
        try:
            return self.model.outputs_and_gradients(self.points[part], self._cotangents(part))
        finally:
            if len(self.model.habits) > known:
                self._spoilt = part.stop

    def _cotangents(self, part: slice) -> list[Any]:
        """For each target the weights (n, k) of the outputs at some of the points."""
        if len(self.weights) == 1:
            return list(self.weights[0][:, None].expand(-1, part.stop - part.start, -1))
        by_point = self.weights.repeat_interleave(len(self) // len(self.weights), dim=0)
        return list(by_point[part].unbind(dim=1))

    def add(self, answers: Sequence[Answer]) -> None:
        """Hand on the answers for parts that make up all points."""
        cat = self.model.torch.cat
        out, gradients = answers[0]
        if len(answers) > 1:
            out = cat([each for each, _ in answers])
            gradients = [cat(parts) for parts in zip(*(each for _, each in answers), strict=True)]
        self.take(out, gradients)

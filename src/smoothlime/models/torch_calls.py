"""Calls of torch modules with some arguments set by `functools.partial`, as modules, so that gradients are there.

torch is imported at once: whoever has such a module has torch.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch


def as_module(call: Any) -> Any:
    """The module whose `forward` it is, or one that calls a module with some arguments set."""
    if not isinstance(call, partial):
        return call.__self__
    return Call(getattr(call.func, "__self__", call.func), call.keywords)


class Call(torch.nn.Module):  # type: ignore[misc]  # torch is typed in part: see pyproject.toml
    """A module with some arguments set, tensors among them on the device of the points."""

    def __init__(self, module: Any, settings: dict[str, Any]) -> None:
        super().__init__()
        self.training = False  # its own mode alone: the module within is as it is
        self.module = module
        self.settings = dict(settings)

    def forward(self, points: Any, **others: Any) -> Any:
        """The module's outputs."""
        return self.module(points, **{name: _placed(each, points) for name, each in self.settings.items()}, **others)


def _placed(value: Any, points: Any) -> Any:
    return value.to(points.device) if isinstance(value, torch.Tensor) else value

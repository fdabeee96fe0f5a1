"""Programs that `torch.export` has made, as modules: gradients flow through their graphs as ever.

They come from files that hold numbers and a graph. A pickle runs whatever code is in it when it is loaded.

torch is imported at once: whoever has such a program has torch.
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import ModelError


def as_module(program: Any) -> Any:
    """The program as a module that takes any number of points, whatever size of batch it was exported for."""
    module = program.module()
    further = _further(program)
    if further:
        module = ByPosition(module, further)
    size = _fixed_batch(program)
    return module if size is None else FixedBatches(module, size)


class ByPosition(torch.nn.Module):  # type: ignore[misc]  # torch is typed in part: see pyproject.toml
    """A program that was exported with several arguments by position, and takes no others; held ones come by name."""

    def __init__(self, module: Any, further: tuple[str, ...]) -> None:
        super().__init__()
        self.module = module
        self.further = further

    def forward(self, points: Any, **others: Any) -> Any:
        """The program's outputs."""
        missing = [name for name in self.further if name not in others]
        if missing:
            name = missing[0]
            msg = f"the exported program takes {name!r} besides: give as_model(program, held={{{name!r}: ...}})"
            raise ModelError(msg)
        return self.module(points, *(others.pop(name) for name in self.further), **others)


class FixedBatches(torch.nn.Module):  # type: ignore[misc]  # torch is typed in part: see pyproject.toml
    """A module that can only be called with so many points at a time; to the last ones, copies of one are added."""

    def __init__(self, module: Any, size: int) -> None:
        super().__init__()
        self.module = module
        self.size = size

    def forward(self, points: Any, **others: Any) -> Any:
        """Outputs of all points, part by part."""
        inputs = {"": points, **others}
        parts = [self._ask({name: each[i : i + self.size] for name, each in inputs.items()}, len(points) - i)
                 for i in range(0, len(points), self.size)]  # fmt: skip
        return _joined(parts)

    def _ask(self, inputs: dict[str, Any], left: int) -> Any:
        missing = self.size - left
        if missing > 0:
            inputs = {
                name: torch.cat([each, each[-1:].expand(missing, *each.shape[1:])]) for name, each in inputs.items()
            }
        points = inputs.pop("")
        return _map(lambda each: each[:left], self.module(points, **inputs))


def _further(program: Any) -> tuple[str, ...]:
    """Names of the arguments by position behind the first, if each is a tensor of its own."""
    by_position = program.call_spec.in_spec.children()[0]
    if by_position.num_children != by_position.num_leaves:
        return ()
    return tuple(program.graph_signature.user_inputs[1 : by_position.num_leaves])


def _fixed_batch(program: Any) -> int | None:
    """Points that each call must have, or None where any number will do."""
    first = program.graph_signature.user_inputs[0]
    node = next(each for each in program.graph.nodes if each.op == "placeholder" and each.name == first)
    size = node.meta["val"].shape[0]
    return size if isinstance(size, int) else None


def _joined(parts: list[Any]) -> Any:
    """Outputs of parts as one: a tensor, or a tuple, list or dictionary of tensors."""
    one = parts[0]
    if isinstance(one, dict):
        return {name: _joined([each[name] for each in parts]) for name in one}
    if isinstance(one, tuple | list):
        return type(one)(_joined([each[i] for each in parts]) for i in range(len(one)))
    return torch.cat(parts) if isinstance(one, torch.Tensor) else one


def _map(change: Any, out: Any) -> Any:
    """The same change to each tensor of an output."""
    if isinstance(out, dict):
        return {name: _map(change, each) for name, each in out.items()}
    if isinstance(out, tuple | list):
        return type(out)(_map(change, each) for each in out)
    return change(out) if isinstance(out, torch.Tensor) else out

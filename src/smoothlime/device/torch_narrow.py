"""Networks of narrow dense layers, computed feature by feature: the same numbers, but for rounding, sooner.

Torch keeps the features of a point side by side in memory, and libraries for matrix products work on as many of them at
once as a register of the processor holds. A layer with fewer outputs leaves part of every register empty. With a
feature's values at all points side by side instead, as `(W xᵀ)ᵀ`, registers are always full.
"""

from __future__ import annotations

from functools import partial
from typing import Any

REGISTER = 16
"""Numbers of float32 in the longest registers: layers with at least as many outputs gain nothing, or lose."""

MANY = 1_024
"""Points from which on it is worth the extra operations."""


def is_narrow(torch: Any, module: Any) -> bool:
    """Whether a module has dense layers, all of them narrow: others would wait for what these have laid out.

    Weights of another kind, quantised ones say, may know no other product than that of `torch.nn.Linear`.
    """
    dense = [part for part in module.modules() if type(part) is torch.nn.Linear]
    usual = (torch.Tensor, torch.nn.Parameter)
    return bool(dense) and all(part.out_features < REGISTER and type(part.weight) in usual for part in dense)


def lay_out(torch: Any, module: Any) -> None:
    """Have the dense layers of a module that is ours to change work feature by feature."""
    for part in module.modules():
        if type(part) is torch.nn.Linear:
            part.forward = partial(_dense, torch, part.weight, part.bias)
        elif getattr(part, "inplace", False):
            part.inplace = False  # what is written over a transposed tensor takes torch longer on the way back


def _dense(torch: Any, weight: Any, bias: Any, points: Any) -> Any:
    """What `torch.nn.Linear` answers to points (n, d), or (..., d)."""
    if points.ndim != 2 or len(points) < MANY:
        return torch.nn.functional.linear(points, weight, bias)
    across = points.t()
    return (torch.mm(weight, across) if bias is None else torch.addmm(bias[:, None], weight, across)).t()

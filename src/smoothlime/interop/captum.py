"""captum's way to ask: `SmoothLime(model).attribute(inputs, target=...)` in the place of one of its attributions.

>>> import torch
>>> from smoothlime.interop.captum import SmoothLime
>>> net = torch.nn.Linear(2, 3).eval()
>>> SmoothLime(net, sigma=0.5, n_samples=64).attribute(torch.zeros(1, 2), target=1).shape
torch.Size([1, 2])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.optional import require
from ..errors import InvalidArgument, WrongType
from ..explain import explain
from ..models import Model, as_model
from ..models.protocol import is_model
from ..result.explanation import Explanation

torch: Any = require("torch", extra="torch", to="attribute as captum does")


class SmoothLime:
    """Slopes of a smoothed model, asked for as captum's attributions are.

    `forward_func` is a torch module, a function of tensors, or the result of `as_model`; settings are those of
    `smoothlime.explain`, such as `sigma` and `n_samples`. Slopes are per unit of the inputs and not multiplied by them,
    as those of `Saliency(abs=False)`. With the module in place of one of captum's, `captum.metrics` take it too::

        infidelity(net, perturb, inputs, SmoothLime(net, sigma=0.1).attribute(inputs, target=0), target=0)
        sensitivity_max(SmoothLime(net, sigma=0.1, n_samples=64).attribute, inputs, target=0)
    """

    def __init__(self, forward_func: Any, **settings: Any) -> None:
        self.forward_func = forward_func
        self.settings = settings

    def attribute(self, inputs: Any, target: Any = None, additional_forward_args: Any = None, **settings: Any) -> Any:
        """Slopes, a tensor of the inputs' shape, type and device; 0 for features that were held fixed.

        Parameters
        ----------
        inputs
            A tensor (n, ...), or a tuple that holds just one.
        target
            An output for all rows, or one for each: an int, a list of ints, or a tensor (n,). None where there is one.
        additional_forward_args
            Further arguments of the model, which are held: tensors of n lines go with their rows, all else goes with
            every row.
        """
        is_tuple = isinstance(inputs, tuple)
        tensor = _one_tensor(inputs)
        found = self.explain(tensor, target, additional_forward_args, **settings)
        slopes = np.nan_to_num(found.values).reshape(tuple(tensor.shape))
        made = torch.as_tensor(slopes).to(device=tensor.device, dtype=tensor.dtype)
        return (made,) if is_tuple else made

    def explain(
        self, inputs: Any, target: Any = None, additional_forward_args: Any = None, **settings: Any
    ) -> Explanation:
        """The whole explanation, with the errors of its slopes."""
        tensor = _one_tensor(inputs)
        model = _model(self.forward_func, tensor, additional_forward_args)
        return explain(model, tensor.detach(), target=_target(target), **{**self.settings, **settings})


def _one_tensor(inputs: Any) -> Any:
    """The tensor of inputs, (n, ...)."""
    if isinstance(inputs, tuple | list):
        if len(inputs) != 1:
            msg = (
                f"inputs must be one tensor; got {len(inputs)}. The first is perturbed: give the others as"
                " additional_forward_args"
            )
            raise InvalidArgument(msg, argument="inputs")
        inputs = inputs[0]
    if not isinstance(inputs, torch.Tensor) or not inputs.is_floating_point() or inputs.ndim < 2:
        what = f"shape {tuple(inputs.shape)} of {inputs.dtype}" if isinstance(inputs, torch.Tensor) else type(inputs)
        msg = f"inputs must be a tensor of floats (n, ...), a line for each row; got {what}"
        raise WrongType(msg, argument="inputs")
    return inputs


def _target(target: Any) -> Any:
    """captum's target as ours: an int in a tensor or tuple of one is an int."""
    if isinstance(target, torch.Tensor):
        return int(target) if target.numel() == 1 else target.detach().cpu().numpy()
    if isinstance(target, tuple):
        if len(target) != 1:
            msg = f"target must pick one of the outputs (n, k); {target} is for outputs of more axes"
            raise InvalidArgument(msg, argument="target")
        return target[0]
    if isinstance(target, list) and all(isinstance(each, tuple) for each in target):
        return [_target(each) for each in target]
    return target


def _model(forward_func: Any, inputs: Any, additional: Any) -> Model:
    """The model as `explain` takes it, with further arguments that are held."""
    others = () if additional is None else additional if isinstance(additional, tuple) else (additional,)
    if is_model(forward_func):
        if others:
            msg = "additional_forward_args go with a module or a function; give as_model(module, held=...) instead"
            raise InvalidArgument(msg, argument="additional_forward_args")
        return forward_func
    if not others and _has_numbers(forward_func):
        return as_model(forward_func)
    if not callable(forward_func):
        msg = f"forward_func must be a torch module or a function of tensors; got a {type(forward_func).__name__}"
        raise WrongType(msg, argument="forward_func")
    held = {
        f"argument_{i}": each
        for i, each in enumerate(others)
        if isinstance(each, torch.Tensor) and each.ndim and len(each) == len(inputs)
    }
    module = _Called(forward_func, others, inputs)
    return as_model(module, held=held) if held else as_model(module)


def _has_numbers(function: Any) -> bool:
    """Whether it is a module with numbers of its own, which say in which type it computes."""
    if not isinstance(function, torch.nn.Module):
        return False
    return any(each.is_floating_point() for each in (*function.parameters(), *function.buffers()))


class _Called(torch.nn.Module):  # type: ignore[misc]  # torch is typed in part: see pyproject.toml
    """A function of tensors, or a module, with arguments behind the first."""

    def __init__(self, function: Callable[..., Any], others: tuple[Any, ...], inputs: Any) -> None:
        super().__init__()
        self.training = False  # its own mode alone: the module within is as it is
        self.function = function
        self.others = others
        if not _has_numbers(function):  # what says where, and in which type, it computes
            self.register_buffer("like", inputs.detach()[:0])

    def forward(self, points: Any, **held: Any) -> Any:
        """The function's outputs."""
        return self.function(points, *(held.get(f"argument_{i}", each) for i, each in enumerate(self.others)))

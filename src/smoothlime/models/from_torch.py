"""PyTorch modules: values and gradients, one batched backward pass over all points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._optional import require
from .._types import Points
from ..errors import InvalidArgument, ModelError

DETACHED = (
    "the network's output does not depend on its input through differentiable operations (a detach, rounding or argmax"
    " on the way?); use method='clime', which needs only predictions"
)


@dataclass(frozen=True, slots=True)
class TorchModel:
    """A module in evaluation mode; its parameters and their `requires_grad` are left as they are."""

    module: Any
    is_probability: bool
    torch: Any
    dtype: np.dtype[Any]
    tensor_dtype: Any
    device: Any
    feature_names: tuple[str, ...] | None
    outputs: tuple[str, ...] = ()

    is_tidy: ClassVar[bool] = True

    @property
    def output_range(self) -> tuple[float, float] | None:
        """Range that no output leaves, where it is known."""
        return (0.0, 1.0) if self.is_probability else None

    def forward(self, points: Any) -> Any:
        """The module's outputs, with a softmax or a sigmoid on top where probabilities are wanted."""
        out = self.module(points)
        if not self.is_probability:
            return out
        if out.ndim == 1 or out.shape[1] == 1:
            return self.torch.sigmoid(out)
        return self.torch.softmax(out, dim=1)

    def values(self, points: Points) -> Any:
        """Outputs at each point, (n, k)."""
        with self.torch.no_grad():
            return self._columns(self.forward(self._tensor(points)))

    def values_and_gradients(self, points: Points, weights: Any) -> tuple[Any, Any]:
        """Outputs (n, k) and the gradient of their weighted sum, (n, d)."""
        leaf = self._tensor(points).requires_grad_(True)
        with self.torch.enable_grad():
            out = self.forward(leaf)
            if not out.requires_grad:
                raise ModelError(DETACHED)
            (gradient,) = self.torch.autograd.grad(
                out, leaf, grad_outputs=self._tensor(weights).reshape(out.shape), allow_unused=True
            )
            if gradient is None:
                raise ModelError(DETACHED)
        return self._columns(out.detach()), self._array(gradient)

    def _tensor(self, array: Any) -> Any:
        contiguous = np.ascontiguousarray(array, dtype=self.dtype)
        return self.torch.from_numpy(contiguous).to(device=self.device, dtype=self.tensor_dtype)

    def _array(self, tensor: Any) -> Any:
        on_host = tensor.cpu()
        is_native = on_host.dtype in (self.torch.float32, self.torch.float64)
        return (on_host if is_native else on_host.to(self.torch.float32)).numpy()

    def _columns(self, out: Any) -> Any:
        array = self._array(out)
        return array[:, None] if array.ndim == 1 else array

    @property
    def epsilon(self) -> float:
        """Relative spacing of the numbers that the network computes with."""
        return float(self.torch.finfo(self.tensor_dtype).eps)


def from_torch(
    module: Any,
    *,
    output: str | None,
    feature_names: tuple[str, ...] | None,
    outputs: tuple[str, ...],
    device: Any,
) -> TorchModel:
    """Adapter for an `nn.Module` of points (n, d), in the type and on the device of its parameters."""
    torch = require("torch", extra="torch", to="explain a torch module")
    if output == "margin":
        msg = "output='margin' is for classifiers that know both; a torch module's outputs are taken as they come"
        raise InvalidArgument(msg)
    _check_evaluation_mode(module)
    if device is not None:
        module = module.to(device)
    parameter = next((each for each in (*module.parameters(), *module.buffers()) if each.is_floating_point()), None)
    tensor_dtype = torch.get_default_dtype() if parameter is None else parameter.dtype
    where = torch.device("cpu" if parameter is None else parameter.device)
    dtype = np.dtype(np.float64 if tensor_dtype == torch.float64 else np.float32)

    is_probability = output == "probability"
    return TorchModel(
        module, is_probability, torch, dtype, tensor_dtype, torch.device(device or where), feature_names, outputs
    )


def _check_evaluation_mode(module: Any) -> None:
    """Dropout and batch norm in training mode make an answer depend on chance or on its neighbours in a batch."""
    for name, part in module.named_modules():
        kind = type(part)
        home = next((cls.__module__ for cls in kind.__mro__ if cls.__module__.startswith("torch.nn.modules")), "")
        drops = isinstance(getattr(part, "dropout", None), int | float) and part.dropout > 0
        moody = home.endswith((".dropout", ".batchnorm")) or kind.__name__ == "RReLU" or drops
        if part.training and moody:
            where = f" (at {name!r})" if name else ""
            msg = (
                f"the network has a {kind.__name__}{where} in training mode, so its answers depend on chance or on"
                " the rest of the batch. Call model.eval() first"
            )
            raise ModelError(msg)

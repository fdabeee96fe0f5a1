"""PyTorch modules: values and gradients, one batched backward pass over all points."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from .._core.optional import require
from .._core.types import Points
from .._core.validate import check_choice
from ..errors import InvalidArgument, ModelError, WrongType
from .inputs import Inputs, check_held, said_of_shape
from .parts import check_key, part_of, several
from .protocol import FEWEST, changed_width, is_out_of_memory, wrong_shape
from .torch_layers import check_ready, dense_units

DETACHED = (
    "the network's output does not depend on its input through differentiable operations (a detach, rounding or argmax"
    " on the way?); use method='clime', which needs only predictions"
)

EMBEDS = (
    "the network looks its input up in an embedding, by whole numbers, which have no slopes. Explain a module that"
    " takes the vectors of the embedding instead, (n, tokens, width)"
)

INFERENCE_MODE = (
    "torch's inference mode is on, and nothing has gradients within it. Leave the `with torch.inference_mode()` block"
    " to explain the network, or use method='clime', which needs only predictions"
)

PROCESSOR_BATCH_BYTES, DENSE_BATCH_BYTES = 2**19, 5 * 2**20
"""Points per call, by size: alone, where nobody knows what is made of them on the way, which may be many times as
large; and with all that the dense layers of a network make of them. More would not stay in a processor's cache."""

GRAPHICS_BATCH_BYTES = 2**26
"""Points per call of a network on another device: enough to keep it busy."""

BATCH_SHARE, HELD_SHARE = 512, 16
"""Shares of a graphics card's memory for the points of a call, and for the sums of the rows explained together: a 512th
and a 16th. What a network makes of its points on the way may be a hundred times as large."""

FEWEST_IN_SHAPE = 4
"""Points per call of a network on a processor, at least, where rows have a shape: images may be large, and the layers
of a network that takes them make a hundred times as much of each."""

WORTH_COMPILING = 32
"""Fewer points than this are asked of the module as it is: they are done before a compiler is."""

NUMBER_TYPES = ("bfloat16", "float16")

WRITES = "writes into its input"

NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class TorchModel:
    """A module in evaluation mode; its parameters and their `requires_grad` are left as they are."""

    module: Any
    is_probability: bool
    dtype: np.dtype[Any]
    tensor_dtype: Any
    device: Any
    feature_names: tuple[str, ...] | None
    outputs: tuple[str, ...] = ()
    compiled: Any = None
    """A function of parameters and points, or None"""
    autocast: Any = None
    """Number type in which layers that bear it compute, or None"""
    units: int = 0
    """Outputs of all dense layers, where a network on a processor has no others"""
    inputs: Inputs | None = None
    """What it is called with, where that is not just points (n, d)"""
    output_key: str | int | None = None
    """Which of several outputs is explained"""
    known_range: tuple[float, float] | None = None
    """Which no output leaves, where its last layer says so"""
    spacing: float | None = None
    """Relative spacing of its layers' numbers, where that is known not to be that of its points"""
    habits: set[str] = field(default_factory=set, compare=False)
    """WRITES once the module was seen to write into its input: only running it can tell"""

    is_pure: ClassVar[bool] = True
    device_sums: ClassVar[str] = "torch_sums.TorchSums"
    """What adds up its gradients where they are: file and class of `device`"""

    @property
    def torch(self) -> Any:
        """The library. It is no field, as a library cannot be sent to another process; a module brings it along."""
        return sys.modules["torch"]

    @property
    def output_range(self) -> tuple[float, float] | None:
        """Range that no output leaves, where it is known."""
        return (0.0, 1.0) if self.is_probability else self.known_range

    @property
    def batch_bytes(self) -> int:
        """Size of the points that one call is best given."""
        if self.device.type == "cuda":
            return self._memory // BATCH_SHARE
        if self.device.type != "cpu":
            return GRAPHICS_BATCH_BYTES
        return DENSE_BATCH_BYTES if self.units else PROCESSOR_BATCH_BYTES

    @property
    def fewest(self) -> int:
        """Points that one call is given, however large they are."""
        is_shaped = self.inputs is not None and bool(self.inputs.shape)
        return FEWEST_IN_SHAPE if is_shaped and self.device.type == "cpu" else FEWEST

    @property
    def hint(self) -> str:
        """What may help where the network raises an error."""
        return "" if self.inputs is None else said_of_shape(self.inputs.shape)

    @property
    def holds(self) -> bool:
        """Whether it has inputs beside the first one, and does not know yet of which row."""
        return self.inputs is not None and bool(self.inputs.held) and not self.inputs.is_coded

    def bound_to(self, shape: tuple[int, ...], rows: int) -> TorchModel:
        """The same for points around `rows` rows of a shape, which carry the position of their row if it `holds`."""
        inputs = (self.inputs or Inputs()).bound_to(shape, rows)
        return replace(self, inputs=inputs, feature_names=None if inputs.is_coded else self.feature_names)

    @property
    def made(self) -> int:
        """Numbers made of each point that share `batch_bytes` with it."""
        return 0 if self.is_asynchronous else self.units

    @property
    def is_asynchronous(self) -> bool:
        """Whether the device works by itself, while the host does something else."""
        return bool(self.device.type != "cpu")

    @property
    def held_bytes(self) -> int | None:
        """Size of the sums that the device holds at once; None where they share the host's memory with all else."""
        return self._memory // HELD_SHARE if self.device.type == "cuda" else None

    @property
    def _memory(self) -> int:
        return int(self.torch.cuda.get_device_properties(self.device).total_memory)

    def forward(self, points: Any, others: Mapping[str, Any] = NOTHING) -> Any:
        """The module's outputs, with a softmax or a sigmoid on top where probabilities are wanted."""
        if self.habits:
            points = points.clone()  # torch follows gradients through it
        if self.inputs is not None:
            points = self.inputs.first(points)
        lower = nullcontext()
        if self.autocast is not None:
            lower = self.torch.autocast(self.device.type, dtype=self.autocast)
        with lower:
            if self.compiled is None or len(points) < WORTH_COMPILING:
                out = self._asked(points, others)
            else:
                # as constants: a compiled backward pass would work out gradients of parameters too, and drop them
                parameters = {name: each.detach() for name, each in self.module.named_parameters()}
                out = self.compiled(parameters, points, **others)
        if self.output_key is not None:
            out = part_of(out, self.output_key)
        if not isinstance(out, self.torch.Tensor):
            raise ModelError(_no_tensor(out))
        if not self.is_probability:
            return out
        out = self.native(out)  # of few digits, probabilities would not add up to one
        if out.ndim == 1 or out.shape[1] == 1:
            return self.torch.sigmoid(out)
        return self.torch.softmax(out, dim=1)

    def _asked(self, points: Any, others: Mapping[str, Any]) -> Any:
        try:
            return self.module(points, **others)
        except RuntimeError as err:
            if "'indices'" in str(err) and "embedding" in str(err):
                raise ModelError(EMBEDS) from err
            raise

    def values(self, points: Points) -> Any:
        """Outputs at each point, (n, k).

        A module that writes into its input spoils the points of one call, and is given copies from then on: others have
        no need to pay for them.
        """
        native = self._tensor(points)
        given = native.to(self.tensor_dtype)
        before = _writes(given)
        with self.torch.no_grad():
            out = self.forward(given, self._others(native))
        if _writes(given) != before:
            self.habits.add(WRITES)
        # some modules follow gradients whatever they are told, and some write the next answer into the same memory
        return self._columns(out.detach().clone())

    def values_and_gradients(self, points: Points, weights: Any) -> tuple[Any, Any]:
        """Outputs (n, k) and the gradient of their weighted sum, (n, d)."""
        out, (gradient,) = self.outputs_and_gradients(self._tensor(points), [self._tensor(weights)])
        return self._columns(out), self._array(gradient)

    def outputs_and_gradients(self, points: Any, weights: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Outputs (n, k) at points (n, d) on the device, and the gradient (n, d) of their sum by each of the weights.

        One pass forward, and one backward for each; all in float32 or float64, whatever the module computes in. A
        module that writes into its input may spoil the points.
        """
        others = self._others(points)  # before the points lose digits
        leaf = points.detach().to(self.tensor_dtype).requires_grad_(True)
        before = _writes(leaf)
        try:
            with self.torch.enable_grad():
                out = self.forward(leaf, others)
        finally:
            if _writes(leaf) != before:
                self.habits.add(WRITES)
        if out.ndim not in (1, 2) or len(out) != len(leaf):
            raise ModelError(wrong_shape(len(leaf), tuple(out.shape)))
        if not out.requires_grad:
            raise ModelError(INFERENCE_MODE if self.torch.is_inference_mode_enabled() else DETACHED)
        gradients = [self._gradient(leaf, out, each, is_last=each is weights[-1]) for each in weights]
        out = self.native(out.detach().clone())  # the next answer, or batch, may be written into the same memory
        return (out if out.ndim == 2 else out[:, None]), gradients

    def _gradient(self, leaf: Any, out: Any, weights: Any, *, is_last: bool) -> Any:
        """The gradient (n, d) of the sum of outputs by weights (n, k)."""
        if weights.numel() != out.numel():
            raise ModelError(changed_width(weights.shape[1], out.numel() // len(out)))
        wanted = weights.reshape(out.shape).to(out.dtype)
        (gradient,) = self.torch.autograd.grad(
            out, leaf, grad_outputs=wanted, retain_graph=not is_last, allow_unused=True
        )
        if gradient is None:
            raise ModelError(DETACHED)
        return self.native(gradient)

    def _tensor(self, array: Any) -> Any:
        """Numbers of the host where the network is, in a type that both know."""
        contiguous = np.ascontiguousarray(array, dtype=self.dtype)
        return self.torch.from_numpy(contiguous).to(device=self.device)

    def _others(self, points: Any) -> Mapping[str, Any]:
        """The arguments beside the points."""
        return NOTHING if self.inputs is None else self.inputs.others(points)

    def _array(self, tensor: Any) -> Any:
        return self.native(tensor).cpu().numpy()

    def native(self, tensor: Any) -> Any:
        """In a type that sums can be made in, and that NumPy knows."""
        is_native = tensor.dtype in (self.torch.float32, self.torch.float64) or tensor.is_complex()
        return tensor if is_native else tensor.to(self.torch.float32)

    def _columns(self, out: Any) -> Any:
        array = self._array(out)
        return array[:, None] if array.ndim == 1 else array

    @property
    def epsilon(self) -> float:
        """Relative spacing of the numbers that the network computes with."""
        if self.spacing is not None:
            return self.spacing
        return float(self.torch.finfo(self.tensor_dtype if self.autocast is None else self.autocast).eps)


def from_torch(
    module: Any,
    *,
    output: str | None,
    feature_names: tuple[str, ...] | None,
    outputs: tuple[str, ...],
    device: Any,
    compiled: bool | str = False,
    autocast: str | None = None,
    output_key: str | int | None = None,
    held: Mapping[str, Any] | None = None,
) -> TorchModel:
    """Adapter for an `nn.Module` of points (n, d), in the type and on the device of its parameters."""
    torch = require("torch", extra="torch", to="explain a torch module")
    check_key(output_key)
    if output == "margin":
        msg = "output='margin' is for classifiers that know both; a torch module's outputs are taken as they come"
        raise InvalidArgument(msg, argument="output")
    check_ready(torch, module)
    if device is not None:
        device = _check_device(torch, device)
        module = module.to(device)
    kept = chain(module.parameters(), module.buffers())
    parameter = next((each for each in kept if each.is_floating_point()), None)
    tensor_dtype = torch.get_default_dtype() if parameter is None else parameter.dtype
    home = torch.device("cpu" if parameter is None else parameter.device)
    if autocast is not None:
        check_choice(autocast, "autocast", NUMBER_TYPES)
    home = home if device is None else device
    return TorchModel(
        module=module,
        is_probability=output == "probability",
        dtype=np.dtype(np.float64 if tensor_dtype == torch.float64 else np.float32),
        tensor_dtype=tensor_dtype,
        device=home,
        feature_names=feature_names,
        outputs=outputs,
        compiled=_compile(torch, module, compiled),
        autocast=None if autocast is None else getattr(torch, autocast),
        units=dense_units(torch, module) if home.type == "cpu" else 0,  # nobody asks for it elsewhere
        inputs=None if held is None else Inputs(held=_placed_beside(torch, module, held, tensor_dtype, home)),
        output_key=output_key,
    )


def _placed_beside(torch: Any, module: Any, held: Any, dtype: Any, device: Any) -> Mapping[str, Any]:
    """Further inputs where the network is; those of floats in the type of its own."""
    check_held(held, module.forward)
    tensors = {}
    for name, lines in held.items():
        try:
            tensors[name] = torch.as_tensor(lines).detach().to(device)
        except TypeError as err:  # text, objects
            msg = f"held[{name!r}] must hold numbers that torch can read: {err}"
            raise WrongType(msg, argument="held") from err
    return {name: each.to(dtype) if each.is_floating_point() else each for name, each in tensors.items()}


def _compile(torch: Any, module: Any, backend: bool | str) -> Any:
    """A compiled function of parameters and points, by torch's own backend or the one that is named; or None."""
    if not isinstance(backend, bool | str):
        msg = f"compile must be True, False or the name of a backend; got {backend!r}"
        raise InvalidArgument(msg)
    if backend is False:
        return None
    if isinstance(backend, str):
        _check_backend(torch.compiler, backend)
    return Compiled(module, backend)


class Compiled:
    """A function of parameters and points that torch translates; in another process, once more."""

    def __init__(self, module: Any, backend: bool | str) -> None:
        torch: Any = sys.modules["torch"]  # is there: the module is
        called = torch.func.functional_call
        named = {} if backend is True else {"backend": backend}
        self._call = torch.compile(
            lambda parameters, points, **others: called(module, parameters, (points,), others), **named
        )
        self._made_of = module, backend

    def __call__(self, parameters: Any, points: Any, **others: Any) -> Any:
        """The module's outputs."""
        return self._call(parameters, points, **others)

    def __reduce__(self) -> tuple[Any, ...]:
        """What it is made of again."""
        return Compiled, self._made_of


def _check_backend(compiler: Any, backend: str) -> None:
    """Any backend that torch has will do, but those for testing torch itself are not worth naming."""
    if backend not in compiler.list_backends(exclude_tags=()):
        usual = ", ".join(map(repr, compiler.list_backends()))
        msg = f"compile must be True, False or the name of a backend of torch, such as {usual}; got {backend!r}"
        raise InvalidArgument(msg)


def _check_device(torch: Any, device: Any) -> Any:
    """The device, if torch can use it here: asked before the module is touched."""
    try:
        found = torch.device(device)
        torch.empty(1, device=found).item()  # a device that holds no numbers refuses
    except (RuntimeError, AssertionError, TypeError, ImportError) as err:  # each kind of device has its own
        if is_out_of_memory(err):
            raise  # it is there, but full: torch says how full
        there = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        there += ["mps"] if torch.backends.mps.is_available() else []
        msg = f"device must be one that torch can use here ({', '.join(map(repr, there))}); got {device!r}"
        raise InvalidArgument(msg) from err
    return found


def _no_tensor(out: Any) -> str:
    """What is wrong with outputs that are no tensor, and how to get at the one that is meant."""
    if parts := several(out):
        return f"the network returned {parts}"
    return (
        f"the network returned a {type(out).__name__}, but one tensor (n,) or (n, k) is wanted. Wrap it in a module"
        " whose forward calls it and returns the part to explain"
    )


def _writes(points: Any) -> int:
    """How often a tensor was written to, by torch's own count, which tensors of inference mode do not keep."""
    return 0 if points.is_inference() else int(points._version)

"""Modules of JAX's libraries, Equinox and Flax nnx: their numbers, the rest, and whether they are ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.optional import require
from ..errors import ModelError, WrongType
from .jax import JaxModel, default_type, ready, spacing, wants_probability

EQUINOX_HINT = (
    " A module that wants a key or a state gets them from a function:"
    " jax.jit(jax.vmap(lambda row: model(row, state)[0]))"
)

LINEN = (
    "a {} of flax.linen does not hold its parameters; give a function that does:"
    " jax.jit(lambda points: module.apply(variables, points))"
)


def from_equinox(
    module: Any, *, output: str | None, feature_names: tuple[str, ...] | None, outputs: tuple[str, ...]
) -> JaxModel:
    """Adapter for an `equinox.Module` of single rows (d,), as is the custom, or of points (n, d)."""
    jax = ready()
    _check_inference(jax, module)
    number_type = _number_type(jax, split_tree(module)[1])
    return JaxModel(
        model=module,
        split=split_tree,
        number_type=number_type,
        epsilon=spacing(jax, number_type),
        is_probability=wants_probability(output),
        feature_names=feature_names,
        outputs=outputs,
        hint=EQUINOX_HINT,
    )


def from_flax(
    module: Any, *, output: str | None, feature_names: tuple[str, ...] | None, outputs: tuple[str, ...]
) -> JaxModel:
    """Adapter for a `flax.nnx.Module`, which may be trained on: its numbers are taken at each call."""
    if any(cls.__module__.startswith("flax.linen") for cls in type(module).__mro__):
        raise WrongType(LINEN.format(type(module).__name__))
    jax, nnx = ready(), _nnx()
    _check_evaluation_mode(nnx, module)
    number_type = _number_type(jax, jax.tree_util.tree_leaves(nnx.state(module)))
    return JaxModel(
        model=module,
        split=split_graph,
        number_type=number_type,
        epsilon=spacing(jax, number_type),
        is_probability=wants_probability(output),
        feature_names=feature_names,
        outputs=outputs,
    )


def split_tree(module: Any) -> tuple[Tree, list[Any]]:
    """An Equinox module without its arrays, and these."""
    jax = ready()
    leaves, tree = jax.tree_util.tree_flatten(module)
    held = tuple(isinstance(each, jax.Array | np.ndarray) for each in leaves)
    rest = tuple(each for each, is_array in zip(leaves, held, strict=True) if not is_array)
    return Tree(tree, held, rest), [each for each, is_array in zip(leaves, held, strict=True) if is_array]


def split_graph(module: Any) -> tuple[Graph, Any]:
    """An nnx module without its state, and this."""
    graph, state = _nnx().split(module)
    return Graph(graph), state


@dataclass(frozen=True, slots=True)
class Tree:
    """An Equinox module but for its arrays."""

    tree: Any
    held: tuple[bool, ...]
    """Which leaves are arrays"""
    rest: tuple[Any, ...]
    """The leaves that are not"""

    def __call__(self, state: Any, points: Any) -> Any:
        """What the module says."""
        arrays, rest = iter(state), iter(self.rest)
        return self.tree.unflatten(next(arrays if is_array else rest) for is_array in self.held)(points)


@dataclass(frozen=True, slots=True)
class Graph:
    """An nnx module but for its state: each call works on a copy, whose changes are lost."""

    graph: Any

    def __call__(self, state: Any, points: Any) -> Any:
        """What the module says."""
        # variables made here: nnx lets none be written to within a transformation that was made outside of it
        own = ready().tree_util.tree_map(lambda each: each, state)
        return _nnx().merge(self.graph, own)(points)


def _nnx() -> Any:
    return require("flax.nnx", extra="jax", to="explain a Flax module")


def _number_type(jax: Any, leaves: Any) -> str:
    """Type of the first parameter that is no whole number; JAX's own where there is none."""
    found = (each.dtype for each in leaves if jax.numpy.issubdtype(each.dtype, jax.numpy.floating))
    return str(next(found, default_type(jax)))


def _check_inference(jax: Any, module: Any) -> None:
    """Refuse layers of an Equinox module whose answers depend on chance, or on the rest of the batch."""
    nn: Any = require("equinox", extra="jax", to="explain an Equinox module").nn
    moody = (nn.Dropout, nn.BatchNorm)
    for layer in jax.tree_util.tree_leaves(module, is_leaf=lambda each: isinstance(each, moody)):
        if isinstance(layer, moody) and layer.inference is False and getattr(layer, "p", True):
            raise ModelError(_in_training(type(layer).__name__, "model = eqx.nn.inference_mode(model)"))


def _check_evaluation_mode(nnx: Any, module: Any) -> None:
    """Refuse layers of an nnx module whose answers depend on chance, or on the rest of the batch."""
    for _, layer in nnx.iter_modules(module):
        rate = getattr(layer, "rate", getattr(layer, "dropout_rate", None))
        drops = getattr(layer, "deterministic", None) is False and rate
        if drops or getattr(layer, "use_running_average", None) is False:
            raise ModelError(_in_training(type(layer).__name__, "model.eval()"))


def _in_training(layer: str, way: str) -> str:
    return (
        f"the network has a {layer} in training mode, so its answers depend on chance or on the rest of the batch."
        f" Call {way} first"
    )

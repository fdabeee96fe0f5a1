"""Keras models: gradients by the library that they run on, torch or JAX; on others their outputs alone."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import ref

import numpy as np
from scipy import special

from .._core.optional import require
from .._core.types import Points
from ..errors import ModelError
from .fitted import attribute
from .jax import JaxModel, ready, wants_probability
from .parts import listed
from .protocol import Model, as_columns
from .torch import TorchModel

PROBABILITIES = ("softmax", "sigmoid", "hard_sigmoid")
"""Activations of the last layer whose outputs lie between 0 and 1."""

SPACINGS = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
"""Relative spacing of the numbers of each type that a layer may compute in."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a model, whichever library it runs on."""

    is_probability: bool
    """Whether a softmax or a sigmoid is put on top"""
    range: tuple[float, float] | None
    """Which its own outputs do not leave"""
    spacing: float
    """Of the numbers of its least exact layer"""
    feature_names: tuple[str, ...] | None
    outputs: tuple[str, ...]


def from_keras(
    model: Any, *, output: str | None, feature_names: tuple[str, ...] | None, outputs: tuple[str, ...]
) -> Model:
    """Adapter for a Keras model of points (n, d), called with `training=False`."""
    keras: Any = require("keras", extra="jax", to="explain a Keras model")
    _check(model)
    last = _last_layer(model)
    known_range = (0.0, 1.0) if _activation(last) in PROBABILITIES else None
    known = Known(
        is_probability=wants_probability(output) and known_range is None,
        range=known_range,
        spacing=max(SPACINGS.get(each.compute_dtype, 0.0) for each in (model, *model._flatten_layers())),
        feature_names=feature_names,
        outputs=outputs or _name(last),
    )
    backend = keras.backend.backend()
    if backend == "torch":
        return _on_torch(model, known)
    return _on_jax(model, known) if backend == "jax" else KerasValues(model, known)


@dataclass(frozen=True, slots=True)
class Inference:
    """A Keras model as torch's modules are called."""

    model: Any

    def __call__(self, points: Any) -> Any:
        """Outputs, without what layers do in training alone."""
        return _one(self.model, self.model(points, training=False))


@dataclass(frozen=True, slots=True)
class Stateless:
    """A Keras model but for its variables, as JAX compiles it; it may go before what was compiled does."""

    model: ref[Any]

    def __call__(self, state: Any, points: Any) -> Any:
        """Outputs with the variables given; what layers would write into theirs is lost."""
        model = self.model()
        assert model is not None, "its adapter holds it"
        how = {"training": False} if "training" in inspect.signature(model.call).parameters else {}
        return model.stateless_call(*state, points, **how)[0]


@dataclass(frozen=True, slots=True)
class KerasValues:
    """A Keras model on a library of which smoothlime asks no gradients."""

    model: Any
    known: Known

    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.float32)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.known.outputs

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return self.known.feature_names

    @property
    def output_range(self) -> tuple[float, float] | None:
        """Range that no output leaves, where it is known."""
        return (0.0, 1.0) if self.known.is_probability else self.known.range

    @property
    def epsilon(self) -> float:
        """Relative spacing of the numbers that it computes with."""
        return self.known.spacing

    def values(self, points: Points) -> Any:
        """Outputs at each point, (n, k)."""
        out = as_columns(_one(self.model, self.model.predict_on_batch(points)), len(points))
        if not self.known.is_probability:
            return out
        return special.expit(out) if out.shape[1] == 1 else special.softmax(out, axis=1)


def _on_torch(model: Any, known: Known) -> TorchModel:
    torch = require("torch", extra="torch", to="explain a Keras model on torch")
    variable = next((each.value for each in model.variables), None)
    return TorchModel(
        module=Inference(model),
        is_probability=known.is_probability,
        dtype=np.dtype(np.float64 if model.compute_dtype == "float64" else np.float32),
        tensor_dtype=getattr(torch, model.compute_dtype),
        device=torch.device("cpu") if variable is None else variable.device,
        feature_names=known.feature_names,
        outputs=known.outputs,
        known_range=known.range,
        spacing=known.spacing,
    )


def _on_jax(model: Any, known: Known) -> JaxModel:
    ready()
    return JaxModel(
        model=model,
        split=split_variables,
        number_type=model.compute_dtype,
        epsilon=known.spacing,
        is_probability=known.is_probability,
        known_range=known.range,
        feature_names=known.feature_names,
        outputs=known.outputs,
        is_kept=True,
        is_batched=True,
    )


def split_variables(model: Any) -> tuple[Stateless, Any]:
    """A Keras model without the values of its variables, and these: it may be trained on."""
    variables = model.trainable_variables, model.non_trainable_variables
    return Stateless(ref(model)), tuple([each.value for each in kept] for kept in variables)


def _check(model: Any) -> None:
    """Refuse models without weights, and those with more than one input or output."""
    name = type(model).__name__
    if not model.built:
        msg = (
            f"the {name} has no weights yet: its first call would make some up. Call it once on a batch, or"
            " model.build((None, d)), or load its weights, before it is explained"
        )
        raise ModelError(msg)
    inputs, outputs = (getattr(model, each, None) for each in ("inputs", "outputs"))
    if isinstance(inputs, list | tuple) and len(inputs) > 1:
        msg = (
            f"the {name} has {len(inputs)} inputs; give a function of the one that is perturbed, with the others held:"
            " lambda a: model([a, others])"
        )
        raise ModelError(msg)
    kinds = [str(getattr(each, "dtype", "")) for each in inputs or ()] if isinstance(inputs, list | tuple) else []
    if any(kind.startswith(("int", "uint", "bool", "string")) for kind in kinds):
        msg = (
            f"the {name} takes whole numbers or text ({kinds[0]}), which have no slopes. Explain it from its embeddings"
            " on: keras.Model(embedded, model.outputs[0])"
        )
        raise ModelError(msg)
    named = attribute(model, "output")  # of a model that was never called there is none
    if isinstance(named, dict):
        msg = (
            f"the {name} has its outputs in a dictionary; give the part to explain:"
            f" keras.Model(model.inputs, model.output[{next(iter(named))!r}])"
        )
        raise ModelError(msg)
    if isinstance(outputs, list | tuple) and len(outputs) > 1:
        msg = (
            f"the {name} has {len(outputs)} outputs; give the part to explain:"
            " keras.Model(model.inputs, model.outputs[0])"
        )
        raise ModelError(msg)


def _one(model: Any, out: Any) -> Any:
    """An output that is one; an error where a model with code of its own returns several."""
    if isinstance(out, dict | list | tuple) and out:
        key = next(iter(out)) if isinstance(out, dict) else 0
        msg = (
            f"the {type(model).__name__} returned {listed(out)}. Give a function that returns the part to explain:"
            f" lambda a: model(a)[{key!r}]"
        )
        raise ModelError(msg)
    return out


def _last_layer(model: Any) -> Any:
    """The layer that gives the outputs, as far as the model says."""
    outputs = getattr(model, "outputs", None)
    if isinstance(outputs, list | tuple) and len(outputs) == 1:
        history = getattr(outputs[0], "_keras_history", None)
        if history is not None and history.operation is not model:
            return _last_layer(history.operation)
    return model


def _activation(layer: Any) -> str:
    """Name of what a layer does last: that of its activation, or of a layer that is one."""
    kind = type(layer).__name__.lower()
    return kind if kind in PROBABILITIES else getattr(getattr(layer, "activation", None), "__name__", "")


def _name(layer: Any) -> tuple[str, ...]:
    """Name of the only output, where somebody gave the last layer a name; Keras numbers the others."""
    name, kind = str(layer.name), type(layer).__name__
    own = re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()
    is_one = getattr(layer, "units", None) == 1
    return (name,) if is_one and not re.fullmatch(rf"{own}(_\d+)?", name) else ()

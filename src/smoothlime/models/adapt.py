"""as_model: anything that predicts, as a Model. Classes are recognised by name; no library is imported for that."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from .._core.validate import as_names, check_choice
from ..errors import InvalidArgument, WrongType
from .fitted import kinds_of
from .frameworks import framework_of, from_framework
from .function import FunctionModel
from .inputs import Inputs, check_held
from .labels import refuse_predict
from .parts import check_key
from .protocol import Model, is_model
from .unknown import is_of_folds, refuse_text_model, unknown

ONNX = (
    "onnxruntime.capi.onnxruntime_inference_collection.InferenceSession",
    "onnx.onnx_ml_pb2.ModelProto",
)

TORCH_MODULE = "torch.nn.modules.module.Module"

TORCH_PROGRAM = "torch.export.exported_program.ExportedProgram"


def as_model(
    obj: Any,
    *,
    output: str | None = None,
    feature_names: Sequence[str] | None = None,
    outputs: Sequence[str] = (),
    takes: Literal["array", "table"] | None = None,
    device: Any = None,
    compile: bool | str = False,
    autocast: Literal["bfloat16", "float16"] | None = None,
    output_key: str | int | None = None,
    held: Mapping[str, Any] | None = None,
) -> Model:
    """Adapter that lets smoothlime ask `obj` for outputs, and for gradients where it has them.

    Parameters
    ----------
    obj
        A torch module or a program of `torch.export`, a compiled function of JAX, a module of Equinox or Flax nnx, a
        Keras model, an estimator with `predict` or `predict_proba`, a Booster of XGBoost or LightGBM, an ONNX model (an
        `InferenceSession` or a `ModelProto`), the path of a model file (ONNX, XGBoost, LightGBM, CatBoost, skops),
        results of statsmodels, a function of points (n, d), or a Model already. Rows with more than two axes, such as
        images (r, 3, 224, 224), reach networks and functions in their shape.
    output
        `None`: a network's outputs as they come, a classifier's probabilities. `"probability"` puts a
        softmax on a network's logits (a sigmoid where there is one). `"margin"` takes the
        `decision_function` of a classifier or an outlier detector, the raw score of a boosted model, or the sum before
        the curve of a regression of statsmodels.
    outputs
        Names of the outputs, for models that have none of their own, such as Boosters and functions.
    takes
        What a function is called with when rows come as a data frame: an array (n, d) if all columns are numbers, or
        with `"table"` always a frame of the same columns and types. Estimators that were fitted on a frame always get
        one.
    device
        Where a torch module is evaluated; `None` leaves it where it is.
    compile
        Whether `torch.compile` translates a torch module, which takes from seconds to minutes at the first call and
        pays where many follow; a name chooses the backend.
    autocast
        Number type in which `torch.autocast` lets a torch module's layers compute. Slopes then have about 3 digits, and
        numbers below 6e-8 vanish in float16. Points and sums over gradients keep their precision.
    output_key
        Name or position of the part to explain, if a torch module or a function returns a tuple, a dictionary or a
        dataclass, or an ONNX model several outputs.
    held
        Further inputs of a torch module or a function by the name of their argument, as in `held={"mask": M}`: arrays
        or tensors with a line for each row of X. They are not perturbed; each point goes with the line of its row.

    Examples
    --------
    >>> import numpy as np
    >>> as_model(lambda a: a.sum(axis=1)).values(np.ones((2, 3)))
    array([[3.],
           [3.]])
    """
    _check_output_choice(output)
    obj = _read(obj)
    names = None if feature_names is None else as_names(feature_names, "feature_names")
    called = as_names(outputs, "outputs")
    kind, name = _kind(obj), type(obj).__name__
    if takes is not None:
        check_choice(takes, "takes", ("array", "table"))
        if kind not in ("function", "class"):
            msg = f"takes is for functions; a {name} is asked in its own way"
            raise InvalidArgument(msg)
    if kind in ("module", "program", "call"):
        from .torch import from_torch

        return from_torch(
            _as_module(obj, kind), output=output, feature_names=names, outputs=called, device=device,
            compiled=compile, autocast=autocast, output_key=output_key, held=held,
        )  # fmt: skip
    if kind == "class":
        msg = f"model is the class {obj.__name__}; give an instance of it, fitted or trained"
        raise WrongType(msg)
    for argument, given in (("device", device), ("compile", compile or None), ("autocast", autocast)):
        if given is not None:
            msg = f"{argument} is for torch modules; a {name} runs where it runs, as it is"
            raise InvalidArgument(msg, argument=argument)
    if kind != "function":
        _only_for("held", held, "torch modules and functions", name)
        _only_for("output_key", output_key if kind != "onnx" else None, "models that return several outputs", name)
    if kind == "framework":
        return from_framework(obj, output=output, feature_names=names, outputs=called)
    if kind == "model":
        if names is not None or output is not None or called:
            msg = "obj is a Model already; set its output and names where it is made"
            raise InvalidArgument(msg)
        return obj
    if kind == "onnx":
        from .onnx import from_onnx

        if output is not None:
            msg = "output is for classifiers and torch modules; the outputs of an ONNX model are explained as they are"
            raise InvalidArgument(msg, argument="output")
        return from_onnx(obj, feature_names=names, outputs=called, output_key=output_key)
    if kind == "statsmodels":
        from .statsmodels import from_statsmodels

        return from_statsmodels(obj, output=output, feature_names=names, outputs=called)
    if kind == "estimator":
        from .estimator import from_estimator

        return from_estimator(obj, output=output or "probability", feature_names=names, outputs=called)
    if kind == "function":
        refuse_predict(obj)
        refuse_text_model(obj)
        if output is not None:
            msg = "output is for classifiers and torch modules; a function's outputs are explained as they are"
            raise InvalidArgument(msg, argument="output")
        check_key(output_key)
        if held is None:
            return FunctionModel(obj, called, names, takes or "array", output_key=output_key)
        return _holding(obj, called, names, takes, output_key, held)
    raise unknown(obj)


def _as_module(obj: Any, kind: str) -> Any:
    """A module of torch, of what is one or is known to call one."""
    if kind == "program":
        from . import torch_programs

        return torch_programs.as_module(obj)
    if kind == "call":
        from . import torch_calls

        return torch_calls.as_module(obj)
    return obj


def _only_for(argument: str, given: Any, what: str, name: str) -> None:
    if given is not None:
        msg = f"{argument} is for {what}; a {name} is asked in its own way"
        raise InvalidArgument(msg, argument=argument)


def _holding(
    function: Any,
    outputs: tuple[str, ...],
    names: tuple[str, ...] | None,
    takes: str | None,
    key: str | int | None,
    held: Mapping[str, Any],
) -> FunctionModel:
    """A function of several inputs, of which all but the first are held."""
    check_held(held, function)
    if takes == "table":
        msg = "held goes with functions of arrays; columns of a table that are not to be perturbed are listed in fixed"
        raise InvalidArgument(msg, argument="held")
    lines = {name: np.asarray(each.detach().cpu() if hasattr(each, "detach") else each) for name, each in held.items()}
    return FunctionModel(function, outputs, names, inputs=Inputs(held=lines), output_key=key)


def as_asked(obj: Any, output: str | None) -> Model:
    """The model for `explain`, by probability or by margin.

    `"probability"` concerns estimators alone: functions and torch modules are taken as they are. A Model has made that
    choice already.
    """
    _check_output_choice(output)
    obj = _read(obj)
    kind = _kind(obj)
    if kind == "model" or (kind != "estimator" and output == "probability"):
        return as_model(obj)
    return as_model(obj, output=output)


def _kind(obj: Any) -> str:
    """What an object is: "class", "framework", "module", "call" or "program" of torch, "model", "function", ..."""
    if isinstance(obj, type):
        return "class"
    if is_of_folds(obj):  # it says to have any attribute that it is asked for
        return ""
    if framework_of(obj):  # first: on torch, Keras models are modules
        return "framework"
    if is_torch_module(obj):
        return "module"
    if _is_torch_call(obj):
        return "call"
    if _is_of(obj, TORCH_PROGRAM):
        return "program"
    if is_model(obj):
        return "model"
    if is_onnx(obj):
        return "onnx"
    if any(name.startswith("statsmodels.") for name in kinds_of(obj)):
        return "statsmodels"
    if hasattr(obj, "predict") or hasattr(obj, "predict_proba"):
        return "estimator"
    return "function" if callable(obj) else ""


def _check_output_choice(output: str | None) -> None:
    if output not in (None, "probability", "margin"):
        msg = f"output must be 'probability' or 'margin'; got {output!r}"
        raise InvalidArgument(msg, argument="output")


def _read(obj: Any) -> Any:
    """The model in a file, where the path of one was given that is not ONNX; else what was given."""
    if not isinstance(obj, str | os.PathLike) or is_onnx(obj) or not os.path.isfile(obj):
        return obj
    from .files import read_model

    return read_model(obj)[0]


def is_onnx(obj: Any) -> bool:
    """Whether it is an ONNX model, a session for one, or the path of a file that is called so or begins so."""
    if isinstance(obj, str | os.PathLike):
        from .files import is_onnx_file

        return os.fspath(obj)[-5:].lower() == ".onnx" or is_onnx_file(obj)
    return any(f"{cls.__module__}.{cls.__qualname__}" in ONNX for cls in type(obj).__mro__)


def is_torch_module(obj: Any) -> bool:
    """Whether `obj` is an `nn.Module`, without importing torch to ask."""
    return _is_of(obj, TORCH_MODULE)


def _is_torch_call(obj: Any) -> bool:
    """Whether it is the `forward` of a module, or a partial of that or of a module, with arguments set by name."""
    called = obj.func if isinstance(obj, partial) and not obj.args else obj
    owner: Any = getattr(called, "__self__", None)
    if is_torch_module(owner) and called in (owner.forward, owner.__call__):
        return not framework_of(owner)
    return called is not obj and is_torch_module(called) and not framework_of(called)


def _is_of(obj: Any, kind: str) -> bool:
    return any(f"{cls.__module__}.{cls.__qualname__}" == kind for cls in type(obj).__mro__)

"""What is no model, and the nearest thing that would be one: no library is imported to ask."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import WrongType
from .fitted import kinds_of, offers

WANTED = (
    "model must be a torch module, a compiled function of JAX, an Equinox, Flax or Keras model, an estimator with"
    " predict, a Booster, an ONNX model, the path of a model file, or a function of points (n, d)"
)

PAGE = "The page 'Bring your model' of the documentation has an example of each kind"

ENDINGS = {
    ".pkl": "pickle.load", ".pickle": "pickle.load", ".joblib": "joblib.load", ".skops": "skops.io.load",
    ".pt": "torch.load, which wants its module's class,", ".pth": "torch.load, which wants its module's class,",
    ".pt2": "torch.export.load", ".h5": "keras.models.load_model", ".keras": "keras.models.load_model",
    ".json": "xgboost.Booster(model_file=...)", ".ubj": "xgboost.Booster(model_file=...)",
    ".txt": "lightgbm.Booster(model_file=...)", ".cbm": "catboost.CatBoost().load_model",
    ".safetensors": "safetensors, into the module whose weights these are,",
}  # fmt: skip
"""What loads a file, by how its name ends."""

TEXT_MODELS = {"Pipeline", "PreTrainedTokenizerBase", "ProcessorMixin"}
"""Of transformers: they take text, and some can be called like functions."""


def refuse_text_model(obj: Any) -> None:
    """Refuse what takes text though it can be called."""
    if any(kind.partition(".")[2] in TEXT_MODELS for kind in kinds_of(obj) if kind.startswith("transformers.")):
        msg = (
            f"model is a {type(obj).__name__} of transformers, which takes text or pictures, and words have no slopes."
            " Explain the network behind it, from numbers: a torch module that takes embeddings or pixels and returns"
            f" scores, such as one that calls pipeline.model(inputs_embeds=...).logits. {PAGE}"
        )
        raise WrongType(msg)


def unknown(obj: Any) -> WrongType:
    """The error for what is no model, with the nearest recipe."""
    name = type(obj).__name__
    recipe = next((recipe for holds, recipe in RECIPES if holds(obj)), None)
    way = recipe(obj) if recipe is not None else ""
    end = "" if way.endswith("?") else "."
    return WrongType(f"{WANTED}; got a {name}{way}{end} {PAGE}")


def _of_file(obj: Any) -> str:
    text = os.fsdecode(obj)
    if text.startswith(("http://", "https://")):
        return f" {text!r}: for a model behind an address, give sl.remote(url, protocol=...)"
    ending = os.path.splitext(text)[1].lower()
    if ending in ENDINGS:
        return f" {text!r}, which is no file that is here; load it with {ENDINGS[ending]} and give what you get"
    what = f" {text!r}" if len(text) <= 80 else ""
    return f"{what}: give the model itself or the path of its file, not its name"


def _of_mapping(obj: Mapping[Any, Any]) -> str:
    if obj and all(hasattr(each, "shape") and hasattr(each, "dtype") for each in obj.values()):
        return ", weights without a network: load them into the module, module.load_state_dict(...), and give that"
    held = next((key for key, each in obj.items() if offers(each, "predict") or callable(each)), None)
    if held is not None:
        return f", which has no predict: give what it holds, model[{held!r}]"
    return ", which has no predict: give a function of points that uses what it holds"


def _of_several(obj: Any) -> str:
    if obj and all(callable(each) or offers(each, "predict") for each in obj):
        return (
            f" of {len(obj)}: give one model at a time, or a function that combines them, such as"
            " lambda a: np.mean([each.predict(a) for each in models], axis=0)"
        )
    return ": the model comes first, then the rows: explain(model, X)"


def _is_data(obj: Any) -> bool:
    return (hasattr(obj, "shape") and hasattr(obj, "__getitem__")) or isinstance(obj, int | float | complex)


def _is_matrix(obj: Any) -> bool:
    return bool({"xgboost.DMatrix", "lightgbm.Dataset", "catboost.Pool"}.intersection(kinds_of(obj)))


def is_of_folds(obj: Any) -> bool:
    """Whether it holds a Booster for each fold of a cross-validation."""
    return "lightgbm.CVBooster" in kinds_of(obj)


RECIPES: list[tuple[Callable[[Any], bool], Callable[[Any], str]]] = [
    (lambda obj: obj is None, lambda obj: ": did a function that trains or loads it forget to return it?"),
    (
        lambda obj: isinstance(obj, bytes | bytearray | memoryview),
        lambda obj: ": load them with the library that wrote them; of ONNX, give onnxruntime.InferenceSession(model)",
    ),
    (lambda obj: isinstance(obj, str | os.PathLike), _of_file),
    (lambda obj: isinstance(obj, Mapping), _of_mapping),
    (lambda obj: isinstance(obj, list | tuple), _of_several),
    (
        is_of_folds,
        lambda obj: (
            ", which holds a Booster for each fold: give one, model.boosters[0], or a function that averages them,"
            " lambda a: np.mean([each.predict(a) for each in model.boosters], axis=0)"
        ),
    ),
    (_is_matrix, lambda obj: ", which is data: give the Booster or estimator that was trained on it"),
    (_is_data, lambda obj: ": the model comes first, then the rows: explain(model, X)"),
    (
        lambda obj: kinds_of(obj)[0].partition(".")[0] in ("tensorflow", "tf_keras"),
        lambda obj: (
            ": give a function that calls it,"
            " lambda a: model(tf.constant(a, tf.float32)).numpy(), and its gradient by from_functions, if you like"
        ),
    ),
    (
        lambda obj: type(obj).__name__ == "LocalOutlierFactor",
        lambda obj: ", which scores new points if made with novelty=True",
    ),
    (
        lambda obj: hasattr(obj, "fit_predict"),
        lambda obj: ", which labels the rows it was fitted on, but no others",
    ),
    (
        lambda obj: offers(obj, "transform"),
        lambda obj: (
            ", which transforms rows: give the pipeline that it is a step of, or sl.as_model(lambda a:"
            " model.transform(a))"
        ),
    ),
    (
        lambda obj: type(obj).__name__ == "module",
        lambda obj: f", which is Python's: give the model in it, {obj.__name__}.<name>",
    ),
]
"""What a thing may be, and what to do then; the first that holds."""

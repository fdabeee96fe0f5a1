"""Files that are data: what they say is checked before the library that wrote them reads it.

Libraries trust their own files: a child of a tree that is no node, or a count that is no longer right, is read past the
end of an array. Those that do are tried in a process of their own besides.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..._core.optional import require
from ...errors import SmoothlimeError, UnreadableFile
from .catboost import load_catboost
from .lightgbm import check_lightgbm
from .marks import CATBOOST, LIGHTGBM, ONNX, UBJSON
from .trial import survives
from .ubjson import read_ubjson
from .xgboost import check_xgboost

TYPES = (
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
)
"""Types beyond scikit-learn's estimators that a skops file may hold: they hold numbers, or say of which kind."""


@contextmanager
def reading(name: str, what: str) -> Iterator[None]:
    """Whatever a library says against a file, as one error that names the file."""
    try:
        yield
    except SmoothlimeError:
        raise
    except (Exception, RecursionError) as err:  # each library has kinds of its own
        said = next((line for line in str(err).splitlines() if line.strip()), type(err).__name__)
        msg = f"{name!r} is no {what} that can be read: {said[:300]}"
        raise UnreadableFile(msg) from err


def of_onnx(name: str, data: bytes) -> str:
    """The path, once the runtime has read the file."""
    from ..onnx import from_onnx

    from_onnx(name)
    return name


def of_json(name: str, data: bytes) -> Any:
    """A model of XGBoost or CatBoost: both write JSON."""
    with reading(name, "JSON"):
        told = json.loads(data)
    if isinstance(told, dict) and "learner" in told:
        return _of_xgboost(name, data, told)
    if isinstance(told, dict) and {"oblivious_trees", "trees"} & set(told):
        with reading(name, "model of CatBoost"):
            return load_catboost(data, "json")
    msg = f"{name!r} is JSON, but neither a model of XGBoost nor of CatBoost"
    raise UnreadableFile(msg)


def of_ubjson(name: str, data: bytes) -> Any:
    """A model of XGBoost."""
    with reading(name, "model of XGBoost"):
        told = read_ubjson(data)
    return _of_xgboost(name, data, told)


def _of_xgboost(name: str, data: bytes, told: Any) -> Any:
    """The estimator that it was saved as, or the Booster."""
    xgboost: Any = require("xgboost", extra=None, to=f"read {name!r}")
    with reading(name, "model of XGBoost"):
        check_xgboost(told)
        survives("XGBoost", data)
        kind = _estimator_of_xgboost(told["learner"].get("attributes") or {})
        if kind is None:
            return xgboost.Booster(model_file=bytearray(data))
        model = getattr(xgboost, kind)()
        model.load_model(bytearray(data))
        return model


def _estimator_of_xgboost(attributes: dict[str, str]) -> str | None:
    kind = json.loads(attributes.get("scikit_learn") or "{}").get("_estimator_type")
    known = {"classifier": "XGBClassifier", "regressor": "XGBRegressor", "ranker": "XGBRanker"}
    return None if kind is None else known[kind]


def of_lightgbm(name: str, data: bytes) -> Any:
    """A Booster."""
    lightgbm: Any = require("lightgbm", extra=None, to=f"read {name!r}")
    with reading(name, "model of LightGBM"):
        text = data.decode("utf-8").replace("\r\n", "\n")
        check_lightgbm(text)
        survives("LightGBM", text.encode())
        return lightgbm.Booster(model_str=text)


def of_catboost(name: str, data: bytes) -> Any:
    """A classifier, a regressor, or the base class for all else."""
    with reading(name, "model of CatBoost"):
        return load_catboost(data, "cbm")


def of_skops(name: str, data: bytes, trust_types: tuple[str, ...]) -> Any:
    """A model of scikit-learn, if it holds only types that are known or named."""
    require("sklearn", extra=None, to=f"read {name!r}")
    io: Any = require("skops.io", extra="skops", to=f"read {name!r}")
    with reading(name, "skops file"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        unknown = sorted(set(io.get_untrusted_types(data=data)) - set(TYPES) - set(trust_types))
        if unknown:
            listed = ", ".join(unknown)
            named = " ".join(f"--trust-type {each}" for each in unknown)
            msg = (
                f"{name!r} holds types that are not known to be harmless: {listed}. They are not made. If you know and"
                f" trust them, name them: {named}, or in Python give what skops.io.load(file, trusted=[...]) returns"
            )
            raise UnreadableFile(msg)
        return io.loads(data, trusted=[*TYPES, *trust_types])


LOADERS: dict[str, Callable[[str, bytes], Any]] = {
    ONNX: of_onnx,
    UBJSON: of_ubjson,
    LIGHTGBM: of_lightgbm,
    CATBOOST: of_catboost,
}
"""What reads each kind that holds data alone; JSON and skops have more to say."""

"""What three protocols of model servers write in a POST, and how their answers are read."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from .._core.types import Array
from ..errors import ModelError, RemoteError
from .parts import part_of, several

DATA_TYPES = {"float64": "FP64", "float32": "FP32"}
"""Names that v2 has for them."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent for n rows, and what tells the answer to it from others."""

    body: bytes
    n: int
    id: str = ""


@dataclass(frozen=True, slots=True)
class Dialect:
    """A protocol, and what is said in it."""

    protocol: str
    input_name: str
    output_key: str | int | None
    feature_names: tuple[str, ...] | None
    dtype: str

    @property
    def takes_frames(self) -> bool:
        """Whether it knows data frames."""
        return self.protocol == "mlflow"

    def request(self, points: Any) -> Request:
        """The body of a POST for points (n, ...): an array, or a data frame where it takes them."""
        write, _ = PROTOCOLS[self.protocol]
        told = str(uuid.uuid4()) if self.protocol == "v2" else ""
        try:
            return Request(json.dumps(write(self, points, told), allow_nan=False).encode(), len(points), told)
        except ValueError as err:
            msg = "JSON has no numbers for NaN and infinity, which are among the features; impute them"
            raise ModelError(msg) from err

    def outputs(self, answer: bytes, request: Request) -> Array:
        """The outputs (n, k) in an answer, or an error that says what is wrong with it."""
        _, read = PROTOCOLS[self.protocol]
        try:
            told = json.loads(answer)
        except (ValueError, RecursionError) as err:
            msg = f"the server's answer is not JSON: {shown(answer)}"
            raise RemoteError(msg) from err
        if not isinstance(told, Mapping):
            msg = f"the server's answer must be a JSON object; got {shown(answer)}"
            raise RemoteError(msg)
        return read(self, told, request)


def _write_v2(dialect: Dialect, points: Any, told: str) -> Any:
    array = np.asarray(points)
    tensor = {
        "name": dialect.input_name,
        "shape": list(array.shape),
        "datatype": DATA_TYPES[dialect.dtype],
        "data": array.ravel().tolist(),
    }
    return {"id": told, "inputs": [tensor]}


def _read_v2(dialect: Dialect, told: Mapping[str, Any], request: Request) -> Array:
    if told.get("id", request.id) not in (request.id, None, ""):
        msg = "the server answered another request than the one that was sent: their ids differ"
        raise RemoteError(msg)
    tensors = _field(told, "outputs", list)
    by_name: dict[str, Any] = {str(each.get("name")): each for each in tensors if isinstance(each, Mapping)}
    if len(by_name) != len(tensors) or not tensors:
        msg = f"the server's outputs must be a list of tensors with names; got {shown(tensors)}"
        raise RemoteError(msg)
    tensor = _chosen(by_name, dialect.output_key)
    shape, data = _field(tensor, "shape", list), _field(tensor, "data", list)
    if not all(type(size) is int and size >= 0 for size in shape):
        msg = f"the server's shape must be whole numbers; got {shown(shape)}"
        raise RemoteError(msg)
    numbers = _numbers(data).reshape(-1)
    if prod(shape) != numbers.size or not shape:
        msg = f"the server's answer has shape {shown(shape)}, but {numbers.size} numbers"
        raise RemoteError(msg)
    return _rows(numbers.reshape(shape), request.n)


def _write_v1(dialect: Dialect, points: Any, told: str) -> Any:
    return {"instances": np.asarray(points).tolist()}


def _read_predictions(dialect: Dialect, told: Mapping[str, Any], request: Request) -> Array:
    found = told.get("predictions")
    if isinstance(found, Mapping):  # by column, (n, ...) each
        found = _chosen(found, dialect.output_key)
    elif isinstance(found, list) and any(isinstance(row, Mapping) for row in found):
        found = [_chosen(row, dialect.output_key) if isinstance(row, Mapping) else row for row in found]
    elif dialect.output_key is not None and isinstance(found, list):
        found = [part_of(row, dialect.output_key) for row in found]
    if not isinstance(found, list):
        msg = f"the server's answer must have a list of predictions; got {shown(dict(told))}"
        raise RemoteError(msg)
    return _rows(_numbers(found), request.n)


def _write_mlflow(dialect: Dialect, points: Any, told: str) -> Any:
    if hasattr(points, "columns") or hasattr(points, "column_names"):
        return {"dataframe_split": _split(points)}
    array = np.asarray(points)
    if dialect.feature_names is not None and array.ndim == 2:
        gapless = array.astype(object)
        gapless[np.isnan(array)] = None
        return {"dataframe_split": {"columns": list(dialect.feature_names), "data": gapless.tolist()}}
    return {"inputs": array.tolist()}


def _split(frame: Any) -> dict[str, Any]:
    """A data frame by columns and rows, with null where something is missing."""
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    cells = [[_cell(each) for each in table[:, j].to_list()] for j in range(len(table.columns))]
    return {"columns": list(table.columns), "data": [list(row) for row in zip(*cells, strict=True)]}


def _cell(value: Any) -> Any:
    """A cell as JSON has it."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bool | int | float | str):
        return value
    return value.item() if isinstance(value, np.generic) else str(value)


PROTOCOLS: Mapping[str, tuple[Callable[..., Any], Callable[..., Array]]] = {
    "v2": (_write_v2, _read_v2),
    "v1": (_write_v1, _read_predictions),
    "mlflow": (_write_mlflow, _read_predictions),
}
"""What writes the body of a POST, and what reads an answer."""


def _chosen(parts: Mapping[str, Any], key: str | int | None) -> Any:
    """The part that is explained: the only one, or the one that was named."""
    if key is not None:
        return part_of(parts, key)
    if len(parts) != 1:
        msg = f"the server answered with {several(parts).replace('as_model(model, ', 'sl.remote(url, ') or 'nothing'}"
        raise RemoteError(msg)
    return next(iter(parts.values()))


def _field(told: Mapping[str, Any], name: str, kind: type) -> Any:
    if not isinstance(told.get(name), kind):
        msg = f"the server's answer must have a list {name!r}; got {shown(dict(told))}"
        raise RemoteError(msg)
    return told[name]


def _numbers(data: list[Any]) -> Array:
    """Nested lists as numbers: true, text and null are none."""
    flat = data
    while flat and isinstance(flat[0], list):
        if not all(isinstance(each, list) for each in flat):
            msg = f"the server's numbers must be in rows of one length; got {shown(data)}"
            raise RemoteError(msg)
        flat = list(chain.from_iterable(flat))
    strange = set(map(type, flat)) - {int, float}
    if strange:
        bad = next(each for each in flat if type(each) in strange)
        msg = f"the server must answer with numbers; got {shown(bad)} among them"
        raise RemoteError(msg)
    try:
        return np.array(data, dtype=np.float64)
    except (ValueError, OverflowError) as err:
        what = "a number that is too large" if isinstance(err, OverflowError) else "rows of different lengths"
        msg = f"the server's answer has {what}: {shown(data)}"
        raise RemoteError(msg) from err


def _rows(numbers: Array, n: int) -> Array:
    """Outputs (n, k): one row for each that was sent."""
    if len(numbers) != n:
        msg = f"the server answered {len(numbers)} rows to {n} that were sent"
        raise RemoteError(msg)
    found: Array = numbers[:, None] if numbers.ndim == 1 else numbers
    if found.ndim != 2 or not found.shape[1]:
        msg = f"the server must answer one number for each row, or a list of them; got shape {numbers.shape}"
        raise RemoteError(msg)
    return found


def shown(value: Any) -> str:
    """What came, on one line and cut short."""
    text = value[:200].decode(errors="replace") if isinstance(value, bytes) else repr(value)[:200]
    line = "".join(each if each.isprintable() else " " for each in text)
    return f"{line[:117]}..." if len(line) > 120 else line or "nothing"

"""ONNX: files, loaded models and sessions of onnxruntime. Values only, as the runtime has no gradients.

A file is data: nothing in it runs but ONNX's own operators, and libraries of custom operators are not loaded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from pickle import PicklingError
from typing import Any, ClassVar

import numpy as np

from .._core.optional import require
from ..errors import InvalidArgument, MissingFile, ModelError, UnreadableFile, WrongType
from .protocol import as_columns

FLOATS: dict[str, Any] = {"float": np.float32, "double": np.float64, "float16": np.float16}
WHOLE = {
    "int64": np.int64, "int32": np.int32, "int16": np.int16, "int8": np.int8, "uint8": np.uint8, "uint16": np.uint16,
    "uint32": np.uint32, "uint64": np.uint64, "bool": np.bool_,
}  # fmt: skip
KINDS: dict[str, Any] = {**FLOATS, **WHOLE, "string": np.object_}
"""Types of tensors, by ONNX's names."""

DICTS = "seq(map("
"""What the type of probabilities begins with where each row is a dict of them: ZipMap of the converters."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a model: a table, or a column of one."""

    name: str
    kind: str
    """Type of its numbers, by ONNX's name"""
    shape: tuple[Any, ...]
    """Sizes, of which those that are no numbers may be any"""


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A session and the one output that is explained; safe to ask from several threads."""

    session: Any
    inputs: tuple[Input, ...]
    output: str
    outputs: tuple[str, ...]
    given_names: tuple[str, ...] | None
    output_kind: str
    source: str | bytes | None
    """What the session was made of, if it was made here"""

    is_pure: ClassVar[bool] = True

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names that were given, or those of the inputs where each is a column."""
        if self.given_names is not None or not self.has_columns:
            return self.given_names
        return tuple(each.name for each in self.inputs)

    @property
    def has_columns(self) -> bool:
        """Whether each input is a column of a table."""
        return len(self.inputs) > 1 or self.inputs[0].shape[1:] == (1,)

    @property
    def n_features(self) -> int | None:
        """Number of features, where the file fixes it."""
        if self.has_columns:
            return len(self.inputs)
        sizes = self.inputs[0].shape[1:]
        return prod(sizes) if all(isinstance(size, int) for size in sizes) else None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type in which it wants its points: the finest of its inputs."""
        return np.dtype(np.float64 if any(each.kind == "double" for each in self.inputs) else np.float32)

    @property
    def epsilon(self) -> float:
        """Relative spacing of its coarsest numbers, going in or coming out."""
        kinds = [each.kind for each in self.inputs] + [self.output_kind]
        return max(float(np.finfo(FLOATS[kind]).eps) for kind in kinds if kind in FLOATS)

    @property
    def wants_table(self) -> bool:
        """Whether some columns are text."""
        return any(each.kind == "string" for each in self.inputs)

    @property
    def takes(self) -> str:
        """Text comes in tables only."""
        return "table" if self.wants_table else ""

    def values(self, points: Any) -> Any:
        """Outputs at each point, (n, k): in batches of the file's size, where it fixes one."""
        n, size = len(points), self.inputs[0].shape[0]
        if not isinstance(size, int):
            return self._answers(points, n)
        parts = [points[start : start + size] for start in range(0, n, size)]
        return np.concatenate([self._answers(part, size)[: len(part)] for part in parts])

    def _answers(self, points: Any, size: int) -> Any:
        """Outputs of one call, which is given as many points as it wants: the first is repeated."""
        fed = {each.name: _filled(self._fed(at, points), size) for at, each in enumerate(self.inputs)}
        (answer,) = self.session.run([self.output], fed)
        if self.output_kind == "dicts":
            answer = np.array([list(row.values()) for row in answer], dtype=np.float64)
        return as_columns(answer, size)

    def _fed(self, at: int, points: Any) -> Any:
        """What one input is given."""
        one = self.inputs[at]
        if not self.has_columns:
            return _shaped(np.ascontiguousarray(points, dtype=KINDS[one.kind]), one)
        column = np.asarray(points[one.name] if hasattr(points, "columns") else points[:, at])
        if one.kind in WHOLE and column.dtype.kind == "f" and not (column == np.rint(column)).all():
            msg = (
                f"input {one.name!r} of the ONNX model takes whole numbers ({one.kind}), which sigma does not leave"
                f" whole; hold it: fixed=[{one.name!r}]"
            )
            raise ModelError(msg)
        return column.astype(KINDS[one.kind]).reshape(len(points), *[1] * (len(one.shape) - 1))

    def __reduce__(self) -> tuple[Any, ...]:
        """How to make it again in another process."""
        if self.source is None:
            msg = "an InferenceSession cannot be sent to another process; give the path of its .onnx file as the model"
            raise PicklingError(msg)
        return _again, (self.source, self.output, self.outputs, self.given_names)


def from_onnx(
    obj: Any,
    *,
    feature_names: tuple[str, ...] | None = None,
    outputs: tuple[str, ...] = (),
    output_key: str | int | None = None,
) -> OnnxModel:
    """Adapter for a session, a loaded model, or the path of a file."""
    session, source = _session(obj)
    inputs = _inputs(session)
    found = session.get_outputs()
    at = _chosen([each.name for each in found], [each.type for each in found], output_key)
    kind = "dicts" if found[at].type.startswith(DICTS) else _tensor_kind(found[at].type)
    model = OnnxModel(session, inputs, found[at].name, outputs, feature_names, kind, source)
    if kind == "dicts" and not outputs:
        return OnnxModel(session, inputs, found[at].name, _keys(model), feature_names, kind, source)
    return model


def _again(source: str | bytes, output: str, outputs: tuple[str, ...], names: tuple[str, ...] | None) -> OnnxModel:
    return from_onnx(source, feature_names=names, outputs=outputs, output_key=output)


def _session(obj: Any) -> tuple[Any, str | bytes | None]:
    """A session, and what it was made of."""
    runtime: Any = require("onnxruntime", extra="onnx", to="explain an ONNX model")
    if isinstance(obj, runtime.InferenceSession):
        return obj, None
    source = str(obj) if isinstance(obj, str | os.PathLike) else obj
    if not isinstance(source, str | bytes):
        source = source.SerializeToString()
    if isinstance(source, str) and not Path(source).is_file():
        msg = f"there is no file {source!r}"
        raise MissingFile(msg)
    try:
        return runtime.InferenceSession(source, providers=["CPUExecutionProvider"]), source
    except Exception as err:  # the runtime has a class of its own for each way to fail
        what = repr(source) if isinstance(source, str) else "the ONNX model"
        msg = f"{what} cannot be loaded by onnxruntime {runtime.__version__}: {err}"
        raise UnreadableFile(msg) from err


def _tensor_kind(kind: str) -> str:
    """Type of a tensor's numbers; "" where it is no tensor."""
    return kind[len("tensor(") : -1] if kind.startswith("tensor(") else ""


def _inputs(session: Any) -> tuple[Input, ...]:
    """The inputs, if they are one table of numbers or the columns of one."""
    inputs = tuple(Input(each.name, _tensor_kind(each.type), tuple(each.shape)) for each in session.get_inputs())
    listed = ", ".join(f"{each.name}: {each.kind} {_sizes(each.shape)}" for each in inputs)
    strange = [each for each in inputs if each.kind not in KINDS or not each.shape]
    is_table = len(inputs) == 1 and len(inputs[0].shape) > 1
    are_columns = all(each.shape[1:] in ((), (1,)) for each in inputs)
    if strange or not inputs or not (is_table or are_columns):
        msg = (
            f"the inputs of the ONNX model ({listed}) are neither one table (n, d) nor the columns of one, (n, 1) each."
            " Give a function of points that fills them:"
            f" lambda a: session.run(None, {{{inputs[0].name if inputs else 'x'!r}: a.astype('float32'), ...}})[0]"
        )
        raise WrongType(msg)
    if all(each.kind not in FLOATS for each in inputs):
        msg = (
            f"the ONNX model takes nothing that could move ({listed}), and whole numbers or text have no slopes."
            f" Explain it from where its embeddings are, as a model of those{_rounding(inputs[0])}"
        )
        raise WrongType(msg)
    return inputs


def _rounding(one: Input) -> str:
    """How numbers that are rounded within a model, as those of pixels, could be explained; of tokens they are none."""
    if one.kind not in ("uint8", "int8"):
        return ""
    least = -128 if one.kind == "int8" else 0
    how = f"np.clip(np.rint(a), {least}, {least + 255}).astype({one.kind!r})"
    return f"; or, where these are pixels, as a function: lambda a: session.run(None, {{{one.name!r}: {how}}})[0]"


def _shaped(points: Any, one: Input) -> Any:
    """Points (n, d) as an input takes them, by the sizes of the file; those that have a shape keep it."""
    sizes = one.shape[1:]
    if len(sizes) < 2 or points.ndim > 2:
        return points
    if not all(isinstance(size, int) for size in sizes):
        msg = (
            f"the ONNX model takes points of shape {_sizes(one.shape)}, with sizes that may be any, and X has rows of"
            f" {points.shape[1]} numbers: give X in that shape"
        )
        raise InvalidArgument(msg, argument="X")
    return points.reshape(len(points), *sizes)


def _sizes(shape: Sequence[Any]) -> str:
    return "(" + ", ".join(str(size) if isinstance(size, int) else "n" for size in shape) + ")"


def _chosen(names: list[str], kinds: list[str], key: str | int | None) -> int:
    """Position of the output that is explained: the one that was named, or the only one that holds scores."""
    listed = ", ".join(map(repr, names))
    if key is not None:
        if key not in (*names, *range(len(names))) or isinstance(key, bool):
            msg = f"output_key {key!r} is no output of the ONNX model; it has {listed}"
            raise InvalidArgument(msg, argument="output_key")
        return key if isinstance(key, int) else names.index(key)
    scores = [at for at, kind in enumerate(kinds) if _tensor_kind(kind) in FLOATS or kind.startswith(DICTS)]
    if not scores:
        msg = (
            f"the ONNX model returns {listed} ({', '.join(kinds)}): labels, which have no slopes. Export it with its"
            " probabilities or scores"
        )
        raise WrongType(msg)
    if len(scores) > 1:
        listed = ", ".join(repr(names[at]) for at in scores)
        msg = f"the ONNX model has several outputs, {listed}; say which to explain: as_model(model, output_key=...)"
        raise InvalidArgument(msg, argument="output_key")
    return scores[0]


def _keys(model: OnnxModel) -> tuple[str, ...]:
    """Names of classes, which are the keys of the dicts: one row of zeros shows them, unless it is refused."""
    n = model.inputs[0].shape[0] if isinstance(model.inputs[0].shape[0], int) else 1
    fed = {}
    for each in model.inputs:
        sizes = [size if isinstance(size, int) else 1 for size in each.shape[1:]]
        fed[each.name] = np.full((n, *sizes), "" if each.kind == "string" else 0, dtype=KINDS[each.kind])
    try:
        (rows,) = model.session.run([model.output], fed)
    except Exception:  # a model may know no such text, or more columns than it says
        return ()
    return tuple(str(key) for key in rows[0])


def _filled(column: Any, size: int) -> Any:
    """As many rows as are wanted: the first again and again behind the others."""
    missing = size - len(column)
    return column if missing <= 0 else np.concatenate([column, np.repeat(column[:1], missing, axis=0)])

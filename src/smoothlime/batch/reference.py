"""How a process gets the model: by itself, once, wherever it runs."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array
from ..errors import UnreadableFile
from ..models import Evaluation, as_model
from ..models.files import read_model

FIXED = 16
"""Rows whose predictions stand for a model that comes from no file."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelReference:
    """What a process calls to have the model; it can be sent to others."""

    load: Callable[[], Any]
    name: str
    file: str | None = None
    """Whose digest stands for the model, where it was read from one"""

    @classmethod
    def to(cls, model: Any) -> ModelReference:
        """To a model in memory, or in a file."""
        if isinstance(model, ModelReference):
            return model
        if isinstance(model, str | os.PathLike):
            path = os.fspath(model)
            return cls(Once(_read_file, path, file=path), os.path.basename(path), path)
        return cls(_Held(model), type(model).__name__)

    def identity(self, fixed: Callable[[], Array]) -> dict[str, str]:
        """The digest of the file, or of predictions (16, k) at fixed rows."""
        if self.file is None:
            return {"name": self.name, "predictions": digest_of(fixed())}
        digest = self.load.digest if isinstance(self.load, Once) else None
        return {"name": self.name, "file": digest or digest_of_file(self.file)}


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    model: Any

    def __call__(self) -> Any:
        return self.model


class Once:
    """A model that each process reads when it is first asked for, and only then."""

    def __init__(self, read: Callable[..., Any], *given: Any, file: str | None = None) -> None:
        self._read, self._given, self._file = read, given, file
        self._model: Any = None
        self._digest: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What another process gets: how to read it, and what it must be, not what was read."""
        return self.__dict__ | {"_model": None}

    def __call__(self) -> Any:
        """The model; in place of the path of an ONNX file, its session. An error where its file became another."""
        if self._model is None:
            before = None if self._file is None else digest_of_file(self._file)
            found = self._read(*self._given)
            model = as_model(found) if isinstance(found, str) else found
            after = None if self._file is None else digest_of_file(self._file)
            if before != after or self._digest not in (None, after):
                msg = f"the model file {self._file!r} changed after the job had begun; begin anew with resume=False"
                raise UnreadableFile(msg)
            self._model, self._digest = model, after
        return self._model

    @property
    def digest(self) -> str | None:
        """The digest of the file as it was when it was read."""
        self()
        return self._digest


def _read_file(path: str) -> Any:
    model, _ = read_model(path)
    return model


def digest_of_file(path: str) -> str:
    """The digest of a model file."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as err:
        msg = f"the model file {path!r} cannot be read: {err.strerror or err}"
        raise UnreadableFile(msg) from err


def digest_of(numbers: Array) -> str:
    """The digest of an array of numbers; all NaN are one."""
    plain = np.where(np.isnan(numbers), np.nan, numbers) + 0.0
    return hashlib.sha256(np.ascontiguousarray(plain).tobytes()).hexdigest()


def answers(problem: Any) -> Array:
    """What a model says at rows, NaN where it refuses them."""
    (values,) = Evaluation(problem.model, 2 * FIXED).attempt(problem.rows)
    return np.asarray(values)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let libraries compute with one thread: the order of their sums, and so the last bits, may depend on how many."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError):
            from threadpoolctl import threadpool_limits

            stack.enter_context(threadpool_limits(1))
        torch: Any = sys.modules.get("torch")
        if torch is not None:
            stack.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
        yield

"""Files that run code when they are read: only for those who trust whoever made them."""

from __future__ import annotations

import importlib
import io
import pickle
from collections.abc import Callable
from typing import Any

from ..._core.optional import require
from ...errors import MissingExtra, UnreadableFile
from .marks import COMPRESSED, MODULE, PICKLE, PROGRAM, SCRIPT


def _load(name: str, what: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except MissingExtra:
        raise
    except Exception as err:  # whatever the code in the file raises
        said = str(err).strip().split("\n")[0]
        hint = ". Install what it was made with, in the same version" if isinstance(err, ImportError) else ""
        msg = f"{name!r} is {what}, and loading it failed: {type(err).__name__}: {said[:300]}{hint}"
        raise UnreadableFile(msg) from err


def of_pickle(name: str, data: bytes) -> Any:
    """What was pickled; joblib, where it is installed, also reads the arrays that it puts between."""
    try:
        joblib: Any = importlib.import_module("joblib")
    except ModuleNotFoundError:
        return _load(name, PICKLE, lambda: pickle.loads(data))
    return _load(name, PICKLE, lambda: joblib.load(io.BytesIO(data)))


def of_compressed(name: str, data: bytes) -> Any:
    """What joblib wrote."""
    joblib: Any = require("joblib", extra=None, to=f"read {name!r}")
    return _load(name, COMPRESSED, lambda: joblib.load(io.BytesIO(data)))


def of_program(name: str, data: bytes) -> Any:
    """What `torch.export.save` wrote."""
    torch: Any = require("torch", extra="torch", to=f"read {name!r}")
    return _load(name, PROGRAM, lambda: torch.export.load(io.BytesIO(data)))


def of_script(name: str, data: bytes) -> Any:
    """A TorchScript module, on the processor."""
    torch: Any = require("torch", extra="torch", to=f"read {name!r}")
    return _load(name, SCRIPT, lambda: torch.jit.load(io.BytesIO(data), map_location="cpu"))


def of_module(name: str, data: bytes) -> Any:
    """What `torch.save` wrote, on the processor."""
    torch: Any = require("torch", extra="torch", to=f"read {name!r}")
    return _load(name, MODULE, lambda: torch.load(io.BytesIO(data), map_location="cpu", weights_only=False))


LOADERS: dict[str, Callable[[str, bytes], Any]] = {
    PICKLE: of_pickle,
    COMPRESSED: of_compressed,
    PROGRAM: of_program,
    SCRIPT: of_script,
    MODULE: of_module,
}

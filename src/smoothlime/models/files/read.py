"""read_model: a model from a file, by what the file is. What would run code is refused unless it is trusted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...errors import InvalidArgument, MissingFile, UnreadableFile
from . import loaders, trusted
from .marks import HEAD, JSON, ONNX, RUNS_CODE, SKOPS, ZIP, recognise, recognise_archive

READ = "ONNX, XGBoost (JSON or UBJSON), LightGBM (text), CatBoost (cbm or JSON), skops"
"""What is read without trust."""


def read_model(
    path: str | os.PathLike[str], *, trust: bool = False, trust_types: Sequence[str] = ()
) -> tuple[Any, str]:
    """The model in a file, as `as_model` takes it, and the SHA-256 of the file in hexadecimal.

    What the file is, its first bytes say, not its name. Data formats are read, and no code runs: ONNX (for which the
    path itself comes back), XGBoost, LightGBM, CatBoost, and skops with the types that are listed in `loaders.TYPES`.

    Parameters
    ----------
    trust
        Whether code in the file may run: pickles, joblib, `torch.export`, TorchScript and `torch.save` are refused
        otherwise.
    trust_types
        Names of further types that a skops file may hold, such as `"mypackage.Scaler"`: they are imported and made.

    Examples
    --------
    >>> read_model("no_such_file.ubj")
    Traceback (most recent call last):
    ...
    smoothlime.errors.MissingFile: there is no file 'no_such_file.ubj'
    """
    name = os.fspath(path)
    _check_types(trust_types)
    data = _contents(name)
    digest = hashlib.sha256(data).hexdigest()
    kind = _kind(name, data)
    if kind in RUNS_CODE:
        if not trust:
            msg = (
                f"{name!r} is {kind}, and {RUNS_CODE[kind]}: it is not loaded. Its SHA-256 is {digest}. If you know who"
                f" made it and trust them, say --trust {name} on the command line, or in Python load it yourself and"
                f" give what you get. Or save the model as one of {READ}"
            )
            raise UnreadableFile(msg)
        return trusted.LOADERS[kind](name, data), digest
    if kind == SKOPS:
        return loaders.of_skops(name, data, tuple(trust_types)), digest
    load: Callable[[str, bytes], Any] = loaders.of_json if kind == JSON else loaders.LOADERS[kind]
    return load(name, data), digest


def is_onnx_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file that begins as ONNX does."""
    try:
        with open(path, "rb") as file:
            return recognise(file.read(HEAD))[0] == ONNX
    except (OSError, ValueError):
        return False


def _contents(name: str) -> bytes:
    """All bytes of a file that may be a model: of others, only the first are read."""
    try:
        if Path(name).is_dir():
            msg = f"{name!r} is a folder; give a file in it"
            raise UnreadableFile(msg)
        with open(name, "rb") as file:
            if not Path(name).is_file():
                msg = f"{name!r} is no regular file; a model is read from one"
                raise UnreadableFile(msg)
            head = file.read(HEAD)
            if not head:
                msg = f"{name!r} is empty"
                raise UnreadableFile(msg)
            if not head.startswith(ZIP):
                _known(name, recognise(head))
            return head + file.read()
    except FileNotFoundError as err:
        msg = f"there is no file {name!r}"
        raise MissingFile(msg) from err
    except (OSError, ValueError) as err:  # a name with a null, or one that is too long
        if isinstance(err, UnreadableFile):
            raise
        msg = f"{name!r} cannot be read: {getattr(err, 'strerror', None) or err}"
        raise UnreadableFile(msg) from err


def _kind(name: str, data: bytes) -> str:
    if not data.startswith(ZIP):
        return _known(name, recognise(data[:HEAD]))
    try:
        found = recognise_archive(data)
    except Exception as err:  # zipfile has several kinds for what is damaged
        msg = f"{name!r} begins as a zip archive, as skops and torch write, but is damaged: {err}"
        raise UnreadableFile(msg) from err
    return _known(name, found)


def _known(name: str, found: tuple[str, str]) -> str:
    kind, foreign = found
    if not kind:
        what = f" is {foreign}" if foreign else " is no model file that is known here"
        msg = f"{name!r}{what}. Files that are read: {READ}"
        raise UnreadableFile(msg)
    return kind


def _check_types(trust_types: Sequence[str]) -> None:
    """Refuse names of types that are none."""
    for each in trust_types:
        if not each or not all(part.isidentifier() for part in each.split(".")):
            msg = f"trust_types must be names of types with their modules, such as 'mypackage.Scaler'; got {each!r}"
            raise InvalidArgument(msg, argument="trust_types")

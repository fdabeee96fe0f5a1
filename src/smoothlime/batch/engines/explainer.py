"""What a worker of a cluster holds: the model and the job, sent once; blocks come and go as bytes."""

from __future__ import annotations

import contextlib
import os
import pickle
import platform
import sys
import threading
from dataclasses import dataclass
from typing import Any

from ..._core.optional import require
from ..._core.version import versions
from ...errors import InvalidArgument, SmoothlimeError, WrongType
from ..reference import ModelReference, digest_of_file, one_thread
from ..work import Done, Job, explain_block
from .wire import pack, unpack


@dataclass(frozen=True, slots=True)
class _Sent:
    """The model and the job, and what a worker must be like to find the same bits."""

    content: bytes
    folder: str
    """In which paths begin"""
    modules: tuple[str, ...]
    """Folders in which modules are looked for, those of Python left out"""
    file: tuple[str, str] | None
    """The path of the model file, and its digest"""
    versions: dict[str, str]

    def check(self) -> None:
        """An error where this worker has other versions, or another file."""
        here = platform.node()
        for name, version in versions().items():
            if version != self.versions[name] and name != "python":  # other patches of Python are as good
                msg = (
                    f"the worker on {here} has {name} {version}, and the job was started with {self.versions[name]}:"
                    " install the same, or bits could differ"
                )
                raise InvalidArgument(msg, argument="engine")
        if self.file is not None and digest_of_file(self.file[0]) != self.file[1]:
            msg = f"the model file {self.file[0]!r} on {here} is another than where the job was started"
            raise InvalidArgument(msg, argument="model")


def send(model: ModelReference, job: Job, extra: str) -> bytes:
    """The model and the job as bytes; what the main script defines goes along."""
    cloudpickle = require("cloudpickle", extra=extra, to="send models to workers")
    file = None if model.file is None else (model.file, digest_of_file(model.file))
    try:
        content = bytes(cloudpickle.dumps((model, job)))
    except Exception as err:  # a model may raise anything here
        msg = (
            f"model cannot be sent to other processes: {type(err).__name__}: {err}. Give the path of a model file,"
            " which each worker reads by itself"
        )
        raise WrongType(msg, argument="model") from err
    own = (sys.prefix, sys.base_prefix)
    modules = tuple(os.path.abspath(each) for each in sys.path if not os.path.abspath(each).startswith(own))
    return pickle.dumps(_Sent(content, os.getcwd(), modules, file, versions()))


class Explainer:
    """Explains blocks, one at a time, with a model that it loads when it is first asked."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._loaded: tuple[Any, Job] | None = None
        self._one_at_a_time = threading.Lock()

    def load(self) -> bytes:
        """Load the model; what comes back is the error, or None, packed."""
        try:
            with self._one_at_a_time:
                self._held()
        except Exception as err:  # a model may raise anything here; raised again where the job was started
            return pack(err)
        return pack(None)

    def explain(self, block: bytes) -> bytes:
        """What came of a block, or the error that stops the job, packed."""
        try:
            with self._one_at_a_time, one_thread():
                model, job = self._held()
                done: Done = explain_block(model, job, unpack(block))
        except Exception as err:  # as above
            return pack(err)
        return pack(done)

    def _held(self) -> tuple[Any, Job]:
        if self._loaded is None:
            try:
                sent: _Sent = pickle.loads(self._payload)
                with contextlib.chdir(sent.folder) if os.path.isdir(sent.folder) else contextlib.nullcontext():
                    sent.check()
                    sys.path.extend(each for each in sent.modules if each not in sys.path)
                    model, job = pickle.loads(sent.content)
                    self._loaded = model.load(), job
            except SmoothlimeError:
                raise
            except Exception as err:  # a model may raise anything here
                msg = (
                    f"model cannot be loaded by the worker on {platform.node()}: {type(err).__name__}: {err}."
                    " Workers need the same modules and, at the same path, the same files"
                )
                raise WrongType(msg, argument="model") from err
        return self._loaded

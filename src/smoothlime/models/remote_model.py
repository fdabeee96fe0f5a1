"""A model behind an address: batches are sent, several at a time, and answers put back in order."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pickle import PicklingError
from typing import Any

import numpy as np

from .._core.types import Array, Points
from ..errors import RemoteError, SmoothlimeError
from .remote_calls import Calls, Stopped, shown_url
from .remote_protocols import Dialect, Request


class RemoteModel:
    """A model that is asked over HTTP, in batches of which several are in flight; see `remote`."""

    is_pure = True

    def __init__(self, url: str, dialect: Dialect, outputs: tuple[str, ...], settings: dict[str, Any]) -> None:
        self.url, self.dialect, self.outputs = url, dialect, outputs
        self.feature_names = dialect.feature_names
        self.dtype = np.dtype(dialect.dtype)
        self._settings = settings
        self._calls = Calls(url, **{name: settings[name] for name in ("timeout", "retries", "token_env", "budget")})
        self._process = os.getpid()

    @property
    def wants_table(self) -> bool:
        """Whether data frames reach the server as such, with names and text; only MLflow's protocol knows them."""
        if not self.dialect.takes_frames:
            raise AttributeError  # as models that are asked with arrays have no such attribute
        return True

    @property
    def sent(self) -> int:
        """Rows that were sent so far, those that were sent again included."""
        return self._calls.sent

    def values(self, points: Points) -> Any:
        """Outputs at each point, (n, k), in order."""
        if os.getpid() != self._process:
            msg = (
                f"the remote model {shown_url(self.url)} was made in another process, whose connections cannot be used"
                " here. Make it here with sl.remote(...), or start processes by spawn"
            )
            raise RemoteError(msg)
        n, size = len(points), self._settings["batch_size"]
        self._calls.check_budget(n)
        parts = [points[start : start + size] for start in range(0, n, size)]
        answers = self._all(parts)
        widths = sorted({each.shape[1] for each in answers})
        if len(widths) > 1:
            msg = f"{shown_url(self.url)} answered with {widths[0]} outputs for some rows and {widths[-1]} for others"
            raise RemoteError(msg)
        return np.concatenate(answers)

    def _all(self, parts: Sequence[Any]) -> list[Array]:
        """Answers to all parts, in order; where one fails no more are sent."""
        stop = threading.Event()
        pool = ThreadPoolExecutor(min(len(parts), self._settings["in_flight"]) or 1)
        try:
            asked = [pool.submit(self._ask, part, stop) for part in parts]
            wait(asked, return_when=FIRST_EXCEPTION)
            failed = [err for each in asked if each.done() and (err := each.exception()) is not None]
            if failed:
                raise min(failed, key=lambda err: isinstance(err, Stopped))  # the one that stopped the others
            return [each.result() for each in asked]
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, part: Any, stop: threading.Event) -> Array:
        try:
            request = self.dialect.request(part)
            answer = self._calls.post(request.body, len(part), stop)
            return self._outputs(answer, request)
        except BaseException:
            stop.set()
            raise

    def _outputs(self, answer: bytes, request: Request) -> Array:
        """The outputs in an answer. Errors quote it, unless it repeats the token."""
        try:
            return self.dialect.outputs(answer, request)
        except SmoothlimeError:
            if not self._calls.repeats_token(answer):
                raise
        # not within the handler: the error there holds the answer
        msg = f"{shown_url(self.url)} gave an answer without outputs that can be read, and with the token in it"
        raise RemoteError(msg)

    def __repr__(self) -> str:
        """Where it is and how it is asked; nothing that could be secret."""
        return f"<RemoteModel {shown_url(self.url)}, {self.dialect.protocol}, {self.sent:,} rows sent>"

    def __reduce__(self) -> tuple[Any, ...]:
        """How to make it again in another process, where the token is read from the environment anew."""
        if self._settings["budget"] is not None:
            msg = "a remote model with a budget cannot be sent to another process: rows are counted in one"
            raise PicklingError(msg)
        return RemoteModel, (self.url, self.dialect, self.outputs, self._settings)

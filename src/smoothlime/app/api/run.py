"""Runs an application until it is told to stop: what runs is finished first."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette

GRACE = 5.0
"""Seconds for the last answers to be sent, beyond the time of one request."""


def run_app(app: Starlette, listener: socket.socket, *, seconds: float, started: Callable[[], None]) -> None:
    """Answer requests until SIGTERM or Ctrl-C, then finish those that run; `seconds` is the time of one."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, lifespan="on",
        timeout_graceful_shutdown=int(seconds + GRACE), timeout_keep_alive=10, proxy_headers=False,
    )  # fmt: skip
    server = _Server(config, started)
    # uvicorn raises the signals again that it has handled, which would end the process as if it had failed
    usual: dict[Any, Any] = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        server.run(sockets=[listener])
    finally:
        for each, handler in usual.items():
            signal.signal(each, handler)


class _Server(uvicorn.Server):
    """Says when it has started."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._say = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._say()

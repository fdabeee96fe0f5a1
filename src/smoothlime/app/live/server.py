"""An application on a port of this computer, until it is interrupted."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from ..._core.optional import require
from ...errors import InvalidArgument
from .doors import LOOPBACK


def hosts_of(host: str) -> tuple[str, ...]:
    """Names under which a server on this address may be asked for: those of this computer, and its own; none: any."""
    if host in ("0.0.0.0", "::"):
        return ()  # all of its addresses, whose names nobody can list; the token guards them
    own = f"[{host}]" if ":" in host else host.lower()
    return tuple(dict.fromkeys((*LOOPBACK, own)))


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound, to a free port where the port is 0."""
    if not 0 <= port <= 65_535:
        msg = f"port must be from 0 to 65535; got {port}"
        raise InvalidArgument(msg, argument="port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
    except OSError as err:
        found.close()
        msg = f"port {port} of {host} cannot be used: {err.strerror or err}. Choose another, or 0 for any that is free"
        raise InvalidArgument(msg, argument="port") from err
    return found


def address(bound: socket.socket, host: str, token: str = "") -> str:
    """The whole address of a page, or without a token that of a service."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{bound.getsockname()[1]}{f'/{token}/' if token else ''}"


def serve(
    application: Any,
    bound: socket.socket,
    *,
    when_ready: Callable[[], None] = lambda: None,
    when_ending: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests until interrupted. Streams that are open have a second to end, as `when_ending` may tell them."""
    uvicorn: Any = require("uvicorn", extra="app", to="serve a page")

    class Server(uvicorn.Server):  # type: ignore[misc]  # has no types here
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets=sockets)
            when_ready()

        async def shutdown(self, sockets: Any = None) -> None:
            when_ending()
            await super().shutdown(sockets=sockets)

    config = uvicorn.Config(
        application, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=1,
        server_header=False, date_header=False,
    )  # fmt: skip
    try:
        Server(config).run(sockets=[bound])
    except KeyboardInterrupt:
        pass
    finally:
        bound.close()

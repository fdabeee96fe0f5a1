"""What stands before every request: the token in its address, the host it was sent to, where it came from, its size.

A page of another site can make a browser send requests to this computer. It knows no token, its name is no host of ours
(also not where it makes its own name point here), and it cannot read the answers.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

HEADERS = (
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Guards:
    """Lets requests through whose addresses begin with the token, and which came for one of our hosts.

    The application sees paths without the token.
    """

    application: Application
    token: str = field(repr=False)
    hosts: tuple[str, ...] = LOOPBACK
    """Names that the Host header may have, without ports; empty for any"""
    largest: int = 1_000_000
    """Bytes of a body"""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no other doors
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        prefix = f"/{self.token}"
        inner = dict(scope) | {"root_path": scope.get("root_path", "") + prefix}
        try:
            await self.application(inner, limited(receive, self.largest), _with_headers(send))
        except TooLarge:  # bodies are read before anything is answered
            await _refuse(send, 413, f"a request may have {self.largest:,} bytes")

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if self.hosts and _name(host) not in self.hosts:
            return 403, f"this server is not {_name(host)!r}; open the address that smoothlime printed"
        origin = headers.get(b"origin")
        if origin not in (None, f"http://{host}", f"https://{host}"):
            return 403, "requests of other sites are refused"
        first, _, rest = scope["path"].removeprefix("/").partition("/")
        if not hmac.compare_digest(first.encode(), self.token.encode()):
            return 403, "the address holds no valid token; open the whole address that smoothlime printed"
        if not rest and not scope["path"].endswith("/"):
            return 404, "the address ends in a slash behind the token"
        length = headers.get(b"content-length", "0")
        if not length.isdigit() or int(length) > self.largest:
            return 413, f"a request may have {self.largest:,} bytes; this one has {length[:20]}"
        return None


class TooLarge(Exception):
    """A body went on beyond what it may have."""


def _name(host: str) -> str:
    """A host without its port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def limited(receive: Receive, largest: int) -> Receive:
    """Bodies without a length in their head are counted as they come."""
    seen = 0

    async def counted() -> MutableMapping[str, Any]:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > largest:
            raise TooLarge
        return message

    return counted


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = dict(message) | {"headers": [*message.get("headers", ()), *HEADERS]}
        await send(message)

    return sending


async def _refuse(send: Send, status: int, why: str) -> None:
    import json

    body = json.dumps({"error": why}).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})

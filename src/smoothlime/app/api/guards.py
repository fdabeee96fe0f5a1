"""Guards before all routes: the name that was asked for, the token, the size of what is sent. Plain ASGI."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...errors import InvalidArgument
from ..live.doors import TooLarge, limited
from .refusals import refusal

LOOPBACK = ("localhost", "127.0.0.1", "::1")

SHORTEST_TOKEN = 16


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_token(token: str | None) -> None:
    """Refuse tokens that can be guessed, or that no header can hold."""
    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        msg = f"token must be {SHORTEST_TOKEN} or more letters and digits without spaces; got {len(token)} letters"
        raise InvalidArgument(msg, argument="token")


class HostGuard:
    """Refuses names that are not ours: a page elsewhere may give a name of its own to this address."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] = ()) -> None:
        self.app = app
        self.hosts = {*LOOPBACK, *(each.lower() for each in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] != "http" or self._is_ours(Headers(scope=scope).getlist("host")):
            await self.app(scope, receive, send)
            return
        reason = "the Host header names none of this service's hosts; --allow-host adds one"
        await refusal(421, reason)(scope, receive, send)

    def _is_ours(self, given: list[str]) -> bool:
        if len(given) != 1:
            return False
        name = host_of(given[0])
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self.hosts
        return True  # an address cannot be given to another


def host_of(header: str) -> str:
    """The host without its port, in small letters.

    >>> host_of("LocalHost:8000"), host_of("[::1]:8000"), host_of("a.b")
    ('localhost', '::1', 'a.b')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower().rstrip(".")


class TokenGuard:
    """Refuses requests without the token, but those for `open_paths`."""

    def __init__(self, app: ASGIApp, token: str | None, open_paths: Collection[str] = ()) -> None:
        check_token(token)
        self.app = app
        self.token = token
        self.open_paths = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] == "http" and self.token is not None and scope["path"] not in self.open_paths:
            given = Headers(scope=scope).get("authorization", "")
            kind, _, token = given.partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), self.token.encode()):
                headers = {"WWW-Authenticate": "Bearer"}
                await refusal(401, "send the token of this service: Authorization: Bearer ...", headers)(
                    scope, receive, send
                )
                return
        await self.app(scope, receive, send)


class SizeGuard:
    """Refuses bodies of more than so many bytes, whatever their header says.

    The connection stays open, so that the rest is read and dropped: closed at once, clients that still send would see
    no answer.
    """

    def __init__(self, app: ASGIApp, size: int) -> None:
        self.app = app
        self.size = size

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        reason = f"the body is larger than {self.size} bytes, which is the limit; send fewer instances at a time"
        said = Headers(scope=scope).get("content-length", "0")
        if not said.isdecimal() or int(said[:20]) > self.size:
            await refusal(413, reason)(scope, receive, send)
            return
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, limited(receive, self.size), noted)
        except TooLarge:
            if not has_begun:
                await refusal(413, reason)(scope, receive, send)

"""Requests to a server: sent again where that may help, counted when sent, with a token that stays secret."""

from __future__ import annotations

import ipaddress
import os
import threading
import time
import weakref
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import SystemRandom
from typing import Any
from urllib.parse import urlsplit

from .._core.optional import require
from ..errors import BudgetExceeded, InvalidArgument, ModelError, RemoteError, WrongType
from .remote_protocols import shown

PASSING = frozenset({429, 500, 502, 503, 504})
"""Status codes of what may be over soon."""

OF_THE_ROWS = frozenset({400, 422})
"""Status codes by which a server refuses the rows that it was sent."""

FIRST_WAIT, LONGEST_WAIT = 0.1, 10.0
"""Seconds before a request is sent again, at most: the first time, and after many."""

MOST_PATIENCE = 120.0
"""Seconds that a server may ask to be left alone; what takes longer is an error that says so."""

MOST_BYTES, MOST_BYTES_PER_ROW = 2**24, 2**16
"""Size of an answer, whatever is asked, or for each row."""

CHANCE = SystemRandom()
"""Of no seed, as requests of several users must not wait alike."""


@dataclass(frozen=True, slots=True)
class _Again:
    """Why a request must be sent again, and how long the server wants to be left alone before."""

    why: str
    wait: float = 0.0


class Stopped(RemoteError):
    """A request that was not sent, since another one failed."""


class Calls:
    """POSTs to one address, from several threads."""

    def __init__(self, url: str, *, timeout: float, retries: int, token_env: str | None, budget: int | None) -> None:
        self._httpx: Any = require("httpx", extra="remote", to="ask a model behind an address")
        self._url, self._timeout, self._retries, self._token_env = url, timeout, retries, token_env
        self._budget, self.sent = budget, 0
        self._lock = threading.Lock()
        try:
            self._httpx.URL(url)
        except self._httpx.InvalidURL as err:
            msg = f"url is not one that a request can be sent to: {err}"
            raise InvalidArgument(msg, argument="url") from None
        # a proxy would be given what is for this machine alone
        is_own = _is_loopback(urlsplit(url).hostname or "")
        self._client = self._httpx.Client(timeout=timeout, follow_redirects=False, trust_env=not is_own)
        weakref.finalize(self, self._client.close)

    def check_budget(self, rows: int) -> None:
        """Refuse to begin what the budget does not cover."""
        if self._budget is not None and self.sent + rows > self._budget:
            msg = (
                f"{rows:,} rows are to be sent, but of the budget of {self._budget:,} rows {self.sent:,} are spent,"
                " those that were sent again included. Give a larger budget, or fewer rows or draws (n_samples)"
            )
            raise BudgetExceeded(msg)

    def post(self, body: bytes, rows: int, stop: threading.Event) -> bytes:
        """The answer to a body of so many rows; nothing more is sent once `stop` is set."""
        for sending in range(self._retries + 1):
            self._spend(rows, stop)
            answer = self._send(body, rows)
            if isinstance(answer, bytes):
                return answer
            if sending == self._retries:
                times = f"{sending + 1} times" if sending else "once"
                msg = f"{shown_url(self._url)} gave no answer, asked {times}: {answer.why}"
                raise RemoteError(msg)
            if answer.wait > MOST_PATIENCE:
                msg = f"{shown_url(self._url)} is not to be asked for {answer.wait:,.0f} seconds: {answer.why}"
                raise RemoteError(msg)
            stop.wait(max(answer.wait, CHANCE.uniform(0.5, 1.0) * min(LONGEST_WAIT, FIRST_WAIT * 2**sending)))
        raise AssertionError  # the last sending returns or raises

    def repeats_token(self, answer: bytes) -> bool:
        """Whether a server says the token back, so that its answer must not be shown."""
        token = read_token(self._token_env)
        return bool(token) and token.encode() in answer

    def _spend(self, rows: int, stop: threading.Event) -> None:
        """Count rows as sent, if they may be."""
        with self._lock:
            if stop.is_set():
                msg = f"{shown_url(self._url)} is asked no more, as another request has failed"
                raise Stopped(msg)
            self.check_budget(rows)
            self.sent += rows

    def _send(self, body: bytes, rows: int) -> bytes | _Again:
        """One request: its answer, or why it must be sent again."""
        token = read_token(self._token_env)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        until = time.monotonic() + self._timeout
        try:
            with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                content = _content(response, rows, until)
                if content is None:
                    return _Again(f"no whole answer within {self._timeout:g} seconds")
                if response.status_code == 200:
                    return content
                return _refused(response, content, shown_url(self._url), token)
        except (self._httpx.TransportError, self._httpx.DecodingError) as err:
            # not chained: the error of the library holds the request, and with it the token
            return _Again(_without(token, f"{type(err).__name__}: {err}".rstrip(": ")))


def _content(response: Any, rows: int, until: float) -> bytes | None:
    """What a server answers, as far as it may; None where it takes too long."""
    most = max(MOST_BYTES, MOST_BYTES_PER_ROW * rows)
    parts, size = [], 0
    for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > most:
            msg = f"the server's answer to {rows} rows is larger than {most // 2**20} MiB"
            raise RemoteError(msg)
        if time.monotonic() > until:
            return None
    return b"".join(parts)


def _refused(response: Any, content: bytes, url: str, token: str) -> _Again:
    """Why there is no answer, if it may be over soon; an error otherwise."""
    status = f"status {response.status_code}"
    said = _said(token, content)
    if response.status_code in PASSING:
        return _Again(f"{status}, {said}", _retry_after(response.headers.get("retry-after", "")))
    if response.status_code in OF_THE_ROWS:
        msg = f"{url} refuses the rows, {status}: {said}"
        raise ModelError(msg)
    way = {
        401: ". Is token_env the name of the variable that holds its token?",
        403: ". Does the token allow it?",
        404: ". The url must be the whole address that takes the POST",
        405: ". The url must be the whole address that takes the POST",
        413: ". Give a smaller batch_size",
    }.get(response.status_code, "")
    if response.is_redirect:
        way = ". Redirects are not followed: give the address itself"
    msg = f"{url} does not answer, {status}: {said}{way}"
    raise RemoteError(msg)


def _retry_after(said: str) -> float:
    """Seconds, of a number of them or of a date; 0 where nothing is said that can be read."""
    try:
        return max(0.0, float(said)) if said[:1].isdigit() else _until(parsedate_to_datetime(said))
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _until(when: datetime) -> float:
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def check_url(url: Any, token_env: Any) -> None:
    """A whole address of http or https, without a password in it; and where a token goes, one that keeps it secret."""
    if not isinstance(url, str):
        msg = f"url must be the address of a model as text; got a {type(url).__name__}"
        raise WrongType(msg, argument="url")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https"):
        msg = f"url must be a whole address, such as https://host/v2/models/name/infer; got {shown_url(url)!r}"
        raise InvalidArgument(msg, argument="url")
    if parts.username is not None or parts.password is not None:
        msg = "url must hold no user or password, which would show in logs; give a token by token_env"
        raise InvalidArgument(msg, argument="url")
    if token_env is None:
        return
    if not isinstance(token_env, str) or not token_env.replace("_", "a").isalnum():
        msg = "token_env must be the name of an environment variable, not the token itself"
        raise InvalidArgument(msg, argument="token_env")
    if parts.scheme == "http" and not _is_loopback(host):
        msg = f"a token goes over https only, or to this machine; url is {shown_url(url)}"
        raise InvalidArgument(msg, argument="url")
    read_token(token_env)


def read_token(name: str | None) -> str:
    """The token that the environment holds now, or nothing where none is wanted."""
    if name is None:
        return ""
    token = os.environ.get(name, "").strip()
    if not token:
        msg = f"the environment variable {name}, which token_env names, is not set"
        raise InvalidArgument(msg, argument="token_env")
    if not token.isascii() or not token.isprintable() or " " in token:
        msg = f"the environment variable {name} holds no token: it has blanks or letters that no header takes"
        raise InvalidArgument(msg, argument="token_env")
    return token


def shown_url(url: str) -> str:
    """The address for messages, without what may be secret in it: user, password, query."""
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return "an address"
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return shown(f"{parts.scheme}://{host}{port}{parts.path}")[1:-1] if parts.scheme else "an address without https://"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _without(token: str, said: str) -> str:
    """What a server or a library said, but for the token."""
    return said.replace(token, "...") if token else said


def _said(token: str, content: bytes) -> str:
    """What a server said, cut short; without the token before that, as a part of it is secret too."""
    return shown(content.replace(token.encode(), b"...") if token else content)

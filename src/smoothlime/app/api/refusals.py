"""Answers that say no: a status and a reason, never a trace."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

LOG = logging.getLogger("smoothlime.app")

LONGEST_REASON = 600
"""Letters of a reason: some quote what was sent."""

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Refused(Exception):
    """A request that gets no answer, and why."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = dict(headers or {})


def as_json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response of JSON, in which NaN would be an error of ours."""
    body = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    return Response(body, status, {**HEADERS, **(headers or {})}, "application/json")


def refusal(status: int, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    """A response that gives a reason, as KServe has it."""
    short = reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 3]}..."
    return as_json({"error": short}, status, headers)


async def on_refused(request: Request, error: Exception) -> Response:
    """The response for what was raised as `Refused`."""
    assert isinstance(error, Refused)
    return refusal(error.status, error.reason, error.headers)


async def on_http(request: Request, error: Exception) -> Response:
    """The response for what starlette raises: no such path, no such method."""
    assert isinstance(error, HTTPException)
    reason = {404: "there is nothing at this path", 405: "this path does not take this method"}
    return refusal(error.status_code, reason.get(error.status_code, error.detail), error.headers)

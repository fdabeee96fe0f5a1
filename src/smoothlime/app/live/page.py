"""The live page: its addresses, and the page itself."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from ..._core.optional import require
from ...errors import InvalidArgument, SmoothlimeError
from ...plots.chart import UNIT
from ...report.page import HOW_TO_READ, Part
from ...report.page import as_html as report_as_html
from ...report.templates import as_markup, asset, data_block, policy, render
from . import further, looks
from .doors import LOOPBACK, Guards, TooLarge
from .looks import Question
from .subject import PREDICTED, Subject
from .worker import Emit, Worker, complaint, lines

SIGMA = 0.5
"""At first, in standard deviations of the data."""

STREAMS = {
    "explain": looks.answer,
    "compare": further.compare,
    "contributions": further.add_up,
    "interactions": further.act_together,
}
"""Addresses that are asked for, and what answers line by line."""


def create_page(
    subject: Subject,
    *,
    token: str,
    hosts: tuple[str, ...] = LOOPBACK,
    ending: threading.Event | None = None,
    **settings: Any,
) -> Guards:
    """The application behind its guards, for any ASGI server; settings are what the page shows at first.

    `ending` is set when the server ends, and ends the streams that are open.
    """
    applications: Any = require("starlette.applications", extra="app", to="serve a page")
    routing: Any = require("starlette.routing", extra="app", to="serve a page")
    worker = Worker(ending)
    page = as_html(subject, **settings).encode()
    worker.submit(partial(_warm_up, subject), lambda _: None, lambda _: None, threading.Event())
    routes = [
        routing.Route("/", partial(_page, page)),
        routing.Route("/rows/{row:int}", partial(_row, subject)),
        routing.Route("/report", partial(_report, worker, subject), methods=["POST"]),
        *(
            routing.Route(f"/{name}", partial(_stream, worker, subject, answer), methods=["POST"])
            for name, answer in STREAMS.items()
        ),
    ]
    return Guards(applications.Starlette(routes=routes), token, hosts)


def as_html(subject: Subject, *, sigma: float = SIGMA, scale: str = "linear", note: str = "") -> str:
    """The page, which has no numbers of rows in it: it asks for those."""
    scripts = [asset("bars.js"), asset("explained.js"), asset("live.js", __package__ or "")]
    told = {
        "rows": len(subject),
        "keys": list(subject.keys),
        "outputs": [
            *subject.outputs,
            *([PREDICTED] if subject.first_target == PREDICTED not in subject.outputs else []),
        ],
        "target": subject.first_target,
        "sigma": sigma,
        "scale": scale,
        "columns": [
            {
                "name": column.name,
                "least": column.least,
                "largest": column.largest,
                "step": column.step,
                "levels": list(column.levels),
                "is_number": column.is_number,
            }
            for column in subject.columns
        ],
    }
    return render(
        __package__ or "",
        "live.html.j2",
        to="serve a page",
        title=subject.title,
        style=as_markup(asset("base.css") + asset("report.css") + asset("live.css", __package__ or "")),
        policy=f"{policy(*scripts)}; connect-src 'self'; form-action 'none'; base-uri 'none'",
        scripts=[as_markup(script) for script in scripts],
        how_to_read=HOW_TO_READ,
        unit=UNIT.capitalize(),
        note=note,
        subject=data_block(told),
    )


def _warm_up(subject: Subject, emit: Emit, stop: Any) -> None:
    """The first question takes a second of imports; it is asked before anybody waits, and its answer forgotten."""
    looks.answer(subject, Question.read({"target": subject.first_target}), emit, stop)


async def _page(page: bytes, request: Any) -> Any:
    from starlette.responses import Response

    return Response(page, media_type="text/html")


async def _row(subject: Subject, request: Any) -> Any:
    from starlette.responses import JSONResponse

    row = request.path_params["row"]
    if row >= len(subject):
        return JSONResponse({"error": f"there is no row {row}"}, status_code=404)
    return JSONResponse({"cells": subject.cells_of(row)})


async def _stream(worker: Worker, subject: Subject, answer: Callable[..., Any], request: Any) -> Any:
    from starlette.responses import JSONResponse, StreamingResponse

    try:
        question = await _question(request)
    except SmoothlimeError as err:
        return JSONResponse(complaint(err), status_code=400)
    found = lines(worker, partial(answer, subject, question), request.is_disconnected)
    return StreamingResponse(found, media_type="application/x-ndjson")


async def _report(worker: Worker, subject: Subject, request: Any) -> Any:
    """The report of the row that is shown, as a file."""
    from starlette.responses import JSONResponse, Response

    try:
        question = await _question(request)
    except SmoothlimeError as err:
        return JSONResponse(complaint(err), status_code=400)

    def make(emit: Emit, stop: Any) -> None:
        e = looks.answer(subject, question, lambda _: None, stop)
        key = subject.keys[question.row] if subject.keys else f"row {question.row}"
        changed = " with changes" if question.changes else ""
        emit({"page": report_as_html([Part(e)], title=f"{subject.title}: {key}{changed}")})

    said: dict[str, Any] = {}
    found: AsyncIterator[bytes] = lines(worker, make, request.is_disconnected)
    async for line in found:
        said |= json.loads(line)
    if "page" not in said:
        return JSONResponse(said, status_code=400)
    headers = {"Content-Disposition": 'attachment; filename="report.html"'}
    return Response(said["page"], media_type="text/html", headers=headers)


async def _question(request: Any) -> Question:
    try:
        given = json.loads(await request.body())
    except TooLarge as err:  # caught here: what escapes would be answered as our own mistake
        msg = "the question is too long"
        raise InvalidArgument(msg) from err
    except (ValueError, RecursionError) as err:  # the latter of brackets without end
        msg = "the question is not JSON"
        raise InvalidArgument(msg) from err
    return Question.read(given)

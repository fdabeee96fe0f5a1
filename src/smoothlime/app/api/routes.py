"""The routes of the service, as KServe has them; all that is computed is computed in threads."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ...errors import ModelError, RemoteError, SmoothlimeError
from .refusals import LOG, Refused, as_json
from .requests import read_request
from .served import Served, as_answer
from .service import Service
from .work import Clock

LIVE, READY = "/v2/health/live", "/v2/health/ready"


class _Name(Convertor[str]):
    """A part of a path without a colon, behind which a verb stands."""

    regex = "[^/:]+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("name", _Name())


def service_of(request: Request) -> Service:
    """What is served."""
    service: Service = request.app.state.service
    return service


def model_of(request: Request) -> Served:
    """The model that the path names."""
    models, name = service_of(request).models, request.path_params["name"]
    if name not in models:
        msg = f"there is no model {name!r}; there is {', '.join(models)}"
        raise Refused(404, msg)
    return models[name]


async def explain(request: Request) -> Response:
    """POST /v1/models/NAME:explain."""
    service, model = service_of(request), model_of(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        msg = f"Content-Type must be application/json; got {kind or 'none'}"
        raise Refused(415, msg)

    def job(clock: Clock) -> dict[str, Any]:
        instances, chosen = read_request(body, service.limits)
        rows = model.rows(instances)
        clock.check()
        e = model.explain(rows, chosen, max_samples=service.limits.max_samples, progress=clock.check)
        service.counters.add(rows=len(e), evaluations=int(e.n_evaluations.sum()))
        return as_answer(e)

    try:
        with service.work.place():
            body = await body_of(request)
            return as_json(await service.work.do(job))
    except SmoothlimeError as err:
        if not _is_for_all(err):
            LOG.warning("the model failed: %s", err)
            msg = "the model failed at these instances, or around them; the log of the service says how"
            raise Refused(422, msg) from err
        raise Refused(422, str(err)) from err


def _is_for_all(err: BaseException | None) -> bool:
    """Whether a message is our own: what a model says, or where it is, is about the machine that it runs on."""
    while isinstance(err, ModelError):
        err = err.__cause__
    return err is None or (isinstance(err, SmoothlimeError) and not isinstance(err, RemoteError))


async def body_of(request: Request) -> bytes:
    """What was sent, if it comes in time."""
    seconds = service_of(request).limits.seconds
    try:
        return await asyncio.wait_for(request.body(), seconds)
    except TimeoutError as err:
        msg = f"the body did not come within {seconds:g} s"
        raise Refused(408, msg, {"Connection": "close"}) from err
    except ClientDisconnect as err:
        raise Refused(400, "the body is cut off") from err


async def models(request: Request) -> Response:
    """GET /v1/models."""
    return as_json({"models": list(service_of(request).models)})


async def model(request: Request) -> Response:
    """GET /v1/models/NAME."""
    found = model_of(request)
    columns = [{"name": name, "kind": kind} for name, kind in zip(found.names, found.kinds, strict=True)]
    ready = not service_of(request).work.is_closing
    return as_json({"name": request.path_params["name"], "ready": ready, "columns": columns})


async def live(request: Request) -> Response:
    """GET /v2/health/live."""
    return as_json({"live": True})


async def ready(request: Request) -> Response:
    """GET /v2/health/ready."""
    if service_of(request).work.is_closing:
        raise Refused(503, "the service is shutting down")
    return as_json({"ready": True})


async def metrics(request: Request) -> Response:
    """GET /metrics."""
    text = service_of(request).counters.as_text()
    return Response(text, media_type="text/plain; version=0.0.4", headers={"Cache-Control": "no-store"})


async def openapi(request: Request) -> Response:
    """GET /openapi.json."""
    return as_json(service_of(request).openapi)


ROUTES = (
    Route("/v1/models/{name:name}:explain", explain, methods=["POST"]),
    Route("/v1/models/{name:name}", model),
    Route("/v1/models", models),
    Route(LIVE, live),
    Route(READY, ready),
    Route("/metrics", metrics),
    Route("/openapi.json", openapi),
)

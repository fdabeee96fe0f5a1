"""create_app: guards, routes and threads as one application of starlette, on which others can stand."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from .counters import Counting
from .guards import HostGuard, SizeGuard, TokenGuard, check_token
from .limits import Limits
from .refusals import Refused, on_http, on_refused
from .routes import LIVE, READY, ROUTES
from .served import Served
from .service import Service


def create_app(
    models: Mapping[str, Served],
    *,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: Collection[str] = (),
    routes: Sequence[BaseRoute] = (),
    open_paths: Collection[str] = (),
) -> Starlette:
    """An application that explains models.

    Parameters
    ----------
    models
        By name, each as `Served(model, background)`.
    token
        What a request must bring as `Authorization: Bearer ...`; None for none, on this machine alone.
    hosts
        Names that the Host header may have, besides addresses and those of this machine.
    routes
        Further routes, which the same guards stand before; `open_paths` are those that need no token.

    Examples
    --------
    >>> import numpy as np
    >>> from starlette.testclient import TestClient
    >>> line = Served(lambda a: a @ [2.0, -1.0], np.random.default_rng(0).normal(size=(50, 2)))
    >>> with TestClient(create_app({"line": line}), base_url="http://localhost") as client:
    ...     answer = client.post("/v1/models/line:explain", json={"instances": [[0.5, 1.0]]})
    >>> answer.json()["predictions"]
    [0.0]
    """
    check_token(token)
    service = Service.of(models, limits or Limits(), has_token=token is not None)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if service.work.is_closing:
            service.work.open()
        yield
        service.work.is_closing = True
        await run_in_threadpool(service.work.close)

    app = Starlette(
        routes=[*ROUTES, *routes],
        middleware=[
            Middleware(Counting, service.counters),
            Middleware(HostGuard, hosts),
            Middleware(TokenGuard, token, {LIVE, READY, *open_paths}),
            Middleware(SizeGuard, service.limits.size),
        ],
        exception_handlers={Refused: on_refused, HTTPException: on_http},
        lifespan=lifespan,
    )
    app.state.service = service
    app.router.redirect_slashes = False
    return app

"""The engine on Dask: blocks are tasks, and a plugin of the workers holds the model.

Dask blames all tasks of a worker that dies, those that only waited there among them. So blocks that it gives up are
tried once more, each with nothing beside it: one that ends its process then goes to the errors, and no other does.
"""

from __future__ import annotations

import contextlib
import uuid
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import CancelledError
from typing import Any

from ..._core.optional import require
from ...errors import InvalidArgument, RemoteError
from ..blocks import Block
from ..reference import ModelReference
from ..watch import log
from ..work import Done, Job
from .ahead import ahead
from .explainer import Explainer, send
from .local import surroundings
from .wire import pack, unpack
from .workers import Workers, check_address, killed_too_often, processors, unusable

PATIENCE = 30.0
"""Seconds after which the log says what is waited for."""

SETTINGS = {
    "distributed.scheduler.allowed-failures": 0,  # of a block, before it is tried alone
    "distributed.admin.large-graph-warning-threshold": "1 GB",  # a block goes with its task, which may be tried again
}


def run_dask(model: ModelReference, job: Job, blocks: Iterator[Block], workers: Workers) -> Generator[Done, None, None]:
    """Blocks explained by workers of Dask: of a cluster, or of one on this machine that ends with the job."""
    distributed = require("distributed", extra="dask", to="explain tables with Dask")
    plugin = _plugin(distributed, send(model, job, "dask"))
    with _connected(distributed, workers) as client, contextlib.closing(ahead(blocks, 2)) as waiting:
        name = f"smoothlime-{uuid.uuid4().hex}"
        client.register_plugin(plugin, name=name)
        tasks = _Tasks(distributed, client, job, name, workers.count)
        try:
            yield from tasks.run(waiting)
        except (CancelledError, distributed.comm.CommClosedError) as err:
            why = (str(err).splitlines() or [type(err).__name__])[0].rstrip(":.")
            msg = f"Dask has lost the blocks that it was given ({why}). The same call goes on from what is there"
            raise RemoteError(msg) from err
        finally:
            with contextlib.suppress(OSError):  # where nobody is there any more
                client.cancel(list(tasks.held), force=True)
                client.unregister_worker_plugin(name)


def _plugin(distributed: Any, payload: bytes) -> Any:
    """What each worker gets, those too that come later."""

    class Held(distributed.WorkerPlugin):  # type: ignore[misc]
        def __init__(self, payload: bytes) -> None:
            self.payload = payload

        def setup(self, worker: Any) -> None:
            self.explainer = Explainer(self.payload)

    return Held(payload)


def _load(name: str) -> bytes:
    """In a worker: have the model."""
    return _held(name).load()


def _explain(name: str, block: bytes) -> bytes:
    """In a worker: what came of a block."""
    return _held(name).explain(block)


def _held(name: str) -> Explainer:
    distributed = require("distributed", extra="dask", to="explain tables with Dask")
    explainer: Explainer = distributed.get_worker().plugins[name].explainer
    return explainer


@contextlib.contextmanager
def _connected(distributed: Any, workers: Workers) -> Iterator[Any]:
    """A client: of the cluster at an address, of the one that this process uses already, or of a new one here."""
    dask = require("dask", extra="dask", to="explain tables with Dask")
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(SETTINGS))
        client = _client(distributed, workers.address)
        if workers.address is not None:
            stack.enter_context(client)
        elif client is None:
            stack.enter_context(surroundings(has_main=False))  # as long as workers may be started
            count = workers.count or processors()
            cluster = distributed.LocalCluster(
                n_workers=count, threads_per_worker=1, memory_limit=0, dashboard_address="127.0.0.1:0"
            )  # a port that is free: the one by default may be somebody's
            stack.enter_context(cluster)
            client = stack.enter_context(distributed.Client(cluster, set_as_default=False))
        yield client


def _client(distributed: Any, address: str | None) -> Any:
    """The client of an address; without one that of this process, None where it has none."""
    if address is None:
        try:
            return distributed.client.default_client()
        except ValueError:
            return None
    check_address(address, "Dask")
    try:
        return distributed.Client(address, set_as_default=False)
    except (OSError, ValueError) as err:
        raise unusable(address, "Dask", err) from err


class _Tasks:
    """Blocks that Dask has, and those to be tried again."""

    def __init__(self, distributed: Any, client: Any, job: Job, name: str, count: int | None) -> None:
        self.distributed, self.client, self.job, self.name, self.count = distributed, client, job, name, count
        self.held: dict[Any, Block | None] = {}
        self.suspects: deque[Block | None] = deque()
        self.is_alone = False

    def run(self, blocks: Iterator[Block]) -> Generator[Done, None, None]:
        """What came of each block, as it comes."""
        self._ask(None)
        is_read = False
        while True:
            while not (is_read or self.suspects) and len(self.held) < self._most():
                block = next(blocks, None)
                is_read = block is None
                if block is not None:
                    self._ask(block)
            if self.suspects and not self.held:
                self.is_alone = True
                self._ask(self.suspects.popleft())
            if not self.held:
                return
            for future in self._finished():
                yield from self._taken(future, self.held.pop(future))

    def _ask(self, block: Block | None) -> None:
        """Have a block explained; or, for None, the model loaded."""
        ask, *rest = (_load,) if block is None else (_explain, pack(block))
        self.held[self.client.submit(ask, self.name, *rest, pure=False)] = block

    def _most(self) -> int:
        """Tasks at a time: twice as many as there are workers, so that none waits for its next block."""
        return 2 * max(1, self.count or len(self.client.ncores()))

    def _finished(self) -> set[Any]:
        """Tasks that are finished, one at least."""
        while True:
            try:
                with self.client.as_current():
                    return set(self.distributed.wait(list(self.held), PATIENCE, "FIRST_COMPLETED").done)
            except TimeoutError:
                if not self.client.ncores():
                    log.info("Dask has no worker yet")

    def _taken(self, future: Any, block: Block | None) -> Generator[Done, None, None]:
        """What came of a task."""
        was_alone, self.is_alone = self.is_alone, False
        try:
            answer = unpack(future.result())
        except self.distributed.KilledWorker:
            if not was_alone:
                self.suspects.append(block)
            elif block is not None:
                yield killed_too_often(self.job, block, "the log of Dask may say why")
            else:
                msg = "workers of Dask end before they have the model; their log may say why"
                raise InvalidArgument(msg, argument="engine") from None
            return
        if isinstance(answer, BaseException):
            raise answer
        if answer is not None:
            yield answer

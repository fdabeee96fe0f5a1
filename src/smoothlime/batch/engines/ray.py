"""The engine on Ray: an actor for each worker, which holds the model, and one block at a time for each actor.

Actors rather than Ray Data: blocks are named by their place in the table, which batches of Ray Data are not, and a
block that kills its worker is told from others only where a worker has one. Nothing but actors asks for a processor,
so they cannot wait for each other.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from ..._core.optional import require
from ...errors import InvalidArgument
from ..blocks import Block
from ..reference import ModelReference
from ..watch import log
from ..work import Done, Job
from .ahead import ahead
from .explainer import Explainer, send
from .wire import pack, unpack
from .workers import TRIES, Workers, check_address, killed_too_often, processors, unusable

STARTS = 3
"""Workers that may end, one after the other, before one has the model."""

PATIENCE = 30.0
"""Seconds after which the log says what is waited for."""


def run_ray(model: ModelReference, job: Job, blocks: Iterator[Block], workers: Workers) -> Generator[Done, None, None]:
    """Blocks explained by actors of Ray: of a cluster, or of an instance on this machine that ends with the job."""
    ray = require("ray", extra="ray", to="explain tables with Ray")
    payload = send(model, job, "ray")
    with _connected(ray, workers) as count, contextlib.closing(ahead(blocks, count)) as waiting:
        crew = _Crew(ray, job, payload, workers.gpus)
        try:
            yield from crew.run(waiting, count)
        finally:
            crew.stop()


@contextlib.contextmanager
def _connected(ray: Any, workers: Workers) -> Iterator[int]:
    """Ray, and how many workers there are to be. What is running already is used, and left as it was."""
    if ray.is_initialized():
        here = ray.get_runtime_context().gcs_address
        if workers.address not in (None, "auto", here):
            msg = f"this process is connected to Ray at {here!r}; leave address out, or call ray.shutdown() first"
            raise InvalidArgument(msg, argument="address")
        yield workers.count or _room(ray, workers)
        return
    address = workers.address or os.environ.get("RAY_ADDRESS")
    count = workers.count or (None if address else processors())
    # one logical processor more than workers: they never wait for each other, whatever else the instance is asked
    own = {"address": "local", "num_cpus": (count or 0) + 1, "include_dashboard": False}
    if address:
        check_address(address, "Ray")
    with _without_statistics():
        try:
            ray.init(**({"address": address} if address else own), log_to_driver=False, logging_level="ERROR")
        except (OSError, RuntimeError, ValueError) as err:
            raise unusable(address, "Ray", err) from err
    try:
        if not address:
            _check_cards(ray, workers, count or 0)
        yield count or _room(ray, workers)
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _without_statistics() -> Iterator[None]:
    """Ray started from here sends no statistics of its use, unless somebody asked for that."""
    name = "RAY_USAGE_STATS_ENABLED"
    before = os.environ.get(name)
    os.environ.setdefault(name, "0")
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]


def _room(ray: Any, workers: Workers) -> int:
    """Workers that a cluster has room for."""
    have = ray.cluster_resources()
    each = [have.get("CPU", 1)] + ([have.get("GPU", 0) / workers.gpus] if workers.gpus else [])
    return max(1, int(min(each)))


def _check_cards(ray: Any, workers: Workers, count: int) -> None:
    has, needs = ray.cluster_resources().get("GPU", 0), workers.gpus * count
    if needs > has:
        msg = f"{count} workers with gpus_per_worker={workers.gpus:g} need {needs:g} cards; Ray finds {has:g}"
        raise InvalidArgument(msg, argument="gpus_per_worker")


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """What an actor is at: loading the model, or a block that some others have died of."""

    actor: Any
    block: Block | None = None
    deaths: int = 0


class _Crew:
    """Actors, each busy with one thing."""

    def __init__(self, ray: Any, job: Job, payload: bytes, gpus: float) -> None:
        self.ray, self.job = ray, job
        self.payload = ray.put(payload)
        self.actor = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=0)(Explainer)
        self.asked: dict[Any, _Asked] = {}
        self.again: list[tuple[Block, int]] = []
        self.is_read = False
        self.lost_starts = 0

    def run(self, blocks: Iterator[Block], count: int) -> Generator[Done, None, None]:
        """What came of each block, as it comes."""
        for _ in range(count):
            self._start()
        while not self.is_read or self.again or any(each.block is not None for each in self.asked.values()):
            ref = self._first()
            asked = self.asked.pop(ref)
            try:
                answer = unpack(self.ray.get(ref))
            except _ends(self.ray) as err:
                yield from self._replace(asked, err)
                continue
            if isinstance(answer, BaseException):
                raise answer
            self.lost_starts = 0
            self._occupy(asked.actor, blocks)
            if answer is not None:
                yield answer

    def stop(self) -> None:
        """End all actors."""
        for each in self.asked.values():
            self.ray.kill(each.actor)
        self.asked.clear()

    def _start(self) -> None:
        actor = self.actor.remote(self.payload)
        self.asked[actor.load.remote()] = _Asked(actor)

    def _occupy(self, actor: Any, blocks: Iterator[Block]) -> None:
        """Give an actor its next block; end it where there is none."""
        block, deaths = self.again.pop() if self.again else (next(blocks, None), 0)
        if block is None:
            self.is_read = True
            self.ray.kill(actor)
        else:
            self.asked[actor.explain.remote(pack(block))] = _Asked(actor, block, deaths)

    def _first(self) -> Any:
        """The first answer that is there."""
        began = time.monotonic()
        while True:
            found, _ = self.ray.wait(list(self.asked), num_returns=1, timeout=1.0)
            if found:
                return found[0]
            if all(each.block is None for each in self.asked.values()) and time.monotonic() - began > PATIENCE:
                began = time.monotonic()
                free = self.ray.available_resources()
                has = ", ".join(f"{free.get(name, 0):g} {name}" for name in ("CPU", "GPU"))
                log.info("no worker of Ray has started yet: each asks for a CPU, and %s are free", has)

    def _replace(self, asked: _Asked, err: Exception) -> Generator[Done, None, None]:
        """Start another actor for one that is gone; its block is tried again, unless it has killed too many."""
        self.ray.kill(asked.actor)
        if asked.block is None:
            self.lost_starts += 1
            if self.lost_starts == STARTS:
                msg = f"workers of Ray end before they have the model: {_reason(err)}"
                raise InvalidArgument(msg, argument="engine")
        else:
            deaths = asked.deaths + (not getattr(err, "preempted", False))
            if deaths == TRIES:
                yield killed_too_often(self.job, asked.block, "the log of Ray may say why")
            else:
                self.again.append((asked.block, deaths))
        self._start()


def _ends(ray: Any) -> tuple[type[Exception], ...]:
    """What Ray raises where a process or a machine is gone, and with it a block or what came of it."""
    names = ("RayActorError", "WorkerCrashedError", "OutOfMemoryError", "NodeDiedError", "ObjectLostError")
    return tuple(getattr(ray.exceptions, name) for name in names)


def _reason(err: Exception) -> str:
    """The last line of what Ray says."""
    lines = [line.strip() for line in str(err).splitlines() if line.strip()]
    return lines[-1] if lines else type(err).__name__

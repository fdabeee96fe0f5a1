"""Engines: where blocks are explained. Each is a thin adapter around `batch.work.explain_block`."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Protocol

from ..._core.optional import require
from ...errors import InvalidArgument
from ..blocks import Block
from ..reference import ModelReference
from ..work import Done, Job
from .dask import run_dask
from .local import run_local
from .ray import run_ray
from .workers import Workers


class Engine(Protocol):
    """Takes blocks from an iterator as it has room for them, and gives back what came of each, in any order."""

    def __call__(
        self, model: ModelReference, job: Job, blocks: Iterator[Block], workers: Workers
    ) -> Generator[Done, None, None]:
        """Runs until all blocks are done; closing it stops its workers."""
        ...


ENGINES: dict[str, Engine] = {"local": run_local, "ray": run_ray, "dask": run_dask}

NEEDS = {"ray": "ray", "dask": "distributed"}


def find_engine(name: str, workers: Workers) -> Engine:
    """An engine by its name; an error where it is not installed, or has no use for what is asked of its workers."""
    if name not in ENGINES:
        msg = f"engine must be one of {', '.join(map(repr, ENGINES))}; got {name!r}"
        raise InvalidArgument(msg, argument="engine")
    if workers.address is not None and name == "local":
        msg = "address is that of a cluster, and engine='local' has none; choose engine='ray' or engine='dask'"
        raise InvalidArgument(msg, argument="address")
    if workers.gpus and name != "ray":
        hint = "; for Dask start a worker for each card" if name == "dask" else ""
        msg = f"gpus_per_worker is for engine='ray'; engine={name!r} does not share out cards{hint}"
        raise InvalidArgument(msg, argument="gpus_per_worker")
    if name in NEEDS:
        require(NEEDS[name], extra=name, to=f"explain tables with engine={name!r}")
    return ENGINES[name]


__all__ = ["Engine", "Workers", "find_engine"]

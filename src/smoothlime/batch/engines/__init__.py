"""Engines: where blocks are explained. Each is a thin adapter around `batch.work.explain_block`."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Protocol

from ...errors import InvalidArgument
from ..blocks import Block
from ..reference import ModelReference
from ..work import Done, Job
from .local import run_local


class Engine(Protocol):
    """Takes blocks from an iterator as it has room for them, and gives back what came of each, in any order."""

    def __call__(
        self, model: ModelReference, job: Job, blocks: Iterator[Block], workers: int
    ) -> Generator[Done, None, None]:
        """Runs until all blocks are done; closing it stops its workers."""
        ...


ENGINES: dict[str, Engine] = {"local": run_local}


def find_engine(name: str) -> Engine:
    """An engine by its name."""
    if name not in ENGINES:
        msg = f"engine must be {' or '.join(map(repr, ENGINES))}; got {name!r}"
        raise InvalidArgument(msg, argument="engine")
    return ENGINES[name]

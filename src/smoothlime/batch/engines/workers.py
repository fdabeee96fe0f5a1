"""Workers as they were asked for, and what every engine does with a block that ends them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..blocks import Block
from ..work import Done, Job, give_up

TRIES = 2
"""Processes that a block may kill before its rows go to the errors."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Who explains blocks; nothing here changes a bit of what they say."""

    count: int | None = None
    """Processes; None is one on this machine, and all that a cluster has room for"""
    address: str | None = None
    """Of a cluster; None starts the engine on this machine"""
    gpus: float = 0.0
    """Graphics cards of each"""


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def killed_too_often(job: Job, block: Block, why: str) -> Done:
    """A block that killed every process that explained it: its rows go to the errors."""
    return give_up(job, block, f"{TRIES} processes that explained its block died ({why}); out of memory, perhaps")

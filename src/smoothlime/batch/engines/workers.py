"""Workers as they were asked for, and what every engine does with a block that ends them."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from ...errors import InvalidArgument
from ..blocks import Block
from ..work import Done, Job, give_up

TRIES = 2
"""Processes that a block may kill before its rows go to the errors."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Who explains blocks; nothing here changes a bit of what they say."""

    count: int | None = None
    """Processes; None is as many as a cluster has room for"""
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


def check_address(address: str, engine: str) -> None:
    """An error at once where nobody listens: engines would go on asking for a minute."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    if parts.scheme not in ("", "ray", "tcp", "tls"):
        return
    try:
        if parts.hostname and parts.port:
            socket.create_connection((parts.hostname, parts.port), timeout=10).close()
    except (OSError, ValueError) as err:
        raise unusable(address, engine, err) from err


def unusable(address: str | None, engine: str, err: Exception) -> InvalidArgument:
    """The error for a cluster that cannot be reached."""
    where = f" at {address!r}" if address else ""
    return InvalidArgument(f"{engine}{where} cannot be used: {err}", argument="address")

"""One thread that answers questions, one after another, and streams of lines that wait for it.

One at a time: models need not bear being asked by several threads, and each question has all processors. Questions that
nobody waits for any more are passed over, or stopped where they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from ...errors import SmoothlimeError

Emit = Callable[[dict[str, Any]], None]
Job = Callable[[Emit, threading.Event], Any]

ASKED_AFTER = 0.25
"""Seconds after which it is asked whether somebody still waits."""

log = logging.getLogger("smoothlime.app")


class Stopped(Exception):
    """Nobody waits for the answer any more."""


class Worker:
    """The thread and its queue. It is a daemon: a model that hangs does not keep the program from ending."""

    def __init__(self, ending: threading.Event | None = None) -> None:
        self.ending = ending or threading.Event()
        """Set when the server ends: streams then do so too"""
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="smoothlime", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._jobs.get()()

    def submit(self, job: Job, emit: Emit, end: Callable[[Any], None], stop: threading.Event) -> None:
        """Have a job done: what it emits, and in the end what it returns. Errors are emitted."""

        def do() -> None:
            answer = None
            try:
                if not stop.is_set():
                    answer = job(emit, stop)
            except Stopped:
                pass
            except Exception as err:  # of a user's model, or ours: the page says so, and the server goes on
                if not isinstance(err, SmoothlimeError):
                    log.exception("a question could not be answered")
                emit(complaint(err))
            finally:
                end(answer)

        self._jobs.put(do)


def complaint(err: BaseException) -> dict[str, Any]:
    """An error as the page shows it: ours as it is, others with their kind."""
    text = str(err) if isinstance(err, SmoothlimeError) else f"{type(err).__name__}: {err}"
    return {"error": text or type(err).__name__}


async def lines(worker: Worker, job: Job, is_gone: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
    """What a job emits, a JSON line each, until it is done, whoever asked is gone, or the server ends."""
    loop, found, stop = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any] | None](), threading.Event()

    def tell(item: dict[str, Any] | None) -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(found.put_nowait, item)

    worker.submit(job, tell, lambda _: tell(None), stop)
    try:
        while True:
            try:
                item = await asyncio.wait_for(found.get(), ASKED_AFTER)
            except TimeoutError:
                if worker.ending.is_set() or await is_gone():
                    return
                continue
            if item is None:
                return
            yield json.dumps(item, allow_nan=False).encode() + b"\n"
    finally:
        stop.set()

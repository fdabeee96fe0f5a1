"""Work in threads, for so many requests at once: those that wait are counted, and those that take too long let go."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .limits import Limits
from .refusals import Refused

Answer = TypeVar("Answer")

AGAIN = {"Retry-After": "1"}


class OutOfTime(Exception):
    """The time of a request is over; nobody waits for its answer."""


class Clock:
    """When the time of a request is over."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def check(self, *_: int) -> None:
        """Stop what is done in a thread, where its request is over: to be called as `progress`."""
        if time.monotonic() > self.end:
            raise OutOfTime


class Work:
    """Threads, and how many requests are with them."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.inside = 0
        self.open()

    def open(self) -> None:
        """Take requests: from the beginning, and again where an application that was closed is started again."""
        self.is_closing = False
        self._pool = ThreadPoolExecutor(self.limits.workers, thread_name_prefix="smoothlime")

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """A place for a request, from before its body is read: so bodies that wait are no more than places."""
        if self.is_closing:
            raise Refused(503, "the service is shutting down", AGAIN)
        if self.inside >= self.limits.waiting:
            msg = f"{self.inside} requests are being worked on or wait; come again"
            raise Refused(429, msg, AGAIN)
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    async def do(self, job: Callable[[Clock], Answer]) -> Answer:
        """What a job returns, or a refusal where its time is over; it holds a place until it has stopped."""
        clock = Clock(self.limits.seconds)

        def timed() -> Answer:
            clock.check()
            return job(clock)

        future = asyncio.get_running_loop().run_in_executor(self._pool, timed)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self.limits.seconds)
        except (TimeoutError, OutOfTime) as err:
            late = (
                f"this took longer than the limit of {self.limits.seconds:g} s; send fewer instances, or a larger rtol"
            )
            raise Refused(504, late) from err
        finally:
            if not future.done():
                self.inside += 1
                future.add_done_callback(self._leave)

    def _leave(self, future: asyncio.Future[Answer]) -> None:
        self.inside -= 1
        if not future.cancelled():
            future.exception()  # nobody waits for it any more

    def close(self) -> None:
        """Finish what runs, and take no more."""
        self.is_closing = True
        self._pool.shutdown(wait=True, cancel_futures=True)

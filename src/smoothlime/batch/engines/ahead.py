"""Reading ahead: an iterator whose next items are made in a thread while the last one is worked on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

_END: Any = object()


def ahead(items: Iterator[T], most: int) -> Generator[T, None, None]:
    """The same items; up to `most` of them wait. What making them raises is raised here."""
    waiting: queue.Queue[Any] = queue.Queue(most)
    is_over = threading.Event()

    def put(item: Any) -> bool:
        while not is_over.is_set():
            try:
                waiting.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def make() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(_END)
        except BaseException as err:  # raised again below, where somebody waits for it
            put(_Raised(err))

    thread = threading.Thread(target=make, name="smoothlime-reader", daemon=True)
    thread.start()
    try:
        while (item := waiting.get()) is not _END:
            if isinstance(item, _Raised):
                raise item.error
            yield item
    finally:
        is_over.set()
        thread.join()


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error

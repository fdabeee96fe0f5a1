"""Long loops over arrays, shared out to threads: NumPy lets them run side by side."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

LONG = 2**18
"""Numbers that keep a thread busy for long enough to be worth starting."""

MOST_THREADS = 16


def threads(numbers: int) -> int:
    """Threads for work on so many numbers: those that OMP_NUM_THREADS allows, else one for each processor."""
    return max(1, min(numbers // LONG, _allowed()))


def in_parts(work: Callable[[slice], Any], length: int, count: int) -> list[Any]:
    """What `work` returns for each of `count` parts of a range, in order, each in a thread of its own."""
    if count <= 1:
        return [work(slice(0, length))]
    from concurrent.futures import ThreadPoolExecutor  # takes longer to import than most of this library

    cuts = [i * length // count for i in range(count + 1)]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda i: work(slice(cuts[i], cuts[i + 1])), range(count)))


def _allowed() -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "")
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST_THREADS, int(asked) if asked.isdecimal() and int(asked) else processors)

"""Processes that were forked: threads of the parent are gone, and libraries wait for them for ever.

XGBoost, LightGBM, torch and scikit-learn's boosting on histograms compute with OpenMP. GNU's keeps a team of threads
for each thread that began one; a fork leaves the team behind, and the child would wait for it at its first call. A
thread that is begun in the child makes a team of its own: a call that is made there gives what it gave before the fork.
"""

from __future__ import annotations

import contextvars
import functools
import os
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_FORKED = threading.Event()
"""Whether this process was forked from one that had imported smoothlime."""

if hasattr(os, "register_at_fork"):  # not everywhere
    os.register_at_fork(after_in_child=_FORKED.set)


def is_forked() -> bool:
    """Whether this process is a fork of one that had imported smoothlime, or was started as a fork."""
    import multiprocessing  # 4 ms, for those alone who ask

    return _FORKED.is_set() or type(multiprocessing.current_process()).__name__ == "ForkProcess"


def survives_fork(call: Callable[P, R]) -> Callable[P, R]:
    """The same function, which runs in a thread of its own if the process was forked."""

    @functools.wraps(call)
    def wherever(*args: P.args, **kwargs: P.kwargs) -> R:
        if not _FORKED.is_set():
            return call(*args, **kwargs)
        return _in_own_thread(functools.partial(call, *args, **kwargs))

    return wherever


def _in_own_thread(call: Callable[[], R]) -> R:
    """What a call returns or raises, in a thread that begins and ends with it."""
    answers: list[R] = []
    errors: list[BaseException] = []

    context = contextvars.copy_context()

    def run() -> None:
        try:
            answers.append(context.run(call))
        except BaseException as err:  # raised again below, in the caller's own thread
            errors.append(err)

    thread = threading.Thread(target=run, daemon=True)  # nobody waits for it if the caller is interrupted
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]

"""A progress bar that appears only when the work takes long and somebody can see it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..errors import InvalidArgument

SHOW_AFTER = 2.0
"""Seconds of silence; shorter work needs no bar."""

Report = Callable[[int, int], None]


class Progress:
    """Counts model evaluations (or bytes) and shows them: a bar, a callable (done, total), or nothing."""

    def __init__(self, progress: Any, total: int, *, label: str = "explaining") -> None:
        if not (progress in ("auto", True, False, None) or callable(progress)):
            msg = f"progress must be 'auto', True, False or a callable (done, total); got {progress!r}"
            raise InvalidArgument(msg)
        self.total = total
        self.done = 0
        self._label = label
        self._report: Report | None = progress if callable(progress) else None
        self._bar: Any = None
        is_heard = sys.stderr is not None  # programs without a console have none
        self._wanted = is_heard and (progress is True or (progress == "auto" and _is_watched()))
        self._started = time.monotonic()

    def __enter__(self) -> Progress:
        """Begin counting."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal on a fresh line, also when interrupted."""
        if self._bar is not None and error is None:
            self._bar.length = self.done
            self._bar.update(0)
        if self._bar is not None:
            self._bar.render_finish()

    def expect(self, more: int) -> None:
        """Say how many model rows are still to come, by the latest forecast."""
        self.total = self.done + more
        if self._bar is not None:
            self._bar.length = self.total

    def within(self) -> Report:
        """A callable (done, total) for a part of the work, whose model rows count here as they are done."""
        before = self.done

        def report(done: int, _: int) -> None:
            self.advance(before + done - self.done)

        return report

    def advance(self, n: int) -> None:
        """Say that n more model rows were evaluated."""
        self.done += n
        if self._report is not None:
            self._report(self.done, self.total)
        elif self._wanted and (self._bar is not None or time.monotonic() - self._started > SHOW_AFTER):
            if self._bar is None:
                self._bar = _bar(self.total, self._label)
                # the work began before the bar was made: what is left is forecast from there
                self._bar.start = self._bar.last_eta = time.time() - (time.monotonic() - self._started)
                n = self.done
            self._bar.update(n)


def _is_watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def _bar(total: int, label: str) -> Any:
    import click

    class Visible:
        """Standard error that counts as a terminal, so that a bar also shows in a notebook."""

        def write(self, text: str) -> int:
            return sys.stderr.write(text)

        def flush(self) -> None:
            sys.stderr.flush()

        def isatty(self) -> bool:
            return True

    visible: Any = Visible()  # writes and flushes, which is all click needs
    return click.progressbar(length=total, label=label, file=visible, show_pos=False)

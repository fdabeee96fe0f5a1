"""A progress bar that appears only when the work takes long and somebody can see it."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..errors import InvalidArgument

SHOW_AFTER = 2.0
"""Seconds of silence; shorter work needs no bar."""

Report = Callable[[int, int], None]


class Progress:
    """Counts model evaluations (or bytes) and shows them: a bar, a callable (done, total), or nothing."""

    def __init__(self, progress: Any, total: int, *, label: str = "explaining", unit: str = "it") -> None:
        if not (progress in ("auto", True, False, None) or callable(progress)):
            msg = f"progress must be 'auto', True, False or a callable (done, total); got {progress!r}"
            raise InvalidArgument(msg, argument="progress")
        self.total = total
        self.done = 0
        self.later = 0  # of parts of the work that have not begun
        self._label, self._unit = label, unit
        self._report: Report | None = progress if callable(progress) else None
        self._follower: Callable[..., None] | None = getattr(progress, "look", None)
        self._bar: Any = None
        has_console = sys.stderr is not None
        self._wanted = has_console and (progress is True or (progress == "auto" and is_watched()))
        self._started = time.monotonic()

    def __enter__(self) -> Progress:
        """Begin counting."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal on a fresh line, also when interrupted."""
        if self._bar is not None:
            if error is None:
                self._set_total(self.done)  # the last forecast may have been off
            self._bar.close()

    def expect(self, more: int) -> None:
        """Say how many model rows are still to come, by the latest forecast, of the part that is being worked on."""
        self.total = self.done + more + self.later
        if self._bar is not None:
            self._set_total(self.total)

    def look(self, *seen: Any) -> None:
        """Show an interim estimate to a callable that follows the work look by look: one with a method `look`."""
        if self._follower is not None:
            self._follower(*seen)

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
        elif self._bar is not None:
            self._bar.update(n)
        elif self._wanted and time.monotonic() - self._started > SHOW_AFTER:
            self._bar = self._late_bar()

    def _set_total(self, total: int) -> None:
        """Tell the bar, and the widget that shows it, how much there is to do."""
        self._bar.total = total
        if (box := getattr(self._bar, "container", None)) is not None:
            _, widget, _ = box.children
            widget.max = total

    def _late_bar(self) -> Any:
        """A bar made when it is first shown: importing tqdm takes longer than most explanations."""
        base: Any = _tqdm()

        class Bar(base):  # type: ignore[misc]  # tqdm has no types
            monitor_interval = 0  # no thread beside it, which would outlive it

        # smoothing=0: the time left is forecast from the mean speed since the work began
        bar = Bar(total=self.total, desc=self._label, unit=self._unit, unit_scale=True, smoothing=0, file=sys.stderr)
        bar.n, bar.start_t = self.done, bar.start_t - (time.monotonic() - self._started)
        bar.refresh()
        return bar


def is_watched() -> bool:
    """Whether there is a terminal or a notebook, and so somebody who sees a bar."""
    return (sys.stderr is not None and sys.stderr.isatty()) or _is_notebook()


def _is_notebook() -> bool:
    return "ipykernel" in sys.modules


def _tqdm() -> Any:
    """The class of bars: in notebooks a widget, where widgets are installed."""
    if not _is_notebook():
        from tqdm import tqdm

        return tqdm
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that widgets are missing: a bar of text does as well
        from tqdm.auto import tqdm as either

    return either

"""What one sees of a long job: a bar on a terminal or in a notebook, lines of the log otherwise."""

from __future__ import annotations

import logging
import time
from typing import Any

from .._core.progress import Progress, is_watched

EVERY = 10.0
"""Seconds between two lines of the log."""

log = logging.getLogger("smoothlime")


class Watch:
    """Counts rows of a table."""

    def __init__(self, progress: Any, total: int, label: str, before: int = 0) -> None:
        self._progress = Progress(progress, total - before, label=label, unit=" rows")
        self._total, self._done, self._before, self._label = total, before, before, label
        self._logs = progress == "auto" and not is_watched()
        self._began = self._said = time.monotonic()

    def __enter__(self) -> Watch:
        """Begin."""
        if self._before:
            log.info("%s: %s of %s rows are there already", self._label, f"{self._before:,}", f"{self._total:,}")
        return self

    def __exit__(self, *error: Any) -> None:
        """Take the bar away."""
        self._progress.__exit__(*error)

    def advance(self, rows: int) -> None:
        """Say that more rows are done."""
        self._done += rows
        self._progress.advance(rows)
        now = time.monotonic()
        if self._logs and now - self._said >= EVERY:
            self._said = now
            rate = (self._done - self._before) / (now - self._began)
            if self._total:
                left = duration((self._total - self._done) / rate) if rate else "?"
                share = f"{self._done:,} of {self._total:,} rows ({self._done / self._total:.0%})"
                log.info("%s: %s, %s rows/s, %s left", self._label, share, f"{rate:,.0f}", left)
            else:
                log.info("%s: %s rows, %s rows/s", self._label, f"{self._done:,}", f"{rate:,.0f}")


def duration(seconds: float) -> str:
    """Seconds in words.

    >>> duration(5), duration(200), duration(9_000)
    ('5 s', '3 min', '2 h 30 min')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

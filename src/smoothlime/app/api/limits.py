"""What one request may ask for, and how many may wait."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from ..._core.validate import check_count, check_number
from ...errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a service. What lies beyond is refused with its reason, and costs nothing."""

    rows: int = 1_000
    """Instances of one request"""
    size: int = 2**20
    """Bytes of one request's body"""
    seconds: float = 30.0
    """Time of one request, waiting included"""
    waiting: int = 128
    """Requests that are worked on or wait; those beyond are told to come again"""
    workers: int = field(default_factory=lambda: min(4, os.cpu_count() or 1))
    """Requests that are worked on at once, in threads"""
    max_samples: int = 20_000
    """Draws of one row"""

    def __post_init__(self) -> None:
        """Check them all."""
        for name in ("rows", "size", "waiting", "workers", "max_samples"):
            check_count(getattr(self, name), name)
        check_number(self.seconds, "seconds")
        if not self.seconds:
            msg = "seconds must be more than 0; got 0"
            raise InvalidArgument(msg, argument="seconds")

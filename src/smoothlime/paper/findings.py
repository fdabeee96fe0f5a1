"""What a judge may find: a verdict, the number behind it and the reason, on one thing or over all data sets.

Claims about the experiments are judged on the paper's own data sets; where one could not be had and something stands in
for it, the claim holds in part at best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .figures import title_of
from .study import NAMES, Study

Verdict = Literal["holds", "holds in part", "does not hold", "cannot be tested"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a test found."""

    verdict: Verdict
    number: str
    reason: str


def on_each(study: Study, test: Callable[[str], tuple[bool, str]], *, always: str = "", **why: str) -> Finding:
    """Ask a test of every data set for yes or no and a number: a claim holds on all of them, on some, or on none.

    `why` has a reason for `holds`, `part` and `fails`; `always` stands before any of them.
    """
    if not study.real:
        return Finding("cannot be tested", "no data", "None of the paper's data sets could be had.")
    found = {name: test(name) for name in study.real}
    held = sum(holds for holds, _ in found.values())
    verdict: Verdict = "holds" if held == len(NAMES) else "holds in part" if held else "does not hold"
    reason = why["holds" if held == len(found) else "part" if held else "fails"]
    missing = "" if len(found) == len(NAMES) else f"Judged on {len(found)} of {len(NAMES)} data sets."
    shown = "; ".join(f"{title_of(study, name)} {number}" for name, (_, number) in found.items())
    return Finding(verdict, shown, " ".join(filter(None, (always, reason, missing))))


def simple(holds: bool, number: str, if_so: str, if_not: str) -> Finding:
    """Yes or no."""
    return Finding("holds" if holds else "does not hold", number, if_so if holds else if_not)

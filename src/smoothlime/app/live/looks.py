"""One question of the page, answered look by look: what the draws say so far, and in the end the explanation."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InvalidArgument, NotConverged, SmoothlimeWarning
from ...explain import explain
from ...plots.names import told_apart
from ...plots.text import CONFIDENCE
from ...report.contents import contents, plain
from ...result.explanation import Explanation
from .subject import Subject
from .worker import Emit, Stopped

METHODS = ("auto", "smoothgrad", "clime", "stein", "differences")
SCALES = ("linear", "log", "ranks", "auto")

MOST_SAMPLES = 65_536


@dataclass(frozen=True, slots=True)
class Question:
    """What the page asks: a row, what is changed of it, and how it is explained."""

    row: int
    changes: Mapping[str, Any]
    sigma: float
    scale: str
    method: str
    target: str | None
    rtol: float

    @classmethod
    def read(cls, given: Any) -> Question:
        """Of plain data from a page, which may be anything."""
        if not isinstance(given, dict):
            msg = f"the question must be a JSON object; got a {type(given).__name__}"
            raise InvalidArgument(msg)
        method, scale = given.get("method", "auto"), given.get("scale", "linear")
        for name, word, known in (("method", method, METHODS), ("scale", scale, SCALES)):
            if word not in known:
                msg = f"{name} must be one of {', '.join(known)}; got {word!r}"
                raise InvalidArgument(msg, argument=name)
        target = given.get("target")
        if target is not None and not isinstance(target, str):
            msg = f"target must be the name of an output; got {target!r}"
            raise InvalidArgument(msg, argument="target")
        return cls(
            row=given.get("row", 0),
            changes=given.get("changes", {}),
            sigma=_number(given.get("sigma", 0.5), "sigma"),
            scale=scale,
            method=method,
            target=target,
            rtol=_number(given.get("rtol", 0.02), "rtol"),
        )


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        msg = f"{name} must be a number above 0; got {value!r}"
        raise InvalidArgument(msg, argument=name)
    return float(value)


class Follower:
    """What `explain` tells as `progress`: work done, and estimates at each look. Stops it when nobody waits."""

    def __init__(self, subject: Subject, emit: Emit, stop: threading.Event) -> None:
        self._subject, self._emit, self._stop = subject, emit, stop

    def __call__(self, done: int, total: int) -> None:
        """So many model rows are done: a good moment to stop."""
        if self._stop.is_set():
            raise Stopped

    def look(self, rows: Any, interim: Any, factor: Any) -> None:
        """Show what the draws say so far of the first row."""
        half = interim.groups.half_width(interim.values, factor, 1 - CONFIDENCE)[0]
        names = told_apart(self._subject.names, factor.free.tolist())
        self._emit(
            {
                "look": {
                    "features": names,
                    "columns": factor.free.tolist(),
                    "std": plain(factor.std),
                    "values": plain(interim.values[:1], 6),
                    "half": plain(half[None], 4),
                    "n_samples": [int(interim.n)],
                    "radius": plain(interim.radius[:1], 4),
                    "tolerance": plain(np.asarray(interim.tolerance)[:1], 4),
                }
            }
        )
        self(0, 0)


def around(subject: Subject, question: Question) -> dict[str, Any]:
    """What every answer to a question is asked with."""
    return {
        "sigma": question.sigma,
        "background": subject.background,
        "scale": question.scale,
        "fixed": subject.fixed,
        "target": question.target,
        **subject.settings,
    }


def answer(subject: Subject, question: Question, emit: Emit, stop: threading.Event) -> Explanation:
    """Explain one row; each look is emitted, and last of all the explanation with what was warned of."""
    x = subject.changed(question.row, question.changes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SmoothlimeWarning)
        e = explain(
            subject.model,
            x,
            **around(subject, question),
            method=question.method,
            rtol=question.rtol,
            max_samples=MOST_SAMPLES,
            progress=Follower(subject, emit, stop),
        )
    e = subject.labelled(e)
    said = [  # but for a tolerance that was missed, which the explanation tells
        str(each.message)
        for each in caught
        if issubclass(each.category, SmoothlimeWarning) and not issubclass(each.category, NotConverged)
    ]
    emit({"done": contents(e, ()), "warnings": said, "method": e.method, "design": e.design})
    return e

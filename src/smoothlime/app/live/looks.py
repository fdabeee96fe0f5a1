"""One question of the page, answered look by look: what the draws say so far, and in the end the explanation."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...contributions import Contributions, contributions
from ...errors import InvalidArgument, JumpsUnseen, NoGradients, NotConverged, SmoothlimeWarning
from ...explain import explain
from ...guarantees import agreement
from ...plots.chart import Bar, Chart
from ...plots.names import count, shown, told_apart
from ...plots.numbers import number
from ...plots.text import CONFIDENCE
from ...report.contents import chart_data, contents, plain
from ...result.explanation import Explanation
from .subject import Subject
from .worker import Emit, Stopped

METHODS = ("auto", "smoothgrad", "clime", "stein", "differences")
SCALES = ("linear", "log", "ranks", "auto")

COMPARED = 2_048
"""Draws by which SmoothGrad and C-LIME are compared."""

MOST_SAMPLES = 65_536

MOST_PARTS = 12
"""Bars of contributions."""

COARSEST = 0.02
"""Relative error of contributions, at least: they take more draws than slopes."""


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


def answer(subject: Subject, question: Question, emit: Emit, stop: threading.Event) -> Explanation:
    """Explain one row; each look is emitted, and last of all the explanation with what was warned of."""
    x = subject.changed(question.row, question.changes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SmoothlimeWarning)
        e = explain(
            subject.model,
            x,
            sigma=question.sigma,
            background=subject.background,
            scale=question.scale,
            fixed=subject.fixed,
            method=question.method,
            target=question.target,
            rtol=question.rtol,
            max_samples=MOST_SAMPLES,
            progress=Follower(subject, emit, stop),
            **subject.settings,
        )
    e = subject.labelled(e)
    said = [  # but for a tolerance that was missed, which the explanation tells
        str(each.message)
        for each in caught
        if issubclass(each.category, SmoothlimeWarning) and not issubclass(each.category, NotConverged)
    ]
    emit({"done": contents(e, ()), "warnings": said, "method": e.method, "design": e.design})
    return e


def compare(subject: Subject, question: Question, emit: Emit, stop: threading.Event) -> None:
    """SmoothGrad beside C-LIME on the same draws, and whether they agree."""
    x = subject.changed(question.row, question.changes)
    shared = {
        "sigma": question.sigma,
        "background": subject.background,
        "fixed": subject.fixed,
        "target": question.target,
        **subject.settings,
    }
    follower = Follower(subject, lambda _: None, stop)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmoothlimeWarning)
        try:
            both = {
                name: explain(
                    subject.model, x, **shared, method=name, design="iid", n_samples=COMPARED, switches=False,
                    progress=follower,
                )
                for name in ("smoothgrad", "clime")
            }  # fmt: skip
            found = agreement(subject.model, x, **shared, n_samples=COMPARED)
        except NoGradients:
            emit({"compared": None})
            return
    emit(
        {
            "compared": {name: contents(e, ()) for name, e in both.items()},
            "agrees": found.agrees[0],
            "verdict": shown(str(found).split("\n", 1)[0]),
            "draws": COMPARED,
        }
    )


def add_up(subject: Subject, question: Question, emit: Emit, stop: threading.Event) -> None:
    """What each feature adds to the prediction, from the average of the data to the row."""
    x = subject.changed(question.row, question.changes)
    way = "auto" if question.method in ("auto", "smoothgrad") else "predictions"
    found, jumps = _contributions(subject, question, x, stop, way)
    if jumps:
        found, _ = _contributions(subject, question, x, stop, "predictions")
    how = " They come from predictions: the gradients do not add up." if jumps else ""
    reach = found.half_width(CONFIDENCE)[0]
    order = [int(j) for j in np.argsort(-np.abs(found.values[0]), kind="stable") if found.values[0, j] != 0]
    names = told_apart(found.feature_names, order)
    bars = []
    for j, name in zip(order[:MOST_PARTS], names, strict=False):
        value, half = float(found.values[0, j]), float(reach[j])
        text = f"{value:+.6g}" if found.is_exact else number(value, half)
        bar = Bar(name, value, value - half, value + half, found.is_exact or abs(value) > half, text, name)
        bars.append(bar)
    base, here = float(found.base_prediction[0]), float(found.prediction[0])
    gap = here - base - float(found.values[0].sum())
    said = (
        f"From {base:.4g}, the mean of {count(len(found.baseline), 'row')} of the data, to {here:.4g} at this row. The"
        f" bars add up to {found.values[0].sum():+.4g}; {gap:+.4g} is what smoothing leaves.{how}"
    )
    emit({"bars": chart_data(Chart("Contributions", tuple(bars), ""))["bars"], "said": said})


def _contributions(
    subject: Subject, question: Question, x: Any, stop: threading.Event, method: Any
) -> tuple[Contributions, bool]:
    """Contributions to one row, and whether gradients were asked that miss jumps."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SmoothlimeWarning)
        found = contributions(
            subject.model,
            x,
            background=subject.background,
            method=method,
            sigma=question.sigma,
            scale=question.scale,
            fixed=subject.fixed,
            target=question.target,
            rtol=max(question.rtol, COARSEST),
            progress=Follower(subject, lambda _: None, stop),
            **subject.settings,
        )
    return found, any(issubclass(each.category, JumpsUnseen) for each in caught)

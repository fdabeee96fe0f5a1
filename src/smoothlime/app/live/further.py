"""Further answers about the same row: the two methods side by side, contributions, interactions."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...contributions import contributions
from ...errors import JumpsUnseen, NoGradients, SmoothlimeWarning
from ...explain import explain
from ...guarantees import agreement
from ...interactions import interactions
from ...plots.chart import Bar, Chart
from ...plots.names import count, shown, told_apart
from ...plots.numbers import number
from ...plots.text import CONFIDENCE
from ...report.contents import chart_data, contents
from .looks import MOST_SAMPLES, Follower, Question, around
from .subject import Subject
from .worker import Emit

Answer = TypeVar("Answer")

COMPARED = 2_048
"""Draws by which SmoothGrad and C-LIME are compared."""

MOST_BARS = 12
"""Of contributions, and of interactions."""

COARSEST = 0.02
"""Relative error of these, at least: they take more draws than slopes."""

TOGETHER = "How much the slope of one feature changes with a step in the other. Of what the model varies nearby:"


def compare(subject: Subject, question: Question, emit: Emit, stop: threading.Event) -> None:
    """SmoothGrad beside C-LIME on the same draws, and whether they agree."""
    x, shared = subject.changed(question.row, question.changes), around(subject, question)
    follower = Follower(subject, _nothing, stop)
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
        except NoGradients as err:
            emit({"compared": None, "why": shown(str(err))})
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
    shared = around(subject, question) | {"rtol": max(question.rtol, COARSEST)}

    def ask(method: Any) -> Any:
        return contributions(subject.model, x, **shared, method=method, progress=Follower(subject, _nothing, stop))

    first = "auto" if question.method in ("auto", "smoothgrad") else "predictions"
    found, jumps = _without_jumps(ask, first, "predictions")
    how = " They come from predictions: the gradients do not add up." if jumps else ""
    reach = found.half_width(CONFIDENCE)[0]
    order = [int(j) for j in np.argsort(-np.abs(found.values[0]), kind="stable") if found.values[0, j] != 0]
    names = told_apart(found.feature_names, order)
    bars = [
        _bar(name, float(found.values[0, j]), float(reach[j]), is_exact=found.is_exact)
        for j, name in zip(order, names, strict=True)
    ]
    base, here = float(found.base_prediction[0]), float(found.prediction[0])
    gap = here - base - float(found.values[0].sum())
    said = (
        f"From {base:.4g}, the mean of {count(len(found.baseline), 'row')} of the data, to {here:.4g} at this row. The"
        f" contributions add up to {found.values[0].sum():+.4g}; {gap:+.4g} is what smoothing leaves.{how}"
    )
    _emit(bars, said, emit)


def act_together(subject: Subject, question: Question, emit: Emit, stop: threading.Event) -> None:
    """Pairs of features that act together around the row, and what part of the model's variation that is."""
    x = subject.changed(question.row, question.changes)
    shared = around(subject, question) | {"rtol": max(question.rtol, COARSEST), "max_samples": MOST_SAMPLES}

    def ask(method: Any) -> Any:
        return interactions(subject.model, x, **shared, method=method, progress=Follower(subject, _nothing, stop))

    first = question.method if question.method in ("smoothgrad", "clime") else "auto"
    found, jumps = _without_jumps(ask, first, "clime")
    how = " From predictions: gradients do not see jumps." if jumps else ""
    std = dict(zip(found.feature_names, found.explanation.std.tolist(), strict=True))
    bars = []
    for pair in found.top(MOST_BARS, confidence=CONFIDENCE):
        one, other = pair.features
        half = std[one] * std[other] * (pair.upper - pair.lower) / 2
        bars.append(_bar(f"{shown(one)} × {shown(other)}", pair.standardised, half, is_exact=found.is_exact))
    shares = ", ".join(f"{share[0]:.0%} {name}" for name, share in found.shares.items())
    _emit(bars, f"{TOGETHER} {shares}.{how}", emit)


def _without_jumps(ask: Callable[[Any], Answer], first: str, other: str) -> tuple[Answer, bool]:
    """The answer by one method, or by another that sees jumps, where gradients were asked that do not."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SmoothlimeWarning)
        found = ask(first)
        jumps = any(issubclass(each.category, JumpsUnseen) for each in caught)
        return (ask(other) if jumps else found), jumps


def _bar(name: str, value: float, half: float, *, is_exact: bool) -> Bar:
    text = f"{value:+.6g}" if is_exact else number(value, half)
    return Bar(name, value, value - half, value + half, is_exact or abs(value) > half, text, name)


def _emit(bars: list[Bar], said: str, emit: Emit) -> None:
    emit({"bars": chart_data(Chart("", tuple(bars[:MOST_BARS]), ""))["bars"], "said": said})


def _nothing(_: dict[str, Any]) -> None:
    """Looks that nobody is shown."""

"""The unit of work: from a block of a table to results and errors. Pure, so that any process may do it.

A block is always explained in the same calls, whatever else was explained before or beside it: so are its bits.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from .._core.types import Array, Flags, Indices
from ..errors import (
    BudgetExceeded,
    DataUnavailable,
    MissingExtra,
    ModelError,
    NotConverged,
    NotDeterministic,
    RemoteError,
    SmoothlimeError,
    SmoothlimeWarning,
    UnwritableFile,
)
from ..explain import explain
from ..models import Evaluation
from ..result.explanation import Explanation
from ..sampling.route import prepare
from .blocks import Block, Run
from .frames import as_frame
from .layout import Columns, failures
from .survey import gaps_of

FATAL = (BudgetExceeded, DataUnavailable, MissingExtra, NotDeterministic, RemoteError, UnwritableFile)
"""Errors that are not those of a row: the job stops, and can be taken up again."""

ASKED = 1_024
"""Points of a model call that finds rows which the model does not take."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What all blocks have in common; it goes to other processes."""

    settings: dict[str, Any]
    """Arguments of `explain`"""
    columns: Columns
    key: str | None
    levels: dict[str, Any]
    """Of columns that are categoricals, as Arrow arrays"""
    is_exact: bool
    """Whether rows without gaps have a closed form: those with gaps are then explained by themselves"""
    probe: Run
    """A few rows that the model has answered"""

    def frame(self, rows: Any) -> Any:
        """The features of some rows as a data frame."""
        return as_frame(rows.select(list(self.columns.features)), self.levels)


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """What came of a block."""

    index: int
    results: Any
    """An Arrow table of rows that were explained"""
    errors: Any
    """An Arrow table of rows that could not be, with the reason"""
    late: int = 0
    """Rows that did not reach their tolerance"""
    warned: dict[str, str] = field(default_factory=dict)
    """The first message of each kind of warning"""


def explain_block(model: Any, job: Job, block: Block) -> Done:
    """Every row of a block explained, or named with the reason why not."""
    warned: dict[str, str] = {}
    found, failed = _explain_run(model, job, block.run, warned)
    fields = _fields(found, len(job.columns.features))
    order = np.argsort(np.concatenate([np.zeros(0, np.intp), *(at for at, _ in found)]), kind="stable")
    fields = {name: each[order] for name, each in fields.items()}
    kept = np.sort(np.concatenate([np.zeros(0, np.intp), *(at for at, _ in found)]))
    late = 0 if job.settings["n_samples"] is not None else int((~fields["converged"]).sum())
    return Done(
        block.index,
        job.columns.part(_names(job, block.run, kept), fields),
        _errors(job, block.run, failed),
        late,
        warned,
    )


def give_up(job: Job, block: Block, reason: str) -> Done:
    """A block none of whose rows was explained."""
    failed = [*block.run.failed, *((int(at), reason) for at in block.run.positions)]
    fields = _fields([], len(job.columns.features))
    none = np.zeros(0, dtype=np.intp)
    return Done(block.index, job.columns.part(_names(job, block.run, none), fields), _errors(job, block.run, failed))


Found = list[tuple[Indices, Explanation]]
Failed = list[tuple[int, str]]


def _explain_run(model: Any, job: Job, run: Run, warned: dict[str, str]) -> tuple[Found, Failed]:
    failed = list(run.failed)
    found: Found = []
    if len(run.rows):
        rows = _Rows(model, job, run, warned)
        gone = rows.hopeless()
        failed += [(int(run.positions[at]), reason) for at, reason in gone.items()]
        left = np.setdiff1d(np.arange(len(run.rows)), list(gone))
        for group in rows.by_method(left):
            more, refused = rows.explain(group)
            found += more
            failed += refused
        if len(failed) > len(run.failed) + len(gone):
            rows.check_model()
    return found, sorted(failed)


class _Rows:
    """Rows of a block, which are explained together as far as the model takes them."""

    def __init__(self, model: Any, job: Job, run: Run, warned: dict[str, str]) -> None:
        self.model, self.job, self.run, self.warned = model, job, run, warned
        self.gaps = gaps_of(run.rows, job.columns.features)
        self._reasons: dict[bytes, str] = {}

    def hopeless(self) -> dict[int, str]:
        """Rows that no model takes: with nothing in any feature that moves, or with ±inf in one."""
        free = _free(self.job)
        missing = self.gaps[:, free] if len(free) else np.zeros((len(self.gaps), 1), dtype=np.bool_)
        gone = {
            int(at): "it has no value in any of the features that are perturbed: nothing is left to explain"
            for at in np.flatnonzero(missing.all(axis=1))
        }
        for j in free:
            name = self.job.columns.features[j]
            column = self.run.rows.column(name)
            for at in np.flatnonzero(_is_infinite(column)):
                gone.setdefault(int(at), f"column {name!r} holds {column[int(at)].as_py()}; it must be finite")
        return gone

    def by_method(self, at: Indices) -> list[Indices]:
        """Rows that are explained in one call: all, or where gaps may change the method those without and with any."""
        if not self.job.is_exact:
            return [at] if len(at) else []
        has_gaps = self.gaps[at].any(axis=1)
        return [each for each in (at[~has_gaps], at[has_gaps]) if len(each)]

    def explain(self, at: Indices) -> tuple[Found, Failed]:
        """The rows explained in one call, or in as few as it takes to leave out those that cannot be."""
        try:
            return [(at, self._call(at))], []
        except FATAL:
            raise
        except SmoothlimeError as err:
            if len(at) == 1:
                return [], [(int(self.run.positions[at[0]]), self._reason(at[0], err))]
        refused = self._refused(at)
        parts = np.array_split(at, 2)
        found: Found = []
        failed: Failed = []
        if refused.any():
            failed = [(int(self.run.positions[each]), self._why(each)) for each in at[refused]]
            parts = [at[~refused]]
        for part in parts:
            if len(part):
                more, others = self.explain(part)
                found += more
                failed += others
        return found, failed

    def check_model(self) -> None:
        """Stop where the model no longer answers rows that it answered before: then it is not the rows' fault."""
        problem = self._problem(self.job.probe.rows)
        try:
            Evaluation(problem.model, ASKED).values(problem.rows, lambda i: f"row {self.job.probe.positions[i]}")
        except ModelError as err:
            msg = f"the model no longer answers rows that it answered at the start: {err}"
            raise NotDeterministic(msg) from err

    def _call(self, at: Indices) -> Explanation:
        rows = self.run.rows if len(at) == len(self.run.rows) else self.run.rows.take(at)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SmoothlimeWarning)
            e = explain(self.model, self.job.frame(rows), **self.job.settings, switches=False, progress=False)
        for each in caught:
            if not issubclass(each.category, SmoothlimeWarning):
                warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
            elif not issubclass(each.category, NotConverged):  # counted instead
                self.warned.setdefault(each.category.__name__, self._placed(str(each.message), at))
        return e

    def _problem(self, rows: Any) -> Any:
        settings = {name: self.job.settings[name] for name in ("sigma", "output")}
        return prepare(self.model, self.job.frame(rows), **settings)

    def _refused(self, at: Indices) -> Flags:
        """Rows at which the model itself raises or gives no number."""
        try:
            problem = self._problem(self.run.rows.take(at))
        except SmoothlimeError:
            return np.zeros(len(at), dtype=np.bool_)
        (values,) = Evaluation(problem.model, ASKED).attempt(problem.rows)
        return np.asarray(~np.isfinite(values).all(axis=1))

    def _why(self, at: int) -> str:
        """The reason of a row that is refused; rows with the same gaps have the same."""
        key = self.gaps[at].tobytes() if self.gaps[at].any() else None
        if key is None or key not in self._reasons:
            try:
                self._call(np.array([at]))
                reason = "the model answers it alone, but not together with other rows"
            except FATAL:
                raise
            except SmoothlimeError as err:
                reason = self._reason(at, err)
            if key is None:
                return reason
            self._reasons[key] = reason.replace(f"row {self.run.positions[at]}", "the row")
        return self._reasons[key]

    def _reason(self, at: int, err: SmoothlimeError) -> str:
        """An error about the only row of a call."""
        return self._placed(str(err), np.array([at]))

    def _placed(self, message: str, at: Indices) -> str:
        """A message about rows of a call, which it counts from 0, with their places in the table."""

        def place(found: re.Match[str]) -> str:
            row = int(found[2])
            return f"{found[1]} {self.run.positions[at[row]]}" if row < len(at) else found[0]

        return re.sub(r"\b([Rr]ow) (\d+)\b", place, message)


def _free(job: Job) -> Indices:
    names = job.columns.features
    return np.asarray(job.settings["sigma"].factor(len(names), names).free)


def _is_infinite(column: Any) -> Flags:
    import pyarrow as pa

    if not pa.types.is_floating(column.type):
        return np.zeros(len(column), dtype=np.bool_)
    return np.isinf(column.to_numpy())


def _names(job: Job, run: Run, at: Indices) -> Any:
    """The first column of a part: positions in the table, or keys."""
    import pyarrow as pa

    if job.key is None:
        return pa.array(run.positions[at], pa.int64())
    return run.rows.column(job.key).take(pa.array(at)).combine_chunks()


def _errors(job: Job, run: Run, failed: Failed) -> Any:
    import pyarrow as pa

    if job.key is None:
        return failures(failed)
    places = {int(position): at for at, position in enumerate(run.positions)}
    at = pa.array([places.get(position) for position, _ in failed], pa.int64())  # rows that were not read have no key
    return failures(failed, run.rows.column(job.key).combine_chunks().take(at), job.key)


def _fields(found: Found, d: int) -> dict[str, Any]:
    """Arrays of the explanations of some rows, one behind the other."""
    every = [e for _, e in found]
    read = partial(_joined, every)
    texts = [np.zeros(0, dtype=object)]
    return {
        **{name: read(name, np.zeros(0)) for name in ("prediction", "smoothed", "radius", "fidelity")},
        "degrees_of_freedom": read("degrees_of_freedom", np.zeros(0)),
        "converged": read("converged", np.zeros(0, dtype=np.bool_)),
        **{name: read(name, np.zeros(0, dtype=np.int64)) for name in ("n_samples", "n_evaluations")},
        **{name: read(name, np.zeros((0, d))) for name in ("values", "standard_error")},
        "method": np.concatenate([*texts, *(np.array([e.method] * len(e), dtype=object) for e in every)]),
        "output": np.concatenate([*texts, *(np.array(e.row_outputs, dtype=object) for e in every)]),
    }


def _joined(every: list[Explanation], name: str, none: Array) -> Any:
    return np.concatenate([none, *(getattr(e, name) for e in every)])

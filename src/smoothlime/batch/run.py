"""Running a job: blocks that are not there yet are explained and recorded, and in the end all are counted."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import errors
from .._core.warn import warn
from ..errors import ModelError, NotConverged, UnreadableFile
from ..result.explanation import Explanation
from .blocks import cut
from .engines import Workers, find_engine
from .journal import Entry, Journal, read_journal
from .layout import ERRORS, JOURNAL
from .load import load_folder
from .manifest import Manifest, Totals, read_manifest
from .parts import clear, clear_passing, record, sync_folder
from .plan import Planned, Request, plan_job
from .reference import one_thread
from .watch import Watch, duration, log
from .work import Done

WAITING = 2
"""Results that may wait to be written."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a job is run: nothing that changes a bit of it."""

    engine: str
    workers: Workers
    resume: bool
    strict: bool
    progress: Any


@dataclass(frozen=True, slots=True)
class Written:
    """What a job left in its folder."""

    folder: str
    rows: int
    """That were explained"""
    failed: int
    """That were not: see the reasons in the folder"""
    not_converged: int
    seconds: float
    """Of the last run"""
    ignored: tuple[str, ...] = ()
    """Columns that the model does not take"""

    def __str__(self) -> str:
        """In a sentence."""
        failed = f"; {self.failed:,} could not be, see {os.path.join(self.folder, ERRORS)}" if self.failed else ""
        late = f"; {self.not_converged:,} did not reach the tolerance" if self.not_converged else ""
        return f"{self.folder}: {self.rows:,} rows explained in {duration(self.seconds)}{failed}{late}"

    def load(self, *, rows: slice | range | Sequence[int] | None = None) -> Explanation:
        """The results, as `load` gives them."""
        return load_folder(self.folder, rows=rows)


def run_job(request: Request, run: Run, folder: Path) -> Written:
    """Plan, explain what is not there yet, and check that nothing is missing."""
    old = read_manifest(folder) if run.resume else None
    began = time.monotonic()
    with one_thread():
        planned = plan_job(request, old, folder)
    manifest = planned.manifest
    if old is None:
        (folder / JOURNAL).unlink(missing_ok=True)  # first: without it no part counts, whoever wrote the manifest
        clear(folder)
        manifest.write(folder)
    clear_passing(folder)
    if manifest.ignored:
        log.info("columns that the model does not take are ignored: %s", ", ".join(map(repr, manifest.ignored)))
    there = read_journal(folder)
    done = {index: there[index] for index in range(manifest.blocks) if index in there and there[index].is_whole(folder)}
    totals = Totals()
    for entry in done.values():
        totals.add(entry)
    if totals.blocks < manifest.blocks:
        with Journal(folder) as journal:
            _explain(request, planned, run, set(done), _Recorder(folder, journal, totals, run.strict))
        manifest = _finish(request, run, folder, manifest, totals, began)
    elif manifest.finished is None:
        manifest = _finish(request, run, folder, manifest, totals, began)
    _tell(totals, has_tolerance=request.settings["n_samples"] is None)
    seconds = manifest.runs[-1]["seconds"]
    return Written(str(folder), totals.rows, totals.failed, totals.late, seconds, manifest.ignored)


@dataclass(slots=True, eq=False)
class _Recorder:
    """Writes results in a thread of its own, in the order in which they come, while others are explained."""

    folder: Path
    journal: Journal
    totals: Totals
    strict: bool
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "smoothlime-writer"))
    waiting: list[Future[Entry]] = field(default_factory=list)

    def take(self, done: Done) -> None:
        """Hand over a result; waits for the disk where it is behind."""
        if self.strict and len(done.errors):
            row, reason = done.errors.column("row")[0].as_py(), done.errors.column("reason")[0].as_py()
            msg = f"row {row} cannot be explained: {reason}. Without strict such rows go to a part of their own"
            raise ModelError(msg)
        self.waiting.append(self.pool.submit(record, self.folder, self.journal, done))
        self.settle(WAITING)

    def settle(self, left: int = 0) -> None:
        """Wait until no more than so many are left to be written."""
        while len(self.waiting) > left:
            self.totals.add(self.waiting.pop(0).result())

    def close(self) -> None:
        """What was handed over is written, if the disk takes it."""
        self.pool.shutdown(wait=True)


def _explain(request: Request, planned: Planned, run: Run, have: set[int], recorder: _Recorder) -> None:
    """Every block that is not there yet."""
    manifest, size = planned.manifest, planned.manifest.block_rows

    def is_wanted(start: int, stop: int) -> bool:
        return any(index not in have for index in range(start // size, -(-stop // size)))

    read = (*manifest.features, *([manifest.key] if manifest.key else []))
    blocks = cut(request.source.runs(read, size, is_wanted), size, lambda index: index not in have)
    results = find_engine(run.engine, run.workers)(request.reference, planned.job, blocks, run.workers)
    before = recorder.totals.rows + recorder.totals.failed
    with closing(recorder), Watch(request.progress, manifest.count, "explaining", before) as watch, closing(results):
        try:
            for done in results:
                recorder.take(done)
                watch.advance(len(done.results) + len(done.errors))
            recorder.settle()
        except KeyboardInterrupt:
            recorder.settle()
            there = recorder.totals.rows + recorder.totals.failed
            log.warning(
                "interrupted: %s of %s rows are in %s; the same call goes on from there",
                f"{there:,}", f"{manifest.count:,}", recorder.folder,
            )  # fmt: skip
            raise


def _finish(request: Request, run: Run, folder: Path, manifest: Manifest, totals: Totals, began: float) -> Manifest:
    """Check that every row of the table is there, and that the table is still the same; write down that all is done."""
    if request.source.identity() != manifest.asked["source"] and not _same(request, manifest):
        msg = f"source {request.source.paths[0]!r} changed while it was read; explain it anew with resume=False"
        raise UnreadableFile(msg)
    if totals.blocks != manifest.blocks or totals.rows + totals.failed != manifest.count:
        msg = (
            f"{totals.rows:,} rows explained and {totals.failed:,} errors in {totals.blocks:,} blocks do not add up to"
            f" the {manifest.count:,} rows of the table in {manifest.blocks:,} blocks; start anew with resume=False"
        )
        raise UnreadableFile(msg)
    sync_folder(folder)
    this = {"engine": run.engine, "workers": run.workers.count, "seconds": round(time.monotonic() - began, 3)}
    this["ended"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    counts = {"rows": totals.rows, "failed": totals.failed, "not_converged": totals.late}
    finished = dataclasses.replace(manifest, runs=(*manifest.runs, this), finished=counts)
    finished.write(folder)
    return finished


def _same(request: Request, manifest: Manifest) -> bool:
    """Whether the files are the same but for where they are."""
    pairs = zip(request.source.identity(), manifest.asked["source"], strict=True)
    return all(one | {"path": ""} == other | {"path": ""} for one, other in pairs)


def _tell(totals: Totals, *, has_tolerance: bool) -> None:
    """Say once what blocks warned of."""
    for kind, (message, times) in totals.warned.items():
        warn(f"{message} (in {times:,} of {totals.blocks:,} blocks)", getattr(errors, kind))
    if has_tolerance and totals.late:
        msg = (
            f"{totals.late:,} of {totals.rows:,} rows did not reach the tolerance: see the column converged. Their"
            " error bars hold all the same. Raise max_samples, rtol or atol"
        )
        warn(msg, NotConverged)

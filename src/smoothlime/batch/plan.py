"""What is settled before the first block: columns, scales, the first rows explained, and what may not change."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from .._core.version import versions
from ..errors import InvalidArgument, SmoothlimeError
from ..explain import explain
from ..io.contents import pack, pack_neighbourhood
from ..models import as_asked
from ..models.problem import Problem
from ..sampling.route import prepare
from ..space.background import Chosen as ChosenRows
from ..space.neighbourhood import Neighbourhood
from ..space.tables import as_table
from .blocks import Run, cut, rows_per_block
from .features import Chosen, choose_features
from .frames import as_frame
from .layout import Columns
from .manifest import Manifest, check_same, digest, plain
from .reference import FIXED, ModelReference, answers
from .source import Source
from .survey import Survey, survey
from .watch import Watch
from .work import FATAL, Job

PLACING = ("sigma", "scale", "fixed", "output")
"""Settings of `explain` that say what "near" means."""


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What was asked for, read and checked as far as can be without the model."""

    reference: ModelReference
    source: Source
    settings: dict[str, Any]
    """Arguments of `explain`"""
    background: Any
    key: str | None
    columns: Any
    block_rows: Any
    progress: Any


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A job, complete."""

    job: Job
    manifest: Manifest


def plan_job(request: Request, old: Manifest | None, folder: Any) -> Planned:
    """The job that was asked for; what an old manifest holds is taken from it, if it is of the same job."""
    loaded = request.reference.load()
    names = request.source.names
    chosen = choose_features(as_asked(loaded, request.settings["output"]), names, request.key, request.columns)
    asked = _asked(request, chosen)
    if old is not None:
        known = {name: each for name, each in old.asked.items() if name in asked}
        check_same(known, asked, folder)
        around, count, levels = old.neighbourhood, old.count, _unpacked_levels(old.levels)
    first = _first(request.source, chosen)
    if old is None or request.background is not None:
        surveyed = _survey(request, chosen) if old is None else None
        if surveyed is not None:
            count, levels = surveyed.count, _levels(surveyed.levels, request.background)
        frame = as_frame(first.rows.select(list(chosen.features)), levels)
        around = _neighbourhood(request, loaded, frame, surveyed, levels)
    settings = {name: each for name, each in request.settings.items() if name not in PLACING}
    settings |= {"sigma": around, "output": request.settings["output"]}
    columns = Columns.of(chosen.features, chosen.key)
    job = Job(settings, columns, chosen.key, levels, is_exact=False, probe=first)
    problem = prepare(loaded, job.frame(first.rows), sigma=around, output=settings["output"])
    asked |= {
        "model": request.reference.identity(lambda: answers(problem)),
        "neighbourhood": digest(pack_neighbourhood(around)),
    }
    if old is not None:
        check_same(old.asked, asked, folder)
    job, e = _with_probe(loaded, job, problem)
    job = dataclasses.replace(job, is_exact=e.is_exact)
    if old is None:
        packed, _ = pack(e)
        del packed["digests"]
        old = Manifest(asked, count, packed, _packed_levels(levels), request.source.spec(), chosen.ignored)
    return Planned(job, old)


def _asked(request: Request, chosen: Chosen) -> dict[str, Any]:
    """What must be the same for a job to go on, as JSON has it."""
    size = request.block_rows
    opened = request.source.spec()
    types = {name: kind for name, kind in (opened["types"] or {}).items() if name in chosen.read}
    asked = {
        "source": request.source.identity(),
        "types": {name: f"{kind}, guessed" if name in opened["guessed"] else kind for name, kind in types.items()},
        "features": list(chosen.features),
        "key": chosen.key,
        "block_rows": rows_per_block(len(chosen.features)) if size == "auto" else size,
        "settings": {name: plain(each) for name, each in request.settings.items()},
        "background": _kind(request.background),
        "versions": {name: each for name, each in versions().items() if name != "python"},
    }
    try:
        return dict(json.loads(json.dumps(asked)))
    except TypeError as err:
        msg = f"settings of a table are kept in a file, which cannot hold one of them: {err}"
        raise InvalidArgument(msg) from err


def _kind(background: Any) -> str:
    """Where scales come from."""
    return "none" if background is False else "the table" if background is None else "given"


def _first(source: Source, chosen: Chosen) -> Run:
    """The first rows that can be read."""
    few = islice(cut(source.runs(chosen.read, 4 * FIXED, lambda *_: True), 4 * FIXED, lambda _: True), 64)
    for block in few:
        if len(block.run.rows):
            return _some(block.run, np.arange(min(FIXED, len(block.run.rows))))
        reason = block.run.failed[0] if block.run.failed else None
    if source.count == 0:
        msg = f"source {source.paths[0]!r} holds no rows"
    else:
        msg = f"no row can be read; the first, row {reason[0]}: {reason[1]}" if reason else "source holds no rows"
    raise InvalidArgument(msg, argument="source")


def _some(run: Run, at: Any) -> Run:
    return Run(run.start, len(at), run.rows.take(at), run.positions[at])


def _survey(request: Request, chosen: Chosen) -> Survey:
    """One pass over the table, where scales, levels or the number of rows are not known without."""
    source = request.source
    wants_rows = request.background is None and not isinstance(request.settings["sigma"], Neighbourhood)
    if not wants_rows and source.count is not None and not set(source.dictionaries) & set(chosen.features):
        return Survey(source.count, None, None, {})
    with Watch(request.progress, source.count or 0, "reading") as watch:
        return survey(source, chosen.features, wants_rows=wants_rows, report=watch.advance)


def _neighbourhood(request: Request, model: Any, frame: Any, surveyed: Survey | None, levels: Any) -> Neighbourhood:
    """In which all rows are explained: that of the background, or else of the table itself."""
    background = None if request.background is False else request.background
    if surveyed is not None and surveyed.chosen is not None:
        background = ChosenRows(as_frame(surveyed.chosen, levels), surveyed.spread)
    placing = {name: request.settings[name] for name in PLACING}
    return prepare(model, frame, background=background, **placing).neighbourhood


def _with_probe(model: Any, job: Job, problem: Problem) -> tuple[Job, Any]:
    """The first rows explained, as far as the model takes them; an error where it takes none."""
    is_answered = np.asarray(np.isfinite(answers(problem)).all(axis=1))
    rows = np.flatnonzero(is_answered) if is_answered.any() else np.arange(len(is_answered))
    probe = _some(job.probe, rows)
    error: SmoothlimeError | None = None
    for at in [np.arange(len(rows)), *np.arange(len(rows))[:, None]]:
        try:
            e = _quietly_explained(model, job, probe.rows.take(at))
        except FATAL:
            raise
        except SmoothlimeError as err:
            error = error or err
        else:
            return dataclasses.replace(job, probe=_some(probe, at)), e
    assert error is not None
    raise error


def _quietly_explained(model: Any, job: Job, rows: Any) -> Any:
    """An explanation whose warnings are those of the blocks, too."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return explain(model, job.frame(rows), **job.settings, switches=False, progress=False)


def _levels(found: dict[str, Any], background: Any) -> dict[str, Any]:
    """Levels of categoricals: those of the background first, as models may count them, then others of the table."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = None if background is None or background is False else as_table(background)
    levels = dict(found)
    for name, own in found.items():
        if table is None or table.backend != "pandas" or name not in table.names:
            continue
        dtype = table.frame.to_native()[name].dtype
        if hasattr(dtype, "categories"):
            known = pa.array(list(dtype.categories), own.type)
            levels[name] = pa.concat_arrays([known, pc.filter(own, pc.invert(pc.is_in(own, known)))])
    return levels


def _packed_levels(levels: dict[str, Any]) -> dict[str, Any]:
    import pyarrow as pa

    for name, each in levels.items():
        if pa.types.is_binary(each.type) or pa.types.is_large_binary(each.type):
            msg = f"column {name!r} holds categories of bytes; save it as text, or leave it out: columns=[...]"
            raise InvalidArgument(msg, argument="source")
    return {name: {"type": str(each.type), "values": each.to_pylist()} for name, each in levels.items()}


def _unpacked_levels(packed: dict[str, Any]) -> dict[str, Any]:
    import pyarrow as pa

    return {name: pa.array(each["values"], pa.type_for_alias(each["type"])) for name, each in packed.items()}

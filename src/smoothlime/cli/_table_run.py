"""What `explain --out FOLDER` does: tables of any size, part by part."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..errors import InvalidArgument
from ..models import as_asked
from ._inputs import ProblemOptions, split_names, target_of
from ._messages import say, warnings_as_lines
from ._tables import load_tables


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Options that count for folders alone, as they were typed."""

    resume: bool
    engine: str
    workers: int | None
    address: str | None
    gpus_per_worker: float
    key: str | None
    types: str | None
    strict: bool

    def explain(self, problem: ProblemOptions, folder: str, settings: dict[str, Any]) -> None:
        """Explain a table into a folder, or go on with it, and say what came of it."""
        from ..batch import explain_table

        if problem.most is not None:
            msg = "--rows goes with a file or the screen; a folder gets all rows of the table"
            raise InvalidArgument(msg)
        reference = problem.models.reference(problem.model)
        adapted = as_asked(reference.load(), problem.output)
        with warnings_as_lines(), log_as_lines():
            done = explain_table(
                reference,
                problem.table,
                folder,
                key=self.key,
                columns=split_names(problem.columns) or None,
                types=pairs(self.types, "--types"),
                engine=self.engine,
                workers=self.workers,
                address=self.address,
                gpus_per_worker=self.gpus_per_worker,
                resume=self.resume,
                strict=self.strict,
                sigma=problem.sigma,
                background=_background(problem),
                scale=problem.scale if "=" not in problem.scale else pairs(problem.scale, "--scale") or "linear",
                fixed=split_names(problem.fixed, "--fixed"),
                target=target_of(problem.target, adapted.outputs),
                output=problem.output,
                **settings,
            )
        click.echo(f"wrote {done}")

    def refuse(self) -> None:
        """Refuse options that nothing would use."""
        given: dict[str, Any] = {"--no-resume": not self.resume, "--engine": self.engine != "local"}
        given |= {"--address": self.address, "--gpus-per-worker": self.gpus_per_worker, "--workers": self.workers}
        given |= {"--key": self.key, "--types": self.types, "--strict": self.strict}
        name = next((name for name, is_given in given.items() if is_given), None)
        if name is not None:
            msg = f"{name} goes with --out FOLDER; end a folder's name that has a dot with /, as in --out results.v2/"
            raise InvalidArgument(msg)


def is_folder(out: str | None) -> bool:
    """Whether --out names a folder: one that is there, or a name without an ending."""
    return out is not None and (os.path.isdir(out) or out.endswith(("/", "\\")) or not Path(out).suffix)


def pairs(text: str | None, option: str) -> dict[str, str] | None:
    """What was typed as a=1,b=2, by name."""
    if text is None:
        return None
    found = {}
    for each in split_names(text, option):
        name, separator, value = each.rpartition("=")
        if not (separator and name and value):
            msg = f"{option} must be column=word, separated by commas; got {each!r}"
            raise InvalidArgument(msg)
        found[name] = value
    return found


@contextlib.contextmanager
def log_as_lines() -> Iterator[None]:
    """Print what the log says on standard error."""
    log, handler = logging.getLogger("smoothlime"), _Lines()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(handler)


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """A line for each record."""
        say(record.getMessage())


def _background(problem: ProblemOptions) -> Any:
    """The data that gives scales; None for the table itself, False for none."""
    if problem.raw_units and problem.background is not None:
        msg = "give --background or --raw-units, not both: each says what one unit of --sigma is"
        raise InvalidArgument(msg)
    if problem.raw_units:
        return False
    return None if problem.background is None else load_tables(problem.background, None).rows


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of `TableOptions` to a command, which gets them as `table_run`."""
    options = (
        click.option(
            "--resume/--no-resume",
            default=True,
            show_default=True,
            help="Into a folder: go on with the job that is there, or remove it and start anew.",
        ),
        click.option(
            "--engine",
            default="local",
            show_default=True,
            help="Into a folder: where rows are explained: local, ray or dask.",
        ),
        click.option(
            "--workers", type=int, help="Into a folder: processes; by default 1, or all that a cluster has room for."
        ),
        click.option("--address", help="Into a folder: the cluster of Ray or Dask; by default one is started here."),
        click.option(
            "--gpus-per-worker",
            type=float,
            default=0,
            help="Into a folder: graphics cards that Ray keeps for each worker.",
        ),
        click.option("--key", help="Into a folder: column that names the rows, instead of their position."),
        click.option(
            "--types",
            help="Into a folder: types of columns of a CSV file, as code=string,size=double; others are guessed.",
        ),
        click.option("--strict", is_flag=True, help="Into a folder: stop at the first row that cannot be explained."),
    )

    @functools.wraps(command)
    def with_run(**given: Any) -> None:
        run = TableOptions(**{each.name: given.pop(each.name) for each in dataclasses.fields(TableOptions)})
        command(table_run=run, **given)

    for option in reversed(options):
        with_run = option(with_run)
    return with_run

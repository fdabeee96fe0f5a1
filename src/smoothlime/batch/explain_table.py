"""The front door for tables of any size: arguments checked, the destination made."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from .._core.forks import survives_fork
from .._core.validate import check_choice, check_count
from ..errors import InvalidArgument, UnwritableFile, WrongType
from ..estimators import Estimator
from ..models.targets import is_by_row
from ..sampling.options import Options
from ..space.neighbourhood import Neighbourhood
from .engines import Workers, find_engine
from .journal import locked
from .layout import LOCK, MANIFEST
from .plan import Request
from .reference import ModelReference
from .run import Run, Written, run_job
from .source import Source, open_source


@survives_fork
def explain_table(
    model: Any,
    source: Any,
    destination: str | os.PathLike[str],
    *,
    key: str | None = None,
    columns: Sequence[str] | None = None,
    types: Mapping[str, Any] | None = None,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    gpus_per_worker: float = 0,
    resume: bool = True,
    strict: bool = False,
    block_rows: int | Literal["auto"] = "auto",
    method: str | Estimator = "auto",
    sigma: float | Any | Neighbourhood = 1.0,
    background: Any = None,
    scale: str | Mapping[Any, str] = "linear",
    fixed: Sequence[int | str] = (),
    target: int | str | Mapping[Any, float] | None = None,
    output: Literal["probability", "margin"] = "probability",
    n_samples: int | None = None,
    rtol: float = 0.05,
    atol: float | Literal["auto"] = "auto",
    confidence: float = 0.95,
    guarantee: Literal["approximate", "certified"] = "approximate",
    output_range: tuple[float, float] | None = None,
    gradient_bound: float | None = None,
    max_samples: int = 100_000,
    design: str = "auto",
    draws: Literal["shared"] = "shared",
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    progress: Any = "auto",
) -> Written:
    """Explain every row of a table, of any size, into a folder of Parquet files; go on where an earlier call stopped.

    Memory is bounded by the size of a block, whatever the size of the table. Rows are explained in blocks by their
    position, each always in the same calls: any number of workers, and any number of interruptions, give the same bits.

    A part has one line per row: `row` (its position) or the key, `prediction`, `smoothed`, `radius`, `converged`,
    `n_samples`, `n_evaluations`, then the slope of each feature under its name and its standard error under
    `<feature>_se`, then `fidelity`, `degrees_of_freedom`, `method` and `output`. Features that were held, or have no
    value in a row, have null. Rows that cannot be explained go to the folder `_errors` with the reason.

    Parameters
    ----------
    model
        As in `explain`; with several workers one that can be pickled. Libraries compute with one thread per worker.
    source
        A Parquet file, a folder or glob of them, a dataset of pyarrow, or a CSV file.
    destination
        The folder to write to, made if need be.
    key
        Column that names the rows in the results, instead of their position.
    columns
        Columns to explain, in the order in which the model takes them; by default those that it was fitted on, or,
        where it does not know, all but the key. Others are ignored, and named in the log and the manifest.
    types
        Types of columns of a CSV file, as Arrow calls them: `{"code": "string", "size": "double"}`. Others go by the
        first MiB. Rows with a cell that does not fit go to the errors.
    engine
        Where blocks are explained: `"local"`, processes of this machine; `"ray"` or `"dask"`, those of a cluster. The
        bits are the same.
    workers
        Processes; by default one, this one, and on a cluster as many as it has room for. One that dies is started
        again; a block that kills two goes to the errors.
    address
        Of a cluster of Ray (`"auto"`, `"host:6379"`) or of the scheduler of Dask (`"tcp://host:8786"`). Without it, a
        cluster is used that this process is connected to already, or one is started here, which ends with the job.
    gpus_per_worker
        Graphics cards, or parts of one, that Ray keeps for each worker.
    resume
        Go on with the job that is in the destination, if it was asked the same; if not, an error says what differs.
        With `False` what an earlier job wrote there is removed.
    strict
        Stop at the first row that cannot be explained.
    block_rows
        Rows of a block, which is what may be lost and done again; by default a power of two up to 8,192.
    background
        As in `explain`; without it, and unless sigma is a `Neighbourhood`, the table itself gives the scales: one pass
        over it comes first. Standard deviations are those of all rows, ranks those of 100,000. `False`: there is none,
        and sigma counts in the units of the features.

    Other arguments are those of `explain`; effects of other levels of categories are not written.

    Examples
    --------
    >>> import tempfile, numpy as np, pyarrow as pa, pyarrow.parquet as pq, smoothlime as sl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"a": np.arange(5.0), "b": np.ones(5)}), f"{folder}/rows.parquet")
    ...     done = sl.explain_table(lambda x: (x[:, 0] + 1) ** 2, f"{folder}/rows.parquet", f"{folder}/out")
    ...     done.rows, sl.load(f"{folder}/out").values[:, 0].round(3)
    (5, array([ 2.,  4.,  6.,  8., 10.]))
    """
    options = Options(
        n_samples=n_samples, rtol=rtol, atol=atol, confidence=confidence, guarantee=guarantee,
        output_range=output_range, gradient_bound=gradient_bound, max_samples=max_samples, draws=draws, seed=seed,
        batch_size=batch_size,
    )  # fmt: skip
    asked = _checked_workers(engine, workers, address, gpus_per_worker)
    run = _checked_run(engine, asked, resume=resume, strict=strict, progress=progress)
    _check_settings(target, draws, block_rows)
    settings = {name: getattr(options, name) for name in options.__dataclass_fields__}
    settings |= {"method": method, "sigma": sigma, "scale": scale, "fixed": list(fixed), "target": target}
    settings |= {"output": output, "design": design}
    check_choice(output, "output", ("probability", "margin"))
    table = open_source(source, types, key=key)
    folder = _made(destination, table)
    reference = ModelReference.to(model)
    request = Request(reference, table, settings, background, key, columns, block_rows, progress)
    with locked(folder):
        return run_job(request, run, folder)


def _checked_workers(engine: str, count: Any, address: Any, gpus: Any) -> Workers:
    if count is not None:
        count = check_count(count, "workers", at_least=1)
    elif engine == "local":
        count = 1
    if address is not None and not (isinstance(address, str) and address):
        msg = f"address must be the address of a cluster, such as 'auto' or 'tcp://host:8786'; got {address!r}"
        raise WrongType(msg, argument="address")
    if isinstance(gpus, bool) or not isinstance(gpus, int | float) or not 0 <= gpus < float("inf"):
        msg = f"gpus_per_worker must be a number of cards, 0 or more; got {gpus!r}"
        raise InvalidArgument(msg, argument="gpus_per_worker")
    return Workers(count, address, float(gpus))


def _checked_run(engine: str, workers: Workers, *, resume: bool, strict: bool, progress: Any) -> Run:
    find_engine(engine, workers)
    for name, given in (("resume", resume), ("strict", strict)):
        if not isinstance(given, bool):
            msg = f"{name} must be True or False; got {given!r}"
            raise WrongType(msg, argument=name)
    return Run(engine, workers, resume, strict, progress)


def _check_settings(target: Any, draws: str, block_rows: Any) -> None:
    if is_by_row(target):
        msg = "target must be one for all rows of a table: an output, 'predicted' or a contrast; got a list"
        raise WrongType(msg, argument="target")
    if draws != "shared":
        msg = "draws must be 'shared' for a table: 'independent' keys them by the position in one call of explain"
        raise InvalidArgument(msg, argument="draws")
    if block_rows != "auto":
        check_count(block_rows, "block_rows", at_least=1)


def _made(destination: Any, source: Source) -> Path:
    """The folder to write to, made if need be; an error where nothing can be written, or would be overwritten."""
    if not isinstance(destination, str | os.PathLike):
        msg = f"destination must be the path of a folder; got {destination!r}"
        raise WrongType(msg, argument="destination")
    folder = Path(destination)
    try:
        if folder.exists() and not folder.is_dir():
            msg = f"destination {str(folder)!r} is a file; give a folder"
            raise InvalidArgument(msg, argument="destination")
        here = folder.resolve()
        if any(Path(path).resolve().is_relative_to(here) for path in source.paths):
            msg = f"destination {str(folder)!r} holds the table that is read; give another folder"
            raise InvalidArgument(msg, argument="destination")
        folder.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in folder.iterdir()} - {LOCK}
        if names and MANIFEST not in names and not all(name.startswith(".smoothlime-") for name in names):
            msg = f"destination {str(folder)!r} holds other files, such as {min(names)!r}; give a new or empty folder"
            raise InvalidArgument(msg, argument="destination")
    except OSError as err:
        msg = f"destination {str(folder)!r} cannot be made: {err.strerror or err}"
        raise UnwritableFile(msg, argument="destination") from err
    return folder

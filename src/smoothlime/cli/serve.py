"""`smoothlime serve`: the live page of a model of one's own, or models behind an address."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import InvalidArgument
from ._inputs import ProblemOptions, problem_options
from ._messages import warnings_as_lines
from ._service import ServiceOptions, service_options
from ._serving import serving_options, show


@click.command(
    "serve",
    short_help="Explain a model on a page, or answer requests.",
    epilog="Examples: smoothlime serve mymodels:net rows.csv --path . ;"
    " smoothlime serve --api credit=model.ubj --background train.csv --port 8000. Needs the extra app. Ctrl-C ends it.",
)
@click.argument("model", required=False)
@click.argument("table", required=False)
@problem_options("TABLE", most=None)
@serving_options
@service_options
def command(problem: ProblemOptions, host: str, port: int, browser: bool, service: ServiceOptions) -> None:
    """Open a live page in the browser that explains MODEL around the rows of TABLE.

    MODEL is module:attribute or a model file, TABLE a CSV or Parquet file. Pick a row, drag sigma, change a value: the
    bars follow. The page is served by this computer, and only to it unless --host says otherwise.

    With --api NAME=MODEL and --background FILE there is no page: requests are answered as KServe has it, by
    POST /v1/models/NAME:explain with {"instances": [...]}. /openapi.json describes it.
    """
    from .._core.optional import require

    if service.api:
        service.run(problem, host=host, port=port)
        return
    if problem.model is None or problem.table is None:
        msg = "give MODEL and TABLE for a page, or --api NAME=MODEL and --background FILE for a service"
        raise click.UsageError(msg)
    service.refuse_for_a_page()
    require("starlette", extra="app", to="open the page")
    from ..app.live.subject import Subject, outputs_of, target_named

    asked = problem.read()
    if not isinstance(asked.scale, str):
        msg = "--scale must be one word here, for all columns; the page lets you choose another"
        raise InvalidArgument(msg)
    names = tuple(map(str, asked.neighbourhood.columns or ()))
    background = None if problem.raw_units else asked.rows if asked.data is None else asked.data
    around = {"sigma": problem.sigma, "background": background, "scale": asked.scale, "fixed": asked.fixed}
    with warnings_as_lines(each_kind_once=True):
        outputs = outputs_of(asked.model, asked.rows[:1], **around, output=problem.output)
    subject = Subject(
        model=asked.model,
        rows=asked.rows,
        background=background,
        names=names,
        outputs=outputs,
        fixed=asked.fixed,
        title=f"{problem.model} around {Path(problem.table).name}",
        target=target_named(asked.target, outputs),
        settings={"output": problem.output},
    )
    show(subject, host=host, port=port, browser=browser, sigma=problem.sigma, scale=asked.scale)

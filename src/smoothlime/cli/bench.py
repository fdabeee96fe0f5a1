"""`smoothlime bench`: which method and design need the fewest evaluations on a model, and how long they take."""

from __future__ import annotations

import json
import warnings
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._core.optional import require
from ..errors import InvalidArgument, SmoothlimeWarning
from ._inputs import ProblemOptions, check_file, problem_options
from ._messages import say
from ._options import Renamed

if TYPE_CHECKING:
    from ..benchmarking.benchmark import Benchmark

PICTURES = (".svg", ".png", ".pdf")


@click.command(
    "bench",
    short_help="Measure which method and design suit a model best.",
    epilog="Example: smoothlime bench mymodels:net --data rows.csv --path . --target 1 --plot errors.svg",
)
@click.argument("model")
@click.option("--data", "table", required=True, help="Rows to explain: a CSV file with a header, or a Parquet file.")
@click.option("-o", "--out", help="File for all numbers, .json; a table is printed in any case.")
@click.option("--plot", help="File for a picture of error against evaluations: .svg, .png or .pdf.")
@problem_options("--data", most=4)
@click.option(
    "--methods",
    cls=Renamed,
    formerly="--method",
    multiple=True,
    help="Only this method: smoothgrad, both (SmoothGrad with the values), clime, curves (C-LIME with curves),"
    " differences, controlled (differences with the exact margin of a boosted classifier as control), stein or lime;"
    " may be given several times.",
)
@click.option(
    "--designs",
    cls=Renamed,
    formerly="--design",
    multiple=True,
    help="Only this design: iid, antithetic, orthogonal, sobol, aligned, aligned-pairs or differences; may be given"
    " several times.",
)
@click.option("--draws", help="Numbers of draws per row, separated by commas; 64 to 4096 by doubling by default.")
@click.option("--repeats", type=int, default=8, show_default=True, help="Runs from different seeds, for each.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draws.")
def command(
    problem: ProblemOptions,
    out: str | None,
    plot: str | None,
    methods: tuple[str, ...],
    designs: tuple[str, ...],
    draws: str | None,
    repeats: int,
    seed: int,
) -> None:
    """Measure how to explain MODEL, a model file or module:attribute, with the fewest evaluations.

    Around a few rows, every method and design that the model allows is run several times at each number of draws. The
    table shows the distance from one larger run, the evaluations that errors of 10, 3 and 1% take, and the time of an
    evaluation next to that of the bare model.
    """
    from ..benchmarking.benchmark import DRAWS, benchmark
    from ..io.files import write_whole
    from ..plots.contest import as_text

    check_file(out, (".json",), "--out", read=(problem.table, problem.background))
    check_file(plot, PICTURES, "--plot", read=(problem.table, problem.background))
    if plot is not None:
        require("matplotlib.pyplot", extra="plot", to="draw a benchmark")  # before the work, which takes long
    asked = problem.read()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmoothlimeWarning)  # each of thousands of runs might warn
        found = benchmark(
            asked.model, asked.rows, sigma=asked.neighbourhood, target=asked.target, output=problem.output,
            methods=methods, designs=designs, draws=_numbers(draws) or DRAWS, repeats=repeats, seed=seed, say=say,
        )  # fmt: skip
    written = []
    try:  # files first, as printing may fail; the table is printed even if they cannot be written
        if out is not None:
            write_whole(Path(out), (json.dumps(found.to_dict(), indent=1) + "\n").encode())
            written.append(out)
        if plot is not None:
            write_whole(Path(plot), _drawn(found, Path(plot).suffix.lower()[1:]))
            written.append(plot)
    finally:
        click.echo("\n".join([as_text(found), *(f"wrote {each}" for each in written)]))


def _numbers(text: str | None) -> tuple[int, ...]:
    """Whole numbers separated by commas."""
    try:
        return () if text is None else tuple(int(each) for each in text.split(","))
    except ValueError:
        msg = f"--draws must be whole numbers separated by commas, such as 64,256,1024; got {text!r}"
        raise InvalidArgument(msg) from None


def _drawn(found: Benchmark, kind: str) -> bytes:
    """The picture as bytes of a file."""
    from ..plots.contest import errors

    pyplot: Any = require("matplotlib.pyplot", extra="plot", to="draw a benchmark")
    axes, stream = errors(found), BytesIO()
    axes.figure.savefig(stream, format=kind, dpi=150)  # type: ignore[union-attr]  # its own figure
    pyplot.close(axes.figure)
    return stream.getvalue()

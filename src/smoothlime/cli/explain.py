"""`smoothlime explain`: the rows of a table, explained and kept in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ._inputs import ProblemOptions, check_file, problem_options, split_names
from ._messages import warnings_as_lines
from ._options import Renamed
from ._table_run import TableOptions, is_folder, table_options

if TYPE_CHECKING:
    from ..result.explanation import Explanation

MOST_NAMED = 8
"""Fixed columns listed in the last line."""


@click.command(
    "explain",
    short_help="Explain a model around the rows of a table.",
    epilog="Example: smoothlime explain mymodels:net rows.csv --path . --target 1 -o explained.parquet",
)
@click.argument("model")
@click.argument("table")
@click.option(
    "-o",
    "--out",
    help="File to write, .json or .parquet, or a folder: for tables of any size, written part by part. Without it the"
    " explanations are printed.",
)
@problem_options("TABLE", most=None)
@click.option(
    "--method",
    default="auto",
    show_default=True,
    help="auto, exact, smoothgrad, clime, stein, differences or lime; auto takes the best one for the model.",
)
@click.option(
    "--design",
    default="auto",
    show_default=True,
    help="Placement of the draws: auto, iid, antithetic, orthogonal, sobol, aligned or aligned-pairs.",
)
@click.option(
    "--n-samples",
    cls=Renamed,
    formerly="--samples",
    type=int,
    help="Draws per row, rounded up to whole blocks of the design: powers of two for sobol and aligned. Without it,"
    " until --rtol is reached.",
)
@click.option("--rtol", type=float, default=0.05, show_default=True, help="Error allowed, relative to the slopes.")
@click.option("--max-samples", type=int, default=100_000, show_default=True, help="Most draws per row.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Confidence of the error bound.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draws.")
@click.option(
    "--switches/--no-switches",
    default=True,
    show_default=True,
    help="Whether to estimate what other levels of categories would change. Levels come from --background, or TABLE.",
)
@click.option(
    "--one-hot",
    multiple=True,
    default=("auto",),
    show_default=True,
    help="Columns of 0 and 1 that are one category, separated by commas, once for each group; auto finds such groups"
    " among the columns that are held fixed, none has none.",
)
@table_options
def command(
    problem: ProblemOptions,
    table_run: TableOptions,
    out: str | None,
    method: str,
    design: str,
    n_samples: int | None,
    rtol: float,
    max_samples: int,
    confidence: float,
    seed: int,
    switches: bool,
    one_hot: tuple[str, ...],
) -> None:
    """Explain MODEL, a model file or module:attribute, around the rows of TABLE.

    TABLE is a CSV file with a header, or a Parquet file; with --out FOLDER also a folder or a glob of Parquet files,
    of any size. Columns that hold no numbers are held fixed.
    """
    from ..explain import explain
    from ..io.files import WRITERS
    from ..plots.text import made_by

    if is_folder(out):
        settings = {"method": method, "design": design, "n_samples": n_samples, "rtol": rtol, "seed": seed}
        settings |= {"max_samples": max_samples, "confidence": confidence}
        table_run.explain(problem, str(out), settings)
        return
    table_run.refuse()
    check_file(out, tuple(WRITERS), "--out", read=(problem.table, problem.background))
    asked = problem.read()
    around: dict[str, Any] = {"sigma": asked.neighbourhood}
    if asked.data is not None:
        around = {"sigma": problem.sigma, "background": asked.data, "scale": asked.scale, "fixed": asked.fixed}
    with warnings_as_lines():
        e = explain(
            asked.model, asked.rows, **around, target=asked.target, output=problem.output,
            method=method, design=design, n_samples=n_samples, rtol=rtol, max_samples=max_samples,
            confidence=confidence, seed=seed, switches=switches, one_hot=_groups(one_hot),
        )  # fmt: skip
    if out is None:
        click.echo(str(e))
        return
    e.save(out)
    still = len(e) - int(e.converged.sum())
    missed = "" if n_samples is not None or not still else f"; {still} did not reach the tolerance"
    click.echo(f"wrote {out}: {len(e)} row{'s' * (len(e) != 1)}, {made_by(e)}{missed}{_held(e)}")


def _groups(one_hot: tuple[str, ...]) -> Any:
    """What was typed after --one-hot, as `explain` takes it."""
    if one_hot == ("auto",) or one_hot == ("none",):
        return None if one_hot == ("none",) else "auto"
    return [list(split_names(each, "--one-hot")) for each in one_hot]


def _held(e: Explanation) -> str:
    """The columns held fixed: those of --fixed and those that hold no numbers; and how many rows have gaps."""
    from ..plots.names import told_apart

    held = told_apart(e.feature_names, np.flatnonzero(np.isnan(e.std)).tolist())
    rest = f" and {len(held) - MOST_NAMED} more" if len(held) > MOST_NAMED else ""
    fixed = f"; held fixed: {', '.join(held[:MOST_NAMED])}{rest}" if held else ""
    with_gaps = int(e.missing.any(axis=1).sum())
    return fixed + (f"; {with_gaps} with gaps, where what is missing has no slope" if with_gaps else "")

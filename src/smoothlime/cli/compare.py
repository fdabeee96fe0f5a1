"""`smoothlime compare`: has what two models say about the rows of a table changed? With an exit code."""

from __future__ import annotations

import dataclasses
import json
import sys

import click

from ._inputs import ProblemOptions, problem_options
from ._messages import warnings_as_lines

STATUS = {"unchanged": 0, "changed": 3, "cannot tell": 4}


@click.command(
    "compare",
    short_help="Test whether two models explain the same rows alike.",
    epilog="Exit codes: 0 unchanged around all rows; 3 changed around some row; 4 too few draws to tell; 2 bad input."
    " Example: smoothlime compare mymodels:last_year mymodels:this_year rows.csv --path . --sigma 0.5",
)
@click.argument("model", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.argument("table")
@problem_options("TABLE", most=100)
@click.option(
    "--margin", type=float, default=0.05, show_default=True, help="Change, relative to the old slopes, to ignore."
)
@click.option(
    "--alpha", type=float, default=0.05, show_default=True, help="Chance that any row is called changed though none is."
)
@click.option("--method", default="auto", show_default=True, help="As in explain, the same for both models.")
@click.option(
    "--n-samples", type=int, help="Draws per row; without it, until every row is decided, up to --max-samples."
)
@click.option("--max-samples", type=int, default=16_384, show_default=True, help="Most draws per row.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draws.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    problem: ProblemOptions,
    new: str,
    margin: float,
    alpha: float,
    method: str,
    n_samples: int | None,
    max_samples: int,
    seed: int,
    as_json: bool,
) -> None:
    """Test whether the models OLD and NEW, model files or module:attribute, explain the rows of TABLE alike.

    TABLE is a CSV file with a header, or a Parquet file.
    """
    from ..guarantees import compare

    asked = problem.read()
    other = dataclasses.replace(problem.models, path=None).load(new)  # --path is there already
    with warnings_as_lines(each_kind_once=True):
        found = compare(
            asked.model, other, asked.rows, margin=margin, alpha=alpha, method=method, sigma=asked.neighbourhood,
            target=asked.target, output=problem.output, n_samples=n_samples, max_samples=max_samples, seed=seed,
        )  # fmt: skip
    if as_json:
        told = {
            "verdict": found.verdict, "rows": len(found), "changed": list(found.changed),
            "p_value": found.p_value.tolist(), "size": found.size.tolist(), "allowed": found.allowed.tolist(),
        }  # fmt: skip
        click.echo(json.dumps(told))
    else:
        click.echo(str(found))
    sys.exit(STATUS[found.verdict])

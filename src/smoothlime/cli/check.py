"""`smoothlime check`: can these explanations be trusted? Agreement, robustness and certificate, with an exit code."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from ._inputs import ProblemOptions, problem_options
from ._messages import warnings_as_lines
from ._options import Renamed

TRUSTED, DISAGREES, CANNOT_TELL = 0, 3, 4


@click.command(
    "check",
    short_help="Check whether explanations of a model can be trusted.",
    epilog="Exit codes: 0 nothing speaks against the explanations; 3 the gradients disagree with the predictions"
    " around some row; 4 too few draws to tell for most rows; 2 bad input."
    " Example: smoothlime check mymodels:net rows.csv --path . --sigma 0.5",
)
@click.argument("model")
@click.argument("table")
@problem_options("TABLE", most=20)
@click.option(
    "--output-range", cls=Renamed, formerly="--range", type=float, nargs=2, metavar="LOW HIGH",
    help="Lowest and highest output, e.g. 0 1.",
)  # fmt: skip
@click.option("--gradient-bound", type=float, help="Largest length of the gradient, per unit of the features.")
@click.option(
    "--n-samples", cls=Renamed, formerly="--samples", type=int, default=20_000, show_default=True,
    help="Draws per row.",
)  # fmt: skip
@click.option(
    "--margin", type=float, default=0.1, show_default=True, help="Difference, relative to the slopes, to ignore."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draws.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    problem: ProblemOptions,
    output_range: tuple[float, float] | None,
    gradient_bound: float | None,
    n_samples: int,
    margin: float,
    seed: int,
    as_json: bool,
) -> None:
    """Check whether explanations of MODEL (a model file, or module:attribute) around the rows of TABLE can be trusted.

    TABLE is a CSV file with a header, or a Parquet file.
    """
    from .._core.validate import check_count, check_number, check_range
    from ..guarantees import agreement, certify, robustness
    from ..models import Differentiable

    check_count(n_samples, "n_samples")
    check_number(margin, "margin")
    if output_range is not None:
        check_range(output_range)
    if gradient_bound is not None:
        check_number(gradient_bound, "gradient_bound")
    asked = problem.read()
    # several answers, and neighbours of the rows, use the same draws: each kind of warning once is enough
    click.get_current_context().with_resource(warnings_as_lines(each_kind_once=True))
    adapted, rows = asked.adapted, asked.rows
    shared: dict[str, Any] = {"sigma": asked.neighbourhood, "target": asked.target}

    found: dict[str, Any] = {"rows": len(rows)}
    lines = []
    status = TRUSTED
    if isinstance(adapted, Differentiable):
        agreed = agreement(adapted, rows, n_samples=n_samples, margin=margin, seed=seed, **shared)
        agrees, within = list(agreed.agrees), agreed.within.tolist()
        found["agreement"] = {"verdict": agreed.verdict, "agrees": agrees, "within": within}
        lines.append(str(agreed))
        sure = agrees.count(True)
        status = DISAGREES if False in agrees else TRUSTED if 2 * sure >= len(agrees) else CANNOT_TELL
    else:
        found["agreement"] = None
        lines.append("The model gives predictions only: there are no gradients that could disagree with them.")
    known: dict[str, Any] = {"output_range": output_range, "gradient_bound": gradient_bound}
    method = "differences" if status == DISAGREES else "auto"
    moved = robustness(adapted, rows, method=method, n_samples=1_000, norm=2, seed=seed, **shared, **known)
    error = moved.standard_error if len(rows) > 1 else None  # JSON has no NaN
    found["robustness"] = {"mean": moved.mean, "standard_error": error, "population": moved.population}
    lines.append(str(moved))
    if output_range is not None or gradient_bound is not None or getattr(adapted, "output_range", None) is not None:
        certificate = certify(adapted, rows, **shared, **known)
        steepest = float(certificate.lipschitz.max())
        found["certificate"] = {"kind": certificate.kind, "lipschitz": steepest, "assumes": certificate.assumes}
        lines.append(str(certificate))
    else:
        found["certificate"] = None
        lines.append("No certificate: give --output-range LOW HIGH or --gradient-bound for one.")
    undecided = (found["agreement"] or {"agrees": []})["agrees"].count(None)
    verdict = {
        TRUSTED: "Nothing speaks against these explanations"
        + (f", though {undecided} of {len(rows)} rows are undecided." if undecided else "."),
        DISAGREES: "Do not trust gradient explanations of this model; explanations from predictions are fine.",
        CANNOT_TELL: "Too few draws to tell; raise --n-samples.",
    }[status]
    found["verdict"] = verdict
    click.echo(json.dumps(found) if as_json else "\n\n".join([*lines, verdict]))
    sys.exit(status)

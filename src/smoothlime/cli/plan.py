"""`smoothlime plan`: how many draws an error takes."""

from __future__ import annotations

import dataclasses
import json

import click

from ._options import Renamed


@click.command(
    "plan",
    short_help="Number of draws that guarantees an error.",
    epilog="Example: smoothlime plan stein --eps 0.05 --d 10 --output-range 0 1",
)
@click.argument("method", type=click.Choice(["smoothgrad", "stein", "clime"]), metavar="METHOD")
@click.option("--eps", type=float, help="L2 error wanted, of standardised slopes.")
@click.option(
    "--n-samples",
    cls=Renamed,
    formerly="--draws",
    type=int,
    help="Instead of --eps: number of draws, to print their error bound.",
)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Confidence of the error bound.")
@click.option("--d", cls=Renamed, formerly="--features", type=int, help="Number of perturbed features.")
@click.option("--sigma", type=float, help="Standard deviation of the neighbourhood.")
@click.option(
    "--output-range", cls=Renamed, formerly="--range", type=float, nargs=2, metavar="LOW HIGH",
    help="Lowest and highest output, e.g. 0 1.",
)  # fmt: skip
@click.option("--gradient-bound", type=float, help="Largest length of the gradient.")
@click.option("--gradient-lipschitz", type=float, help="Largest change of the gradient per unit of distance.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def command(
    method: str,
    eps: float | None,
    n_samples: int | None,
    confidence: float,
    d: int | None,
    sigma: float | None,
    output_range: tuple[float, float] | None,
    gradient_bound: float | None,
    gradient_lipschitz: float | None,
    as_json: bool,
) -> None:
    """Number of iid draws that guarantees an error of METHOD (smoothgrad, stein or clime), before any is made.

    stein and clime need --output-range and --d; smoothgrad needs --sigma and --gradient-bound, or --sigma,
    --gradient-lipschitz and --d.
    """
    from ..guarantees import plan

    found = plan(
        method,
        eps=eps,
        n_samples=n_samples,
        confidence=confidence,
        d=d,
        sigma=sigma,
        output_range=output_range,
        gradient_bound=gradient_bound,
        gradient_lipschitz=gradient_lipschitz,
    )
    if as_json:
        click.echo(json.dumps({**dataclasses.asdict(found), "kind": found.kind}))
    else:
        click.echo(str(found))

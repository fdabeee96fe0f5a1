"""`smoothlime reproduce`: every figure and every claim of the paper, in one report."""

from __future__ import annotations

import click


@click.command(
    "reproduce",
    short_help="Reproduce Agarwal et al. (2021) and check its claims.",
    epilog="Names of figures: figure1 to figure5, convergence, lipschitz, regularised, peers."
    " Example: smoothlime reproduce --quick --out report",
)
@click.option("--out", default="report", show_default=True, help="Folder for the report; made if it is not there.")
@click.option("--quick", is_flag=True, help="Make every figure at small scale, in about a minute.")
@click.option("--only", multiple=True, help="Only this figure; may be given several times.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of draws and rows, not of data and networks."
)
def command(out: str, quick: bool, only: tuple[str, ...], seed: int) -> None:
    """Reproduce Agarwal et al. (2021) and check its claims.

    Data come from the folder in SMOOTHLIME_DATA, the user's cache, or the UCI archive. An interrupted run
    continues where it stopped.
    """
    from ..paper.run import reproduce

    results = reproduce(out, quick=quick, only=only, seed=seed, say=lambda line: click.echo(line, err=True))
    if results["run"]["stand_ins"]:
        click.echo(f"Not the paper's data: {', '.join(results['run']['stand_ins'])}.")
    for claim in results["claims"]:
        click.echo(f"{claim['verdict']:<16} {claim['where']}: {claim['claim']}")

"""`smoothlime merge`: the parts of a folder as one file."""

from __future__ import annotations

import click


@click.command(
    "merge",
    short_help="Write the parts of explain as one Parquet file.",
    epilog="Example: smoothlime merge results results.parquet",
)
@click.argument("folder", metavar="DIR")
@click.argument("out")
def command(folder: str, out: str) -> None:
    """Write the parts in DIR, which `explain --out DIR` has made, to one Parquet file OUT, in the table's order."""
    from ..batch.merge import merge

    found = merge(folder, out)
    failed = f"; {found.failed:,} rows were not explained, see {found.errors}" if found.failed else ""
    click.echo(f"wrote {out}: {found.rows:,} rows{failed}")

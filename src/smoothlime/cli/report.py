"""`smoothlime report`: saved explanations as one page of HTML."""

from __future__ import annotations

from pathlib import Path

import click

from ._inputs import check_file
from ._messages import warnings_as_lines


@click.command(
    "report",
    short_help="Write saved explanations as one page of HTML.",
    epilog="Example: smoothlime explain mymodels:net rows.csv -o rows.json, then smoothlime report rows.json",
)
@click.argument("files", nargs=-1, required=True)
@click.option("-o", "--out", default="report.html", show_default=True, help="File to write, .html.")
@click.option("--title", help="Title of the page.")
def command(files: tuple[str, ...], out: str, title: str | None) -> None:
    """Write the explanations saved in FILES (.json or .parquet) as one page of HTML that needs no other file.

    The page has bars with intervals for each row, a search, mean slopes over all rows, how the numbers were made, and
    the SHA-256 of each file.
    """
    from ..io import load
    from ..plots.names import count
    from ..report.page import Part, digest, report

    check_file(out, (".html", ".htm"), "--out", read=files)
    with warnings_as_lines():
        parts = [Part(load(each), Path(each).name, digest(each)) for each in files]
        report(parts, out, title=title)
    rows = sum(len(part.explanation) for part in parts)
    click.echo(f"wrote {out}: {count(len(parts), 'explanation')}, {count(rows, 'row')}")

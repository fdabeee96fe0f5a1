"""`smoothlime report`: saved explanations as one page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UnreadableFile
from ._inputs import check_file
from ._messages import warnings_as_lines

if TYPE_CHECKING:
    from ..result.explanation import Explanation


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
        parts = [Part(_explanation(load(each), each), Path(each).name, digest(each)) for each in files]
        report(parts, out, title=title)
    rows = sum(len(part.explanation) for part in parts)
    click.echo(f"wrote {out}: {count(len(parts), 'explanation')}, {count(rows, 'row')}")


def _explanation(found: Any, file: str) -> Explanation:
    """What a page can be made of."""
    from ..result.explanation import Explanation

    if isinstance(found, Explanation):
        return found
    msg = f"{file!r} holds {type(found).__name__.lower()}; a page is made of explanations"
    raise UnreadableFile(msg)

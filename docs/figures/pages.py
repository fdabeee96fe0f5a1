"""Puts the tables that scripts of this folder measure into the pages that show them."""

from __future__ import annotations

from pathlib import Path

PAGES = Path(__file__).parents[1]


def put(page: str, name: str, rows: list[list[str]]) -> None:
    """Replace what stands between the marks of a table, by a header and its lines."""
    begin, end = f"<!-- table {name}: measured by the script of this page's figure -->", "<!-- end of table -->"
    path = PAGES / page
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        msg = f"{page} has no place for the table {name!r}"
        raise LookupError(msg)
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
    print(text)

"""`smoothlime demo`: the live page, with a model and data that come along."""

from __future__ import annotations

import click

from ._serving import serving_options, show


@click.command(
    "demo",
    short_help="Open a page with a model and data to play with.",
    epilog="Needs the extra app: pip install 'smoothlime[app]'. Ctrl-C ends it.",
)
@serving_options
def command(host: str, port: int, browser: bool) -> None:
    """Open a live page in the browser, with a made-up model of loans and 200 applicants.

    Pick a row, drag sigma, change a value: the bars follow. The page is served by this computer alone.
    """
    from .._core.optional import require

    require("starlette", extra="app", to="open the page")
    from ..app.live.demo import loans

    show(loans(), host=host, port=port, browser=browser, note="The model and its applicants are made up.")

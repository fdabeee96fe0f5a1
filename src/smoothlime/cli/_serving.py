"""What commands that serve pages share: options, and the address that they print."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ._messages import say

if TYPE_CHECKING:
    from ..app.live.subject import Subject


def serving_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds --host, --port and --no-browser."""
    options = (
        click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; by default this"
                     " computer alone can reach it."),
        click.option("--port", type=int, default=0, help="Port to listen on; by default any that is free."),
        click.option("--browser/--no-browser", default=True, help="Whether to open a browser."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def show(subject: Subject, *, host: str, port: int, browser: bool, **settings: Any) -> None:
    """Serve the page of a subject until interrupted; the first line printed is its whole address."""
    from ..app.live.doors import new_token
    from ..app.live.page import create_page
    from ..app.live.server import address, hosts_of, listen, serve

    token = new_token()
    bound = listen(host, port)
    url = address(bound, host, token)
    ending = threading.Event()
    application = create_page(subject, token=token, hosts=hosts_of(host), ending=ending, **settings)

    def ready() -> None:
        click.echo(url)
        if host not in ("127.0.0.1", "localhost", "::1"):
            say(f"others who can reach {host} and know this address can use the model")
        if browser:
            import webbrowser

            webbrowser.open(url)

    serve(application, bound, when_ready=ready, when_ending=ending.set)

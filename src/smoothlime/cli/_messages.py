"""What commands print on standard error: errors, with the option at fault, and warnings."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import click

from ..errors import SmoothlimeError, SmoothlimeWarning
from ..plots.names import JOINERS, UNSEEN


def naming_option(error: SmoothlimeError, command: click.Command) -> str:
    """The message of an error, with the option of a command in place of the argument it begins with, or before it.

    >>> samples = click.Command("explain", params=[click.Option(["--n-samples"])])
    >>> naming_option(SmoothlimeError("n_samples=4 is too few", argument="n_samples"), samples)
    '--n-samples=4 is too few'
    >>> naming_option(SmoothlimeError("too few draws", argument="n_samples"), samples)
    '--n-samples: too few draws'
    """
    message, argument = str(error), error.argument
    options: dict[str | None, str] = {}
    for each in command.params:
        if isinstance(each, click.Option):
            long = max(each.opts, key=len)
            options |= {each.name: long, long.removeprefix("--").replace("-", "_"): long}
    if argument is None or argument not in options:
        return message
    rest = message.removeprefix(argument)
    return f"{options[argument]}{rest if rest != message else f': {message}'}"


def harmless(text: str) -> str:
    r"""Text with its lines, but without characters that control a terminal: a model's own errors may hold any.

    >>> harmless("boom\x1b[2J,\nand more")
    'boom�[2J,\nand more'
    """
    return "".join(each if each.isprintable() or each in "\n\t" + JOINERS else UNSEEN for each in text)


def say(message: object) -> None:
    """Print a line on standard error."""
    click.echo(f"smoothlime: {harmless(str(message))}", err=True)


@contextlib.contextmanager
def warnings_as_lines(*, each_kind_once: bool = False) -> Iterator[None]:
    """Print warnings without the places in the code that they come from."""
    shown = set[type[Warning]]()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if not (each_kind_once and category in shown):
            shown.add(category)
            say(message)

    with warnings.catch_warnings():
        warnings.simplefilter("always", SmoothlimeWarning)
        warnings.showwarning = show
        yield

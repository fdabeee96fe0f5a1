"""Messages in the words of the command line: options as they were typed, where a library speaks of its arguments."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import click

from ..errors import SmoothlimeWarning
from ..plots.names import JOINERS, UNSEEN

UNMISTAKABLE = ("eps", "rtol")
"""Arguments that are no words of English, as are all with an underscore: they are meant wherever they stand."""

QUOTED = r"""(?<!\w)'(?:[^'\\]|\\.)*'|(?<!\w)"(?:[^"\\]|\\.)*\""""
"""Names of the user's own, of files and of columns: they stay as they are. An apostrophe follows a letter."""

ADVICE = (
    (r"max_samples, rtol or atol", "max_samples or rtol"),
    (r"Select the model's columns in its order: X\[.*\]", "Name the model's columns in its order with --columns"),
    (r"in fixed: Neighbourhood\(\.\.\., fixed=\[.*\]\)", "in `fixed`"),
    (r"`agreement` says more", "`smoothlime check` says more"),
)
"""What can be done in Python alone, and what to do instead."""


def as_typed(message: str, command: click.Command) -> str:
    """A message about arguments of Python as one about the options of a command.

    >>> option = click.Option(["--samples", "n_samples"])
    >>> as_typed("n_samples=4 is too few. Raise n_samples", click.Command("explain", params=[option]))
    '--samples 4 is too few. Raise --samples'
    """
    options = _options(command)
    if not options:
        return message
    for python, here in ADVICE:
        message = re.sub(python, here, message)
    names = "|".join(sorted(options, key=len, reverse=True))
    with_value = rf"(?<![\w.-])({names})=(?:'([^']*)'|\(([^()]*)\)|([\w.+-]*\w))?"
    message = _unquoted(with_value, lambda found: _with_value(options[found[1]], found.groups()[1:]), message)
    message = _unquoted(rf"`({names})`", lambda found: options[found[1]], message)
    message = _unquoted(rf"^({names})(?= must | is needed | names |, )", lambda found: options[found[1]], message)
    plain = "|".join(name for name in options if "_" in name or name in UNMISTAKABLE)
    if not plain:
        return message
    return _unquoted(rf"(?<![\w.-])({plain})(?![\w(])", lambda found: options[found[1]], message)


def harmless(text: str) -> str:
    r"""Text with its lines, but no character that commands a terminal: a model's own errors may hold any.

    >>> harmless("boom\x1b[2J,\nand more")
    'boom�[2J,\nand more'
    """
    return "".join(each if each.isprintable() or each in "\n\t" + JOINERS else UNSEEN for each in text)


def say(message: object, command: click.Command | None) -> None:
    """A line on standard error, in the words of a command."""
    said = str(message) if command is None else as_typed(str(message), command)
    click.echo(f"smoothlime: {harmless(said)}", err=True)


@contextlib.contextmanager
def warnings_as_typed(*, is_each_kind_once: bool = False) -> Iterator[None]:
    """Show warnings as lines in the words of the command, without places in the code."""
    command, shown = click.get_current_context().command, set[type[Warning]]()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if not (is_each_kind_once and category in shown):
            shown.add(category)
            say(message, command)

    with warnings.catch_warnings():
        warnings.simplefilter("always", SmoothlimeWarning)
        warnings.showwarning = show
        yield


def _unquoted(pattern: str, replace: Callable[[re.Match[str]], str], message: str) -> str:
    """The message with what matches replaced, but for what stands in quotes."""
    return re.sub(rf"{QUOTED}|{pattern}", lambda found: replace(found) if found[1] else found[0], message)


def _options(command: click.Command) -> dict[str, str]:
    """Options by the names that their arguments have in Python: that of the parameter, and that of the option."""
    found: dict[str, str] = {}
    for each in command.params:
        if isinstance(each, click.Option):
            long = max(each.opts, key=len)
            found |= {str(each.name): long, long.removeprefix("--").replace("-", "_"): long}
    return found


def _with_value(option: str, values: tuple[str | None, ...]) -> str:
    value = next((each for each in values if each), "")
    return f"{option} {value.replace(',', '')}".strip()

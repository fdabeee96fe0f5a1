"""Messages in the words of the command line: options as they were typed, where a library speaks of its arguments."""

from __future__ import annotations

import re

import click

UNMISTAKABLE = ("eps", "rtol")
"""Arguments that are no words of English, as are all with an underscore: they are meant wherever they stand."""


def as_typed(message: str, command: click.Command) -> str:
    """A message about arguments of Python as one about the options of a command.

    >>> option = click.Option(["--samples", "n_samples"])
    >>> as_typed("n_samples=4 is too few. Raise n_samples", click.Command("explain", params=[option]))
    '--samples 4 is too few. Raise --samples'
    """
    options = _options(command)
    if not options:
        return message
    names = "|".join(sorted(options, key=len, reverse=True))
    with_value = rf"(?<![\w.-])({names})=(?:'([^']*)'|\(([^()]*)\)|([\w.+-]*\w))?"
    message = re.sub(with_value, lambda found: _with_value(options[found[1]], found.groups()[1:]), message)
    message = re.sub(rf"^({names})(?= must | is needed | names |, )", lambda found: options[found[1]], message)
    plain = "|".join(name for name in options if "_" in name or name in UNMISTAKABLE)
    return re.sub(rf"(?<![\w.-])({plain})(?![\w(])", lambda found: options[found[1]], message) if plain else message


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

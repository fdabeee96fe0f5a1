"""The command line: each command in a file of its own, no arithmetic here.

Our own errors are printed as they are and end with status 2; anything else is a bug and shows its traceback.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from typing import Any

import click

from .._core.version import __version__
from ..errors import SmoothlimeError
from ._config import with_config
from ._messages import naming_option, say

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error codes of a full disk."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

COMMANDS = ("bench", "check", "compare", "demo", "explain", "merge", "plan", "report", "reproduce", "serve")


class _Commands(click.Group):
    """Imports a command only when it is used, so that help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".{cmd_name}", __name__)
        return with_config(module.command)

    def main(self, *args: Any, **settings: Any) -> Any:
        """Replace characters that a terminal cannot show, and end with a message when the disk is full."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # code pages such as cp1252 have no σ
        try:
            return super().main(*args, **settings)
        except OSError as err:
            if err.errno not in FULL:
                raise
            _forget_output()
            say(f"the result cannot be printed: {err.strerror}")
            sys.exit(2)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SmoothlimeError as err:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            say(err if command is None else naming_option(err, command))
            sys.exit(2)
        except KeyboardInterrupt:
            say("interrupted")
            sys.exit(INTERRUPTED)


def _forget_output() -> None:
    """Drop what is not printed yet: Python would flush it at exit, and fail again."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="smoothlime")
def main() -> None:
    """Local feature attributions with error bars and guarantees, for any model."""

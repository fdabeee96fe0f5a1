"""Options that have been renamed: an option is the name of its argument in Python with dashes."""

from __future__ import annotations

from typing import Any

import click


class Renamed(click.Option):
    """An option that its former name still works for, though help does not show it."""

    def __init__(self, *args: Any, formerly: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.formerly = formerly

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser know both names; all messages have the new one."""
        shown = self.opts
        self.opts = [*shown, self.formerly]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = shown

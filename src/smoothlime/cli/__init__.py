"""The command line."""

from __future__ import annotations

import click

from .._version import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="smoothlime")
def main() -> None:
    """Local feature attributions with error bars and guarantees, for any model."""

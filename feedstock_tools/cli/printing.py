"""What commands print: everything goes through here, so that nothing in a name reaches the terminal as a command."""

from __future__ import annotations

import json
from typing import Any

import click

from feedstock_tools.wording import shown

__all__ = ["overwrite", "say", "say_json", "wipe"]


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text to stdout, or to stderr with `err`, with its control characters escaped."""
    click.echo(shown(text), err=err, nl=nl)


def say_json(value: Any) -> None:
    """Print a value as JSON to stdout."""
    click.echo(json.dumps(value, indent=2))


def overwrite(text: str) -> None:
    """Show how far the work is, on one line of stderr, in the place of what was shown before."""
    click.echo(f"\r{shown(text)}", err=True, nl=False)


def wipe() -> None:
    """Take away what `overwrite` has shown."""
    click.echo("\r\x1b[K", err=True, nl=False)

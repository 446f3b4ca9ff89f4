"""Output of commands: all text is printed here, so that control characters in names never reach the terminal."""

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
    """Show progress on one line of stderr, replacing the text shown before."""
    click.echo(f"\r{shown(text)}", err=True, nl=False)


def wipe() -> None:
    """Remove the text shown by `overwrite`."""
    click.echo("\r\x1b[K", err=True, nl=False)

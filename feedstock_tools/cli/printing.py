"""Output of commands: all text is printed here, so that control characters in names never reach the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from feedstock_tools.redaction import redacted
from feedstock_tools.wording import shown

__all__ = ["overwrite", "say", "say_json", "wipe"]


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text to stdout, or to stderr with `err`, with its control characters escaped and without credentials."""
    click.echo(shown(redacted(text)), err=err, nl=nl)


def say_json(value: Any) -> None:
    """Print a value as JSON to stdout, without credentials in its texts."""
    click.echo(json.dumps(_without_credentials(value), indent=2))


def _without_credentials(value: Any) -> Any:
    if isinstance(value, str):
        return redacted(value) if "://" in value else value
    if isinstance(value, Mapping):
        return {_without_credentials(key): _without_credentials(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_credentials(each) for each in value]
    return value


def overwrite(text: str) -> None:
    """Show progress on one line of stderr, replacing the text shown before."""
    click.echo(f"\r{shown(redacted(text))}", err=True, nl=False)


def wipe() -> None:
    """Remove the text shown by `overwrite`."""
    click.echo("\r\x1b[K", err=True, nl=False)

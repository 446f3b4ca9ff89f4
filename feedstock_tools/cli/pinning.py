"""`feedstock-tools pinning`: show, fetch and update conda-forge's pinning."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Group
from feedstock_tools.cli.opening import tidy
from feedstock_tools.cli.printing import say, say_json

if TYPE_CHECKING:
    from feedstock_tools.channel.kept import Pinning


@click.group(
    "pinning", cls=Group, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@options.cache
@options.as_json
@click.pass_context
def command(context: click.Context, cache: Path | None, as_json: bool) -> None:
    """Show, fetch and update conda-forge's pinning.

    Without a subcommand: show the newest fetched pinning, which `rerender` uses by default.
    Only `fetch` and `update` use the network.
    """
    if context.invoked_subcommand is None:
        _show(None, _folder(cache), as_json)


@command.command("show")
@click.argument("pinning", required=False)
@options.cache
@options.as_json
def show(pinning: str | None, cache: Path | None, as_json: bool) -> None:
    """Show a pinning and its age.

    PINNING is a fetched version, a folder, or a conda_build_config.yaml; default: the newest fetched version.
    """
    _show(pinning, _folder(cache), as_json)


@command.command("list")
@options.cache
@options.as_json
def list_(cache: Path | None, as_json: bool) -> None:
    """List the fetched pinnings, the newest last."""
    from feedstock_tools.channel.kept import cached_pinnings

    now = datetime.now(UTC)
    kept = cached_pinnings(_folder(cache))
    if as_json:
        say_json([pinning.to_json(now) for pinning in kept])
        return
    if not kept:
        say("no pinning has been fetched yet", err=True)
    for pinning in kept:
        say(pinning.describe(now))


@command.command("fetch", short_help="Fetch a version from a channel.")
@click.argument("version", required=False)
@options.channels("conda-forge")
@options.cache
@options.as_json
def fetch(version: str | None, channels: tuple[str, ...], cache: Path | None, as_json: bool) -> None:
    """Fetch a VERSION such as 2021.10.29.07.34.22 from a channel; default: the newest."""
    _fetch(version, channels, _folder(cache), as_json)


@command.command("update")
@options.channels("conda-forge")
@options.cache
@options.as_json
def update(channels: tuple[str, ...], cache: Path | None, as_json: bool) -> None:
    """Fetch the newest pinning from a channel."""
    _fetch(None, channels, _folder(cache), as_json)


def _folder(cache: Path | None) -> Path:
    from feedstock_tools.channel.kept import pinning_cache

    parent = click.get_current_context().parent
    folder = cache or (parent.params.get("cache") if parent else None)
    return pinning_cache(os.environ) if folder is None else Path(folder)


def _fetch(version: str | None, channels: tuple[str, ...], cache: Path, as_json: bool) -> None:
    from feedstock_tools.channel.kept import cached_pinnings

    tidy()
    before = cached_pinnings(cache)
    pinning = _from_first(channels or ("conda-forge",), cache, version)
    say(f"{'already fetched' if pinning in before else 'fetched'}: {pinning.folder}", err=True)
    _print(pinning, as_json)


def _from_first(channels: tuple[str, ...], cache: Path, version: str | None) -> Pinning:
    """The pinning from the first channel that has it; if none does, the error of the last one."""
    from feedstock_tools.channel.fetching import fetch_pinning
    from feedstock_tools.channel.properties import STAND_IN
    from feedstock_tools.errors import InputError

    if STAND_IN.origin in channels:
        raise InputError("the stand-in channel has no pinning", hint="Fetch it from conda-forge, or from a folder.")
    for channel in channels[:-1]:
        with suppress(InputError):
            return fetch_pinning(channel, cache, version)
    return fetch_pinning(channels[-1], cache, version)


def _show(pinning: str | None, cache: Path, as_json: bool) -> None:
    from feedstock_tools.channel.kept import find_pinning

    _print(find_pinning(pinning, cache), as_json)


def _print(pinning: Pinning, as_json: bool) -> None:
    now = datetime.now(UTC)
    if as_json:
        say_json(pinning.to_json(now))
        return
    say(pinning.describe(now))
    if pinning.released:
        say(f"  released    {pinning.released:%Y-%m-%d %H:%M:%S} UTC")
    if pinning.channel:
        say(f"  from        {pinning.channel}")
    say(f"  file        {pinning.path}")
    say(f"  migrations  {len(pinning.migrations)}")

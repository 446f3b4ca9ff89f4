"""`feedstock-tools smithy`: fetch and list releases of conda-smithy, for whole rerenders."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Group
from feedstock_tools.cli.opening import tidy
from feedstock_tools.cli.printing import say, say_json

if TYPE_CHECKING:
    from feedstock_tools.channel.kept import KeptPackage
    from feedstock_tools.rerender.smithy import Release

_HELP = {"help_option_names": ["-h", "--help"]}


@click.group("smithy", cls=Group, invoke_without_command=True, context_settings=_HELP)
@options.cache
@options.as_json
@click.pass_context
def command(context: click.Context, cache: Path | None, as_json: bool) -> None:
    """Fetch and list releases of conda-smithy; `rerender` writes whole trees with their templates.

    Without a subcommand: list the fetched releases. Only `fetch` uses the network.
    """
    if context.invoked_subcommand is None:
        _list(_folder(cache), as_json)


@command.command("list")
@options.cache
@options.as_json
def list_(cache: Path | None, as_json: bool) -> None:
    """List the fetched releases, the newest last."""
    _list(_folder(cache), as_json)


@command.command("fetch", short_help="Fetch a release from a channel.")
@click.argument("version", required=False)
@options.channels("conda-forge")
@options.cache
@options.as_json
def fetch(version: str | None, channels: tuple[str, ...], cache: Path | None, as_json: bool) -> None:
    """Fetch a VERSION of conda-smithy such as 3.50.1 from a channel; default: the newest.

    Of its package, only the files that a rerender reads and the license are kept. Nothing in it is run.
    """
    from feedstock_tools.channel.kept import SMITHY, kept_packages

    folder = _folder(cache)
    tidy()
    before = kept_packages(SMITHY, folder)
    kept = _from_first(channels or ("conda-forge",), folder, version)
    say(f"{'already fetched' if kept in before else 'fetched'}: {kept.folder}", err=True)
    _print(kept, as_json)


def chosen_release(requested: str | None, rules: str | None) -> Release | None:
    """The release of conda-smithy to use, also printed on stderr; never uses the network."""
    from feedstock_tools.channel.kept import SMITHY, kept_packages, smithy_cache
    from feedstock_tools.data import cache_root
    from feedstock_tools.rerender.smithy import choose_release, installed_release

    kept = kept_packages(SMITHY, smithy_cache(os.environ))
    choice = choose_release(
        requested, rules, {package.version: package.folder for package in kept}, installed_release(_environments())
    )
    say(choice.remark, err=True)
    templates = cache_root(os.environ) / "templates"
    return replace(choice.release, cache=templates) if choice.release else None


def _environments() -> Iterator[Path]:
    """Where a conda-smithy may be installed: the environment of the one on PATH, the active one, and this Python's."""
    program = shutil.which("conda-smithy")
    if program:
        yield Path(program).resolve().parent.parent
    if os.environ.get("CONDA_PREFIX"):
        yield Path(os.environ["CONDA_PREFIX"])
    yield from (Path(place) for place in sys.path if place)


def _folder(cache: Path | None) -> Path:
    from feedstock_tools.channel.kept import smithy_cache

    parent = click.get_current_context().parent
    folder = cache or (parent.params.get("cache") if parent else None)
    return smithy_cache(os.environ) if folder is None else Path(folder)


def _from_first(channels: tuple[str, ...], cache: Path, version: str | None) -> KeptPackage:
    """The release from the first channel that has it; if none does, the error of the last one."""
    from feedstock_tools.channel.fetching import fetch_package
    from feedstock_tools.channel.kept import SMITHY
    from feedstock_tools.channel.properties import STAND_IN
    from feedstock_tools.errors import InputError

    if STAND_IN.origin in channels:
        raise InputError("the stand-in channel has no conda-smithy", hint="Fetch it from conda-forge or a folder.")
    for channel in channels[:-1]:
        with suppress(InputError):
            return fetch_package(SMITHY, channel, cache, version)
    return fetch_package(SMITHY, channels[-1], cache, version)


def _list(cache: Path, as_json: bool) -> None:
    from feedstock_tools.channel.kept import SMITHY, kept_packages

    kept = kept_packages(SMITHY, cache)
    if as_json:
        say_json([release.to_json() for release in kept])
        return
    if not kept:
        say("no release of conda-smithy has been fetched yet", err=True)
    for release in kept:
        say(f"conda-smithy {release.version}")


def _print(kept: KeptPackage, as_json: bool) -> None:
    if as_json:
        say_json(kept.to_json())
        return
    say(f"conda-smithy {kept.version}")
    say(f"  from        {kept.channel}")
    say(f"  folder      {kept.folder}")

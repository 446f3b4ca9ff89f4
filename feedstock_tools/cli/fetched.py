"""`feedstock-tools pinning` and `smithy`: what is fetched for rerenders, and which of it a command uses."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from feedstock_tools.channel import fetched as packages
from feedstock_tools.channel.properties import STAND_IN
from feedstock_tools.cli import options
from feedstock_tools.cli.commands import Group
from feedstock_tools.cli.opening import tidy
from feedstock_tools.cli.printing import say, say_note, say_result
from feedstock_tools.data import cache_root
from feedstock_tools.errors import FeedstockError, InputError
from feedstock_tools.reading import read_text

if TYPE_CHECKING:
    from feedstock_tools.rerender.smithy import Release
    from feedstock_tools.rerender.source import NoPinning

_HELP = {"help_option_names": ["-h", "--help"]}


@click.group("pinning", cls=Group, invoke_without_command=True, context_settings=_HELP)
@options.cache
@options.as_json
@click.pass_context
def pinning(context: click.Context, cache: Path | None, as_json: bool) -> None:
    """Show, fetch and update conda-forge's pinning.

    Without a subcommand: show the newest fetched pinning, which `rerender` uses by default.
    Only `fetch` and `update` use the network.
    """
    if context.invoked_subcommand is None:
        _show_pinning(None, cache, as_json)


@pinning.command("show")
@click.argument("pinning", required=False)
@options.cache
@options.as_json
def show(pinning: str | None, cache: Path | None, as_json: bool) -> None:
    """Show a pinning and its age.

    PINNING is a fetched version, a folder, or a conda_build_config.yaml; default: the newest fetched version.
    """
    _show_pinning(pinning, cache, as_json)


@pinning.command("list")
@options.cache
@options.as_json
def list_pinnings(cache: Path | None, as_json: bool) -> None:
    """List the fetched pinnings, the newest last."""
    now = datetime.now(UTC)
    kept = packages.cached_pinnings(_folder(cache, packages.PINNING))
    if as_json:
        say_result([each.to_json(now) for each in kept])
        return
    if not kept:
        say_note("no pinning has been fetched yet")
    for each in kept:
        say(each.describe(now))


@pinning.command("fetch", short_help="Fetch a version from a channel.")
@click.argument("version", required=False)
@options.channels("conda-forge")
@options.cache
@options.as_json
def fetch_pinning(version: str | None, channels: tuple[str, ...], cache: Path | None, as_json: bool) -> None:
    """Fetch a VERSION such as 2021.10.29.07.34.22 from a channel; default: the newest."""
    _show_pinning(str(_fetched(packages.PINNING, version, channels, cache).folder), cache, as_json)


@pinning.command("update")
@options.channels("conda-forge")
@options.cache
@options.as_json
def update(channels: tuple[str, ...], cache: Path | None, as_json: bool) -> None:
    """Fetch the newest pinning from a channel."""
    _show_pinning(str(_fetched(packages.PINNING, None, channels, cache).folder), cache, as_json)


@click.group("smithy", cls=Group, invoke_without_command=True, context_settings=_HELP)
@options.cache
@options.as_json
@click.pass_context
def smithy(context: click.Context, cache: Path | None, as_json: bool) -> None:
    """Fetch and list releases of conda-smithy; `rerender` writes whole trees with their templates.

    Without a subcommand: list the fetched releases. Only `fetch` uses the network.
    """
    if context.invoked_subcommand is None:
        _list_releases(cache, as_json)


@smithy.command("list")
@options.cache
@options.as_json
def list_releases(cache: Path | None, as_json: bool) -> None:
    """List the fetched releases, the newest last."""
    _list_releases(cache, as_json)


@smithy.command("fetch", short_help="Fetch a release from a channel.")
@click.argument("version", required=False)
@options.channels("conda-forge")
@options.cache
@options.as_json
def fetch_release(version: str | None, channels: tuple[str, ...], cache: Path | None, as_json: bool) -> None:
    """Fetch a VERSION of conda-smithy such as 3.50.1 from a channel; default: the newest.

    Of its package, only the files that a rerender reads and the license are kept. Nothing in it is run.
    """
    kept = _fetched(packages.SMITHY, version, channels, cache)
    if as_json:
        say_result(kept.to_json())
        return
    say(f"conda-smithy {kept.version}")
    say(f"  from        {kept.channel}")
    say(f"  folder      {kept.folder}")


def version_of_pinning(pinning: Path) -> str | None:
    """The version of a pinning: of a clone of its feedstock what it would build, the time of its commit; None if it has
    none.
    """
    from feedstock_tools.feedstock.git import commit_of, epoch_of

    found = pinning_at(pinning)
    recipe = found.folder / "meta.yaml"
    if found.version or found.folder.name != "recipe" or not recipe.is_file():
        return found.version
    is_clone = (found.folder.parent / ".git").exists()
    if not is_clone or "name: conda-forge-pinning" not in read_text(recipe, within=found.folder):
        return None
    epoch = None if commit_of(found.folder.parent).endswith("+") else epoch_of(found.folder.parent, {})
    return None if epoch is None else datetime.fromtimestamp(epoch, UTC).strftime("%Y.%m.%d.%H.%M.%S")


def readable_pinning(requested: str | None, feedstock: Path) -> Path | NoPinning | None:
    """The pinning for a command that only reads, also printed on stderr: None if there is none."""
    if _needs_none(requested, feedstock):
        return _without_pinning()
    if requested is None and not packages.cached_pinnings(packages.pinning_cache(os.environ)):
        say_note("pinning: none was fetched or named")
        return None
    return _found(requested)


def required_pinning(requested: str | None, feedstock: Path, *, fetches: bool = True) -> Path | None:
    """The pinning for a command that writes what follows from it, also printed on stderr: None if the feedstock needs
    none. Where none was fetched yet, the newest is fetched, as conda-smithy does.

    Raises:
        InputError: the requested one is not there; or none was fetched, and with --offline, or it cannot be fetched.
    """
    if _needs_none(requested, feedstock):
        _without_pinning()
        return None
    cache = packages.pinning_cache(os.environ)
    if requested is None and not packages.cached_pinnings(cache):
        if _follows_pinning(feedstock) and not (feedstock / "recipe").is_dir():  # that is the first thing to say
            _without_pinning()
            return None
        offline = not fetches or click.get_current_context().meta.get(options.OFFLINE)
        if why := "there is none" if offline else _fetch_newest(cache):
            raise _missing(feedstock, why)
    return _found(requested)


def _needs_none(requested: str | None, feedstock: Path) -> bool:
    has_spec = (feedstock / "feedstock.yaml").is_file()
    return requested == options.NO_PINNING or (requested is None and has_spec and not _follows_pinning(feedstock))


def _follows_pinning(feedstock: Path) -> bool:
    from feedstock_tools.feedstock.pinned import follows_pinning

    return follows_pinning(feedstock)


def _without_pinning() -> NoPinning:
    say_note("pinning: none, only the recipe's own conda_build_config.yaml")
    return "none"


def _found(requested: str | None) -> Path:
    found = packages.find_pinning(requested, packages.pinning_cache(os.environ))
    say_note(f"pinning: {found.describe(datetime.now(UTC))}")
    return found.path


def _missing(feedstock: Path, why: str) -> InputError:
    if _follows_pinning(feedstock):
        message, path = (
            f"the spec takes its versions from conda-forge's pinning, and {why}",
            feedstock / "feedstock.yaml",
        )
        return InputError(message, path=path, hint=f"{_GET_PINNING} {_SELF_CONTAINED}")
    return InputError(f"the jobs follow from conda-forge's pinning, and {why}", hint=_GET_PINNING)


def _fetch_newest(cache: Path) -> str:
    """Fetch the newest pinning; returns why there is none, if it fails."""
    say_note("pinning: none was fetched yet; fetching the newest")
    try:
        _from_first(packages.PINNING, ("conda-forge",), cache, None)
    except FeedstockError as error:
        return f"it cannot be fetched: {error.mistakes[0].message}"
    return ""


_GET_PINNING = (
    "Fetch one with 'feedstock-tools pinning fetch' or give one with --pinning; '--pinning none' says that the "
    "feedstock needs none."
)
_SELF_CONTAINED = (
    "Or let the spec have its own versions, as 'feedstock-tools init --self-contained' writes it: "
    "'pinning: self-contained', 'python: [3.11, 3.12]', and below 'cuda' 'versions: [12.9, 13.0]'."
)


def named_pinning(requested: str | None) -> Path | None:
    """The file of the requested pinning; None if none is requested."""
    if requested in (None, options.NO_PINNING):
        return None
    return packages.find_pinning(requested, packages.pinning_cache(os.environ)).path


def pinning_at(path: Path) -> packages.Pinning:
    """The pinning of a conda_build_config.yaml, with its version and date if these are known."""
    folder = path.parent if path.name == packages.PINNING_FILE else path
    return packages.find_pinning(folder, packages.pinning_cache(os.environ))


def pinning_of(requested: str | None) -> packages.Pinning | None:
    """The requested pinning, or the newest fetched one; None without one."""
    cache = packages.pinning_cache(os.environ)
    if requested == options.NO_PINNING or (requested is None and not packages.cached_pinnings(cache)):
        return None
    return packages.find_pinning(requested, cache)


def chosen_release(requested: str | None, rules: str | None) -> Release | None:
    """The release of conda-smithy to use, also printed on stderr; never uses the network."""
    from feedstock_tools.rerender.smithy import choose_release, installed_release

    cached = packages.fetched_packages(packages.SMITHY, packages.smithy_cache(os.environ))
    fetched = {package.version: package.folder for package in cached}
    choice = choose_release(requested, rules, fetched, installed_release(_environments()))
    say_note(choice.remark)
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


def _folder(cache: Path | None, kind: packages.PackageKind) -> Path:
    """The folder of --cache, which the group takes too, else the one in the user's cache."""
    parent = click.get_current_context().parent
    folder = cache or (parent.params.get("cache") if parent else None)
    return cache_root(os.environ) / kind.package if folder is None else Path(folder)


def _fetched(
    kind: packages.PackageKind, version: str | None, channels: tuple[str, ...], cache: Path | None
) -> packages.FetchedPackage:
    folder = _folder(cache, kind)
    tidy()
    before = packages.fetched_packages(kind, folder)
    kept = _from_first(kind, channels or ("conda-forge",), folder, version)
    say_note(f"{'already fetched' if kept in before else 'fetched'}: {kept.folder}")
    return kept


def _from_first(
    kind: packages.PackageKind, channels: tuple[str, ...], cache: Path, version: str | None
) -> packages.FetchedPackage:
    """The package from the first channel that has it; if none does, the error of the last one."""
    from feedstock_tools.channel.fetching import fetch_package

    if STAND_IN.origin in channels:
        what = kind.noun.removeprefix("release of ")
        raise InputError(f"the stand-in channel has no {what}", hint="Fetch it from conda-forge, or from a folder.")
    for channel in channels[:-1]:
        with suppress(InputError):
            return fetch_package(kind, channel, cache, version)
    return fetch_package(kind, channels[-1], cache, version)


def _show_pinning(requested: str | None, cache: Path | None, as_json: bool) -> None:
    found = packages.find_pinning(requested, _folder(cache, packages.PINNING))
    now = datetime.now(UTC)
    if as_json:
        say_result(found.to_json(now))
        return
    say(found.describe(now))
    if found.released:
        say(f"  released    {found.released:%Y-%m-%d %H:%M:%S} UTC")
    if found.channel:
        say(f"  from        {found.channel}")
    say(f"  file        {found.path}")
    say(f"  migrations  {len(found.migrations)}")


def _list_releases(cache: Path | None, as_json: bool) -> None:
    kept = packages.fetched_packages(packages.SMITHY, _folder(cache, packages.SMITHY))
    if as_json:
        say_result([release.to_json() for release in kept])
        return
    if not kept:
        say_note("no release of conda-smithy has been fetched yet")
    for release in kept:
        say(f"conda-smithy {release.version}")

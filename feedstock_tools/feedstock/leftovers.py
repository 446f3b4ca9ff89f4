"""What killed commands left behind: in a feedstock, its artifacts, the user's cache and the system's temporary folder.

Temporary files carry their owners (`feedstock_tools.files.temporary`), so what a dead owner left can be removed at any
time, while other commands run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from feedstock_tools.data import cache_root
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.layout import STAND_IN_CHANNEL, Artifacts
from feedstock_tools.files.locks import locked
from feedstock_tools.files.temporary import OF_INDEXER, leftovers, remove

#: The folders of a feedstock that commands write to.
_WRITTEN = ("", "recipe", ".ci_support", ".feedstock-tools", ".github/workflows", ".azure-pipelines", "variants")


def find_leftovers(feedstock: Path | None, artifacts: Artifacts | None, machine: Mapping[str, str]) -> tuple[Path, ...]:
    """What dead owners left; nothing of it is used by a running command.

    Args:
        feedstock: the folder of a feedstock, if one is meant.
        artifacts: its artifacts.
        machine: the environment of the machine, which determines the user's cache.
    """
    left = list(leftovers())
    places = [*_of_cache(machine)]
    places += [feedstock / name for name in _WRITTEN] if feedstock is not None else []
    places += _of_artifacts(artifacts) if artifacts is not None else []
    for place in places:
        left += leftovers(place)
    if artifacts is not None:
        left += [path for _, path in artifacts.dead_private()]
    return tuple(dict.fromkeys(left))


def remove_leftovers_of(feedstock: Path | None, artifacts: Artifacts | None, machine: Mapping[str, str]) -> None:
    """Remove it, as far as possible: a command that begins does so, and works whatever remains."""
    private = {path for _, path in artifacts.dead_private()} if artifacts is not None else set()
    for path in find_leftovers(feedstock, artifacts, machine):
        if path not in private:
            remove(path)
    if artifacts is None:
        return
    if private:
        with suppress(WorkError):
            artifacts.remove_dead_private()
    if (artifacts.root / OF_INDEXER).is_dir():
        with suppress(WorkError), locked(artifacts.root, seconds=0):
            remove(artifacts.root / OF_INDEXER)


def _of_artifacts(artifacts: Artifacts) -> Iterator[Path]:
    """The folders of artifacts that files are written to, down to the subdirs of the channels."""
    yield artifacts.root
    for folder in _folders(artifacts.root):
        yield folder
        if folder.name in (STAND_IN_CHANNEL, ".cache"):
            yield from _folders(folder)


def _of_cache(machine: Mapping[str, str]) -> Iterator[Path]:
    """This program's folder in the user's cache, and three levels below it, where compilers are put together."""
    cache = cache_root(machine)
    yield cache
    for folder in _folders(cache):
        yield folder
        if folder.name != "environments":
            yield from _folders(folder)


def _folders(place: Path) -> Iterator[Path]:
    try:
        with os.scandir(place) as entries:
            folders = sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    yield from (Path(path) for path in folders)

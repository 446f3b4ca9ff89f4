"""Files that commands have left on the disk and that can be removed: their kind, place and size, and removing them.

Temporary files carry their owners (`feedstock_tools.files.temporary`), so what a killed command left can be removed at
any time, while other commands run. Whatever is needed again is fetched or made again, except packages, logs and the
ledger: each is removed only by its own option.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from feedstock_tools.data import cache_root, data_folder
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.layout import CHANNELS_APART, LEDGER, Artifacts
from feedstock_tools.files.locks import Locks, locked
from feedstock_tools.files.temporary import OF_INDEXER, leftovers, owned_name, remove
from feedstock_tools.platforms import KNOWN_SUBDIRS

#: What can be removed → what it is. The order is that of lists.
KINDS = {
    "leftovers": "temporary files of commands that were killed",
    "work": "work folders of failed builds, kept shared builds",
    "caches": "fetched packages and sources, plans",
    "environments": "environments of checkouts or Pythons that are gone",
    "shared": "what all feedstocks share: compilers, pinnings, stand-in channels",
    "packages": "built packages",
    "logs": "logs of builds and tests",
    "ledger": "the record of builds",
}
#: What is removed without further options.
USUAL = frozenset({"leftovers", "work", "caches", "environments"})
#: What builds use while they run.
_IN_USE = frozenset({"work", "caches", "packages", "logs", "ledger"})
#: The folders of a feedstock that commands write to.
_WRITTEN = ("", "recipe", ".ci_support", ".feedstock-tools", ".github/workflows", ".azure-pipelines", "variants")


@dataclass(frozen=True, slots=True)
class Removable:
    """A file or folder that can be removed.

    Attributes:
        kind: one of `KINDS`.
        size: its bytes; files with several names count once in each folder.
        removed: whether it is gone.
        kept: why it could not be removed; empty if it was, or before an attempt.
    """

    kind: str
    path: Path
    size: int
    removed: bool = False
    kept: str = ""


def find_removable(
    feedstock: Path | None, artifacts: Artifacts | None, machine: Mapping[str, str], kinds: Collection[str] = USUAL
) -> tuple[Removable, ...]:
    """The files and folders of some kinds, by kind and path.

    Args:
        feedstock: its folder; None for the user's cache alone.
        artifacts: its artifacts.
        machine: the environment of the machine, which determines the user's cache.
    """
    left = set(_find_leftovers(feedstock, artifacts, machine))
    places = {"leftovers": sorted(left), **_of_cache(machine)}
    if artifacts is not None:
        places |= _of_artifacts(artifacts.root, left)
    found = ((kind, path) for kind in KINDS if kind in kinds for path in places.get(kind, ()))
    return tuple(Removable(kind, path, size_of_folder(path)) for kind, path in found)


def remove_all(found: Sequence[Removable], artifacts: Artifacts | None) -> tuple[Removable, ...]:
    """Remove the found files, except those that a build of these artifacts uses now; returns each with the outcome.

    A folder is renamed before it is removed, so that a call that is killed leaves none that looks complete.
    """
    with ExitStack() as stack:
        in_use = ""
        if artifacts is not None and any(each.kind in _IN_USE for each in found):
            try:
                locks = Locks.take_all(artifacts.locks)
            except WorkError as error:
                in_use, locks = error.mistakes[0].message, None
            else:
                in_use = "" if locks else "a build is using it"
            if locks:
                stack.enter_context(locks)
        return tuple(
            replace(each, kept=in_use) if in_use and each.kind in _IN_USE else _removed(each) for each in found
        )


def _removed(each: Removable) -> Removable:
    if each.kind == "leftovers":
        remove(each.path)
    else:
        away = each.path.with_name(owned_name())
        try:
            each.path.rename(away)
        except FileNotFoundError:
            return replace(each, removed=True)
        except OSError as error:
            return replace(each, kept=error.strerror or str(error))
        remove(away)
        if away.exists():
            return replace(each, kept=f"parts of it cannot be removed: {away}")
    gone = not each.path.exists()
    return replace(each, removed=gone, kept="" if gone else "it cannot be removed")


def _of_artifacts(root: Path, left: Collection[Path]) -> dict[str, list[Path]]:
    place = root / ".work"
    inside = [] if place.is_symlink() else _entries(place)
    work = [path for path in inside if path.name not in ("locks", "shared") and not path.name.startswith(".")]
    work += _entries(place / "shared") if place / "shared" in inside else []
    caches = [path for path in (root / ".cache", root / "pkg_cache", root / "src_cache") if path.is_dir()]
    channels = [root / name for name in (*KNOWN_SUBDIRS, "noarch", *CHANNELS_APART)]
    ledger = [path for path in _entries(root) if path.name in (LEDGER, f"{LEDGER}-journal", f"{LEDGER}-wal")]
    return {
        "work": [path for path in work if path not in left and not path.is_symlink()],
        "caches": caches,
        "packages": [path for path in channels if path.is_dir() and not path.is_symlink()],
        "logs": [root / "logs"] if (root / "logs").is_dir() else [],
        "ledger": ledger,
    }


def _of_cache(machine: Mapping[str, str]) -> dict[str, list[Path]]:
    cache = cache_root(machine)
    checkout = data_folder("examples").parent / ".environments"
    places = [*(each for folder in _entries(cache / "environments") for each in _entries(folder)), *_entries(checkout)]
    return {
        "environments": [place for place in places if (place / "pyvenv.cfg").is_file() and _is_old(place)],
        "shared": [path for path in _entries(cache) if path.name != "environments" and not path.name.startswith(".")],
    }


def _is_old(environment: Path) -> bool:
    """Whether an environment cannot be used any more: its checkout or its interpreter is gone."""
    from urllib.parse import unquote, urlsplit

    with suppress(OSError, UnicodeDecodeError):
        lines = (environment / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
        settings = dict(line.split(" = ", 1) for line in lines if " = " in line)
        if "home" in settings and not Path(settings["home"]).is_dir():
            return True
    for record in environment.glob("[Ll]ib/**/site-packages/feedstock_tools-*.dist-info/direct_url.json"):
        with suppress(OSError, ValueError, LookupError, TypeError):
            url = urlsplit(json.loads(record.read_bytes())["url"])
            return url.scheme == "file" and not Path(unquote(url.path)).is_dir()
    return False


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def size_of_folder(path: Path) -> int:
    """The bytes of a file, or of all files in a folder; no link is followed."""
    try:
        if path.is_symlink() or not path.is_dir():
            return path.lstat().st_size
    except OSError:
        return 0
    return sum({(state.st_dev, state.st_ino): state.st_size for state in _states(path)}.values())


def _states(folder: Path) -> Iterator[os.stat_result]:
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                yield os.lstat(f"{place}/{name}")


def _find_leftovers(
    feedstock: Path | None, artifacts: Artifacts | None, machine: Mapping[str, str]
) -> tuple[Path, ...]:
    """What dead owners left; nothing of it is used by a running command."""
    left = list(leftovers())
    places = [*_written_cache(machine)]
    places += [feedstock / name for name in _WRITTEN] if feedstock is not None else []
    places += _written_artifacts(artifacts) if artifacts is not None else []
    for place in places:
        left += leftovers(place)
    if artifacts is not None:
        left += [path for _, path in artifacts.dead_private()]
    return tuple(dict.fromkeys(left))


def remove_leftovers_of(feedstock: Path | None, artifacts: Artifacts | None, machine: Mapping[str, str]) -> None:
    """Remove it, as far as possible: a command that begins does so, and works whatever remains."""
    private = {path for _, path in artifacts.dead_private()} if artifacts is not None else set()
    for path in _find_leftovers(feedstock, artifacts, machine):
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


def _written_artifacts(artifacts: Artifacts) -> Iterator[Path]:
    """The folders of artifacts that files are written to, down to the subdirs of the channels."""
    yield artifacts.root
    for folder in _folders(artifacts.root):
        yield folder
        if folder.name in (*CHANNELS_APART, ".cache"):
            yield from _folders(folder)


def _written_cache(machine: Mapping[str, str]) -> Iterator[Path]:
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

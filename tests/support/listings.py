"""What a machine has that the root below its layer has not: files, folders and links, without the system's own logs."""

from __future__ import annotations

import filecmp
import os
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

#: Path → type, mode, owner, group, and the SHA-256 of a file or the target of a link, for paths that differ from the
#: root below; of one that only the root below has, nothing.
Listing = dict[str, tuple[str, ...]]
#: Written by the system itself whatever is installed: logs, caches, the backups of its databases, what is not on disk.
_OF_SYSTEM = ("dev/", "proc/", "sys/", "run/", "var/log/", "var/cache/", "var/lib/systemd/", "var/lib/apt/")
_BACKUPS = tuple(f"etc/{name}-" for name in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid"))
#: The files by which two hosts differ: their names, and what only one has a key for.
_OF_ONE_HOST = (
    "etc/hostname",
    "etc/hosts",
    "etc/feedstock-tools/worker/",
    "opt/feedstock-tools/feedstock-tools-worker",
)
#: The mark of a folder that hides the one below it.
_HIDES = "trusted.overlay.opaque"


def listing_of(root: Path, layer: Path, lower: Path) -> Listing:
    """What differs from the root below.

    Args:
        root: the whole, mounted; `layer` is its upper folder, and `lower` the root below.
    """
    found: Listing = {}
    for place, folders, names in os.walk(layer):
        at = os.path.relpath(place, layer)
        prefix = "" if at == "." else f"{at}/"
        folders[:] = sorted(name for name in folders if not f"{prefix}{name}/".startswith(_OF_SYSTEM))
        if at != "." and _hides(Path(place)):
            found |= _gone(root, lower, at)
        for path in (f"{prefix}{name}" for name in [*folders, *names]):
            if not _is_backup(path):
                with suppress(FileNotFoundError):  # something is at work there
                    entry = _described(root / path, lower / path)
                    if entry is not None:
                        found[path] = entry
    return found


def differences(one: Listing, other: Listing, *, of_hosts: bool = False) -> list[str]:
    """The paths in which two listings differ.

    Args:
        of_hosts: the listings are of two hosts: what belongs to one alone is left out.
    """
    found = sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))
    return [path for path in found if not (of_hosts and path.startswith(_OF_ONE_HOST))]


def _is_backup(path: str) -> bool:
    return path in _BACKUPS or (path.startswith("var/lib/dpkg/") and path.endswith("-old"))


def _hides(folder: Path) -> bool:
    try:
        return os.getxattr(folder, _HIDES) == b"y"
    except OSError:
        return False


def _gone(root: Path, lower: Path, at: str) -> Listing:
    """What a folder hides that the one below it has."""
    below = [path.relative_to(lower) for path in (lower / at).rglob("*")] if (lower / at).is_dir() else []
    return {str(path): () for path in below if not os.path.lexists(root / path) and not _is_backup(str(path))}


def _described(path: Path, below: Path) -> tuple[str, ...] | None:
    """An entry; None where the root below has the same, and nothing where the entry is only there."""
    before = below.lstat() if os.path.lexists(below) else None
    if not os.path.lexists(path):
        return None if before is None else ()
    found = path.lstat()
    content = ""
    if stat.S_ISREG(found.st_mode):
        content = sha256(path.read_bytes()).hexdigest()
    elif stat.S_ISLNK(found.st_mode):
        content = str(path.readlink())
    if before is not None and _facts(found) == _facts(before) and _same(path, below, found):
        return None
    return (*_facts(found), content)


def _facts(found: os.stat_result) -> tuple[str, ...]:
    kind, mode = stat.S_IFMT(found.st_mode), oct(stat.S_IMODE(found.st_mode))
    return oct(kind), mode, str(found.st_uid), str(found.st_gid)


def _same(path: Path, below: Path, found: os.stat_result) -> bool:
    if stat.S_ISREG(found.st_mode):
        return filecmp.cmp(path, below, shallow=False)
    return not stat.S_ISLNK(found.st_mode) or path.readlink() == below.readlink()

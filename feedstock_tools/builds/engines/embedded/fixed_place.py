"""One path for the private folders of all builds, wherever they are: what is built there holds the same paths.

Programs keep the path that they were compiled in: in debug information, in search paths, and in the identifiers that
a linker computes from these. So a build sees its folder at the same path on every machine: a mount of its own, which
no other process sees and which ends with it. Where the system allows no such mount, the folder keeps its path.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

__all__ = ["PLACE", "at_fixed_place"]

#: Where a build sees its private folder. The folder is empty for everyone else.
PLACE = Path("/tmp/.feedstock-tools/build")  # noqa: S108

# sched.h and sys/mount.h of Linux
_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000
_BIND, _RECURSIVE, _PRIVATE = 1 << 12, 1 << 14, 1 << 18


def at_fixed_place(folder: Path) -> Path:
    """Show a folder at `PLACE` to this process and those that it starts, and return its path from now on.

    To be called before the first thread begins. Returns the folder itself if the system allows no mount.
    """
    if not sys.platform.startswith("linux") or not _is_possible(folder):
        return folder
    try:
        _mount(folder)
    except OSError:
        return folder
    return PLACE


def _is_possible(folder: Path) -> bool:
    """Try it in a process of its own: one that fails half way is left without its user."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _mount(folder)
            status = 0 if PLACE.samefile(folder) else 1
        except BaseException:  # noqa: S110 - the exit status says it
            pass
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def _mount(folder: Path) -> None:
    """Mount a folder at `PLACE` in mounts of this process's own.

    Raises:
        OSError: the system does not allow it.
    """
    PLACE.mkdir(parents=True, exist_ok=True)
    if PLACE.is_symlink() or PLACE.parent.is_symlink():
        raise OSError(f"{PLACE} is a link")
    user, group = os.getuid(), os.getgid()
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(_NEW_MOUNTS) != 0:
        _check(library.unshare(_NEW_MOUNTS | _NEW_USERS))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _check(library.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None))
    _check(library.mount(os.fsencode(folder), os.fsencode(PLACE), None, _BIND | _RECURSIVE, None))


def _check(status: int) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

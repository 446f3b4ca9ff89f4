"""One path for the private folders of all builds, wherever they are, so that packages built there hold the same paths.

Programs keep the path that they were compiled in: in debug information, in search paths, and in the identifiers that
a linker computes from these. So a build sees its folder at the same path on every machine: a mount of its own, which
no other process sees and which ends with it. Where the system allows no such mount, the folder keeps its path.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache as once
from pathlib import Path

#: Where a build sees the artifacts folder, with its private folder. All other processes see an empty folder.
PLACE = Path("/tmp/.feedstock-tools/build")  # noqa: S108
#: The name of the private folders of rows that take files from a shared build, which see them all at one path.
UNIT = "unit"

# sched.h and sys/mount.h of Linux
NEW_MOUNTS, NEW_USERS = 0x00020000, 0x10000000
_BIND, _RECURSIVE, _PRIVATE = 1 << 12, 1 << 14, 1 << 18
_READ_ONLY, _AGAIN = 1, 1 << 5
#: What a mount allows, as `statvfs` says it: nothing of it may be given up where a user has mounts of their own.
_ALLOWED = 2 | 4 | 8
_DETACH = 2


def at_fixed_place(folder: Path, cache: Path, name: str = "") -> tuple[Path, Path]:
    """Show a private folder below `PLACE` to this process and those that it starts.

    To be called before the first thread begins.

    Args:
        folder: `.work/<name>` in an artifacts folder.
        name: in place of that name.
        cache: the folder of fetched packages. If it is in the artifacts folder, both are shown in one mount, so that
            its files can be linked into the environments of the build.

    Returns:
        The paths of the two from now on; as they were if the system allows no mount.
    """
    root = folder.parent.parent
    target = place_of(folder, name)
    if target.exists() and target.samefile(folder):  # the runtime of a container has mounted it
        return target, cache
    if not name and cache.resolve().is_relative_to(root.resolve()):
        source, where, cache_there = root, PLACE, PLACE / cache.resolve().relative_to(root.resolve())
    else:
        source, where, cache_there = folder, target, cache
    if not sys.platform.startswith("linux") or not _is_possible(source, where):
        return folder, cache
    try:
        _mount(source, where)
    except OSError:
        return folder, cache
    return target, cache_there


def place_of(folder: Path, name: str = "") -> Path:
    """Where a build sees its private folder."""
    return (PLACE / folder.relative_to(folder.parent.parent)).with_name(name or folder.name)


@contextmanager
def shown_instead(text: str, own: Path, file: Path) -> Iterator[None]:
    """Show a text in place of a file's to this process, once `at_fixed_place` has shown it its folder.

    Args:
        own: gets the text. In a container it is already mounted in place of the file, with the file's content.

    Raises:
        OSError: the system allows no such mount.
    """
    original = file.read_bytes()
    own.write_text(text, encoding="utf-8")
    if own.samefile(file):
        try:
            yield
        finally:
            own.write_bytes(original)
        return
    library = ctypes.CDLL(None, use_errno=True)
    check_call(library.mount(os.fsencode(own), os.fsencode(file), None, _BIND, None), "mount")
    try:
        yield
    finally:
        check_call(library.umount2(os.fsencode(file), _DETACH), "umount")


def keep_from_writing(folder: Path) -> None:
    """Show a folder read-only to this process, once `at_fixed_place` has given it mounts of its own.

    Raises:
        OSError: the system allows no such mount.
    """
    library = ctypes.CDLL(None, use_errno=True)
    place, allowed = os.fsencode(folder), os.statvfs(folder).f_flag & _ALLOWED
    check_call(library.mount(place, place, None, _BIND, None), "mount")
    check_call(library.mount(None, place, None, _AGAIN | _BIND | _READ_ONLY | allowed, None), "mount")


@once
def is_possible() -> bool:
    """Whether the system allows such mounts."""
    return sys.platform.startswith("linux") and _is_possible(Path("/"), PLACE)


def _is_possible(folder: Path, place: Path) -> bool:
    """Try it in a process of its own, since one that fails half way has lost its user."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _mount(folder, place)
            status = 0 if place.samefile(folder) else 1
        except BaseException:  # noqa: S110 - the exit status reports it
            pass
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def _mount(folder: Path, place: Path) -> None:
    """Mount a folder at a place, in mounts of this process's own."""
    place.mkdir(parents=True, exist_ok=True)
    if place.resolve() != place:
        raise OSError(f"{place} leads through a link")
    user, group = os.getuid(), os.getgid()
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(NEW_MOUNTS) != 0:
        enter_namespaces(library, NEW_MOUNTS | NEW_USERS, (user, user), (group, group))
    check_call(library.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None), "mount")
    check_call(library.mount(os.fsencode(folder), os.fsencode(place), None, _BIND | _RECURSIVE, None), "mount")


def enter_namespaces(libc: ctypes.CDLL, flags: int, user: tuple[int, int], group: tuple[int, int]) -> None:
    """Enter new namespaces; user and group inside of them, and outside."""
    check_call(libc.unshare(flags), "unshare")
    for name, content in (
        ("setgroups", "deny"),
        ("uid_map", f"{user[0]} {user[1]} 1"),
        ("gid_map", f"{group[0]} {group[1]} 1"),
    ):
        Path("/proc/self", name).write_text(content)


def check_call(result: int, call: str) -> None:
    """Raise the error of a failed call of the C library as an OSError."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")

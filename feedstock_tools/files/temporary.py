"""Temporary files and folders that carry their owner, and the removal of those that dead owners left behind.

A name holds the machine, the process and its start time, so that another process can tell whether the owner still
lives. Nothing else has to be remembered: the next program that writes to a folder removes such leftovers.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from feedstock_tools.processes import process_lives, start_time, this_machine

#: A mark is `<machine>-<pid>-<start time>-<anything>`, in hexadecimal digits.
_MARK = r"([0-9a-f]{6})-([0-9a-f]{1,16})-([0-9a-f]{0,16})-[0-9a-f]{8}"
_NAME = re.compile(rf"(?:\.{_MARK}\.part|feedstock-tools-{_MARK})")
#: The folder of a channel in which py-rattler's indexer writes files before it renames them. It removes neither the
#: folder nor, if it is killed, what is in it.
OF_INDEXER = ".tmp"
#: Seconds after which something is left behind whose owner cannot be asked, since it ran on another machine.
_UNKNOWN_AFTER = 7 * 24 * 3600.0

_swept: set[tuple[int, str]] = set()


def own_mark() -> str:
    """A mark of this process, different in each call."""
    return f"{_owner(os.getpid())}-{os.urandom(4).hex()}"


def owned_name() -> str:
    """A short name, beginning with a dot, for a temporary file or folder of this process beside what it becomes."""
    return f".{own_mark()}.part"


@contextmanager
def temporary_folder(within: Path | None = None) -> Iterator[Path]:
    """A new folder that only this user can read; removed at the end of the block.

    Args:
        within: the folder to create it in, which must exist; default: the system's folder for temporary files.

    Raises:
        OSError: it cannot be created.
    """
    folder = new_folder(within)
    try:
        yield folder
    finally:
        remove(folder)


def new_folder(within: Path | None = None) -> Path:
    """The same, for those who `remove` it themselves."""
    parent = system_folder() if within is None else within
    remove_leftovers(parent)
    folder = parent / (f"feedstock-tools-{own_mark()}" if within is None else owned_name())
    folder.mkdir(mode=0o700)
    return folder


def remove_leftovers(folder: Path) -> None:
    """Remove what dead owners left in a folder; a process looks once into each folder."""
    key = (os.getpid(), str(folder))
    if key not in _swept:
        _swept.add(key)
        for path in leftovers(folder):
            remove(path)


def leftovers(folder: Path | None = None) -> tuple[Path, ...]:
    """The temporary files and folders of this user in a folder whose owners are dead; in an unreadable folder none.

    Args:
        folder: default: the system's folder for temporary files.
    """
    try:
        with os.scandir(folder or _named_folder()) as entries:
            found = [Path(entry.path) for entry in entries if entry.name[0] in ".f" and _is_left(entry)]
    except OSError:
        return ()
    return tuple(sorted(found))


def owner_lives(mark: str) -> bool | None:
    """Whether the process of a mark is alive; None if it runs on another machine, or the mark is invalid."""
    match = re.fullmatch(_MARK, mark)
    return _lives(*match.groups()) if match else None


def remove(path: Path) -> None:
    """Remove a file, a link or a whole folder, as far as the system allows it."""
    if path.is_symlink() or not path.is_dir():
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():  # a folder in it is read-only
        with suppress(OSError):
            path.chmod(0o700)
        for place, folders, _ in os.walk(path):
            for name in folders:
                if not os.path.islink(f"{place}/{name}"):  # noqa: PTH114
                    with suppress(OSError):
                        os.chmod(f"{place}/{name}", 0o700)  # noqa: PTH101
        shutil.rmtree(path, ignore_errors=True)


def _named_folder() -> str:
    """The folder that `tempfile` would find, but for its look whether the folder can be written to."""
    return next(filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))), "/tmp")  # noqa: S108


def system_folder() -> Path:
    """The system's folder for temporary files."""
    folder = _named_folder()
    if os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):  # noqa: PTH112
        return Path(folder).absolute()

    import tempfile  # its look writes a file, which a kill would leave behind

    return Path(tempfile.gettempdir())


def _is_left(entry: os.DirEntry[str]) -> bool:
    match = _NAME.fullmatch(entry.name)
    if match is None or (lives := _lives(*[group for group in match.groups() if group is not None])):
        return False
    try:
        state = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    if hasattr(os, "getuid") and state.st_uid != os.getuid():
        return False
    if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
        return False
    return lives is False or time.time() - state.st_mtime > _UNKNOWN_AFTER


def _lives(place: str, pid: str, started: str) -> bool | None:
    if place != _place():
        return None
    ticks = str(int(started, 16)) if started else ""
    return process_lives(f"{int(pid, 16)}:{ticks}", this_machine())


@cache
def _owner(pid: int) -> str:
    started = start_time(pid)
    return f"{_place()}-{pid:x}-{f'{int(started):x}' if started else ''}"


@cache
def _place() -> str:
    """This machine in six digits; two containers on it are two places, since each numbers its own processes."""
    from hashlib import sha256

    try:
        space = os.readlink("/proc/self/ns/pid") if sys.platform == "linux" else ""  # noqa: PTH115
    except OSError:
        space = ""
    return sha256(f"{this_machine()}\0{space}".encode()).hexdigest()[:6]

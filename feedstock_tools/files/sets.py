"""Writing several files of a folder as one: all are made first, then put in place; a failure puts the old ones back.

What holds: a file is always whole, old or new. If anything fails or is interrupted, the folder is as before, as far as
the system still lets us rename and delete. A process that is killed, or a machine that stops, half way through the
renaming (milliseconds) leaves some files old and some new; the same work done again finishes it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.locks import locked_in_place
from feedstock_tools.files.temporary import new_folder, remove

_ALL_MAY_RUN = 0o111


@dataclass(frozen=True, slots=True)
class NewFile:
    """What a file becomes: `content` None leaves its bytes, `executable` None its mode, as they are."""

    content: bytes | None
    executable: bool | None = None


@dataclass(slots=True)
class _Step:
    """One path on its way: its new file, made beforehand, and the place where its old file waits.

    `mode`: the new mode of a file whose bytes stay; `mode_before` is its old one once it has changed.
    """

    path: Path
    old: Path
    new: Path | None = None
    mode: int | None = None
    mode_before: int | None = None
    created: bool = False


def replace_files(
    folder: Path,
    files: Mapping[Path, NewFile | None],
    seen: Mapping[Path, bytes | None] | None = None,
) -> None:
    """Write, change and remove files below a folder, all or none of them.

    Folders are created where needed, and removed if they are empty afterwards. No link is followed.

    Args:
        folder: it must exist; its lock is held meanwhile (`locks.locked_in_place`).
        files: path → its new state; None removes a file or a whole folder.
        seen: path → what the decision to change was based on; None for a missing file.

    Raises:
        InputError: a path leads through a link or is not a file, or a file is read-only.
        WorkError: somebody else changed a file of `seen`, or the system refuses; the folder is as it was.
    """
    with locked_in_place(folder):
        for path, content in (seen or {}).items():
            _check_unchanged(path, content, files.get(path))
        for path, new in files.items():
            _check_place(path, folder, new)
        place, steps = _staging(folder), list[_Step]()
        created: list[Path] = []
        try:
            steps.extend(_made(files, place))
            created.extend(_with_folders(steps))
            for step in steps:
                _put(step)
        except BaseException as error:
            kept = _put_back(steps, created)
            if kept:
                raise WorkError(f"could not be put back; the old file is {kept[0].old}", path=kept[0].path) from error
            remove(place)
            if isinstance(error, OSError):
                raise WorkError(f"{error.strerror or error}; nothing was changed", path=_meant(error, steps)) from error
            raise
        remove(place)
        for path in files:
            _remove_empty_folders(path, folder)


def _check_unchanged(path: Path, content: bytes | None, new: NewFile | None) -> None:
    now = _content(path)
    if now != content and (new is None or now != new.content):
        hint = "Another program wrote it in the meantime: run this again."
        raise WorkError("has changed since it was read; nothing was changed", path=path, hint=hint)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else None
    except OSError:
        return None


def _check_place(path: Path, folder: Path, new: NewFile | None) -> None:
    for parent in list(path.relative_to(folder).parents)[:-1]:
        state = _state(folder / parent)
        if state is None:
            continue
        if stat.S_ISLNK(state.st_mode):
            raise InputError("is a link; files are only written into the folder itself", path=folder / parent)
        if not stat.S_ISDIR(state.st_mode):
            raise InputError("is a file where a folder must be", path=folder / parent, hint="Move it away.")
    state = _state(path)
    if new is None or state is None or stat.S_ISLNK(state.st_mode):
        return
    if not stat.S_ISREG(state.st_mode):
        raise InputError("is not a file, but one must be written here", path=path, hint="Move it away.")
    if new.content is not None and not state.st_mode & 0o200:
        raise InputError("is read-only", path=path, hint=f"Let it be written: chmod u+w {path}")


def _state(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _staging(folder: Path) -> Path:
    try:
        return new_folder(folder)
    except OSError as error:
        raise WorkError(f"cannot be written to: {error.strerror or error}", path=folder) from error


def _made(files: Mapping[Path, NewFile | None], place: Path) -> Iterator[_Step]:
    """Make all new files, with their modes."""
    for number, (path, new) in enumerate(files.items()):
        step = _Step(path, place / f"{number}.old")
        state = _state(path)
        mode = stat.S_IMODE(state.st_mode) if state is not None and stat.S_ISREG(state.st_mode) else None
        if new is not None and new.content is not None:
            step.new = place / f"{number}.new"
            step.new.write_bytes(new.content)
            step.new.chmod(_mode(stat.S_IMODE(step.new.lstat().st_mode) if mode is None else mode, new.executable))
        elif new is not None and mode is not None:
            step.mode = _mode(mode, new.executable)
        yield step


def _with_folders(steps: Iterable[_Step]) -> Iterator[Path]:
    """Create the folders that new files need, and give each."""
    for step in steps:
        if step.new is not None:
            for parent in [parent for parent in reversed(step.path.parents) if not parent.exists()]:
                parent.mkdir()
                yield parent


def _put(step: _Step) -> None:
    """Put one new file in place, or take one away."""
    before = _state(step.path)
    if step.mode is not None:
        step.mode_before = stat.S_IMODE(step.path.lstat().st_mode)
        step.path.chmod(step.mode)
    elif step.new is None:
        if before is not None:
            step.path.rename(step.old)
    else:
        if before is not None:
            _keep(step)
        step.new.replace(step.path)
        step.created = before is None


def _keep(step: _Step) -> None:
    """Keep the old file under a second name, so that its own name is never without one, if the system can."""
    try:
        os.link(step.path, step.old, follow_symlinks=False)
    except (OSError, NotImplementedError):
        step.path.rename(step.old)


def _put_back(steps: Sequence[_Step], created: Sequence[Path]) -> list[_Step]:
    """Restore all old files; return the steps whose old file could not be put back."""
    lost = []
    for step in reversed(steps):
        try:
            if step.mode_before is not None:
                step.path.chmod(step.mode_before)
            elif _state(step.old) is not None:
                step.old.replace(step.path)
            elif step.created:
                step.path.unlink()
        except OSError:
            lost.append(step)
    for parent in reversed(created):
        with suppress(OSError):
            parent.rmdir()
    return lost


def _meant(error: OSError, steps: Sequence[_Step]) -> Path | None:
    """The path that an error of the system is about, not the temporary name."""
    named = error.filename2 or error.filename
    found = (step.path for step in steps if named in (str(step.new), str(step.old)))
    return next(found, Path(named) if isinstance(named, str) else None)


def _mode(mode: int, executable: bool | None) -> int:
    if executable is None:
        return mode
    return mode | _ALL_MAY_RUN if executable else mode & ~_ALL_MAY_RUN


def _remove_empty_folders(path: Path, folder: Path) -> None:
    """Remove the folders above a removed file that are empty now."""
    for parent in path.parents:
        if parent == folder or not parent.is_relative_to(folder):
            return
        try:
            parent.rmdir()
        except OSError:  # it is not empty, or somebody else removed it
            return

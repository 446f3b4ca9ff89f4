"""Files written whole: the changes to several of a folder as one set, shown as a diff and applied all or none, or one
file alone.

What holds: a file is always whole, old or new. If anything fails or is interrupted, the folder is as before, as far as
the system still lets us rename and delete. A process that is killed, or a machine that stops, half way through the
renaming (milliseconds) leaves some files old and some new; the same work done again finishes it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.locks import locked_in_place
from feedstock_tools.files.temporary import new_folder, owned_name, remove, remove_leftovers
from feedstock_tools.reading import LARGEST_SCRIPT, read_bytes
from feedstock_tools.wording import named, size_text

_ALL_MAY_RUN = 0o111


@dataclass(frozen=True)
class Changes:
    """The changes to the files below a folder, by path; `None` deletes a file or a whole folder.

    `executable`: the files whose executable bits change. `seen`: the content of all files when they were compared, None
    for missing ones, also of those that stay; the changes belong to these.
    """

    folder: Path
    files: Mapping[Path, bytes | None]
    executable: Mapping[Path, bool] = field(default_factory=dict)
    seen: Mapping[Path, bytes | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.files or self.executable)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that change: those with other contents, then those with other executable bits alone."""
        return tuple(dict.fromkeys((*self.files, *self.executable)))

    def listed(self) -> tuple[tuple[str, str], ...]:
        """What happens to each file, by path: `add`, `change`, `delete`, `mode +x` or `mode -x`, and the path."""
        kinds = {path: "delete" if content is None else "change" for path, content in self.files.items()}
        kinds |= {path: "add" for path in self.files if kinds[path] == "change" and not path.is_file()}
        modes = {path: f"mode {'+x' if way else '-x'}" for path, way in self.executable.items() if path not in kinds}
        found = [*sorted(kinds.items()), *sorted(modes.items())]
        return tuple((kind, path.relative_to(self.folder).as_posix()) for path, kind in found)

    def diff(self) -> Iterator[str]:
        """The lines of a unified diff of all changes, each with its line ending."""
        for path, content in sorted(self.files.items()):
            before = read_bytes(path, LARGEST_SCRIPT, within=self.folder) if path.is_file() else None
            yield from file_diff(path.relative_to(self.folder).as_posix(), before, content)

    def apply(self) -> None:
        """Apply the changes, all or none of them; each file is replaced atomically.

        The folder and those in it are created where needed; the latter are removed if they are empty afterwards. No
        link is followed. The folder's lock is held meanwhile (`locks.locked_in_place`).

        Raises:
            InputError: a path leads through a link or is not a file, or a file is read-only.
            WorkError: somebody else changed a file of `seen`, or the system refuses; the files are as they were.
        """
        if not self:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WorkError(f"cannot write: {error.strerror or error}", path=self.folder) from error
        with locked_in_place(self.folder):
            for path, content in self.seen.items():
                _check_unchanged(path, content, self.files.get(path))
            for path in self.paths:
                _check_place(path, self)
            _replace(self)


def file_diff(name: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    """The lines of a unified diff of one file, each with its line ending; None: there is no file."""
    import difflib

    name = named(name)
    yield from (
        line if line.endswith("\n") else f"{line}\n"
        for line in difflib.unified_diff(
            (before or b"").decode(errors="replace").splitlines(True),
            (after or b"").decode(errors="replace").splitlines(True),
            f"a/{name}" if before is not None else "/dev/null",
            f"b/{name}" if after is not None else "/dev/null",
        )
    )


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


def _replace(changes: Changes) -> None:
    place, steps = _staging(changes.folder), list[_Step]()
    created: list[Path] = []
    try:
        steps.extend(_steps_of(changes, place))
        created.extend(_create_folders(steps))
        for step in steps:
            _put_in_place(step)
    except BaseException as error:
        kept = _put_back(steps, created)
        if kept:
            raise WorkError(f"could not be put back; the old file is {kept[0].old}", path=kept[0].path) from error
        remove(place)
        if isinstance(error, OSError):
            raise WorkError(f"{error.strerror or error}; nothing was changed", path=_path_of(error, steps)) from error
        raise
    remove(place)
    for path in changes.paths:
        _remove_empty_folders(path, changes.folder)


def _check_unchanged(path: Path, content: bytes | None, wanted: bytes | None) -> None:
    now = _content(path)
    if now != content and (wanted is None or now != wanted):
        hint = "Another program wrote it in the meantime: run this again."
        raise WorkError("has changed since it was read; nothing was changed", path=path, hint=hint)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else None
    except OSError:
        return None


def _check_place(path: Path, changes: Changes) -> None:
    folder, content = changes.folder, changes.files.get(path)
    for parent in list(path.relative_to(folder).parents)[:-1]:
        state = _state(folder / parent)
        if state is None:
            continue
        if stat.S_ISLNK(state.st_mode):
            raise InputError("is a link; files are only written into the folder itself", path=folder / parent)
        if not stat.S_ISDIR(state.st_mode):
            raise InputError("is a file where a folder must be", path=folder / parent, hint="Move it away.")
    state = _state(path)
    is_deleted = path in changes.files and content is None
    if is_deleted or state is None or stat.S_ISLNK(state.st_mode):
        return
    if not stat.S_ISREG(state.st_mode):
        raise InputError("is not a file, but one must be written here", path=path, hint="Move it away.")
    if content is not None and not state.st_mode & 0o200:
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


def _steps_of(changes: Changes, place: Path) -> Iterator[_Step]:
    for number, path in enumerate(changes.paths):
        step = _Step(path, place / f"{number}.old")
        content, executable = changes.files.get(path), changes.executable.get(path)
        state = _state(path)
        mode = stat.S_IMODE(state.st_mode) if state is not None and stat.S_ISREG(state.st_mode) else None
        if content is not None:
            step.new = place / f"{number}.new"
            step.new.write_bytes(content)
            step.new.chmod(_mode(stat.S_IMODE(step.new.lstat().st_mode) if mode is None else mode, executable))
        elif path not in changes.files and mode is not None:
            step.mode = _mode(mode, executable)
        yield step


def _create_folders(steps: Iterable[_Step]) -> Iterator[Path]:
    for step in steps:
        if step.new is not None:
            for parent in [parent for parent in reversed(step.path.parents) if not parent.exists()]:
                parent.mkdir()
                yield parent


def _put_in_place(step: _Step) -> None:
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
            elif _state(step.old) is not None and not _is_same(step.old, step.path):
                step.old.replace(step.path)
            elif step.created:
                step.path.unlink()
        except OSError:
            lost.append(step)
    for parent in reversed(created):
        with suppress(OSError):
            parent.rmdir()
    return lost


def _is_same(old: Path, path: Path) -> bool:
    """Whether the kept file is still in its place, under its own name too."""
    state, kept = _state(path), _state(old)
    return state is not None and kept is not None and os.path.samestat(state, kept)


def _path_of(error: OSError, steps: Sequence[_Step]) -> Path | None:
    """The path that an error of the system is about, not the temporary name."""
    named = error.filename2 or error.filename
    found = (step.path for step in steps if named in (str(step.new), str(step.old)))
    return next(found, Path(named) if isinstance(named, str) else None)


def _mode(mode: int, executable: bool | None) -> int:
    if executable is None:
        return mode
    return mode | _ALL_MAY_RUN if executable else mode & ~_ALL_MAY_RUN


def _remove_empty_folders(path: Path, folder: Path) -> None:
    for parent in path.parents:
        if parent == folder or not parent.is_relative_to(folder):
            return
        try:
            parent.rmdir()
        except OSError:  # it is not empty, or somebody else removed it
            return


@contextmanager
def replacing(path: Path, *, message: str = "cannot write", hint: str | None = None) -> Iterator[Path]:
    """A temporary path beside `path`; the file written there replaces `path` at the end of the block.

    Missing folders are created. A replaced file passes on its mode; no file stays behind if the block
    fails. The temporary name carries its owner (`temporary.owned_name`), is short whatever `path` is called, and is not
    used by any other process or thread; what killed processes left in the folder is removed.

    Args:
        message: the message before the system's reason.
        hint: what to do about it.

    Raises:
        WorkError: the system refuses, also within the block.
    """
    part = path.with_name(owned_name())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent)
        yield part
        if path.is_file():
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    except OSError as error:
        raise WorkError(f"{message}: {error.strerror or error}", path=path, hint=hint) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | str, *, hint: str | None = None) -> None:
    """Replace or create a file with bytes or a text, which is written as UTF-8 with unchanged line breaks.

    Raises:
        WorkError: it cannot be written; the old file is unchanged.
    """
    with replacing(path, hint=hint) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def require_room(folder: Path, size: int, what: str) -> None:
    """Refuse what the disk of a folder has no space for, before anything is written.

    Args:
        size: the bytes that it needs.
        what: its name.

    Raises:
        WorkError: fewer are free.
    """
    free = shutil.disk_usage(folder).free
    if size > free:
        message = f"the disk has no room for {what} ({size_text(size)}): {size_text(free)} are free in {folder}"
        raise WorkError(message, hint="Free some space, or choose a folder on another disk.")

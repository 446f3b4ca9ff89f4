"""Write the configurations of a feedstock: new and changed files; obsolete ones are deleted."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.files.sets import NewFile, replace_files
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import LARGEST_SCRIPT, read_bytes
from feedstock_tools.rerender.configurations.configuration import CI_SUPPORT, platform_of
from feedstock_tools.rerender.smithy.tree import Tree


@dataclass(frozen=True)
class Changes:
    """The changes to the files of a feedstock; `None` deletes a file.

    `executable`: the files whose executable bits change. `seen`: the content of all files when they were compared, None
    for missing ones, also of those that stay; the changes belong to these.
    """

    feedstock: Path
    files: Mapping[Path, bytes | None]
    executable: Mapping[Path, bool] = field(default_factory=dict)
    seen: Mapping[Path, bytes | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.files or self.executable)

    @property
    def count(self) -> int:
        """How many files change."""
        return len(self.files.keys() | self.executable.keys())

    def listed(self) -> tuple[tuple[str, str], ...]:
        """What happens to each file, by path: `add`, `change`, `delete`, `mode +x` or `mode -x`, and the path."""
        kinds = {path: "delete" if content is None else "change" for path, content in self.files.items()}
        kinds |= {path: "add" for path in self.files if kinds[path] == "change" and not path.is_file()}
        modes = {path: f"mode {'+x' if way else '-x'}" for path, way in self.executable.items() if path not in kinds}
        found = [*sorted(kinds.items()), *sorted(modes.items())]
        return tuple((kind, path.relative_to(self.feedstock).as_posix()) for path, kind in found)

    def diff(self) -> Iterator[str]:
        """The lines of a unified diff of all changes, each with its line ending."""
        for path, content in sorted(self.files.items()):
            name = path.relative_to(self.feedstock).as_posix()
            before = _content(path, self.feedstock).decode(errors="replace").splitlines(True)
            after = [] if content is None else content.decode().splitlines(True)
            for line in difflib.unified_diff(
                before, after, f"a/{name}" if before else "/dev/null", f"b/{name}" if after else "/dev/null"
            ):
                yield line if line.endswith("\n") else f"{line}\n"

    def apply(self) -> None:
        """Apply the changes, all or none of them; each file is replaced atomically (`files.sets` says what holds).

        Raises:
            InputError: a file cannot be written: it is read-only, or a path leads through a link.
            WorkError: a file has changed since the changes were found, or the system refuses.
        """
        files: dict[Path, NewFile | None] = {
            path: None if content is None else NewFile(content, self.executable.get(path))
            for path, content in self.files.items()
        }
        files |= {path: NewFile(None, way) for path, way in self.executable.items() if path not in files}
        if files:
            replace_files(self.feedstock, files, self.seen)


def _content(path: Path, feedstock: Path) -> bytes:
    """The bytes of a file of the feedstock; empty if there is none."""
    return read_bytes(path, LARGEST_SCRIPT, within=feedstock) if path.is_file() else b""


def with_tree(changes: Changes, tree: Tree) -> Changes:
    """The changes of `.ci_support` with those that give a feedstock a whole tree.

    Raises:
        InputError: a file would be written through a link.
    """
    feedstock = changes.feedstock
    files: dict[Path, bytes | None] = dict(changes.files)
    executable, seen = {}, dict(changes.seen)
    for name, file in tree.files.items():
        path = feedstock / name
        for part in (path, *path.parents[: len(Path(name).parents) - 1]):
            if part.is_symlink():
                raise InputError("is a link; a rerender writes into the feedstock alone", path=part)
        exists = path.is_file()
        seen[path] = _content(path, feedstock) if exists else None
        if seen[path] != file.content:
            files[path] = file.content
        if file.executable != (exists and bool(path.stat().st_mode & 0o100)):
            executable[path] = file.executable
    files.update(dict.fromkeys(feedstock / name for name in tree.removed))
    seen.update(dict.fromkeys(feedstock / name for name in tree.absent))
    return replace(changes, files=files, executable=executable, seen=seen)


def changes(
    feedstock: Path,
    wanted: Mapping[str, bytes],
    finished: tuple[Path, ...] = (),
    platforms: tuple[Platform, ...] | None = None,
    added: tuple[Path, ...] = (),
) -> Changes:
    """The changes after which `.ci_support` holds exactly the `wanted` files, without the `finished` migrations.

    `added`: migrations whose copies it holds, too.

    With `platforms`, files of other platforms stay as they are.

    Raises:
        InputError: a name leads out of the folder, or the folder is a link.
    """
    folder = feedstock / CI_SUPPORT
    if folder.is_symlink():
        raise InputError("is a link; configurations are only written into the feedstock itself", path=folder)
    files: dict[Path, bytes | None] = {}
    seen = {}
    for name, content in wanted.items():
        if Path(name).name != name or name.startswith("."):
            raise InputError(f"'{name}' is not a valid name for a configuration")
        path = folder / name
        seen[path] = _content(path, feedstock) if path.is_file() and not path.is_symlink() else None
        if seen[path] != content:
            files[path] = content
    for path in sorted(folder.glob("*.yaml")):
        if path.name not in wanted and (platforms is None or _is_of(path, platforms)):
            files[path] = None
    files.update(dict.fromkeys(finished))
    files.update((folder / "migrations" / path.name, read_bytes(path, within=None)) for path in added)
    return Changes(feedstock, files, seen=seen)


def _is_of(path: Path, platforms: tuple[Platform, ...]) -> bool:
    try:
        return platform_of(path, {}) in platforms
    except InputError:
        return False

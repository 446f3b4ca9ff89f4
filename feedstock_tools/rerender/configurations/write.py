"""Write the configurations of a feedstock: new and changed files; obsolete ones are deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.file_names import CI_SUPPORT
from feedstock_tools.files.changes import Changes
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import LARGEST_SCRIPT, read_bytes
from feedstock_tools.rerender.configurations.configuration import platform_of
from feedstock_tools.rerender.smithy.tree import Tree


def _content(path: Path, feedstock: Path) -> bytes:
    """The bytes of a file of the feedstock; empty if there is none."""
    return read_bytes(path, LARGEST_SCRIPT, within=feedstock) if path.is_file() else b""


def with_tree(changes: Changes, tree: Tree) -> Changes:
    """The changes of `.ci_support` with those that give a feedstock a whole tree.

    Raises:
        InputError: a file would be written through a link.
    """
    feedstock = changes.folder
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

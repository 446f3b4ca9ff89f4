"""Write the configurations of a feedstock: new and changed files; obsolete ones are deleted."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.configurations.configuration import CI_SUPPORT, platform_of
from feedstock_tools.writing import write_whole

__all__ = ["Changes", "changes"]


@dataclass(frozen=True)
class Changes:
    """The changes to the files of a feedstock; `None` deletes a file."""

    feedstock: Path
    files: Mapping[Path, bytes | None]

    def __bool__(self) -> bool:
        return bool(self.files)

    def diff(self) -> Iterator[str]:
        """The lines of a unified diff of all changes, each with its line ending."""
        for path, content in sorted(self.files.items()):
            name = path.relative_to(self.feedstock).as_posix()
            before = path.read_text(encoding="utf-8", errors="replace").splitlines(True) if path.is_file() else []
            after = [] if content is None else content.decode().splitlines(True)
            for line in difflib.unified_diff(
                before, after, f"a/{name}" if before else "/dev/null", f"b/{name}" if after else "/dev/null"
            ):
                yield line if line.endswith("\n") else f"{line}\n"

    def apply(self) -> None:
        """Apply the changes; each file is replaced atomically.

        Raises:
            WorkError: the system refuses, for lack of space or permission; files written before stay.
        """
        for path, content in self.files.items():
            if content is not None:
                write_whole(path, content)
                continue
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise WorkError(f"cannot remove: {error.strerror or error}", path=path) from error


def changes(
    feedstock: Path,
    wanted: Mapping[str, bytes],
    finished: tuple[Path, ...] = (),
    platforms: tuple[Platform, ...] | None = None,
) -> Changes:
    """The changes after which `.ci_support` holds exactly the `wanted` files, without the `finished` migrations.

    With `platforms`, files of other platforms stay as they are.

    Raises:
        InputError: a name leads out of the folder, or the folder is a link.
    """
    folder = feedstock / CI_SUPPORT
    if folder.is_symlink():
        raise InputError("is a link; configurations are only written into the feedstock itself", path=folder)
    files: dict[Path, bytes | None] = {}
    for name, content in wanted.items():
        if Path(name).name != name or name.startswith("."):
            raise InputError(f"'{name}' is not a valid name for a configuration")
        path = folder / name
        if not path.is_file() or path.is_symlink() or path.read_bytes() != content:
            files[path] = content
    for path in sorted(folder.glob("*.yaml")):
        if path.name not in wanted and (platforms is None or _is_of(path, platforms)):
            files[path] = None
    files.update(dict.fromkeys(finished))
    return Changes(feedstock, files)


def _is_of(path: Path, platforms: tuple[Platform, ...]) -> bool:
    try:
        return platform_of(path, {}) in platforms
    except InputError:
        return False

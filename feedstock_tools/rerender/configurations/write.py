"""Write the configurations of a feedstock: new and changed files, and away with those that are none any more."""

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
    """What is to be done to the files of a feedstock; `None` stands for a file that goes."""

    feedstock: Path
    files: Mapping[Path, bytes | None]

    def __bool__(self) -> bool:
        return bool(self.files)

    def diff(self) -> Iterator[str]:
        """The lines of a unified diff of all changes, each with its end of line."""
        for path, content in sorted(self.files.items()):
            name = path.relative_to(self.feedstock).as_posix()
            before = path.read_text(encoding="utf-8", errors="replace").splitlines(True) if path.is_file() else []
            after = [] if content is None else content.decode().splitlines(True)
            for line in difflib.unified_diff(
                before, after, f"a/{name}" if before else "/dev/null", f"b/{name}" if after else "/dev/null"
            ):
                yield line if line.endswith("\n") else f"{line}\n"

    def apply(self) -> None:
        """Do it; every file is replaced in one step.

        Raises:
            WorkError: the system refuses, for want of space or of rights; files written until then stay as they are.
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
    """What has to change so that `.ci_support` holds just the `wanted` files, and the `finished` migrations are gone.

    With `platforms`, files of other platforms stay as they are.

    Raises:
        InputError: a name would lead out of the folder, or the folder is a link to somewhere else.
    """
    folder = feedstock / CI_SUPPORT
    if folder.is_symlink():
        raise InputError("is a link; configurations are written into the feedstock alone", path=folder)
    files: dict[Path, bytes | None] = {}
    for name, content in wanted.items():
        if Path(name).name != name or name.startswith("."):
            raise InputError(f"'{name}' is no name for a configuration")
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

"""What a rerender changes in a feedstock: files written and deleted, and platforms that lose all jobs of a kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.files.changes import Changes
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import CI_SUPPORT, LARGEST_SCRIPT, LARGEST_SETTINGS, read_bytes
from feedstock_tools.rerender.configuration import Configuration, platform_of
from feedstock_tools.rerender.smithy import Tree


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


def configuration_changes(
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


_CUDA = "cuda_compiler_version"
#: The values of the key in a file as conda-smithy dumps it, which is quicker to find than to parse.
_VALUES = re.compile(rb"^cuda_compiler_version:\n((?:- .*\n)+)", re.MULTILINE)
_NONE = "None"


@dataclass(frozen=True, slots=True)
class LostJobs:
    """All jobs of a kind (`CPU`, `CUDA`) of a platform; `count` is how many there were."""

    platform: Platform
    kind: str
    count: int

    def __str__(self) -> str:
        wish = "cpu" if self.kind == "CPU" else "cuda"
        jobs = "its only" if self.count == 1 else f"all {self.count}"
        ask = f"feedstock-tools why --not {wish} --not {self.platform.subdir}"
        return f"{self.platform.subdir} loses {jobs} {self.kind} job{'' if self.count == 1 else 's'}: `{ask}` says why"


def lost_jobs(
    feedstock: Path, configurations: Sequence[Configuration], platforms: Sequence[Platform] | None = None
) -> tuple[LostJobs, ...]:
    """The kinds of jobs that `.ci_support` has now and that `configurations` lack, by platform.

    Args:
        platforms: those that were rerendered; None: all.

    Raises:
        InputError: a file of `.ci_support` cannot be read.
    """
    left: dict[Platform, set[str]] = {}
    for configuration in configurations:
        left.setdefault(configuration.platform, set()).update(_kinds(configuration.values.get(_CUDA, ())))
    before: dict[tuple[Platform, str], int] = {}
    for platform, values in _present(feedstock):
        for kind in _kinds(values) if platforms is None or platform in platforms else ():
            before[platform, kind] = before.get((platform, kind), 0) + 1
    lost = [(platform, kind) for platform, kind in before if kind not in left.get(platform, ())]
    return tuple(LostJobs(platform, kind, before[platform, kind]) for platform, kind in sorted(lost))


def _kinds(values: Sequence[str]) -> set[str]:
    """The kinds of a job with these CUDA versions; one without any is a CPU job."""
    return {"CPU" if value == _NONE else "CUDA" for value in values} or {"CPU"}


def _present(feedstock: Path) -> Iterator[tuple[Platform, list[str]]]:
    """The platform and the CUDA versions of each file."""
    folder = feedstock / CI_SUPPORT
    for path in sorted(folder.glob("*.yaml")) if not folder.is_symlink() else ():
        try:
            platform = platform_of(path, {})
        except InputError:
            continue  # not one of conda-smithy's names
        found = _VALUES.search(read_bytes(path, LARGEST_SETTINGS, within=feedstock))
        items = found[1].decode(errors="replace").splitlines() if found else []
        yield platform, [item[2:].strip("'\"") for item in items]

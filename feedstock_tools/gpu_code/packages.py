"""The GPU code of packages, file by file, and the architectures that it lacks."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from feedstock_tools.channel.archive import PACKAGE_SUFFIXES, unpack
from feedstock_tools.errors import WorkError
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.gpu_code.architecture import Architecture
from feedstock_tools.gpu_code.archives import Unread, files_of, is_archive
from feedstock_tools.gpu_code.images import GpuCode, gpu_code_in_file


def contents(path: Path) -> Mapping[str, tuple[GpuCode, ...] | Unread]:
    """The GPU code of a package, an archive, a folder or a single file, by the file's path in it.

    Files without any are left out; archives inside that cannot be read are in it.

    Raises:
        WorkError: the path is missing, or is a package or an archive that cannot be read.
    """
    if not path.exists():
        raise WorkError("there is no such file", path=path)
    found = {name: file if isinstance(file, Unread) else gpu_code_in_file(file) for name, file in _files(path)}
    return {name: found[name] for name in sorted(found) if found[name]}


def gpu_code(path: Path) -> Mapping[str, tuple[GpuCode, ...]]:
    """The same without the archives that cannot be read."""
    return with_code(contents(path))


def with_code(found: Mapping[str, tuple[GpuCode, ...] | Unread]) -> Mapping[str, tuple[GpuCode, ...]]:
    """The files that have GPU code, without the archives that cannot be read."""
    return {name: codes for name, codes in found.items() if not isinstance(codes, Unread)}


def _files(path: Path) -> Iterator[tuple[str, Path | Unread]]:
    """The files at a path, those in an archive included; each exists until the next one is taken."""
    if path.is_dir():
        for name in _regular_files(path):
            yield from _inside(path / name, name)
    elif path.name.endswith(PACKAGE_SUFFIXES[0]):
        with temporary_folder() as folder:
            unpack(path, folder)
            yield from _files(folder)
    else:
        yield from ((inner or path.name, found) for inner, found in _of_file(path))


def _regular_files(folder: Path) -> Iterator[str]:
    """The regular files below a folder, by their paths in it."""
    for place, _, names in os.walk(folder):
        relative = Path(place).relative_to(folder).as_posix()
        for name in names:
            if stat.S_ISREG(os.lstat(f"{place}/{name}").st_mode):
                yield name if relative == "." else f"{relative}/{name}"


def _inside(file: Path, name: str) -> Iterator[tuple[str, Path | Unread]]:
    """A file of a folder, or what it contains."""
    try:
        yield from ((f"{name}/{inner}" if inner else name, found) for inner, found in _of_file(file))
    except WorkError as error:
        yield name, Unread(error.mistakes[0].message)


def _of_file(path: Path) -> Iterator[tuple[str, Path | Unread]]:
    """A file under no name, or the files that it contains."""
    if not is_archive(path):
        yield "", path
        return
    yield from files_of(path)


def lacking(
    promised: Iterable[Architecture], codes_of_files: Mapping[str, tuple[GpuCode, ...]]
) -> tuple[Architecture, ...]:
    """The required architectures that no file has, in the order of the requirement."""
    present = {code.architecture for codes in codes_of_files.values() for code in codes if code.kind != "LTO"}
    return tuple(architecture for architecture in promised if architecture not in present)


def architecture_names(codes: Iterable[GpuCode]) -> list[str]:
    """Each architecture once, machine code first, as in lists for nvcc; LTO's as `lto_90`."""
    kinds = {(code.kind == "LTO", code.architecture.ptx, code.architecture.number, _name(code)) for code in codes}
    return [name for *_, name in sorted(kinds)]


def _name(code: GpuCode) -> str:
    return str(code.architecture).replace("sm_", "lto_") if code.kind == "LTO" else str(code.architecture)

"""The GPU code of packages, file by file, and the architectures that it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from feedstock_tools.channel.archive import PACKAGE_SUFFIXES, unpack
from feedstock_tools.errors import WorkError
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.gpu_code.architecture import Architecture
from feedstock_tools.gpu_code.images import GpuCode, gpu_code_in_file

__all__ = ["architecture_names", "gpu_code", "lacking"]


def gpu_code(path: Path) -> Mapping[str, tuple[GpuCode, ...]]:
    """The GPU code of a package, a folder or a single file, by the file's path in it; files without any are left out.

    Raises:
        WorkError: the path is missing or is not a readable package.
    """
    if path.is_dir():
        return _below(path)
    if not path.is_file():
        raise WorkError("there is no such file", path=path)
    if not path.name.endswith(PACKAGE_SUFFIXES):
        codes_in_file = gpu_code_in_file(path)
        return {path.name: codes_in_file} if codes_in_file else {}
    with temporary_folder() as folder:
        unpack(path, folder)
        return _below(folder)


def _below(folder: Path) -> dict[str, tuple[GpuCode, ...]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    codes = {path.relative_to(folder).as_posix(): gpu_code_in_file(path) for path in files}
    return {name: codes_in_file for name, codes_in_file in codes.items() if codes_in_file}


def lacking(
    promised: Iterable[Architecture], codes_of_files: Mapping[str, tuple[GpuCode, ...]]
) -> tuple[Architecture, ...]:
    """The required architectures that no file has, in the order of the requirement."""
    there = {code.architecture for codes in codes_of_files.values() for code in codes if code.kind != "LTO"}
    return tuple(architecture for architecture in promised if architecture not in there)


def architecture_names(codes: Iterable[GpuCode]) -> list[str]:
    """Each architecture once, machine code first, as in lists for nvcc; LTO's as `lto_90`."""
    kinds = {(code.kind == "LTO", code.architecture.ptx, code.architecture.number, _name(code)) for code in codes}
    return [name for *_, name in sorted(kinds)]


def _name(code: GpuCode) -> str:
    return str(code.architecture).replace("sm_", "lto_") if code.kind == "LTO" else str(code.architecture)

"""A hash over the inputs of this machine's stand-in channel, cheap enough to compute in every run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from feedstock_tools.data import data_folder
from feedstock_tools.platforms import Platform

#: Increased when the same data yields different packages, so that older channels do not count as current.
STAND_IN_FORMAT = 10
_COMPILERS = ("gcc", "clang", "cc", "g++", "clang++", "c++")
#: The bytes at either end of a program that identify it.
_ENOUGH = 1 << 20
#: Stands for the comments above the data on packages, which change no build. It is in every identity: never change it.
_HEAD = b"""\
# What the stand-in channel holds: the metadata of real packages, as the recipes say it at the commits named here.
# docs/stand-in-channel.md describes the format; feedstock_tools/facts/packages.py reads and checks it.

"""


def stand_in_identity(
    platform: Platform, *, path: str | None = None, toolkits: Path | None = None, cudas: Collection[str] | None = None
) -> str:
    """The identity of the channel that `ensure_stand_in_channel` would return, without creating it.

    It is the same on every machine with the same programs, wherever these are.

    Args:
        cudas: the versions of CUDA that a build uses: toolkits of other majors are none of its inputs; None: all count.
    """
    return with_toolkits(without_toolkits(platform, path), toolkit_identities(toolkits), cudas)


def without_toolkits(platform: Platform, path: str | None) -> tuple[str, ...]:
    """What the identity consists of but for the toolkits of CUDA."""
    from feedstock_tools.builds.stand_in.compilers import ZIG_VERSION, cross_gcc, cross_programs, zig_compiles_for

    compilers = _programs(_compilers(path)) or [_compiler_without_path()]
    crosses = platform != Platform.here()
    cross = _programs(cross_programs(platform, path=path)) if crosses else []
    zig = (
        (f"zig {ZIG_VERSION}",)
        if crosses and cross_gcc(platform, path=path) is None and zig_compiles_for(platform)
        else ()
    )
    packages = _digest_of_packages((data_folder("variants") / "packages.yaml").read_bytes())
    return (str(STAND_IN_FORMAT), platform.subdir, packages, *compilers, *cross, *zig)


def toolkit_identities(toolkits: Path | None) -> tuple[tuple[str, str], ...]:
    """The fetched toolkits: major version and identity of each."""
    from feedstock_tools.builds.stand_in.toolkits import found_toolkits

    return tuple((_major(each.version), each.identity) for each in found_toolkits(toolkits))


def with_toolkits(parts: Iterable[str], toolkits: Iterable[tuple[str, str]], cudas: Collection[str] | None) -> str:
    """The identity, with those toolkits that versions of CUDA use; None: with all."""
    used = None if cudas is None else {_major(version) for version in cudas}  # a runtime serves its major version
    return digest(*parts, *(identity for major, identity in toolkits if used is None or major in used))


def _major(version: str) -> str:
    return version.partition(".")[0]


def programs_called(platform: Platform, *, path: str | None = None) -> list[str]:
    """The programs that the channel's packages call by their paths, which its identity does not contain."""
    from feedstock_tools.builds.stand_in.compilers import cross_programs

    compilers = [f"{name} {Path(name).stat().st_mtime_ns} {Path(name).stat().st_size}" for name in _compilers(path)]
    cross = cross_programs(platform, path=path) if platform != Platform.here() else ()
    return [*(compilers or [sys.executable]), *cross]


def _compilers(path: str | None) -> list[str]:
    return [program for name in _COMPILERS if (program := shutil.which(name, path=path))]


def _programs(paths: Iterable[str]) -> list[str]:
    return [f"{Path(path).name} {_digest_of_program(os.path.realpath(path))}" for path in paths]


@cache
def _digest_of_program(path: str) -> str:
    """The hash of a program; of a large one its size, its beginning and its end, which no other version shares."""
    program = Path(path)
    size = program.stat().st_size
    ends = b""
    with suppress(PermissionError), program.open("rb") as file:
        ends = file.read(_ENOUGH)
        file.seek(max(_ENOUGH, size - _ENOUGH))
        ends += file.read()
    return sha256(b"%d\n" % size + ends).hexdigest()


def _compiler_without_path() -> str:
    """The compiler of a machine that has none on PATH, whether it has been fetched or not."""
    from feedstock_tools.builds.stand_in.compilers import ZIG_VERSION, zig_compiles_for

    return f"zig {ZIG_VERSION}" if zig_compiles_for(Platform.here()) else "no compiler"


def _digest_of_packages(content: bytes) -> str:
    """The hash of the data on packages, without the comments above them."""
    at = content.find(b"sources:")
    return sha256(_HEAD + content[at:] if at > 0 else content).hexdigest()


def digest(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()

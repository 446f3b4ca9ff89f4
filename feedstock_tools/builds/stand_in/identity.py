"""A hash over the inputs of this machine's stand-in channel, cheap enough to compute in every run."""

from __future__ import annotations

import shutil
import sys
from hashlib import sha256
from pathlib import Path

from feedstock_tools.data import data_folder
from feedstock_tools.platforms import Platform

__all__ = ["STAND_IN_FORMAT", "digest", "stand_in_identities"]

#: Increased when the same data yields different packages, so that older channels do not count as current.
STAND_IN_FORMAT = 8
#: What stood above the data on packages when ledgers were first made.
_HEAD = b"""\
# What the stand-in channel holds: the metadata of real packages, as the recipes say it at the commits named here.
# docs/stand-in-channel.md describes the format; feedstock_tools/facts/packages.py reads and checks it.

"""


def stand_in_identities(
    platform: Platform, *, path: str | None = None, toolkits: Path | None = None
) -> tuple[str, ...]:
    """The identities of the stand-in channel that `ensure_stand_in_channel` would return, without creating it.

    New builds are recorded under the first. The others are those of earlier versions: without a compiler on PATH, the
    identity once contained the path of the interpreter, so that two ways to start a build made everything twice.
    """
    from feedstock_tools.builds.stand_in.compilers import cross_gcc, cross_programs
    from feedstock_tools.builds.stand_in.toolkits import found_toolkits
    from feedstock_tools.builds.stand_in.zig import ZIG_VERSION, zig_compiles_for

    compilers = [shutil.which(name, path=path) for name in ("gcc", "clang", "cc", "g++", "clang++", "c++")]
    stats = [f"{name} {Path(name).stat().st_mtime_ns} {Path(name).stat().st_size}" for name in compilers if name]
    forms = [stats] if stats else [[_compiler_of_last_resort()], [sys.executable]]
    packages = _digest_of_packages((data_folder("variants") / "packages.yaml").read_bytes())
    cross: list[str] = []
    if platform != Platform.here():
        cross += cross_programs(platform, path=path)
        if cross_gcc(platform, path=path) is None and zig_compiles_for(platform):
            cross.append(f"zig {ZIG_VERSION}")
    compilers_of_cuda = [toolkit.identity for toolkit in found_toolkits(toolkits)]
    return tuple(
        digest(str(STAND_IN_FORMAT), platform.subdir, packages, *native, *cross, *compilers_of_cuda) for native in forms
    )


def _compiler_of_last_resort() -> str:
    """The compiler of a machine that has none on PATH; whether it has been fetched does not matter."""
    from feedstock_tools.builds.stand_in.zig import ZIG_VERSION, zig_compiles_for

    return f"zig {ZIG_VERSION}" if zig_compiles_for(Platform.here()) else "no compiler"


def _digest_of_packages(content: bytes) -> str:
    """The hash of the data on packages, whatever the comments above them say: they change no build."""
    at = content.find(b"sources:")
    return sha256(_HEAD + content[at:] if at > 0 else content).hexdigest()


def digest(*parts: str) -> str:
    """A hash over some strings."""
    return sha256("\n".join(parts).encode()).hexdigest()

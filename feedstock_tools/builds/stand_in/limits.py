"""The limits of this machine's stand-in channel, with reasons, checked before anything is built."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from feedstock_tools.builds.stand_in.compilers import compiler_on_path, debian_compiler
from feedstock_tools.builds.stand_in.zig import fetch_zig, zig_compiles_for
from feedstock_tools.channel.web.pip import Watch, unwatched
from feedstock_tools.errors import WorkError
from feedstock_tools.platforms import Platform

_ENDING = "_compiler"
#: zip_keys bring `cuda_compiler` into rows that do not use it, and what a device compiler lacks its own message tells.
_NOT_CERTAIN = frozenset({"cuda"})


def compiled_languages(values: Mapping[str, str]) -> dict[str, str]:
    """The languages that a row compiles, with the name of the compiler: `{"c": "gcc"}`.

    A configuration has the key of a compiler where its recipe asks for that compiler.

    Args:
        values: variant key → value.
    """
    named = {key.removesuffix(_ENDING): value for key, value in values.items() if key.endswith(_ENDING)}
    return {name: value for name, value in named.items() if value not in ("", "None") and name not in _NOT_CERTAIN}


def why_not_on_stand_in(
    values: Mapping[str, str], platform: Platform, packages: Collection[str], lacking: str | None
) -> str | None:
    """The reason why a row cannot be built on the stand-in channel of a machine; None if it can.

    Args:
        values: variant key → value.
        platform: the target platform of the row.
        packages: the names of the channel's packages.
        lacking: why the machine has no compiler of C and C++ for the platform; None if it has one.
    """
    languages = compiled_languages(values)
    absent = [f"{name}_{platform}" for name in languages.values() if f"{name}_{platform}" not in packages]
    if absent:
        return f"the stand-in channel has no {' and no '.join(sorted(set(absent)))}"
    return lacking if languages else None


def lacking_compiler(platform: Platform, *, path: str | None = None) -> str | None:
    """Why PATH has no compiler of C for a platform; None if it has a working one."""
    if compiler_on_path(platform, path=path):
        return None
    package = debian_compiler(platform)
    return f"there is no C compiler for {platform} on PATH{f' (Debian: {package})' if package else ''}"


def provide_compiler(
    platform: Platform, folder: Path, machine: Mapping[str, str], watch: Watch = unwatched
) -> str | None:
    """Prepare a compiler for a platform: one on PATH, or zig, which is fetched if needed.

    Args:
        folder: the folder of zig.
        machine: the environment of the machine.

    Returns:
        The reason why there is no compiler; None if there is one.
    """
    lacking = lacking_compiler(platform, path=machine.get("PATH"))
    if lacking is None:
        return None
    if not zig_compiles_for(platform):
        return lacking
    try:
        fetch_zig(folder, machine, watch, lacking)
    except WorkError as error:
        return f"{lacking}, and {error.mistakes[0].message}"
    return None

"""The compilers and tools that builds need of this machine's stand-in channel: fetched before the first is built.

What the machine cannot have is found here too, each with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from feedstock_tools.builds.stand_in.compilers import (
    ZIG_VERSION,
    compiler_on_path,
    debian_compiler,
    fetch_zig,
    refused_compiler,
    zig_compiles_for,
    zig_folder,
)
from feedstock_tools.builds.stand_in.on_demand import Ties, fetch_wheels, unfetched, unmet
from feedstock_tools.builds.stand_in.python import find_pythons
from feedstock_tools.builds.stand_in.toolkits import DOWNLOAD, NVCC, fetchable, found_toolkits, toolkits_folder
from feedstock_tools.builds.stand_in.tools import fetch_tools, tools_folder, wheels_for, why_no_tools
from feedstock_tools.channel.pip import Watch, unwatched
from feedstock_tools.channel.properties import ChannelDemand
from feedstock_tools.data import cache_root
from feedstock_tools.errors import WorkError
from feedstock_tools.facts.packages import read_packages
from feedstock_tools.generate.package_names import OF_CMAKE, kept_names
from feedstock_tools.platforms import Platform
from feedstock_tools.versions import minor_of, parse_version
from feedstock_tools.wording import listed, some_of

#: What a device compiler lacks its own message tells.
_COMPILER_ROLES = ("c_compiler", "cxx_compiler")
#: The tool that a build runs with the Python of its row, which must be able to run then.
_RUNS_PYTHON = "pip"
#: Names of compilers and of C and C++ libraries, which no project of PyPI has.
_NO_WHEEL = re.compile(r"^lib|^cargo-|-dev$|_(linux|osx|win)-\w+$")
_MOST_NAMED = 6
_NO_MAPPING = "`feedstock-tools init --names newest` fetches the mapping that finds the wheels of Python packages"
_WHY = "requirements of the recipe, of which the stand-in channel makes packages"


def prepare(
    demands: Sequence[ChannelDemand], cache_folder: Path, machine: Mapping[str, str], watch: Watch
) -> dict[str, str]:
    """Make compilers and tools ready for rows that are built on the stand-in channel, fetching what is missing.

    Args:
        cache_folder: this program's folder in the user's cache.

    Returns:
        The configurations that this machine still cannot build: name → reason.
    """
    ties, tools = Ties(kept_names(machine)), tools_folder(cache_folder)
    reasons = foresee(demands, machine)
    reasons |= _without_compilers(_but(demands, reasons), zig_folder(cache_folder), machine, watch)
    reasons |= _without_wheels(_but(demands, reasons), ties, tools, machine, watch)
    return reasons | _without_tools(_but(demands, reasons), tools, machine, watch)


def _but(demands: Sequence[ChannelDemand], reasons: Mapping[str, str]) -> list[ChannelDemand]:
    """The demands of configurations that may still be built."""
    return [demand for demand in demands if demand.configuration not in reasons]


def foresee(demands: Sequence[ChannelDemand], machine: Mapping[str, str]) -> dict[str, str]:
    """The configurations that need a package, a Python or a compiler that the channel cannot have, as far as this
    machine can tell without a network: name → reason, which is that of the first row."""
    ties, path = Ties(kept_names(machine)), machine.get("PATH")
    reasons: dict[str, str] = {}
    for demand in demands:
        if reason := why_no_packages(demand, ties):
            reasons.setdefault(demand.configuration, reason)
    rest = _but(demands, reasons)
    absent = _absent_pythons(rest, machine)
    for demand in rest:
        reason = _why_no_tools(demand, path, absent)
        platform = Platform.parse(demand.platform)
        if reason is None and _compiles(demand.needs) and not zig_compiles_for(platform):
            reason = lacking_compiler(platform, path=path)
        if reason is not None:
            reasons.setdefault(demand.configuration, reason)
    return reasons


def _without_compilers(
    demands: Sequence[ChannelDemand], folder: Path, machine: Mapping[str, str], watch: Watch
) -> dict[str, str]:
    """The configurations that need a compiler which cannot be provided: name → reason."""
    compiling = {each.configuration: Platform.parse(each.platform) for each in demands if _compiles(each.needs)}
    reasons = {each: provide_compiler(each, folder, machine, watch) for each in dict.fromkeys(compiling.values())}
    return {name: reason for name, platform in compiling.items() if (reason := reasons[platform]) is not None}


def why_no_packages(demand: ChannelDemand, ties: Ties) -> str | None:
    """The reason why a row cannot be built on the stand-in channel of any machine; None or pip decides."""
    specs = (*demand.needs, *demand.runs)
    lacking = unmet(specs, Platform.parse(demand.platform), _minor(demand.python))
    absent = sorted(spec for spec in lacking if ties.project(spec.partition(" ")[0]) is None)
    if not absent:
        return None
    reason = f"the stand-in channel has no {' and no '.join(absent)}"
    if len(absent) > _MOST_NAMED:
        reason = f"the stand-in channel lacks {len(absent)} packages: {some_of(absent, _MOST_NAMED)}"
    unknown = not ties.names.date and not all(map(_has_no_wheel, absent))
    return f"{reason} ({_NO_MAPPING})" if unknown else reason


def _has_no_wheel(spec: str) -> bool:
    name = spec.partition(" ")[0]
    return bool(_NO_WHEEL.search(name)) or any(name in packages for packages in OF_CMAKE.values())


def lacking_compiler(platform: Platform, *, path: str | None = None) -> str | None:
    """Why PATH has no compiler of C for a platform; None if it has a working one."""
    if compiler_on_path(platform, path=path):
        return None
    if refused := refused_compiler(platform, path=path):
        return f"{refused} links no program"
    package = debian_compiler(platform)
    return f"there is no C compiler for {platform} on PATH{f' (Debian: {package})' if package else ''}"


def compiler_notes(demands: Sequence[ChannelDemand], machine: Mapping[str, str]) -> list[str]:
    """Which compiler builds use on the stand-in channel, and why; what their nvcc cannot do, or how to fetch it; and
    for which packages wheels are still to be fetched.
    """
    path, zig = machine.get("PATH"), False
    notes: dict[str, None] = {}
    for platform in dict.fromkeys(demand.platform for demand in demands if _compiles(demand.needs)):
        target = Platform.parse(platform)
        lacking = lacking_compiler(target, path=path)
        zig = zig or lacking is not None
        used = f"zig {ZIG_VERSION}: {lacking}" if lacking else compiler_on_path(target, path=path)
        notes[f"Its compiler is {used}."] = None
    ties, tools = Ties(kept_names(machine)), tools_folder(cache_root(machine))
    for demand in demands:
        its_platform = Platform.parse(demand.platform)
        specs, _ = unfetched((*demand.needs, *demand.runs), its_platform, _minor(demand.python), ties, tools)
        if specs:
            notes[f"A build fetches wheels of PyPI for {listed(specs)}, and says their size first."] = None
    needs = {version for demand in demands for spec in demand.needs if (version := _read_nvcc(spec))}
    for toolkit in found_toolkits(toolkits_folder(machine)):
        if toolkit.version in needs and (zig or not toolkit.whole):
            notes[f"Note: {toolkit.limit}."] = None
        needs.discard(toolkit.version)
    return [*notes, *_notes_on_missing(needs)]


def _notes_on_missing(cudas: Collection[str]) -> Iterator[str]:
    """What a script meets that calls the nvcc of a CUDA version which was not fetched. Not all scripts do."""
    known, missing = fetchable(), sorted(cudas, key=parse_version)
    if without := [version for version in missing if version not in known]:
        yield f"Note: there is no nvcc of CUDA {listed(without)} here, nor in a wheel: a script that calls it fails."
    if versions := [version for version in missing if version in known]:
        limited = ", before CUDA 13 for device code only" if parse_version(versions[0]) < parse_version("13") else ""
        yield (
            f"Note: no nvcc of CUDA {listed(versions)} was fetched, so a script that calls it fails; "
            f"`feedstock-tools cuda fetch {' '.join(versions)}` fetches one ({DOWNLOAD}{limited})."
        )


def _compiles(needs: Sequence[str]) -> bool:
    return not _compilers().isdisjoint(spec.partition(" ")[0] for spec in needs)


def _read_nvcc(spec: str) -> str | None:
    """The version of CUDA (`13.0`) whose nvcc a spec requires, if it does."""
    name, _, version = spec.partition(" ")
    return minor_of(version.split(" ")[0]) if version and name.startswith(NVCC) else None


@cache
def _compilers() -> frozenset[str]:
    return frozenset(package.name for package in read_packages() if package.role in _COMPILER_ROLES)


def provide_compiler(
    platform: Platform, folder: Path, machine: Mapping[str, str], watch: Watch = unwatched
) -> str | None:
    """Prepare a compiler for a platform: one on PATH, or zig, which is fetched if needed.

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


def _without_wheels(
    demands: Sequence[ChannelDemand], ties: Ties, folder: Path, machine: Mapping[str, str], watch: Watch
) -> dict[str, str]:
    """The configurations that need a wheel which pip cannot find or fetch: name → reason. The others' are fetched."""
    reasons: dict[str, str] = {}
    for demand in demands:
        try:
            specs = (*demand.needs, *demand.runs)
            fetch_wheels(specs, Platform.parse(demand.platform), _minor(demand.python), ties, folder, machine, watch)
        except WorkError as error:
            reasons.setdefault(demand.configuration, error.mistakes[0].message)
    return reasons


def _without_tools(
    demands: Sequence[ChannelDemand], folder: Path, machine: Mapping[str, str], watch: Watch
) -> dict[str, str]:
    """The configurations that need a tool which cannot be provided: name → reason. The others' tools are fetched."""
    reasons: dict[str, str] = {}
    needed: dict[str, list[ChannelDemand]] = {}
    for demand in demands:
        for tool in demand.tools:
            needed.setdefault(tool, []).append(demand)
    try:
        wheels = {
            wheel: None
            for tool, users in needed.items()
            for demand in users
            for wheel in wheels_for(tool, Platform.parse(demand.platform), _minor(demand.python))
        }
        fetch_tools(tuple(wheels), folder, machine, watch, _WHY)
    except WorkError as error:
        reason = (
            f"the recipe requires {', '.join(sorted(needed))}, and {error.mistakes[0].message}; "
            "fetch them once with a network, or build on a channel that has them"
        )
        reasons |= {demand.configuration: reason for users in needed.values() for demand in users}
    return reasons


def _absent_pythons(demands: Sequence[ChannelDemand], machine: Mapping[str, str]) -> list[str]:
    """The Pythons that builds run pip with and this machine lacks."""
    run = {python for demand in demands if _RUNS_PYTHON in demand.tools and (python := _minor(demand.python))}
    lacking = (python for python in run if not find_pythons([python], path=machine.get("PATH")))
    return sorted(lacking, key=parse_version)


def _why_no_tools(demand: ChannelDemand, path: str | None, absent: Sequence[str]) -> str | None:
    """Why the stand-in channel cannot have a row's tools; of a Python, the same words for all rows that lack one.

    Args:
        absent: the Pythons that the machine lacks.
    """
    python = _minor(demand.python)
    reason = why_no_tools(demand.tools, Platform.parse(demand.platform), python, path)
    if reason is None and python in absent and _RUNS_PYTHON in demand.tools:
        programs = " and no ".join(f"python{each}" for each in absent)
        return (
            f"the build runs pip with Python {listed(absent)}, which the stand-in channel lacks: there is no "
            f"{programs} on PATH that runs; "
            f"install {'it' if len(absent) == 1 else 'them'}, or name the rows of another Python"
        )
    return reason


def _minor(python: str | None) -> str | None:
    """`3.12` of `3.12.* *_cpython`."""
    return minor_of(python.split(" ")[0]) if python else None

"""The compilers and tools that a run on the stand-in channel needs: prepared before its first row is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from feedstock_tools.builds.plan.row import Work
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.builds.stand_in.choice import ChannelChoice
from feedstock_tools.builds.stand_in.limits import compiled_languages, provide_compiler, why_not_on_stand_in
from feedstock_tools.builds.stand_in.python import find_pythons
from feedstock_tools.builds.stand_in.tools import fetch_tools, tools_folder, wheels_for, why_no_tools
from feedstock_tools.builds.stand_in.zig import zig_folder
from feedstock_tools.channel.web.pip import Watch
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.folder import user_cache
from feedstock_tools.platforms import Platform

#: The tool that a build runs with the Python of its row, which must be able to run then.
_RUNS_PYTHON = "pip"
_WHY = "requirements of the recipe, of which the stand-in channel makes packages"


def provide_compilers(
    workspace: Workspace, works: Sequence[Work], channels: Mapping[str, ChannelChoice], watch: Watch
) -> dict[str, str]:
    """Make compilers and tools ready for rows that are built on the stand-in channel, fetching what is missing.

    Args:
        channels: of each configuration, by its name.
        watch: called with the progress of a download.

    Returns:
        The configurations that this machine still cannot build: name → reason.
    """
    on_stand_in = [work for work in works if channels[work.configuration].is_stand_in]
    if not on_stand_in:
        return {}
    folder = user_cache(workspace.machine, workspace.artifacts.cache)
    reasons = _uncompiled(on_stand_in, zig_folder(folder), workspace.machine, watch)
    possible = [work for work in on_stand_in if work.configuration not in reasons]
    return {**reasons, **_without_tools(possible, tools_folder(folder), workspace.machine, watch)}


def _uncompiled(works: Sequence[Work], folder: Path, machine: Mapping[str, str], watch: Watch) -> dict[str, str]:
    """The configurations that compile what nothing here compiles: name → reason."""
    from feedstock_tools.facts.packages import read_packages

    compiled = [work for work in works if compiled_languages(work.row.values)]
    if not compiled:
        return {}
    packages = frozenset(package.name for package in read_packages())
    lacking = cache(lambda platform: provide_compiler(platform, folder, machine, watch))
    reasons: dict[str, str] = {}
    for work in compiled:
        platform = Platform.parse(work.platform)
        reason = why_not_on_stand_in(work.row.values, platform, packages, lacking(platform))
        if reason is not None:
            reasons.setdefault(work.configuration, reason)
    return reasons


def _without_tools(works: Sequence[Work], folder: Path, machine: Mapping[str, str], watch: Watch) -> dict[str, str]:
    """The configurations that need a tool which cannot be provided: name → reason. The others' tools are fetched."""
    reasons: dict[str, str] = {}
    needed: dict[str, list[Work]] = {}
    for work in works:
        tools = {tool: None for output in work.makes for tool in output.tools}
        reason = _why_not(work, tools, machine.get("PATH"))
        if reason is not None:
            reasons.setdefault(work.configuration, reason)
        for tool in tools if reason is None else ():
            needed.setdefault(tool, []).append(work)
    try:
        wheels = {
            wheel: None
            for tool, users in needed.items()
            for work in users
            for wheel in wheels_for(tool, Platform.parse(work.platform), _python(work))
        }
        fetch_tools(
            tuple(wheels),
            folder,
            machine,
            watch,
            _WHY,
        )
    except WorkError as error:
        reason = (
            f"the recipe requires {', '.join(sorted(needed))}, and {error.mistakes[0].message}; "
            "fetch them once with a network, or build on a channel that has them"
        )
        reasons |= {work.configuration: reason for users in needed.values() for work in users}
    return reasons


def _why_not(work: Work, tools: Mapping[str, None], path: str | None) -> str | None:
    python = _python(work)
    reason = why_no_tools(tools, Platform.parse(work.platform), python, path)
    if reason is None and python is not None and _RUNS_PYTHON in tools and not find_pythons([python], path=path):
        return (
            f"the build runs pip with Python {python}, which the stand-in channel lacks: there is no python{python} "
            "on PATH; install it, or name the rows of another Python"
        )
    return reason


def _python(work: Work) -> str | None:
    """The Python that the builds of a row run: `3.12`."""
    python = work.row.build_python
    return ".".join(python.split(" ")[0].split(".")[:2]) if python else None

"""The compilers that a run on the stand-in channel needs: prepared before its first row is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from feedstock_tools.builds.plan.work import Work
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.builds.stand_in.choice import ChannelChoice
from feedstock_tools.builds.stand_in.limits import compiled_languages, provide_compiler, why_not_on_stand_in
from feedstock_tools.builds.stand_in.wheels import Watch
from feedstock_tools.builds.stand_in.zig import zig_folder
from feedstock_tools.feedstock.folder import user_cache
from feedstock_tools.platforms import Platform

__all__ = ["provide_compilers"]


def provide_compilers(
    workspace: Workspace, works: Sequence[Work], channels: Mapping[str, ChannelChoice], watch: Watch
) -> dict[str, str]:
    """Make the compilers ready for rows that are built on the stand-in channel, fetching zig where PATH has none.

    Args:
        channels: of each configuration, by its name.
        watch: called with the progress of a download.

    Returns:
        The configurations that this machine still cannot build: name → reason.
    """
    from feedstock_tools.facts.packages import read_packages

    compiled = [
        work for work in works if channels[work.configuration].is_stand_in and compiled_languages(work.row.values)
    ]
    if not compiled:
        return {}
    folder = zig_folder(user_cache(workspace.machine, workspace.artifacts.cache))
    packages = frozenset(package.name for package in read_packages())
    lacking = cache(lambda platform: provide_compiler(platform, folder, workspace.machine, watch))
    reasons: dict[str, str] = {}
    for work in compiled:
        platform = Platform.parse(work.platform)
        reason = why_not_on_stand_in(work.row.values, platform, packages, lacking(platform))
        if reason is not None:
            reasons.setdefault(work.configuration, reason)
    return reasons

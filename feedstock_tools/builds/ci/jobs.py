"""The jobs of CI services: the configurations missing from a channel, and the machine that builds each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.errors import InputError

#: Platform → the machines that build for it natively: GitHub's label, and the job of the Azure pipeline.
MACHINES: Mapping[str, tuple[str, str | None]] = {
    "linux-64": ("ubuntu-latest", "linux"),
    "linux-aarch64": ("ubuntu-24.04-arm", None),
    "osx-64": ("macos-15-intel", "osx"),
    "osx-arm64": ("macos-15", None),
}
#: The maximum number of jobs in a matrix of GitHub Actions.
_MOST_JOBS = 256
#: The characters allowed in the name of a configuration for a CI service.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


@dataclass(frozen=True, slots=True)
class CiJob:
    """A job: the platform, and the configurations that it builds in order."""

    platform: str
    configurations: tuple[str, ...]


def missing_configurations(
    feedstock: Path, names: Sequence[str], channels: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Name and platform of each configuration with a package that no channel has.

    Without channels these are all configurations.

    Raises:
        InputError: the configurations or the recipe cannot be read, or a name matches nothing.
        WorkError: a channel cannot be read.
    """
    from feedstock_tools.channel.missing import lacking
    from feedstock_tools.feedstock.configurations import configurations_of
    from feedstock_tools.rerender.outputs import output_files
    from feedstock_tools.rerender.rules import Rules

    chosen = configurations_of(feedstock, names)
    platforms = {configuration.name: configuration.platform.subdir for configuration in chosen}
    if channels:
        files = output_files(feedstock, chosen, Rules.newest())
        wanted = {file.configuration for file in lacking(files, channels)}
    else:
        wanted = set(platforms)
    return tuple((name, platform) for name, platform in platforms.items() if name in wanted)


def ci_jobs(wanted: Sequence[tuple[str, str]]) -> tuple[tuple[CiJob, ...], Mapping[str, int]]:
    """The jobs for some configurations: one each, or several in a job if there are too many for a service.

    Also returns platform → the number of configurations left out because no machine of a service builds them.

    Args:
        wanted: name and platform of each configuration.

    Raises:
        InputError: a name has characters that must not be in a service's files.
    """
    for name, _ in wanted:
        if not _NAME.fullmatch(name):
            hint = "Use only letters, digits, dots, dashes, plus signs and underscores."
            raise InputError(f"the configuration {name!r} cannot be passed to a CI service", hint=hint)
    by_platform: dict[str, list[str]] = {}
    for name, platform in wanted:
        by_platform.setdefault(platform, []).append(name)
    left_out = {platform: len(by_platform.pop(platform)) for platform in sorted(by_platform.keys() - MACHINES.keys())}
    total = sum(map(len, by_platform.values()))
    size = -(-total // (_MOST_JOBS - len(MACHINES))) if total > _MOST_JOBS else 1
    jobs = tuple(
        CiJob(platform, tuple(names[at : at + size]))
        for platform, names in by_platform.items()
        for at in range(0, len(names), size)
    )
    return jobs, left_out


def not_on_azure(jobs: Sequence[CiJob]) -> tuple[str, ...]:
    """The platforms of jobs for which Azure has no machine."""
    return tuple(dict.fromkeys(job.platform for job in jobs if MACHINES[job.platform][1] is None))

"""CI services: the jobs that build the configurations missing from a channel, and the files that have them built.

conda-smithy's files have other names and stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools import __version__
from feedstock_tools.data import text_templates
from feedstock_tools.errors import InputError
from feedstock_tools.files.changes import Changes
from feedstock_tools.reading import read_bytes, read_text

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
#: Service → the file it reads and the template of that file.
SERVICES: Mapping[str, tuple[str, str]] = {
    "github": (".github/workflows/feedstock-tools.yml", "ci-github.yml.j2"),
    "azure": (".azure-pipelines/feedstock-tools.yml", "ci-azure.yml.j2"),
}
_MARK = "# Written by `feedstock-tools ci`"
#: Text that can be written into a file of a service unchanged: no quote, no expression, no line break.
_PLAIN = re.compile(r"[A-Za-z0-9 @:/._+~=<>!,\[\]-]+")


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
    """
    from feedstock_tools.channel.repodata import lacking
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


def ci_files(
    feedstock: Path, services: Sequence[str], *, install: str | None, channel: str, branch: str
) -> dict[str, str]:
    """The texts of the files of some services, by their path below the feedstock.

    Args:
        install: the requirement that pip installs; None: this version of feedstock-tools.
        channel: the channel whose packages are not built again.
        branch: pushes to this branch are built, as well as pull requests.

    Raises:
        InputError: a value has characters that must not be in such a file.
    """
    values = {"install": install or f"feedstock-tools=={__version__}", "channel": channel, "branch": branch}
    for name, value in values.items():
        if not _PLAIN.fullmatch(value):
            raise InputError(f"{value!r} cannot be the {name} in a CI file")
    environment = text_templates("[", "]")
    environment.filters["quoted"] = json.dumps
    view = {**values, "build": _build_command(feedstock), "machines": MACHINES}
    templates = dict(SERVICES[service] for service in services)
    return {path: environment.get_template(template).render(view) for path, template in templates.items()}


def ci_changes(feedstock: Path, texts: Mapping[str, str]) -> Changes:
    """The changes that write the files of `ci_files`: those that are missing or different.

    Raises:
        InputError: this program did not write an existing file of that name.
    """
    files: dict[Path, bytes | None] = {}
    for name, text in texts.items():
        path = feedstock / name
        present = read_text(path, within=feedstock) if path.exists() else None
        if present is not None and not present.startswith(_MARK):
            raise InputError("this file was not written by `feedstock-tools ci`", path=path, hint="Move it away.")
        if present != text:
            files[path] = text.encode()
    return Changes(feedstock, files)


def _build_command(feedstock: Path) -> str:
    """The feedstock's `build-locally.py` if it is ours; conda-smithy's has the same name but other arguments."""
    script = feedstock / "build-locally.py"
    is_own = script.is_file() and b"feedstock_tools" in read_bytes(script, within=feedstock)
    return "python build-locally.py" if is_own else "feedstock-tools build"

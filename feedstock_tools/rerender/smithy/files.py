"""The CI files of a feedstock whose job lists must match its configurations: Azure Pipelines and GitHub Actions.

Only files that conda-smithy wrote are changed, and only their job lists. A missing file is not
created: the scripts and settings around its jobs are conda-smithy's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_bytes
from feedstock_tools.rerender.configurations.configuration import Configuration
from feedstock_tools.rerender.smithy.azure import azure_entries, replace_matrix
from feedstock_tools.rerender.smithy.github import github_entries, replace_include
from feedstock_tools.rerender.smithy.jobs import Job, azure_jobs, github_jobs
from feedstock_tools.rerender.smithy.rules import CiRules, ci_rules
from feedstock_tools.rerender.smithy.settings import read_conda_forge_yml, section

#: System that builds -> its file of Azure Pipelines.
AZURE_FILES: Mapping[str, str] = {
    system: f".azure-pipelines/azure-pipelines-{system}.yml" for system in ("linux", "osx", "win")
}
GITHUB_FILE = ".github/workflows/conda-build.yml"
CI_FILES = (*AZURE_FILES.values(), GITHUB_FILE)

#: A CI file with the jobs of thousands of configurations is smaller.
_LARGEST_FILE = 4 * 1024 * 1024

# From the text of a file to its jobs by name; None if it has no job list.
Entries = Callable[[str], dict[str, str] | None]


@dataclass(frozen=True, slots=True, order=True)
class StaleJob:
    """A job that does not match the configurations: missing in a file, superfluous, or with other fields."""

    file: str
    job: str
    state: Literal["missing", "superfluous", "changed"]

    def __str__(self) -> str:
        return f"{self.file}: the job {self.job} is {self.state}"


@dataclass(frozen=True, slots=True)
class CiUpdate:
    """The changes to the CI files: the new texts of those that change, the stale jobs, and notes on what this
    tool leaves to conda-smithy."""

    texts: Mapping[str, str]
    stale: tuple[StaleJob, ...]
    notes: tuple[str, ...]


def read_ci_files(feedstock: Path) -> dict[str, str]:
    """The CI files that a feedstock has, by their paths in it.

    Raises:
        InputError: one of them cannot be read, is too large or not UTF-8, or is a link, or is reached through one.
    """
    texts = {}
    for name in CI_FILES:
        path = feedstock / name
        for part in (path, *path.parents[: len(Path(name).parents) - 1]):
            if part.is_symlink():
                raise InputError("is a link; CI files are only changed in the feedstock itself", path=part)
        try:
            if path.exists():
                texts[name] = read_bytes(path, _LARGEST_FILE, within=feedstock).decode()
        except UnicodeDecodeError as error:
            raise InputError("is not UTF-8", path=path) from error
    return texts


def follow_configurations(feedstock: Path, configurations: Sequence[Configuration], smithy: str) -> CiUpdate:
    """The changes to the CI files of a feedstock: `update_ci_files` on its files. Writes nothing.

    Args:
        configurations: all configurations of the feedstock, for all platforms.
        smithy: the version of conda-smithy to follow.

    Raises:
        InputError: a file cannot be read, or conda-forge.yml is invalid or names something unknown.
    """
    texts = read_ci_files(feedstock)
    if not texts:  # a feedstock that conda-smithy has not set up for any CI service
        return CiUpdate({}, (), ())
    return update_ci_files(texts, configurations, read_conda_forge_yml(feedstock), smithy)


def update_ci_files(
    texts: Mapping[str, str],
    configurations: Sequence[Configuration],
    forge: Mapping[str, Any],
    smithy: str | None = None,
) -> CiUpdate:
    """Update the job lists of CI files to match the configurations, as a version of conda-smithy would write them.

    Args:
        texts: the existing files, by path, as returned by `read_ci_files`; others are ignored.
        configurations: all configurations of the feedstock.
        forge: conda-forge.yml as YAML reads it (typed), without defaults.
        smithy: the version of conda-smithy, such as `3.14.1`; default: the newest known.

    Raises:
        InputError: conda-forge.yml has a section of the wrong form, or names an unknown runner.
    """
    rules = ci_rules(smithy)
    azure = azure_jobs(configurations, forge, rules)
    parts = [_azure_file(texts, system, azure, forge, rules) for system in AZURE_FILES]
    parts.append(_github_file(texts, github_jobs(configurations, forge, rules)))
    return CiUpdate(
        texts={name: text for part in parts for name, text in part.texts.items()},
        stale=tuple(job for part in parts for job in part.stale),
        notes=tuple(note for part in parts for note in part.notes),
    )


def _azure_file(
    texts: Mapping[str, str], system: str, jobs: Sequence[Job], forge: Mapping[str, Any], rules: CiRules
) -> CiUpdate:
    name = AZURE_FILES[system]
    own = [job for job in jobs if job.build_os == system]
    text = texts.get(name)
    entries = partial(azure_entries, system=system)
    if text is None or not own:
        return _left_alone(name, text, own, entries)
    new = replace_matrix(text, system, own, _parallel(system, jobs, forge, rules), plain=rules.azure_plain)
    return _compared(name, text, new, own, entries)


def _github_file(texts: Mapping[str, str], jobs: Sequence[Job]) -> CiUpdate:
    text = texts.get(GITHUB_FILE)
    if text is None or not jobs:
        return _left_alone(GITHUB_FILE, text, jobs, github_entries)
    new = replace_include(text, jobs)
    return _compared(GITHUB_FILE, text, new, jobs, github_entries)


def _parallel(system: str, jobs: Sequence[Job], forge: Mapping[str, Any], rules: CiRules) -> int | None:
    """`maxParallel` of a system's jobs: its share of `azure.max_parallel`, once there are more jobs than that."""
    if rules.azure_parallel is None:
        return None
    own = section(forge, "azure", f"settings_{system}", "strategy").get(
        "maxParallel", rules.azure_parallel.get(system, 0)
    )
    most = section(forge, "azure").get("max_parallel", 50)
    if not isinstance(most, int) or not isinstance(own, int):
        raise InputError("'azure.max_parallel' and 'maxParallel' in conda-forge.yml must be whole numbers")
    if len(jobs) <= most or not rules.azure_shares_parallel:
        return own
    return max(1, round(most * (sum(job.build_os == system for job in jobs) / len(jobs))))


def _compared(name: str, text: str, new: str | None, jobs: Sequence[Job], entries: Entries) -> CiUpdate:
    """The update of one file, from its text, its new text, and its new jobs."""
    if new is None:
        stale = tuple(StaleJob(name, job.name, "missing") for job in jobs)
        return CiUpdate(
            {}, stale, (f"{name} has no job list to change: run conda-smithy once to write {_number(jobs)}",)
        )
    return CiUpdate({name: new} if new != text else {}, _stale(name, entries(text) or {}, entries(new) or {}), ())


def _stale(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> tuple[StaleJob, ...]:
    missing = [StaleJob(name, job, "missing") for job in new if job not in old]
    superfluous = [StaleJob(name, job, "superfluous") for job in old if job not in new]
    changed = [StaleJob(name, job, "changed") for job in new if job in old and old[job] != new[job]]
    return (*missing, *superfluous, *changed)


def _left_alone(name: str, text: str | None, jobs: Sequence[Job], entries: Entries) -> CiUpdate:
    """A file that would have to be created or removed, which only conda-smithy can do."""
    stale = _stale(name, (entries(text) if text else None) or {}, {job.name: "" for job in jobs})
    if not stale:
        return CiUpdate({}, (), ())
    action = (
        f"create {name} with {_number(jobs)}" if jobs else f"remove the jobs of {name}, whose configurations are gone"
    )
    return CiUpdate({}, stale, (f"conda-smithy would {action}: run it once",))


def _number(jobs: Sequence[Job]) -> str:
    return "one job" if len(jobs) == 1 else f"{len(jobs)} jobs"

"""The CI files of a feedstock whose job lists must match its configurations: Azure Pipelines and GitHub Actions.

Only files that conda-smithy wrote are changed, and only their job lists. A missing file is not
created: the scripts and settings around its jobs are conda-smithy's.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_bytes
from feedstock_tools.rerender.ci_rules import CiRules, ci_rules
from feedstock_tools.rerender.configuration import Configuration, dump_scalar, dump_whole
from feedstock_tools.rerender.forge import read_settings, section
from feedstock_tools.rerender.smithy.jobs import Job, azure_jobs, github_jobs

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
    """
    texts = read_ci_files(feedstock)
    if not texts:  # a feedstock that conda-smithy has not set up for any CI service
        return CiUpdate({}, (), ())
    return update_ci_files(texts, configurations, read_settings(feedstock), smithy)


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
    new = _replace_matrix(text, system, own, _parallel(system, jobs, forge, rules), plain=rules.azure_plain)
    return _compared(name, text, new, own, entries)


def _github_file(texts: Mapping[str, str], jobs: Sequence[Job]) -> CiUpdate:
    text = texts.get(GITHUB_FILE)
    if text is None or not jobs:
        return _left_alone(GITHUB_FILE, text, jobs, github_entries)
    new = _replace_include(text, jobs)
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


_ENTRY = re.compile(r"^ {6}(?! |: )(?:\? )?(?P<name>\S.*?):?$")
_SIMPLE_KEY = 128 - len("!!str")  # PyYAML counts the tag that it does not write
_WIDTH = 80


def azure_entries(text: str, system: str) -> dict[str, str] | None:
    """The jobs that a file has for a system (`linux`, `osx`, `win`): name to the text of the entry.

    None: conda-smithy did not write this file.
    """
    lines = _lines_of(text)
    strategy = _strategy(lines, system)
    matrix = strategy and _find_block(lines, "    matrix:", strategy[1:])
    return _split_entries(lines[matrix.start + 1 : matrix.stop], _ENTRY) if matrix else None


def _replace_matrix(text: str, system: str, jobs: Sequence[Job], parallel: int | None, *, plain: bool) -> str | None:
    """The file with other jobs; None if it has no strategy to change.

    `parallel`: the new `maxParallel`, 0 to remove the line; None keeps it unchanged.
    `plain`: nothing is quoted, as before conda-smithy 3.7.1.
    """
    lines = _lines_of(text)
    strategy = _strategy(lines, system)
    matrix = strategy and _find_block(lines, "    matrix:", strategy[1:])
    if strategy is None or matrix is None:
        return None
    replaced = set(matrix)
    if parallel is not None:
        replaced |= {number for number in strategy if lines[number].startswith("    maxParallel:")}
    new = _plain_matrix_text(jobs) if plain else matrix_text(jobs)
    if parallel:
        new += f"    maxParallel: {parallel}\n"
    before = [lines[number] for number in range(matrix.start) if number not in replaced]
    after = [lines[number] for number in range(matrix.stop, len(lines)) if number not in replaced]
    return "".join([*before, new.replace("\n", _newline_of(lines)), *after])


def _strategy(lines: Sequence[str], system: str) -> range | None:
    for number, line in enumerate(lines):
        if line.rstrip() == f"- job: {system}":
            return _find_block(lines, "  strategy:", range(number + 1, len(lines)))
    return None


def matrix_text(jobs: Sequence[Job]) -> str:
    """The lines from `matrix:` on, as PyYAML writes the jobs, sorted by name.

    >>> print(matrix_text([Job("osx_64_", "osx", {"CONFIG": "osx_64_", "UPLOAD_PACKAGES": "True"})]), end="")
        matrix:
          osx_64_:
            CONFIG: osx_64_
            UPLOAD_PACKAGES: 'True'
    """
    ordered = sorted(jobs, key=lambda job: job.name)
    if not ordered:
        return "    matrix: {}\n"
    if any(_may_fold(job) for job in ordered):
        text = dump_whole({"strategy": {"matrix": {job.name: dict(job.fields) for job in ordered}}})
        return "".join(f"  {line}" if line.strip() else line for line in _lines_of(text)[1:])
    lines = ["    matrix:"]
    for job in ordered:
        key = dump_scalar(job.name)
        fields = [f"{name}: {dump_scalar(value)}" for name, value in job.fields.items()]
        if len(key) < _SIMPLE_KEY:
            lines.append(f"      {key}:")
            lines.append(f"        {fields[0]}")
        else:
            lines.append(f"      ? {key}")
            lines.append(f"      : {fields[0]}")
        lines.extend(f"        {field}" for field in fields[1:])
    return "\n".join(lines) + "\n"


def _plain_matrix_text(jobs: Sequence[Job]) -> str:
    """The lines from `matrix:` on, as conda-smithy's template wrote them before 3.7.1."""
    lines = ["    matrix:\n"]
    for job in jobs:
        lines.append(f"      {job.name}:\n")
        lines.extend(f"        {name}: {value}\n" for name, value in job.fields.items())
    return "".join(lines)


def _may_fold(job: Job) -> bool:
    """Whether a value may span several lines, or is not a scalar: its form then depends on its position."""
    for name, value in (("", job.name), *job.fields.items()):
        if isinstance(value, str):
            if not (value.isascii() and value.isprintable()):
                return True
            if " " in value and len(name) + len(value) > _WIDTH - 20:
                return True
        elif not isinstance(value, bool | int | None):
            return True
    return False


def dumped_settings(settings: Mapping[str, Any], *, plain_booleans: bool) -> str:
    """The settings of Azure's jobs as PyYAML writes them: keys sorted, but the fields of ordered mappings in order.

    Args:
        plain_booleans: the texts `true` and `false` are written without quotes.
    """
    import yaml

    # libyaml counts otherwise when a key is too long to stand alone on its line.
    matrix = settings.get("strategy", {}).get("matrix", {})
    fast = all(len(name) < _SIMPLE_KEY - 10 for name in matrix)
    base: Any = yaml.CSafeDumper if fast else yaml.SafeDumper

    class Dumper(base):  # type: ignore[misc]
        """Writes ordered mappings in their order, and some texts as conda-smithy does."""

    Dumper.add_representer(
        OrderedDict, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", list(data.items()))
    )
    if plain_booleans:
        Dumper.add_representer(str, _plain_boolean)
    return str(yaml.dump(dict(settings), Dumper=Dumper, default_flow_style=False))


def _plain_boolean(dumper: Any, text: str) -> Any:
    if text in ("true", "false"):
        return dumper.represent_bool(text == "true")
    return dumper.represent_str(text)


_WORKFLOW_ENTRY = re.compile(r"^ {10}- (?:CONFIG: )?(?P<name>.*)$")


def github_entries(text: str) -> dict[str, str] | None:
    """The jobs that a workflow has: name to the text of the entry; None if it has no such list."""
    lines = _lines_of(text)
    include = _include(lines)
    return None if include is None else _split_entries(lines[include.start + 1 : include.stop], _WORKFLOW_ENTRY)


def _replace_include(text: str, jobs: Sequence[Job]) -> str | None:
    """The workflow with other jobs; None if it has no list to change."""
    lines = _lines_of(text)
    include = _include(lines)
    if include is None:
        return None
    new = _include_text(jobs).replace("\n", _newline_of(lines))
    return "".join([*lines[: include.start + 1], new, *lines[include.stop :]])


def _include_text(jobs: Sequence[Job]) -> str:
    """The entries as conda-smithy's template writes them: in the given order, unquoted.

    >>> print(_include_text([Job("win_64_", "win", {"CONFIG": "win_64_", "os": "windows"})]), end="")
              - CONFIG: win_64_
                os: windows
    """
    lines = []
    for job in jobs:
        mark = "- "
        for name, value in job.fields.items():
            lines.append(f"          {mark}{name}: {value}\n")
            mark = "  "
    return "".join(lines)


def _include(lines: Sequence[str]) -> range | None:
    first = next((number + 1 for number, line in enumerate(lines) if line.rstrip() == "jobs:"), len(lines))
    build = _find_block(lines, "  build:", range(first, len(lines)))
    strategy = build and _find_block(lines, "    strategy:", build[1:])
    matrix = strategy and _find_block(lines, "      matrix:", strategy[1:])
    return matrix and _find_block(lines, "        include:", matrix[1:])


def _lines_of(text: str) -> list[str]:
    """The lines with their line endings; only a line feed ends one, as in YAML and in Git."""
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text)


def _newline_of(lines: Sequence[str]) -> str:
    return "\r\n" if lines and lines[0].endswith("\r\n") else "\n"


def _find_block(lines: Sequence[str], key: str, within: range) -> range | None:
    """The first line that is `key` (its indentation and colon included) without a value, and the lines indented below
    it.

    The search goes over the lines `within`, up to the first that is indented less than the key.

    >>> _find_block(["a:", "  b:", "    c: 1", "  d: 2"], "  b:", range(1, 4))
    range(1, 3)
    """
    depth = _indentation(key)
    for number in within:
        line = lines[number]
        if line.startswith(key) and line[len(key) :].strip() in ("", "{}", "[]"):
            return range(number, _end(lines, number + 1, within.stop, depth))
        if _says_something(line) and _indentation(line) < depth:
            return None
    return None


def _end(lines: Sequence[str], first: int, stop: int, depth: int) -> int:
    end = first
    for number in range(first, stop):
        if _says_something(lines[number]):
            if _indentation(lines[number]) <= depth:
                break
            end = number + 1
    return end


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _split_entries(lines: Sequence[str], first_line: re.Pattern[str]) -> dict[str, str]:
    """Split a list or mapping into its entries: the group `name` of each entry's first line, mapped to the entry's
    text."""
    entries: dict[str, str] = {}
    name: str | None = None
    for line in lines:
        begun = first_line.match(line.rstrip("\r\n"))
        if begun:
            name = begun["name"].strip("'\"")
            while name in entries:  # a duplicate name is kept twice, so that the second one is reported
                name += "'"
            entries[name] = ""
        if name is not None:
            entries[name] += line
    return entries


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))

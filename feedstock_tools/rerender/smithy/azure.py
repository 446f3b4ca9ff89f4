"""The job list of a file of Azure Pipelines: `matrix` and `maxParallel` of its `strategy`; everything else stays
unchanged."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from feedstock_tools.rerender.smithy.jobs import Job
from feedstock_tools.rerender.smithy.text import find_block, lines_of, newline_of, split_entries

_ENTRY = re.compile(r"^ {6}(?! |: )(?:\? )?(?P<name>\S.*?):?$")
_SIMPLE_KEY = 128 - len("!!str")  # PyYAML counts the tag that it does not write
_WIDTH = 80


def azure_entries(text: str, system: str) -> dict[str, str] | None:
    """The jobs that a file has for a system (`linux`, `osx`, `win`): name to the text of the entry.

    None: conda-smithy did not write this file.
    """
    lines = lines_of(text)
    strategy = _strategy(lines, system)
    matrix = strategy and find_block(lines, "    matrix:", strategy[1:])
    return split_entries(lines[matrix.start + 1 : matrix.stop], _ENTRY) if matrix else None


def replace_matrix(text: str, system: str, jobs: Sequence[Job], parallel: int | None, *, plain: bool) -> str | None:
    """The file with other jobs; None if it has no strategy to change.

    `parallel`: the new `maxParallel`, 0 to remove the line; None keeps it unchanged.
    `plain`: nothing is quoted, as before conda-smithy 3.7.1.
    """
    lines = lines_of(text)
    strategy = _strategy(lines, system)
    matrix = strategy and find_block(lines, "    matrix:", strategy[1:])
    if strategy is None or matrix is None:
        return None
    replaced = set(matrix)
    if parallel is not None:
        replaced |= {number for number in strategy if lines[number].startswith("    maxParallel:")}
    new = plain_matrix_text(jobs) if plain else matrix_text(jobs)
    if parallel:
        new += f"    maxParallel: {parallel}\n"
    before = [lines[number] for number in range(matrix.start) if number not in replaced]
    after = [lines[number] for number in range(matrix.stop, len(lines)) if number not in replaced]
    return "".join([*before, new.replace("\n", newline_of(lines)), *after])


def _strategy(lines: Sequence[str], system: str) -> range | None:
    for number, line in enumerate(lines):
        if line.rstrip() == f"- job: {system}":
            return find_block(lines, "  strategy:", range(number + 1, len(lines)))
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
        return _dumped({job.name: dict(job.fields) for job in ordered})
    lines = ["    matrix:"]
    for job in ordered:
        key = _scalar(job.name)
        fields = [f"{name}: {_scalar(value)}" for name, value in job.fields.items()]
        if len(key) < _SIMPLE_KEY:
            lines.append(f"      {key}:")
            lines.append(f"        {fields[0]}")
        else:
            lines.append(f"      ? {key}")
            lines.append(f"      : {fields[0]}")
        lines.extend(f"        {field}" for field in fields[1:])
    return "\n".join(lines) + "\n"


def plain_matrix_text(jobs: Sequence[Job]) -> str:
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


@lru_cache(maxsize=4096, typed=True)
def _scalar(value: str | bool | int | None) -> str:
    import yaml

    rendered = yaml.dump(value, default_flow_style=True, width=float("inf"))
    return rendered.removesuffix("\n").removesuffix("\n...")


def _dumped(matrix: Mapping[str, Mapping[str, Any]]) -> str:
    import yaml

    class Dumper(yaml.Dumper):
        """PyYAML's dumper, without anchors for equal values."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    text = yaml.dump({"strategy": {"matrix": matrix}}, Dumper=Dumper, sort_keys=False)
    return "".join(f"  {line}" if line.strip() else line for line in lines_of(text)[1:])


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

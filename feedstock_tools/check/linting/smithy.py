"""conda-forge's own linter, as a process: `conda-smithy recipe-lint` of a named environment."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from feedstock_tools.check.findings import Weight
from feedstock_tools.check.linting.subject import LintFinding
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.recipe.written.document import Document, WrittenFiles

#: The time limit of the linter, in seconds: it takes one or two.
_SECONDS = 300.0
_PROGRAMS = ("bin/conda-smithy", "Scripts/conda-smithy.exe", "conda-smithy")
#: What its report says above lints, above hints, and of a recipe without either.
_LINTS, _HINTS, _FINE = " has some lint:", "has some suggestions:", " is in fine form"
_LINE = re.compile(r"\blines?:? \[?(\d{1,6})\b")
_SECTION = re.compile(r"\b(about|build|source|requirements|tests?|outputs|extra|package|context)\b")


def find_smithy(environment: Path) -> Path:
    """The program to call: that of an environment, or the program itself.

    Raises:
        InputError: there is no conda-smithy in the folder given.
    """
    places = [environment, *(environment / name for name in _PROGRAMS)]
    program = next((place for place in places if place.is_file()), None)
    if program is None:
        hint = "Name the environment that conda-smithy is installed in, with bin/conda-smithy."
        raise InputError("there is no conda-smithy here", path=environment, hint=hint)
    return program.absolute()


def smithy_findings(files: WrittenFiles, program: Path) -> tuple[LintFinding, ...]:
    """What conda-forge's linter reports of a recipe, apart from what it asks the network.

    Hints are remarks. A finding without a line has that of the section it names, else the first.

    Raises:
        WorkError: the linter cannot be run, or fails.
    """
    folder = files.recipe_path.parent
    command = [str(program), "recipe-lint", "--feedstock-dir", str(files.folder), str(folder)]
    try:
        with tempfile.TemporaryFile() as output:
            run = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=_SECONDS,
            )
            output.seek(0)
            text = output.read(1 << 20).decode(errors="replace")
    except (OSError, subprocess.SubprocessError) as error:
        raise WorkError(f"conda-forge's linter cannot be run: {error}", path=program) from error
    items = list(_items(text))
    if run.returncode not in (0, 1) or (not items and _FINE not in text):
        last = next((line for line in reversed(text.splitlines()) if line.strip()), f"exit status {run.returncode}")
        raise WorkError(f"conda-forge's linter failed: {last.strip()[:500]}", path=program)
    path = files.recipe_path.relative_to(files.folder).as_posix()
    rule = "conda-smithy"
    return tuple(LintFinding(path, _line_of(files.recipe, item), rule, item, weight=weight) for item, weight in items)


def _items(text: str) -> Iterator[tuple[str, Weight]]:
    """The points of a report with their weights: each begins after two spaces, and may go on in lines with more or
    fewer."""
    weight: Weight | None = None
    lines: list[str] = []
    for line in [*text.splitlines(), _FINE]:
        starts = line.startswith("  ") and not line.startswith("   ")
        heading = line.endswith((_LINTS, _HINTS, _FINE))
        if (starts or heading) and lines and weight is not None:
            yield " ".join(lines), weight
            lines = []
        if heading:
            weight = None if line.endswith(_FINE) else "remark" if line.endswith(_HINTS) else "mistake"
        elif weight is not None and (starts or lines):
            lines.append(line.strip())


def _line_of(recipe: Document, text: str) -> int:
    line = _LINE.search(text)
    if line:
        return min(int(line[1]), recipe.text.count("\n") + 1)
    for name in _SECTION.findall(text):
        entry = next(recipe.entries(name), None)
        if entry is not None:
            return recipe.line_of(entry.start)
    return 1

"""The common parts of engines that run another program for a whole row: conda-build, or a feedstock's own script."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.builds.engines.contract import BuildRequest, Built, Event, Failed, Output, Started
from feedstock_tools.builds.engines.process import child
from feedstock_tools.builds.engines.process.program_worker import REMOVAL_SECONDS
from feedstock_tools.processes import worker_command

#: The end of the reason why an output failed that the program has passed over.
MADE_NONE = "succeeded but made no package of that name"
_ENDINGS = (".conda", ".tar.bz2")
_KEPT = 30
#: How long a program may wait without computing, in seconds: conda-build waits forever for a FIFO in the prefix.
_IDLE = 3600.0
#: Patterns in the log of conda-build or rattler-build for the step that failed, and our wording.
_REASONS = (
    (r"Unsatisfiable|DependencyNeedsBuilding|ResolvePackageNotFound|PackagesNotFound|resolve dependencies", "solve"),
    (r"TESTS FAILED|Tests failed for|failed to run test|Test failed", "tests"),
    (r"BuildScriptException|Command failed|Script failed|CalledProcessError", "script"),
)
_SAID = {
    "solve": "its environments cannot be solved",
    "tests": "its tests failed",
    "script": "its build script failed",
    "engine": "it ended",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run for a row.

    Attributes:
        words: the program and its arguments.
        folder: where it runs.
        environment: its whole environment.
        output: the folder with a subdir folder of its packages.
        terminal: whether it needs a terminal.
        container: the file that gets the id of a container that it starts, and the program that knows containers.
        copied: a folder to copy first, and its copy.
        at_place: show the private folder to it at the place of all rows that share a build.
    """

    words: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    output: Path
    terminal: bool = False
    container: tuple[Path, str] | None = None
    copied: tuple[Path, Path] | None = None
    at_place: bool = False


def write_order(
    folder: Path,
    words: Sequence[str],
    place: Path,
    wants: str,
    container: tuple[Path, str] | None,
    copied: tuple[Path, Path] | None = None,
    *,
    at_place: bool = False,
) -> list[str]:
    """The command of a worker that runs a program in a place; `program_worker` describes its options."""
    order = folder / "command.json"
    content = {
        "command": list(words),
        "folder": str(place),
        "wants": wants,
        "container": {"id_file": str(container[0]), "runtime": container[1]} if container else None,
        "copied": [str(path) for path in copied or ()],
        "at_place": str(folder) if at_place else None,
    }
    order.write_text(json.dumps(content), encoding="utf-8")
    return worker_command("feedstock_tools.builds.engines.process.program_worker", str(order))


@contextmanager
def run_command(command: Command, request: BuildRequest) -> Iterator[Iterator[Event]]:
    """Run it: a context as for `Engine.build`. Whether outputs are built is only known after the program has ended."""
    wants = "terminal" if command.terminal else "nothing"
    worker = write_order(
        *(request.folder, command.words, command.folder, wants, command.container, command.copied),
        at_place=command.at_place,
    )
    grace = REMOVAL_SECONDS if command.container else child.GRACE
    if command.container is None:  # a container's processes may be those of a daemon
        request.guard.idle = _IDLE
    with child.started(
        worker, folder=request.folder, environment=command.environment, guard=request.guard, grace=grace
    ) as process:

        def events() -> Iterator[Event]:
            began = time.monotonic()
            last_lines = child.LastLines(_KEPT)
            yield Started(request.wanted[0])
            for content in child.whole_lines(child.output_of(process, request.guard)):
                last_lines.add(content)
                yield Output(content)
            status = child.status_of(process, request.guard)
            if status:
                yield Failed(request.wanted[0], *_reason(command.words[0], status, [*last_lines]))
            else:
                yield from _built(command, request, time.monotonic() - began)

        yield events()


def _built(command: Command, request: BuildRequest, seconds: float) -> Iterator[Event]:
    """The packages of the wanted outputs. The program builds them together, so the first one gets the time of all.

    A shared build is complete with its folder.
    """
    if request.only_shared:
        yield Built(request.wanted[0], request.shared[request.wanted[0]], seconds)
        return
    found = dict(packages_in(command.output, (request.target, "noarch")))
    for number, name in enumerate(request.wanted):
        if number:
            yield Started(name)
        if name not in found:
            yield Failed(name, f"{os.path.basename(command.words[0])} {MADE_NONE}")  # noqa: PTH119
            return
        yield Built(name, found[name], 0.0 if number else seconds)


def packages_in(output: Path, subdirs: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Name and file of each package in a folder with subdirs."""
    for subdir in subdirs:
        for path in sorted((output / subdir).glob("*")):
            ending = next((each for each in _ENDINGS if path.name.endswith(each)), None)
            if ending and path.name.count("-") > 1:
                yield path.name.removesuffix(ending).rsplit("-", 2)[0], path


def _reason(program: str, status: int, output: Sequence[str]) -> tuple[str, str]:
    lines = [line for line in output if line.strip()]
    during = next((kind for pattern, kind in _REASONS if any(re.search(pattern, line) for line in lines)), "engine")
    quoted = "\n".join(f"  {line}" for line in lines[-8:])
    name = os.path.basename(program)  # noqa: PTH119
    return f"{_SAID[during]} ({name}: {child.how_it_ended(status)})\n{quoted}", during

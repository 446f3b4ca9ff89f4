"""The embedded engine: py-rattler-build in a process of its own for each row."""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.builds.engines.contract import BuildRequest, Built, CrossTests, Event, Failed, Log, Output, Started
from feedstock_tools.builds.engines.embedded.fixed_place import UNIT, is_possible, place_of
from feedstock_tools.builds.engines.process.child import LastLines, Lines, how_it_ended, output_of, started, status_of
from feedstock_tools.errors import WorkError
from feedstock_tools.processes import worker_command

if TYPE_CHECKING:
    import subprocess

#: The module whose process builds.
WORKER = "feedstock_tools.builds.engines.embedded.worker"
_LAST_LINES = 10
#: The folders of a build or a test below the engine's output folder.
_PLACES = (
    rb"/(?:bld/rattler-build_[^/\s]+|test/test_[^/\s]+)"
    rb"/(?:(?P<PREFIX>host_env[_placehold]*|test_run_env)|(?P<BUILD_PREFIX>build_env|test_build_env)"
    rb"|(?P<SRC_DIR>work|test))(?![\w.-])"
)
#: The beginning of the event before a script's output; see `script_output`.
_SCRIPT = b'["script",'


class RattlerBuild:
    """Builds rows with the py-rattler-build that this package pins."""

    name = "rattler-build"
    shares_staging = False
    own_channels = False
    cross_tests: CrossTests = "emulated"

    @property
    def keeps_shared(self) -> bool:
        return is_possible()

    @property
    def version(self) -> str:
        """`0.73.0`."""
        return _version()

    def why_not(self, target: str, builder: str) -> str | None:
        if builder.startswith("win-"):
            return "the embedded engine does not support Windows yet"
        if target in (builder, "noarch"):
            return None
        if target.startswith("win-"):
            return f"packages for {target} need Windows with Visual Studio's compilers, but this is {builder}"
        if target.startswith("osx-") and not builder.startswith("osx-"):
            return f"packages for {target} need macOS with Apple's SDK, but this is {builder}"
        return None

    @contextmanager
    def build(self, request: BuildRequest) -> Iterator[Iterator[Event]]:
        with (
            request_file(request) as file,
            started(
                worker_command(WORKER, str(file)),
                folder=request.folder,
                environment=request.environment,
                guard=request.guard,
            ) as process,
        ):
            yield events_of(process, request)


@functools.cache
def _version() -> str:
    """Read once: each row of a plan asks for it."""
    from importlib.metadata import version

    return version("py-rattler-build")


@contextmanager
def request_file(request: BuildRequest) -> Iterator[Path]:
    """Put a request where its worker finds it, until it has ended: a folder that people get has no credentials of
    channels or of pip's settings."""
    request.output.mkdir(parents=True, exist_ok=True)
    file = request.folder / "request.json"
    file.touch(mode=0o600)
    file.write_text(json.dumps(request.to_json()))
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def events_of(process: subprocess.Popen[bytes], request: BuildRequest) -> Iterator[Event]:
    """The events of a running build, and one more if it ended without a result."""
    pending = set(request.wanted)
    current = request.wanted[0]
    failed = False
    last = LastLines(_LAST_LINES)
    for event in _merged(output_of(process, request.guard)):
        if isinstance(event, Started):
            current = event.output
        elif isinstance(event, Built):
            pending.discard(event.output)
        elif isinstance(event, Failed):
            failed = True
        elif isinstance(event, Output):
            # Output outside of the engine's log may be an interpreter's last words.
            event = replace(event, content=_shortened(event.content, request))
            last.add(event.content)
        yield event
    status = status_of(process, request.guard)
    if pending and not failed:
        ended = f"the engine's process ended with {how_it_ended(status)} before it was done"
        yield Failed(current, "\n".join([ended, *last]))


def _merged(parts: Iterable[tuple[bytes, bytes]]) -> Iterator[Event]:
    """The worker's events from its standard output and the output of scripts from its standard error, in order.

    A script is announced by an event (`SCRIPT`) before it prints. Events that may have followed the output that was
    read with them wait until no more output is there.
    """
    events, output, stage = Lines(math.inf), Lines(), ""
    waiting: list[bytes] = []
    ended: WorkError | None = None
    try:
        for reported, printed in parts:
            waiting += events.feed(reported).splitlines()
            announced = max((at for at, line in enumerate(waiting) if line.startswith(_SCRIPT)), default=-1)
            ready = waiting[: announced + 1] if printed else waiting
            waiting = waiting[len(ready) :]
            if ready and (rest := output.flush()):  # a script has ended in the middle of a line
                yield Output(rest, stage)
            for line in ready:
                if line.startswith(_SCRIPT):
                    stage = json.loads(line)[1]
                else:
                    yield _event(line)
            if content := output.feed(printed):
                yield Output(content, stage)
    except WorkError as error:
        ended = error
    if rest := output.flush():
        yield Output(rest, stage)
    if ended is not None:
        raise ended
    for line in [*waiting, *events.flush().splitlines()]:
        if not line.startswith(_SCRIPT):
            yield _event(line)


def _shortened(content: bytes, request: BuildRequest) -> bytes:
    """Output with the names of variables in place of the long paths that they contain, as the engine itself has it."""
    fixed = place_of(request.folder, UNIT if request.shared else "")
    for output in (os.fsencode(request.output), os.fsencode(fixed / request.output.name)):
        if output in content:
            content = re.sub(re.escape(output) + _PLACES, _variable, content)
    return content


def _variable(match: re.Match[bytes]) -> bytes:
    return b"$" + (match.lastgroup or "").encode()


def _event(line: bytes) -> Event:
    kind, *values = json.loads(line)
    if kind == "started":
        return Started(values[0])
    if kind == "built":
        return Built(values[0], Path(values[1]), values[2])
    if kind == "failed":
        return Failed(*values)
    return Log(*values)

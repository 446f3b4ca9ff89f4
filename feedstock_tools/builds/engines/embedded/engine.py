"""The embedded engine: py-rattler-build in a process of its own for each row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.builds.engines.contract import BuildRequest, Built, CrossTests, Event, Failed, Log, Started
from feedstock_tools.builds.engines.process.child import how_it_ended, lines_of, started
from feedstock_tools.workers import worker_command

if TYPE_CHECKING:
    import subprocess

__all__ = ["WORKER", "RattlerBuild", "events_of", "write_request"]

#: The module whose process builds.
WORKER = "feedstock_tools.builds.engines.embedded.worker"


class RattlerBuild:
    """Builds rows with the py-rattler-build that this package pins."""

    name = "rattler-build"
    shares_staging = False
    own_channels = False
    cross_tests: CrossTests = "emulated"

    @property
    def version(self) -> str:
        """`0.73.0`."""
        from importlib.metadata import version

        return version("py-rattler-build")

    def why_not(self, target: str, builder: str) -> str | None:
        """See `Engine`."""
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
        """See `Engine`."""
        command = worker_command(WORKER, str(write_request(request)))
        with started(command, folder=request.folder, environment=request.environment, guard=request.guard) as process:
            yield events_of(process, request)


def write_request(request: BuildRequest) -> Path:
    """Put a request where its worker finds it."""
    request.output.mkdir(parents=True, exist_ok=True)
    file = request.folder / "request.json"
    file.write_text(json.dumps(request.to_json()))
    return file


def events_of(process: subprocess.Popen[bytes], request: BuildRequest) -> Iterator[Event]:
    """The events of a running build, and one more if it ended without a result."""
    pending = set(request.wanted)
    current = request.wanted[0]
    failed = False
    said: list[str] = []
    for is_event, line in lines_of(process, request.guard):
        event = _event(line) if is_event else Log(line.decode(errors="replace"), "process")
        if isinstance(event, Started):
            current = event.output
        elif isinstance(event, Built):
            pending.discard(event.output)
        elif isinstance(event, Failed):
            failed = True
        elif not is_event:
            # Output outside of the engine's log may be an interpreter's last words.
            said = [*said[-9:], event.text]
        yield event
    status = process.wait()
    if pending and not failed:
        ended = f"the engine's process ended with {how_it_ended(status)} before it was done"
        yield Failed(current, "\n".join([ended, *said]))


def _event(line: bytes) -> Event:
    kind, *values = json.loads(line)
    if kind == "started":
        return Started(values[0])
    if kind == "built":
        return Built(values[0], Path(values[1]), values[2])
    if kind == "failed":
        return Failed(*values)
    return Log(*values)

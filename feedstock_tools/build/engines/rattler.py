"""The embedded engine: py-rattler-build in a process of its own for each row."""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.build.engines.contract import BuildRequest, Built, Event, Failed, Log, Started
from feedstock_tools.build.engines.process import end_group

if TYPE_CHECKING:
    import subprocess

__all__ = ["RattlerBuild"]

#: How long the supervisor of a build may take to end it before its whole session is killed, in seconds.
_GRACE = 5.0
_CHUNK = 1 << 16
#: The worker is to be the code that runs here, from wherever this was imported, in whatever folder it starts.
_PACKAGES = Path(__file__).resolve().parents[3]
_START = (
    "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
    "from feedstock_tools.build.engines.rattler_worker import main; sys.exit(main(Path(sys.argv[2]), int(sys.argv[3])))"
)


class RattlerBuild:
    """Builds rows with the py-rattler-build that this package pins."""

    name = "rattler-build"
    shares_staging = False

    @property
    def version(self) -> str:
        """`0.73.0`."""
        from importlib.metadata import version

        return version("py-rattler-build")

    def why_not(self, target: str, builder: str) -> str | None:
        """See `Engine`."""
        if builder.startswith("win-"):
            return "the embedded engine does not run on Windows yet"
        if target in (builder, "noarch"):
            return None
        if target.startswith("win-"):
            return f"packages for {target} need Windows with Visual Studio's compilers, and this is {builder}"
        if target.startswith("osx-") and not builder.startswith("osx-"):
            return f"packages for {target} need macOS with Apple's SDK, and this is {builder}"
        return f"packages for {target} need a cross build from {builder}, which the embedded engine does not do yet"

    @contextmanager
    def build(self, request: BuildRequest) -> Iterator[Iterator[Event]]:
        """See `Engine`."""
        import subprocess

        request.output.mkdir(parents=True, exist_ok=True)
        request_file = request.folder / "request.json"
        request_file.write_text(json.dumps(request.to_json()))
        events, events_end = os.pipe()
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, str(_PACKAGES), str(request_file), str(events_end)],
                cwd=request.folder,
                env=dict(request.environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[events_end],
                start_new_session=True,
            )
        except BaseException:
            os.close(events)
            raise
        finally:
            os.close(events_end)
        try:
            yield _events(process, events, request)
        finally:
            _end(process)
            os.close(events)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the build and all it started; the supervisor knows its descendants, so it goes first."""
    from subprocess import TimeoutExpired

    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with suppress(TimeoutExpired):
            process.wait(_GRACE)
    end_group(process.pid)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.wait()


def _events(process: subprocess.Popen[bytes], events: int, request: BuildRequest) -> Iterator[Event]:
    """The events of a running build, and one more where it ended without saying how."""
    pending = set(request.wanted)
    current = request.wanted[0]
    failed = False
    said: list[str] = []
    for event in _read(process, events):
        if isinstance(event, Started):
            current = event.output
        elif isinstance(event, Built):
            pending.discard(event.output)
        elif isinstance(event, Failed):
            failed = True
        elif event.stage == _OUTSIDE:
            said = [*said[-9:], event.text]
        yield event
    status = process.wait()
    if pending and not failed:
        how = f"signal {-status}" if status < 0 else f"signal {status - 128}" if status > 128 else f"status {status}"
        yield Failed(current, "\n".join([f"the engine's process ended with {how} before it was done", *said]))


#: The stage of lines that did not come through the engine's log, such as an interpreter's last words.
_OUTSIDE = "process"


def _read(process: subprocess.Popen[bytes], events: int) -> Iterator[Event]:
    assert process.stdout is not None  # noqa: S101  (asked for in Popen)
    with selectors.DefaultSelector() as selector:
        buffers = {events: b"", process.stdout.fileno(): b""}
        for descriptor in buffers:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fd)
                *lines, rest = (buffers[key.fd] + chunk).split(b"\n")
                if not chunk and rest:
                    lines, rest = [*lines, rest], b""
                buffers[key.fd] = rest
                for line in lines:
                    yield _event(line) if key.fd == events else Log(line.decode(errors="replace"), _OUTSIDE)


def _event(line: bytes) -> Event:
    kind, *values = json.loads(line)
    if kind == "started":
        return Started(values[0])
    if kind == "built":
        return Built(values[0], Path(values[1]), values[2])
    if kind == "failed":
        return Failed(*values)
    return Log(*values)

"""Starting a build process, reading its output, and ending it with all its descendants."""

from __future__ import annotations

import os
import selectors
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.builds.engines.process.guard import LOOK_EVERY, Guard, Stopped
from feedstock_tools.builds.engines.process.supervision import end_group

if TYPE_CHECKING:
    import subprocess

__all__ = ["GRACE", "TEST_WORKER", "how_it_ended", "lines_of", "started"]

#: The default time for the supervisor of a build to finish, in seconds.
GRACE = 5.0
_CHUNK = 1 << 16
#: The module whose process runs a package's own tests.
TEST_WORKER = "feedstock_tools.builds.testing.worker"


@contextmanager
def started(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    guard: Guard,
    grace: float = GRACE,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker that leads a session and supervises its own descendants; on leaving, all of them are ended.

    Its standard input is a pipe that closes when this process ends for whatever reason.

    Args:
        guard: the limits of the worker.
        grace: how long its supervisor may take to end the build before the whole session is killed, in seconds.
    """
    import subprocess

    process = subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        guard.attach(process.pid)
        yield process
    finally:
        _end(process, grace)
        guard.detach()


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """End the build with all its descendants; the supervisor knows them, so it is asked first."""
    from subprocess import TimeoutExpired

    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with suppress(TimeoutExpired):
            process.wait(grace)
    end_group(process.pid)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    process.wait()


def lines_of(process: subprocess.Popen[bytes], guard: Guard) -> Iterator[tuple[bool, bytes]]:
    """The lines of a worker as they come, each with whether it was on standard output (else on standard error).

    Raises:
        WorkError: the worker takes more time or memory than its guard allows.
        Stopped: the run is over.
    """
    assert process.stdout is not None  # noqa: S101  (asked for in Popen)
    assert process.stderr is not None  # noqa: S101
    output = process.stdout.fileno()
    with selectors.DefaultSelector() as selector:
        buffers = {output: b"", process.stderr.fileno(): b""}
        for descriptor in buffers:
            selector.register(descriptor, selectors.EVENT_READ)
        if guard.stop is not None:
            selector.register(guard.stop, selectors.EVENT_READ)
        open_ends = set(buffers)
        while open_ends:
            for key, _ in selector.select(LOOK_EVERY):
                if key.fd == guard.stop:
                    raise Stopped
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fd)
                    open_ends.discard(key.fd)
                *lines, rest = (buffers[key.fd] + chunk).split(b"\n")
                if not chunk and rest:
                    lines, rest = [*lines, rest], b""
                buffers[key.fd] = rest
                for line in lines:
                    yield key.fd == output, line
            guard.look()


def how_it_ended(status: int) -> str:
    """`signal 9` or `status 1`, for an exit status from Popen or a shell."""
    return f"signal {-status}" if status < 0 else f"signal {status - 128}" if status > 128 else f"status {status}"

"""Starting a build process, reading its output, and ending it with all its descendants."""

from __future__ import annotations

import math
import os
import select
import selectors
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.builds.engines.process.guard import LOOK_EVERY, Guard, Stopped
from feedstock_tools.builds.engines.process.supervision import end_group
from feedstock_tools.errors import WorkError

if TYPE_CHECKING:
    import subprocess

#: The default time for the supervisor of a build to finish, in seconds.
GRACE = 5.0
#: Bytes of a large pipe, the largest that an unprivileged user may have; also of the longest line that is kept whole.
_CHUNK = 1 << 20
#: Bytes of a block of memory: once one was given back, glibc keeps freed blocks of its size for the next ones, where it
#: otherwise returns each to the system. What passes through a pipe at full speed then costs half the time.
_BLOCK_TO_KEEP = 16 << 20
#: Pieces of output that follow each other within one time are gathered for another, both in seconds, unless they are
#: at least this many bytes.
_AT_ONCE, _GATHERING, _PLENTY = 0.001, 0.00025, 256 << 10
#: The time that remains for processes to disappear after they were killed, and for their last output, in seconds.
_PATIENCE = 10.0
#: The bytes at the end of an output that are kept for messages.
_END = 1 << 15
#: The module whose process runs a package's own tests.
TEST_WORKER = "feedstock_tools.builds.testing.worker"


@contextmanager
def started(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], guard: Guard, grace: float = GRACE
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
    with suppress(TimeoutExpired):  # a process that the kernel cannot end, such as one that waits for a dead disk
        process.wait(_PATIENCE)


def output_of(process: subprocess.Popen[bytes], guard: Guard) -> Iterator[tuple[bytes, bytes]]:
    """The output of a worker as it comes: pairs of bytes from its standard output and its standard error.

    What the worker wrote to standard output before it, or a program that it started, wrote the bytes of standard error
    is in the same pair or in an earlier one.

    Raises:
        WorkError: the worker takes more time or memory than its guard allows; what it has printed came before.
        Stopped: the run is over.
    """
    assert process.stdout is not None  # noqa: S101  (asked for in Popen)
    assert process.stderr is not None  # noqa: S101
    output, errors = _Pipe(process.stdout.fileno()), _Pipe(process.stderr.fileno())
    with selectors.DefaultSelector() as selector:
        for pipe in (output, errors):
            selector.register(pipe.descriptor, selectors.EVENT_READ)
        if guard.stop is not None:
            selector.register(guard.stop, selectors.EVENT_READ)
        last, ended = 0.0, math.inf
        while output.is_open or errors.is_open:
            ready = {key.fd for key, _ in selector.select(LOOK_EVERY)}
            if guard.stop in ready:
                raise Stopped
            if not ready and process.poll() is not None:
                ended = min(ended, time.monotonic())
                if time.monotonic() - ended > _PATIENCE:  # an unknown process keeps the pipe open
                    return
            if ready:
                first, second = output.read(), errors.read()
                yield (first + output.read() if second else first), second
                for pipe in (output, errors):
                    if not pipe.is_open and pipe.descriptor in selector.get_map():
                        selector.unregister(pipe.descriptor)
                last = _gather(len(first) + len(second), last)
            guard.look()


def _gather(size: int, last: float) -> float:
    """Wait for more output if the last piece, of some bytes, followed another at once; returns the time.

    So a program that prints short pieces at full speed wakes this process up for fewer and larger ones.
    """
    if size < _PLENTY and time.monotonic() - last < _AT_ONCE:
        time.sleep(_GATHERING)
    return time.monotonic()


def status_of(process: subprocess.Popen[bytes], guard: Guard) -> int:
    """The exit status of a worker whose outputs are closed, once it has ended.

    Raises:
        WorkError: the worker takes more time or memory than its guard allows.
        Stopped: the run is over.
    """
    from subprocess import TimeoutExpired

    while True:
        try:
            return process.wait(LOOK_EVERY)
        except TimeoutExpired:
            guard.look()
            if guard.stop is not None and select.select([guard.stop], [], [], 0)[0]:
                raise Stopped from None


class _Pipe:
    """The reading end of a pipe, which is read as far as it is filled."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.is_open = True
        bytes(_BLOCK_TO_KEEP)  # made and given back
        os.set_blocking(descriptor, False)
        if sys.platform == "linux":
            import fcntl

            with suppress(OSError):  # the number of large pipes of a user is limited
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _CHUNK)

    def read(self) -> bytes:
        """The bytes in it now, up to the size of a large pipe."""
        parts: list[bytes] = []
        size = 0
        while self.is_open and size < _CHUNK:
            try:
                part = os.read(self.descriptor, _CHUNK)
            except BlockingIOError:
                break
            self.is_open = bool(part)
            parts.append(part)
            size += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class Lines:
    """Bytes cut at the ends of lines; a line longer than `longest` bytes is cut anywhere."""

    def __init__(self, longest: float = _CHUNK) -> None:
        self._longest = longest
        self._rest = b""

    def feed(self, content: bytes) -> bytes:
        """The complete lines so far, with the last line feed; a very long line without one."""
        content = self._rest + content if self._rest else content
        end = content.rfind(b"\n") + 1 or (len(content) if len(content) >= self._longest else 0)
        self._rest = content[end:]
        return content[:end]

    def flush(self) -> bytes:
        """The last line, which has no line feed; empty if there is none."""
        rest, self._rest = self._rest, b""
        return rest


def whole_lines(parts: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """Both outputs of a worker together, cut at the ends of lines.

    Raises:
        as `output_of`, after all that the worker has printed.
    """
    lines = Lines()
    ended: WorkError | None = None
    try:
        for output, errors in parts:
            if content := lines.feed(output + errors):
                yield content
    except WorkError as error:
        ended = error
    if rest := lines.flush():
        yield rest
    if ended is not None:
        raise ended


class LastLines:
    """The end of an output, for messages."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._end = b""

    def add(self, content: bytes) -> None:
        self._end = (self._end + content[-_END:])[-_END:]

    def __iter__(self) -> Iterator[str]:
        """The last lines; bytes that are not UTF-8 become replacement characters."""
        lines = self._end.decode(errors="replace").splitlines()
        return iter(lines[-self._number :])


def how_it_ended(status: int) -> str:
    """How a process ended, by its exit status from Popen or a shell.

    >>> how_it_ended(-9), how_it_ended(137), how_it_ended(1), how_it_ended(255)
    ('signal 9', 'signal 9', 'status 1', 'status 255')
    """
    number = -status if status < 0 else status - 128
    return f"signal {number}" if number in signal.valid_signals() else f"status {status}"

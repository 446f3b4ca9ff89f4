"""Commands of feedstock-tools in forks of a process that has imported its modules: saves each the start of Python.

A fork is a process like any other: with its own streams, folder, environment, exit status and use of the machine. Where
the start itself matters (lazy imports, start-up time, settings of the interpreter), tests start a new Python instead.

A command in a fork that starts a worker of `forked.WORKERS` gets a fork as well. It differs from a new Python only in
its parent and in the environment that /proc shows; tests that look at those ask for `NEW_WORKERS`.
"""

from __future__ import annotations

import atexit
import functools
import io
import json
import os
import select
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.support.measuring import measured_here
from tests.support.paths import ROOT

#: Thresholds of the garbage collector for a process that keeps little: by default it takes a twelfth of the time.
RARELY = (50_000, 20, 20)
#: The program that stands in for the Python of a worker of pytest-xdist.
_ASKING = ROOT / "tests" / "support" / "prepared_worker.py"
#: The modules of workers that begin once they have their limits: of builds, and of tests of packages.
BUILDERS = ("feedstock_tools.builds.engines.embedded.worker", "feedstock_tools.builds.testing.worker")
#: A variable of commands whose workers must be processes of a new Python.
NEW_WORKERS = "FEEDSTOCK_TOOLS_TESTS_NEW_WORKERS"
#: The interpreter and its libraries read these as they start: a fork cannot have others than its parent.
_FIXED = ("PYTHON", "LC_", "LANG", "LD_", "TZ")


@dataclass(frozen=True)
class Ended:
    """A command that ended: status (negative for a signal), output, processor time in seconds, peak memory in bytes."""

    status: int
    stdout: str
    stderr: str
    seconds: float
    memory: int


def fixed(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(_FIXED)}


#: Of the server: those of this process before any test changes them.
FIXED_THERE = fixed(os.environ) | {"PYTHONPATH": str(ROOT)}


def serves(variables: Mapping[str, str]) -> bool:
    """Whether a fork can have this environment."""
    return hasattr(os, "fork") and fixed(variables) == FIXED_THERE


class Running:
    """A command that runs in a fork; `pid` is its process."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reply = connection.makefile("rb")
        self.pid = int(self._reply.readline())

    def usage(self) -> dict[str, Any]:
        """Wait for its end: its status, and what it used."""
        with self._connection, self._reply:
            return dict(json.loads(self._reply.readline()))

    def let_go(self) -> None:
        """Let a command begin that waits for it."""
        with suppress(OSError):  # it has ended
            self._connection.sendall(b".")

    def ends_within(self, seconds: float | None) -> bool:
        """Wait for its end, up to some time (None: any time); whether it has ended."""
        return bool(select.select([self._reply], [], [], seconds)[0])


def start(
    arguments: list[str],
    folder: Path | None,
    variables: Mapping[str, str],
    streams: tuple[int, int, int],
    worker: str | None = None,
    *,
    program: str = "",
    session: bool = False,
    waits: bool = False,
) -> Running:
    """Start feedstock-tools with these arguments in a fork: in a group of its own, or in that of the fork that asks.

    folder: where it starts (here, where None). variables: its whole environment, one that `serves` takes. streams:
    the numbers of three open files. worker: a module of feedstock-tools whose `main` to call instead. program:
    statements to run before. session: whether it leads a session of its own. waits: whether it begins once let go.
    """
    place = str(folder or Path.cwd())
    request = {"arguments": arguments, "folder": place, "variables": dict(variables), "worker": worker}
    group = os.getpgid(0) if _PLACES else 0
    asked = json.dumps(request | {"program": program, "session": session, "waits": waits, "group": group}).encode()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(place_of(worker, _PLACES[-1] if _PLACES else _place(measured_here())))
    socket.send_fds(connection, [len(asked).to_bytes(4, "big")], streams)
    connection.sendall(asked)
    return Running(connection)


def run(
    arguments: list[str],
    folder: Path | None,
    variables: Mapping[str, str],
    stdin: int | IO[str] = subprocess.DEVNULL,
    program: str = "",
) -> Ended:
    """Run feedstock-tools with these arguments to its end, in a fork; see `start`."""
    out, their_out = os.pipe()
    err, their_err = os.pipe()
    null = os.open(os.devnull, os.O_RDONLY)
    theirs = null if stdin == subprocess.DEVNULL else stdin if isinstance(stdin, int) else stdin.fileno()
    try:
        running = start(arguments, folder, variables, (theirs, their_out, their_err), program=program)
    finally:
        for each in (null, their_out, their_err):
            os.close(each)
    with os.fdopen(out, "rb") as stdout, os.fdopen(err, "rb") as stderr:
        errors: list[bytes] = []
        reader = threading.Thread(target=lambda: errors.append(stderr.read()))
        reader.start()
        output = stdout.read()
        reader.join()
    return Ended(stdout=_text(output), stderr=_text(errors[0]), **running.usage())


class Started(subprocess.Popen[str]):
    """A command that runs in a fork, with the methods of a process that this one started itself."""

    #: For the base class, which has not started it.
    _child_created = False

    def __init__(
        self,
        arguments: list[str],
        folder: Path | None,
        variables: Mapping[str, str],
        stdout: int,
        stderr: int,
        worker: str | None = None,
        program: str = "",
    ) -> None:
        self.args, self.returncode, self.stdin = arguments, None, None
        null = os.open(os.devnull, os.O_RDWR)
        self.stdout, out = _stream(stdout, null, null)
        self.stderr, err = _stream(stderr, null, out)
        try:
            self._running = start(arguments, folder, variables, (null, out, err), worker, program=program)
        finally:
            for number in {null, out, err} - {stdout, stderr}:
                os.close(number)
        self.pid = self._running.pid

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()

    def poll(self) -> int | None:
        """Its status; None while it runs."""
        if self.returncode is None and self._running.ends_within(0):
            self.returncode = int(self._running.usage()["status"])
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its status at its end."""
        if self.returncode is None and not self._running.ends_within(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        status = self.poll()
        assert status is not None
        return status

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002
        """What it prints until its end."""
        assert input is None
        texts = ["", ""]

        def read(number: int, stream: IO[str] | None) -> None:
            if stream is not None and not stream.closed:
                with stream:
                    texts[number] = stream.read()

        readers = [threading.Thread(target=read, args=each) for each in enumerate((self.stdout, self.stderr))]
        for reader in readers:
            reader.start()
        end = None if timeout is None else time.monotonic() + timeout
        for reader in readers:
            reader.join(None if end is None else max(0.0, end - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(None if end is None else max(0.0, end - time.monotonic()))
        return texts[0], texts[1]

    def send_signal(self, sig: int) -> None:
        """Send it a signal, if it has not ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, sig)


def _stream(wanted: int, null: int, out: int) -> tuple[IO[str] | None, int]:
    """Our end of a stream, if it is a pipe, and the number of theirs."""
    if wanted == subprocess.PIPE:
        ours, theirs = os.pipe()
        return os.fdopen(ours, encoding="utf-8"), theirs
    return None, {subprocess.DEVNULL: null, subprocess.STDOUT: out}.get(wanted, wanted)


def _text(output: bytes) -> str:
    return io.TextIOWrapper(io.BytesIO(output)).read()


#: In a fork: the socket at which it asks the process that has forked it.
_PLACES: list[str] = []


def ask_at(place: str) -> None:
    """In a fork, and in those that it forks itself: have others forked by the process that has forked it."""
    _PLACES.append(place)


def place_of(worker: str | None, place: str) -> str:
    """The socket of the server that forks this worker (None: a command), beside `place`, that of commands."""
    return f"{place}-by-those-who-build" if worker in BUILDERS else place


class Server:
    """A process of a module that forks for who asks it, and the path of the socket at which it is asked.

    Args:
        module: gets the numbers of two sockets, one of which closes at the end of this process, and then `arguments`.
        arguments: of the module; the path of the socket, if there are none.
    """

    def __init__(self, module: str, arguments: Sequence[str] = ()) -> None:
        self._folder = tempfile.TemporaryDirectory(dir="/tmp")
        self.place = f"{self._folder.name}/asked"
        self._held, life = socket.socketpair()
        with life, socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self.place)
            listening.listen(128)
            given = [life.fileno(), listening.fileno()]
            command = [sys.executable, "-m", module, *map(str, given), *(arguments or [self.place])]
            own = {name: value for name, value in os.environ.items() if not name.startswith(_FIXED)} | FIXED_THERE
            self._process = subprocess.Popen(command, cwd=ROOT, env=own, pass_fds=given)
        atexit.register(self.end)

    def end(self) -> None:
        """End it, which ends no fork."""
        atexit.unregister(self.end)
        self._held.close()
        self._process.wait()
        self._folder.cleanup()


def python_of_workers(place: str) -> str:
    """What pytest-xdist starts as the Python of a worker; `place` is where a server of `preparing` is asked."""
    return shlex.join([sys.executable, "-I", "-S", str(_ASKING), place])


#: Whether forks are measured → the path of the socket of a server that the processes of a run share.
_SHARED: dict[bool, str] = {}


def share(measured: bool, place: str) -> None:
    """Have commands forked by a server of another process, to which all workers of a run belong."""
    _SHARED[measured] = place


def start_server() -> str:
    """Start the server for commands of this process and its workers; gives the path of its socket."""
    return _server(measured_here()).place


def _place(measured: bool) -> str:
    return _SHARED[measured] if measured in _SHARED else _server(measured).place


@functools.cache
def _server(measured: bool) -> Server:
    """The server of this process, for forks that are measured or for the others; it ends with it."""
    return Server("tests.support.forking")

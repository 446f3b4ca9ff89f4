"""Commands of feedstock-tools in forks of a process that has imported its modules: saves each the start of Python.

A fork is a process like any other: with its own streams, folder, environment, exit status and use of the machine. Where
the start itself matters (lazy imports, start-up time, settings of the interpreter), tests start a new Python instead.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn, TextIO, cast

import feedstock_tools
from tests.support.measuring import measured_here
from tests.support.paths import ROOT

__all__ = ["Ended", "Running", "Started", "run", "serves", "start"]

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


def _fixed(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(_FIXED)}


#: Of the server: those of this process before any test changes them.
_FIXED_THERE = _fixed(os.environ) | {"PYTHONPATH": str(ROOT)}


def serves(variables: Mapping[str, str]) -> bool:
    """Whether a fork can have this environment."""
    return hasattr(os, "fork") and _fixed(variables) == _FIXED_THERE


class Running:
    """A command that runs in a fork; `pid` is its process."""

    def __init__(self, reply: socket.socket) -> None:
        self._reply = reply.makefile("rb")
        self.pid = int(self._reply.readline())

    def usage(self) -> dict[str, Any]:
        """Wait for its end: its status, and what it used."""
        with self._reply:
            return dict(json.loads(self._reply.readline()))

    def ends_within(self, seconds: float | None) -> bool:
        """Wait for its end, up to some time (None: any time); whether it has ended."""
        return bool(select.select([self._reply], [], [], seconds)[0])


def start(
    arguments: list[str],
    folder: Path | None,
    variables: Mapping[str, str],
    streams: tuple[int, int, int],
    worker: str | None = None,
) -> Running:
    """Start feedstock-tools with these arguments in a fork that leads a group of its own.

    folder: where it starts (here, where None). variables: its whole environment, one that `serves` takes. streams:
    the numbers of three open files. worker: a module of feedstock-tools whose `main` to call instead.
    """
    reply, answer = socket.socketpair()
    place = str(folder or Path.cwd())
    request = {"arguments": arguments, "folder": place, "variables": dict(variables), "worker": worker}
    with reply, answer:
        _server(measured_here()).ask(json.dumps(request).encode(), [*streams, answer.fileno()])
        answer.close()
        return Running(reply)


def run(
    arguments: list[str], folder: Path | None, variables: Mapping[str, str], stdin: int | IO[str] = subprocess.DEVNULL
) -> Ended:
    """Run feedstock-tools with these arguments to its end, in a fork; see `start`."""
    out, their_out = os.pipe()
    err, their_err = os.pipe()
    null = os.open(os.devnull, os.O_RDONLY)
    theirs = null if stdin == subprocess.DEVNULL else stdin if isinstance(stdin, int) else stdin.fileno()
    try:
        running = start(arguments, folder, variables, (theirs, their_out, their_err))
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
    ) -> None:
        self.args, self.returncode, self.stdin = arguments, None, None
        null = os.open(os.devnull, os.O_RDWR)
        self.stdout, out = _stream(stdout, null, null)
        self.stderr, err = _stream(stderr, null, out)
        try:
            self._running = start(arguments, folder, variables, (null, out, err), worker)
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
        for reader in readers:
            reader.join(timeout)
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(timeout)
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


class _Server:
    """The process that forks, and the socket that it is asked through."""

    def __init__(self) -> None:
        self._asked, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._one_at_a_time = threading.Lock()
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_FIXED)} | _FIXED_THERE
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, pass_fds=[theirs.fileno()])
        theirs.close()
        atexit.register(self._end)

    def ask(self, request: bytes, descriptors: list[int]) -> None:
        """Have a command started; its reply comes through the last of the descriptors."""
        with self._one_at_a_time:
            socket.send_fds(self._asked, [len(request).to_bytes(4, "big")], descriptors)
            self._asked.sendall(request)

    def _end(self) -> None:
        self._asked.close()
        self._process.wait()


@functools.cache
def _server(measured: bool) -> _Server:
    """The server of this process, for forks that are measured or for the others; it ends with it."""
    return _Server()


# --- in the server ---------------------------------------------------------------------------------------------------


def _serve(asked: socket.socket) -> dict[str, Any] | None:
    """Fork for each request, and report how each fork ended. Returns the request in a fork, and None at the end."""
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}
    watched: list[Any] = [asked, wake]
    while True:
        ready = select.select(watched, [], [])[0]
        if wake in ready:
            os.read(wake, 512)
            _report_ended(running)
        if asked not in ready:
            continue
        length, descriptors, _, _ = socket.recv_fds(asked, 4, 4)
        if not length:
            return None
        request = b""
        while missing := int.from_bytes(length, "big") - len(request):
            request += asked.recv(missing)  # and nothing of the next request
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setpgid(0, 0)
            asked.close()
            for number, each in enumerate(descriptors[:3]):
                os.dup2(each, number)
            for each in (wake, waker, *descriptors, *running.values()):
                os.close(each)
            return dict(json.loads(request))
        with suppress(ProcessLookupError, PermissionError):  # it has ended, or has become another program
            os.setpgid(pid, pid)  # as it does itself, before any other process learns its number
        running[pid] = descriptors.pop()
        os.write(running[pid], f"{pid}\n".encode())
        for each in descriptors:
            os.close(each)


def _report_ended(running: dict[int, int]) -> None:
    while running:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
        if not pid:
            return
        memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        seconds = usage.ru_utime + usage.ru_stime
        report = {"status": os.waitstatus_to_exitcode(status), "seconds": seconds, "memory": memory}
        with socket.socket(fileno=running.pop(pid)) as reply:
            reply.sendall(json.dumps(report).encode())


def _become(request: dict[str, Any]) -> NoReturn:
    """Be what a new Python would be that runs feedstock-tools with these arguments there, and end as it would."""
    import posix  # whose _exit nothing has replaced

    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    sys.argv[1:] = request["arguments"]
    sys.path[0] = os.getcwd()  # noqa: PTH109
    sys.stdin = _opened(sys.stdin, "r")
    sys.stdout = _opened(sys.stdout, "w")
    sys.stderr = _opened(sys.stderr, "w", buffering=1)
    tempfile.tempdir = None
    status: object = 0
    try:
        if request["worker"] is None:
            runpy.run_module("feedstock_tools", run_name="__main__", alter_sys=True)
        else:
            status = importlib.import_module(request["worker"]).main(*request["arguments"])
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        status = 1
    # What Python does at its end, but for giving back the memory of each object, which are many.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        status = 120
    posix._exit(status if isinstance(status, int) else 0 if status is None else 1)


def _opened(stream: TextIO, mode: str, buffering: int = -1) -> TextIO:
    """A stream in place of the server's, which remembers what kind of file that was."""
    encoding, errors = stream.encoding, stream.errors
    return cast("TextIO", open(stream.fileno(), mode, buffering, encoding, errors, closefd=False))


def _import_all() -> None:
    """Import the modules that commands import, those of other processes and of whole programs left out."""
    for module in pkgutil.walk_packages(feedstock_tools.__path__, "feedstock_tools."):
        if not module.name.endswith(("worker", "__main__")):
            importlib.import_module(module.name)


if __name__ == "__main__":
    _import_all()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as _asked:
        _request = _serve(_asked)
    if _request is not None:
        _become(_request)

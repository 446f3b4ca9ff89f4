"""The processes that commands of `warm` are forks of, and their workers: what goes on in them, and in a fork.

They start no thread, and fork for each request; a request brings the streams of the fork, and a socket for its reply.
There are two, since a process that has imported all takes three times as long to fork for each script of a build as one
that has imported what builders do.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, TextIO, cast

from tests.support.forked import ENDS, WORKERS, fork_workers
from tests.support.huge_pages import collapse_memory
from tests.support.warm import BUILDERS, RARELY, ask_at, place_of

#: What builders import late.
_LATE = ("rattler", "rattler_build", "feedstock_tools.builds.engines.comparable", "feedstock_tools.channel.folder")


@dataclass
class _Fork:
    """A running fork: where to report its end, who asked for it, and what those that it asked for have used."""

    reply: socket.socket
    asker: int
    seconds: float = 0.0
    memory: int = 0


@dataclass
class _Link:
    """A pipe between two servers, for what forks of one have used for forks of the other; only one end is open here."""

    reading: int | None = None
    writing: int | None = None

    def tell(self, asker: int, seconds: float, memory: int) -> None:
        if self.writing is not None:
            os.write(self.writing, f"{asker} {seconds} {memory}\n".encode())

    def told(self) -> list[tuple[int, float, int]]:
        """What the other one has told since the last call."""
        if self.reading is None:
            return []
        try:
            lines = os.read(self.reading, 1 << 16).decode().splitlines()
        except BlockingIOError:
            return []
        return [(int(asker), float(seconds), int(memory)) for asker, seconds, memory in map(str.split, lines)]

    def close(self) -> None:
        for end in (self.reading, self.writing):
            if end is not None:
                os.close(end)


def _serve(life: socket.socket, listening: socket.socket, link: _Link) -> dict[str, Any] | None:
    """Fork for each request, and report how each fork ended. Returns the request in a fork, and None at the end.

    Args:
        life: its other end closes at the end of who started this process.
        link: to another server.
    """
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # in a terminal it is for the tests, at whose end this process ends
    running: dict[int, _Fork] = {}
    watched: list[Any] = [wake, life, listening]
    while True:
        ready = select.select(watched, [], [])[0]
        if life in ready:
            return None
        if wake in ready:
            os.read(wake, 512)
            _report_ended(running, link)
        if listening not in ready:
            continue
        connection, _ = listening.accept()
        request, streams = _received(connection)
        if request is None:  # who asked has ended
            connection.close()
            continue
        pid = os.fork()
        if pid == 0:
            os.close(wake)
            os.close(waker)
            link.close()
            for each in (life, listening, *(fork.reply for fork in running.values())):
                each.close()
            _leave(request, streams, connection)
            return request
        running[pid] = _Fork(connection, _peer_of(connection))
        for number in streams:
            os.close(number)


def request_in_a_fork(life: int, listening: int, link: _Link | None = None) -> dict[str, Any] | None:
    """The same with the numbers of two sockets, which are closed afterwards."""
    with socket.socket(fileno=life) as its_life, socket.socket(fileno=listening) as its_listening:
        return _serve(its_life, its_listening, link or _Link())


def _received(connection: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """A request with its three open files."""
    length, streams, _, _ = socket.recv_fds(connection, 4, 3)
    content = b""
    while missing := int.from_bytes(length, "big") - len(content):
        some = connection.recv(missing)
        if not some:
            return None, streams
        content += some
    return (json.loads(content) if content else None), streams


def _peer_of(connection: socket.socket) -> int:
    """The process at the other end, where the system tells."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    return int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)


def _leave(request: Mapping[str, Any], streams: Sequence[int], connection: socket.socket) -> None:
    """In a fork: become what is not the server's, and only then tell its number."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["session"]:
        os.setsid()
    else:
        os.setpgid(0, request["group"])
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    with connection:
        with suppress(OSError):  # who asked has ended
            connection.sendall(f"{os.getpid()}\n".encode())
            if not request["waits"] or connection.recv(1):
                return
        os.kill(os.getpid(), signal.SIGKILL)


def _report_ended(running: dict[int, _Fork], link: _Link) -> None:
    for asker, seconds, memory in link.told():
        _count(running, asker, seconds, memory)
    while running:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
        if not pid:
            return
        if pid not in running:  # the other server
            continue
        fork = running.pop(pid)
        memory = max(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024), fork.memory)
        seconds = usage.ru_utime + usage.ru_stime + fork.seconds
        _count(running, fork.asker, seconds, memory)
        link.tell(fork.asker, seconds, memory)
        report = {"status": os.waitstatus_to_exitcode(status), "seconds": seconds, "memory": memory}
        with fork.reply as reply, suppress(OSError):  # who asked has ended
            reply.sendall(json.dumps(report).encode())


def _count(running: Mapping[int, _Fork], asker: int, seconds: float, memory: int) -> None:
    """Count what a fork has used for another that asked for it, if that is one of ours."""
    if asker in running:
        running[asker].seconds += seconds
        running[asker].memory = max(memory, running[asker].memory)


def _become(request: dict[str, Any], place: str) -> NoReturn:
    """Be what a new Python would be that runs feedstock-tools with these arguments there, and end as it would."""
    import posix  # whose _exit nothing has replaced

    os.chdir(request["folder"])
    for name in os.environ.keys() - request["variables"].keys():
        del os.environ[name]
    os.environ.update(dict(request["variables"].items() - os.environ.items()))  # each one takes new memory
    sys.argv[1:] = request["arguments"]
    if request["worker"] not in WORKERS:  # whose command hides the folder where they start
        sys.path[0] = os.getcwd()  # noqa: PTH109
    if request["worker"] not in ENDS:
        ask_at(place)
        fork_workers()
    sys.stdin = opened(sys.stdin, "r")
    sys.stdout = opened(sys.stdout, "w")
    sys.stderr = opened(sys.stderr, "w", buffering=1)
    tempfile.tempdir = None
    status: object = 0
    try:
        if request["program"]:
            exec(request["program"], {"__name__": "__main__"})  # noqa: S102 - a test's own statements
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


def opened(stream: TextIO, mode: str, buffering: int = -1) -> TextIO:
    """A stream in place of the server's, which remembers what kind of file that was."""
    encoding, errors = stream.encoding, stream.errors
    return cast("TextIO", open(stream.fileno(), mode, buffering, encoding, errors, closefd=False))


def _request_of_two(life: int, listening: int, place: str) -> dict[str, Any] | None:
    """Be the server of commands and of their workers, and have a child that is that of builders."""
    for name in (*BUILDERS, *_LATE):
        importlib.import_module(name)
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with socket.socket(socket.AF_UNIX) as of_builders:
        of_builders.bind(place_of(BUILDERS[0], place))
        of_builders.listen(128)
        if os.fork() == 0:
            os.close(reading)
            os.close(listening)
            return _when_ready(life, of_builders.detach(), _Link(writing=writing))
    os.close(writing)
    importlib.import_module("tests.support.warming").import_all()
    return _when_ready(life, listening, _Link(reading=reading))


def _when_ready(life: int, listening: int, link: _Link) -> dict[str, Any] | None:
    """Serve with the memory that this process has."""
    gc.freeze()
    collapse_memory()
    gc.set_threshold(*RARELY)
    gc.enable()
    return request_in_a_fork(life, listening, link)


if __name__ == "__main__":
    gc.disable()
    _request = _request_of_two(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    if _request is not None:
        _become(_request, sys.argv[3])

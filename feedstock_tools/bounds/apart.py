"""Bounded work for a program that runs threads: a process apart, which forks a child for each call.

The first call starts the process, a fresh one of this program without any thread. It imports what earlier calls used
and forks, so that later calls cost no more than a fork. It ends with the program.

The program sends, for each call, three open files over a socket: the request (first the names of modules to import,
then the work), the answer, and the note. A child of the process forks the one that works, waits for it, and writes the
status after its answer.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeVar

from feedstock_tools.bounds import limits
from feedstock_tools.errors import WorkError
from feedstock_tools.processes import worker_command

T = TypeVar("T")

_STATUS = struct.Struct("<i")


@dataclass
class _Apart:
    """The process of this program, the socket to it, and the modules that its calls used."""

    owner: int
    process: subprocess.Popen[bytes]
    socket: socket.socket
    used: set[str] = field(default_factory=set)


_apart: _Apart | None = None
_starting = threading.Lock()


def run_apart(work: Callable[[], T], bounds: limits.Bounds) -> T:
    """Do `work` in a child of the process apart, under bounds, and return its result.

    Args:
        work: a `partial` of a function of a module, with arguments that can be pickled, as its result can.

    Raises:
        BoundError: the work exceeded a bound.
        WorkError: the process cannot be started.
        FeedstockError: any error of the work.
    """
    request = pickle.dumps((str(Path.cwd()), limits.factor(), bounds, work), pickle.HIGHEST_PROTOCOL)
    for _ in range(2):  # somebody may have ended the process since the last call
        apart = _running()
        with tempfile.TemporaryFile() as shared:
            shared.truncate(limits.Note.size)
            try:
                content = _answer_to(apart, request, shared.fileno(), bounds)
            except (BrokenPipeError, ConnectionError):
                _forget(apart)
                continue
            if len(content) < _STATUS.size:
                if not _has_ended(apart):
                    raise WorkError("the work was ended from outside")
                _forget(apart)
                continue
            (status,) = _STATUS.unpack_from(content, len(content) - _STATUS.size)
            note = limits.Note(shared.fileno())
            return limits.value_of(content[: -_STATUS.size], status, note, bounds, apart.used)  # type: ignore[no-any-return]
    raise WorkError("the process for bounded work ends at once")


def _running() -> _Apart:
    global _apart
    with _starting:
        if _apart is None or _apart.owner != os.getpid() or _apart.process.poll() is not None:
            parent_end, child_end = socket.socketpair()
            with child_end:
                try:
                    process = subprocess.Popen(
                        worker_command(__name__), stdin=child_end.fileno(), stdout=subprocess.DEVNULL
                    )
                except OSError as error:
                    raise WorkError(f"cannot start a process for bounded work: {error.strerror}") from error
            _apart = _Apart(os.getpid(), process, parent_end)
            atexit.register(_end, _apart)
        return _apart


def _end(apart: _Apart) -> None:
    """Let the process end, and wait for it: without that, Python warns of it at the end of the program."""
    if apart.owner == os.getpid():
        with contextlib.suppress(OSError):
            apart.socket.shutdown(socket.SHUT_RDWR)  # forks of this program may have it open, too
        apart.socket.close()
        apart.process.wait()


def _has_ended(apart: _Apart) -> bool:
    """Whether the process apart is gone, rather than one of its children."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        apart.process.wait(1)
    return apart.process.poll() is not None


def _forget(apart: _Apart) -> None:
    global _apart
    with _starting:
        if _apart is apart:
            _apart = None
    apart.socket.close()


def _answer_to(apart: _Apart, request: bytes, note: int, bounds: limits.Bounds) -> bytes:
    modules = "\n".join(sorted(apart.used)).encode()
    asking, request_end = os.pipe()
    answer_end, answering = os.pipe()
    with os.fdopen(request_end, "wb") as requests, os.fdopen(answer_end, "rb", buffering=0) as answers:
        try:
            with _starting:
                socket.send_fds(apart.socket, [b"."], [asking, answering, note])
        finally:
            os.close(asking)
            os.close(answering)
        for part in (modules, request):
            requests.write(limits.LENGTH.pack(len(part)) + part)
        requests.flush()
        return limits.whole(answers, bounds)  # the end of `requests` stays open: the child ends with it


def main() -> int:
    """The process apart: a child for each request on the socket that is its standard input, until that closes."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from a terminal: the program decides
    requests = socket.socket(fileno=0)
    while True:
        try:
            data, files, _, _ = socket.recv_fds(requests, 1, 3)
        except OSError:
            return 0
        if not data:
            return 0
        with contextlib.suppress(EOFError):
            for name in set(limits.received(files[0]).decode().splitlines()) - sys.modules.keys():
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
            if os.fork() == 0:
                requests.close()
                _wait_for_child(*files)
        for file in files:
            os.close(file)


def _wait_for_child(request: int, result: int, note: int) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        _work(request, result, note)
    os.close(request)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        os.write(result, _STATUS.pack(status))
    os._exit(0)


def _work(request: int, result: int, note: int) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    status = 1
    try:
        content = limits.received(request)
        limits.end_with_parent(request)
        before = set(sys.modules)
        folder, scale, bounds, work = pickle.loads(content)  # noqa: S301 - from our own program
        os.chdir(folder)
        limits.widen(str(scale) if scale != float("inf") else "off")
        limits.enter(bounds, limits.Note(note))

        def used() -> list[str]:
            return sorted(name for name in set(sys.modules) - before if name.isascii())

        with os.fdopen(result, "wb") as stream:
            stream.write(limits.answer(work, used))
        status = 0
    finally:
        os._exit(status)

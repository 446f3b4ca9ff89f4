"""The process that commands of `warm` are forks of, and their workers: what goes on in it, and in a fork.

It starts no thread, and forks for each request; a request brings the streams of the fork, and a socket for its reply.
"""

from __future__ import annotations

import atexit
import gc
import importlib
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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

import feedstock_tools
from feedstock_tools.workers import worker_command
from tests.support.warm import FIXED_THERE, NEW_WORKERS, RARELY, Started, ask_through, fixed, may_ask, start

#: The modules of the workers that builds and tests of packages start, and of the process for bounded work.
WORKERS = (
    "feedstock_tools.bounds.apart",
    "feedstock_tools.builds.engines.embedded.worker",
    "feedstock_tools.builds.testing.worker",
)
#: Of a worker, whose modules are found by its command, and which a build lets write none.
_OF_NO_WORKER = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")


@dataclass
class _Fork:
    """A running fork: where to report its end, who asked for it, and what those that it asked for have used."""

    reply: int
    asker: int | None
    seconds: float = 0.0
    memory: int = 0


def _serve(asked: socket.socket) -> dict[str, Any] | None:
    """Fork for each request, and report how each fork ended. Returns the request in a fork, and None at the end."""
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, _Fork] = {}
    askers: dict[socket.socket, int | None] = {asked: None}
    while True:
        watched: list[Any] = [wake, *askers]
        ready = select.select(watched, [], [])[0]
        if wake in ready:
            os.read(wake, 512)
            _report_ended(running)
        for asking in [asker for asker in askers if asker in ready]:
            received = _received(asking)
            if received is None:
                if asking is asked:
                    return None
                del askers[asking]
                asking.close()
                continue
            request, descriptors = received
            ours, theirs = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                os.close(wake)
                os.close(waker)
                for asker in (*askers, ours):
                    asker.close()
                _leave(request, [fork.reply for fork in running.values()], descriptors)
                return request | {"server": theirs.detach()}
            theirs.close()
            running[pid] = _Fork(descriptors.pop(), askers[asking])
            askers[ours] = pid
            for each in descriptors:
                os.close(each)


def _received(asking: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """A request with its open files; None if nobody asks there any more."""
    length, descriptors, _, _ = socket.recv_fds(asking, 4, 4)
    if not length:
        return None
    request = b""
    while missing := int.from_bytes(length, "big") - len(request):
        request += asking.recv(missing)  # and nothing of the next request
    return json.loads(request), descriptors


def _leave(request: Mapping[str, Any], replies: Sequence[int], descriptors: Sequence[int]) -> None:
    """In a fork: become what is not the server's, and only then tell its number."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if request["session"]:
        os.setsid()
    else:
        os.setpgid(0, request["group"])
    for number, each in enumerate(descriptors[:3]):
        os.dup2(each, number)
    with suppress(OSError):  # who asked has ended
        os.write(descriptors[3], f"{os.getpid()}\n".encode())
    for each in (*replies, *descriptors):
        os.close(each)


def _report_ended(running: dict[int, _Fork]) -> None:
    while running:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
        if not pid:
            return
        fork = running.pop(pid)
        memory = max(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024), fork.memory)
        seconds = usage.ru_utime + usage.ru_stime + fork.seconds
        if fork.asker in running:
            running[fork.asker].seconds += seconds
            running[fork.asker].memory = max(memory, running[fork.asker].memory)
        report = {"status": os.waitstatus_to_exitcode(status), "seconds": seconds, "memory": memory}
        with socket.socket(fileno=fork.reply) as reply, suppress(OSError):  # who asked has ended
            reply.sendall(json.dumps(report).encode())


class _Popen(subprocess.Popen[Any]):
    """In a fork, what starts processes: workers as forks of the server, and all others as ever."""

    def __new__(cls, command: Any, *_: Any, **options: Any) -> Any:
        """A worker that runs, or an object for the base class to begin with."""
        if may_ask() and _is_worker(command, options):
            return _Worker(command, **options)
        return super().__new__(cls)


def _is_worker(command: Any, options: Mapping[str, Any]) -> bool:
    """Whether a command starts one of the workers, with an environment that forks can have."""
    begun = worker_command("")[:4]
    if not (isinstance(command, list) and command[:4] == begun and command[5] in WORKERS):
        return False
    return _of_a_worker(options.get("env") or os.environ) == _of_a_worker(FIXED_THERE)


def _of_a_worker(variables: Mapping[str, str]) -> dict[str, str]:
    """What a worker's interpreter reads as it starts; it neither finds modules by its environment nor keeps them."""
    return {name: value for name, value in fixed(variables).items() if name not in _OF_NO_WORKER}


class _Worker(Started):
    """A worker in a fork; those of its streams that are pipes are pipes of bytes."""

    def __init__(
        self,
        command: list[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        start_new_session: bool = False,
    ) -> None:
        self.args, self.returncode = command, None
        ours: list[Any] = []
        theirs: list[int] = []
        for number, wanted in enumerate((stdin, stdout, stderr)):
            our_end, their_end = _ends(number, wanted)
            ours.append(our_end)
            theirs.append(their_end)
        try:
            streams = (theirs[0], theirs[1], theirs[2])
            own = os.environ if env is None else env
            self._running = start(command[6:], cwd, own, streams, command[5], session=start_new_session)
        finally:
            for each in set(theirs) - {0, 1, 2, stdin, stdout, stderr}:
                os.close(each)
        self.stdin, self.stdout, self.stderr = ours
        self.pid = self._running.pid


def _ends(number: int, wanted: int | None) -> tuple[Any, int]:
    """Our end of a stream, if it is a pipe, and the number of theirs."""
    if wanted == subprocess.PIPE:
        reading, writing = os.pipe()
        return (os.fdopen(writing, "wb", 0), reading) if number == 0 else (os.fdopen(reading, "rb"), writing)
    if wanted == subprocess.DEVNULL:
        return None, os.open(os.devnull, os.O_RDWR)
    return None, number if wanted is None else wanted


def _become(request: dict[str, Any]) -> NoReturn:
    """Be what a new Python would be that runs feedstock-tools with these arguments there, and end as it would."""
    import posix  # whose _exit nothing has replaced

    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    sys.argv[1:] = request["arguments"]
    if request["worker"] not in WORKERS:  # whose command hides the folder where they start
        sys.path[0] = os.getcwd()  # noqa: PTH109
        if NEW_WORKERS not in os.environ:
            ask_through(socket.socket(fileno=request["server"]))
            subprocess.Popen = _Popen  # type: ignore[assignment,misc]
    sys.stdin = _opened(sys.stdin, "r")
    sys.stdout = _opened(sys.stdout, "w")
    sys.stderr = _opened(sys.stderr, "w", buffering=1)
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


def _opened(stream: TextIO, mode: str, buffering: int = -1) -> TextIO:
    """A stream in place of the server's, which remembers what kind of file that was."""
    encoding, errors = stream.encoding, stream.errors
    return cast("TextIO", open(stream.fileno(), mode, buffering, encoding, errors, closefd=False))


def _import_all() -> None:
    """Import the modules that commands and `WORKERS` import, those of other processes and whole programs left out."""
    for module in pkgutil.walk_packages(feedstock_tools.__path__, "feedstock_tools."):
        if not module.name.endswith(("worker", "__main__")):
            importlib.import_module(module.name)
    importlib.import_module("feedstock_tools.builds.plan.plan")._own_stamp()
    for name in (*WORKERS, "rattler", "rattler_build"):  # none of them starts a thread
        importlib.import_module(name)


if __name__ == "__main__":
    gc.disable()
    _import_all()
    gc.freeze()
    gc.set_threshold(*RARELY)
    gc.enable()
    with socket.socket(fileno=int(sys.argv[1])) as _asked:
        _request = _serve(_asked)
    if _request is not None:
        _become(_request)

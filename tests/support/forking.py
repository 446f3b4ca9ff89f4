"""The process that commands of `warm` are forks of, and their workers: what goes on in it, and in a fork.

It starts no thread, and forks for each request; a request brings the streams of the fork, and a socket for its reply.
"""

from __future__ import annotations

import atexit
import gc
import importlib.metadata
import json
import os
import pkgutil
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

from jinja2 import Environment

import feedstock_tools
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.facts.packages import read_packages
from feedstock_tools.facts.tools import read_tools
from feedstock_tools.generate import read_spec, render
from feedstock_tools.generate.texts.rendering import RECIPE_FILES
from feedstock_tools.pins.graph.from_facts import graph_of_facts
from feedstock_tools.pins.graph.model import Release
from tests.support.forked import ENDS, WORKERS, fork_workers
from tests.support.huge_pages import collapse_memory
from tests.support.paths import EXAMPLES
from tests.support.warm import NEW_WORKERS, RARELY, ask_at

__all__ = ["opened", "request_in_a_fork"]

#: Modules that commands import late, and often: none of them starts a thread.
_LATE = ("encodings.unicode_escape", "networkx", "rattler", "rattler.exceptions", "rattler.package_streaming")


@dataclass
class _Fork:
    """A running fork: where to report its end, who asked for it, and what those that it asked for have used."""

    reply: socket.socket
    asker: int
    seconds: float = 0.0
    memory: int = 0


def _serve(life: socket.socket, listening: socket.socket) -> dict[str, Any] | None:
    """Fork for each request, and report how each fork ended. Returns the request in a fork, and None at the end.

    Args:
        life: its other end closes at the end of who started this process.
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
            _report_ended(running)
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
            for each in (life, listening, *(fork.reply for fork in running.values())):
                each.close()
            _leave(request, streams, connection)
            return request
        running[pid] = _Fork(connection, _peer_of(connection))
        for number in streams:
            os.close(number)


def request_in_a_fork(life: int, listening: int) -> dict[str, Any] | None:
    """The same with the numbers of two sockets, which are closed afterwards."""
    with socket.socket(fileno=life) as its_life, socket.socket(fileno=listening) as its_listening:
        return _serve(its_life, its_listening)


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
        with fork.reply as reply, suppress(OSError):  # who asked has ended
            reply.sendall(json.dumps(report).encode())


def _become(request: dict[str, Any], place: str) -> NoReturn:
    """Be what a new Python would be that runs feedstock-tools with these arguments there, and end as it would."""
    import posix  # whose _exit nothing has replaced

    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    sys.argv[1:] = request["arguments"]
    if request["worker"] not in WORKERS:  # whose command hides the folder where they start
        sys.path[0] = os.getcwd()  # noqa: PTH109
    if request["worker"] not in ENDS and NEW_WORKERS not in os.environ:
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


def _import_all() -> None:
    """Import the modules that commands and `WORKERS` import, those of other processes and whole programs left out."""
    for module in pkgutil.walk_packages(feedstock_tools.__path__, "feedstock_tools."):
        if not module.name.endswith(("worker", "__main__")):
            importlib.import_module(module.name)
    importlib.import_module("feedstock_tools.builds.plan.plan")._own_stamp()
    importlib.import_module("feedstock_tools.feedstock.up_to_date")._own_digest()
    for name in (*WORKERS, *_LATE, "rattler_build"):
        importlib.import_module(name)
    importlib.metadata.version("py-rattler-build")  # imports a parser of messages
    _make_what_is_kept()


def _make_what_is_kept() -> None:
    """Make what many commands make and keep: facts, the graph of these, compiled templates, and lexers of Jinja."""
    read_tools()
    read_packages()
    graph_of_facts(load_cuda()).bounds_of(Release("cuda", ""))
    spec = read_spec(EXAMPLES / "gpuprobe")
    for recipe_format in RECIPE_FILES:
        render(spec, recipe_format)
    for keeps_newline in (False, True):
        assert Environment(keep_trailing_newline=keeps_newline, autoescape=True).lexer


if __name__ == "__main__":
    gc.disable()
    _import_all()
    gc.freeze()
    collapse_memory()
    gc.set_threshold(*RARELY)
    gc.enable()
    _request = request_in_a_fork(int(sys.argv[1]), int(sys.argv[2]))
    if _request is not None:
        _become(_request, sys.argv[3])

"""The processes of attempts: forks of a process that has imported what they need, which saves each the start of Python.

The worker has an event loop and its libraries' threads, so it does not fork. It starts a process apart, which imports
some modules, runs no thread, and forks for each request. A request brings three open files: the standard input of the
fork, whose other end only the worker has; the file for its messages; and a pipe that only the fork and its own forks
keep open, so that its end shows when they have ended.

The process apart ends when the worker does, and its forks end with either.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from feedstock_tools.processes import worker_command

_LENGTH = struct.Struct("<I")


class Fork:
    """A process that runs, or ran until just now."""

    def __init__(self, held: int, ended: int) -> None:
        """Take over two pipes: `held` is the writing end of its input, `ended` closes at the other end with it."""
        os.set_blocking(ended, False)
        self._held, self._ended = held, ended
        self._is_held = self._is_open = True

    def has_ended(self) -> bool:
        """Whether it has ended, with all its forks."""
        if self._is_open:
            try:
                os.read(self._ended, 1)
            except BlockingIOError:
                return False
            os.close(self._ended)
            self._is_open = False
            self.let_go()
        return True

    def let_go(self) -> None:
        """Close its standard input, as the end of the worker does."""
        if self._is_held:
            self._is_held = False
            os.close(self._held)

    def wait(self) -> None:
        """Wait until it has ended."""
        if self._is_open:
            os.set_blocking(self._ended, True)
            self.has_ended()


class Forks:
    """The process apart of a worker, started again if somebody has ended it."""

    def __init__(self, modules: Sequence[str], variables: Mapping[str, str]) -> None:
        """Start it.

        Args:
            modules: what it imports; its forks call `main` of the first.
            variables: its environment, and theirs.

        Raises:
            OSError: it cannot be started.
        """
        self._modules = tuple(modules)
        self._variables = dict(variables)
        self._start()

    def start(self, folder: Path, messages: int, *arguments: str) -> Fork:
        """Call `main` of the first module with some strings, in a fork that leads a session of its own.

        Args:
            folder: where it works; `messages` is an open file for all that it prints.

        Raises:
            OSError: it cannot be started.
        """
        content = json.dumps([str(folder), *arguments]).encode()
        read_end, write_end = os.pipe()
        ended, open_there = os.pipe()
        try:
            self._send(_LENGTH.pack(len(content)) + content, [read_end, messages, open_there])
        except OSError:
            os.close(write_end)
            os.close(ended)
            raise
        finally:
            os.close(read_end)
            os.close(open_there)
        return Fork(write_end, ended)

    def end(self) -> None:
        """End the process apart; its forks must have ended."""
        self._asking.close()
        self._process.kill()
        self._process.wait()

    def _send(self, request: bytes, files: Sequence[int]) -> None:
        try:
            socket.send_fds(self._asking, [request], files)
        except ConnectionError:
            self.end()
            self._start()
            socket.send_fds(self._asking, [request], files)

    def _start(self) -> None:
        self._asking, socket_of_forks = socket.socketpair()
        with socket_of_forks:
            self._process = subprocess.Popen(
                worker_command(__name__, *self._modules),
                env=self._variables,
                stdin=socket_of_forks.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )


def main(*modules: str) -> int:
    """Fork for each request on the socket that is the standard input, until that closes.

    Args:
        modules: what to import first; forks call `main` of the first.
    """
    import ctypes  # noqa: F401 - what supervisors need, so that not each of them loads it

    program, *_ = map(import_module, modules)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system removes forks that have ended
    gc.collect()
    gc.freeze()  # otherwise a garbage collection in a fork would copy all of this memory
    requests = socket.socket(fileno=os.dup(0))
    while True:
        length, files, _, _ = socket.recv_fds(requests, _LENGTH.size, 3)
        if len(length) < _LENGTH.size:
            return 0
        (size,) = _LENGTH.unpack(length)
        content = requests.recv(size, socket.MSG_WAITALL)
        for file in files:
            os.set_inheritable(file, False)
        with suppress(OSError):  # no memory, or no process left: the pipe shows that there is no fork
            if os.fork() == 0:
                requests.close()
                _become(program.main, content, *files[:2])
        for file in files:
            os.close(file)


def _become(work: Callable[..., int], content: bytes, standard_input: int, messages: int) -> NoReturn:
    """Be the process that a request asks for."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for file, number in ((standard_input, 0), (messages, 1), (messages, 2)):
            os.dup2(file, number)
        os.close(standard_input)
        os.close(messages)
        folder, *arguments = json.loads(content)
        os.chdir(folder)
        status = work(*arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(status)

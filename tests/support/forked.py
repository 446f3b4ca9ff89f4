"""Workers of feedstock-tools as forks of a warm process, started as if they were processes of a new Python."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from feedstock_tools.builds.engines.process.guard import Guard
from feedstock_tools.workers import worker_command
from tests.support.warm import BUILDERS, FIXED_THERE, NEW_WORKERS, Running, Started, fixed, start

#: The modules of workers that start no worker: these, that of bounded work, and that of an upload.
ENDS = (*BUILDERS, "feedstock_tools.bounds.apart", "feedstock_tools.channel.upload_worker")
#: The same, and the process of a host of a fleet that forks for each of its builds.
WORKERS = (*ENDS, "feedstock_tools.builds.fleet.host.forks")
#: Of a worker, whose modules are found by its command, and which a build lets write none.
_OF_NO_WORKER = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
_BEGUN = worker_command("")[:4]


#: Workers that wait for their limits; those of a new Python take longer to start than a guard takes to set them.
_WAITING: dict[int, Running] = {}
_attach = Guard.attach


def _attach_and_let_go(guard: Guard, pid: int) -> None:
    _attach(guard, pid)
    if (waiting := _WAITING.pop(pid, None)) is not None:
        waiting.let_go()


def fork_workers() -> None:
    """Have the workers of this process forked from now on, unless `NEW_WORKERS` is set when one starts."""
    subprocess.Popen = Popen  # type: ignore[assignment,misc]
    Guard.attach = _attach_and_let_go  # type: ignore[assignment,method-assign]


class Popen(subprocess.Popen[Any]):
    """What starts processes: workers as forks of a warm process, and all others as ever."""

    def __new__(cls, command: Any, *_: Any, **options: Any) -> Any:
        """A worker that runs, or an object for the base class to begin with."""
        if _is_worker(command, options):
            return _Worker(command, **options)
        return super().__new__(cls)


def _is_worker(command: Any, options: Mapping[str, Any]) -> bool:
    """Whether a command starts one of the workers, with an environment that forks can have."""
    is_one = isinstance(command, list) and command[:4] == _BEGUN and command[5] in WORKERS
    if not is_one or NEW_WORKERS in os.environ:
        return False
    return _of_a_worker(options.get("env") or os.environ) == _of_a_worker(FIXED_THERE)


def _of_a_worker(variables: Mapping[str, str]) -> dict[str, str]:
    """What a worker's interpreter reads as it starts; it neither finds modules by its environment nor keeps them."""
    return {name: value for name, value in fixed(variables).items() if name not in _OF_NO_WORKER}


class _Worker(Started):
    """A worker in a fork; those of its streams that are pipes are pipes of bytes, or of text for `communicate`."""

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
        text: bool = False,
    ) -> None:
        self.args, self.returncode = command, None
        self._text = text
        self._printed: list[bytes] = []
        self._reader: threading.Thread | None = None
        ours: list[Any] = []
        theirs: list[int] = []
        for number, wanted in enumerate((stdin, stdout, stderr)):
            our_end, their_end = _ends(number, wanted)
            ours.append(our_end)
            theirs.append(their_end)
        try:
            streams = (theirs[0], theirs[1], theirs[2])
            own = os.environ if env is None else env
            waits = command[5] in BUILDERS
            self._running = start(command[6:], cwd, own, streams, command[5], session=start_new_session, waits=waits)
        finally:
            for each in set(theirs) - {0, 1, 2, stdin, stdout, stderr}:
                os.close(each)
        self.stdin, self.stdout, self.stderr = ours
        self.pid = self._running.pid
        if waits:
            _WAITING[self.pid] = self._running

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:  # noqa: A002
        """What it prints until its end on standard output; a call after one that took too long goes on."""
        assert self.stdout is not None
        assert self.stderr is None
        if self._reader is None:
            if self.stdin is not None:
                with suppress(BrokenPipeError), cast("IO[Any]", self.stdin) as stdin:
                    stdin.write(input.encode() if self._text else input or b"")
            self._reader = threading.Thread(target=self._read)
            self._reader.start()
        self._reader.join(timeout)
        if self._reader.is_alive():
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(timeout)
        return self._printed[0].decode() if self._text else self._printed[0], None

    def _read(self) -> None:
        with cast("IO[Any]", self.stdout) as stdout:
            self._printed.append(stdout.read())


def _ends(number: int, wanted: int | None) -> tuple[Any, int]:
    """Our end of a stream, if it is a pipe, and the number of theirs."""
    if wanted == subprocess.PIPE:
        reading, writing = os.pipe()
        return (os.fdopen(writing, "wb", 0), reading) if number == 0 else (os.fdopen(reading, "rb"), writing)
    if wanted == subprocess.DEVNULL:
        return None, os.open(os.devnull, os.O_RDWR)
    return None, number if wanted is None else wanted

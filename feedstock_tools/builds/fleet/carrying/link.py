"""The client's connection to its fleet, for any number of threads: tasks for Dask's scheduler, and requests to hosts.

The connection is a process of its own (`courier`), started again when it or the scheduler was away.
"""

from __future__ import annotations

import base64
import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from feedstock_tools.builds.engines.contract import Log, Output
from feedstock_tools.builds.fleet.carrying.courier import LONGEST_LINE
from feedstock_tools.builds.fleet.certificates import is_name
from feedstock_tools.builds.fleet.folder import FleetFolder
from feedstock_tools.builds.fleet.host.settings import report_of
from feedstock_tools.builds.fleet.host.spool import START
from feedstock_tools.builds.fleet.orders.order import Order, Refused
from feedstock_tools.builds.fleet.results.events import Arriving, Damaged
from feedstock_tools.builds.plan.hosts import NO_SHARE, Share
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.processes import worker_command

COURIER = "feedstock_tools.builds.fleet.carrying.courier"
#: How long the first connection may take, in seconds, and the pause before the next one.
_CONNECTS_WITHIN, _AGAIN = 30.0, 1.0
#: How often a thread that waits for an answer checks whether its run is over.
_CHECK_SECONDS = 0.2
#: How long a host may be away before it counts as gone, in seconds, if Dask does not begin its rows elsewhere before.
GONE_AFTER = 20.0


class Away(Exception):  # noqa: N818 - it may come back
    """The scheduler, or the host of a request, cannot be reached now."""


@dataclass
class Task:
    """A row that Dask builds.

    Attributes:
        order: with the amounts that the row needs as `resources`, and its `priority`: higher comes first.
        without: the hosts that must not build it.
        host: the one that has begun it last, with the row's share of it; empty before. `start` names that beginning.
        ended: `cancelled` by another command, or `finished`; empty before.
    """

    order: Order
    resources: Mapping[str, float]
    priority: int
    without: tuple[str, ...] = ()
    host: str = ""
    start: str = ""
    share: Share = NO_SHARE
    ended: str = ""


class Link:
    """A connection to a fleet. Use it as a context.

    Attributes:
        hosts: the hosts that are there → their reports, as of the last time that the scheduler answered.
        jobs: kind of job → the jobs that the hub has submitted, and what is wrong.
        dashboard: the port of Dask's dashboard on the hub's own machine; None if it has none.
        tasks: what Dask was given and has not been let go, by key.
        run: the name of the run that gives the tasks.
    """

    def __init__(self, fleet: FleetFolder, run: str = "") -> None:
        self.run = run
        self.hosts: Mapping[str, Mapping[str, Any]] = {}
        self.jobs: Mapping[str, Mapping[str, Any]] = {}
        self.dashboard: int | None = None
        self.tasks: dict[str, Task] = {}
        self._fleet = fleet
        self._problem = "there is no answer"
        self._seen: dict[str, float] = {}
        self._is_up = threading.Event()
        self._first = threading.Event()
        self._has_met = False
        self._closing = threading.Event()
        self._outbox: queue.SimpleQueue[str] | None = None
        self._asked: dict[int, Future[Mapping[str, Any]]] = {}
        self._turn = threading.RLock()
        self._number = 0
        self._thread = threading.Thread(target=self._hold, name="fleet", daemon=True)

    def __enter__(self) -> Link:
        """Connect.

        Raises:
            WorkError: the scheduler cannot be reached, or it is not that of this fleet.
        """
        self._thread.start()
        self._first.wait(_CONNECTS_WITHIN)
        if not self._has_met:  # one that was lost at once is connected to again
            self.close()
            hint = "Is its machine up? `feedstock-tools fleet hub` serves on it."
            what = f"the scheduler of the fleet at {self._fleet.hub} cannot be reached: {self._problem}"
            raise WorkError(what, hint=hint)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; tasks go on."""
        self._closing.set()
        with self._turn:
            if self._outbox is not None:
                self._outbox.put("")
        self._thread.join(_CONNECTS_WITHIN)

    @property
    def is_up(self) -> bool:
        """Whether the scheduler answers."""
        return self._is_up.is_set()

    def is_gone(self, host: str) -> bool:
        """Whether a host has been away for long, while the scheduler was there."""
        return self.is_up and time.monotonic() - self._seen.get(host, 0.0) > GONE_AFTER

    def submit(self, task: Task) -> None:
        """Have a row built; again and again if the scheduler is lost."""
        with self._turn:
            self.tasks[task.order.key] = task
            if self.is_up:
                self._submit(task)

    def release(self, key: str, *, cancel: bool = False) -> None:
        """Let go of a task.

        Args:
            cancel: it must not go on, for any client.
        """
        with self._turn:
            if self.tasks.pop(key, None) is not None and self.is_up:
                self._send("release", key=key, cancel=cancel)

    def runs(self) -> Mapping[str, int]:
        """The runs of the fleet, with the number of their rows that have not ended.

        Raises:
            Away: the scheduler cannot be reached now.
        """
        found: Mapping[str, int] = self._found(self._send("runs"))
        return found

    def stop(self, run: str) -> int:
        """End a run of the fleet; returns the number of builds that end.

        Raises:
            Away: the scheduler cannot be reached now.
        """
        return int(self._found(self._send("stop", run=run)))

    def ask(
        self, host: str, operation: str, arguments: Mapping[str, Any], is_over: Callable[[], bool] = lambda: False
    ) -> Mapping[str, Any]:
        """The answer of a host to a request.

        Args:
            is_over: asked several times a second whether to give up.

        Raises:
            Away: the host cannot be reached now, or it is over.
            Refused: it does not do it, with the reason.
            Damaged: its answer has another form, or is too large.
        """
        found = self._found(self._send("ask", host=host, operation=operation, arguments=arguments), is_over)
        return {**found, "data": base64.b64decode(found["data"])} if "data" in found else found

    def fetch(
        self, host: str, key: str, content: str, size: int, path: Path, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Append to a file what it lacks of a file of an attempt, given by its hash.

        Raises:
            Away, Refused: see `ask`.
        """
        self._found(self._send("fetch", host=host, key=key, content=content, size=size, path=str(path)), is_over)

    def put(self, host: str, content: str, source: bytes | Path, is_over: Callable[[], bool] = lambda: False) -> None:
        """Send a host the contents of a hash.

        Raises:
            Away, Refused: see `ask`.
        """
        path, text = ("", source.decode()) if isinstance(source, bytes) else (str(source), "")
        self._found(self._send("put", host=host, content=content, path=path, text=text), is_over)

    def log_of(self, row: str) -> Iterator[bytes]:
        """What the build of a row has printed, and what it prints from now on, until it ends.

        Raises:
            InputError: no host builds it.
            Away, Refused, Damaged: see `ask`.
        """
        building = {
            build["row"]: (host, key)
            for host, report in self.hosts.items()
            for key, build in report.get("builds", {}).items()
        }
        if row not in building:
            hint = f"There are: {', '.join(sorted(building))}." if building else "No host builds anything."
            raise InputError(f"no host builds {row}", hint=hint)
        host, key = building[row]
        found = self.ask(host, "file", {"key": key, "content": START, "offset": 0, "size": 100})
        start, arriving, goes_on = found.get("data", b"").decode(errors="replace"), Arriving(), True
        while goes_on:
            answer = self.ask(host, "events", {"key": key, "start": start, "offset": arriving.offset})
            for event in arriving.take(answer):
                if isinstance(event, Output | Log):
                    yield event.content if isinstance(event, Output) else f"{event.text}\n".encode(errors="replace")
            goes_on = bool(answer["data"] or answer.get("goes_on"))

    def _submit(self, task: Task) -> None:
        order = task.order
        self._send(
            "submit",
            key=order.key,
            order=order.to_json(),
            resources=task.resources,
            priority=task.priority,
            run=self.run,
            host=task.host,
            without=list(task.without),
        )

    def _send(self, operation: str, /, **arguments: Any) -> Future[Mapping[str, Any]]:
        """Give the courier a request."""
        answer: Future[Mapping[str, Any]] = Future()
        with self._turn:
            if self._outbox is None:
                answer.set_exception(Away("the scheduler is away"))
                return answer
            self._number += 1
            self._asked[self._number] = answer
            self._outbox.put(json.dumps({"id": self._number, "do": operation, "with": arguments}) + "\n")
        return answer

    def _found(self, answer: Future[Mapping[str, Any]], is_over: Callable[[], bool] = lambda: False) -> Any:
        while True:
            try:
                found = answer.result(_CHECK_SECONDS)
                break
            except (NotYet, TimeoutError):
                if is_over():
                    raise Away("it is over") from None
        if isinstance(found, dict) and "refused" in found:
            raise Refused(str(found["refused"])[:2000])
        return found

    def _hold(self) -> None:
        """Run the courier, again and again."""
        with TemporaryDirectory(ignore_cleanup_errors=True) as home:
            while not self._closing.is_set():
                process = subprocess.Popen(
                    worker_command(COURIER, str(self._fleet.path), self._fleet.hub),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    encoding="utf-8",
                    errors="replace",
                    cwd="/",
                    env={"HOME": home, "LANG": "C.UTF-8"},
                    start_new_session=True,
                )
                with self._turn:
                    outbox: queue.SimpleQueue[str] = queue.SimpleQueue()
                    self._outbox = outbox
                writing = threading.Thread(target=_write, args=(process, outbox), daemon=True)
                writing.start()
                if self._closing.is_set():  # since just now
                    outbox.put("")
                self._read(process)
                self._lose(process, outbox)
                writing.join(_AGAIN)
                self._closing.wait(_AGAIN)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        with process.stdout as lines:
            while (line := lines.readline(LONGEST_LINE + 2)).endswith("\n"):
                with suppress(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
                    self._take(json.loads(line))
        process.kill()  # unless it has ended, a line was too long

    def _lose(self, process: subprocess.Popen[str], outbox: queue.SimpleQueue[str]) -> None:
        """The courier has ended."""
        outbox.put("")
        with self._turn:
            self._is_up.clear()
            self._outbox = None
            lost, self._asked = self._asked, {}
        for answer in lost.values():
            answer.set_exception(Away("the scheduler is away"))
        process.wait()
        self._first.set()

    def _take(self, message: Mapping[str, Any]) -> None:
        """A line of the courier."""
        if "hosts" in message:
            self._meet(message["hosts"])
        elif "jobs" in message:
            self.jobs = {str(kind): _jobs(state) for kind, state in message["jobs"].items()}
        elif "dashboard" in message:
            self.dashboard = None if message["dashboard"] is None else int(message["dashboard"])
        elif "begun" in message:
            self._begun(message["begun"])
        elif "ended" in message:
            with self._turn:
                task = self.tasks.get(message["ended"])
                if task is not None:
                    task.ended = str(message["how"])
        elif "to" in message:
            with self._turn:
                answer = self._asked.pop(int(message["to"]), None)
            if answer is not None and "away" in message:
                answer.set_exception(Away(str(message["away"])))
            elif answer is not None and "damaged" in message:
                answer.set_exception(Damaged(str(message["damaged"])))
            elif answer is not None:
                answer.set_result(message["found"])
        elif "away" in message:
            self._problem = str(message["away"])

    def _meet(self, hosts: Mapping[str, Mapping[str, Any]]) -> None:
        now = time.monotonic()
        with self._turn:
            self.hosts = {name: report_of(name, report) for name, report in hosts.items() if is_name(name)}
            if not self._is_up.is_set():
                self._seen = dict.fromkeys(self._seen, now)  # they join again
                self._is_up.set()
                self._has_met = True
                for task in self.tasks.values():
                    task.ended = ""
                    self._submit(task)
            self._seen.update(dict.fromkeys(self.hosts, now))
        self._first.set()

    def _begun(self, message: Mapping[str, Any]) -> None:
        with self._turn:
            task, host = self.tasks.get(str(message["key"])), message["host"]
            if task is None or not is_name(host):  # it becomes part of paths
                return
            self._seen.setdefault(host, time.monotonic())  # a new one may begin before it is met
            cores, memory, jobs = message["cores"], message["memory"], message["jobs"]
            task.share = Share(tuple(map(int, cores)), _amount(memory), _amount(jobs))
            task.start, task.host, task.ended = str(message["start"]), host, ""


def _amount(value: object) -> int:
    """An amount that a ledger can record.

    Raises:
        ValueError: it is not an integer, or negative or too large.
    """
    if not isinstance(value, int) or not 0 <= value < 1 << 60:
        raise ValueError(f"{value!r} is not an amount")
    return value


def _jobs(state: Mapping[str, Any]) -> dict[str, Any]:
    """What the hub says of a kind of job.

    Raises:
        TypeError, ValueError, AttributeError, KeyError: it has another form.
    """
    jobs = {str(job): bool(is_host) for job, is_host in state["jobs"].items()}
    return {"jobs": jobs, "problem": str(state["problem"]), "hopeless": bool(state.get("hopeless"))}


def _write(process: subprocess.Popen[str], outbox: queue.SimpleQueue[str]) -> None:
    """Write what is in an outbox, up to an empty line: in a thread, so that nobody waits for a courier that is busy."""
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    with suppress(OSError), process.stdin as stream:
        while line := outbox.get():
            stream.write(line)
            stream.flush()

"""The jobs of a run: a thread submits them while rows wait, and ends those in the queue that no row needs any more."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from feedstock_tools.builds.fleet.carrying.link import Link
from feedstock_tools.builds.fleet.cluster.demand import change, kind_of_host
from feedstock_tools.builds.fleet.cluster.folder import JOBS, add_job, remove_jobs
from feedstock_tools.builds.fleet.cluster.queue import Job, cancel, jobs_of, submit
from feedstock_tools.builds.fleet.cluster.script import JobKind, job_script
from feedstock_tools.builds.fleet.folder import FleetFolder
from feedstock_tools.builds.plan.hosts import Host
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.errors import FeedstockError, InputError, WorkError

#: How often the queue is read, in seconds: Slurm answers every user's commands with one process.
EVERY = 5.0
_SOON = 0.2
#: How often Slurm may refuse, and how many jobs may end before their workers connect, until no more are submitted.
_MOST_REFUSALS = 3
_MOST_UNBORN = 3
#: How long a run waits for the thread at its end, in seconds.
_ENDS_WITHIN = 120.0
#: The lines of a job's log in a message.
_LINES = 5


def submit_jobs(fleet: FleetFolder, kind: JobKind, count: int, machine: Mapping[str, str]) -> dict[str, str]:
    """Submit some jobs of a kind: the name of each host → the number of its job.

    Raises:
        InputError: there is no Slurm here.
        WorkError: Slurm does not take them, or the folder of the fleet cannot be written.
    """
    numbers = {}
    for _ in range(count):
        name, folder = add_job(fleet, kind)
        numbers[name] = submit(job_script(kind, folder, name), fleet.name, name, folder, machine)
    return numbers


class Pool:
    """The jobs of a fleet during a run. Use it as a context: at its end, jobs that wait in the queue are ended."""

    def __init__(
        self,
        fleet: FleetFolder,
        kinds: Sequence[JobKind],
        link: Link,
        say: Callable[[str], object],
        machine: Mapping[str, str],
    ) -> None:
        """Prepare it.

        Args:
            say: called with what the user should know, from another thread.
            machine: the environment of this machine, for Slurm's commands.
        """
        self._fleet = fleet
        self._kinds = {kind.name: kind for kind in kinds}
        self._link = link
        self._say = say
        self._machine = machine
        self._rows: tuple[Sequence[Row], Sequence[Row]] = (), ()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="slurm", daemon=True)
        self._seen: tuple[object, ...] = ()
        self._hopeless = False
        self._known: dict[str, Job] = {}
        self._connected: set[str] = set()
        self._refusals = self._unborn = 0

    def __enter__(self) -> Pool:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(_ENDS_WITHIN)

    def note(self, waiting: Sequence[Row], running: Sequence[Row]) -> None:
        """Take note of the rows that wait, and of those under way."""
        self._rows = waiting, running

    def may_come(self) -> bool:
        """Whether a job may become a host that rows can begin on."""
        return not (self._hopeless and self._seen == _names(*self._rows))

    def _keep(self) -> None:
        """Look at the queue again and again, until the run is over."""
        while not self._over.is_set():
            has_begun = bool(self._rows[0] or self._known)
            if has_begun:
                self._try_to_look()
            self._over.wait(EVERY if has_begun else _SOON)
        with suppress(FeedstockError):
            self._end_unused()

    def _try_to_look(self) -> None:
        rows = self._rows
        try:
            self._hopeless = not self._look(*rows)
            self._refusals = 0
        except (InputError, WorkError) as error:
            self._refusals += 1
            if self._refusals == 1:
                self._say(f"Slurm: {error}")
            self._hopeless = self._refusals >= _MOST_REFUSALS or isinstance(error, InputError)
        self._seen = _names(*rows)

    def _look(self, waiting: Sequence[Row], running: Sequence[Row]) -> bool:
        """Read the queue, submit what is missing, end what is not needed; returns whether a row may begin on a job."""
        jobs = {job.host: job for job in jobs_of(self._fleet.name, self._machine)}
        self._note_ended(jobs)
        living = {host: job for host, job in jobs.items() if job.lives and kind_of_host(host) in self._kinds}
        counts = Counter(kind_of_host(host) for host in living)
        coming = self._coming(living)
        needed = change(waiting, running, coming, list(self._kinds.values()), counts, time.monotonic())
        surplus = [living[host].number for host in needed.unused if living[host].waits]
        cancel(surplus, self._machine)
        submitted = 0
        if self._unborn < _MOST_UNBORN:
            for kind, count in needed.new.items():
                submitted += self._submit(self._kinds[kind], count)
        remove_jobs(self._fleet, {*living, *jobs, *self._known})
        return submitted > 0 or len(coming) > len(needed.unused)

    def _submit(self, kind: JobKind, count: int) -> int:
        numbers = submit_jobs(self._fleet, kind, count, self._machine)
        jobs = "job" if len(numbers) == 1 else "jobs"
        self._say(f"Slurm: submitted {jobs} {', '.join(numbers.values())} ({kind.name})")
        for host, number in numbers.items():
            self._known[host] = Job(number, host, "PENDING", None, "", "")
        return len(numbers)

    def _coming(self, living: Mapping[str, Job]) -> list[Host]:
        """The jobs that could take a row and have none: in the queue, beginning, or idle."""
        present = self._link.hosts
        busy = {name for name, report in present.items() if report.get("builds")}
        hosts = {name: self._kinds[kind_of_host(name)].host(name) for name in living if name not in busy}
        for name in hosts.keys() & present.keys():
            left = present[name].get("left")
            hosts[name] = replace(hosts[name], left=left if isinstance(left, float) else None)
        return list(hosts.values())

    def _note_ended(self, jobs: Mapping[str, Job]) -> None:
        """Report jobs that did not end by themselves, and count those that never became hosts."""
        self._connected |= self._link.hosts.keys()
        for host, known in list(self._known.items()):
            job = jobs.get(host)
            if job is not None and not job.is_over:
                self._known[host] = job
                continue
            del self._known[host]
            state = job.state if job else "gone"
            if host in self._connected:
                self._unborn = 0
                if state not in ("COMPLETED", "gone"):
                    self._say(f"Slurm: job {known.number} ({host}) ended: {_in_words(state, job)}")
            elif not (job and job.state.startswith("CANCELLED")):
                self._unborn += 1
                log = _last_lines(self._fleet.path / JOBS / host / "log")
                self._say(f"Slurm: job {known.number} ({host}) ended before its worker connected: {state}{log}")

    def _end_unused(self) -> None:
        """End the jobs that wait in the queue; those that run end by themselves when they are idle."""
        jobs = jobs_of(self._fleet.name, self._machine)
        cancel([job.number for job in jobs if job.lives and job.waits], self._machine)


def _in_words(state: str, job: Job | None) -> str:
    return f"{state} ({job.reason})" if job and job.reason and job.reason != state else state


def _last_lines(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()[-_LINES:]
    except OSError:
        return ""
    return "".join(f"\n  {line[:200]}" for line in lines)


def _names(waiting: Sequence[Row], running: Sequence[Row]) -> tuple[object, ...]:
    return tuple(row.name for row in waiting), frozenset(row.name for row in running)

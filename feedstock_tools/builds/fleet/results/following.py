"""Following an attempt on a host: events go to observer, log and ledger, and packages to the channel."""

from __future__ import annotations

import math
import select
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from feedstock_tools.builds.engines.contract import Built, Failed, Log, Output, Started
from feedstock_tools.builds.engines.process.supervision import signals_held_back
from feedstock_tools.builds.fleet.carrying.link import Link
from feedstock_tools.builds.fleet.results.events import Delivered, Finished, HostEvent
from feedstock_tools.builds.fleet.results.quarantine import LARGEST, Quarantine, Rejected
from feedstock_tools.builds.ledger import BuildRecord, Ledger, PackageRecord, now
from feedstock_tools.builds.ledger.records import LIBRARIES, moment_of
from feedstock_tools.builds.plan.row import Ended, Row
from feedstock_tools.builds.runs.crew import Watch
from feedstock_tools.builds.runs.delivery import as_built
from feedstock_tools.builds.runs.logs import LogFile
from feedstock_tools.builds.runs.row_build import Claim, lock_name
from feedstock_tools.channel.folder import add_packages
from feedstock_tools.channel.properties import ChannelProperties
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedOutput
from feedstock_tools.redaction import redacted

#: Marks of a host that are taken into a record, and their longest text.
_MARKS = ("tests", "tests-reason", LIBRARIES)
_LONGEST = 2000
#: How often an attempt may begin an output: again with fewer compilers in parallel, and with less of anything else.
_MOST_BEGUN = 100


@dataclass(frozen=True, slots=True)
class Place:
    """Where the packages of a row go, and what its records say of its origin.

    Attributes:
        feedstock: its folder.
        engine: name and version; `channels` as recorded; `commit` and `command` likewise.
        built_on: the channels.
    """

    artifacts: Artifacts
    ledger: Ledger
    feedstock: Path
    engine: str
    channels: tuple[str, ...]
    commit: str
    command: str
    built_on: ChannelProperties


@dataclass(frozen=True, slots=True)
class Followed:
    """An attempt at a claimed row that is under way on a host.

    `name` is that of the attempt on its host; `stop` becomes readable when the run is over.
    """

    row: Row
    claim: Claim
    name: str
    stop: int

    def is_over(self) -> bool:
        """Whether the run is over."""
        return is_over(self.stop)


def is_over(stop: int) -> bool:
    """Whether the run is over to which a descriptor belongs."""
    return bool(select.select([stop], [], [], 0)[0])


class Following:
    """One attempt while the client follows it.

    Attributes:
        followed: the attempt; `log` its log here, and `quarantine` the folder for what it made.
        finished: its end on the host, once that is known; `failed` the failure, if it is one.
    """

    def __init__(
        self, place: Place, link: Link, followed: Followed, log: LogFile, watch: Watch, is_lost: Callable[[], bool]
    ) -> None:
        """Begin to follow.

        Args:
            watch: called with each event.
            is_lost: asked several times a second while the host does not answer.
        """
        self.followed = followed
        self.log = log
        self.quarantine = Quarantine(place.artifacts, followed.name, followed.row.at.host, followed.row)
        self.finished: Finished | None = None
        self.failed: Failed | None = None
        self._place = place
        self._link = link
        self._watch = watch
        self._is_lost = is_lost
        self._records: list[BuildRecord] = []
        self._running: BuildRecord | None = None
        self._begun = 0
        outputs = {output.name: output for output in followed.row.planned.outputs}
        built = {each.output: as_built(outputs[each.output], each) for each in followed.claim.done}
        self._promises = {**outputs, **built}

    def is_over(self) -> bool:
        """Whether the host will send nothing more, or nobody waits for it."""
        return self.followed.is_over() or self._is_lost()

    @property
    def wanted(self) -> Mapping[str, PlannedOutput]:
        """The outputs that are still missing, by name."""
        made = {record.output for record in self._records if record.result == "done"}
        return {output.name: output for output in self.followed.claim.wanted if output.name not in made}

    def take(self, event: HostEvent) -> None:
        """One event of the host.

        Raises:
            Rejected: a package is not what was ordered.
            Away: the host cannot be reached; the event can be taken again.
            WorkError: the ledger or the channel cannot be written.
        """
        if isinstance(event, Delivered):
            self._deliver(event)
            return
        if isinstance(event, Finished):
            self.finished = event
            return
        self.log.write(event)
        if isinstance(event, Started):
            if event.output in self.wanted:
                self._watch(event)
                self._running = self._begin(event.output)
        elif isinstance(event, Failed):
            self._fail(replace(event, reason=redacted(event.reason)))
        elif isinstance(event, Log | Output):
            self._watch(event)

    def give_up(self, reason: str) -> None:
        """Record that the attempt does not go on."""
        with suppress(WorkError):
            self._end("interrupted", reason)

    def result(self) -> Ended:
        """The result of the attempt, after its end."""
        return Ended(self.followed.claim.done, tuple(self._records), self.failed, tuple(self.log.last))

    def fail(self, reason: str) -> None:
        """Record a failure of which the host has sent no event."""
        output = self._running.output if self._running else self._next
        self._fail(Failed(output, redacted(reason), "host"))

    @property
    def _next(self) -> str:
        """The name of the output that is built next."""
        return next(iter(self.wanted), self.followed.row.planned.outputs[-1].name)

    def _fail(self, failed: Failed) -> None:
        name = failed.output if failed.output in self._promises else self._next
        self.failed = replace(failed, output=name)
        if self._running is None:
            self._running = self._begin(name)
        self._end("failed", self.failed.reason)
        self._watch(self.failed)

    def _deliver(self, event: Delivered) -> None:
        """Take a package over: from the host into quarantine, from there into the channel and the ledger."""
        if event.output in self._promises and event.output not in self.wanted:
            return  # an earlier run has taken it
        planned = self.quarantine.expected(event, self.wanted)
        seconds = float(event.seconds) if math.isfinite(event.seconds) and event.seconds >= 0 else 0.0
        if planned.is_shared:
            path = Path(planned.stem)
            record = replace(self._promised(event, planned.name, seconds), result="done", ended=_moment(event.ended))
            self._place.ledger.finish(record, event.environments)
            self._records.append(record)
            self._running = None
        else:
            fetched = self.quarantine.fetch(self._link, event.sha256, event.size, LARGEST, self.is_over)
            path, promise = self.quarantine.package(
                fetched, event, planned, self._promises, self._place.feedstock, self._place.built_on
            )
            self._enter(path, event, promise, seconds)
            self._promises[promise.name] = promise
        self.followed.claim.locks.release(lock_name(planned, self._place.built_on))
        built = Built(event.output, path, seconds)
        self.log.write(built)
        self._watch(built)

    def _enter(self, path: Path, event: Delivered, promise: PlannedOutput, seconds: float) -> None:
        """Put a package into the channel, between the ledger's promise and its final record."""
        artifacts, ledger = self._place.artifacts, self._place.ledger
        channel = artifacts.channel(self._place.built_on)
        package = PackageRecord(
            channel=channel.relative_to(artifacts.root).as_posix(),
            file=f"{promise.subdir}/{path.name}",
            size=event.size,
            sha256=event.sha256,
            mtime_ns=path.stat().st_mtime_ns,
        )
        promised = replace(self._promised(event, promise.name, seconds), packages=(package,))
        with signals_held_back():
            ledger.promise(promised, event.environments)
            (entered,) = add_packages(channel, [path])
            done = replace(package, mtime_ns=entered.stat().st_mtime_ns)
            record = replace(promised, result="done", ended=_moment(event.ended), packages=(done,))
            ledger.finish(record)
        self._records.append(record)
        self._running = None

    def _promised(self, event: Delivered, output: str, seconds: float) -> BuildRecord:
        """The record of an output that is built, before its package enters the channel."""
        running = self._running if self._running and self._running.output == output else None
        running = running or self._begin(output)
        marks = {**running.marks, **_plain(event.marks)}
        return replace(running, seconds=seconds, peak_memory=_size(event.peak_memory), marks=marks)

    def _end(self, result: str, reason: str) -> None:
        if self._running is not None:
            record = replace(self._running, result=result, reason=reason, ended=now(), packages=())
            self._place.ledger.finish(record)
            self._records.append(record)
        self._running = None

    def _begin(self, output: str) -> BuildRecord:
        """Begin a record of an output.

        Raises:
            Rejected: the host has begun more outputs than a row can.
        """
        self._begun += 1
        if self._begun > _MOST_BEGUN * len(self.followed.row.planned.outputs):
            raise Rejected(f"it begins {self._begun} outputs or fails with them")
        return self._place.ledger.begin(self._record(output))

    def _record(self, output: str) -> BuildRecord:
        place = self._place
        return BuildRecord(
            identity=self.followed.row.wanted.identities[output],
            configuration=self.followed.row.configuration,
            row=self.followed.row.name,
            output=output,
            result="running",
            started=now(),
            log=str(self.log.path.relative_to(place.artifacts.root)),
            engine=place.engine,
            channels=place.channels,
            marks=place.built_on.ledger_marks,
            attempt=self.followed.row.at.attempt,
            machine=self.followed.row.at.host,
            process=self.followed.name,
            cores=self.followed.row.at.share.jobs,
            memory_limit=self.followed.row.at.share.memory,
            commit_id=place.commit,
            inputs=self.followed.row.wanted.inputs[output],
            values=self.followed.row.planned.values,
            command=place.command,
        )


def _plain(marks: Mapping[str, str]) -> dict[str, str]:
    return {key: redacted(marks[key][:_LONGEST]) for key in _MARKS if key in marks}


def _size(number: int | None) -> int | None:
    return number if number is not None and 0 <= number < 1 << 60 else None


def _moment(text: str) -> str:
    return text if moment_of(text) is not None else now()

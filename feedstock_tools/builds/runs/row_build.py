"""A row's build while it runs: its started and finished outputs, and its records in the ledger."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from feedstock_tools.builds.engines.contract import Failed, Log
from feedstock_tools.builds.engines.process.child import LastLines
from feedstock_tools.builds.engines.process.guard import Guard
from feedstock_tools.builds.ledger import BuildRecord, Ledger, now
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.builds.runs.logs import LogFile
from feedstock_tools.builds.runs.site import Site, Station, why_untested
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.properties import ChannelProperties
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedOutput
from feedstock_tools.files.locks import Locks, locked
from feedstock_tools.processes import this_machine, this_process
from feedstock_tools.redaction import redacted

#: The number of an engine's last messages that may explain a failure.
_MESSAGES = 10_000
#: The number of the last lines of its scripts that may.
_PRINTED = 400


@dataclass
class RowBuild:
    """A build of a row while it runs: the records it has started and finished, in order.

    `promises` are the finished outputs of the plan, each with the build string of its package; `environments` are the
    packages of a shared build's environments, as solved when it begins. `needed` are the libraries that the engine
    reports of the running output (`needed_in`).
    """

    site: Site
    station: Station
    row: Row
    guard: Guard
    log: LogFile
    locks: Locks
    records: list[BuildRecord] = field(default_factory=list)
    running: BuildRecord | None = None
    failed: Failed | None = None
    log_of_output: deque[str] = field(default_factory=lambda: deque(maxlen=_MESSAGES))
    printed: LastLines = field(default_factory=lambda: LastLines(_PRINTED))
    promises: dict[str, PlannedOutput] = field(default_factory=dict)
    environments: dict[str, str] | None = None
    needed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def outputs(self) -> dict[str, PlannedOutput]:
        return {output.name: output for output in self.row.planned.outputs}

    def why_untested(self, output: PlannedOutput) -> str | None:
        """The reason why the tests of an output are left out; None if they run."""
        return why_untested(output, self.row.planned, self.station.channels.properties, self.station.emulator)

    def begin(self, output: str) -> None:
        """Record the start of an output.

        Raises:
            WorkError: its inputs have changed since they were planned, so its origin would be unclear.
        """
        self.log_of_output.clear()
        self.needed.clear()
        self.printed = LastLines(_PRINTED)
        self.guard.peak = 0
        self.running = self.station.ledger.begin(self._record(output))
        self.refuse_changed(output)

    def refuse_changed(self, output: str) -> None:
        """End a build whose inputs have changed.

        Raises:
            WorkError: they have changed.
        """
        if self.site.inputs.differ(self.site.target, self.row.planned, self.outputs[output]):
            hint = "Run the command again: finished packages stay, and the rest is built from the current files."
            raise WorkError("the recipe, its files or local sources have changed since the run began", hint=hint)

    def fail(self, failed: Failed) -> None:
        """Record a failure in the log and in the ledger, as far as there is space for it."""
        with suppress(WorkError):
            self.log.write(Log(failed.reason, "feedstock-tools", "error"))
        self.failed = failed
        self.end("failed", failed.reason)

    def end(self, result: str, reason: str) -> None:
        """Record the end of the output that is running, if one is; a failure before the first is recorded too."""
        running = self.running
        if running is None and result == "failed":
            running = self.station.ledger.begin(self._record(self.next_output()))
        if running is not None:
            peak = self.guard.peak or None
            record = replace(running, result=result, reason=reason, ended=now(), peak_memory=peak, packages=())
            self.station.ledger.finish(record)
            self.records.append(record)
        self.running = None

    def next_output(self) -> str:
        """The name of the output that would have started next."""
        done = {record.output for record in self.records}
        names = [output.name for output in self.row.planned.outputs]
        left = (
            name
            for name in names
            if name not in done and self.station.ledger.done(self.row.wanted.identities[name]) is None
        )
        return next(left, names[-1])

    def _record(self, name: str) -> BuildRecord:
        site, station = self.site, self.station
        return BuildRecord(
            identity=self.row.wanted.identities[name],
            configuration=site.configuration,
            row=self.row.name,
            output=name,
            result="running",
            started=now(),
            log=str(self.log.path.relative_to(site.artifacts.root)),
            engine=f"{station.engine.name} {station.engine.version}",
            channels=tuple(redacted(channel) for channel in station.channels.urls),
            marks=self._marks(self.outputs[name]),
            attempt=self.row.at.attempt,
            machine=this_machine(),
            process=this_process(),
            cores=self.row.at.share.jobs,
            memory_limit=self.row.at.share.memory,
            commit_id=site.commit,
            inputs=self.row.wanted.inputs[name],
            values=self.row.planned.values,
            command=site.command,
        )

    def _marks(self, output: PlannedOutput) -> dict[str, str]:
        marks = self.station.channels.properties.ledger_marks
        left_out, emulator = self.why_untested(output), self.station.emulator
        if left_out:
            return marks | {"tests": "left out", "tests-reason": left_out}
        if emulator is not None and not isinstance(emulator, str):
            return marks | {"tests": f"run under {Path(emulator.program).name}"}
        return marks


def lock_name(output: PlannedOutput, channels: ChannelProperties) -> str:
    """The lock for building an output: its place in the channel."""
    return f"output {channels.origin} {output.subdir}/{output.stem}"


def shared_lock(identity: str) -> str:
    """The lock for making or removing a shared build, by its identity in the ledger."""
    return f"shared {identity}"


@dataclass(frozen=True, slots=True)
class Claim:
    """A row that no other run builds meanwhile: the records of its finished outputs, and the missing ones.

    Close the locks at the end.
    """

    locks: Locks
    done: tuple[BuildRecord, ...]
    wanted: tuple[PlannedOutput, ...]


def claim(artifacts: Artifacts, ledger: Ledger, row: Row, channels: ChannelProperties) -> Claim | None:
    """Claim a row, and settle what a killed run left of it; None while another run builds one of its outputs.

    Args:
        channels: those that it is built on.

    Raises:
        WorkError: the ledger or the channel cannot be used.
    """
    names = _lock_names(row, _finished(ledger, row), channels)
    locks = Locks.take(artifacts.locks, names)
    if locks is None:
        return None
    try:
        if ledger.settle(row.name, list(row.wanted.identities.values())):
            _tidy(artifacts, channels)
        finished = _finished(ledger, row)
        if not set(_lock_names(row, finished, channels)) <= set(names):
            locks.close()
            return None  # a package has disappeared meanwhile
    except BaseException:
        locks.close()
        raise
    wanted = tuple(output for output in row.planned.outputs if finished[output.name] is None)
    return Claim(locks, tuple(record for record in finished.values() if record is not None), wanted)


def _lock_names(row: Row, finished: Mapping[str, BuildRecord | None], channels: ChannelProperties) -> tuple[str, ...]:
    """The locks for building a row: the row, and each of its missing outputs, by place."""
    missing = [output for output in row.planned.outputs if finished[output.name] is None]
    shared = (shared_lock(identity) for identity in row.wanted.identities.values()) if row.is_shared else ()
    return (f"row {row.name}", *shared, *(lock_name(output, channels) for output in missing))


def _finished(ledger: Ledger, row: Row) -> dict[str, BuildRecord | None]:
    return {output.name: ledger.done(row.wanted.identities[output.name]) for output in row.planned.outputs}


def _tidy(artifacts: Artifacts, channels: ChannelProperties) -> None:
    """Clean up after a killed run: parts of packages, a possibly outdated index."""
    channel = artifacts.channel(channels)
    with locked(channel):
        for part in channel.glob("*/.*.part"):
            part.unlink(missing_ok=True)
        index_channel(channel, replaced=True)

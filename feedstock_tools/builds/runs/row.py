"""Building one row: skip what is done, run the engine on the rest; check, deliver and record each package."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from feedstock_tools.builds.engines.contract import BuildRequest, Built, Engine, Event, Failed, Log, Started
from feedstock_tools.builds.engines.embedded.emulation import Emulator
from feedstock_tools.builds.engines.process.guard import Guard, OutOfMemoryError, OutOfTimeError
from feedstock_tools.builds.engines.process.supervision import signals_held_back
from feedstock_tools.builds.engines.staging import repeated_staging
from feedstock_tools.builds.ledger import BuildRecord, Ledger, PackageRecord, now, this_machine, this_process
from feedstock_tools.builds.plan.capacity import Share
from feedstock_tools.builds.runs.delivery.final_names import as_built, with_final_name
from feedstock_tools.builds.runs.delivery.gpu_code import check_gpu_code
from feedstock_tools.builds.runs.delivery.metadata import check_artifact, solved_channels, wrong_channels
from feedstock_tools.builds.runs.log import RowLog
from feedstock_tools.builds.stand_in.choice import STAND_IN
from feedstock_tools.channel.folder import add_packages, index_channel
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import FeedstockError, WorkError
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedOutput, PlannedRow
from feedstock_tools.locks import Locks, locked
from feedstock_tools.redaction import redacted

__all__ = ["Attempt", "BuiltRow", "Ground", "build_row", "lock_names", "write_siblings"]

#: Of a disk with so few bytes free it is said that it is full.
_FULL = 1 << 20
#: What the guard of a build ends it with → what failed then.
_BY_GUARD = {OutOfMemoryError: "memory", OutOfTimeError: "time"}


@dataclass(frozen=True, slots=True)
class Ground:
    """What the builds of a configuration have in common.

    Attributes:
        feedstock: its folder.
        recipe: the `recipe.yaml` to build.
        configuration: its name.
        target: the subdir built for; `builder` that of this machine.
        channels: URLs to solve in; `stand_in` says that they are the stand-in channel.
        identities: the ledger's identity of each output, from the plan's.
        changed: whether the files that an output of a row is built from are others than it was planned from.
        untested: why the tests of an output are left out; None where they are run.
        inputs: part of that identity → its digest.
        environment: the environment of a row's build, from its private folder and the number of jobs.
        commit: the feedstock's; `command` is what was typed.
        has: whether a channel has a package of some name.
        emulator: what runs the tests of a cross build.
    """

    artifacts: Artifacts
    ledger: Ledger
    engine: Engine
    feedstock: Path
    recipe: Path
    configuration: str
    target: str
    builder: str
    channels: tuple[str, ...]
    stand_in: bool
    identities: Callable[[PlannedOutput], str]
    inputs: Callable[[PlannedOutput], Mapping[str, str]]
    changed: Callable[[PlannedRow, PlannedOutput], bool]
    untested: Callable[[PlannedRow, PlannedOutput], str | None]
    environment: Callable[[PlannedRow, Path, int], Mapping[str, str]]
    has: Callable[[str, str], bool]
    emulator: Emulator | None = None
    commit: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to build a row: its number from 1, what it is given, and the descriptor that ends it."""

    number: int
    share: Share
    seconds: float | None = None
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class BuiltRow:
    """How an attempt ended: the records of outputs done before, those made now, in order; and its failure, if any."""

    before: tuple[BuildRecord, ...]
    now: tuple[BuildRecord, ...]
    failed: Failed | None = None
    last_lines: tuple[str, ...] = ()


@dataclass
class _RowBuild:
    """A build of a row while it runs: the records it has begun and finished, in order.

    `promises` are those of outputs that are done, each with the build string that its package has.
    """

    ground: Ground
    row: PlannedRow
    attempt: Attempt
    guard: Guard
    log: RowLog
    locks: Locks
    records: list[BuildRecord] = field(default_factory=list)
    running: BuildRecord | None = None
    failed: Failed | None = None
    specs: list[str] = field(default_factory=list)
    promises: dict[str, PlannedOutput] = field(default_factory=dict)


def lock_names(row: PlannedRow, outputs: Mapping[str, BuildRecord | None], *, stand_in: bool) -> tuple[str, ...]:
    """What is to be locked to build a row: the row, and each of its outputs that is not done, by its place."""
    missing = [output for output in row.outputs if outputs[output.name] is None]
    return (f"row {row.name}", *(_lock_name(output, stand_in=stand_in) for output in missing))


def _lock_name(output: PlannedOutput, *, stand_in: bool) -> str:
    return f"output {STAND_IN if stand_in else ''} {output.subdir}/{output.stem}"


def build_row(ground: Ground, row: PlannedRow, attempt: Attempt, watch: Callable[[Event], None]) -> BuiltRow | None:
    """Build the outputs of a row that are not done. None, and nothing is done, while another builds one of them.

    Raises:
        WorkError: the artifacts folder, the ledger or the channel cannot be used.
        Stopped: the run is over.
    """
    names = lock_names(row, _known(ground, row), stand_in=ground.stand_in)
    locks = Locks.take(ground.artifacts.locks, names)
    if locks is None:
        return None
    with locks:
        _settle(ground, row)
        known = _known(ground, row)
        if not set(lock_names(row, known, stand_in=ground.stand_in)) <= set(names):
            return None  # a package went away meanwhile
        return _build_missing(ground, row, attempt, locks, known, watch)


def _known(ground: Ground, row: PlannedRow) -> dict[str, BuildRecord | None]:
    """The record of each output of a row that is done."""
    return {output.name: ground.ledger.done(ground.identities(output)) for output in row.outputs}


def _build_missing(
    ground: Ground,
    row: PlannedRow,
    attempt: Attempt,
    locks: Locks,
    known: Mapping[str, BuildRecord | None],
    watch: Callable[[Event], None],
) -> BuiltRow:
    wanted = [output for output in row.outputs if known[output.name] is None]
    done = [record for record in known.values() if record is not None]
    if not wanted:
        shutil.rmtree(ground.artifacts.private(row.name), ignore_errors=True)
        return BuiltRow(tuple(done), ())
    folder = ground.artifacts.fresh_private(row.name)
    write_siblings(folder / "output", done, ground.artifacts)
    share = attempt.share
    guard = Guard(frozenset(share.cores[: share.jobs]), share.memory, attempt.seconds, attempt.stop)
    with RowLog(ground.artifacts.logs, row.name) as log:
        build = _RowBuild(ground, row, attempt, guard, log, locks)
        build.promises.update((record.output, as_built(_outputs(build)[record.output], record)) for record in done)
        for warning in repeated_staging(ground.engine, wanted):
            log.write(warning)
            watch(warning)
        _run(build, _request(build, wanted, folder), watch)
    if build.failed is None:
        shutil.rmtree(folder, ignore_errors=True)
    return BuiltRow(tuple(done), tuple(build.records), build.failed, tuple(log.last))


def _settle(ground: Ground, row: PlannedRow) -> None:
    """Put in order what a killed run has left: its records, parts of packages, an index that it may not have made."""
    if ground.ledger.settle(row.name, [ground.identities(output) for output in row.outputs]):
        channel = ground.artifacts.channel(stand_in=ground.stand_in)
        with locked(channel):
            for part in channel.glob("*/.*.part"):
                part.unlink(missing_ok=True)
            index_channel(channel, replaced=True)


def _request(build: _RowBuild, wanted: list[PlannedOutput], folder: Path) -> BuildRequest:
    ground, row = build.ground, build.row
    return BuildRequest(
        name=row.name,
        recipe=ground.recipe,
        values=row.values,
        target=ground.target,
        builder=ground.builder,
        channels=ground.channels,
        folder=folder,
        wanted=tuple(output.name for output in wanted),
        untested=tuple(output.name for output in wanted if ground.untested(row, output)),
        emulator=ground.emulator,
        extra={STAND_IN: "built on the stand-in channel of feedstock-tools"} if ground.stand_in else {},
        environment=ground.environment(row, folder, build.attempt.share.jobs),
        configuration=ground.configuration,
        feedstock=ground.feedstock,
        cores=build.attempt.share.jobs,
        memory=build.attempt.share.memory,
        guard=build.guard,
    )


def _run(build: _RowBuild, request: BuildRequest, watch: Callable[[Event], None]) -> None:
    """Run the engine and take its events; a build that is cut short is recorded as interrupted."""
    try:
        with build.ground.engine.build(request) as events:
            for event in events:
                build.log.write(event)
                _take(build, event, request, watch)
    except FeedstockError as error:
        during = next((name for kind, name in _BY_GUARD.items() if isinstance(error, kind)), "feedstock-tools")
        name = build.running.output if build.running else _next(build)
        _fail(build, Failed(name, str(error), during), watch)
    except BaseException:
        with signals_held_back(), suppress(WorkError):
            _end(build, "interrupted", "the run was stopped")
        shutil.rmtree(request.folder, ignore_errors=True)
        raise


def _take(build: _RowBuild, event: Event, request: BuildRequest, watch: Callable[[Event], None]) -> None:
    if isinstance(event, Started):
        watch(event)
        build.specs.clear()
        build.guard.peak = 0
        build.running = build.ground.ledger.begin(_record(build, event.output))
        _refuse_changed(build, event.output)
    elif isinstance(event, Built):
        _deliver(build, event, request)
        watch(event)
    elif isinstance(event, Failed):
        _fail(build, replace(event, reason=_explained(build, event)), watch)
    else:
        build.specs.append(event.text)
        watch(event)


def _fail(build: _RowBuild, failed: Failed, watch: Callable[[Event], None]) -> None:
    """Tell of a failure in the log, in the ledger and to who watches, as far as there is room for it."""
    with suppress(WorkError):
        build.log.write(Log(failed.reason, "feedstock-tools", "error"))
    build.failed = failed
    _end(build, "failed", failed.reason)
    watch(failed)


def _record(build: _RowBuild, name: str) -> BuildRecord:
    ground = build.ground
    output = _outputs(build)[name]
    left_out = ground.untested(build.row, output)
    marks = {"channel": STAND_IN} if ground.stand_in else {}
    if left_out:
        marks |= {"tests": "left out", "tests-reason": left_out}
    elif ground.emulator:
        marks |= {"tests": f"run under {Path(ground.emulator.program).name}"}
    return BuildRecord(
        identity=ground.identities(output),
        configuration=ground.configuration,
        row=build.row.name,
        output=name,
        result="running",
        started=now(),
        log=str(build.log.path.relative_to(ground.artifacts.root)),
        engine=f"{ground.engine.name} {ground.engine.version}",
        channels=tuple(redacted(channel) for channel in ground.channels),
        marks=marks,
        attempt=build.attempt.number,
        machine=this_machine(),
        process=this_process(),
        cores=build.attempt.share.jobs,
        memory_limit=build.attempt.share.memory,
        commit_id=ground.commit,
        inputs=ground.inputs(output),
        values=build.row.values,
        command=ground.command,
    )


def _refuse_changed(build: _RowBuild, output: str) -> None:
    """End a build of which nobody could tell what it was made from."""
    if build.ground.changed(build.row, _outputs(build)[output]):
        hint = "Run it again: what is done stays done, and the rest is built from what is there now."
        raise WorkError("the recipe, its files or local sources have changed since the run began", hint=hint)


def _deliver(build: _RowBuild, event: Built, request: BuildRequest) -> None:
    """Check a package, let it enter the output channel, and record it as done."""
    _refuse_changed(build, event.output)
    ground = build.ground
    planned = _outputs(build)[event.output]
    promise = with_final_name(event.package, planned)
    siblings = {**_outputs(build), **build.promises, promise.name: promise}
    assert build.running is not None  # noqa: S101  (an engine starts an output before it is built)
    private = request.output.as_uri()

    def wrong(rendered: Any) -> list[str]:
        if ground.engine.own_channels:  # its script solves where it will, under names that its container gives
            return []
        solved = list(solved_channels(rendered))
        return list(wrong_channels(solved, private, request.channels, frozenset(siblings), ground.has))

    environments = check_artifact(event.package, promise, siblings, wrong)
    check_gpu_code(event.package, ground.feedstock, promise.name, build.row.cuda)
    channel = ground.artifacts.channel(stand_in=ground.stand_in)
    package = PackageRecord(
        channel=channel.relative_to(ground.artifacts.root).as_posix(),
        file=f"{promise.subdir}/{event.package.name}",
        size=event.package.stat().st_size,
        sha256=sha256_of(event.package),
        mtime_ns=event.package.stat().st_mtime_ns,
    )
    peak = build.guard.peak or None
    promised = replace(build.running, seconds=event.seconds, peak_memory=peak, packages=(package,))
    with signals_held_back():
        ground.ledger.promise(promised, environments)
        (entered,) = add_packages(channel, [event.package])
        done = replace(package, mtime_ns=entered.stat().st_mtime_ns)
        record = replace(promised, result="done", ended=now(), packages=(done,))
        ground.ledger.finish(record)
        build.records.append(record)
        build.promises[promise.name] = promise
        build.running = None
    build.locks.release(_lock_name(planned, stand_in=ground.stand_in))


def _end(build: _RowBuild, result: str, reason: str) -> None:
    """Record the end of the output that is running, if one is; a failure before the first is recorded too."""
    running = build.running
    if running is None and result == "failed":
        running = build.ground.ledger.begin(_record(build, _next(build)))
    if running is not None:
        peak = build.guard.peak or None
        record = replace(running, result=result, reason=reason, ended=now(), peak_memory=peak, packages=())
        build.ground.ledger.finish(record)
        build.records.append(record)
    build.running = None


def _outputs(build: _RowBuild) -> dict[str, PlannedOutput]:
    return {output.name: output for output in build.row.outputs}


def _next(build: _RowBuild) -> str:
    """The name of the output that would have been begun next."""
    done = {record.output for record in build.records}
    known = {name for name, record in _known(build.ground, build.row).items() if record is not None}
    names = [output.name for output in build.row.outputs]
    return next((name for name in names if name not in done | known), names[-1])


def write_siblings(output: Path, done: list[BuildRecord], artifacts: Artifacts) -> None:
    """Put the row's finished packages into the private channel, and share the folder of fetched sources."""
    try:
        artifacts.sources.mkdir(parents=True, exist_ok=True)
        (output / "noarch").mkdir(parents=True)
        (output / "src_cache").symlink_to(artifacts.sources)
        for package in (package for record in done for package in record.packages):
            place = output / package.file
            place.parent.mkdir(exist_ok=True)
            shutil.copyfile(artifacts.root / package.channel / package.file, place)
    except OSError as error:
        raise WorkError(f"cannot make a folder for the build: {error.strerror or error}", path=output) from error


def _explained(build: _RowBuild, event: Failed) -> str:
    """A reason with more to it where the engine's own says too little: no memory, no room on the disk, no solution."""
    if build.guard.ran_out_of_memory:
        return (
            f"{event.reason}\nIts processes wanted more memory than its limit of {build.attempt.share.memory >> 20} MiB"
        )
    free = shutil.disk_usage(build.ground.artifacts.root).free
    if free < _FULL:
        return f"{event.reason}\nThe disk is full: {free >> 10} KiB are free in {build.ground.artifacts.root}"
    if event.during != "solve":
        return _with_note(build, event)
    from feedstock_tools.builds.runs.unsolved import explain_solve

    why = explain_solve(build.specs, build.ground.target)
    return f"{event.reason}\n{why}" if why else event.reason


def _with_note(build: _RowBuild, event: Failed) -> str:
    """A script's failure, with why its output could not have been tested either: it may be for the same reason."""
    output = _outputs(build).get(event.output)
    unable = build.ground.untested(build.row, output) if output and event.during == "script" else None
    return f"{event.reason}\nNote: {unable}" if unable else event.reason

"""Building one row: skip what is done, run the engine on the rest; check, deliver and record each package."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from feedstock_tools.build.artifact import check_artifact, solved_channels, wrong_channels
from feedstock_tools.build.artifacts import Artifacts
from feedstock_tools.build.channels import STAND_IN
from feedstock_tools.build.contents import sha256_of
from feedstock_tools.build.engines.contract import BuildRequest, Built, Engine, Event, Failed, Log, Started
from feedstock_tools.build.engines.process import signals_held_back
from feedstock_tools.build.engines.staging import repeated_staging
from feedstock_tools.build.ledger import BuildRecord, Ledger, PackageRecord, now
from feedstock_tools.build.planned import PlannedOutput, PlannedRow
from feedstock_tools.channel.folder import add_packages, index_channel, locked
from feedstock_tools.errors import FeedstockError, WorkError

__all__ = ["Ground", "RowBuild", "build_row", "write_siblings"]


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
        untested: why the tests of an output are left out; None where they are run.
        environment: the environment of a row's build, from its private folder.
        has: whether a channel has a package of some name.
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
    untested: Callable[[PlannedRow, PlannedOutput], str | None]
    environment: Callable[[PlannedRow, Path], Mapping[str, str]]
    has: Callable[[str, str], bool]


@dataclass
class RowBuild:
    """A build of a row while it runs: the records it has begun and finished, in order."""

    ground: Ground
    row: PlannedRow
    log_path: Path
    log: TextIO
    records: list[BuildRecord] = field(default_factory=list)
    running: BuildRecord | None = None
    specs: list[str] = field(default_factory=list)


def build_row(
    ground: Ground, row: PlannedRow, watch: Callable[[Event], None]
) -> tuple[list[BuildRecord], list[BuildRecord]]:
    """Build the outputs of a row that are not done; the records of those done before, and of those built now.

    The last of these is a failed one where the build failed; outputs after it were not begun.

    Raises:
        WorkError: the artifacts folder, the ledger or the channel cannot be used.
    """
    with ground.artifacts.holding(ground.configuration):
        _settle(ground, row)
        known = {output.name: ground.ledger.done(ground.identities(output)) for output in row.outputs}
        wanted = [output for output in row.outputs if known[output.name] is None]
        done = [record for record in known.values() if record is not None]
        if not wanted:
            shutil.rmtree(ground.artifacts.private(row.name), ignore_errors=True)
            return done, []
        folder = ground.artifacts.fresh_private(row.name)
        write_siblings(folder / "output", done, ground.artifacts)
        log_path = _log_path(ground.artifacts.logs, row.name)
        with log_path.open("w", encoding="utf-8") as log:
            build = RowBuild(ground, row, log_path, log)
            for warning in repeated_staging(ground.engine, wanted):
                _write(log, warning)
                watch(warning)
            _run(build, _request(build, wanted, folder), watch)
        if not build.records or build.records[-1].result != "failed":
            shutil.rmtree(folder, ignore_errors=True)
        return done, build.records


def _settle(ground: Ground, row: PlannedRow) -> None:
    """Put in order what a killed run has left: its records, parts of packages, an index that it may not have made."""
    if ground.ledger.settle(row.name):
        channel = ground.artifacts.channel(stand_in=ground.stand_in)
        with locked(channel):
            for part in channel.glob("*/.*.part"):
                part.unlink(missing_ok=True)
            index_channel(channel, replaced=True)


def _request(build: RowBuild, wanted: list[PlannedOutput], folder: Path) -> BuildRequest:
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
        extra={STAND_IN: "built on the stand-in channel of feedstock-tools"} if ground.stand_in else {},
        environment=ground.environment(row, folder),
        configuration=ground.configuration,
        feedstock=ground.feedstock,
    )


def _run(build: RowBuild, request: BuildRequest, watch: Callable[[Event], None]) -> None:
    """Run the engine and take its events; a build that is cut short is recorded as interrupted."""
    try:
        with build.ground.engine.build(request) as events:
            for event in events:
                _write(build.log, event)
                _take(build, event, request, watch)
    except FeedstockError as error:
        _end(build, "failed", str(error))
        watch(Failed(build.records[-1].output if build.records else build.row.name, str(error)))
    except BaseException:
        with signals_held_back(), suppress(WorkError):
            _end(build, "interrupted", "the run was stopped")
        shutil.rmtree(request.folder, ignore_errors=True)
        raise


def _take(build: RowBuild, event: Event, request: BuildRequest, watch: Callable[[Event], None]) -> None:
    if isinstance(event, Started):
        watch(event)
        build.specs.clear()
        build.running = build.ground.ledger.begin(_record(build, event.output))
    elif isinstance(event, Built):
        _deliver(build, event, request)
        watch(event)
    elif isinstance(event, Failed):
        event = replace(event, reason=_explained(build, event))
        _write(build.log, Log(event.reason, "feedstock-tools", "error"))
        _end(build, "failed", event.reason)
        watch(event)
    else:
        build.specs.append(event.text)
        watch(event)


def _record(build: RowBuild, name: str) -> BuildRecord:
    ground = build.ground
    output = _outputs(build)[name]
    left_out = ground.untested(build.row, output)
    marks = {"channel": "stand-in"} if ground.stand_in else {}
    if left_out:
        marks |= {"tests": "left out", "tests-reason": left_out}
    return BuildRecord(
        identity=ground.identities(output),
        configuration=ground.configuration,
        row=build.row.name,
        output=name,
        result="running",
        started=now(),
        log=str(build.log_path.relative_to(ground.artifacts.root)),
        engine=f"{ground.engine.name} {ground.engine.version}",
        channels=ground.channels,
        marks=marks,
    )


def _deliver(build: RowBuild, event: Built, request: BuildRequest) -> None:
    """Check a package, let it enter the output channel, and record it as done."""
    ground = build.ground
    siblings = _outputs(build)
    promise = siblings[event.output]
    assert build.running is not None  # noqa: S101  (an engine starts an output before it is built)
    private = request.output.as_uri()

    def wrong(rendered: Any) -> list[str]:
        solved = list(solved_channels(rendered))
        return list(wrong_channels(solved, private, request.channels, frozenset(siblings), ground.has))

    check_artifact(event.package, promise, siblings, wrong)
    channel = ground.artifacts.channel(stand_in=ground.stand_in)
    package = PackageRecord(
        channel=channel.relative_to(ground.artifacts.root).as_posix(),
        file=f"{promise.subdir}/{event.package.name}",
        size=event.package.stat().st_size,
        sha256=sha256_of(event.package),
        mtime_ns=event.package.stat().st_mtime_ns,
    )
    promised = replace(build.running, seconds=event.seconds, packages=(package,))
    with signals_held_back():
        ground.ledger.promise(promised)
        (entered,) = add_packages(channel, [event.package])
        done = replace(package, mtime_ns=entered.stat().st_mtime_ns)
        record = replace(promised, result="done", ended=now(), packages=(done,))
        ground.ledger.finish(record)
        build.records.append(record)
        build.running = None


def _end(build: RowBuild, result: str, reason: str) -> None:
    """Record the end of the output that is running, if one is; a failure before the first is recorded too."""
    running = build.running
    if running is None and result == "failed":
        done = {record.output for record in build.records}
        name = next(output.name for output in build.row.outputs if output.name not in done)
        running = build.ground.ledger.begin(_record(build, name))
    if running is not None:
        record = replace(running, result=result, reason=reason, ended=now(), packages=())
        build.ground.ledger.finish(record)
        build.records.append(record)
    build.running = None


def _outputs(build: RowBuild) -> dict[str, PlannedOutput]:
    return {output.name: output for output in build.row.outputs}


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


def _log_path(logs: Path, row: str) -> Path:
    """A log file of its own for each build: the row's name and the time."""
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkError(f"cannot write logs here: {error.strerror or error}", path=logs) from error
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    # A file name has at most 255 bytes, and conda-smithy's names of configurations come near that.
    path = logs / f"{row[:200]}-{stamp}.log"
    return path if not path.exists() else logs / f"{row[:200]}-{stamp}-{os.getpid()}.log"


def _write(log: TextIO, event: Event) -> None:
    """One event of the log file: the time of day (UTC), what the engine was doing, and the text."""
    if isinstance(event, Log):
        stage, text = event.stage, event.text
    elif isinstance(event, Started):
        stage, text = "feedstock-tools", f"building {event.output}"
    elif isinstance(event, Built):
        stage, text = "feedstock-tools", f"built {event.package.name} in {event.seconds:.2f} s"
    else:
        stage, text = "feedstock-tools", f"{event.output} failed: {event.reason}"
    time = datetime.now(UTC).strftime("%H:%M:%S.%f")[:-3]
    for line in text.splitlines() or [""]:
        log.write(f"{time} {f'[{stage}] ' if stage else ''}{line}\n")
    log.flush()


def _explained(build: RowBuild, event: Failed) -> str:
    """A reason with more to it where the engine's own says too little: a solve that failed."""
    if event.during != "solve":
        return event.reason
    from feedstock_tools.build.explain import explain_solve

    why = explain_solve(build.specs, build.ground.target)
    return f"{event.reason}\n{why}" if why else event.reason

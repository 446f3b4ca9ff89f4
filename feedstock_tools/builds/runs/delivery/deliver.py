"""A built package's way into the channel: its checks, its name, the ledger's record before and after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from feedstock_tools.builds.engines.contract import BuildRequest, Built
from feedstock_tools.builds.engines.credentials import hide_credentials
from feedstock_tools.builds.engines.process.supervision import signals_held_back
from feedstock_tools.builds.ledger import PackageRecord, now
from feedstock_tools.builds.runs.delivery.final_names import with_final_name
from feedstock_tools.builds.runs.delivery.gpu_code import check_gpu_code
from feedstock_tools.builds.runs.delivery.metadata import Artifact, SolvedIn, check_artifact
from feedstock_tools.builds.runs.under_way import RowBuild, lock_name
from feedstock_tools.channel.folder import add_packages
from feedstock_tools.digests import sha256_of
from feedstock_tools.feedstock.planned import PlannedOutput


def deliver(build: RowBuild, event: Built, request: BuildRequest) -> None:
    """Check a package, add it to the output channel, and record it as done.

    Raises:
        WorkError: a check fails, or the channel or the ledger cannot be written.
    """
    build.refuse_changed(event.output)
    hide_credentials(event.package, request.channels)
    planned = build.outputs[event.output]
    promise = with_final_name(event.package, planned)
    artifact = _checked(build, event.package, promise, request)
    channel = build.site.artifacts.channel(stand_in=build.station.channels.stand_in is not None)
    package = PackageRecord(
        channel=channel.relative_to(build.site.artifacts.root).as_posix(),
        file=f"{promise.subdir}/{event.package.name}",
        size=event.package.stat().st_size,
        sha256=sha256_of(event.package),
        mtime_ns=event.package.stat().st_mtime_ns,
    )
    _enter(build, event, package, channel, artifact)
    build.promises[promise.name] = promise
    build.locks.release(lock_name(planned, stand_in=build.station.channels.stand_in is not None))


def _checked(build: RowBuild, package: Path, promise: PlannedOutput, request: BuildRequest) -> Artifact:
    """A package after all checks.

    An engine with channels of its own solves under names that its script and container choose.
    """
    siblings = {**build.outputs, **build.promises, promise.name: promise}
    solved_in = None if build.station.engine.own_channels else SolvedIn(request.output.as_uri(), build.station.channels)
    artifact = check_artifact(package, promise, siblings, solved_in)
    check_gpu_code(package, build.site.feedstock, promise.name, build.work.row.cuda)
    return artifact


def _enter(build: RowBuild, event: Built, package: PackageRecord, channel: Path, artifact: Artifact) -> None:
    """Put a package into the channel, between the ledger's promise and its final record."""
    assert build.running is not None  # noqa: S101  (an engine starts an output before it is built)
    ledger, peak = build.station.ledger, build.guard.peak or None
    promised = replace(build.running, seconds=event.seconds, peak_memory=peak, packages=(package,))
    with signals_held_back():
        ledger.promise(promised, artifact.environments)
        (entered,) = add_packages(channel, [event.package], {event.package: artifact.metadata})
        done = replace(package, mtime_ns=entered.stat().st_mtime_ns)
        record = replace(promised, result="done", ended=now(), packages=(done,))
        ledger.finish(record)
        build.records.append(record)
        build.running = None

"""Performing an order on a host: lay out its bundle, build the row as on any machine, and report what happens."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from feedstock_tools.builds.engines.choice import Engines
from feedstock_tools.builds.engines.contract import Built, Event, Failed, Output
from feedstock_tools.builds.fleet.host.settings import why_unfit
from feedstock_tools.builds.fleet.host.spool import AFTER_BUILD, EVENTS, append, caches_of, keep, slot_of
from feedstock_tools.builds.fleet.host.store import Store
from feedstock_tools.builds.fleet.orders.order import Channel, Made, Order, Refused, row_of
from feedstock_tools.builds.fleet.results.events import MOST_OUTPUT, Delivered, Finished
from feedstock_tools.builds.ledger import BuildRecord, Ledger, PackageRecord, TestRecord, now
from feedstock_tools.builds.plan.hosts import Share
from feedstock_tools.builds.plan.refusals import refuse
from feedstock_tools.builds.plan.rendering import PlannedInputs
from feedstock_tools.builds.plan.row import Ended
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.builds.runs.building import build_row
from feedstock_tools.builds.runs.observer import NextAttempt, Throttle
from feedstock_tools.builds.runs.site import Site, open_station, provide_compilers
from feedstock_tools.builds.testing.running import find_gpus, subject_of
from feedstock_tools.builds.testing.tests import TestedPackage, TestOptions, packages_in_files, run_tests
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.pip import unwatched
from feedstock_tools.channel.properties import Channels, properties_of
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import FeedstockError, WorkError
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import SEAL, Artifacts
from feedstock_tools.files.locks import locked_in_place
from feedstock_tools.wording import duration


def perform(folder: Path, root: Path, order: Order, share: Share) -> None:
    """Build the row of an order.

    Args:
        folder: of the attempt; `root` is the folder of the host's worker.
        share: the row's share of the host.

    Raises:
        FeedstockError: the row cannot be built on this host.
        Refused: a file of the order is missing or damaged.
    """
    store = Store(root / "store")
    slot = slot_of(root, order.name)
    artifacts = caches_of(root).apart(slot / "artifacts")
    artifacts.shared_builds.parent.mkdir()
    artifacts.shared_builds.symlink_to(caches_of(root).shared_builds)
    workspace = _laid_out(slot, artifacts, order, store)
    with Ledger(artifacts.ledger) as ledger:
        brought = {made.output: _brought(order, made, artifacts, ledger, store) for made in order.made}
        row = row_of(order, brought, share)
        for channel in {made.channel for made in order.made}:
            index_channel(artifacts.root / channel)
        site = _site(workspace, order, root, store)
        engine = workspace.engines.engine_for(row.configuration, row.platform)
        if engine.version != order.engine_version:
            raise WorkError(f"this host has {engine.name} {engine.version}, but the plan is for {order.engine_version}")
        refuse(provide_compilers(workspace, [row], {row.configuration: site.channels}, unwatched), some=1)
        station = open_station(site, ledger, engine, os.environ)
        report = _Report(folder, root, artifacts, ledger)
        ended = build_row(site, station, row, None, report.watch)
        if (folder / AFTER_BUILD).exists():
            after_build(report.packages, os.environ, report.tell)
        report.finish(ended)


def _laid_out(slot: Path, artifacts: Artifacts, order: Order, store: Store) -> Workspace:
    """The feedstock of an order, laid out from its bundle."""
    bundle = store.bundle(order.bundle)
    if bundle is None:
        raise Refused("the bundle is missing")
    tree = slot / "tree"
    store.lay_out(bundle, tree)
    feedstock, recipe = Feedstock(tree / order.feedstock), tree / order.recipe
    engines = Engines(feedstock.folder, recipe, os.environ, order.engine)
    return Workspace(feedstock, artifacts, recipe, tuple(each.name for each in order.channels), os.environ, engines)


def _brought(order: Order, made: Made, artifacts: Artifacts, ledger: Ledger, store: Store) -> BuildRecord:
    """Put an output that is built already into the channel and the ledger of this attempt."""
    place = artifacts.root / made.channel / made.file
    store.copy(made.sha256, place)
    package = PackageRecord(made.channel, made.file, made.size, made.sha256, place.stat().st_mtime_ns)
    record = BuildRecord(
        identity=made.identity,
        configuration=order.row["name"],
        row=order.name,
        output=made.output,
        result="done",
        started=now(),
        log="",
        engine=order.engine,
        channels=(),
    )
    done = replace(ledger.begin(record), result="done", ended=now(), packages=(package,))
    ledger.finish(done)
    return done


def _site(workspace: Workspace, order: Order, root: Path, store: Store) -> Site:
    channels = tuple(_channel(channel, root, store) for channel in order.channels)
    return Site(
        configuration=order.row["name"],
        target=order.row["platform"],
        pythons=order.pythons,
        feedstock=workspace.feedstock.folder,
        artifacts=workspace.artifacts,
        inputs=PlannedInputs.of(workspace.recipe, [workspace.feedstock.folder]),
        channels=Channels(channels, properties_of(order.origin)),
        epoch=order.epoch,
    )


def _channel(channel: Channel, root: Path, store: Store) -> str:
    """A channel as this host reaches it: a folder of the client's is laid out from its bundle, once."""
    if not channel.bundle:
        return channel.name
    place = root / "channels" / channel.bundle[:16]
    place.parent.mkdir(parents=True, exist_ok=True)
    with locked_in_place(place.parent):
        if not place.exists():
            bundle = store.bundle(channel.bundle)
            if bundle is None:
                raise Refused("the bundle of a channel is missing")
            part = place.with_name(f"{place.name}.part")
            store.lay_out(bundle, part)
            part.rename(place)
    return str(place)


class _Report:
    """Records what happens in an attempt, and keeps its packages and its log for the client."""

    def __init__(self, folder: Path, root: Path, artifacts: Artifacts, ledger: Ledger) -> None:
        self._folder = folder
        self._root = root
        self._unfit: str | None = None
        self._artifacts = artifacts
        self._ledger = ledger
        self._shown = Throttle()
        self.packages: list[Path] = []

    def tell(self, line: str) -> None:
        """A line that the client shows, and that ends the log of the row."""
        append(self._folder, Output(f"{line}\n".encode()))
        if (log := self._log()) is not None:
            with log.open("a", encoding="utf-8") as stream:
                stream.write(f"{line}\n")

    def _log(self) -> Path | None:
        """The log of the row; those of tests lie beside it."""
        logs = (log for log in sorted(self._artifacts.logs.glob("*.log")) if not log.name.startswith("test-"))
        return next(logs, None)

    def watch(self, event: Event) -> None:
        """Called with each event of the build."""
        spool = self._folder / EVENTS
        for shown in self._shown.of(event, full=spool.exists() and spool.stat().st_size > MOST_OUTPUT):
            if isinstance(shown, Built):
                self._deliver(shown)
            elif isinstance(shown, Failed) and (unfit := why_unfit(self._root)):
                self._unfit = unfit  # the row has not failed: it begins elsewhere
            elif not isinstance(shown, NextAttempt):
                append(self._folder, shown)

    def _deliver(self, event: Built) -> None:
        """A package that has entered the channel of this attempt."""
        record = next(each for each in reversed(self._ledger.builds()) if each.output == event.output)
        (package,) = record.packages
        path = self._artifacts.root / package.channel / package.file
        if path.name != SEAL:  # of a shared build, which stays here
            self.packages.append(path)
            keep(self._folder, path, package.sha256)
        delivered = Delivered(
            output=event.output,
            identity=record.identity,
            file=package.file,
            sha256=package.sha256,
            size=package.size,
            seconds=event.seconds,
            started=record.started,
            ended=record.ended or "",
            peak_memory=record.peak_memory,
            marks=dict(record.marks),
            environments=self._ledger.environments(record.id or 0),
        )
        append(self._folder, delivered)

    def finish(self, ended: Ended | None) -> None:
        """The end of the build."""
        log = self._log()
        if self._unfit:
            append(self._folder, Finished("unfit", self._unfit))
            return
        if ended is None or log is None:
            append(self._folder, Finished("built"))
            return
        digest = sha256_of(log)
        keep(self._folder, log, digest)
        append(self._folder, Finished("built", log=digest, log_size=log.stat().st_size))


def after_build(packages: Sequence[Path], machine: Mapping[str, str], tell: Callable[[str], None]) -> None:
    """Run the hello-world and the benchmark of packages, one after the other, on this machine's GPU if it has one.

    The hello-world is the package's own tests, in a fresh environment into which the package is installed as a user
    would: the build has run them already, beside its files. Neither decides whether a row is built.

    Args:
        packages: their files, in the channel of an attempt.
        machine: the environment of this machine.
        tell: gets a line for each result.
    """
    gpu = _has_gpu()
    for place in packages_in_files(packages):
        try:
            (record,) = run_tests([place], _options(place, machine, gpu=gpu), machine)
        except FeedstockError as error:
            tell(f"after the build: {place.path.name}: not tried: {error}")
        else:
            tell(f"after the build: {place.path.name}: {_text(record)}")


def _has_gpu() -> bool:
    try:
        find_gpus()
    except WorkError:
        return False
    return True


def _options(place: TestedPackage, machine: Mapping[str, str], *, gpu: bool) -> TestOptions:
    """With its benchmark, if it has one that means something on this machine."""
    subject = subject_of(place.path, place.channels, machine)
    return TestOptions(gpu=gpu, benchmark=bool(subject.benchmark) and subject.emulator is None)


def _text(record: TestRecord) -> str:
    if record.result != "passed":
        return f"hello-world or benchmark failed: {record.reason}"
    figures = [
        f"{name} {figure['value']:g} {figure.get('unit', '')}".rstrip() for name, figure in record.benchmark.items()
    ]
    summary = f"hello-world passed in {duration(record.seconds)}"
    return f"{summary}; benchmark: {', '.join(figures)}" if figures else summary

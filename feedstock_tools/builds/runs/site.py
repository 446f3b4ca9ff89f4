"""The shared values of a configuration's builds, and the resources that each machine opens for itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from feedstock_tools.builds.channels import (
    OpenChannels,
    compiler_notes,
    foresee_channels,
    open_channels,
    prepare_channels,
)
from feedstock_tools.builds.engines.comparable import DEFAULT_EPOCH
from feedstock_tools.builds.engines.contract import Engine
from feedstock_tools.builds.engines.embedded.emulation import Emulator, find_emulator
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.plan.agenda import Agenda, agenda
from feedstock_tools.builds.plan.hosts import Capacity
from feedstock_tools.builds.plan.rendering import PlannedInputs
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.channel.pip import Watch
from feedstock_tools.channel.properties import ChannelDemand, ChannelProperties, Channels
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.platforms import Platform


@dataclass(frozen=True, slots=True)
class Site:
    """The shared values of a configuration's builds.

    Attributes:
        configuration: its name.
        target: the subdir built for; `pythons` are the Python versions of its rows.
        feedstock: its folder; `artifacts` its artifacts folder.
        inputs: the recipe to build, and the files behind the plan.
        channels: the channels, by name.
        commit: the feedstock's commit; `command` is the command line.
        epoch: the time in its packages, in seconds since 1970.
    """

    configuration: str
    target: str
    pythons: tuple[str, ...]
    feedstock: Path
    artifacts: Artifacts
    inputs: PlannedInputs
    channels: Channels
    commit: str = ""
    command: str = ""
    epoch: int = DEFAULT_EPOCH


def site_of(
    workspace: Workspace, agenda: Agenda, row: Row, *, commit: str = "", command: str = "", epoch: int = DEFAULT_EPOCH
) -> Site:
    return Site(
        configuration=row.configuration,
        target=row.platform,
        pythons=agenda.pythons(row.configuration),
        feedstock=workspace.feedstock.folder,
        artifacts=workspace.artifacts,
        inputs=agenda.inputs,
        channels=agenda.channels[row.configuration],
        commit=commit,
        command=command,
        epoch=epoch,
    )


@dataclass(frozen=True, slots=True)
class Station:
    """The resources that a machine opens to build for a site.

    Attributes:
        ledger: the ledger for its builds.
        engine: the engine.
        channels: the site's channels, ready for solving.
        machine: its environment.
        emulator: the emulator for tests of a cross build, or why there is none; None if none is needed.
    """

    ledger: Ledger
    engine: Engine
    channels: OpenChannels
    machine: Mapping[str, str]
    emulator: Emulator | str | None = None

    @property
    def builder(self) -> str:
        return Platform.here().subdir


def provide_compilers(
    workspace: Workspace, rows: Sequence[Row], channels: Mapping[str, Channels], watch: Watch
) -> dict[str, str]:
    """Make compilers and tools ready that rows need of their channels, fetching what is missing.

    Args:
        channels: of each configuration, by its name.
        watch: called with the progress of a download.

    Returns:
        The configurations that this machine still cannot build: name → reason.
    """
    return prepare_channels(_demands(_makings(rows), channels), workspace.machine, workspace.artifacts.cache, watch)


def notes_on_compilers(workspace: Workspace, agenda: Agenda) -> list[str]:
    """Which compilers the rows of an agenda use, where the machine provides them."""
    return compiler_notes(_demands(_makings(agenda.todo), agenda.channels), workspace.machine)


def agenda_here(
    workspace: Workspace, chosen: Sequence[PlannedConfiguration], capacity: Capacity, jobs: int = 1
) -> Agenda:
    """The agenda of a run on this machine: it also refuses what channels made on the spot are known to lack.

    Nothing is fetched.

    Args:
        chosen: with their outputs.
        capacity: the limit for all builds together.
        jobs: the maximum number of parallel rows.

    Raises:
        InputError: channels were given for an engine that does not accept them, or the spec is invalid.
        WorkError: a channel cannot be reached, or the ledger cannot be read.

    >>> found = plan(workspace, workspace.chosen()[:1], Capacity.of_machine())
    >>> [[output.name for output in row.wanted.makes] for row in found.todo]
    [['tiny-base', 'tiny', 'tiny-gpu']]
    """
    found = agenda(workspace, chosen, capacity, jobs)
    unfinished = [
        Making(row.configuration, row.platform, row.planned, row.wanted.missing) for row in found.in_plan_order
    ]
    reasons = lacking(unfinished, found.channels, workspace.machine)
    if not reasons:
        return found
    others = [configuration for configuration in chosen if configuration.name not in reasons]
    rest = agenda(workspace, others, capacity, jobs)
    return replace(rest, refused={**found.refused, **reasons}, channels=found.channels, titles=found.titles)


def lacking(
    unfinished: Iterable[Making], channels: Mapping[str, Channels], machine: Mapping[str, str]
) -> dict[str, str]:
    """The configurations whose missing outputs need a package that channels made on the spot lack: name → reason.

    Args:
        unfinished: rows with their missing outputs, in the order of the plan.
        channels: of each configuration, by its name.
    """
    whole = [replace(each, outputs=(*each.outputs, *each.inherited)) for each in unfinished if each.outputs]
    return foresee_channels(_demands(whole, channels), machine)


@dataclass(frozen=True, slots=True)
class Making:
    """Outputs that a row would make; `configuration` is the name of its configuration, `platform` its target subdir."""

    configuration: str
    platform: str
    row: PlannedRow
    outputs: tuple[PlannedOutput, ...]

    @property
    def inherited(self) -> tuple[PlannedOutput, ...]:
        """The shared builds that they inherit from."""
        names = {name for output in self.outputs for name in output.staging}
        return tuple(build for build in self.row.shared if build.name in names)


def _makings(rows: Iterable[Row]) -> list[Making]:
    return [Making(row.configuration, row.platform, row.planned, row.wanted.makes) for row in rows]


def _demands(makings: Sequence[Making], channels: Mapping[str, Channels]) -> list[ChannelDemand]:
    made = {output.name for each in makings for output in each.row.outputs}
    return [
        ChannelDemand(
            channels=channels[each.configuration],
            configuration=each.configuration,
            platform=each.platform,
            needs=_foreign((spec for output in each.outputs for spec in output.needs), made),
            runs=_foreign((spec for output in each.outputs for spec in output.runs), made),
            python=each.row.build_python,
            tools=tuple(dict.fromkeys(tool for output in each.outputs for tool in output.tools)),
        )
        for each in makings
    ]


def _foreign(specs: Iterable[str], made: Collection[str]) -> tuple[str, ...]:
    """The specs on packages that are not made here, each once."""
    return tuple(dict.fromkeys(spec for spec in specs if spec.partition(" ")[0] not in made))


def open_station(site: Site, ledger: Ledger, engine: Engine, machine: Mapping[str, str]) -> Station:
    """Prepare this machine's resources to build for a site: the channels, and an emulator for a cross build.

    Args:
        machine: its environment.
    """
    channels = open_channels(site.channels, site.target, site.pythons, machine, site.artifacts.cache)
    return Station(ledger, engine, channels, machine, _emulator(engine, site.target, machine))


def why_untested(
    output: PlannedOutput, row: PlannedRow, channels: ChannelProperties, emulator: Emulator | str | None
) -> str | None:
    """The reason why the tests of an output are left out; None if they run.

    Args:
        channels: those that the output is built on, as opened.
        emulator: as for `Station`.
    """
    if isinstance(emulator, str):
        return f"a cross build: {emulator}"
    if emulator is not None and output.subdir == "noarch":
        return "a cross build: the engine would test a noarch package among packages for the machine that builds"
    if not output.uses_python or not row.build_python or channels.runs_python(row.build_python):
        return None
    return f"on the {channels.origin} channel of this machine that Python is metadata only"


def _emulator(engine: Engine, target: str, machine: Mapping[str, str]) -> Emulator | str | None:
    if target in (Platform.here().subdir, "noarch") or engine.cross_tests == "its own":
        return None
    if engine.cross_tests == "left out":
        return f"the engine {engine.name} leaves tests out"
    return find_emulator(target, machine)

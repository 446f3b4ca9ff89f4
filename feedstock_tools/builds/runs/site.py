"""The shared values of a configuration's builds, and the resources that each machine opens for itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.builds.engines.comparable import DEFAULT_EPOCH
from feedstock_tools.builds.engines.contract import Engine
from feedstock_tools.builds.engines.embedded.emulation import Emulator, find_emulator
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.plan.rendering import PlannedInputs
from feedstock_tools.builds.stand_in.channel import StandInChannel
from feedstock_tools.builds.stand_in.choice import ChannelChoice
from feedstock_tools.builds.stand_in.resolved import ResolvedChannels, resolve_channels
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedOutput, PlannedRow
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
    channels: ChannelChoice
    commit: str = ""
    command: str = ""
    epoch: int = DEFAULT_EPOCH


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
    channels: ResolvedChannels
    machine: Mapping[str, str]
    emulator: Emulator | str | None = None

    @property
    def builder(self) -> str:
        """The subdir of the machine."""
        return Platform.here().subdir


def open_station(site: Site, ledger: Ledger, engine: Engine, machine: Mapping[str, str]) -> Station:
    """Prepare this machine's resources to build for a site: the channels, and an emulator for a cross build.

    Args:
        machine: its environment.

    Raises:
        WorkError: the stand-in channel cannot be created.
        InputError: a channel's name is invalid.
    """
    channels = resolve_channels(site.channels, site.target, site.pythons, machine, site.artifacts.cache)
    return Station(ledger, engine, channels, machine, _emulator(engine, site.target, machine))


def why_untested(
    output: PlannedOutput, row: PlannedRow, stand_in: StandInChannel | None, emulator: Emulator | str | None
) -> str | None:
    """The reason why the tests of an output are left out; None if they run.

    Args:
        stand_in: the stand-in channel, if the output is built on it.
        emulator: as for `Station`.
    """
    if isinstance(emulator, str):
        return f"a cross build: {emulator}"
    if emulator is not None and output.subdir == "noarch":
        return "a cross build: the engine would test a noarch package among packages for the machine that builds"
    if stand_in is None or not output.uses_python or not row.build_python or stand_in.can_run(row.build_python):
        return None
    return "on the stand-in channel of this machine that Python is metadata only"


def _emulator(engine: Engine, target: str, machine: Mapping[str, str]) -> Emulator | str | None:
    if target in (Platform.here().subdir, "noarch") or engine.cross_tests == "its own":
        return None
    if engine.cross_tests == "left out":
        return f"the engine {engine.name} leaves tests out"
    return find_emulator(target, machine)

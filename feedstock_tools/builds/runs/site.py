"""What the builds of a configuration stand on: channels that are ready, environments, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from feedstock_tools.builds.engines.contract import Engine
from feedstock_tools.builds.engines.embedded.emulation import Emulator, find_emulator
from feedstock_tools.builds.engines.variables import build_environment
from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.plan.workspace import Setting
from feedstock_tools.builds.runs.inputs import Inputs
from feedstock_tools.builds.runs.row import Ground
from feedstock_tools.builds.stand_in.channel import StandInChannel, stand_in_channel_of
from feedstock_tools.builds.stand_in.choice import ChannelChoice, identity_on
from feedstock_tools.channel.repodata import channel_url, read_records
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.platforms import Platform

__all__ = ["make_ground"]


def make_ground(
    setting: Setting,
    engine: Engine,
    configuration: PlannedConfiguration,
    choice: ChannelChoice,
    base: str,
    ledger: Ledger,
    inputs: Inputs,
    commit: str = "",
) -> Ground:
    """Make the stand-in channel where it is the choice, and put together what `build_row` needs.

    Args:
        base: what identifies the channels.
        inputs: what was planned from.
        commit: the feedstock's.

    Raises:
        WorkError: the stand-in channel cannot be made.
        InputError: a channel's name is not one.
    """
    stand_in = _stand_in(setting, configuration) if choice.is_stand_in else None
    channels = (stand_in.url,) if stand_in else tuple(channel_url(channel) for channel in choice.channels)
    subdirs = (configuration.platform, "noarch")
    emulator = _emulator(setting, engine, configuration.platform)

    @cache
    def names(channel: str) -> frozenset[str]:
        return frozenset(record.name for record in read_records(channel, subdirs))

    return Ground(
        artifacts=setting.artifacts,
        ledger=ledger,
        engine=engine,
        feedstock=setting.feedstock.folder,
        recipe=setting.recipe,
        configuration=configuration.name,
        target=configuration.platform,
        builder=Platform.here().subdir,
        channels=channels,
        stand_in=stand_in is not None,
        identities=lambda output: identity_on(base, output),
        inputs=lambda output: {**output.inputs, "channels": base},
        changed=partial(inputs.differ, configuration),
        untested=_untested(stand_in, emulator),
        environment=_environment(setting, configuration, stand_in=stand_in is not None),
        has=lambda channel, name: name in names(channel),
        emulator=emulator if isinstance(emulator, Emulator) else None,
        commit=commit,
        command=setting.command,
    )


def _environment(
    setting: Setting, configuration: PlannedConfiguration, *, stand_in: bool
) -> Callable[[PlannedRow, Path, int], Mapping[str, str]]:
    """Gives the environment of a row's build."""
    packages = setting.artifacts.package_cache(stand_in=stand_in)

    def environment(row: PlannedRow, folder: Path, jobs: int) -> Mapping[str, str]:
        return build_environment(
            setting.machine,
            feedstock=setting.feedstock.folder,
            configuration=configuration.name,
            cuda=row.cuda,
            folder=folder,
            cache=packages,
            jobs=jobs,
        )

    return environment


def _untested(
    stand_in: StandInChannel | None, emulator: Emulator | str | None
) -> Callable[[PlannedRow, PlannedOutput], str | None]:
    """Gives the reason why tests of an output are left out."""

    def untested(row: PlannedRow, output: PlannedOutput) -> str | None:
        if isinstance(emulator, str):
            return f"a cross build: {emulator}"
        if emulator is not None and output.subdir == "noarch":
            return "a cross build: the engine would test a noarch package among packages for the machine that builds"
        if stand_in is None or not output.uses_python or not row.python or stand_in.can_run(row.python):
            return None
        return "on the stand-in channel of this machine that Python is metadata only"

    return untested


def _emulator(setting: Setting, engine: Engine, target: str) -> Emulator | str | None:
    """What runs the tests of a cross build, or why nothing does; None where nothing has to."""
    if target in (Platform.here().subdir, "noarch") or engine.cross_tests == "its own":
        return None
    if engine.cross_tests == "left out":
        return f"the engine {engine.name} is told to leave tests out"
    return find_emulator(target, setting.machine)


def _stand_in(setting: Setting, configuration: PlannedConfiguration) -> StandInChannel:
    platform = Platform.parse(configuration.platform)
    return stand_in_channel_of(setting.machine, platform, configuration.pythons, setting.artifacts.root / ".cache")

"""What the builds of a configuration stand on: channels that are ready, environments, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from feedstock_tools.build.building import Ground
from feedstock_tools.build.channels import ChannelChoice, identity_on
from feedstock_tools.build.engines.contract import Engine
from feedstock_tools.build.environment import build_environment
from feedstock_tools.build.feedstock import user_cache
from feedstock_tools.build.ledger import Ledger
from feedstock_tools.build.planned import PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.build.setting import Setting
from feedstock_tools.build.stand_in.channel import StandInChannel, ensure_stand_in_channel
from feedstock_tools.build.stand_in.toolkits import toolkits_folder
from feedstock_tools.channel.repodata import channel_url, read_records
from feedstock_tools.platforms import Platform

__all__ = ["make_ground"]


def make_ground(
    setting: Setting,
    engine: Engine,
    configuration: PlannedConfiguration,
    choice: ChannelChoice,
    base: str,
    ledger: Ledger,
    commit: str = "",
) -> Ground:
    """Make the stand-in channel where it is the choice, and put together what `build_row` needs.

    Args:
        base: what identifies the channels.
        commit: the feedstock's.

    Raises:
        WorkError: the stand-in channel cannot be made.
        InputError: a channel's name is not one.
    """
    stand_in = _stand_in(setting, configuration) if choice.is_stand_in else None
    channels = (stand_in.url,) if stand_in else tuple(channel_url(channel) for channel in choice.channels)
    packages = setting.artifacts.package_cache(stand_in=stand_in is not None)
    subdirs = (configuration.platform, "noarch")

    @cache
    def names(channel: str) -> frozenset[str]:
        return frozenset(record.name for record in read_records(channel, subdirs))

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

    def untested(row: PlannedRow, output: PlannedOutput) -> str | None:
        here = Platform.here().subdir
        if configuration.platform not in (here, "noarch") and engine.name == "rattler-build":
            return f"a cross build: programs for {configuration.platform} are not run on {here}"
        if stand_in is None or not output.uses_python or not row.python or stand_in.can_run(row.python):
            return None
        return "on the stand-in channel of this machine that Python is metadata only"

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
        untested=untested,
        environment=environment,
        has=lambda channel, name: name in names(channel),
        commit=commit,
        command=setting.command,
    )


@cache
def _made(root: Path, platform: Platform, pythons: frozenset[str], path: str | None, toolkits: Path) -> StandInChannel:
    return ensure_stand_in_channel(root, platform, pythons, path=path, toolkits=toolkits)


def _stand_in(setting: Setting, configuration: PlannedConfiguration) -> StandInChannel:
    machine = setting.machine
    root = user_cache(machine, setting.artifacts.root / ".cache") / "stand-in"
    platform = Platform.parse(configuration.platform)
    return _made(root, platform, frozenset(configuration.pythons), machine.get("PATH"), toolkits_folder(machine))

"""The run of `build`: from chosen configurations to packages in a channel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from feedstock_tools.build.artifacts import Artifacts
from feedstock_tools.build.channels import STAND_IN, ChannelChoice, choose_channels, identity_of_channels
from feedstock_tools.build.engine import Engine, Event
from feedstock_tools.build.feedstock import Feedstock
from feedstock_tools.build.ledger import BuildRecord, Ledger
from feedstock_tools.build.planned import PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform

__all__ = [
    "Console",
    "Outcome",
    "Setting",
    "channels_identity",
    "choose_for",
    "identity_on",
    "refuse_unbuildable",
    "run_builds",
]


class Console(Protocol):
    """Someone who is told what happens."""

    def say(self, text: str) -> None:
        """Something the user should know, on lines of its own."""

    def begin(self, configuration: PlannedConfiguration, row: PlannedRow) -> None:
        """A row is about to be built."""

    def event(self, event: Event) -> None:
        """Something an engine reports."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run works with: where, with which engine, the channels that were given, the machine's environment.

    `recipe` is the `recipe.yaml` that is built; for a feedstock with a `meta.yaml` it is made from the same spec.
    """

    feedstock: Feedstock
    artifacts: Artifacts
    engine: Engine
    recipe: Path
    channels: tuple[str, ...]
    machine: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One output of one row after a run: its plan, its record (None: it was not reached), and whether it is new."""

    configuration: str
    row: PlannedRow
    output: PlannedOutput
    record: BuildRecord | None
    new: bool


def run_builds(setting: Setting, chosen: Sequence[PlannedConfiguration], console: Console) -> tuple[Outcome, ...]:
    """Build what is not done of the chosen configurations, in their order.

    The first output that fails ends the run; what comes after it has no record.

    Raises:
        InputError: a configuration cannot be built here, with the reason; nothing has been built then.
        WorkError: a channel cannot be reached, or the artifacts folder cannot be used.
    """
    refuse_unbuildable(setting.engine, chosen)
    by_channels = {each.channels: each for each in chosen}
    choices = {listed: choose_for(setting, each, console) for listed, each in by_channels.items()}
    outcomes: list[Outcome] = []
    with Ledger(setting.artifacts.ledger) as ledger:
        for configuration in chosen:
            choice = choices[configuration.channels]
            for row in configuration.rows:
                failed = any(each.record and each.record.result != "done" for each in outcomes)
                found = {} if failed else _run_row(setting, configuration, row, choice, ledger, console)
                outcomes += _outcomes(configuration, row, found)
    return tuple(outcomes)


def _run_row(
    setting: Setting,
    configuration: PlannedConfiguration,
    row: PlannedRow,
    choice: ChannelChoice,
    ledger: Ledger,
    console: Console,
) -> dict[str, tuple[BuildRecord, bool]]:
    """The record of each output by name, and whether it is new."""
    base = channels_identity(setting.machine, configuration.platform, choice)
    done = {output.name: ledger.done(identity_on(base, output)) for output in row.outputs}
    if all(done.values()):
        return {name: (record, False) for name, record in done.items() if record}
    from feedstock_tools.build.building import build_row
    from feedstock_tools.build.ground import make_ground

    console.begin(configuration, row)
    ground = make_ground(setting, configuration, choice, base, ledger)
    before, now = build_row(ground, row, console.event)
    return {**{record.output: (record, False) for record in before}, **{each.output: (each, True) for each in now}}


def _outcomes(
    configuration: PlannedConfiguration, row: PlannedRow, found: Mapping[str, tuple[BuildRecord, bool]]
) -> Iterator[Outcome]:
    for output in row.outputs:
        record, new = found.get(output.name, (None, False))
        yield Outcome(configuration.name, row, output, record, new)


def channels_identity(machine: Mapping[str, str], platform: str, choice: ChannelChoice) -> str:
    """What identifies the channels that builds for a platform use."""
    if not choice.is_stand_in:
        return identity_of_channels(choice.channels)
    from feedstock_tools.build.stand_in_identity import stand_in_identity

    return f"{STAND_IN} {stand_in_identity(Platform.parse(platform), path=machine.get('PATH'))}"


def identity_on(base: str, output: PlannedOutput) -> str:
    """The identity of an output's build in the ledger: what the plan knows of, and the channels."""
    return sha256(f"{output.identity}\n{base}".encode()).hexdigest()


def refuse_unbuildable(engine: Engine, chosen: Sequence[PlannedConfiguration]) -> None:
    """Raise `InputError` where a configuration cannot be built on this machine, or its outputs cannot be told."""
    builder = Platform.here().subdir
    for configuration in chosen:
        reason = engine.why_not(configuration.platform, builder) or configuration.refusal
        if reason:
            raise InputError(f"{configuration.name} cannot be built here: {reason}")


def choose_for(setting: Setting, configuration: PlannedConfiguration, console: Console) -> ChannelChoice:
    """The channels for a configuration; what is out of the ordinary is said.

    Raises:
        WorkError: a channel cannot be reached.
    """
    choice = choose_channels(setting.channels, configuration.channels, setting.artifacts)
    if choice.why_stand_in:
        console.say(f"Building on the STAND-IN channel: {choice.why_stand_in}.")
        console.say(
            "Its packages have the metadata of real ones and no real contents; what is built on it is marked so."
        )
    return choice

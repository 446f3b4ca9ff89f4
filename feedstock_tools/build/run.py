"""The run of `build`: from chosen configurations to packages in a channel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from feedstock_tools.build.channels import ChannelChoice, channels_identity, choose_channels, identity_on
from feedstock_tools.build.engines.contract import Engine, Event
from feedstock_tools.build.ledger import BuildRecord, Ledger
from feedstock_tools.build.planned import PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.build.setting import Setting
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform

__all__ = [
    "Console",
    "Outcome",
    "choose_for",
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
class Outcome:
    """One output of one row after a run: its plan, its record (None: it was not reached), and whether it is new."""

    configuration: str
    row: PlannedRow
    output: PlannedOutput
    record: BuildRecord | None
    new: bool


def run_builds(
    setting: Setting, engine: Engine, chosen: Sequence[PlannedConfiguration], console: Console
) -> tuple[Outcome, ...]:
    """Build what is not done of the chosen configurations, in their order.

    The first output that fails ends the run; what comes after it has no record.

    Raises:
        InputError: a configuration cannot be built here, with the reason; nothing has been built then.
        WorkError: a channel cannot be reached, or the artifacts folder cannot be used.
    """
    refuse_unbuildable(engine, chosen)
    by_channels = {each.channels: each for each in chosen}
    choices = {listed: choose_for(setting, each, console) for listed, each in by_channels.items()}
    outcomes: list[Outcome] = []
    with Ledger(setting.artifacts.ledger) as ledger:
        run = _Run(setting, engine, ledger, console)
        for configuration in chosen:
            choice = choices[configuration.channels]
            for row in configuration.rows:
                failed = any(each.record and each.record.result != "done" for each in outcomes)
                found = {} if failed else _run_row(run, configuration, row, choice)
                outcomes += _outcomes(configuration, row, found)
    return tuple(outcomes)


@dataclass(frozen=True, slots=True)
class _Run:
    """What the rows of a run have in common."""

    setting: Setting
    engine: Engine
    ledger: Ledger
    console: Console


def _run_row(
    run: _Run, configuration: PlannedConfiguration, row: PlannedRow, choice: ChannelChoice
) -> dict[str, tuple[BuildRecord, bool]]:
    """The record of each output by name, and whether it is new."""
    base = channels_identity(run.setting.machine, configuration.platform, choice)
    done = {output.name: run.ledger.done(identity_on(base, output)) for output in row.outputs}
    if all(done.values()):
        return {name: (record, False) for name, record in done.items() if record}
    from feedstock_tools.build.building import build_row
    from feedstock_tools.build.ground import make_ground

    run.console.begin(configuration, row)
    ground = make_ground(run.setting, run.engine, configuration, choice, base, run.ledger)
    before, now = build_row(ground, row, run.console.event)
    return {**{record.output: (record, False) for record in before}, **{each.output: (each, True) for each in now}}


def _outcomes(
    configuration: PlannedConfiguration, row: PlannedRow, found: Mapping[str, tuple[BuildRecord, bool]]
) -> Iterator[Outcome]:
    for output in row.outputs:
        record, new = found.get(output.name, (None, False))
        yield Outcome(configuration.name, row, output, record, new)


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

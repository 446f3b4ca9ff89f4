"""From chosen configurations to the work of a run: finished and missing outputs, their needs and order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from feedstock_tools.builds.channels import DEFAULT_CHANNELS, choose_channels, identity_of_channels
from feedstock_tools.builds.ledger import BuildRecord, Ledger
from feedstock_tools.builds.plan.capacity import Capacity
from feedstock_tools.builds.plan.identity import PARTS, identity_on, inputs_on
from feedstock_tools.builds.plan.needs import Declared, History, Needs, expected_seconds, needs_of
from feedstock_tools.builds.plan.refusals import refused
from feedstock_tools.builds.plan.rendering import PlannedInputs
from feedstock_tools.builds.plan.row import Place, Work, place_of
from feedstock_tools.channel.properties import Channels
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedRow

if TYPE_CHECKING:
    from feedstock_tools.builds.engines.contract import Engine
    from feedstock_tools.builds.plan.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Agenda:
    """The work of a run over some configurations.

    Attributes:
        todo: the rows to build, in their order; `done` those that are up to date.
        rows: the names of all rows, in the order of the plan.
        refused: the configurations that cannot be built here, by name, with the reason.
        channels: the channels of each configuration that can be built.
        inputs: the files behind the plan.
        jobs: the maximum number of parallel rows, within `capacity`.
        seconds: the duration of the run by known times; None if there are none.
        again: the rows to build that were built before, each with what has changed since, in words.
        prepared: this machine has the disk space, compilers and tools for all of it (`runs.run.prepare`).
    """

    todo: tuple[Work, ...]
    done: tuple[Work, ...]
    rows: tuple[str, ...]
    refused: Mapping[str, str]
    channels: Mapping[str, Channels]
    inputs: PlannedInputs
    capacity: Capacity
    jobs: int
    seconds: float | None = None
    again: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prepared: bool = False

    @property
    def unknown(self) -> int:
        """The number of rows of unknown duration."""
        return sum(work.expected is None for work in self.todo)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row before its needs are known, with the identity of its channels, and the records of finished outputs."""

    configuration: PlannedConfiguration
    row: PlannedRow
    base: str
    done: Mapping[str, BuildRecord]

    @property
    def missing(self) -> list[str]:
        """The names of the other outputs."""
        return [output.name for output in self.row.outputs if output.name not in self.done]


def agenda(workspace: Workspace, chosen: Sequence[PlannedConfiguration], capacity: Capacity, jobs: int = 1) -> Agenda:
    """The work of a run over some configurations: only outputs that the ledger does not record as done.

    Args:
        chosen: with their outputs.
        capacity: the limit for all builds together.
        jobs: the maximum number of parallel rows.

    Raises:
        InputError: channels were given for an engine that does not accept them, or the spec is invalid.
        WorkError: a channel cannot be reached, or the ledger cannot be read.

    >>> found = plan(workspace, workspace.chosen()[:1], Capacity.of_machine())
    >>> [[output.name for output in work.makes] for work in found.todo]
    [['tiny-base', 'tiny', 'tiny-gpu']]
    """
    inputs = PlannedInputs.of(workspace.recipe, [workspace.feedstock.recipe, *workspace.plan.sources])
    reasons = refused(chosen, workspace.engines)
    possible = [configuration for configuration in chosen if configuration.name not in reasons]
    channels = channels_for(workspace, possible)
    bases = {
        configuration.name: identity_of_channels(
            channels[configuration.name], configuration.platform, workspace.machine
        )
        for configuration in possible
    }
    rows, history = _rows(workspace, possible, bases)
    declared = Declared.of(workspace.plan.needs)
    works = [_work(planned, needs_of(declared, history.memory(planned.row.name, planned.missing))) for planned in rows]
    todo = _ordered([work for work in works if work.missing], history, declared)
    return Agenda(
        todo=todo,
        done=tuple(work for work in works if not work.missing),
        rows=tuple(work.name for work in works),
        refused=reasons,
        channels=channels,
        inputs=inputs,
        capacity=capacity,
        jobs=jobs,
        seconds=_seconds(todo, jobs),
        again={work.name: changed for work in todo if (changed := _changed(work, history, bases))},
    )


def _needs(planned: _Row, declared: Declared, history: History) -> Needs:
    return needs_of(declared, history.memory(planned.row.name, planned.missing))


def _changed(work: Work, history: History, bases: Mapping[str, str]) -> tuple[str, ...]:
    """What has changed since the last builds of a row's missing outputs; empty without any."""
    changed: set[str] = set()
    for output in work.missing:
        inputs = inputs_on(bases[work.configuration], output)
        for record in history.of_row.get((work.name, output.name), [])[-1:]:
            if record.inputs:
                changed |= {part for part in PARTS if record.inputs.get(part) != inputs.get(part)}
    return tuple(text for part, text in PARTS.items() if part in changed)


def _rows(
    workspace: Workspace, possible: Sequence[PlannedConfiguration], bases: Mapping[str, str]
) -> tuple[list[_Row], History]:
    """Every row of some configurations with its finished outputs, and the history of earlier builds.

    Args:
        bases: configuration → the identity of its channels.
    """
    if not workspace.artifacts.ledger.is_file():
        nothing: dict[str, BuildRecord] = {}
        return [
            _Row(configuration, row, bases[configuration.name], nothing)
            for configuration in possible
            for row in configuration.rows
        ], History({}, {})
    with Ledger(workspace.artifacts.ledger) as ledger:
        rows = [
            _Row(configuration, row, bases[configuration.name], _done(ledger, row, bases[configuration.name]))
            for configuration in possible
            for row in configuration.rows
        ]
        return rows, History.of(ledger, ((planned.row.name, name) for planned in rows for name in planned.missing))


def _done(ledger: Ledger, row: PlannedRow, base: str) -> dict[str, BuildRecord]:
    """The records of a row's finished outputs, by name."""
    records = {output.name: ledger.done(identity_on(base, output)) for output in row.outputs}
    return {name: record for name, record in records.items() if record is not None}


def _work(planned: _Row, needs: Needs) -> Work:
    outputs = planned.row.outputs
    missing = tuple(output for output in outputs if output.name not in planned.done)
    return Work(
        configuration=planned.configuration.name,
        platform=planned.configuration.platform,
        row=planned.row,
        identities={output.name: identity_on(planned.base, output) for output in outputs},
        inputs={output.name: inputs_on(planned.base, output) for output in outputs},
        done=planned.done,
        missing=missing,
        makes=missing,
        needs=needs,
        seconds_source="history",
    )


def _ordered(todo: Sequence[Work], history: History, declared: Declared) -> tuple[Work, ...]:
    """The rows in build order, each with the outputs that it makes itself and their expected duration."""
    if not todo:
        return ()
    from feedstock_tools.builds.plan.order import in_order

    return tuple(_each_once(in_order([_timed(work, history, declared) for work in todo]), history, declared))


def _each_once(todo: Sequence[Work], history: History, declared: Declared) -> Iterator[Work]:
    places: set[Place] = set()
    for work in todo:
        makes = tuple(output for output in work.missing if place_of(output) not in places)
        places |= work.places
        yield _timed(replace(work, makes=makes), history, declared)


def _timed(work: Work, history: History, declared: Declared) -> Work:
    seconds, source = expected_seconds(history, declared, work.name, [output.name for output in work.makes])
    return replace(work, seconds=seconds, seconds_source=source)


def _seconds(todo: Sequence[Work], jobs: int) -> float | None:
    if not todo:
        return None
    from feedstock_tools.builds.plan.order import seconds_left

    return seconds_left(todo, jobs)


def channels_for(workspace: Workspace, chosen: Sequence[PlannedConfiguration]) -> dict[str, Channels]:
    """The channels of some configurations that can be built here, by name; each channel is queried once.

    Raises:
        InputError: channels were given for an engine that does not accept them.
        WorkError: a channel cannot be reached.
    """
    by_key: dict[tuple[tuple[str, ...], bool], Channels] = {}
    choices = {}
    for configuration in chosen:
        engine = workspace.engines.engine(configuration)
        key = configuration.channels, engine.own_channels
        if key not in by_key:
            by_key[key] = _choice(workspace, configuration, engine)
        choices[configuration.name] = by_key[key]
    return choices


def _choice(workspace: Workspace, configuration: PlannedConfiguration, engine: Engine) -> Channels:
    """The channels for a configuration.

    An engine with channels of its own, such as the feedstock's scripts, uses those of the configuration. Whether
    they can be reached from there is unknown.
    """
    if not engine.own_channels:
        return choose_channels(workspace.channels, configuration.channels, workspace.artifacts)
    if workspace.channels:
        hint = "Remove --channel; they use the configuration's channel_sources."
        raise InputError("the feedstock's own scripts do not accept channels", hint=hint)
    return Channels(configuration.channels or DEFAULT_CHANNELS)

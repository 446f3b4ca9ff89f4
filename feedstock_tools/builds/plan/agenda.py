"""From chosen configurations to the rows of a run: finished and missing outputs, their needs and order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

from feedstock_tools.builds.channels import DEFAULT_CHANNELS, ChannelIdentities, ChannelsIdentity, choose_channels
from feedstock_tools.builds.ledger import BuildRecord, Ledger
from feedstock_tools.builds.plan.hosts import Capacity, Host
from feedstock_tools.builds.plan.identity import PARTS, identity_on, inputs_on
from feedstock_tools.builds.plan.needs import Declared, History, Needs, expected_seconds, needs_of
from feedstock_tools.builds.plan.order import in_order, seconds_left
from feedstock_tools.builds.plan.refusals import refused, titles_of
from feedstock_tools.builds.plan.rendering import PlannedInputs
from feedstock_tools.builds.plan.row import Row, Wanted
from feedstock_tools.channel.properties import Channels
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.layout import kept_name
from feedstock_tools.feedstock.planned import PackageId, PlannedConfiguration, PlannedRow

if TYPE_CHECKING:
    from feedstock_tools.builds.engines.contract import Engine
    from feedstock_tools.builds.plan.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Unit:
    """A shared build: its name, the parts of its identity, and the identities of all outputs that inherit from it."""

    name: str
    inputs: Mapping[str, str]
    heirs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Agenda:
    """The rows of a run over some configurations.

    Attributes:
        todo: the rows to build, in their order, with the shared builds that they wait for; `done` those that are up to
            date.
        rows: the names of all rows, in the order of the plan, without shared builds.
        refused: the configurations that cannot be built here, by name, with the reason.
        titles: the short name of each configuration, by its name.
        channels: the channels of each configuration that can be built.
        inputs: the files behind the plan.
        jobs: the maximum number of parallel rows, within `capacity`.
        seconds: the duration of the run by known times; None if there are none.
        again: the rows to build that were built before, each with what has changed since, in words.
        kept: the shared builds that rows to build inherit from, and that were run before.
        units: the shared builds of the chosen configurations, by identity, with all their heirs.
        prepared: this machine has the disk space, compilers and tools for all of it (`runs.run.prepare`).
    """

    todo: tuple[Row, ...]
    done: tuple[Row, ...]
    rows: tuple[str, ...]
    refused: Mapping[str, str]
    channels: Mapping[str, Channels]
    inputs: PlannedInputs
    capacity: Capacity
    jobs: int
    seconds: float | None = None
    again: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kept: tuple[Row, ...] = ()
    units: Mapping[str, Unit] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    prepared: bool = False

    @property
    def unknown(self) -> int:
        """The number of rows of unknown duration."""
        return sum(row.wanted.expected is None for row in self.todo)

    @property
    def in_plan_order(self) -> tuple[Row, ...]:
        by_name = {row.name: row for row in (*self.done, *self.todo)}
        return tuple(by_name[name] for name in self.rows)

    def only(self, rows: Sequence[Row]) -> Agenda:
        """Some of the rows to build, with the shared builds that they wait for."""
        chosen = [row for row in rows if not row.is_shared]
        awaited = {package for row in chosen for package in row.wanted.after}
        shared = [row for row in self.todo if row.is_shared and not awaited.isdisjoint(row.wanted.packages)]
        names = tuple(row.name for row in chosen)
        return replace(self, todo=(*shared, *chosen), rows=names, done=(), again={})

    def on_hosts(self, hosts: Iterable[Host] = ()) -> Agenda:
        """The same for hosts that share no disk: a row needs the host that keeps the shared builds it inherits from.

        The host of a shared build must be able to build all of its heirs.

        Args:
            hosts: with what they keep; other shared builds run again, those of this machine too.
        """
        there = frozenset[str]().union(*(host.keeps for host in hosts))
        shared = [_anew(row) for row in (*self.kept, *(row for row in self.todo if row.is_shared))]
        shared.sort(key=lambda row: row.wanted.makes_kept.isdisjoint(there))
        rows = _after([row for row in self.todo if not row.is_shared], shared)
        shared = [_beside(row, shared[:at], rows) for at, row in enumerate(shared)]
        known: dict[Needs, Needs] = {}  # equal needs are one object, by which `decide` knows them
        for at, row in enumerate(rows):
            if names := frozenset(map(kept_name, row.wanted.shared.values())):
                needs = replace(row.wanted.needs, shared=names)
                rows[at] = replace(row, wanted=replace(row.wanted, needs=known.setdefault(needs, needs)))
        kept = tuple(row for row in shared if row.wanted.makes_kept <= there)
        return replace(self, todo=(*(row for row in shared if row not in kept), *rows), kept=kept)

    def once_more(self, shared: Sequence[Row]) -> Agenda:
        """The same, in which some of the kept shared builds run again."""
        again = [_anew(row) for row in shared]
        return replace(self, todo=(*again, *_after(self.todo, again)), kept=())

    def pythons(self, configuration: str) -> tuple[str, ...]:
        """The Python versions that the builds of a configuration run."""
        rows = (row for row in (*self.done, *self.todo) if row.configuration == configuration)
        return tuple(dict.fromkeys(row.planned.build_python for row in rows if row.planned.build_python))


def agenda(workspace: Workspace, chosen: Sequence[PlannedConfiguration], capacity: Capacity, jobs: int = 1) -> Agenda:
    """The rows of a run over some configurations: only outputs that the ledger does not record as done.

    The arguments and errors are those of `runs.site.agenda_here`.
    """
    plan = workspace.plan
    inputs = PlannedInputs.of(workspace.recipe, [workspace.feedstock.recipe, *plan.sources], plan.began)
    reasons = refused(chosen, workspace.engines)
    possible = [configuration for configuration in chosen if configuration.name not in reasons]
    channels = channels_for(workspace, possible)
    base_of = ChannelIdentities(workspace.machine).of
    bases = {each.name: base_of(channels[each.name], each.platform, each.cuda_majors) for each in possible}
    declared = Declared.of(workspace.plan.needs)
    pairs = [(configuration, row) for configuration in possible for row in configuration.rows]
    rows, history = _rows(workspace, pairs, bases, declared)
    shared, of_shared = _rows(workspace, _shared_rows(pairs, rows), bases, declared)
    kept = tuple(row for row in shared if not row.wanted.missing)
    shared = [row for row in shared if row.wanted.missing]
    rows = _after(rows, shared)
    history = History(history.of_row | of_shared.of_row, history.of_others | of_shared.of_others)
    missing = [_timed(row, history, declared) for row in (*shared, *rows) if row.wanted.missing]
    todo = tuple(_each_once(in_order(missing), history, declared))
    return Agenda(
        todo=todo,
        done=tuple(row for row in rows if not row.wanted.missing),
        rows=tuple(row.name for row in rows),
        refused=reasons,
        channels=channels,
        inputs=inputs,
        capacity=capacity,
        jobs=jobs,
        seconds=seconds_left(todo, jobs),
        again={row.name: changed for row in todo if (changed := _changed(row, history, bases))},
        kept=kept,
        units=_units(workspace, possible, bases),
        titles=titles_of(chosen),
    )


def _shared_rows(
    pairs: Sequence[tuple[PlannedConfiguration, PlannedRow]], rows: Sequence[Row]
) -> list[tuple[PlannedConfiguration, PlannedRow]]:
    """The shared builds that rows need, each once as a row of its own, which has the values of the first of them."""
    found: dict[str, tuple[PlannedConfiguration, PlannedRow]] = {}
    for (configuration, planned), row in zip(pairs, rows, strict=True):
        for build in planned.shared:
            if build.name in row.wanted.shared:
                name = f"{configuration.platform.replace('-', '_')}.{build.stem}"
                cuda = planned.cuda if build.uses_cuda else None
                alone = replace(planned, name=name, cuda=cuda, outputs=(build,), shared=())
                found.setdefault(row.wanted.shared[build.name], (configuration, alone))
    return list(found.values())


def _after(rows: Sequence[Row], shared: Sequence[Row]) -> list[Row]:
    """Rows that wait for their shared builds."""
    package_of = {identity: row.wanted.packages for row in shared for identity in row.wanted.identities.values()}
    found = [[package_of[each] for each in row.wanted.shared.values() if each in package_of] for row in rows]
    return [
        replace(row, wanted=replace(row.wanted, after=row.wanted.after.union(*packages)))
        for row, packages in zip(rows, found, strict=True)
    ]


def _anew(shared: Row) -> Row:
    """A shared build that runs, whatever was run before."""
    outputs = shared.planned.outputs
    return replace(shared, wanted=replace(shared.wanted, done={}, missing=outputs, makes=outputs))


def _beside(shared: Row, earlier: Sequence[Row], rows: Sequence[Row]) -> Row:
    """A shared build that needs a host for all of its heirs, which keeps the earlier ones that they inherit from."""
    heirs = [row for row in rows if not row.wanted.after.isdisjoint(shared.wanted.packages)]
    needs = reduce(Needs.with_those_of, (row.wanted.needs for row in heirs), shared.wanted.needs)
    inherited = frozenset[PackageId]().union(*(row.wanted.after for row in heirs))
    beside = [row.wanted for row in earlier if not inherited.isdisjoint(row.wanted.packages)]
    needs = replace(needs, shared=frozenset[str]().union(*(each.makes_kept for each in beside)))
    after = shared.wanted.after.union(*(each.packages for each in beside))
    return replace(shared, wanted=replace(shared.wanted, needs=needs, after=after))


def _units(
    workspace: Workspace, possible: Sequence[PlannedConfiguration], bases: Mapping[str, ChannelsIdentity]
) -> dict[str, Unit]:
    names = {configuration.name for configuration in possible if any(row.shared for row in configuration.rows)}
    whole = [configuration for configuration in workspace.plan.configurations if configuration.name in names]
    units: dict[str, Unit] = {}
    for configuration in workspace.plan.complete(whole) if whole else ():
        base = bases[configuration.name]
        for build, outputs in ((build, row.outputs) for row in configuration.rows for build in row.shared):
            own = {identity_on(base, output) for output in outputs if build.name in output.staging}
            identity = identity_on(base, build)
            heirs = units[identity].heirs | own if identity in units else frozenset(own)
            units[identity] = Unit(build.name, inputs_on(base, build), heirs)
    return units


def _changed(row: Row, history: History, bases: Mapping[str, ChannelsIdentity]) -> tuple[str, ...]:
    """What has changed since the last builds of a row's missing outputs; empty without any."""
    changed: set[str] = set()
    for output in row.wanted.missing:
        inputs = inputs_on(bases[row.configuration], output)
        for record in history.of_row.get((row.name, output.name), [])[-1:]:
            changed |= {part for part in PARTS if record.inputs.get(part) != inputs.get(part)}
    return tuple(text for part, text in PARTS.items() if part in changed)


def _rows(
    workspace: Workspace,
    pairs: Sequence[tuple[PlannedConfiguration, PlannedRow]],
    bases: Mapping[str, ChannelsIdentity],
    declared: Declared,
) -> tuple[list[Row], History]:
    """Rows with their configurations, before their times are known, and the history of earlier builds.

    Rows of equal needs share one value of them.

    Args:
        bases: configuration → the identity of its channels.
    """
    done: list[Mapping[str, BuildRecord]] = [{} for _ in pairs]
    history = History({}, {})
    if workspace.artifacts.ledger.is_file():
        with Ledger(workspace.artifacts.ledger) as ledger:
            done = [_done(ledger, row, bases[configuration.name]) for configuration, row in pairs]
            missing = {
                (row.name, output.name): None if output.is_shared and not output.uses_cuda else bool(row.cuda)
                for (_, row), built in zip(pairs, done, strict=True)
                for output in row.outputs
                if output.name not in built
            }
            history = History.of(ledger, missing)
    rows: list[Row] = []
    shared: dict[Needs, Needs] = {}
    for (configuration, row), built in zip(pairs, done, strict=True):
        remembered = history.memory(row.name, [output.name for output in row.outputs if output.name not in built])
        needs = needs_of(declared, remembered, _engine_needs(workspace, configuration, row))
        if row.shared and not workspace.engines.engine(configuration).keeps_shared:
            row = replace(row, shared=())
        rows.append(_row(configuration.name, row, bases[configuration.name], built, shared.setdefault(needs, needs)))
    return rows, history


def _done(ledger: Ledger, row: PlannedRow, base: ChannelsIdentity) -> dict[str, BuildRecord]:
    """The records of a row's finished outputs, by name."""
    records = {output.name: ledger.done(identity_on(base, output)) for output in row.outputs}
    return {name: record for name, record in records.items() if record is not None}


def _engine_needs(workspace: Workspace, configuration: PlannedConfiguration, row: PlannedRow) -> Needs:
    """What the engine of a row asks of a host."""
    engine = workspace.engines.engine(configuration)
    runs_image = engine.name == "container" and configuration.platform.startswith("linux-")
    named = None if workspace.engines.for_hosts else workspace.machine.get("DOCKER_IMAGE")
    image = named or row.values.get("docker_image") if runs_image else None
    return Needs(platform=configuration.platform, engine=engine.name, image=image or None)


def _row(
    configuration: str, planned: PlannedRow, base: ChannelsIdentity, done: Mapping[str, BuildRecord], needs: Needs
) -> Row:
    missing = tuple(output for output in planned.outputs if output.name not in done)
    inherited = {name for output in missing for name in output.staging}
    wanted = Wanted(
        identities={output.name: identity_on(base, output) for output in planned.outputs},
        inputs={output.name: inputs_on(base, output) for output in planned.outputs},
        done=done,
        missing=missing,
        makes=missing,
        needs=needs,
        seconds_source="history",
        shared={build.name: identity_on(base, build) for build in planned.shared if build.name in inherited},
    )
    return Row(configuration, planned, wanted)


def _each_once(todo: Sequence[Row], history: History, declared: Declared) -> Iterator[Row]:
    """Rows in their order, each with the outputs that it makes itself and their expected duration."""
    packages: set[PackageId] = set()
    for row in todo:
        makes = tuple(output for output in row.wanted.missing if output.package_id not in packages)
        packages |= row.wanted.packages
        yield _timed(replace(row, wanted=replace(row.wanted, makes=makes)), history, declared)


def _timed(row: Row, history: History, declared: Declared) -> Row:
    seconds, source = expected_seconds(history, declared, row.name, [output.name for output in row.wanted.makes])
    return replace(row, wanted=replace(row.wanted, seconds=seconds, seconds_source=source))


def channels_for(workspace: Workspace, chosen: Sequence[PlannedConfiguration]) -> dict[str, Channels]:
    """The channels of some configurations that can be built here, by name; each channel is queried once."""
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

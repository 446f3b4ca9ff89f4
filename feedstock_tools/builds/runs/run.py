"""The run of `build`: from chosen configurations to packages in a channel."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from feedstock_tools.builds.engines.contract import Engine
from feedstock_tools.builds.ledger import BuildRecord, Ledger, this_machine, this_process
from feedstock_tools.builds.plan.agenda import plan_works
from feedstock_tools.builds.plan.capacity import Capacity, Limits
from feedstock_tools.builds.plan.needs import Work, in_order
from feedstock_tools.builds.plan.refusals import in_words, refuse_unbuildable
from feedstock_tools.builds.plan.workspace import Setting
from feedstock_tools.builds.runs.compilers import provide_compilers
from feedstock_tools.builds.runs.inputs import Inputs
from feedstock_tools.builds.runs.observer import Console
from feedstock_tools.builds.runs.scheduler import Scheduler
from feedstock_tools.builds.stand_in.choice import DEFAULT_CHANNELS, ChannelChoice, choose_channels
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput, PlannedRow

__all__ = ["EngineFor", "Outcome", "choices_for", "choose_for", "run_builds"]

#: Gives the engine that builds a configuration.
EngineFor = Callable[[PlannedConfiguration], Engine]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One output of one row after a run: its plan, its record (None: it was not reached), and whether it is new."""

    configuration: str
    row: PlannedRow
    output: PlannedOutput
    record: BuildRecord | None
    new: bool


def run_builds(
    setting: Setting,
    engine: EngineFor,
    chosen: Sequence[PlannedConfiguration],
    console: Console,
    capacity: Capacity,
    limits: Limits,
    optional: Collection[str] = (),
) -> tuple[tuple[Outcome, ...], dict[str, str]]:
    """Build what is not done of the chosen configurations, several rows at once where the limits allow it.

    All of them have an engine on this machine: `refuse_unbuildable` sees to that.

    Args:
        optional: the names of configurations that are left out where their channel has no compiler here.

    Returns:
        What has become of each output, and the configurations that were left out: name → reason.

    An output that fails ends its row, and with it the rows that share the output; the others are built all the same,
    unless the limits say to end with the first failure. What was not reached has no record.

    Raises:
        InputError: channels were given to an engine that takes none, or a configuration that is not optional (or all of
            them) cannot be built on this machine.
        WorkError: a channel cannot be reached, or the artifacts folder or the ledger cannot be used.
    """
    inputs = Inputs(setting)
    choices = choices_for(setting, chosen, engine, console)
    with Ledger(setting.artifacts.ledger) as ledger:
        works = plan_works(setting, ledger, chosen, choices, capacity, limits.jobs)
        unfinished = {work.configuration.name: work.configuration for work in works if work.missing}
        reasons = provide_compilers(setting, tuple(unfinished.values()), choices, console.say)
        named = [each for each in chosen if len(reasons) == len(chosen) or each.name not in optional]
        refuse_unbuildable(named, lambda each: reasons.get(each.name))
        for line in in_words(reasons):
            console.say(f"Left out: {line}")
        works = [work for work in works if work.configuration.name not in reasons]
        todo = in_order([work for work in works if work.missing])
        found = _build(setting, inputs, engine, ledger, todo, choices, console, capacity, limits) if todo else {}
    return tuple(outcome for work in works for outcome in _outcomes(work, found.get(work.name, {}))), reasons


def _build(
    setting: Setting,
    inputs: Inputs,
    engine: EngineFor,
    ledger: Ledger,
    todo: Sequence[Work],
    choices: Mapping[str, ChannelChoice],
    console: Console,
    capacity: Capacity,
    limits: Limits,
) -> dict[str, dict[str, tuple[BuildRecord, bool]]]:
    """For each row that was reached the record of each output by name, and whether it is new."""
    from feedstock_tools.builds.runs.site import make_ground
    from feedstock_tools.feedstock.provenance import commit_of

    _refuse_full_disk(setting, todo)
    if " " in str(setting.artifacts.root):
        console.say(
            f"The path {setting.artifacts.root} has a space in it, which many build scripts cannot take; "
            "--output-dir gives another."
        )
    commit = commit_of(setting.feedstock.folder)
    grounds = {
        work.configuration.name: make_ground(
            setting,
            engine(work.configuration),
            work.configuration,
            choices[work.configuration.name],
            work.base,
            ledger,
            inputs,
            commit,
        )
        for work in {work.configuration.name: work for work in todo}.values()
    }
    scheduler = Scheduler(
        todo,
        lambda work: grounds[work.configuration.name],
        capacity,
        limits,
        console,
        lambda: ledger.give_sign(this_machine(), this_process()),
    )
    return {
        name: {
            **{record.output: (record, False) for record in built.before},
            **{record.output: (record, True) for record in built.now},
        }
        for name, built in scheduler.run().items()
    }


def _refuse_full_disk(setting: Setting, todo: Sequence[Work]) -> None:
    setting.artifacts.root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(setting.artifacts.root).free
    for work in todo:
        if work.needs.disk is not None and work.needs.disk > free:
            raise WorkError(
                f"{work.name} needs {work.needs.disk >> 20} MiB of disk, and {free >> 20} MiB are free",
                path=setting.artifacts.root,
                hint="Make room, or give a folder on another disk with --output-dir.",
            )


def _outcomes(work: Work, found: Mapping[str, tuple[BuildRecord, bool]]) -> Iterator[Outcome]:
    for output in work.row.outputs:
        record, new = found.get(output.name, (work.done.get(output.name), False))
        yield Outcome(work.configuration.name, work.row, output, record, new)


def choices_for(
    setting: Setting, chosen: Sequence[PlannedConfiguration], engine: EngineFor, console: Console
) -> dict[str, ChannelChoice]:
    """The channels of some configurations, by their names; what is out of the ordinary is said once.

    Raises:
        InputError: channels were given to an engine that takes none.
        WorkError: a channel cannot be reached.
    """
    known: dict[tuple[tuple[str, ...], bool], ChannelChoice] = {}
    choices = {}
    for each in chosen:
        key = each.channels, engine(each).own_channels
        if key not in known:
            known[key] = choose_for(setting, each, engine(each), console)
        choices[each.name] = known[key]
    return choices


def choose_for(
    setting: Setting, configuration: PlannedConfiguration, engine: Engine, console: Console
) -> ChannelChoice:
    """The channels for a configuration; what is out of the ordinary is said.

    An engine with channels of its own, as the feedstock's scripts have them, takes those of the configuration. Whether
    they can be reached from where it builds is not known here.

    Raises:
        InputError: channels were given to such an engine.
        WorkError: a channel cannot be reached.
    """
    if engine.own_channels:
        if setting.channels:
            hint = "Leave out --channel; the configuration's channel_sources says where they fetch from."
            raise InputError("the feedstock's own scripts cannot be given channels", hint=hint)
        return ChannelChoice(configuration.channels or DEFAULT_CHANNELS)
    choice = choose_channels(setting.channels, configuration.channels, setting.artifacts)
    if choice.why_stand_in:
        console.say(f"Building on the STAND-IN channel: {choice.why_stand_in}.")
        console.say(
            "Its packages have the metadata of real ones and no real contents; what is built on it is marked so."
        )
    return choice

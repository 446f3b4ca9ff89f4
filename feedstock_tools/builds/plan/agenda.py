"""From chosen configurations to the work of a run: what is done, what is missing, what that needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from heapq import heapreplace

from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.plan.capacity import Capacity
from feedstock_tools.builds.plan.history import History
from feedstock_tools.builds.plan.needs import Declared, Work, expected_seconds, in_order, needs_of
from feedstock_tools.builds.plan.workspace import Setting
from feedstock_tools.builds.stand_in.choice import ChannelChoice, channels_identity, identity_on
from feedstock_tools.feedstock.planned import PlannedConfiguration

__all__ = ["Agenda", "agenda", "plan_works"]


@dataclass(frozen=True, slots=True)
class Agenda:
    """What a run over some configurations would do.

    Attributes:
        todo: the rows to build, in their order; `done` those that are up to date.
        refused: the configurations that cannot be built here, by name, with the reason.
        jobs: how many rows would be built at once, within `capacity`.
    """

    todo: tuple[Work, ...]
    done: tuple[Work, ...]
    refused: Mapping[str, str]
    capacity: Capacity
    jobs: int

    @property
    def unknown(self) -> int:
        """How many rows nobody knows the time of."""
        return sum(work.seconds is None for work in self.todo)

    @property
    def seconds(self) -> float | None:
        """How long the run takes by the times that are known; None where none is.

        Rows that wait for a package of another, or for memory, make it longer than this.
        """
        known = [work.seconds for work in self.todo if work.seconds is not None]
        if not known:
            return None
        ends = [0.0] * min(self.jobs, len(known))
        for seconds in known:
            heapreplace(ends, ends[0] + seconds)
        return max(ends)


def agenda(
    setting: Setting,
    chosen: Sequence[PlannedConfiguration],
    choices: Mapping[str, ChannelChoice],
    refused: Mapping[str, str],
    capacity: Capacity,
    jobs: int,
) -> Agenda:
    """What a run would do.

    Args:
        choices: the channels of each configuration that can be built on this machine.
        refused: those that cannot, by name, with the reason.

    Raises:
        WorkError: the ledger cannot be read.
    """
    possible = [each for each in chosen if each.name not in refused]
    ledger = Ledger(setting.artifacts.ledger) if setting.artifacts.ledger.is_file() else None
    with ledger or nullcontext():
        works = plan_works(setting, ledger, possible, choices, capacity, jobs)
        history = History.of(ledger.builds() if ledger else ())
    todo = in_order([work for work in works if work.missing])
    return Agenda(
        todo=tuple(_each_once(todo, history, Declared.of(setting.needs))),
        done=tuple(work for work in works if not work.missing),
        refused=refused,
        capacity=capacity,
        jobs=jobs,
    )


def _each_once(todo: Sequence[Work], history: History, declared: Declared) -> Iterator[Work]:
    """The rows without what an earlier one makes for them."""
    made: set[str] = set()
    for work in todo:
        missing = tuple(each for each in work.missing if f"{each.subdir}/{each.stem}" not in made)
        made |= {f"{each.subdir}/{each.stem}" for each in missing}
        seconds, source = expected_seconds(history, declared, work.row, missing)
        yield replace(work, missing=missing, seconds=seconds, seconds_source=source)


def plan_works(
    setting: Setting,
    ledger: Ledger | None,
    chosen: Sequence[PlannedConfiguration],
    choices: Mapping[str, ChannelChoice],
    capacity: Capacity,
    jobs: int,
) -> list[Work]:
    """Every row of some configurations, in their order, with what the ledger says of it.

    Args:
        ledger: None where nothing was built yet.
        choices: the channels of each configuration.
        jobs: how many rows may be built at once.
    """
    history = History.of(ledger.builds() if ledger else ())
    declared = Declared.of(setting.needs)
    works = []
    for configuration in chosen:
        base = channels_identity(setting.machine, configuration.platform, choices[configuration.name])
        for row in configuration.rows:
            found = {each.name: ledger.done(identity_on(base, each)) if ledger else None for each in row.outputs}
            missing = tuple(output for output in row.outputs if found[output.name] is None)
            names = [output.name for output in missing]
            seconds, source = expected_seconds(history, declared, row, missing)
            works.append(
                Work(
                    configuration=configuration,
                    row=row,
                    base=base,
                    done={name: record for name, record in found.items() if record is not None},
                    missing=missing,
                    needs=needs_of(declared, capacity, jobs, history.memory(row.name, names)),
                    seconds=seconds,
                    seconds_source=source,
                )
            )
    return works

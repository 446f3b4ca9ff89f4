"""The matrix of a feedstock: every configuration with what has become of it, gathered from the plan and the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from feedstock_tools.builds.ledger import BuildRecord, Ledger, now, process_lives
from feedstock_tools.builds.matrix.states import ConfigurationState, Surroundings, states
from feedstock_tools.builds.plan.identity import candidates_in
from feedstock_tools.builds.plan.workspace import Setting
from feedstock_tools.feedstock.planned import PlannedConfiguration

__all__ = ["Matrix", "open_matrix", "read_matrix"]


@dataclass(frozen=True, slots=True)
class Matrix:
    """What a feedstock would build and what has become of it.

    Attributes:
        feedstock: its name.
        artifacts: the folder of the ledger; paths of logs and packages in records are below it.
        at: when the ledger was read, in its form of time.
        configurations: with the state of each output.
        builds: every build of these configurations in the ledger, the oldest first; whatever became of them.
    """

    feedstock: str
    artifacts: Path
    at: str
    configurations: tuple[ConfigurationState, ...]
    builds: tuple[BuildRecord, ...]


def open_matrix(
    names: Sequence[str],
    feedstock: Path | None,
    output: Path | None,
    channels: Sequence[str],
    here: Path,
    machine: Mapping[str, str],
) -> tuple[Setting, Matrix]:
    """Find a feedstock, plan it, and read the matrix of the configurations that names mean (of all without a name).

    Raises:
        InputError: there is no feedstock, its files cannot be used, or a name means nothing.
        WorkError: the artifacts folder or the ledger cannot be used.
    """
    from feedstock_tools.builds.plan.session import Session

    session = Session.open(feedstock, output, channels, here, machine, as_json=True)
    return session.setting, read_matrix(session.setting, session.complete(names), session.engines.why_not)


def read_matrix(
    setting: Setting,
    configurations: Sequence[PlannedConfiguration],
    why_not: Callable[[PlannedConfiguration], str | None],
) -> Matrix:
    """The matrix of some configurations.

    Args:
        configurations: with their outputs.
        why_not: the reason why a configuration cannot be built on this machine; None where it can.

    Raises:
        WorkError: the ledger cannot be read.
    """

    def matrix(builds: tuple[BuildRecord, ...], intact: Callable[[BuildRecord], bool]) -> Matrix:
        lives = cache(process_lives)
        around = Surroundings(
            candidates=candidates_in(setting),
            lives=lambda record: lives(record.process, record.machine),
            intact=intact,
            why_not=why_not,
            at=now(),
        )
        names = {each.name for each in configurations}
        return Matrix(
            feedstock=setting.feedstock.folder.name.removesuffix("-feedstock"),
            artifacts=setting.artifacts.root,
            at=around.at,
            configurations=states(configurations, builds, around),
            builds=tuple(record for record in builds if record.configuration in names),
        )

    if not setting.artifacts.ledger.is_file():
        return matrix((), lambda record: False)
    with Ledger(setting.artifacts.ledger) as ledger:
        return matrix(ledger.builds(), ledger.holds)

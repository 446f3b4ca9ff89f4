"""From chosen configurations to the work of a run: what is done, what is missing, what that needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from feedstock_tools.build.channels import ChannelChoice, channels_identity, identity_on
from feedstock_tools.build.history import History
from feedstock_tools.build.ledger import Ledger
from feedstock_tools.build.planned import PlannedConfiguration
from feedstock_tools.build.resources import Capacity
from feedstock_tools.build.setting import Setting
from feedstock_tools.build.work import Declared, Work, expected_seconds, needs_of

__all__ = ["plan_works"]


def plan_works(
    setting: Setting,
    ledger: Ledger,
    chosen: Sequence[PlannedConfiguration],
    choices: Mapping[tuple[str, ...], ChannelChoice],
    capacity: Capacity,
    jobs: int,
) -> list[Work]:
    """Every row of some configurations, in their order, with what the ledger says of it.

    Args:
        choices: the channels that each configuration's `channels` come to.
        jobs: how many rows may be built at once.
    """
    history = History.of(ledger.builds())
    declared = Declared.of(setting.needs)
    works = []
    for configuration in chosen:
        base = channels_identity(setting.machine, configuration.platform, choices[configuration.channels])
        for row in configuration.rows:
            found = {output.name: ledger.done(identity_on(base, output)) for output in row.outputs}
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

"""Made-up rows of a run, for tests of their order and of when they begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.hosts import Capacity
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.row import Row, Wanted
from feedstock_tools.feedstock.planned import SHARED, PlannedOutput, PlannedRow


def made_up_row(
    name: str,
    *outputs: str,
    seconds: float | Mapping[str, float] | None = None,
    needs: Needs | None = None,
    platform: str = "linux-64",
) -> Row:
    """A row that lacks some outputs.

    Args:
        seconds: the time of the row, divided equally among its outputs; or the time of each output.
    """
    made = tuple(PlannedOutput(each, "1", "0", 0, "linux-64", f"identity of {each}") for each in outputs)
    if seconds is None:
        times: Mapping[str, float] = {}
    elif isinstance(seconds, Mapping):
        times = seconds
    else:
        times = {each: seconds / len(outputs) for each in outputs}
    wanted = Wanted(
        identities={each: f"identity of {each} on a channel" for each in outputs},
        inputs={each: {"recipe": "r", "channels": "c"} for each in outputs},
        done={},
        missing=made,
        makes=made,
        needs=replace(needs or Needs(1, 1 << 30), platform=platform),
        seconds=times,
    )
    return Row(name, PlannedRow(name, {"python": "3.12"}, "3.12", "11.8", made), wanted)


def made_up_shared(name: str, *heirs: Row) -> tuple[Row, ...]:
    """A shared build, and rows that wait for it."""
    row = made_up_row(name, name)
    build, identity = replace(row.planned.outputs[0], subdir=SHARED), f"{name}, built once"
    wanted = replace(row.wanted, identities={name: identity}, missing=(build,), makes=(build,))
    shared = replace(row, planned=replace(row.planned, outputs=(build,)), wanted=wanted)
    return shared, *(
        replace(
            heir,
            wanted=replace(
                heir.wanted,
                shared={**heir.wanted.shared, name: identity},
                after=heir.wanted.after | {build.package_id},
            ),
        )
        for heir in heirs
    )


def made_up_agenda(*todo: Row, kept: tuple[Row, ...] = ()) -> Agenda:
    """The agenda of some rows, in their order."""
    names = tuple(row.name for row in todo if not row.is_shared)
    inputs: Any = None
    return Agenda(todo, (), names, {}, {}, inputs, Capacity((0,), 1 << 30), 1, kept=kept)

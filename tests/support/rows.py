"""Made-up rows of a run, for tests of their order and of when they begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

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
    build = replace(row.planned.outputs[0], subdir=SHARED)
    wanted = replace(row.wanted, missing=(build,), makes=(build,))
    shared = replace(row, planned=replace(row.planned, outputs=(build,)), wanted=wanted)
    after = frozenset({build.package_id})
    return shared, *(replace(heir, wanted=replace(heir.wanted, after=after)) for heir in heirs)

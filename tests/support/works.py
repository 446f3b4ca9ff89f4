"""Made-up rows of a run, for tests of their order and of when they begin."""

from __future__ import annotations

from collections.abc import Mapping

from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.row import Work
from feedstock_tools.feedstock.planned import PlannedOutput, PlannedRow


def made_up_work(
    name: str, *outputs: str, seconds: float | Mapping[str, float] | None = None, needs: Needs | None = None
) -> Work:
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
    return Work(
        configuration=name,
        platform="linux-64",
        row=PlannedRow(name, {"python": "3.12"}, "3.12", "11.8", made),
        identities={each: f"identity of {each} on a channel" for each in outputs},
        inputs={each: {"recipe": "r", "channels": "c"} for each in outputs},
        done={},
        missing=made,
        makes=made,
        needs=needs or Needs(1, 1 << 30),
        seconds=times,
    )

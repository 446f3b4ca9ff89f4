"""Staging outputs: a script that should run once and whose files several outputs of a row inherit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from feedstock_tools.builds.engines.contract import Engine, Log
from feedstock_tools.feedstock.planned import PlannedOutput


def repeated_staging(engine: Engine, outputs: Sequence[PlannedOutput]) -> Iterator[Log]:
    """A warning for each staging output that an engine will build more than once for these outputs of a row.

    Such a script may run for hours, so the run warns before the first of them begins.
    """
    if engine.shares_staging:
        return
    for staging in dict.fromkeys(name for output in outputs for name in output.staging):
        heirs = [output.name for output in outputs if staging in output.staging]
        if len(heirs) > 1:
            yield Log(
                f"WARNING: the script of the staging output {staging} will run {len(heirs)} times, once for each of "
                f"{', '.join(heirs)}: {engine.name} {engine.version} does not share its files between packages.",
                "feedstock-tools",
                "warn",
            )

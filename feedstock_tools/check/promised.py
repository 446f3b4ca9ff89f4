"""A package that is not built yet, as a record of repodata with its run exports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from feedstock_tools.channel.many_solves import PROMISED
from feedstock_tools.channel.metadata import Record, RunExports
from feedstock_tools.check.rehearsal.demands import Demands
from feedstock_tools.platforms import Platform


@dataclass(frozen=True, slots=True)
class Promised:
    """The record and the run exports of an output that is not built yet."""

    record: Record
    run_exports: RunExports

    @property
    def spec(self) -> str:
        """The requirement that only this build satisfies."""
        return f"{self.record.name} =={self.record.version} {self.record.build}"


def promise(
    demands: Demands, platform: Platform, depends: Iterable[str], constrains: Iterable[str], exports: RunExports
) -> Promised:
    """The package that an output will be, with requirements and run exports whose pins are applied."""
    subdir = "noarch" if demands.noarch else platform.subdir
    file_name = f"{demands.name}-{demands.version}-{demands.build_string}.conda"
    record = Record(
        name=demands.name.lower(),
        version=demands.version,
        build=demands.build_string,
        build_number=demands.build_number,
        subdir=subdir,
        depends=tuple(dict.fromkeys(depends)),
        constrains=tuple(dict.fromkeys(constrains)),
        track_features=demands.track_features,
        noarch=demands.noarch,
        timestamp=0,
        sha256="",
        size=0,
        file_name=file_name,
        channel=PROMISED,
        url=f"{PROMISED}/{subdir}/{file_name}",
    )
    return Promised(record, exports)

"""The kinds of job of a fleet, with all that the inventory and the site's `jobqueue.yaml` say of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.builds.fleet.certificates import write_private
from feedstock_tools.builds.fleet.folder import FleetFolder, add_host
from feedstock_tools.builds.fleet.host.settings import EMBEDDED, subdirs_of_builds
from feedstock_tools.builds.plan.hosts import Capacity, Host
from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_text

#: What a worker needs to start and to end its builds before its allocation ends, in seconds.
_MARGIN = 60.0
#: A job whose scheduler has gone ends after this many times its `idle`.
_ORPHANED = 4
#: Every node has it; below it each job has a folder of its own.
ROOT = "/tmp"  # noqa: S108
#: Kind of cluster → dask-jobqueue's name for it, and the command that submits its jobs.
SYSTEMS = {
    "slurm": ("SLURM", "sbatch"),
    "pbs": ("PBS", "qsub"),
    "lsf": ("LSF", "bsub"),
    "sge": ("SGE", "qsub"),
    "htcondor": ("HTCondor", "condor_submit"),
}
#: In the folder of the hub: only a hub on a machine of the cluster has it.
_KINDS = "jobs.json"


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job.

    Attributes:
        system: the cluster's, such as `slurm`.
        least, most: how many there may be.
        cores: of a job; `memory` in bytes, `seconds` its time limit (None: the queue's), `gpus` their number.
        rows: the most rows that a job builds in parallel.
        labels: see `Host`.
        idle: a job ends when it has had nothing to do for so long, in seconds.
        options: of dask-jobqueue's cluster.
        folder: what its jobs get, as the nodes see it; `fleet` is the name of the fleet.
    """

    name: str
    system: str
    least: int
    most: int
    cores: int
    memory: int
    seconds: float | None
    gpus: int
    rows: int
    labels: tuple[str, ...]
    idle: float
    options: Mapping[str, Any]
    folder: str = ""
    fleet: str = ""

    @property
    def submits(self) -> str:
        """The command that submits it."""
        return SYSTEMS[self.system][1]

    @property
    def host(self) -> Host:
        """What a job will be."""
        return Host(
            name=self.name,
            capacity=Capacity(tuple(range(self.cores)), self.memory),
            jobs=self.rows,
            platforms=subdirs_of_builds(),
            gpus=self.gpus,
            engines=frozenset({EMBEDDED}),
            images=frozenset(),
            labels=frozenset(self.labels),
            left=None if self.seconds is None else max(0.0, self.seconds - _MARGIN),
        )

    @property
    def worker_settings(self) -> dict[str, Any]:
        """The settings of the worker of a job; see `read_settings`."""
        return {
            "root": ROOT,
            "jobs": self.rows,
            "cores": self.cores,
            "memory": self.memory,
            "gpus": self.gpus,
            "labels": list(self.labels),
            "idle": self.idle * _ORPHANED,
            "allocation": self.host.left,
            "temporary": True,
        }


def write_kinds(fleet: FleetFolder, kinds: Iterable[JobKind]) -> None:
    """Keep the kinds of job of a fleet for its hub, and make what their jobs get."""
    given = []
    for kind in kinds:
        folder = add_host(fleet, kind.name, kind.worker_settings, fleet.path / "jobs" / kind.name)
        given.append(asdict(kind) | {"folder": str(folder), "fleet": fleet.name})
    write_private(fleet.for_hub / _KINDS, json.dumps(given, indent=1).encode())


def job_kinds(hub: Path) -> tuple[JobKind, ...]:
    """The kinds of job of a fleet, by the folder of its hub; empty for one without a cluster.

    Raises:
        InputError: the file is damaged.
    """
    path = hub / _KINDS
    if not path.is_file():
        return ()
    try:
        content = json.loads(read_text(path, within=hub))
        return tuple(JobKind(**{**each, "labels": tuple(each["labels"])}) for each in content)
    except (ValueError, KeyError, TypeError) as error:
        hint = "`feedstock-tools fleet cluster up` writes it."
        raise InputError("the file is damaged", path=path, hint=hint) from error

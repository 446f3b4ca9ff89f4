"""The kinds of job that an inventory allows: variable `fleet_cluster` of the group `all`; and what a site says."""

from __future__ import annotations

import math
import re
import shlex
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from feedstock_tools.builds.fleet.cluster.kinds import ROOT, JobKind
from feedstock_tools.builds.fleet.folder import fleet_name
from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_text
from feedstock_tools.wording import size_of, time_of
from feedstock_tools.yaml_reading.checking import mistakes_of, readable_by
from feedstock_tools.yaml_reading.nodes import parse_document

_MOST = 10_000
#: The disk of a job of HTCondor, if its site says nothing.
_DISK = "20 GB"
_WORKER = "feedstock_tools.builds.fleet.cluster.job"
#: Slurm's forms of a time limit: sbatch(1), option --time.
_CLOCK = re.compile(
    r"(?:(?P<days>\d{1,4})-)?(?P<first>\d{1,6})(?::(?P<second>\d{1,6}))?(?::(?P<third>\d{1,6}))?", re.ASCII
)


def seconds_of_limit(text: str) -> float:
    """The seconds of a time limit in one of Slurm's forms, or as `time_of` reads it with a unit.

    Raises:
        InputError: it is neither.

    >>> [seconds_of_limit(text) for text in ("90", "08:00:00", "1-12", "30:00", "8 h")]
    [5400.0, 28800.0, 129600.0, 1800.0, 28800.0]
    """
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        if text.strip()[-1:].isalpha():
            return time_of(text)
        hint = "Write it as 8 h, 08:00:00 or 1-12:00:00; a number alone is minutes."
        raise InputError(f"'{text[:40]}' is not a time limit", hint=hint)
    parts = [int(part) for part in match.group("first", "second", "third") if part is not None]
    if match["days"] is not None:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
    elif len(parts) == 3:
        hours, minutes, seconds = parts
    else:
        hours, minutes, seconds = 0, *(*parts, 0)[:2]
    total = float(((int(match["days"] or 0) * 24 + hours) * 60 + minutes) * 60 + seconds)
    if total <= 0:
        raise InputError(f"'{text[:40]}' is not a time limit: it is zero", hint="Write it as 8 h or 08:00:00.")
    return total


_Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.,:+-]{0,99}$")]
_KindName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,19}$")]
_Line = Annotated[str, StringConstraints(pattern=r"^[^\r\n]+$")]
_Place = Annotated[str, StringConstraints(pattern=r"^/[\w./+@-]*$")]
#: A folder of a compute node: its own variables may stand in it.
_NodePlace = Annotated[str, StringConstraints(pattern=r"^(/|\$[A-Z_]+(/|$))([\w./+@-]|\$[A-Z_]+)*$")]


class JobSettings(BaseModel):
    """A kind of job."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    system: Literal["slurm", "pbs", "lsf", "sge", "htcondor"] = Field(default="slurm", description="The cluster's.")
    min: int = Field(default=0, ge=0, lt=_MOST, description="The number of jobs that are always there.")
    max: int = Field(default=1, ge=1, lt=_MOST, description="The most jobs at a time.")
    cores: int | None = Field(default=None, ge=1, lt=100_000, description="The cores of a job.")
    memory: Annotated[str, readable_by(size_of)] | None = Field(default=None, description="Its memory: 64 GiB.")
    time: Annotated[str, readable_by(seconds_of_limit)] | None = Field(default=None, description="Its time limit: 8 h.")
    partition: _Word | None = Field(default=None, description="Its partition or queue.")
    account: _Word | None = Field(default=None, description="The account that pays for it.")
    gpus: int = Field(default=0, ge=0, lt=1000, description="The GPUs of a job.")
    gres: _Word | None = Field(default=None, description="How it asks for them; default: gpu:N.")
    directives: tuple[_Line, ...] = Field(
        default=(), description="More options for the cluster, such as --constraint=avx512."
    )
    jobs: int = Field(default=1, ge=1, lt=1000, description="The most rows that a job builds in parallel.")
    labels: tuple[_Word, ...] = Field(default=(), description="What else its nodes have, as `needs: labels` asks.")
    root: _NodePlace | None = Field(default=None, description="The folder of a node for builds: /scratch/me.")
    python: _Place | None = Field(default=None, description="A Python with feedstock-tools on the nodes.")
    idle: Annotated[str, readable_by(time_of)] = Field(
        default="5 min", description="A job ends when it has had nothing to do for so long."
    )


class _Variables(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    fleet_hub: Annotated[str, StringConstraints(pattern=r"^[^\s:]+:\d{1,5}$|^\[[0-9a-fA-F:]+\]:\d{1,5}$")] | None = None
    fleet_cluster: dict[_KindName, JobSettings] = Field(default_factory=dict)


class _Group(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    vars: _Variables = Field(default_factory=_Variables)


class _Inventory(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    all: _Group = Field(default_factory=_Group)


class ClusterSettings(BaseModel):
    """The name of a fleet, its hub if it is given, and its kinds of job by name."""

    model_config = ConfigDict(frozen=True)

    name: str
    hub: str | None
    kinds: dict[str, JobSettings]


def read_cluster(path: Path) -> ClusterSettings:
    """The kinds of job in an inventory.

    Raises:
        InputError: it has none, or mistakes, each with line and column.
    """
    document = parse_document(read_text(path, within=None), path)
    try:
        variables = _Inventory.model_validate(document.content).all.vars
    except ValidationError as error:
        mistakes = mistakes_of(document, error, _Inventory, "an inventory")
        raise InputError.of(list(dict.fromkeys(mistakes))) from None
    if not variables.fleet_cluster:
        hint = "Add all: vars: fleet_cluster: with a kind of job (docs/fleet.md)."
        raise InputError("the inventory has no jobs of a cluster", path=path, hint=hint)
    for name, kind in variables.fleet_cluster.items():
        if kind.min > kind.max:
            place = document.place(("all", "vars", "fleet_cluster", name, "min"))
            message = f"the least number of jobs, {kind.min}, is above the most, {kind.max}"
            raise InputError(message, path=path, line=place.line, column=place.column)
    return ClusterSettings(name=fleet_name(path), hub=variables.fleet_hub, kinds=variables.fleet_cluster)


def kind_of(name: str, settings: JobSettings) -> JobKind:
    """A kind of job of this site: what the inventory does not say comes from the site's `jobqueue.yaml`.

    Raises:
        InputError: neither says how many cores and how much memory a job has.
    """
    with warnings.catch_warnings():  # of old names in a site's file
        warnings.simplefilter("ignore")
        import dask
        import dask_jobqueue  # noqa: F401 - it reads the site's file
        from dask.utils import parse_bytes

        site: Mapping[str, Any] = dask.config.get(f"jobqueue.{settings.system}")
    cores = settings.cores or site.get("cores")
    memory = size_of(settings.memory) if settings.memory else parse_bytes(site.get("memory") or 0)
    if not cores or not memory:
        missing = " and ".join(key for key, known in (("cores", cores), ("memory", memory)) if not known)
        hint = "Say it in the inventory or in the site's jobqueue.yaml."
        raise InputError(f"the jobs {name} have no {missing}", hint=hint)
    limit = settings.time or site.get("walltime")
    seconds = seconds_of_limit(str(limit)) if limit and settings.system != "htcondor" else None
    root = settings.root or site.get("local-directory") or ROOT
    return JobKind(
        name=name,
        system=settings.system,
        least=settings.min,
        most=settings.max,
        cores=int(cores),
        memory=memory,
        seconds=seconds,
        gpus=settings.gpus,
        rows=settings.jobs,
        labels=settings.labels,
        idle=time_of(settings.idle),
        options={
            **_options(settings, site, memory, seconds),
            "python": f"exec {shlex.quote(settings.python or site.get('python') or sys.executable)} -P",
            "worker_command": _WORKER,
            "worker_extra_args": ["--root", f'"{root}"'],
            "local_directory": ROOT,
        },
    )


def _options(settings: JobSettings, site: Mapping[str, Any], memory: int, seconds: float | None) -> dict[str, Any]:
    """The options for the system of the cluster, as dask-jobqueue names them there."""
    if settings.system == "htcondor":
        return {
            "disk": site.get("disk") or _DISK,
            "job_extra_directives": dict(each.split("=", 1) for each in settings.directives),
        }
    hours, minutes = divmod(math.ceil((seconds or 0) / 60), 60)
    gres = settings.gres or (f"gpu:{settings.gpus}" if settings.gpus else None)
    ours = [f"--gres={gres}"] if gres and settings.system == "slurm" else []
    asked = {
        "queue": settings.partition,
        "account" if settings.system in ("slurm", "pbs") else "project": settings.account,
        "walltime": (f"{hours:02}:{minutes:02}" + (":00" if settings.system != "lsf" else "")) if seconds else None,
        "job_extra_directives": [*(site.get("job-extra-directives") or []), *ours, *settings.directives],
        "job_mem": f"{math.ceil(memory / (1 << 20))}M" if settings.system == "slurm" else None,
    }
    return {key: value for key, value in asked.items() if value}

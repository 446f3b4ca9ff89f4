"""The script of a job, as dask-jobqueue writes it for this site: the one door to that library.

A site's `jobqueue.yaml` (in ~/.config/dask or /etc/dask) says what its jobs need: partition, account, time, directives,
what to load first. dask-jobqueue reads it and writes the head of the script. Its clusters, which start Dask's scheduler
and workers, are not used: those run pickled functions. The job starts the worker of a fleet's host instead.
"""

from __future__ import annotations

import math
import shlex
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.builds.fleet.cluster.settings import JobSettings, slurm_seconds
from feedstock_tools.builds.fleet.host.settings import EMBEDDED
from feedstock_tools.builds.plan.hosts import Capacity, Host
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform
from feedstock_tools.wording import size_of, time_of

#: What a worker needs to start and to end its builds before its allocation ends, in seconds.
_MARGIN = 60.0
_WORKER = "feedstock_tools.builds.fleet.worker"
_ROOT = "/tmp"  # noqa: S108 - every node has it; below it each job has a folder of its own
#: The variables of a job that its worker sees; sbatch's --export=PATH,... also runs the user's login scripts.
_PASSED_ON = ("HOME", "LOGNAME", "PATH", "TMPDIR", "USER", "CUDA_VISIBLE_DEVICES")


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job with all that the inventory and the site say of it.

    Attributes:
        least, most: the number of jobs while rows wait.
        cores: of a job; `memory` in bytes, `seconds` its time limit (None: the partition's), `gpus` their number.
        rows: the most rows that a job builds in parallel.
        labels: see `Host`.
        idle: a job ends when it has had nothing to do for so long, in seconds.
        head: the first lines of the job's script, with its directives and what the site runs first.
        python: on the nodes; `root` is a folder there, in which the shell replaces variables.
    """

    name: str
    least: int
    most: int
    cores: int
    memory: int
    seconds: float | None
    gpus: int
    rows: int
    labels: tuple[str, ...]
    idle: float
    head: str
    python: str
    root: str

    def host(self, name: str) -> Host:
        """What a job will be for `decide`."""
        left = None if self.seconds is None else max(0.0, self.seconds - _MARGIN)
        capacity = Capacity(tuple(range(self.cores)), self.memory)
        return Host(
            name=name,
            capacity=capacity,
            jobs=self.rows,
            platforms=_subdirs(),
            gpus=self.gpus,
            engines=frozenset({EMBEDDED}),
            images=frozenset(),
            labels=frozenset(self.labels),
            left=left,
        )

    def worker_settings(self, name: str) -> dict[str, Any]:
        """The settings of the worker of a job; see `read_settings`."""
        return {
            "root": f"{_ROOT}/{name}",
            "jobs": self.rows,
            "cores": self.cores,
            "memory": self.memory,
            "gpus": self.gpus,
            "labels": list(self.labels),
            "idle": self.idle,
            "allocation": self.host(name).left,
            "temporary": True,
        }

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> JobKind:
        """The inverse; `KeyError` or `TypeError` for any other document."""
        return cls(**{**content, "labels": tuple(content["labels"])})


def kind_of(name: str, settings: JobSettings) -> JobKind:
    """A kind of job of this site: what the inventory does not say comes from the site's `jobqueue.yaml`.

    Raises:
        InputError: neither says how many cores and how much memory a job has, or the site's file is invalid.
    """
    with warnings.catch_warnings():  # of old names in a site's file
        warnings.simplefilter("ignore")
        import dask
        from dask_jobqueue.slurm import SLURMJob

        site = f"jobqueue.{SLURMJob.config_name}"
        hint = "Say it in the inventory or in the site's jobqueue.yaml."
        cores = settings.cores or dask.config.get(f"{site}.cores")
        memory = size_of(settings.memory) if settings.memory else dask.config.get(f"{site}.memory")
        if not cores or not memory:
            missing = " and ".join(key for key, known in (("cores", cores), ("memory", memory)) if not known)
            raise InputError(f"the jobs {name} have no {missing}", hint=hint)
        slurm_memory = f"{math.ceil(memory / (1 << 20))}M" if isinstance(memory, int) else None
        try:
            job = SLURMJob(
                scheduler="",
                name=name,
                job_name="feedstock-tools",
                cores=cores,
                memory=memory,
                processes=1,
                job_mem=slurm_memory,
                queue=settings.partition,
                account=settings.account,
                walltime=_walltime(settings),
                job_extra_directives=[*dask.config.get(f"{site}.job-extra-directives", []), *_directives(settings)],
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise InputError(f"the site's jobqueue.yaml cannot be used: {error}", hint=hint) from error
        walltime = _walltime(settings) or dask.config.get(f"{site}.walltime")
        prologue = [str(line) for line in dask.config.get(f"{site}.job-script-prologue", []) or [] if line]
        python = settings.python or str(dask.config.get(f"{site}.python") or job_python())
        root = settings.root or str(dask.config.get(f"{site}.local-directory") or _ROOT)
    return JobKind(
        name=name,
        least=settings.min,
        most=settings.max,
        cores=job.worker_cores,
        memory=job.worker_memory,
        seconds=slurm_seconds(str(walltime)) if walltime else None,
        gpus=settings.gpus,
        rows=settings.jobs,
        labels=settings.labels,
        idle=time_of(settings.idle),
        head="\n".join([job.shebang, job.job_header, *prologue]),
        python=python,
        root=root,
    )


def job_python() -> str:
    """This Python: compute nodes usually see the same folders."""
    import sys

    return sys.executable


def job_script(kind: JobKind, folder: Path, host: str) -> str:
    """The script of a job: the site's lines, then the worker in place of the shell, with few variables.

    Args:
        folder: of the host's certificate and settings, as the nodes see it.
    """
    passed = " ".join(f'${{{name}+{name}="${name}"}}' for name in _PASSED_ON)
    root = f'"{kind.root}/feedstock-tools-{host}"'
    command = f"{shlex.quote(kind.python)} -P -m {_WORKER} {shlex.quote(str(folder))} {root}"
    return f"{kind.head}\nexec env -i LANG=C.UTF-8 {passed} {command}\n"


def _walltime(settings: JobSettings) -> str | None:
    """The time limit as Slurm reads it."""
    if settings.time is None:
        return None
    minutes = math.ceil(slurm_seconds(settings.time) / 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:00"


def _directives(settings: JobSettings) -> list[str]:
    gres = settings.gres or (f"gpu:{settings.gpus}" if settings.gpus else None)
    return [*([f"--gres={gres}"] if gres else []), *settings.directives]


def _subdirs() -> frozenset[str]:
    from feedstock_tools.builds.engines.embedded.engine import RattlerBuild

    engine, builder = RattlerBuild(), Platform.here().subdir
    return frozenset(subdir for subdir in KNOWN_SUBDIRS if engine.why_not(subdir, builder) is None)

"""The jobs of a cluster while the scheduler runs: as many as the rows that wait can use, by dask-jobqueue.

Dask's own `Adaptive` counts all workers and all tasks of a scheduler. A fleet may have other hosts besides its jobs,
and several kinds of job, so each kind counts its own jobs, and the tasks that fit them.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from feedstock_tools.builds.fleet.certificates import AUTHORITY, CERTIFICATE, KEY
from feedstock_tools.builds.fleet.cluster.kinds import SYSTEMS, JobKind
from feedstock_tools.builds.fleet.host.settings import HostSettings
from feedstock_tools.builds.fleet.host.tasks import JOBS, TOPIC, UNFINISHED

if TYPE_CHECKING:
    from distributed import Scheduler

#: How often the jobs are counted, and how long one may be gone until another takes its place, in seconds.
_EVERY, _LOST_AFTER = 2.0, 5.0
#: How often the cluster may refuse a job, or a job may not connect within some seconds of its begin, until none comes.
_MOST_FAILURES, _CONNECTS_WITHIN = 3, 60.0
#: Bytes of a job's log in a message.
_SHOWN = 500


@asynccontextmanager
async def with_jobs(scheduler: Scheduler, folder: Path, kinds: Sequence[JobKind]) -> AsyncIterator[None]:
    """Submit jobs of some kinds while rows wait, and end them with the block.

    Args:
        folder: of the hub, with its certificate.
    """
    import dask
    from distributed.deploy import Adaptive

    class ForRows(Adaptive):  # type: ignore[misc]
        """Adapts the jobs of a kind to the rows that wait."""

        async def target(self) -> int:
            kept: KeptJobs = self.cluster.kept
            return await kept.target()

        async def workers_to_close(self, target: int) -> list[str]:
            kept: KeptJobs = self.cluster.kept
            return kept.idle()[: len(self.plan) - target]

    dask.config.set({"distributed.deploy.lost-worker-timeout": f"{_LOST_AFTER} s"})
    async with AsyncExitStack() as stack:
        all_kept: list[KeptJobs] = []
        for kind in kinds:
            kept = KeptJobs(kind, scheduler, list(all_kept))
            all_kept.append(kept)
            kept.cluster = cluster = job_cluster(kind, scheduler, folder)
            cluster.kept = kept
            cluster.shutdown_scheduler = False
            await stack.enter_async_context(cluster)
            wait_count = max(1, math.ceil(kind.idle / _EVERY))
            cluster.adapt(ForRows, minimum=kind.least, maximum=kind.most, interval=_EVERY, wait_count=wait_count)
        yield


def job_cluster(kind: JobKind, scheduler: Scheduler, folder: Path) -> Any:
    """dask-jobqueue's cluster for jobs of a kind, of the scheduler that there is."""
    import dask_jobqueue
    from distributed import Security, Status

    system: Any = getattr(dask_jobqueue, f"{SYSTEMS[kind.system][0]}Cluster")

    class Job(system.job_cls):  # type: ignore[misc]
        """A job that is closed once it has been ended, as Dask demands of all that a cluster has made."""

        async def close(self) -> None:
            await super().close()
            self.status = Status.closed

    job = Path(kind.folder)
    security = Security(
        require_encryption=True,
        tls_ca_file=str(job / AUTHORITY),
        tls_client_cert=str(folder / CERTIFICATE),
        tls_client_key=str(folder / KEY),
        tls_worker_cert=str(job / CERTIFICATE),
        tls_worker_key=str(job / KEY),
    )
    extra = [*kind.options["worker_extra_args"], "--folder", f"'{kind.folder}'"]
    return system(
        job_cls=Job,
        name=f"{kind.name}-{uuid4().hex[:4]}",
        scheduler_cls=lambda **_: scheduler,
        security=security,
        protocol="tls://",
        asynchronous=True,
        cores=kind.cores,
        memory=f"{kind.memory} B",
        processes=1,
        job_name=f"feedstock-tools-{kind.fleet}",
        log_directory=kind.folder,
        **{**kind.options, "worker_extra_args": extra},
    )


class KeptJobs:
    """The jobs of a kind, as dask-jobqueue keeps them."""

    def __init__(self, kind: JobKind, scheduler: Scheduler, before: Sequence[KeptJobs]) -> None:
        """Begin without jobs.

        Args:
            before: the kinds that take a row rather than this one, if it fits.
        """
        self.cluster: Any = None
        self._kind = kind
        self._scheduler = scheduler
        self._before = before
        self._offered = HostSettings(kind.host, "", Path()).resources(kind.host.left)
        self._problem = ""
        self._failures = 0
        self._begun: dict[str, float] = {}

    async def target(self) -> int:
        """How many jobs there should be."""
        await self._mend()
        mine = [worker for worker in self._scheduler.workers.values() if worker.name in self.cluster.workers]
        building = {key for worker in self._scheduler.workers.values() for key in _builds(worker)}
        waiting = [
            task.resource_restrictions or {}
            for task in self._scheduler.tasks.values()
            if task.state in UNFINISHED and task.key not in building
        ]
        fitting = [asks for asks in waiting if self.takes(asks) and not any(kind.takes(asks) for kind in self._before)]
        sums = {name: sum(asks.get(name, 0) for asks in fitting) for name in ("rows", "cores", "memory")}
        busy = sum(bool(_builds(worker)) for worker in mine)
        left = len(mine) if self._failures >= _MOST_FAILURES else math.inf
        return int(min(left, busy + math.ceil(max(sums[name] / self._offered[name] for name in sums))))

    def takes(self, asks: Mapping[str, float]) -> bool:
        """Whether a job of this kind has what a row asks for."""
        return bool(asks) and all(self._offered.get(name, 0) >= amount for name, amount in asks.items())

    def idle(self) -> list[str]:
        """The jobs that have connected, and build nothing."""
        workers = self._scheduler.workers.values()
        return [each.name for each in workers if each.name in self.cluster.workers and not each.processing]

    async def _mend(self) -> None:
        """Try again what the cluster has refused, give up jobs that begin and do not connect, and say how it goes."""
        observed, now = self.cluster.observed, time.monotonic()
        jobs = {name: job for name, job in self.cluster.workers.items() if name in self.cluster.worker_spec}
        for name, job in jobs.items():
            if name in observed:
                self._failures, self._problem = 0, ""
                self._begun.pop(name, None)
            elif job.job_id is None and self._failures < _MOST_FAILURES:
                try:
                    await job
                except (RuntimeError, OSError, ValueError) as error:
                    self._fail(f"it refuses a job: {_reason(error)}")
            elif (log := self._log_of(job.job_id)) and now > self._begun.setdefault(name, now) + _CONNECTS_WITHIN:
                self._fail(f"job {job.job_id} has begun, and its worker does not connect: {log}")
                del self._begun[name]
                await self.cluster.scale_down([name])
        submitted = {str(job.job_id): name in observed for name, job in jobs.items() if job.job_id}
        state = {"jobs": submitted, "problem": self._problem, "hopeless": self._failures >= _MOST_FAILURES}
        self._scheduler.set_metadata(keys=[JOBS, self._kind.name], value=state)

    def _fail(self, problem: str) -> None:
        self._failures += 1
        self._problem = problem

    def _log_of(self, job: str | None) -> str:
        """The end of the log of a job; empty if there is none."""
        for path in Path(self._kind.folder).glob(f"*-{job}.err") if job else ():
            with suppress(OSError):
                return " ".join(path.read_text(errors="replace").split())[-_SHOWN:] or "it says nothing"
        return ""


def _builds(worker: Any) -> Mapping[str, Any]:
    report = worker.metrics.get(TOPIC)
    return report.get("builds") or {} if isinstance(report, dict) else {}


def _reason(error: BaseException) -> str:
    """What the cluster's command wrote to stderr, in dask-jobqueue's message; else the message."""
    return " ".join(str(error).rpartition("stderr:")[2].split())[:_SHOWN]

"""Jobs of a cluster: what an inventory may say of them, their script, and how many there are."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import Scheduler

from feedstock_tools.builds.fleet.carrying.link import Link
from feedstock_tools.builds.fleet.certificates import security
from feedstock_tools.builds.fleet.cluster import adapting
from feedstock_tools.builds.fleet.cluster.adapting import KeptJobs, job_cluster, with_jobs
from feedstock_tools.builds.fleet.cluster.hub_process import hub_variables
from feedstock_tools.builds.fleet.cluster.kinds import JobKind, job_kinds, write_kinds
from feedstock_tools.builds.fleet.cluster.settings import JobSettings, kind_of, read_cluster, seconds_of_limit
from feedstock_tools.builds.fleet.folder import FleetFolder, make_fleet
from feedstock_tools.builds.fleet.host.settings import host_of
from feedstock_tools.builds.fleet.host.tasks import JOBS
from feedstock_tools.builds.fleet.placing import resources_for
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.platforms import Platform
from tests.support.fleets import started_fleet
from tests.support.rows import made_up_row
from tests.support.waiting import wait_until

GIB = 1 << 30
INVENTORY = """
all:
  vars:
    fleet_name: mine
    fleet_hub: login1:8786
    fleet_cluster:
      cpu: {cores: 8, memory: 16 GiB, time: 8 h, partition: batch, account: gpu-builds, max: 20}
      gpu: {cores: 4, memory: 8 GiB, time: '04:00:00', gpus: 1, directives: [--constraint=a100], min: 1, max: 2}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The settings of a site's jobqueue.yaml for Slurm."""
    import dask
    import dask_jobqueue  # noqa: F401 - its defaults must be there before they are changed

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    content: dict[str, Any] = {"queue": "normal", "account": "site", "walltime": "01:00:00"}
    with dask.config.set({f"jobqueue.slurm.{key}": value for key, value in content.items()}):
        yield content


def _kind(name: str = "cpu", **more: Any) -> JobKind:
    kind = JobKind(
        name=name,
        system="slurm",
        least=0,
        most=4,
        cores=2,
        memory=4 * GIB,
        seconds=4 * 3600.0,
        gpus=0,
        rows=1,
        labels=(),
        idle=300.0,
        options={"worker_extra_args": ["--root", "/scratch"]},
    )
    return replace(kind, **more)


def test_an_inventory_says_which_jobs_there_may_be(tmp_path: Path) -> None:
    (tmp_path / "inventory.yml").write_text(INVENTORY)
    read = read_cluster(tmp_path / "inventory.yml")
    assert (read.name, read.hub, list(read.kinds)) == ("mine", "login1:8786", ["cpu", "gpu"])
    assert (read.kinds["cpu"].min, read.kinds["cpu"].max, read.kinds["gpu"].gpus) == (0, 20, 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("gpus: many", "'many' is not a whole number"),
        ("gpus: -1", "-1 is too small"),
        ("memory: lots", "'lots' is not a valid amount of memory"),
        ("time: soon", "'soon' is not a valid duration"),
        ("partition: a b", "'a b' has the wrong form"),
        ("account: $(reboot)", "'$(reboot)' has the wrong form"),
        ("gres: 'gpu:1;reboot'", "'gpu:1;reboot' has the wrong form"),
        ("system: nomad", "'nomad'"),
        ('directives: ["--comment=a\\n#SBATCH -A other"]', "has the wrong form"),
        ("root: relative", "'relative' has the wrong form"),
        ("root: '/tmp/$(reboot)'", "'/tmp/$(reboot)' has the wrong form"),
        ("root: '/tmp/`reboot`'", "'/tmp/`reboot`' has the wrong form"),
        ("nodes: 2", "unknown key 'nodes'"),
        ("min: 3", "the least number of jobs, 3, is above the most, 1"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, wrong: str, message: str) -> None:
    path = tmp_path / "inventory.yml"
    path.write_text(
        f"all:\n  vars:\n    fleet_name: mine\n    fleet_cluster:\n      cpu:\n        max: 1\n        {wrong}\n"
    )
    with pytest.raises(InputError) as found:
        read_cluster(path)
    assert f"{path}:7:" in str(found.value)
    assert message in str(found.value)


def test_an_inventory_without_jobs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inventory.yml").write_text("all:\n  hosts:\n    h1:\n")
    with pytest.raises(InputError, match="the inventory has no jobs of a cluster"):
        read_cluster(tmp_path / "inventory.yml")


@pytest.mark.parametrize("text", ["", "0", "-1", "00:00:00", "1:2:3:4", "UNLIMITED", "1-", "1.5:00"])
def test_what_is_no_time_limit_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        seconds_of_limit(text)


def _script(kind: JobKind, folder: Path) -> list[str]:
    """The lines of the script that dask-jobqueue submits for a job."""
    fleet = make_fleet(folder / "fleet", "mine", "127.0.0.1:8786")
    write_kinds(fleet, [kind])
    (kept,) = job_kinds(fleet.for_hub)

    async def script() -> str:
        cluster = job_cluster(kept, None, fleet.for_hub)
        found = str(cluster.job_script())
        await cluster.close()
        return found

    return asyncio.run(script()).splitlines()


def test_the_script_of_a_job_has_what_the_inventory_and_the_site_say(site: dict[str, Any], tmp_path: Path) -> None:
    given = JobSettings(cores=4, memory="8 GiB", gpus=2, account="mine", directives=("--constraint=a100",))
    kind = kind_of("gpu", given)
    assert (kind.cores, kind.memory, kind.seconds, kind.gpus) == (4, 8 * GIB, 3600.0, 2)
    lines = _script(kind, tmp_path)
    assert lines[0].startswith("#!")
    expected = ["-p normal", "-A mine", "--cpus-per-task=4", "--mem=8192M", "-t 01:00:00", "--gres=gpu:2"]
    assert {f"#SBATCH {words}" for words in [*expected, "--constraint=a100"]} <= set(lines)
    words = shlex.split(lines[-1])
    assert words[0] == "exec" and words[2:5] == ["-P", "-m", "feedstock_tools.builds.fleet.cluster.job"]
    assert words[words.index("--root") + 1] == "/tmp"
    assert words[words.index("--folder") + 1] == str(tmp_path / "fleet" / "jobs" / "gpu")


def test_the_settings_of_a_site_count_where_the_inventory_says_nothing(site: dict[str, Any], tmp_path: Path) -> None:
    import dask

    more = {
        "cores": 24,
        "memory": "64 GB",
        "job-script-prologue": ["module load python"],
        "local-directory": "$SCRATCH",
    }
    with dask.config.set({f"jobqueue.slurm.{key}": value for key, value in more.items()}):
        kind = kind_of("cpu", JobSettings())
        *_, prologue, worker = _script(kind, tmp_path)
    assert (kind.cores, kind.memory) == (24, 64_000_000_000)
    assert prologue == "module load python"
    assert '--root "$SCRATCH"' in worker
    with pytest.raises(InputError, match="the jobs cpu have no cores and memory"):
        kind_of("cpu", JobSettings())


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("pbs", ["#PBS -q long", "#PBS -A mine", "#PBS -l walltime=08:00:00", "#PBS -l select=x"]),
        ("lsf", ["#BSUB -q long", '#BSUB -P "mine"', "#BSUB -W 08:00", "#BSUB -l select=x"]),
        ("sge", ["#$ -q long", "#$ -P mine", "#$ -l h_rt=08:00:00", "#$ -l select=x"]),
        ("htcondor", []),
    ],
)
def test_other_clusters_are_asked_in_their_own_words(system: Any, expected: list[str], tmp_path: Path) -> None:
    directive = "Rank=Memory" if system == "htcondor" else "-l select=x"
    shared = JobSettings(system=system, cores=2, memory="2 GiB", time="8 h", directives=(directive,))
    more = {} if system == "htcondor" else {"partition": "long", "account": "mine"}
    lines = _script(kind_of("cpu", shared.model_copy(update=more)), tmp_path)
    assert set(expected) <= set(lines)
    assert "feedstock_tools.builds.fleet.cluster.job" in "\n".join(lines)
    assert system != "htcondor" or "Rank = Memory" in lines


def _asked(*, gpu: bool = False, cores: int = 1) -> dict[str, float]:
    """What a row asks of Dask's scheduler for."""
    row = made_up_row("a", "a", needs=Needs(cores, GIB, gpu=gpu), platform=Platform.here().subdir)
    return resources_for(row, [CPU.host, GPU.host])


CPU, GPU = _kind(), _kind("gpu", gpus=1, most=1)


def test_the_hub_of_a_cluster_gets_few_variables() -> None:
    needed = {"PATH": "/usr/bin", "HOME": "/h", "SLURM_CONF": "/etc/slurm.conf", "PBS_SERVER": "head"}
    secret = {"AWS_SECRET_ACCESS_KEY": "secret", "GITHUB_TOKEN": "secret", "PATHS": "", "MY_SLURM_TOKEN": "secret"}
    assert hub_variables({**needed, **secret}) == needed


def _scheduler(asked: Sequence[Mapping[str, float]]) -> Any:
    """What `KeptJobs` uses of Dask's scheduler, with tasks that wait."""
    keys = map(str, range(len(asked)))
    tasks = [
        SimpleNamespace(key=key, state="no-worker", resource_restrictions=each)
        for key, each in zip(keys, asked, strict=True)
    ]
    return SimpleNamespace(workers={}, tasks={task.key: task for task in tasks}, set_metadata=lambda **_: None)


class _Cluster:
    """What `KeptJobs` uses of dask-jobqueue's cluster: no job, and none that connects."""

    workers: Mapping[str, Any] = {}
    observed: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("asked", "cpu", "gpu"),
    [
        ([], 0, 0),
        ([_asked()], 1, 0),
        ([_asked(), _asked()], 2, 0),
        ([_asked(gpu=True), _asked()], 1, 1),
        ([_asked(cores=2)], 1, 0),
        ([_asked(cores=99)], 0, 0),  # it fits no job
        ([{}], 0, 0),  # a task of another client
    ],
)
def test_there_are_as_many_jobs_as_rows_can_use(asked: list[dict[str, float]], cpu: int, gpu: int) -> None:
    scheduler = _scheduler(asked)
    of_cpu = KeptJobs(CPU, scheduler, [])
    of_gpu = KeptJobs(GPU, scheduler, [of_cpu])
    of_cpu.cluster = of_gpu.cluster = _Cluster()
    assert (asyncio.run(of_cpu.target()), asyncio.run(of_gpu.target())) == (cpu, gpu)


def test_a_job_with_room_for_several_rows_counts_for_as_many() -> None:
    scheduler = _scheduler([_asked()] * 5)
    kept = KeptJobs(replace(CPU, rows=2), scheduler, [])
    kept.cluster = _Cluster()
    assert asyncio.run(kept.target()) == 3


@pytest.mark.parametrize(
    ("sbatch", "problem"),
    [
        ("echo 'sbatch: error: invalid partition' >&2; exit 1", "it refuses a job: sbatch: error: invalid partition"),
        (
            'echo "no module" > "$(sed -n \'s/.*-e \\(.*\\)-%J.err/\\1/p\' "$1")-7.err"; echo "Submitted batch job 7"',
            "job 7 has begun, and its worker does not connect: no module",
        ),
    ],
)
def test_a_cluster_that_takes_no_job_is_not_asked_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sbatch: str, problem: str
) -> None:
    for name, lines in (("sbatch", f"{sbatch}"), ("scancel", "true")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/asked\n{lines}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(adapting, "_EVERY", 0.05)
    monkeypatch.setattr(adapting, "_CONNECTS_WITHIN", 0.05)
    fleet = make_fleet(tmp_path / "fleet", "mine", "127.0.0.1:8786")
    write_kinds(fleet, [replace(CPU, least=1, most=1)])

    async def state_of_jobs() -> Mapping[str, Any]:
        scheduler = Scheduler(
            host="127.0.0.1", port=0, protocol="tls", dashboard=False, security=security(fleet.for_hub, "hub")
        )
        async with scheduler, with_jobs(scheduler, fleet.for_hub, job_kinds(fleet.for_hub)):
            while not (found := scheduler.task_metadata.get(JOBS, {}).get("cpu", {})).get("hopeless"):
                await asyncio.sleep(0.05)
            return dict(found)

    assert asyncio.run(asyncio.wait_for(state_of_jobs(), 60))["problem"] == problem
    assert 1 <= (tmp_path / "asked").read_text().split().count("sbatch") < 10


def test_a_job_lasts_for_rows_a_little_shorter_than_for_the_cluster() -> None:
    assert CPU.host.left == 4 * 3600.0 - 60
    assert CPU.worker_settings["allocation"] == 4 * 3600.0 - 60
    assert replace(CPU, seconds=None).host.left is None


def _reports(fleet: FleetFolder) -> list[Mapping[str, Any]]:
    """The reports of the hosts that the scheduler knows; none while it starts."""
    with suppress(WorkError), Link(fleet) as link:
        return [report for report in link.hosts.values() if report]
    return []


def test_a_worker_with_nothing_to_do_ends_and_leaves_nothing(tmp_path: Path) -> None:
    settings = {"allocation": 3600, "idle": 20, "temporary": True}
    with started_fleet(tmp_path, 1, settings) as fleet:
        local, reports = fleet.local, list[Mapping[str, Any]]()
        wait_until(lambda: reports or reports.__iadd__(_reports(local.fleet)), 120)
        assert 3400 < (host_of("h1", reports[0]).left or 0) < 3600
        assert local.processes["h1"].wait(120) == 0
        assert not (local.home_of("h1") / "work").exists()

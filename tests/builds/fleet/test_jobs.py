"""Jobs of a cluster: what an inventory may say of them, their script, Slurm's lists, and how many a run needs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.fleet.carrying.link import Link
from feedstock_tools.builds.fleet.cluster.demand import Change, change
from feedstock_tools.builds.fleet.cluster.queue import Job, cancel, jobs_in, submit
from feedstock_tools.builds.fleet.cluster.script import JobKind, job_script, kind_of
from feedstock_tools.builds.fleet.cluster.settings import JobSettings, read_slurm, slurm_seconds
from feedstock_tools.builds.fleet.folder import FleetFolder
from feedstock_tools.builds.fleet.host.settings import host_of
from feedstock_tools.builds.plan.hosts import Share
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.row import Row, Running
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
    fleet_slurm:
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
        least=0,
        most=4,
        cores=2,
        memory=4 * GIB,
        seconds=4 * 3600.0,
        gpus=0,
        rows=1,
        labels=(),
        idle=300.0,
        head="#!/bin/sh",
        python="/usr/bin/python3",
        root="/scratch",
    )
    return replace(kind, **more)


def test_an_inventory_says_which_jobs_there_may_be(tmp_path: Path) -> None:
    (tmp_path / "inventory.yml").write_text(INVENTORY)
    read = read_slurm(tmp_path / "inventory.yml")
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
        ("directives: [reboot]", "'reboot' is not an option of sbatch"),
        ("directives: ['--comment=a\\n#SBATCH -A other']", "'--comment=a\\n#SBATCH -A other' is not an option"),
        ("directives: ['--export=ALL']", "--export is set for each job, and cannot be given"),
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
        f"all:\n  vars:\n    fleet_name: mine\n    fleet_slurm:\n      cpu:\n        max: 1\n        {wrong}\n"
    )
    with pytest.raises(InputError) as found:
        read_slurm(path)
    assert f"{path}:7:" in str(found.value)
    assert message in str(found.value)


def test_an_inventory_without_jobs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inventory.yml").write_text("all:\n  hosts:\n    h1:\n")
    with pytest.raises(InputError, match="the inventory has no jobs for Slurm"):
        read_slurm(tmp_path / "inventory.yml")


@pytest.mark.parametrize("text", ["", "0", "-1", "00:00:00", "1:2:3:4", "UNLIMITED", "1-", "1.5:00"])
def test_what_is_no_time_limit_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        slurm_seconds(text)


def test_the_script_of_a_job_has_what_the_inventory_and_the_site_say(site: dict[str, Any]) -> None:
    given = JobSettings(cores=4, memory="8 GiB", gpus=2, account="mine", directives=("--constraint=a100",))
    kind = kind_of("gpu", given)
    assert (kind.cores, kind.memory, kind.seconds, kind.gpus) == (4, 8 * GIB, 3600.0, 2)
    lines = job_script(kind, Path("/home/me/a fleet"), "gpu-1").splitlines()
    assert lines[0].startswith("#!")
    expected = ["-p normal", "-A mine", "--cpus-per-task=4", "--mem=8192M", "-t 01:00:00", "--gres=gpu:2"]
    assert {f"#SBATCH {words}" for words in [*expected, "--constraint=a100"]} <= set(lines)
    words = shlex.split(lines[-1])
    assert words[:4] == ["exec", "env", "-i", "LANG=C.UTF-8"]
    assert words[-4:] == ["-m", "feedstock_tools.builds.fleet.worker", "/home/me/a fleet", "/tmp/feedstock-tools-gpu-1"]
    assert "dask" not in lines[-1]


def test_the_settings_of_a_site_count_where_the_inventory_says_nothing(site: dict[str, Any]) -> None:
    import dask

    more = {
        "cores": 24,
        "memory": "64 GB",
        "job-script-prologue": ["module load python"],
        "local-directory": "$SCRATCH",
    }
    with dask.config.set({f"jobqueue.slurm.{key}": value for key, value in more.items()}):
        kind = kind_of("cpu", JobSettings())
    assert (kind.cores, kind.memory, kind.root) == (24, 64_000_000_000, "$SCRATCH")
    *_, prologue, worker = job_script(kind, Path("/f"), "cpu-1").splitlines()
    assert prologue == "module load python"
    assert worker.endswith('"$SCRATCH/feedstock-tools-cpu-1"')
    with pytest.raises(InputError, match="the jobs cpu have no cores and memory"):
        kind_of("cpu", JobSettings())


def test_a_job_runs_the_worker_with_few_variables(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nenv; echo "$@"\n')
    python.chmod(0o755)
    script = job_script(_kind(python=str(python), root="$TMPDIR/x"), tmp_path / "a b", "cpu-1")
    variables = {"PATH": os.environ["PATH"], "HOME": "/h", "TMPDIR": "/scratch", "AWS_SECRET_ACCESS_KEY": "secret"}
    ran = subprocess.run(["bash"], input=script, env=variables, capture_output=True, text=True, check=True)
    assert "secret" not in ran.stdout
    assert {"HOME=/h", "TMPDIR=/scratch", "LANG=C.UTF-8"} <= set(ran.stdout.splitlines())
    assert ran.stdout.splitlines()[-1] == (
        f"-P -m feedstock_tools.builds.fleet.worker {tmp_path / 'a b'} /scratch/x/feedstock-tools-cpu-1"
    )


def test_the_queue_is_read_as_squeue_prints_it() -> None:
    lines = [
        "17|feedstock-tools/mine/cpu-1|RUNNING|1-02:00:00|n3|None",
        "18|feedstock-tools/mine/cpu-2|PENDING|4:00:00||Priority",
        "19|feedstock-tools/mine/gpu-1|NODE_FAIL|0:00|n1|NodeDown | again",
        "20|feedstock-tools/mine/gpu-2|COMPLETING|UNLIMITED|n1|None",
        "21|feedstock-tools/minetoo/gpu-2|RUNNING|10:00|n1|None",
        "22|bash|RUNNING|10:00|n1|None",
        "slurm_load_jobs: a warning",
        "",
    ]
    jobs = {job.number: job for job in jobs_in("\n".join(lines), "mine")}
    assert jobs.keys() == {"17", "18", "19", "20"}
    assert jobs["17"] == Job("17", "cpu-1", "RUNNING", 93600.0, "n3", "")
    assert [job.lives for job in jobs.values()] == [True, True, False, False]
    assert [job.waits for job in jobs.values()] == [False, True, False, False]
    assert (jobs["18"].reason, jobs["19"].reason, jobs["20"].left) == ("Priority", "NodeDown | again", None)


def _stand_in(folder: Path, name: str, lines: str) -> dict[str, str]:
    """A PATH with a program that stands in for one of Slurm's."""
    program = folder / name
    program.write_text(f"#!/bin/sh\n{lines}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_a_job_is_submitted_with_words_and_no_shell(tmp_path: Path) -> None:
    machine = _stand_in(
        tmp_path, "sbatch", 'for word in "$@"; do echo "$word" >> words; done; cat > script; echo "42;west"'
    )
    folder = tmp_path / "a b;c"
    folder.mkdir()
    os_folder = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert submit("the script", "mine", "cpu-1", folder, machine) == "42"
    finally:
        os.chdir(os_folder)
    words = (tmp_path / "words").read_text().splitlines()
    assert {"--parsable", "--no-requeue", "--job-name=feedstock-tools/mine/cpu-1", f"--chdir={folder}"} <= set(words)
    assert "--export=HOME,PATH,USER" in words
    assert (tmp_path / "script").read_text() == "the script"


def test_what_slurm_says_is_passed_on(tmp_path: Path) -> None:
    machine = _stand_in(tmp_path, "sbatch", "cat > /dev/null; echo 'sbatch: error: invalid partition' >&2; exit 1")
    with pytest.raises(WorkError, match="sbatch failed with status 1: sbatch: error: invalid partition"):
        submit("the script", "mine", "cpu-1", tmp_path, machine)
    with pytest.raises(InputError, match="there is no scancel on PATH"):
        cancel(["1"], {"PATH": str(tmp_path)})
    cancel([], {"PATH": str(tmp_path)})


def _row(name: str, hours: float | None = None, makes: str = "", *, gpu: bool = False, cores: int = 1) -> Row:
    needs = Needs(cores, GIB, gpu=gpu)
    seconds = hours and hours * 3600
    return made_up_row(name, *(makes or [name]), seconds=seconds, needs=needs, platform=Platform.here().subdir)


CPU, GPU = _kind(), _kind("gpu", gpus=1, most=1)


@pytest.mark.parametrize(
    ("rows", "running", "coming", "new", "unused"),
    [
        ([], [], [], {}, []),
        ([_row("a"), _row("b")], [], [], {"cpu": 2}, []),
        ([_row(each) for each in "abcdefg"], [], [], {"cpu": 4, "gpu": 1}, []),
        ([_row("a", gpu=True), _row("b", gpu=True)], [], [], {"gpu": 1}, []),
        ([_row("a", cores=99), _row("b", hours=9)], [], [], {}, []),  # they fit no job
        ([_row("a", makes="x"), _row("b", makes="x")], [], [], {"cpu": 1}, []),  # b waits for a
        ([_row("b", makes="x")], [_row("a", makes="x")], [], {}, []),
        ([_row("a"), _row("b")], [], ["cpu-1"], {"cpu": 1}, []),
        ([_row("a")], [], ["cpu-1", "cpu-2"], {}, ["cpu-2"]),
        ([], [], ["cpu-1"], {}, ["cpu-1"]),
        ([_row("a", gpu=True)], [], ["cpu-1"], {"gpu": 1}, ["cpu-1"]),
    ],
)
def test_there_are_as_many_jobs_as_rows_can_begin(
    rows: list[Row], running: list[Row], coming: list[str], new: dict[str, int], unused: list[str]
) -> None:
    under_way = [replace(row, running=Running("elsewhere", Share((0,), GIB, 1))) for row in running]
    kinds = {"cpu": CPU, "gpu": GPU}
    hosts = [kinds[host.rpartition("-")[0]].host(host) for host in coming]
    living = Counter(host.rpartition("-")[0] for host in coming)
    assert change(rows, under_way, hosts, [CPU, GPU], living, 1.0) == Change(new, frozenset(unused))


def test_the_least_number_of_jobs_is_there_while_rows_wait() -> None:
    kind = replace(CPU, least=3)
    assert change([_row("a")], [], [], [kind], Counter(), 1.0).new == {"cpu": 3}
    hosts = [kind.host(f"cpu-{number}") for number in range(3)]
    assert change([_row("a")], [], hosts, [kind], Counter(cpu=3), 1.0) == Change({}, frozenset())
    assert len(change([], [], hosts, [kind], Counter(cpu=3), 1.0).unused) == 3


def test_a_kind_of_job_comes_back_from_its_file() -> None:
    assert JobKind.from_json(json.loads(json.dumps(GPU.to_json()))) == GPU


def test_a_job_lasts_for_rows_a_little_shorter_than_for_slurm() -> None:
    assert CPU.host("cpu-1").left == 4 * 3600.0 - 60
    assert CPU.worker_settings("cpu-1")["allocation"] == 4 * 3600.0 - 60
    assert replace(CPU, seconds=None).host("cpu-1").left is None


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

"""A real Slurm on this machine, with three nodes: its jobs build, one is ended, one node dies."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from feedstock_tools.builds.fleet.local import free_port
from tests.support import command
from tests.support.feedstocks import TinyFeedstock
from tests.support.needs import needs
from tests.support.slurm import Cluster, cluster_of, why_no_slurm
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.usefixtures("unmeasured"),
    needs("system", why_no_slurm() is None, f"Slurm ({why_no_slurm()})"),
    pytest.mark.slow,
]
SLOW = 'echo "$PKG_BUILD_STRING" >> "$RECIPE_DIR/../../../../../begun"; sleep 8; mkdir'


@dataclass(frozen=True)
class _Fleet:
    """A fleet whose hosts are jobs of a cluster; `folder` has its inventory, `builds` is that of the nodes."""

    cluster: Cluster
    folder: Path
    builds: Path

    @property
    def variables(self) -> dict[str, str]:
        """The environment of this machine's commands; a secret in it must not reach a job."""
        more = {"XDG_CONFIG_HOME": str(self.folder / "config"), "MY_SECRET_TOKEN": "s3cret"}
        return command.environment(**self.cluster.variables, **more)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of feedstock-tools in the folder of the inventory."""
        return command.run(command.tool(*arguments), self.folder, self.variables)

    def start(self, feedstock: TinyFeedstock) -> subprocess.Popen[str]:
        """`build --all` on it, left running."""
        words = feedstock.command("--all", f"--fleet={self.folder / 'inventory.yml'}")
        return command.start(words, feedstock.folder, self.variables)

    def hosts_that_build(self) -> list[str]:
        """The jobs that have begun a build, by the names of their folders."""
        return sorted(path.parent.name for path in self.builds.glob("*/begun"))

    def takes_long(self, host: str) -> bool:
        """Whether the build on a host is the one that sleeps for ten minutes."""
        return (self.builds / host / "long").exists()

    def node_of(self, host: str) -> tuple[str, str]:
        """The job and the node of a host."""
        for number, node in self.cluster.jobs().items():
            script = self.cluster.ask("scontrol", "write", "batch_script", number, "-")
            if f"--name {host.removeprefix('feedstock-tools-')} " in script:
                return number, node
        raise AssertionError(f"no job runs {host}")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster of three nodes."""
    with cluster_of(["n1", "n2", "n3"]) as made:
        yield made


@pytest.fixture
def fleet(cluster: Cluster, tmp_path: Path) -> Iterator[_Fleet]:
    """A fleet with up to three jobs of the cluster, of which nothing is left after the test."""
    (tmp_path / "nodes").mkdir()
    (tmp_path / "inventory.yml").write_text(f"""
all:
  vars:
    fleet_name: cluster
    fleet_hub: 127.0.0.1:{free_port()}
    fleet_cluster:
      cpu: {{cores: 1, memory: 1500 MiB, time: 20 min, partition: batch, max: 3, idle: 5 s,
            root: {tmp_path / "nodes"}}}
""")
    made = _Fleet(cluster, tmp_path, tmp_path / "nodes")
    up = made.run("fleet", "cluster", "up", "--fleet=inventory.yml")
    assert up.returncode == 0, up.stdout + up.stderr
    try:
        yield made
    finally:
        down = made.run("fleet", "cluster", "down")
        cluster.mend()
    assert down.returncode == 0, down.stdout + down.stderr
    assert not (tmp_path / "config" / "feedstock-tools" / "fleets" / "cluster").exists()
    assert not cluster.jobs() and not cluster.jobs("PENDING")


def _is_whole(feedstock: TinyFeedstock) -> None:
    """Every package is there once, and nothing is left to build."""
    done = Counter(
        package.file for record in feedstock.records() if record.result == "done" for package in record.packages
    )
    assert len(done) == len(feedstock.packages()) == 12
    assert set(done.values()) == {1}
    planned = feedstock.run("plan", "--channel", str(feedstock.channel), "--json")
    assert json.loads(planned.stdout)["todo"] == [], planned.stdout


def test_jobs_build_everything_and_end_when_nothing_is_left(fleet: _Fleet, feedstock: TinyFeedstock) -> None:
    run = fleet.start(feedstock)
    output, _ = run.communicate()
    assert run.returncode == 0, output
    _is_whole(feedstock)
    hosts = {record.machine for record in feedstock.records()}
    assert hosts and all(host.startswith("cpu-") for host in hosts)
    logs = {record.log for record in feedstock.records() if record.log}
    assert all("s3cret" not in (feedstock.artifacts / log).read_text() for log in logs)
    wait_until(lambda: not fleet.cluster.jobs() and not fleet.cluster.jobs("COMPLETING"), 120)
    assert list(fleet.builds.iterdir()) == []
    # The hub asks the cluster now and then.
    wait_until(lambda: "jobs cpu: none" in fleet.run("fleet", "status", "--fleet=cluster").stdout, 60)


def test_a_job_that_is_cancelled_and_a_node_that_dies_cost_no_package(fleet: _Fleet, feedstock: TinyFeedstock) -> None:
    feedstock.edit("recipe/build-library.sh", "mkdir", SLOW)
    run = fleet.start(feedstock)
    wait_until(lambda: len(fleet.hosts_that_build()) >= 2, 180)
    first, second = fleet.hosts_that_build()[:2]
    number, _ = fleet.node_of(first)
    _, node = fleet.node_of(second)
    fleet.cluster.ask("scancel", number)
    fleet.cluster.kill_node(node)
    output, _ = run.communicate()
    assert run.returncode == 0, output
    _is_whole(feedstock)
    interrupted = {record.machine for record in feedstock.records() if record.result == "interrupted"}
    assert {f"feedstock-tools-{host}" for host in interrupted} == {first, second}


def test_a_time_limit_and_a_slurmd_that_dies_alone_cost_no_package(fleet: _Fleet, feedstock: TinyFeedstock) -> None:
    """The job of the one is ended in the middle of a build; the builds of the other go on without Slurm."""
    limit, goes_on = fleet.folder / "limited", fleet.folder / "goes-on"
    first = f'mkdir {limit} && touch "$RECIPE_DIR/../../../../../long" && sleep 600'
    long = f"{first}; while [ ! -e {goes_on} ]; do sleep 0.2; done; mkdir"
    feedstock.edit("recipe/build-library.sh", "mkdir", SLOW.replace("sleep 8; mkdir", long))
    run = fleet.start(feedstock)
    wait_until(lambda: len(fleet.hosts_that_build()) == 2, 180)
    wait_until(lambda: any(map(fleet.takes_long, fleet.hosts_that_build())), 60)
    limited, bereft = sorted(fleet.hosts_that_build(), key=lambda host: not fleet.takes_long(host))
    number, _ = fleet.node_of(limited)
    _, node = fleet.node_of(bereft)
    # A limit counts in minutes, its end in seconds: slurmctld ends the job as at the end of any limit.
    fleet.cluster.ask("scontrol", "update", f"JobId={number}", "EndTime=now+2")
    fleet.cluster.kill_slurmd(node)
    goes_on.touch()
    output, _ = run.communicate()
    assert run.returncode == 0, output
    _is_whole(feedstock)
    interrupted = {record.machine for record in feedstock.records() if record.result == "interrupted"}
    assert {f"feedstock-tools-{host}" for host in interrupted} == {limited}
    wait_until(lambda: list(fleet.builds.iterdir()) == [], 60)


def test_slurm_refuses_a_job_and_the_run_ends_with_its_reason(fleet: _Fleet, feedstock: TinyFeedstock) -> None:
    inventory = fleet.folder / "inventory.yml"
    inventory.write_text(inventory.read_text().replace("partition: batch", "partition: other"))
    assert fleet.run("fleet", "cluster", "up", "--fleet=inventory.yml").returncode == 0
    run = fleet.start(feedstock)
    output, _ = run.communicate()
    assert run.returncode == 1, output
    assert "The cluster, jobs cpu: it refuses a job: " in output
    assert "invalid partition specified: other" in output

"""gpuprobe on a Slurm of three nodes, with jobs that end in the middle of a build.

    python -m benchmarks.builds.slurm node [OPTIONS OF BUILD]     # a job is cancelled, and a node dies
    python -m benchmarks.builds.slurm slurmd [OPTIONS OF BUILD]   # a time limit ends a job, and a slurmd dies alone

As root, with Slurm and namespaces: tests/support/slurm.py. The slurmd that died starts again after a minute.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.builds.fleet import Watched, count_packages
from feedstock_tools.builds.fleet.local import free_port
from tests.support import command
from tests.support.feedstocks import copy_of_example
from tests.support.slurm import Cluster, cluster_of, why_no_slurm
from tests.support.waiting import wait_until

_INVENTORY = """
all:
  vars:
    fleet_name: trial
    fleet_hub: 127.0.0.1:{port}
    fleet_slurm:
      cpu: {{cores: 1, memory: 1900 MiB, time: 40 min, max: 3, idle: 15 s, lease: 20 s, root: {nodes}}}
"""
#: The rows that are built before anything happens.
_BEFORE = 6


def _building(cluster: Cluster, nodes: Path) -> dict[str, tuple[str, str]]:
    """The hosts that have begun a row: name → the job, and its node."""
    lines = cluster.ask("squeue", "--noheader", "--states=RUNNING", "--format=%j %i %N").splitlines()
    jobs = {name.rpartition("/")[2]: (number, node) for name, number, node in map(str.split, lines)}
    return {host: job for host, job in jobs.items() if list(nodes.glob(f"feedstock-tools-{host}/attempts/*/lease"))}


def _cancel_and_kill(cluster: Cluster, nodes: Path, watched: Watched) -> None:
    """Cancel one job, and kill the node of another."""
    (first, (number, _)), (second, (_, node)) = list(_building(cluster, nodes).items())[:2]
    cluster.ask("scancel", number)
    cancelled = time.monotonic()
    print(f"job {number} ({first}) is cancelled")
    print(f"{first}: its row was free for others after {watched.told(f': {first}: ', cancelled):.1f} s")
    cluster.kill_node(node)
    killed = time.monotonic()
    print(f"the node {node} of {second} dies")
    print(f"{second}: its row was free for others after {watched.told(f': {second}: ', killed):.1f} s")


def _limit_and_bereave(cluster: Cluster, nodes: Path, watched: Watched) -> None:
    """Give one job a time limit that ends it soon, and kill the slurmd of another, whose processes go on."""
    (first, (number, _)), (second, (orphan, node)) = list(_building(cluster, nodes).items())[:2]
    cluster.ask("scontrol", "update", f"JobId={number}", "TimeLimit=1")
    cluster.kill_slurmd(node)
    killed, built = time.monotonic(), _rows_of(nodes, second)
    print(f"the slurmd of {second} on {node} dies alone; {first} has a time limit of 1 min")
    wait_until(lambda: orphan not in cluster.jobs(), 120)
    print(f"Slurm gave the job of {second} up after {time.monotonic() - killed:.1f} s")
    watched.told(f": {first}: ", killed)
    wait_until(lambda: number not in cluster.jobs(), 120)
    print(f"the job of {first} has ended {time.monotonic() - killed:.1f} s after the change of its limit")
    print(f"{second} has begun {len(_rows_of(nodes, second) - built)} rows since its slurmd died")
    cluster.start_slurmd(node)


def _rows_of(nodes: Path, host: str) -> set[str]:
    return {path.name for path in (nodes / f"feedstock-tools-{host}" / "rows").glob("*")}


_FAULTS = {"node": _cancel_and_kill, "slurmd": _limit_and_bereave}


def main(faults: str, *more: str) -> None:
    """Build it, and print what happened.

    Args:
        faults: a key of `_FAULTS`.
    """
    reason = why_no_slurm()
    if reason is not None:
        sys.exit(f"this needs Slurm: {reason}")
    with tempfile.TemporaryDirectory(dir="/tmp") as name, cluster_of(["n1", "n2", "n3"]) as cluster:
        folder, nodes = Path(name), Path(name) / "nodes"
        nodes.mkdir()
        feedstock = copy_of_example("gpuprobe", folder)
        inventory = folder / "inventory.yml"
        inventory.write_text(_INVENTORY.format(port=free_port(), nodes=nodes))
        variables = command.environment(**cluster.variables, XDG_CONFIG_HOME=str(folder / "config"))
        up = command.tool("fleet", "slurm", "up", f"--fleet={inventory}")
        subprocess.run(up, env=variables, check=True)
        try:
            words = command.tool("build", "--all", *more, "--channel", "stand-in", f"--fleet={inventory}")
            began = time.monotonic()
            watched = Watched(command.start(words, feedstock, variables))
            wait_until(lambda: watched.count(" done (") >= _BEFORE and len(_building(cluster, nodes)) >= 2, 1200)
            _FAULTS[faults](cluster, nodes, watched)
            status = watched.end()
            print("".join(line for _, line in watched.lines if re.search(r"cpu-\w+: |Slurm|superseded", line)))
            print(f"exit status {status} after {time.monotonic() - began:.0f} s")
            count_packages(feedstock / "build_artifacts" / "ledger.sqlite")
            wait_until(lambda: not cluster.jobs(), 120)
            print(f"no job runs {time.monotonic() - began:.0f} s after the beginning")
        finally:
            down = command.tool("fleet", "slurm", "down", f"--fleet={inventory}")
            subprocess.run(down, env=variables, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

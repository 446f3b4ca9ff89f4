"""gpuprobe on a Slurm of three nodes: a job is cancelled and a node dies, each in the middle of a build.

python -m benchmarks.builds.slurm [OPTIONS OF BUILD]     # as root, with Slurm and namespaces: tests/support/slurm.py
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


def main(*more: str) -> None:
    """Build it, and print what happened."""
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
            (first, (number, _)), (second, (_, node)) = list(_building(cluster, nodes).items())[:2]
            cluster.ask("scancel", number)
            cancelled = time.monotonic()
            print(f"job {number} ({first}) is cancelled")
            print(f"{first}: its row was free for others after {watched.told(f': {first}: ', cancelled):.1f} s")
            cluster.kill_node(node)
            killed = time.monotonic()
            print(f"the node {node} of {second} dies")
            print(f"{second}: its row was free for others after {watched.told(f': {second}: ', killed):.1f} s")
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

"""A Slurm cluster on this machine: munge, slurmctld and slurmd, each node in a process space of its own (as root).

The programs are those that `python -m tests.support.slurm_programs` has unpacked, else those on PATH. Nothing of theirs
is in this repository, and nothing of this machine's configuration changes.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from feedstock_tools.builds.fleet.local import free_port
from tests.support.slurm_programs import programs_folder
from tests.support.waiting import wait_until

_UNPACKED = programs_folder() if programs_folder().is_dir() else Path("/")
_LIBRARIES = _UNPACKED / "usr" / "lib" / f"{os.uname().machine}-linux-gnu"
_PLUGINS = _LIBRARIES / "slurm-wlm"
#: The first process of a node, which outlives its slurmd.
_FIRST = '"$@" & wait; exec sleep infinity'
_PROGRAMS = ("munged", "slurmctld", "slurmd", "slurmstepd", "sbatch", "squeue", "scancel", "sinfo", "scontrol")


@dataclass
class Cluster:
    """A cluster that runs.

    Attributes:
        variables: what Slurm's commands need to find it, for an environment.
        nodes: their names → the processes that hold their process spaces.
    """

    folder: Path
    variables: Mapping[str, str]
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        """Start one of its processes, which writes its messages to a file with a name."""
        with (self.folder / f"{name}.messages").open("ab") as messages:
            process = subprocess.Popen(
                command,
                env={**os.environ, **self.variables},
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def start_node(self, node: str) -> None:
        """Start a node in a process space of its own."""
        spaces = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c", _FIRST, "first")
        self.nodes[node] = self.start(node, *spaces, *_slurmd(self.folder, node))

    def wait_for_nodes(self) -> None:
        """Wait until all nodes are idle."""
        wait_until(lambda: self._idle() == self.nodes.keys(), 120)

    def mend(self) -> None:
        """Start again the nodes that have died, or whose slurmd has, and wait for all."""
        for node, process in list(self.nodes.items()):
            if process.poll() is not None or self._slurmd_of(node) is None:
                _kill(process)
                self.start_node(node)
        self.wait_for_nodes()

    def ask(self, *command: str) -> str:
        """What a command of Slurm's prints."""
        done = subprocess.run(
            command, env={**os.environ, **self.variables}, check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout

    def jobs(self, state: str = "RUNNING") -> dict[str, str]:
        """The jobs in a state: number → node."""
        lines = self.ask("squeue", "--noheader", f"--states={state}", "--format=%i %N").splitlines()
        return {line.split()[0]: line.split()[1] if " " in line.strip() else "" for line in lines}

    def kill_node(self, node: str) -> None:
        """Kill a node's slurmd with all its processes, as a power cut does."""
        _kill(self.nodes[node])

    def kill_slurmd(self, node: str) -> None:
        """Kill a node's slurmd alone: its jobs go on."""
        slurmd = self._slurmd_of(node)
        assert slurmd is not None
        os.kill(slurmd, signal.SIGKILL)

    def start_slurmd(self, node: str) -> None:
        """Start the slurmd of a node again, where its jobs are."""
        (first,) = _children(self.nodes[node].pid)
        self.start(node, "nsenter", f"--target={first}", "--pid", "--mount", *_slurmd(self.folder, node))

    def _slurmd_of(self, node: str) -> int | None:
        (first,) = _children(self.nodes[node].pid)
        return next((child for child in _children(first) if "slurmd" in _command_line(child).split(" ")[0]), None)

    def _idle(self) -> set[str]:
        with suppress(subprocess.CalledProcessError):
            return set(self.ask("sinfo", "--noheader", "--Node", "--states=idle", "--format=%N").split())
        return set()


@cache
def why_no_slurm() -> str | None:
    """Why there can be no cluster here; None if there can."""
    if os.geteuid() != 0:
        return "it is not root"
    missing = [name for name in _PROGRAMS if _program(name) is None]
    if missing:
        return f"there is no {missing[0]}; `python -m tests.support.slurm_programs` fetches it"
    try:
        subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"process spaces are not allowed: {error}"
    return None


@contextmanager
def cluster_of(nodes: Sequence[str]) -> Iterator[Cluster]:
    """A cluster whose nodes have a core and 2000 MB each; all its processes end with the block."""
    with tempfile.TemporaryDirectory(prefix="ft-slurm-") as folder:  # the paths of sockets must be short
        Path(folder).chmod(0o755)
        with _cluster_in(Path(folder), nodes) as cluster:
            yield cluster


@contextmanager
def _cluster_in(folder: Path, nodes: Sequence[str]) -> Iterator[Cluster]:
    path = ":".join([str(_UNPACKED / "usr" / "bin"), str(_UNPACKED / "usr" / "sbin"), os.environ["PATH"]])
    variables = {"PATH": path, "SLURM_CONF": str(folder / "slurm.conf")}
    if Path("/") != _UNPACKED:
        variables["LD_LIBRARY_PATH"] = f"{_LIBRARIES}:{_PLUGINS}"
    cluster = Cluster(folder, variables)
    _configure(folder, nodes)
    try:
        cluster.start("munged", *_munge(folder))
        wait_until((folder / "socket" / "munge").exists, 30)
        cluster.start("slurmctld", str(_program("slurmctld")), "-D", "-f", variables["SLURM_CONF"])
        for node in nodes:
            cluster.start_node(node)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        for process in reversed(cluster.processes):
            _kill(process)


def _slurmd(folder: Path, node: str) -> list[str]:
    arguments = ("-D", "-N", node, "-f", str(folder / "slurm.conf"), "-d", str(_program("slurmstepd")))
    return [str(_program("slurmd")), *arguments]


def _munge(folder: Path) -> list[str]:
    for name in ("munge", "socket"):
        (folder / name).mkdir(mode=0o700)
    (folder / "socket").chmod(0o755)
    key = folder / "munge" / "key"
    key.write_bytes(secrets.token_bytes(64))
    key.chmod(0o600)
    places = {"key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    words = [f"--{option}={folder / 'munge' / name}" for option, name in places.items()]
    return [str(_program("munged")), "--foreground", "--force", f"--socket={folder / 'socket' / 'munge'}", *words]


def _configure(folder: Path, nodes: Sequence[str]) -> None:
    """Write slurm.conf: accounting and containment by cgroups are left out."""
    machine = os.uname().nodename
    for name in ("state", "spool"):
        (folder / name).mkdir()
    lines = [
        "ClusterName=trial",
        f"SlurmctldHost={machine}(127.0.0.1)",
        f"SlurmctldPort={free_port()}",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={folder / 'socket' / 'munge'}",
        "CredType=cred/munge",
        *([f"PluginDir={_PLUGINS}"] if Path("/") != _UNPACKED else []),
        f"StateSaveLocation={folder / 'state'}",
        f"SlurmdSpoolDir={folder / 'spool'}/%n",
        f"SlurmctldPidFile={folder / 'slurmctld.pid'}",
        f"SlurmdPidFile={folder}/%n.pid",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "SlurmdTimeout=10",
        "KillWait=5",
        "ReturnToService=2",
        "SchedulerParameters=sched_interval=1,batch_sched_delay=0",
        "MpiDefault=none",
        "AccountingStorageType=accounting_storage/none",
        "JobAcctGatherType=jobacct_gather/none",
        *(
            f"NodeName={node} NodeHostname={machine} NodeAddr=127.0.0.1 Port={free_port()} CPUs=1 RealMemory=2000"
            for node in nodes
        ),
        f"PartitionName=batch Nodes={','.join(nodes)} Default=YES MaxTime=60 State=UP",
    ]
    (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")


def _children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _command_line(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def _program(name: str) -> Path | None:
    """A program: Debian's packages have `slurmctld-wlm` and the like behind its alternatives."""
    folders = [str(_UNPACKED / "usr" / "sbin"), str(_UNPACKED / "usr" / "bin")]
    if Path("/") == _UNPACKED:
        folders.append(os.environ.get("PATH", ""))
    found = shutil.which(name, path=":".join(folders)) or shutil.which(f"{name}-wlm", path=":".join(folders))
    return Path(found) if found else None


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()

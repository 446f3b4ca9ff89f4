"""Ansible as a process: its programs, environment, output and failures. None of its modules is imported."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError

_RECAP = re.compile(r"(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)")
_TASK = re.compile(r"(?:TASK|RUNNING HANDLER) \[(.*)\]")
_FATAL = re.compile(r"fatal: \[([^\] ]+)(?: -> [^\]]*)?\]: (\w+)! => (.*)")
_MOST_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Played:
    """What a playbook has done on a host.

    Attributes:
        changed: the number of steps that changed something.
        error: why it failed; None if it did not. `absent` where the host could not be reached.
    """

    host: str
    changed: int
    error: str | None
    absent: bool = False


def ansible(program: str) -> list[str]:
    """The command of one of Ansible's programs, such as `playbook`.

    No module of the folder that it starts in takes the place of Ansible's.

    Raises:
        InputError: it is not installed, or this system is Windows.
    """
    if sys.platform == "win32":
        raise InputError("Ansible does not run on Windows", hint="Run it in WSL, or take `fleet up --script`.")
    if find_spec("ansible") is None:
        raise InputError("this needs ansible-core", hint="Install the extra: pip install 'feedstock-tools[fleet]'")
    return [sys.executable, "-P", "-m", "ansible", program]


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of Ansible on this machine, which the plugin of a cloud needs; none of it goes to a host.

    Settings of Ansible's that others made for their own playbooks are left out, except for where collections lie.
    """
    passed_on = {
        name: value
        for name, value in environment.items()
        if not name.startswith("ANSIBLE_") or name in ("ANSIBLE_HOME", "ANSIBLE_COLLECTIONS_PATH")
    }
    configuration = data_folder("templates") / "fleet-ansible.cfg"
    return {**passed_on, "ANSIBLE_CONFIG": str(configuration), "LC_ALL": "C.UTF-8"}


def play(
    folder: Path,
    playbook: str,
    inventory: Path,
    hosts: Sequence[str],
    environment: Mapping[str, str],
    tell: Callable[[str], None],
) -> list[Played]:
    """Play a playbook of a project on some hosts of an inventory.

    Args:
        folder: of the project, see `write_project`; what Ansible has said stays there, in `PLAYBOOK.log`.
        tell: gets the name of each step as it begins.
    """
    command = [
        *ansible("playbook"),
        *("--inventory", str(inventory.absolute()), "--inventory", str(folder / "hosts.json")),
        *("--limit", ",".join(hosts), "--forks", str(min(len(hosts), _MOST_AT_ONCE))),
        f"{playbook}.yml",
    ]
    lines = []
    with _alone(folder, tell) as held, (folder / f"{playbook}.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables(environment),
            pass_fds=[held],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        try:
            for line in process.stdout or ():
                log.write(line)
                lines.append(line)
                if (task := _TASK.match(line)) is not None:
                    tell(task[1])
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
    return results_of(lines, hosts)


@contextmanager
def _alone(folder: Path, tell: Callable[[str], None]) -> Iterator[int]:
    """Hold a lock that Ansible inherits, so that it lasts as long as that process, even where this one was killed."""
    import fcntl

    with (folder / ".playing").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("Waiting for an earlier command of this fleet, which is still at work")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def results_of(lines: Iterable[str], hosts: Sequence[str]) -> list[Played]:
    """What the last lines of a playbook count, with the reasons that it has given before."""
    reasons, counted, step = dict[str, str](), dict[str, tuple[int, int, int]](), ""
    for line in lines:
        if (task := _TASK.match(line)) is not None:
            step = task[1].rpartition(" : ")[2]
        elif (fatal := _FATAL.match(line)) is not None:
            reasons.setdefault(fatal[1], reason_of(fatal[3], step, absent=fatal[2] == "UNREACHABLE"))
        elif (recap := _RECAP.match(line)) is not None:
            counted[recap[1]] = (int(recap[3]), int(recap[4]), int(recap[5]))
    results = []
    for host in hosts:
        changed, absent, failed = counted.get(host, (0, 0, 1))
        error = reasons.get(host, "Ansible ended before it was done") if absent or failed else None
        results.append(Played(host, changed, error, absent=bool(absent)))
    return results


#: Before the reason in messages of Ansible's.
_PREFIX = re.compile(r"^((Task|Module) failed: |Failed to connect to the host via (ssh|scp|sftp|piped): )+")
_ACCOUNT = (
    "Check ansible_host, ansible_user and its key or password (ansible_ssh_private_key_file, ansible_password) "
    "in the inventory."
)
#: What a message of SSH's, sudo's, or of a program on a host contains → what to do.
_ADVICE = (
    (r"no space left on device|enough free space|disk quota exceeded", "Free some there; `df -h` shows which is full."),
    (r"permission denied \(|incorrect password|authentication fail", _ACCOUNT),
    (
        r"host key verification failed|host identification has changed|host key is unknown",
        "Compare its key with the one that its provider shows, then correct ~/.ssh/known_hosts.",
    ),
    (
        r"sudo: |sudo password|incorrect sudo",
        "Set ansible_become_password, or let the account use sudo without a password.",
    ),
    (
        r"connection refused|no route to host|timed out|network is unreachable|could not resolve|connection closed"
        r"|connection reset|unreachable",
        "Check that the machine runs, its address (ansible_host, ansible_port) and its firewall.",
    ),
)


def reason_of(result: str, step: str, *, absent: bool) -> str:
    """Why a step failed: what it wrote to stderr, else its message, with the step and what to do.

    Args:
        result: what Ansible says of it, as JSON.
        step: its name.
        absent: the host could not be reached.
    """
    lines = _lines(result)
    for pattern, advice in _ADVICE:
        for line in lines:
            if re.search(pattern, line, re.IGNORECASE):
                return f"{_tried(line, step, absent=absent)}. {advice}"
    return _tried(" ".join(lines[-3:]), step, absent=absent)


def _tried(found: str, step: str, *, absent: bool) -> str:
    """What was tried, and what came of it."""
    what = "cannot be reached by SSH" if absent else step
    return f"{what}: {found.rstrip('.')}" if what else found


def _lines(result: str) -> list[str]:
    """The lines of what a step wrote to stderr; without any, those of its message."""
    content: object = None
    with suppress(ValueError):
        content = json.loads(result)
    if not isinstance(content, dict):
        return [result.strip()]
    written = [line.strip() for line in str(content.get("stderr") or "").splitlines() if line.strip()]
    said = [line.strip() for line in str(content.get("msg") or result).splitlines() if line.strip()]
    return written or [_PREFIX.sub("", line) for line in said]

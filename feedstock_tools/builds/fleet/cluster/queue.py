"""Slurm's commands: jobs are submitted, listed and ended by programs with lists of arguments, never through a shell."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.builds.fleet.cluster.settings import slurm_seconds
from feedstock_tools.errors import InputError, WorkError

#: The fields of a job in a list: squeue(1), option --format.
_FORMAT = "%i|%j|%T|%L|%N|%r"
_ANSWERS_WITHIN = 60.0
#: squeue(1), JOB STATE CODES: a job in one of these does not run again.
_ENDED = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
        *("REVOKED", "TIMEOUT"),
    }
)
_ENDING = "COMPLETING"
_WAITS = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
_PREFIX = "feedstock-tools"
#: The most characters of an answer of Slurm's in a message.
_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Job:
    """A job of a fleet as the queue shows it.

    Attributes:
        number: Slurm's; `host` is the name of the host that it is, `state` Slurm's word for its state.
        left: the seconds until its allocation ends; None if it has no end, or is unknown.
        node: where it runs; `reason` why it waits, or how it ended.
    """

    number: str
    host: str
    state: str
    left: float | None
    node: str
    reason: str

    @property
    def is_over(self) -> bool:
        """Whether it has ended, with all its processes."""
        return self.state in _ENDED

    @property
    def lives(self) -> bool:
        """Whether it waits or runs."""
        return not self.is_over and self.state != _ENDING

    @property
    def waits(self) -> bool:
        """Whether it has no node yet."""
        return self.state in _WAITS


def job_name(fleet: str, host: str) -> str:
    """The name of a job, by which the jobs of a fleet are found again."""
    return f"{_PREFIX}/{fleet}/{host}"


def submit(script: str, fleet: str, host: str, folder: Path, machine: Mapping[str, str]) -> str:
    """Submit a job; returns its number.

    Args:
        folder: where it begins, and where its log goes; the nodes must see it.
        machine: the environment of this machine, for sbatch alone: the job does not get it.

    Raises:
        InputError: there is no Slurm here.
        WorkError: Slurm does not take the job, with its reason.
    """
    options = {
        "job-name": job_name(fleet, host),
        "chdir": str(folder),
        "output": str(folder / "log"),
        "error": str(folder / "log"),
        "export": "HOME,PATH,USER",
    }
    arguments = ["--parsable", "--no-requeue", *(f"--{name}={value}" for name, value in options.items())]
    return _run(["sbatch", *arguments], machine, script).strip().partition(";")[0]


def jobs_of(fleet: str, machine: Mapping[str, str]) -> list[Job]:
    """This user's jobs of a fleet, with those that ended a few minutes ago.

    Raises:
        InputError: there is no Slurm here.
        WorkError: Slurm does not answer.
    """
    arguments = ["--noheader", "--me", "--states=all", f"--format={_FORMAT}"]
    return jobs_in(_run(["squeue", *arguments], machine), fleet)


def cancel(numbers: Iterable[str], machine: Mapping[str, str]) -> None:
    """End jobs; those that have ended already do not matter.

    Raises:
        InputError: there is no Slurm here.
        WorkError: Slurm does not answer.
    """
    listed = list(numbers)
    if listed:
        _run(["scancel", "--quiet", *listed], machine)


def jobs_in(listing: str, fleet: str) -> list[Job]:
    """The jobs of a fleet in what squeue prints; other jobs, and lines of another form, are left out.

    >>> jobs_in("17|feedstock-tools/mine/cpu-1|RUNNING|1-02:00:00|n3|None\\n18|other|PENDING|10:00||Priority", "mine")
    [Job(number='17', host='cpu-1', state='RUNNING', left=93600.0, node='n3', reason='')]
    """
    jobs = []
    for line in listing.splitlines():
        fields = [field.strip() for field in line.split("|", 5)]
        if len(fields) < 6 or not fields[1].startswith(job_name(fleet, "")):
            continue
        number, name, state, left, node, reason = fields
        host = name.removeprefix(job_name(fleet, ""))
        jobs.append(Job(number, host, state, _left(left), node, "" if reason == "None" else reason))
    return jobs


def _left(text: str) -> float | None:
    """The seconds of a time that is left; None for UNLIMITED, NOT_SET and INVALID."""
    try:
        return slurm_seconds(text)
    except InputError:
        return None


def _run(command: Sequence[str], machine: Mapping[str, str], text: str = "") -> str:
    program = command[0]
    try:
        done = subprocess.run(
            command, input=text, env=dict(machine), capture_output=True, text=True, timeout=_ANSWERS_WITHIN, check=False
        )
    except FileNotFoundError:
        hint = "Run this where Slurm's commands are: on a login node of the cluster."
        raise InputError(f"there is no {program} on PATH", hint=hint) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WorkError(f"{program} does not answer: {error}") from None
    if done.returncode:
        answer = " ".join((done.stderr or done.stdout).split())[:_SHOWN]
        raise WorkError(f"{program} failed with status {done.returncode}: {answer}")
    return done.stdout

"""Machines that build as values: their cores and memory, the part that a row gets, and why it cannot be built there.

The run on this machine has one host, a fleet has many, and a simulation has hosts that nobody rents yet.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.errors import InputError
from feedstock_tools.processes import this_machine
from feedstock_tools.wording import counted, duration, size_text

#: The default time limit of a row in seconds: several times the longest builds of conda-forge.
BUILD_SECONDS = 48 * 3600.0
#: The default number of bytes of a log file: far above the longest logs of conda-forge.
LOG_LIMIT = 1 << 30
#: The default share of the machine's memory for builds: the desktop needs the rest.
_OF_BUILDS = 0.9
#: The least memory that builds are given: that of a package without a script took 107 MiB.
_LEAST = 128 << 20
#: The default memory of one compiler job, in bytes.
_PER_JOB = 1 << 30
#: The memory of a machine that does not report its own, in bytes.
_ASSUMED = 8 << 30
#: The file with a container's share of the machine's memory.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True, slots=True)
class Capacity:
    """The limit for all builds together: its cores, by their numbers in the system, and bytes of memory."""

    cores: tuple[int, ...]
    memory: int

    @classmethod
    def of_machine(cls, cores: int | None = None, memory: int | None = None) -> Capacity:
        """That number of cores and bytes, limited to those of the machine; default: its cores, most of its memory.

        Raises:
            InputError: no build fits into so little memory.
        """
        if memory is not None and memory < _LEAST:
            hint = f"Give {size_text(_LEAST)} or more; builds with a compiler need 1 GiB and more."
            raise InputError(f"no build fits into {size_text(memory)} of memory", hint=hint)
        cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        usable = tuple(cpus)
        return cls(usable[: cores or len(usable)], min(memory or int(_memory() * _OF_BUILDS), _memory()))


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run.

    `jobs` is the maximum number of parallel rows, `seconds` the time limit of each (None: no limit), `retries` the
    maximum number of retries after a failure that a retry may fix. With `fail_fast` nothing starts after a failure.
    `log_limit` is the maximum number of bytes of each log file.
    """

    jobs: int = 1
    seconds: float | None = BUILD_SECONDS
    retries: int = 2
    fail_fast: bool = False
    log_limit: int = LOG_LIMIT


@dataclass(frozen=True, slots=True)
class Share:
    """The share of one build: its cores, by their numbers, bytes of memory, and the number of jobs for its tools."""

    cores: tuple[int, ...]
    memory: int
    jobs: int


#: The share of a row that has not begun, or that was built before.
NO_SHARE = Share((), 0, 1)


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that builds.

    Attributes:
        capacity: the limit for all its builds together; `jobs` is its maximum number of parallel rows.
        platforms: the subdirs that it builds packages for; None for any.
        gpus: the number of its GPUs; each row that needs one has it alone. None: they are not counted.
        engines: the names of the engines that it has; None for any.
        images: the container images that it can run; None for any.
        labels: names for what else it has, such as `big-disk`.
        preempted: how often its owner takes it away, per hour on average; 0 for a host that stays.
        price: of an hour, in any currency.
        left: the seconds until its allocation ends; None for a host without an end.
        lenient: it also takes rows that need more cores or memory than it has, and gives them all of it, and rows
            that need labels.
        keeps: the shared builds that it keeps for their heirs (`kept_name`).
    """

    name: str
    capacity: Capacity
    jobs: int
    platforms: frozenset[str] | None = None
    gpus: int | None = None
    engines: frozenset[str] | None = None
    images: frozenset[str] | None = None
    labels: frozenset[str] = frozenset()
    preempted: float = 0.0
    price: float = 0.0
    left: float | None = None
    lenient: bool = False
    keeps: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Portion:
    """The part of a host that a row gets, in cores and bytes of memory.

    `source` gives the origin of each number: `spec`, `history` or `default` (an equal part of the host).
    """

    cores: int
    memory: int
    source: Mapping[str, str] = field(default_factory=dict)


def local_host(capacity: Capacity, jobs: int) -> Host:
    """This machine. It takes every row that its engines do not refuse, however much the row needs."""
    return Host(this_machine(), capacity, jobs, lenient=True)


def jobs_of(cores: int, memory: int, per_job: int | None) -> int:
    """The number of parallel compiler jobs on some cores that fit into the memory."""
    return max(1, min(cores, memory // (per_job or _PER_JOB)))


def portion_on(needs: Needs, host: Host) -> Portion:
    """The part of a host that a row gets: what it needs, else an equal part."""
    parts = max(1, host.jobs)
    source = {"cores": "spec" if needs.cores else "default", "memory": "spec" if needs.memory else "default"}
    cores = needs.cores or max(1, len(host.capacity.cores) // parts)
    memory = needs.memory or host.capacity.memory // parts
    if not needs.memory and needs.remembered and needs.remembered > memory:
        memory, source["memory"] = needs.remembered, "history"
    if host.lenient:
        return Portion(min(cores, len(host.capacity.cores)), min(memory, host.capacity.memory), source)
    return Portion(cores, memory, source)


def _memory() -> int:
    """The memory of this machine, or of this container, in bytes."""
    if not hasattr(os, "sysconf"):  # Windows does not report it without a library: a guess on the safe side
        return _ASSUMED
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _LIMITS:
        with suppress(OSError, ValueError):  # there is no such file, or it contains "max"
            total = min(total, int(limit.read_text()))
    return total


def other_than(host: str) -> str:
    """A label that all hosts of a fleet but one have, for a row that must not be built there."""
    return f"another host than {host}"


def others_in(needs: Iterable[Needs]) -> frozenset[str]:
    """The labels of `other_than` that some rows need."""
    return frozenset(label for each in needs for label in each.labels if label.startswith(other_than("")))


def with_others(host: Host, others: frozenset[str]) -> Host:
    """A host with those labels of `other_than` that it meets."""
    return replace(host, labels=host.labels | others - {other_than(host.name)}) if others else host


def fits(needs: Needs, host: Host, seconds: float | None = None) -> bool:
    """Whether an idle host can build a row with some needs and an expected duration, and keeps its shared builds."""
    able = host.jobs > 0 and needs.shared <= host.keeps and all(is_met(needs, host) for is_met, _ in _CONDITIONS)
    return able and _lasts(seconds, host)


def why_nowhere(needs: Needs, hosts: Sequence[Host], seconds: float | None = None) -> str | None:
    """Why none of some hosts can build a row, in words; None if one can. Any may come to keep a shared build.

    The reason is the first condition that no host meets among those that meet the conditions before it.

    Args:
        seconds: the expected duration of the row; None if unknown.

    >>> arm = Host("arm", Capacity((0, 1), 4 << 30), 1, frozenset({"linux-aarch64"}))
    >>> why_nowhere(Needs(platform="linux-64"), [arm])
    'no host builds for linux-64'
    >>> why_nowhere(Needs(cores=8, platform="linux-aarch64"), [arm])
    'it needs 8 cores, and no host that builds for linux-aarch64 has more than 2'
    """
    left = [host for host in hosts if host.jobs > 0]
    if not left:
        return "there are no hosts"
    for is_met, reason in _CONDITIONS:
        able = [host for host in left if is_met(needs, host)]
        if not able:
            return reason(needs, left)
        left = able
    if seconds is None or any(_lasts(seconds, host) for host in left):
        return None
    longest = max(host.left or 0.0 for host in left)
    return f"it takes {duration(seconds)}, and {_that_build(needs)} lasts longer than {duration(longest)}"


def _for_platform(needs: Needs, host: Host) -> bool:
    return host.platforms is None or needs.platform in host.platforms or needs.platform == "noarch"


def _has_labels(needs: Needs, host: Host) -> bool:
    return host.lenient or needs.labels <= host.labels


def _has_engine(needs: Needs, host: Host) -> bool:
    return not needs.engine or host.engines is None or needs.engine in host.engines


def _runs_image(needs: Needs, host: Host) -> bool:
    return needs.image is None or host.images is None or needs.image in host.images


def _has_gpu(needs: Needs, host: Host) -> bool:
    return not needs.gpu or host.gpus is None or host.gpus > 0


def _has_cores(needs: Needs, host: Host) -> bool:
    return portion_on(needs, host).cores <= len(host.capacity.cores)


def _has_memory(needs: Needs, host: Host) -> bool:
    return portion_on(needs, host).memory <= host.capacity.memory


def _lasts(seconds: float | None, host: Host) -> bool:
    return seconds is None or host.left is None or seconds <= host.left


def _that_build(needs: Needs) -> str:
    return f"no host that builds for {needs.platform}"


def _no_labels(needs: Needs, hosts: Sequence[Host]) -> str:
    lacking = ", ".join(sorted(needs.labels.difference(*(host.labels for host in hosts))))
    wanted = lacking or ", ".join(sorted(needs.labels))
    if lacking.startswith(other_than("")):
        return f"it must be built on {lacking}, and there is no such host that builds for {needs.platform}"
    return f"{_that_build(needs)} has the label {wanted}" if lacking else f"{_that_build(needs)} has all of {wanted}"


def _no_cores(needs: Needs, hosts: Sequence[Host]) -> str:
    most = max(len(host.capacity.cores) for host in hosts)
    wanted = counted(portion_on(needs, hosts[0]).cores, "core")
    return f"it needs {wanted}, and {_that_build(needs)} has more than {most}"


def _no_memory(needs: Needs, hosts: Sequence[Host]) -> str:
    most = max(host.capacity.memory for host in hosts)
    wanted = size_text(portion_on(needs, hosts[0]).memory)
    return f"it needs {wanted} of memory, and {_that_build(needs)} has more than {size_text(most)}"


#: What a host must meet for a row, in the order in which people ask, and the words where none does.
_CONDITIONS: tuple[tuple[Callable[[Needs, Host], bool], Callable[[Needs, Sequence[Host]], str]], ...] = (
    (_for_platform, lambda needs, _: f"no host builds for {needs.platform}"),
    (_has_labels, _no_labels),
    (_has_engine, lambda needs, _: f"{_that_build(needs)} has the engine {needs.engine}"),
    (_runs_image, lambda needs, _: f"{_that_build(needs)} can run the image {needs.image}"),
    (_has_gpu, lambda needs, _: f"it needs a GPU, and {_that_build(needs)} has one"),
    (_has_cores, _no_cores),
    (_has_memory, _no_memory),
)

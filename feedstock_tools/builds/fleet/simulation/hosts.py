"""Hosts as people write them down for a simulation: a file of kinds, or short forms such as `3x32c128g`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from feedstock_tools.builds.plan.hosts import Capacity, Host
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import read_text
from feedstock_tools.wording import size_of, time_of
from feedstock_tools.yaml_reading.checking import model_of, readable_by
from feedstock_tools.yaml_reading.nodes import parse_document

#: The most hosts of a simulation.
_MOST = 100_000
#: In seconds: what `fleet up` took for three bare hosts, and what a row takes on a fleet besides its build.
READY, OVERHEAD = 135.0, 1.0
_SHORT = re.compile(
    r"(?:(?P<count>\d{1,6})x)?(?P<cores>\d{1,5})c(?:(?P<memory>\d{1,6})g)?(?:(?P<gpus>\d{1,3})gpu)?|(?P<alone>\d{1,6})",
    re.ASCII,
)
_HINT = "Give the number of hosts (3), their sizes (3x32c128g,1x64c256g2gpu), or a file of hosts (docs/plan.md)."


_Size = Annotated[str, readable_by(size_of)]
_Time = Annotated[str, readable_by(time_of)]
_Subdir = Annotated[str, readable_by(Platform.parse)]


class _Entry(BaseModel):
    """A kind of host in a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int = Field(default=1, ge=1, lt=_MOST + 1, description="The number of such hosts.")
    cores: int = Field(ge=1, lt=100_000, description="The cores of each.")
    memory: _Size = Field(description="The memory of each: 128 GiB.")
    jobs: int = Field(default=1, ge=1, lt=1000, description="The most rows that each builds in parallel.")
    platforms: tuple[_Subdir, ...] | None = Field(default=None, description="What they build for; default: anything.")
    gpus: int = Field(default=0, ge=0, lt=1000, description="The GPUs of each.")
    images: tuple[str, ...] | None = Field(default=None, description="Container images that they run; default: any.")
    labels: tuple[str, ...] = Field(default=(), description="What else they have, as `needs: labels` of a spec asks.")
    price: float = Field(default=0.0, ge=0, lt=1e6, description="The price of an hour of one of them.")
    preempted: float = Field(default=0.0, ge=0, lt=100, description="How often an hour each is taken away, on average.")
    back: _Time | None = Field(default=None, description="The time until another one is there: 5 min.")
    ready: _Time | None = Field(default=None, description="The time from then until it takes rows: 2 min 15 s.")


class _File(BaseModel):
    """A file of hosts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hosts: dict[str, _Entry] = Field(min_length=1, description="The hosts, by the name of their kind.")
    currency: str = Field(default="", description="The currency of the prices.")


@dataclass(frozen=True, slots=True)
class SimulatedHosts:
    """The hosts of a simulation.

    Attributes:
        hosts: named `<kind>-1`, `<kind>-2` and so on.
        kinds: the name of each host's kind, by the name of the host.
        back: the seconds until another host of a kind is there after one was preempted, by the name of the kind.
        ready: the seconds from then, or from the begin of the run, until a host of a kind takes rows, likewise.
        overhead: the seconds of a row on a host besides its build.
        currency: of their prices; empty if the file does not say.
    """

    hosts: tuple[Host, ...]
    kinds: dict[str, str]
    back: dict[str, float]
    ready: dict[str, float] = field(default_factory=dict)
    overhead: float = 0.0
    currency: str = ""


def read_hosts(text: str, this_machine: Host) -> SimulatedHosts:
    """The hosts that a user gives: a file, a number of hosts like this one, or sizes.

    Args:
        this_machine: for what a short form does not say: cores, memory, the number of parallel rows.

    Raises:
        InputError: it is neither; or the file has mistakes, each with line and column.

    >>> this_machine = Host("here", Capacity((0, 1), 4 << 30), 1)
    >>> [host.name for host in read_hosts("2", this_machine).hosts]
    ['host-1', 'host-2']
    >>> [(host.name, len(host.capacity.cores)) for host in read_hosts("1x32c128g,2x8c", this_machine).hosts]
    [('32c128g-1', 32), ('8c-1', 8), ('8c-2', 8)]
    """
    parts = text.split(",")
    matches = [_SHORT.fullmatch(part.strip()) for part in parts]
    if all(matches):
        return _from_kinds(_of_short_form(match, this_machine) for match in matches if match)
    path = Path(text)
    if not path.is_file():
        raise InputError(f"'{text[:80]}' is neither a number of hosts, nor their sizes, nor a file", hint=_HINT)
    return _from_file(path)


def _of_short_form(match: re.Match[str], this_machine: Host) -> tuple[Host, int]:
    if match["alone"]:
        return replace(this_machine, name="host", lenient=True), int(match["alone"])
    cores = tuple(range(int(match["cores"])))
    memory = size_of(f"{match['memory']} GiB") if match["memory"] else this_machine.capacity.memory
    name = match[0].rpartition("x")[2]
    gpus = int(match["gpus"] or 0)
    return Host(name, Capacity(cores, memory), this_machine.jobs, gpus=gpus), int(match["count"] or 1)


def _from_kinds(kinds: Iterator[tuple[Host, int]]) -> SimulatedHosts:
    hosts: list[Host] = []
    of_host: dict[str, str] = {}
    for kind, count in kinds:
        if len(hosts) + count > _MOST or kind.jobs < 1 or not kind.capacity.cores or count < 1:
            raise InputError(f"a simulation takes 1 to {_MOST} hosts, each with a core or more", hint=_HINT)
        made = sum(name == kind.name for name in of_host.values())
        for number in range(made + 1, made + count + 1):
            host = replace(kind, name=f"{kind.name}-{number}")
            hosts.append(host)
            of_host[host.name] = kind.name
    return SimulatedHosts(tuple(hosts), of_host, {}, dict.fromkeys(of_host.values(), READY), OVERHEAD)


def _from_file(path: Path) -> SimulatedHosts:
    document = parse_document(read_text(path, within=None), path)
    file = model_of(document, document.content, _File, "a file of hosts")
    found = _from_kinds((_of_entry(name, entry), entry.count) for name, entry in file.hosts.items())
    back = {name: time_of(entry.back) for name, entry in file.hosts.items() if entry.back}
    ready = {name: time_of(entry.ready) for name, entry in file.hosts.items() if entry.ready}
    return replace(found, back=back, ready=found.ready | ready, currency=file.currency)


def _of_entry(name: str, entry: _Entry) -> Host:
    return Host(
        name=name,
        capacity=Capacity(tuple(range(entry.cores)), size_of(entry.memory)),
        jobs=entry.jobs,
        platforms=None
        if entry.platforms is None
        else frozenset(Platform.parse(platform).subdir for platform in entry.platforms),
        gpus=entry.gpus,
        images=None if entry.images is None else frozenset(entry.images),
        labels=frozenset(entry.labels),
        preempted=entry.preempted,
        price=entry.price,
    )

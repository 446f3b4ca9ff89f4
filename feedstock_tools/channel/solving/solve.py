"""Solving: which packages of some channels form an environment that satisfies some specs, or why none do."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.repodata import channel_url, first_cause, read_records
from feedstock_tools.channel.solving.reasons import short_reason
from feedstock_tools.channel.waiting import wait_for
from feedstock_tools.channel.web.credentials import rattler_client
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from rattler import (
        Channel,
        Gateway,
        GenericVirtualPackage,
        MatchSpec,
        MultiSource,
        RepoDataRecord,
        SparseRepoData,
        Subdir,
    )

#: The time limit of the solver alone.
_LIMIT = timedelta(minutes=5)
#: The time limit of a solve with reading repodata, in seconds.
_MOST_SECONDS = 1800


class SolveError(WorkError):
    """No environment satisfies the specs; the message is short, and `explanation` is the solver's full output."""

    def __init__(self, message: str, explanation: str) -> None:
        super().__init__(message)
        self.explanation = explanation


def virtual_packages(platform: Platform, *, cuda: str | None = None, glibc: str = "2.28") -> tuple[str, ...]:
    """The virtual packages of a machine of some platform, as `name=version`, for `solve`.

    Args:
        cuda: the newest CUDA version that the machine's driver runs; None for a machine without a GPU.
        glibc: the version on a Linux machine; default: that of conda-forge's images of 2025.

    >>> virtual_packages(Platform.parse("linux-64"), cuda="12.9")
    ('__unix=0', '__linux=5.10', '__glibc=2.28', '__archspec=1=x86_64', '__cuda=12.9')
    """
    arch = {"64": "x86_64", "32": "x86"}.get(platform.arch, platform.arch)
    by_system = {
        "linux": ("__unix=0", "__linux=5.10", f"__glibc={glibc}"),
        "osx": ("__unix=0", "__osx=14.0"),
        "win": ("__win=10.0",),
    }
    gpu = (f"__cuda={cuda}",) if cuda is not None else ()
    return (*by_system.get(platform.os, ()), f"__archspec=1={arch}", *gpu)


def solve(
    specs: Sequence[str],
    channels: Sequence[str],
    platform: Platform,
    *,
    virtual: Sequence[str] = (),
    constraints: Sequence[str] = (),
) -> tuple[Record, ...]:
    """The packages of an environment, sorted by name.

    Args:
        specs: match specifications as conda reads them: `python 3.12.*`, `gpuprobe =1.0=cuda112*`.
        channels: names, URLs or folders, the first has strict priority.
        virtual: the virtual packages of the machine, as `name=version` or `name=version=build`: see `virtual_packages`.
        constraints: specifications that apply to a package only if it is needed.

    Raises:
        InputError: a spec, a virtual package or a channel is invalid.
        SolveError: nothing satisfies the specs.
        WorkError: a channel cannot be reached, answers with an error, or has damaged repodata.
    """
    from rattler import Channel

    return _solve([Channel(channel_url(channel)) for channel in channels], specs, platform, virtual, constraints)


def decided_by_time(
    specs: Sequence[str], channels: Sequence[str], platform: Platform, *, virtual: Sequence[str] = ()
) -> tuple[tuple[Record, Record], ...]:
    """Pairs of packages between which only time stamps decide in an environment.

    The environment is solved twice, with the time stamps of all packages rising and then falling in the order of their
    names, versions and builds. If nothing depends on the order in which packages were built, the result is empty. A
    package that only one of the two environments has is paired with itself.

    Raises:
        as `solve`.
    """
    subdirs = (platform.subdir, "noarch")
    by_channel = [(channel_url(channel), read_records(channel, subdirs)) for channel in channels]
    ordered = sorted(
        (record for _, records in by_channel for record in records), key=lambda record: record.distribution
    )
    places = {record: place for place, record in enumerate(ordered, 1)}
    answers = []
    for sign, offset in ((1, 0), (-1, len(ordered) + 1)):
        with temporary_folder() as folder:
            stamps = {record: (offset + sign * place) * 1000 for record, place in places.items()}
            sources = _sources_in_memory(folder, by_channel, subdirs, stamps)
            answers.append({record.name: record for record in _solve(sources, specs, platform, virtual, ())})
    rising, falling = answers
    names = sorted(rising.keys() | falling.keys())
    pairs = ((rising.get(name) or falling[name], falling.get(name) or rising[name]) for name in names)
    return tuple(
        (first, other)
        for name, (first, other) in zip(names, pairs, strict=True)
        if first.url != other.url or name not in rising or name not in falling
    )


def _sources_in_memory(
    folder: Path,
    by_channel: Sequence[tuple[str, Sequence[Record]]],
    subdirs: Sequence[str],
    stamps: Mapping[Record, int],
) -> list[SparseRepoData]:
    """The channels' repodata with other time stamps."""
    from rattler import Channel, SparseRepoData

    sources = []
    for number, (url, records) in enumerate(by_channel):
        for subdir in subdirs:
            entries = {
                record.file_name: record.to_repodata() | {"timestamp": stamps[record]}
                for record in records
                if record.url.startswith(f"{url}/{subdir}/")
            }
            path = folder / f"{number}-{subdir}.json"
            bz2 = {name: entry for name, entry in entries.items() if name.endswith(".tar.bz2")}
            conda = {name: entry for name, entry in entries.items() if name not in bz2}
            path.write_text(json.dumps({"packages": bz2, "packages.conda": conda}), encoding="utf-8")
            sources.append(SparseRepoData(Channel(url), subdir, path))
    return sources


def _solve(
    sources: Sequence[Channel | SparseRepoData],
    specs: Sequence[str],
    platform: Platform,
    virtual: Sequence[str],
    constraints: Sequence[str],
) -> tuple[Record, ...]:
    question = Question(tuple(specs), platform, tuple(virtual), tuple(constraints))
    question.check()

    async def work(gateway: Gateway) -> tuple[Record, ...]:
        solved = await solved_records(question, sources, gateway)
        return tuple(sorted(map(_record, solved), key=lambda record: record.name))

    with plain_errors():
        return _with_plain_repodata(work)


@dataclass(frozen=True, slots=True)
class Question:
    """The specs of an environment and its machine: the arguments of `solve` as one value."""

    specs: tuple[str, ...]
    platform: Platform
    virtual: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse invalid questions.

        Raises:
            InputError: a spec, a constraint or a virtual package is invalid.
        """
        for spec in (*self.specs, *self.constraints):
            _match_spec(spec)
        for text in self.virtual:
            _virtual_package(text)


async def solved_records(
    question: Question, sources: Sequence[Channel | SparseRepoData | MultiSource], gateway: Gateway
) -> list[RepoDataRecord]:
    """The records of rattler that answer a question; for programs that solve many in parallel, with `plain_errors`."""
    import rattler

    subdirs = [rattler.Subdir(question.platform.subdir), rattler.Subdir("noarch")]
    solved = await rattler.solve(
        sources,
        [_match_spec(spec) for spec in question.specs],
        gateway,
        platforms=subdirs,
        virtual_packages=[_virtual_package(text) for text in question.virtual],
        timeout=_LIMIT,
        constraints=[_match_spec(spec) for spec in question.constraints],
    )
    await _refuse_other_channels(solved, sources, subdirs, gateway)
    return solved


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn the errors of rattler's solver into ours.

    Raises:
        SolveError: nothing satisfies the specs.
        WorkError: a channel cannot be read.
    """
    from rattler.exceptions import FetchRepoDataError, GatewayError, SolverError

    try:
        yield
    except SolverError as error:
        raise SolveError(short_reason(str(error)), str(error)) from error
    except (FetchRepoDataError, GatewayError, OSError) as error:
        raise WorkError(f"cannot read the channels: {first_cause(error)}") from error


def _with_plain_repodata(work: Callable[[Gateway], Coroutine[None, None, tuple[Record, ...]]]) -> tuple[Record, ...]:
    """Do the work; if reading a channel fails, repeat it without sharded repodata.

    On a second request for shards, a plain file server answers "not modified", which py-rattler 0.28 treats as an
    error.
    """
    from rattler import Gateway, SourceConfig
    from rattler.exceptions import GatewayError

    awaited = "an environment to be solved"
    try:
        return wait_for(work(Gateway(client=rattler_client())), awaited, _MOST_SECONDS)
    except GatewayError:
        plain = Gateway(default_config=SourceConfig(sharded_enabled=False), client=rattler_client())
        return wait_for(work(plain), awaited, _MOST_SECONDS)


async def _refuse_other_channels(
    solved: Sequence[RepoDataRecord],
    sources: Sequence[Channel | SparseRepoData | MultiSource],
    subdirs: Sequence[Subdir],
    gateway: Gateway,
) -> None:
    """Apply strict priority to the requested packages too: py-rattler 0.28 applies it only to dependencies."""
    from rattler import Channel

    channels = [source for source in sources if isinstance(source, Channel)]
    for chosen in solved:
        before = []
        for channel in channels:
            if channel.base_url.rstrip("/") == chosen.channel.rstrip("/"):
                break
            before.append(channel)
        if not before or len(before) == len(channels):
            continue
        name = chosen.name.normalized
        earlier = await gateway.query(before, subdirs, [name], recursive=False)
        for other in (record for records in earlier for record in records):
            place, first = chosen.channel.rstrip("/"), other.channel.rstrip("/")
            message = f"{name} {chosen.version} is in {place}, but {first} has {name} too and comes first"
            raise SolveError(message, message)


def _record(record: RepoDataRecord) -> Record:
    entry = json.loads(record.to_json())
    url, _, file_name = record.url.rpartition("/")
    channel, _, subdir = url.rpartition("/")
    return Record.from_repodata(file_name, entry, channel=channel, subdir=subdir)


def _match_spec(spec: str) -> MatchSpec:
    from rattler import MatchSpec
    from rattler.exceptions import InvalidMatchSpecError

    try:
        return MatchSpec(spec)
    except InvalidMatchSpecError as error:
        raise InputError(f"'{spec}' is not a match specification: {error}") from error


def _virtual_package(text: str) -> GenericVirtualPackage:
    from rattler import BuildString, GenericVirtualPackage, PackageName, Version
    from rattler.exceptions import InvalidPackageNameError, InvalidVersionError

    name, _, rest = text.partition("=")
    version, _, build = rest.partition("=")
    try:
        return GenericVirtualPackage(PackageName(name), Version(version or "0"), BuildString(build or "0"))
    except (InvalidPackageNameError, InvalidVersionError) as error:
        raise InputError(
            f"'{text}' is not a virtual package: {error}", hint="Write for example __cuda=12.9."
        ) from error
